"""Assignments that overwrite the arrays of variables, as far as nobody else holds them."""

import threading

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.targets.native import in_place
from tapewright.compiler.targets.native.in_place import WORTH
from tapewright.core.tensor import new_tensor

SIZE = WORTH  # entries of 4 bytes


pytest.importorskip("llvmlite")


@pytest.fixture(autouse=True)
def native():
    with tw.config.use_target("native"):
        yield


def values(seed=0):
    return np.random.default_rng(seed).uniform(1, 2, SIZE).astype(np.float32)


def address(variable):
    return variable._array.__array_interface__["data"][0]


def assigning(v, value):
    """Return a traced function that assigns ``value(*args)``, and has no result."""

    @tw.function
    def step(*args):
        v.assign(value(*args))

    return step


def overwrites(function, *args):
    """Return whether an executable overwrites a variable."""
    return bool(function.get_concrete_function(*args).executable.in_place)


def test_a_new_value_takes_the_memory_of_the_old_one():
    v = tw.Variable(values())
    step = assigning(v, lambda x: v * 0.5 + x)
    before, wanted = address(v), values()
    for _ in range(3):
        step(tw.constant(values(1)))
        wanted = wanted * np.float32(0.5) + values(1)
    assert address(v) == before
    np.testing.assert_allclose(v.numpy(), wanted, 1e-6)


def test_small_values_are_new_arrays():
    v = tw.Variable(np.ones(16, np.float32))
    assert not overwrites(assigning(v, lambda: v * 0.5))


def test_nothing_is_overwritten_where_references_are_not_counted(monkeypatch):
    monkeypatch.setattr(in_place, "_ALONE", None)
    v = tw.Variable(values())
    assert not overwrites(assigning(v, lambda: v * 0.5))


@pytest.mark.parametrize("hold", [tw.Variable.read, lambda v: v._array[1:]])
def test_a_value_that_somebody_holds_stays(hold):
    v = tw.Variable(values())
    step = assigning(v, lambda: v * 0.5)
    assert overwrites(step)
    step()
    held, copy = hold(v), np.array(hold(v))
    step()
    np.testing.assert_array_equal(np.array(held), copy)
    np.testing.assert_array_equal(v.numpy(), values() * np.float32(0.25))
    del held
    before = address(v)
    step()
    assert address(v) == before


def test_a_view_of_the_memory_of_several_variables_stays():
    v, w = tw.Variable(values()), tw.Variable(values())
    tw.optimizers.SGD(0.5).apply([tw.ones(SIZE)] * 2, [v, w])
    v._bind(np.concatenate([v._array, w._array])[:SIZE])
    held = v._array[1:]  # references what `v` is a view of, not `v`
    copy = held.copy()
    assigning(v, lambda: v * 0.5)()
    np.testing.assert_array_equal(held, copy)


def both(make):
    """Compare the variables after steps on machine code and on NumPy."""
    found = []
    for target in ("native", "numpy"):
        with tw.config.use_target(target):
            variables, step = make()
            outputs = [step() for _ in range(3)]
        found.append([x.numpy() for x in (*variables, *outputs) if x is not None])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, 1e-6)


def test_two_variables_that_read_each_other():
    def make():
        v, w = tw.Variable(values(0)), tw.Variable(values(1))

        @tw.function
        def step():
            a, b = v * 0.5 + w, w * 0.25 - v
            v.assign(a)
            w.assign(b)

        return [v, w], step

    both(make)


def test_a_chain_of_variables():
    def make():
        u, v, w = (tw.Variable(values(i)) for i in range(3))

        @tw.function
        def step():
            u.assign(u * 0.5 + 1.0)
            v.assign(v * 0.5 + u)
            w.assign(w - v)

        return [u, v, w], step

    both(make)


def test_the_old_value_as_a_result():
    def make():
        v = tw.Variable(values())

        @tw.function
        def step():
            old = v.read()
            v.assign(v * 0.5)
            return old

        return [v], step

    both(make)


def test_the_old_value_in_another_variable():
    def make():
        side = int(SIZE**0.5)
        v = tw.Variable(values()[: side * side].reshape(side, side))
        w = tw.Variable(tw.zeros((side, side)))

        @tw.function
        def step():
            w.assign(tw.transpose(v))
            v.assign(v * 0.5 + 1.0)

        return [v, w], step

    both(make)


