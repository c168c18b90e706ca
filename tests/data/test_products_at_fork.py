"""Forks beside calls that multiply matrices."""

import sys
import threading
import time

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.core.hardware import openblas
from tapewright.data import Dataset, products_at_fork
from tapewright.data.products_at_fork import no_products, noted

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="no forks")


def set_threads(count):
    openblas.symbol("openblas_set_num_threads")(count)


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    """OpenBLAS has two threads."""
    try:
        before = openblas.threads()
        set_threads(2)
    except openblas.Unavailable as reason:
        pytest.skip(str(reason))
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    yield
    set_threads(before)


class Held:
    """Call in another thread, which runs until it is released."""

    def __init__(self, call=noted):
        self.begun, self.released, self.ended = [threading.Event() for _ in range(3)]
        self.thread = threading.Thread(target=call, args=(self.run,))
        self.thread.start()
        assert self.begun.wait(60)

    def run(self, *_):
        self.begun.set()
        self.released.wait(60)
        time.sleep(0.05)
        self.ended.set()

    def release(self):
        self.released.set()
        self.thread.join()


def mapped(function):
    list(Dataset.range(1).map(lambda x: function() or x))


def by_next(function):
    def generator():
        yield function() or 1

    list(Dataset.from_generator(generator))


def by_index(function):
    class Batches(keras.utils.PyDataset):
        def __len__(self):
            return 1

        def __getitem__(self, index):
            return np.full((1, 1), function() or 1)

    keras.Sequential([keras.layers.Flatten()]).predict(Batches(workers=2), verbose=0)


@pytest.mark.parametrize("call", [noted, mapped, by_next, by_index])
def test_forks_wait_for_calls_in_other_threads(call):
    held = Held(call)
    threading.Timer(0.1, held.released.set).start()
    with no_products("here"):
        assert held.ended.is_set()
        assert openblas.threads() == 1
    assert openblas.threads() == 2
    held.release()


def test_forks_do_not_wait_for_calls_that_begin_meanwhile():
    held, later = Held(), []

    def release():
        later.append(Held())
        held.released.set()

    threading.Timer(0.1, release).start()
    with no_products("here"):
        assert held.ended.is_set() and not later[0].ended.is_set()
    held.release()
    later[0].release()


def test_a_call_may_start_processes_itself():
    def start():
        with no_products("here"):
            return True

    assert noted(start)


def test_calls_that_do_not_end_are_an_error(monkeypatch):
    monkeypatch.setattr(products_at_fork, "PATIENCE", 0.05)
    held = Held()
    words = "here: .* 1 did not end in 0.05 seconds.*Set OPENBLAS_NUM_THREADS=1"
    with pytest.raises(RuntimeError, match=words), no_products("here"):
        pass
    assert openblas.threads() == 2
    set_threads(1)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    with no_products("here"):
        assert not held.ended.is_set()
    held.release()


def test_native_code_that_sets_the_threads_back_is_awaited():
    held = Held()

    def release():
        set_threads(2)
        held.released.set()

    threading.Timer(0.1, release).start()
    with no_products("here"):
        assert openblas.threads() == 1
    held.release()


def inner(x):
    return Dataset.range(2).map(lambda y: x + y, 2, processes=True)


@pytest.mark.parametrize(
    "chain",
    [
        lambda ds: ds.flat_map(inner).prefetch(1),
        lambda ds: ds.interleave(inner, cycle_length=2, num_parallel_calls=2),
    ],
    ids=["prefetch", "interleave"],
)
def test_processes_do_not_start_in_threads_of_a_data_set(chain, monkeypatch):
    ds = chain(Dataset.range(2))
    with pytest.raises(RuntimeError, match="after flat_map or.*OPENBLAS_NUM_THREADS=1"):
        list(ds)
    set_threads(1)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    assert sorted(int(x) for x in ds) == [0, 1, 1, 2]


def test_processes_of_inner_data_sets_start_in_the_thread_that_takes_elements():
    ds = Dataset.range(2).flat_map(lambda x: inner(x).prefetch(1))
    assert [int(x) for x in ds] == [0, 1, 1, 2]
    ds = (
        Dataset.range(2)
        .map(abs, 2, processes=True)
        .prefetch(1)
        .map(lambda x: np.asarray(x.numpy()))
    )
    assert ds.element_spec.dtype == tw.int64


def test_forks_multiply_in_one_thread():
    ds = Dataset.range(2).map(lambda x: openblas.threads(), 2, processes=True)
    assert [int(x) for x in ds] == [1, 1]
    assert openblas.threads() == 2


def test_chains_with_products_in_threads_do_not_hang():
    a = np.random.default_rng(0).normal(size=(300, 300)).astype("float32")

    def product(x):
        return (a @ a)[0, 0] * 0 + float(x)

    training = Dataset.range(500).map(product, 2).prefetch(400)
    validation = Dataset.range(4).map(lambda x: x, 2, processes=True)
    taken = iter(training)
    for _ in range(20):
        next(taken)
        assert len(list(validation)) == 4
    for _ in range(10):
        dropped = iter(Dataset.range(99).map(abs, 2, processes=True).map(product, 2))
        next(dropped)
        del dropped
