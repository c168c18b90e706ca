"""HDF5 files as they are written, and after failures."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time

import h5py
import numpy as np
import pytest

import tapewright as tw
from tapewright.storage.checksum import check_seal
from tapewright.storage.reader import opened
from tapewright.storage.writer import writing

from .written_arrays import ARRAYS, BIG, linux, whole

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("writer") / "m.h5"
    with writing(path) as root:
        for name, array in ARRAYS.items():
            root.group("a").array(name, array, kind="test")
    return path


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_is_read_as_it_was_written(path, name):
    with opened(path) as root:
        assert root.sealed
        read = root.array(f"a/{name}").read()
    expected = np.asarray(ARRAYS[name])
    np.testing.assert_array_equal(read, expected)
    assert read.dtype == expected.dtype.newbyteorder("=")
    assert read.flags.c_contiguous


@pytest.mark.parametrize("name", ARRAYS)
def test_h5py_reads_the_same(path, name):
    with h5py.File(path) as file:
        dataset = file["a"][name]
        np.testing.assert_array_equal(dataset[()], ARRAYS[name])
        assert dataset.dtype == np.asarray(ARRAYS[name]).dtype
        assert dataset.attrs["kind"] == "test"


def test_attributes_come_back(tmp_path):
    names = [f"layer_{i}_{'x' * 100}" for i in range(1500)]
    with writing(tmp_path / "m.h5") as root:
        root.text("name", "dense ü")
        root.json("config", {"units": [1, 2.5, None]})
        root.integer("step", 2**40)
        root.texts("names", names)
        root.texts("few", ["a", "ü", ""])
        root.texts("none", [])
    with opened(tmp_path / "m.h5") as root:
        assert root.text("name") == "dense ü"
        assert root.json("config") == {"units": [1, 2.5, None]}
        assert root.integer("step") == 2**40
        assert root.texts("names") == names
        assert not root.has("names") and root.has("names0")
        assert root.texts("few") == ["a", "ü", ""]
        assert root.texts("none") == []


@pytest.mark.parametrize("texts", [["a", "x" * 70_000], ["a\0"]])
def test_texts_that_a_list_cannot_hold_are_refused(tmp_path, texts):
    with pytest.raises(ValueError, match="texts .*'names'"):
        with writing(tmp_path / "m.h5") as root:
            root.texts("names", texts)
    assert os.listdir(tmp_path) == []


def test_strings_are_refused_that_could_not_be_read(tmp_path):
    with pytest.raises(TypeError, match="'v' is an array of strings"):
        with writing(tmp_path / "m.h5") as root:
            root.array("v", np.array([b"a"], object))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["../x", "a//b", "a/./b", "", ".."])
def test_names_that_would_not_be_read_are_not_written(tmp_path, name):
    with pytest.raises(ValueError, match="parts of a name"):
        with writing(tmp_path / "m.h5") as root:
            root.array(name, BIG)


def test_a_name_with_a_nul_is_not_cut_short(tmp_path):
    with pytest.raises(ValueError, match="NUL.*got"):
        with writing(tmp_path / "m.h5") as root:
            root.group("a\0b")


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_a_text_that_hdf5_cannot_hold_is_told_with_its_place(tmp_path, text):
    with pytest.raises(ValueError, match="NUL.*'name'.*'/layers'"):
        with writing(tmp_path / "m.h5") as root:
            root.group("layers").text("name", text)


@pytest.mark.parametrize("name", ["m.h5", "m.keras", "m.weights.h5", "checkpoint"])
def test_nothing_is_saved_while_a_function_is_traced(tmp_path, name):
    model = tw.Sequential([tw.keras.layers.InputLayer((2,)), tw.layers.Dense(2)])
    checkpoint = tw.train.Checkpoint(model=model)
    save = model.save_weights if "weights" in name else model.save
    save = checkpoint.write if name == "checkpoint" else save

    @tw.function
    def step(x):
        save(str(tmp_path / name))
        return x

    with pytest.raises(TypeError, match="Save outside of traced functions"):
        step(tw.constant(1.0))
    assert os.listdir(tmp_path) == []


def test_a_name_that_is_taken_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="already exists"):
        with writing(tmp_path / "m.h5") as root:
            root.array("a", BIG)
            root.array("a", BIG)


@pytest.mark.parametrize("error", [ValueError("x"), RuntimeError("x"), KeyError("x")])
def test_errors_of_the_caller_are_left_alone(tmp_path, error):
    (tmp_path / "m.h5").write_bytes(b"old")
    with pytest.raises(type(error)) as caught:
        with writing(tmp_path / "m.h5") as root:
            root.array("a", BIG)
            raise error
    assert caught.value is error
    assert (tmp_path / "m.h5").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["m.h5"]


def test_an_interrupt_leaves_the_old_file(tmp_path, monkeypatch):
    (tmp_path / "m.h5").write_bytes(b"old")

    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "pwrite", interrupt)
    with pytest.raises(KeyboardInterrupt), writing(tmp_path / "m.h5") as root:
        root.array("a", BIG)
    assert (tmp_path / "m.h5").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["m.h5"]


def test_an_interrupt_while_hdf5_writes_is_not_lost(tmp_path, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), writing(tmp_path / "m.h5") as root:
        monkeypatch.setattr(os, "pwrite", interrupt)
        root.array("small", [1.0])
    assert os.listdir(tmp_path) == []


def test_a_disk_that_is_full_while_arrays_are_written_is_told(tmp_path, monkeypatch):
    (tmp_path / "m.h5").write_bytes(b"old")

    def refuse(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", refuse)
    with pytest.raises(tw.errors.SavingError, match="is kept: No space left") as caught:
        with writing(tmp_path / "m.h5") as root:
            root.array("layers/a", BIG)
    assert caught.value.dataset == "/layers/a"
    assert (tmp_path / "m.h5").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["m.h5"]


LIMITED = """
import os, resource, signal, sys
import numpy as np
from tapewright.storage.writer import writing
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
limit = int(sys.argv[2])
sys.dont_write_bytecode = True  # which would be cut short
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    with writing(sys.argv[1]) as root:
        for i in range(40):
            group = root.group(f"layers/{i}")
            group.array("0", np.full(int(sys.argv[3]), 1.0))
            group.text("name", "x" * 1000)
