"""Arrays written past HDF5: digests, blocks, disk space, short writes."""

import errno
import os

import numpy as np
import pytest

from tapewright.core.hardware import devices
from tapewright.storage import parallel_write
from tapewright.storage.checksum import check_seal
from tapewright.storage.parallel_write import blocks
from tapewright.storage.reader import opened
from tapewright.storage.writer import writing

from .written_arrays import ARRAYS, BIG, linux


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("writer") / "m.h5"
    with writing(path) as root:
        for name, array in ARRAYS.items():
            root.group("a").array(name, array, kind="test")
    return path


def test_the_digests_of_written_pieces_are_those_of_the_file(path):
    with writing(path.parent / "m2.h5") as root:
        for i in range(4):  # each begins and ends within a piece
            root.array(str(i), BIG.repeat(2 + i, 0))
        assert len(root.digests) > 12
    assert check_seal(path.parent / "m2.h5")


def test_an_array_may_be_changed_once_it_is_written(tmp_path):
    buffer = BIG.copy()
    with writing(tmp_path / "m.h5") as root:
        root.array("0", buffer)
        buffer[:] = 0
        root.array("1", buffer)
    with opened(tmp_path / "m.h5") as root:
        np.testing.assert_array_equal(root.array("0").read(), BIG)
        assert not root.array("1").read().any()


@pytest.mark.parametrize("array", [BIG.T, BIG[None, None, ::2], BIG.T[:1]])
def test_blocks_are_the_array_in_order_and_small(monkeypatch, array):
    monkeypatch.setattr(parallel_write, "BLOCK", 5000)
    found = list(blocks(array))
    assert max(each.nbytes for each in found) <= 5000
    assert len(found) > (array.nbytes > 5000)
    np.testing.assert_array_equal(
        np.concatenate([b.ravel() for b in found]), array.ravel()
    )


def test_arrays_of_another_device_are_copied_in_parts(tmp_path, monkeypatch):
    class Far:  # stands in for an array of a GPU
        def __init__(self, array):
            self.array = array
            self.shape, self.dtype, self.nbytes = array.shape, array.dtype, array.nbytes

        def __getitem__(self, key):
            return Far(self.array[key])

    copied = []

    def to_numpy(far):
        copied.append(far.nbytes)
        return far.array

    monkeypatch.setitem(devices._MODULES, Far, np)
    monkeypatch.setitem(devices._TO_NUMPY, Far, to_numpy)
    monkeypatch.setattr(parallel_write, "BLOCK", 100_000)
    arrays = [BIG, BIG.T, BIG[:, None], BIG[:2], np.float32(3), BIG > 0]
    with writing(tmp_path / "m.h5") as root:
        for i, array in enumerate(arrays[:-1]):
            root.array(str(i), Far(array))
        assert max(copied) <= 100_000
        root.array("5", Far(arrays[-1]))  # HDF5 writes it, as a whole
    assert sum(copied) == sum([array.nbytes for array in arrays])
    with opened(tmp_path / "m.h5") as root:
        for array, read in zip(arrays, root.numbered()):
            np.testing.assert_array_equal(read.read(), array)


@linux
def test_the_disk_keeps_places_for_large_arrays_before_they_are_written(
    tmp_path, monkeypatch
):
    calls, reserve, write = [], os.posix_fallocate, os.pwrite

    def reserving(file, place, size):
        calls.append(("reserve", place, size))
        reserve(file, place, size)

    def writing_at(file, content, place):
        calls.append(("write", place, len(content)))
        return write(file, content, place)

    monkeypatch.setattr(os, "posix_fallocate", reserving)
    monkeypatch.setattr(os, "pwrite", writing_at)
    with writing(tmp_path / "m.h5") as root:
        root.array("a", BIG)
    ((_, place, size),) = [call for call in calls if call[0] == "reserve"]
    assert size == BIG.nbytes
    assert calls.index(("reserve", place, size)) < calls.index(("write", place, size))


@linux
def test_a_disk_that_keeps_no_places_is_written_all_the_same(tmp_path, monkeypatch):
    def refuse(*args):
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with writing(tmp_path / "m.h5") as root:
        root.array("a", BIG)
    with opened(tmp_path / "m.h5") as root:
        np.testing.assert_array_equal(root.array("a").read(), BIG)


def test_writes_that_are_cut_short_go_on(tmp_path, monkeypatch):
    whole = os.pwrite
    monkeypatch.setattr(
        os, "pwrite", lambda file, data, at: whole(file, data[:70_001], at)
    )
    with writing(tmp_path / "m.h5") as root:
        root.array("a", BIG)
    with opened(tmp_path / "m.h5") as root:
        np.testing.assert_array_equal(root.array("a").read(), BIG)


def test_systems_without_writing_at_a_place_write_the_same(tmp_path, monkeypatch):
    for name in ("pwrite", "preadv", "posix_fadvise"):
        monkeypatch.delattr(os, name, raising=False)
    with writing(tmp_path / "m.h5") as root:
        root.array("a", BIG)
    with opened(tmp_path / "m.h5") as root:
        np.testing.assert_array_equal(root.array("a").read(), BIG)
