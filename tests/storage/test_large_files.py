"""Large files: how much memory they take, and the bar that shows their progress."""

import subprocess
import sys

import numpy as np
import pytest

from tapewright.storage import file_objects
from tapewright.storage.reader import opened
from tapewright.storage.writer import writing

HEAD = """
import sys
import numpy as np
from tapewright.storage.reader import opened
from tapewright.storage.writer import writing
from tapewright.storage.zips import opened_zip, writing_zip
import h5py, zipfile, concurrent.futures

def memory(name):
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith(name))
    return int(line.split()[1]) / 1024

def measured(function):
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak is from now on
    before = memory("VmRSS")
    result = function()
    print(memory("VmHWM") - before)
    return result

path, MB = sys.argv[1], 1 << 20
"""

SAVE = """
arrays = [np.full((8, MB), i, "f4") for i in range(2)] + [np.ones((MB, 8), "f4").T]
def save():
    with writing(path) as root:
        for i, array in enumerate(arrays):
            root.array(str(i), array)
measured(save)
"""

LOAD = """
def load():
    with opened(path) as root:
        return [array.read() for array in root.numbered()]
arrays = measured(load)
assert sum(a.nbytes for a in arrays) == 96 * MB, [a.nbytes for a in arrays]
"""

ZIP = """
arrays = [np.full((8, MB), i, "f4") for i in range(2)] + [np.ones((MB, 8), "f4").T]
def save():
    with writing_zip(path) as target, target.hdf5("m.h5") as root:
        for i, array in enumerate(arrays):
            root.array(str(i), array)
measured(save)
"""

UNZIP = LOAD.replace("opened(path) as", 'opened_zip(path) as z, z.hdf5("m.h5") as')


def peak(script, path):
    """How many MB more than before a child process took."""
    done = subprocess.run(
        [sys.executable, "-c", HEAD + script, path], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
@pytest.mark.parametrize(
    "save, load", [(SAVE, LOAD), (ZIP, UNZIP)], ids=["h5", "keras"]
)
def test_saving_takes_20_mb_at_most_and_loading_20_more_than_the_file(
    tmp_path, save, load
):
    assert peak(save, tmp_path / "file") < 20
    size = (tmp_path / "file").stat().st_size / (1 << 20)
    assert 95 < size < 97
    assert peak(load, tmp_path / "file") < size + 20


class Terminal:
    """Stands in for standard error."""

    def __init__(self, is_terminal):
        self.shown, self.is_terminal = "", is_terminal

    def isatty(self):
        return self.is_terminal

    def write(self, text):
        self.shown += text

    def flush(self):
        pass


def shown(path, monkeypatch, is_terminal=True):
    """What standard error shows of saving 3 MB, and of loading them."""
    values, terminals = np.ones(750_000, "f4"), []
    for run in (0, 1):
        terminals.append(Terminal(is_terminal))
        monkeypatch.setattr(sys, "stderr", terminals[-1])
        if run == 0:
            with writing(path, total=3_000_000) as root:
                root.array("a", values)
        else:
            with opened(path) as root:
                root.array("a").read()
        monkeypatch.undo()
    return [each.shown for each in terminals]


def test_large_files_show_a_bar_in_bytes(tmp_path, monkeypatch):
    monkeypatch.setattr(file_objects, "THRESHOLD", 1_000_000)
    with monkeypatch.context() as context:
        saving, loading = shown(tmp_path / "m.h5", context)
    assert "saving m.h5" in saving and "3.00M/3.00M" in saving
    assert "loading m.h5" in loading and "B/s" in loading


def test_smaller_files_show_none(tmp_path, monkeypatch):
    assert shown(tmp_path / "m.h5", monkeypatch) == ["", ""]


def test_logs_show_none(tmp_path, monkeypatch):
    monkeypatch.setattr(file_objects, "THRESHOLD", 1_000_000)
    with monkeypatch.context() as context:
        assert shown(tmp_path / "m.h5", context, is_terminal=False) == ["", ""]


def test_the_threshold_is_200_mb():
    assert file_objects.THRESHOLD == 200_000_000
