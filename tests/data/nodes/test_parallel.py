"""Functions of elements in several threads: `map` and `interleave`."""

import gc
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.settings import determinism
from tapewright.data import AUTOTUNE, Dataset
from tapewright.data.nodes import parallel
from tapewright.data.nodes.workers import NAME

from ..elements_of import values


def workers():
    return [t for t in threading.enumerate() if t.name.startswith(NAME)]


def soon(condition):
    for _ in range(400):
        if condition():
            return True
        time.sleep(0.005)
    return False


def test_elements_and_random_numbers_are_those_of_one_thread_in_order():
    def drawn(calls):
        tw.random.set_seed(1)
        ds = Dataset.range(30).map(
            lambda x: (
                x,
                tw.random.uniform([2]),
                time.sleep(0.001 * (int(x) % 3)) or 0,
            ),
            num_parallel_calls=calls,
        )
        return [values(ds), values(ds.repeat(2))]  # runs, and rounds

    assert drawn(3) == drawn(None)


def test_functions_run_at_once():
    both = threading.Barrier(2, timeout=10)  # breaks if one is there alone

    def meet(x):
        if int(x) > 0:  # the first call is made alone
            both.wait()
        return x

    assert values(Dataset.range(5).map(meet, num_parallel_calls=2)) == [0, 1, 2, 3, 4]


def test_no_more_than_the_room_is_made_ahead():
    assert soon(lambda: not workers())  # of other tests
    made = []
    iterator = iter(Dataset.range(99).map(lambda x: made.append(int(x)) or x, 2))
    assert not workers()  # before the first element is asked for
    assert [int(next(iterator)) for _ in range(2)] == [0, 1]
    assert soon(lambda: len(made) >= 5)
    time.sleep(0.02)
    assert len(made) <= 6


def test_without_an_order_slow_elements_let_others_pass():
    released = threading.Event()

    def wait(x):
        if int(x) == 1:
            released.wait(10)
        return x

    options = tw.data.Options()
    options.deterministic = False
    by_argument = Dataset.range(6).map(wait, 2, deterministic=False)
    by_options = Dataset.range(6).map(wait, 2).with_options(options)
    in_order = Dataset.range(6).map(wait, 2, deterministic=True).with_options(options)
    for ds in (by_argument, by_options):
        released.clear()
        iterator = iter(ds)
        first = [int(next(iterator)) for _ in range(3)]
        released.set()
        assert 1 not in first
        assert sorted(first + [int(x) for x in iterator]) == list(range(6))
    assert values(in_order) == list(range(6))


