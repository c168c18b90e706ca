"""The thread of `prefetch`: what it makes, raises, and when it ends."""

import gc
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from tapewright.data import Dataset
from tapewright.data.nodes import caching


@pytest.fixture
def threads():
    """Return a function that lists the running threads that this test's `prefetch` started."""
    before = threading.enumerate()
    return lambda: [
        thread
        for thread in threading.enumerate()
        if thread.name == "tapewright-prefetch" and thread not in before
    ]


def soon(condition):
    for _ in range(400):
        if condition():
            return True
        time.sleep(0.005)
    return False


def test_elements_come_in_order(threads):
    found = [int(x) for x in Dataset.range(50).prefetch(3)]
    assert found == list(range(50)) and soon(lambda: not threads())


def test_elements_are_made_in_another_thread_ahead():
    made = []

    def note(x):
        made.append(threading.current_thread().name)
        return x

    iterator = iter(Dataset.range(10).map(note).prefetch(3))
    next(iterator)
    assert soon(lambda: len(made) >= 4)
    assert set(made) == {"tapewright-prefetch"} and len(made) <= 5


def test_an_error_comes_out_at_its_element(threads):
    iterator = iter(Dataset.range(5).map(lambda x: 6 // (2 - int(x))).prefetch(2))
    assert [int(next(iterator)) for _ in range(2)] == [3, 6]
    with pytest.raises(ZeroDivisionError):
        next(iterator)
    assert soon(lambda: not threads())


@pytest.mark.parametrize("taken", [0, 1, 3])
def test_the_thread_ends_when_the_iterator_is_dropped(taken, threads):
    iterator = iter(Dataset.range(3).repeat().prefetch(2))
    for _ in range(taken):
        next(iterator)
    del iterator
    assert soon(lambda: not threads())


def test_it_ends_too_when_it_is_dropped_below_other_transformations(threads):
    gc.disable()
    try:
        for _ in Dataset.range(3).repeat().prefetch(1).map(lambda x: x).batch(2):
            break
        assert soon(lambda: not threads())
    finally:
        gc.enable()


def test_the_thread_ends_even_if_it_could_not_be_told_to(monkeypatch, threads):
    class Event(threading.Event):
        def set(self):
            raise KeyboardInterrupt  # Ctrl-C, just here

    fake = SimpleNamespace(Event=Event, Thread=threading.Thread)
    monkeypatch.setattr(caching, "threading", fake)
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)  # pytest's keeps frames
    iterator = iter(Dataset.range(3).repeat().prefetch(1))
    next(iterator)
    del iterator
    assert soon(lambda: not threads())


def test_no_thread_runs_before_the_first_element_is_asked_for(threads):
    iterator = iter(Dataset.range(3).prefetch(1))
    assert not threads()
    assert len(list(iterator)) == 3


def test_threads_end_before_the_libraries_that_they_use():
    """A library that clears up under a thread that calls it, as HDF5, may crash."""
    code = """
import atexit, threading, time
from tapewright.data import Dataset

def numbers():
    while True:
        time.sleep(0.2)
        yield 1

def clear_up():
    print([t.name for t in threading.enumerate() if t.name == "tapewright-prefetch"])

atexit.register(clear_up)  # as a library that is imported after tapewright
ds = Dataset.from_generator(numbers, output_types="int32", output_shapes=[])
iterator = iter(ds.prefetch(2))
next(iterator)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")