except Exception as error:
    print(type(error).__name__, error)
    raise SystemExit(3)
"""


@linux
@pytest.mark.parametrize("limit", [1, 3000, 100_000])
@pytest.mark.parametrize("size", [10, 30_000], ids=["small arrays", "large arrays"])
def test_a_disk_that_is_full_leaves_the_old_file_and_says_so(tmp_path, limit, size):
    path = tmp_path / "m.h5"
    path.write_bytes(b"old")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LIMITED, path, str(limit), str(size)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    if done.returncode == 0:  # it fits
        assert check_seal(path) and (size, limit) == (10, 100_000)
        return
    assert done.returncode == 3, done.stderr
    assert f"SavingError {path}" in done.stdout
    assert "the previous file is kept" in done.stdout
    assert done.stderr == ""  # nothing is left to destructors
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["m.h5"]


ENDLESS = """
import sys
import numpy as np
from tapewright.storage.writer import writing
number = int(sys.argv[2])
values = np.full(50_000, float(number))
print("ready", flush=True)
for _ in range(int(sys.argv[3])):
    with writing(sys.argv[1]) as root:
        for i in range(10):
            root.array(str(i), values)
"""


def start(path, number, rounds):
    child = subprocess.Popen(
        [sys.executable, "-c", ENDLESS, str(path), str(number), str(rounds)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout.readline() == "ready\n"
    return child


@posix
def test_a_writer_that_is_killed_leaves_a_whole_file(tmp_path):
    path = tmp_path / "m.h5"
    with writing(path) as root:
        for i in range(10):
            root.array(str(i), np.full(50_000, 7.0))
    random = np.random.default_rng(3)
    for _ in range(3):
        with start(path, 7, 1000) as child:
            time.sleep(random.uniform(0, 0.1))
            child.send_signal(signal.SIGKILL)
            child.wait()
        assert whole(path) == {7.0}


def test_processes_that_write_one_path_do_not_mix(tmp_path):
    path = tmp_path / "m.h5"
    children = [start(path, number, 8) for number in (1, 2)]
    found, running = [], True
    while running:
        running = any(child.poll() is None for child in children)
        if path.exists():
            found.append(whole(path))
    for child in children:
        child.communicate()
        assert child.returncode == 0
    assert found and all(len(each) == 1 for each in found)
    assert os.listdir(tmp_path) == ["m.h5"]


def test_threads_that_write_one_path_do_not_mix(tmp_path):
    path = tmp_path / "m.h5"

    def write(number):
        with writing(path) as root:
            for i in range(10):
                root.array(str(i), np.full(50_000, float(number)))

    threads = [threading.Thread(target=write, args=(i,)) for i in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(whole(path)) == 1
    assert os.listdir(tmp_path) == ["m.h5"]


def test_a_file_that_hdf5_cannot_close_is_not_put_in_place(tmp_path, monkeypatch):
    (tmp_path / "m.h5").write_bytes(b"old")
    close = h5py.File.close

    def refuse(file):
        close(file)
        raise RuntimeError("cannot flush")

    with monkeypatch.context() as broken:
        broken.setattr(h5py.File, "close", refuse)
        with pytest.raises(tw.errors.SavingError, match="cannot flush"):
            with writing(tmp_path / "m.h5") as root:
                root.array("a", BIG)
    assert (tmp_path / "m.h5").read_bytes() == b"old"
