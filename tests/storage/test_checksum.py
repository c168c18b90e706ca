"""The seal: every change of a file is found before HDF5 sees it."""

import os

import h5py
import numpy as np
import pytest

import tapewright as tw
from tapewright.storage import checksum as seals
from tapewright.storage.checksum import check_seal, seal
from tapewright.storage.reader import opened
from tapewright.storage.writer import writing

VALUES = np.random.default_rng(0).normal(size=(40, 30)).astype("f4")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "m.h5"
    with writing(path) as root:
        group = root.group("layers/dense/vars")
        group.array("0", VALUES)
        group.array("1", np.arange(30.0))
        group.text("name", "dense")
    return path


def test_what_was_written_is_intact(path):
    assert check_seal(path)


def test_h5py_opens_a_sealed_file(path):
    with h5py.File(path) as file:
        assert file.userblock_size == 512
        np.testing.assert_array_equal(file["layers/dense/vars/0"], VALUES)


def test_a_file_without_a_seal_says_so(tmp_path):
    with h5py.File(tmp_path / "m.h5", "w") as file:
        file["a"] = VALUES
    assert not check_seal(tmp_path / "m.h5")
    with opened(tmp_path / "m.h5") as root:
        assert not root.sealed


def test_every_flipped_bit_is_found(path, tmp_path):
    content, other = path.read_bytes(), tmp_path / "other.h5"
    random = np.random.default_rng(1)
    places = [*random.integers(len(content), size=260), *range(40)]
    for place in places:
        flipped = bytearray(content)
        flipped[place] ^= 1 << random.integers(8)
        other.write_bytes(flipped)
        with pytest.raises(tw.errors.SavingError, match="damaged") as caught:
            with opened(other):
                pass
        assert caught.value.path == str(other)


@pytest.mark.parametrize("count", [1, 100, 2000])
def test_a_file_that_ends_early_is_damaged(path, count):
    size = os.path.getsize(path)
    os.truncate(path, size - count)
    with pytest.raises(tw.errors.SavingError, match=f"{size} were written"):
        check_seal(path)


def test_a_file_with_more_at_its_end_is_damaged(path):
    with open(path, "ab") as file:
        file.write(b"more")
    with pytest.raises(tw.errors.SavingError, match="damaged"):
        check_seal(path)


def test_a_file_edited_after_it_was_written_is_told_from_an_intact_one(path):
    with h5py.File(path, "r+") as file:
        file["layers/dense/vars/1"][3] = 7
    with pytest.raises(tw.errors.SavingError, match="was changed after it was written"):
        with opened(path):
            pass


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"sha256/512KiB=",
        b"sha512=00",
        b"sha256/512KiB=" + b"0" * 64 + b" bytes=\n",
    ],
)
def test_a_damaged_seal_is_damage(path, head):
    with open(path, "r+b") as file:
        file.write((seals.MARK + head).ljust(512, b"\0"))
    with pytest.raises(tw.errors.SavingError, match="its seal cannot be read"):
        check_seal(path)


def test_a_head_without_a_file_is_damage(tmp_path):
    (tmp_path / "m.h5").write_bytes(seals.MARK)
    with pytest.raises(tw.errors.SavingError, match="its seal cannot be read"):
        check_seal(tmp_path / "m.h5")


@pytest.mark.parametrize("size", [512, 513, 700, 1000, 1024, 1025, 5000])
def test_the_checksum_is_that_of_the_digests_of_all_pieces(tmp_path, monkeypatch, size):
    import hashlib

    monkeypatch.setattr(seals, "PIECE", 256)
    content = np.random.default_rng(2).bytes(size)
    (tmp_path / "m.h5").write_bytes(content)
    seal(tmp_path / "m.h5")
    pieces = [content[i : i + 256] for i in range(512, size, 256)]
    digests = b"".join(hashlib.sha256(piece).digest() for piece in pieces)
    head = (tmp_path / "m.h5").read_bytes()[:512]
    assert hashlib.sha256(digests).hexdigest().encode() in head
    assert check_seal(tmp_path / "m.h5")
