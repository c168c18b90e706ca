"""Untrusted HDF5: nothing leads out, hangs, or takes memory."""

import fcntl
import os
import subprocess
import sys

import h5py
import numpy as np
import pytest

import tapewright as tw
from tapewright.storage import reader
from tapewright.storage.file_objects import Window
from tapewright.storage.reader import Array, opened
from tapewright.storage.writer import writing

from .hdf5_files import VALUES, make, posix, read, refused


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.h5"


# What is no HDF5 file at all


def test_a_missing_file_is_told(path):
    refused(path, "there is no such file")
    with pytest.raises(FileNotFoundError):
        read(path)


def test_a_folder_is_told(path):
    path.mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read(path)


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="Linux has this file")
def test_a_file_that_cannot_be_read_is_told():
    with pytest.raises(tw.errors.SavingError, match="cannot be read"):
        Window("/proc/self/mem", 0, 10).read_at(0, 10)


@posix
def test_files_of_holes_are_refused(path):
    make(path, a=VALUES)
    os.truncate(path, 1 << 40)
    refused(path, "1099511627776 bytes, nearly all of them holes")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read all")
def test_a_file_that_may_not_be_read_is_told(path):
    make(path, a=VALUES)
    path.chmod(0)
    with pytest.raises(PermissionError, match="may not be read"):
        read(path)


def test_a_name_with_a_nul_is_an_error():
    refused("a\0b", "cannot be read")


@pytest.mark.parametrize(
    "content, reason",
    [
        (b"", "is empty"),
        (b"<!DOCTYPE html><html>", "it is HTML"),
        (b"  \n<?xml version='1.0'?>", "it is HTML"),
        (bytes(range(256)) * 40, "it begins with"),
        (b"\x89HDF\r\n\x1a\n", "is a damaged or incomplete HDF5 file"),
        (b"\x89HDF\r\n\x1a\n" + b"\xff" * 5000, "is a damaged or incomplete HDF5 file"),
        (b"PK\x03\x04" + b"\0" * 100, "it begins with"),
    ],
    ids=["empty", "HTML", "XML", "random", "signature", "superblock", "zip"],
)
def test_what_is_no_hdf5_file_is_told(path, content, reason):
    path.write_bytes(content)
    refused(path, reason)


@pytest.mark.parametrize("part", [0.02, 0.5, 0.999])
def test_a_foreign_file_that_ends_early_is_damaged(path, part):
    make(path, a=VALUES)
    os.truncate(path, int(os.path.getsize(path) * part))
    refused(path, "incomplete HDF5 file|ends before")


def test_a_foreign_file_with_flipped_bits_is_read_or_refused(path):
    make(path, a=VALUES[:4, :4])
    content, random = path.read_bytes(), np.random.default_rng(1)
    for place in random.integers(len(content), size=250):
        flipped = bytearray(content)
        flipped[place] ^= 1 << random.integers(8)
        path.write_bytes(flipped)
        try:
            with opened(path) as root:
                for item in root.walk():
                    if isinstance(item, Array):
                        item.read()
        except tw.errors.SavingError:
            pass