def test_two_variables_of_one_array():
    def make():
        v = tw.Variable(values())
        w = tw.Variable(tw.zeros(SIZE))
        assigning(w, lambda: v)()

        @tw.function
        def step():
            v.assign(v * 0.5)
            w.assign(w + 1.0)

        return [v, w], step

    both(make)


def test_numbers_for_several_variables_and_a_reduction():
    def make():
        v, w, n = tw.Variable(values(0)), tw.Variable(values(1)), tw.Variable(0.0)

        @tw.function
        def step():
            rate = 1.0 / (n + 1.0) ** 0.5
            v.assign_sub(rate * v)
            w.assign_sub(rate * w * tw.reduce_mean(v))
            n.assign_add(1.0)

        return [v, w, n], step

    both(make)


@pytest.mark.parametrize("layout", ["F", ">f4"])
def test_arrays_of_any_layout(layout):
    side = int(SIZE**0.5)
    x = values()[: side * side].reshape(side, side)
    x = np.asfortranarray(x) if layout == "F" else x.astype(layout)
    v = tw.Variable(tw.zeros((side, side)))
    step = assigning(v, lambda x: v * 0.5 + x)
    step(new_tensor(x))
    v._bind(np.asfortranarray(v._array))
    step(new_tensor(x))
    np.testing.assert_allclose(v.numpy(), np.asarray(x, "f4") * 1.5, 1e-6)


def test_each_nest_is_timed_alone():
    v, w = tw.Variable(values()), tw.Variable(values())

    @tw.function
    def step():
        v.assign(v * 0.5)
        w.assign(tw.sin(w))

    found = step.get_concrete_function().explain(repeats=3)
    executable = step.get_concrete_function().executable
    assert (
        len(executable.in_place) == len(found.rows)
        and not executable.one_by_one().in_place
    )
    np.testing.assert_array_equal(v.numpy(), values())


def test_a_step_that_fails_overwrites_nothing():
    v = tw.Variable(values())

    @tw.function
    def step(x):
        v.assign(v * x)
        tw.debugging.assert_less(x, 1.0)

    step(tw.constant(0.5))
    with pytest.raises(tw.errors.InvalidArgumentError):
        step(tw.constant(2.0))
    np.testing.assert_array_equal(v.numpy(), values() * np.float32(0.5))


def test_readers_in_other_threads_see_whole_values():
    v, seen, stop = tw.Variable(tw.zeros(SIZE)), [], threading.Event()
    step = assigning(v, lambda: v + 1.0)
    step()

    def watch():
        while not stop.is_set():
            array = v.numpy()
            seen.append(array.min() == array.max())

    threads = [threading.Thread(target=watch) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(200):
        step()
    stop.set()
    for thread in threads:
        thread.join()
    assert all(seen) and v.numpy()[0] == 201


def test_nothing_is_overwritten_beside_an_update_that_moves_variables():
    v, w = tw.Variable(values()), tw.Variable(values(1))
    optimizer = tw.optimizers.Adam(0.05, use_ema=True)
    optimizer.build([v, w])

    @tw.function
    def step(x):
        ratio = x / w
        optimizer.apply_gradients([(x, v)])
        w.assign(tw.tanh(ratio))

    x = tw.constant(values(2))
    step(x)
    np.testing.assert_allclose(w.numpy(), np.tanh(values(2) / values(1)), 1e-5)


@pytest.mark.parametrize(
    "moved",
    [lambda x: tw.reverse(x, [0]), tw.transpose],
    ids=["reversed", "transposed"],
)
def test_entries_that_are_read_elsewhere_are_not_overwritten(moved):
    square = values().reshape(256, 256)
    v = tw.Variable(square)
    step = assigning(v, lambda x: moved(v) * 0.5 + x)
    wanted = moved(tw.constant(square)).numpy() * np.float32(0.5) + 1
    step(tw.ones([256, 256]))
    np.testing.assert_allclose(v.numpy(), wanted, 1e-6)


def test_an_old_value_that_is_returned_or_assigned_elsewhere_stays():
    v, w = tw.Variable(values()), tw.Variable(values(1))

    @tw.function
    def step():
        old = v.read()
        w.assign(old)
        v.assign(old * 0.5)
        return old

    found = step()
    for kept in (found, w):
        np.testing.assert_array_equal(kept.numpy(), values())
    np.testing.assert_allclose(v.numpy(), values() * np.float32(0.5), 1e-6)