def test_errors_come_at_their_elements():
    def function(x):
        time.sleep(0.002 * (3 - int(x) % 4))
        return 6 // (2 - int(x))

    iterator = iter(Dataset.range(5).map(function, num_parallel_calls=3))
    assert [int(next(iterator)) for _ in range(2)] == [3, 6]
    with pytest.raises(ZeroDivisionError) as caught:
        next(iterator)
    assert caught.value.__notes__ == ["In Dataset.map, at element 2"]

    failing = Dataset.range(4).map(lambda x: 6 // (2 - int(x)))  # the input
    iterator = iter(failing.map(lambda x: x, num_parallel_calls=3))
    assert [int(next(iterator)) for _ in range(2)] == [3, 6]
    with pytest.raises(ZeroDivisionError):
        next(iterator)
    assert values(failing.map(lambda x: x, 3).ignore_errors()) == [3, 6, -6]
    assert soon(lambda: not workers())


def test_op_determinism_keeps_the_order(monkeypatch):
    def wait(x):
        if int(x) == 1:
            time.sleep(0.05)
        return x

    monkeypatch.setitem(determinism._enforced, "on", False)
    options = tw.data.Options()
    options.deterministic = False
    by_argument = Dataset.range(6).map(wait, 2, deterministic=False)
    by_options = Dataset.range(6).map(wait, 2).with_options(options)
    tw.config.experimental.enable_op_determinism()
    assert values(by_argument) == values(by_options) == list(range(6))


@pytest.mark.parametrize("deterministic", [None, False])
def test_threads_end_when_the_iterator_is_dropped(deterministic):
    gc.disable()
    try:
        for _ in Dataset.range(9).repeat().map(lambda x: x, 2, deterministic).batch(2):
            break
        turns = Dataset.range(9).interleave(
            lambda n: Dataset.range(n).repeat(), 2, num_parallel_calls=2
        )
        for _ in turns.prefetch(1):
            break
        assert soon(lambda: not workers())
    finally:
        gc.enable()


def test_functions_that_assign_to_variables_stay_in_one_thread():
    counter, threads = tw.Variable(0), set()

    def count(x):
        threads.add(threading.get_ident())
        return counter.assign_add(1)

    counts = values(Dataset.range(12).map(count, num_parallel_calls=3))
    assert counts == [*range(1, 13)] and threads == {threading.get_ident()}

    def rotated(calls):
        tw.random.set_seed(1)
        with tw.device("CPU"):
            layer = tw.keras.layers.RandomFlip("horizontal", seed=3)
            x = np.arange(48.0, dtype="float32").reshape(8, 2, 3, 1)
            ds = Dataset.from_tensor_slices(x)
            return values(ds.map(lambda x: layer(x, training=True), calls))

    assert rotated(3) == rotated(None)


def test_a_process_ends_with_iterators_under_way():
    code = """
import time
from tapewright.data import Dataset

ds = Dataset.range(9).repeat().map(lambda x: time.sleep(0.01) or x, 2)
iterators = [iter(ds), iter(ds.prefetch(2)), iter(ds.repeat().batch(2))]
print([next(each).numpy().tolist() for each in iterators])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[0, 0, [0, 1]]\n", "")


def test_threads_see_the_settings_of_the_caller_but_no_tape():
    with tw.device("CPU"):  # where functions of elements run
        x = tw.Variable(2.0)

    def function(n):
        assert np.geterr()["divide"] == "raise"
        return x * tw.cast(n, "float32")

    with np.errstate(divide="raise"), tw.GradientTape() as tape:
        total = tw.add_n(list(Dataset.range(3).map(function, num_parallel_calls=2)))
    assert float(total) == 6 and tape.gradient(total, x) is None


def test_a_traced_function_runs_in_several_threads():
    @tw.function
    def function(x):
        return tw.reduce_sum(tw.tanh(x) * x, axis=-1)

    x = np.random.default_rng(0).normal(size=(12, 40, 50)).astype("float32")
    slices = Dataset.from_tensor_slices(x)
    found = np.stack(list(slices.map(function, 3).as_numpy_iterator()))
    np.testing.assert_allclose(found, (np.tanh(x) * x).sum(-1), rtol=1e-4, atol=1e-5)


def test_autotune_takes_threads_for_long_calls_alone(monkeypatch):
    def names(worth):
        monkeypatch.setattr(parallel, "WORTH", worth)
        monkeypatch.setattr(parallel, "threads", lambda: 2)
        found = []

        def function(x):
            found.append(threading.current_thread().name)
            return x

        ds = Dataset.range(12).map(function, num_parallel_calls=AUTOTUNE)
        assert values(ds) == values(ds) == list(range(12))
        return found

    here = threading.current_thread().name
    assert set(names(worth=1e9)) == {here}
    first, rest = np.split(np.array(names(worth=0)), [1 + parallel.TRIED])
    assert set(first) == {here} and all(name.startswith(NAME) for name in rest)


def test_parallel_maps_of_parts_and_of_caches():
    from tapewright.data.parts import rows_of_batches

    calls = []
    ds = Dataset.range(8).map(lambda x: calls.append(int(x)) or x * 2, 2).batch(4)
    assert values(rows_of_batches(ds, 2, 1)) == [[4, 6], [12, 14]]
    assert sorted(calls) == [0, 2, 3, 6, 7]  # the first is watched; then its rows alone
    cached = Dataset.range(5).map(lambda x: x * 2, 2).cache().shuffle(5, seed=0)
    assert sorted(values(cached)) == sorted(values(cached)) == [0, 2, 4, 6, 8]


def test_interleave_with_threads_keeps_the_order_and_its_errors():
    def dataset(calls, fail=99):
        return Dataset.range(1, 8).interleave(
            lambda n: Dataset.range(n * 40).map(
                lambda x: n * 1000 + x if int(n * 1000 + x) != fail else 1 // 0
            ),
            cycle_length=3,
            block_length=2,
            num_parallel_calls=calls,
        )

    expected = values(dataset(None))
    assert values(dataset(2)) == values(dataset(AUTOTUNE)) == expected
    iterator = iter(dataset(3, fail=2003))
    before = expected[: expected.index(2003)]
    assert [int(next(iterator)) for _ in before] == before
    with pytest.raises(ZeroDivisionError):
        next(iterator)
    with pytest.raises(ValueError, match="num_parallel_calls must be at most"):
        Dataset.range(3).interleave(Dataset.range, 2, num_parallel_calls=3)