@posix
def test_a_file_that_is_being_written_is_told(path):
    script = (
        "import h5py, sys\n"
        "with h5py.File(sys.argv[1], 'w', locking=True) as file:\n"
        "    print('ready', flush=True)\n"
        "    sys.stdin.readline()\n"
        "    file['a'] = 1.0\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with child:
        child.stdout.readline()
        with pytest.raises(tw.errors.SavingError, match="by another process") as caught:
            read(path)
        assert isinstance(caught.value, BlockingIOError)
        child.communicate("go\n")
    assert read(path) == 1.0


def test_locks_of_readers_are_none_for_others(path):
    make(path, a=VALUES)
    with open(path, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        np.testing.assert_array_equal(read(path), VALUES)


def test_a_file_that_is_replaced_while_its_seal_is_checked_is_checked_again(
    path, monkeypatch
):
    with writing(path) as root:
        root.array("a", VALUES)
    check, checked = reader.check_seal, []

    def replace_first(window, *args):
        sealed = check(window, *args)
        if not checked:
            with writing(path) as root:
                root.array("a", -VALUES)
        checked.append(sealed)
        return sealed

    monkeypatch.setattr(reader, "check_seal", replace_first)
    np.testing.assert_array_equal(read(path), -VALUES)
    assert checked == [True, True]


# Where names lead


def test_a_link_that_leads_nowhere_is_refused(path):
    with h5py.File(path, "w") as file:
        file["lost"] = h5py.SoftLink("/nowhere")
    refused(path, "links .*not allowed", "lost")


def test_links_are_refused(path, tmp_path):
    make(tmp_path / "other.h5", a=VALUES)
    with h5py.File(path, "w") as file:
        file["there"] = VALUES
        file["a"] = h5py.SoftLink("/there")
        file["b"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "/a")
        file["c"] = h5py.SoftLink("/c")
        file["d"] = h5py.SoftLink("/nowhere")
    for name in "abcd":
        refused(path, "links .*not allowed", name)
    with (
        opened(path) as root,
        pytest.raises(tw.errors.SavingError, match="links .*not allowed"),
    ):
        list(root.walk())


@pytest.mark.parametrize("name", ["../a", "g/../a", "/a", "a/", "", ".", "g//a", ".."])
def test_names_stay_in_the_group(path, name):
    make(path, a=VALUES)
    refused(path, "leads out of the group", name)


def test_what_is_not_there_is_told(path):
    make(path, **{"g/a": VALUES})
    refused(path, "has no array 'g/b'", "g/b")
    refused(path, "has no array 'g'", "g")
    with opened(path) as root:
        assert "g/a" in root and "g/b" not in root and "g/a/b" not in root
        assert root.find_group("g/b") is None
        with pytest.raises(tw.errors.SavingError, match="group.*'g/b'"):
            root.group("g/b")


def test_an_array_in_the_place_of_a_group_is_told(path):
    make(path, **{"g/a": VALUES})
    with opened(path) as root:
        for call in (root.group, root.find_group):
            with pytest.raises(
                tw.errors.SavingError, match=r"\[/g/a\]: must be a group"
            ):
                call("g/a")


def test_arrays_below_are_found_of_groups_and_arrays_alike(path):
    make(path, **{"g/a": VALUES, "g/b/c": VALUES, "d": VALUES})
    with opened(path) as root:
        names = [[each.name for each in root.find(at).arrays()] for at in ("g", "d")]
        assert names == [["/g/a", "/g/b/c"], ["/d"]]
        assert len(list(root.arrays())) == 3


def test_a_type_in_the_place_of_a_group_is_told(path):
    with h5py.File(path, "w") as file:
        file["a"] = np.dtype("f4")
    refused(path, "neither a group nor an array")


def test_cycles_end(path):
    with h5py.File(path, "w") as file:
        inner = file.create_group("a/b")
        inner["root"], inner["self"], inner["up"] = file, inner, file["a"]
        inner["x"] = 1.0
        inner["y"] = inner["x"]
    with opened(path) as root:
        assert [item.name for item in root.walk()] == ["/", "/a", "/a/b", "/a/b/x"]


def test_groups_that_are_too_deep_are_refused(path):
    with h5py.File(path, "w") as file:
        group = file
        for _ in range(150):
            group = group.create_group("g")
    with (
        opened(path) as root,
        pytest.raises(tw.errors.SavingError, match="deeper.*100"),
    ):
        list(root.walk())


def test_numbered_arrays_have_no_gap(path):
    make(path, **{"0": 1.0, "2": 2.0})
    with (
        opened(path) as root,
        pytest.raises(tw.errors.SavingError, match="without a gap"),
    ):
        root.numbered()


def test_what_was_looked_up_is_at_hand_up_to_a_number(path, monkeypatch):
    make(path, **{"g/a": VALUES, "g/b": VALUES})
    with opened(path) as root:
        assert root.array("g/a") is root.group("g").array("a")
        assert next(root.arrays()) is root.array("g/a")
    monkeypatch.setattr(reader, "MAX_KEPT", 1)
    with opened(path) as root:
        assert root.group("g") is root.group("g")
        assert root.array("g/a") is not root.array("g/a")
