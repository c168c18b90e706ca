"""File objects: pipes, devices, a file within another."""

import os

import numpy as np
import pytest

import tapewright as tw
from tapewright.storage import reader
from tapewright.storage.file_objects import Window
from tapewright.storage.reader import opened_inside
from tapewright.storage.writer import writing

from .hdf5_files import VALUES, posix, refused


@pytest.fixture
def path(tmp_path):
    return tmp_path / "m.h5"


@posix
def test_a_pipe_does_not_hang(path):
    os.mkfifo(path)
    refused(path, "is a pipe or device")


@posix
def test_a_pipe_that_takes_the_place_of_a_file_does_not_hang(path, monkeypatch):
    os.mkfifo(path)
    monkeypatch.setattr(reader, "regular_file", str)
    refused(path, "is a pipe or device")


@posix
def test_a_device_is_no_file():
    refused("/dev/zero", "is a pipe or device")


# HDF5 inside of another file


def test_hdf5_inside_of_another_file_is_read(path, tmp_path):
    with writing(path) as root:
        root.array("a", VALUES)
        root.array("b", VALUES > 0)
    outer, content = tmp_path / "outer", path.read_bytes()
    outer.write_bytes(b"x" * 77 + content + b"y" * 1000)
    with Window(outer, 77, len(content)) as window:
        with opened_inside(window, "net.keras", "m.h5") as root:
            assert root.sealed
            np.testing.assert_array_equal(root.array("a").read(), VALUES)
            np.testing.assert_array_equal(root.array("b").read(), VALUES > 0)
            with pytest.raises(tw.errors.SavingError) as caught:
                root.array("c")
    assert str(caught.value) == "net.keras [m.h5:/]: has no array 'c'"
    with Window(outer, 78, len(content)) as window:
        with pytest.raises(tw.errors.SavingError, match=r"^net.keras \[m.h5\]: "):
            with opened_inside(window, "net.keras", "m.h5"):
                pass
    with Window(outer, 77, len(content) - 1) as window:
        with pytest.raises(
            tw.errors.SavingError, match=r"^net.keras \[m.h5\]: .*302183.*302184"
        ):
            with opened_inside(window, "net.keras", "m.h5"):
                pass
