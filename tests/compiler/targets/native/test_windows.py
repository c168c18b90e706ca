"""Pooling as machine code: what threads share, what stays a call, and derivatives."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import config
from tapewright.compiler.program.instructions.array_instructions import Routine
from tapewright.compiler.program.instructions.call_instructions import Opaque
from tapewright.compiler.program.limits import DEFAULTS
from tapewright.compiler.targets.native.segments import code_of
from tapewright.ops.convolution.pooling import (
    spread_means_p,
    spread_to_maxima_p,
    window_max_p,
    window_mean_p,
)
from tapewright.ops.convolution.windows import resized, window_positions

from ..pooling_cases import BACKWARD, POOLS, numbers, operands_of
from .kernel_runs import check, run

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.usefixtures("few_passes")


@pytest.fixture(autouse=True)
def native():
    with config.use_target("native"):
        yield


BIG = {"size 2": (41, 2, 2, "VALID", 1), "margins": (37, 3, 2, "SAME", 1),
       "apart": (40, 2, 3, "VALID", 1)}  # fmt: skip


@pytest.mark.parametrize("name", BIG)
@pytest.mark.parametrize("op", POOLS, ids=lambda op: op.primitive.name)
def test_arrays_for_several_threads(op, name):
    rng, window = np.random.default_rng(0), BIG[name]
    orders = (0, 1, 2, 3), (3, 2, 1, 0), (0, 3, 1, 2)
    order = orders[(POOLS.index(op) + [*BIG].index(name)) % 3]
    for axis in (-2, -3):
        shape = resized((9, 20, 21, 34), axis, window[0])
        arrays, attributes = operands_of(op, rng, shape, axis, window, "f4", "f4")
        assert sum([x.size for x in arrays]) > DEFAULTS.shared_work / 2
        check(op, arrays, attributes, order)


@pytest.mark.parametrize("op", BACKWARD, ids=lambda op: op.primitive.name)
def test_one_row_is_shared_by_threads(op):
    rng = np.random.default_rng(0)
    for window in ((4001, 3, 2, "SAME", 1), (4001, 2, 2, "VALID", 1)):
        given = operands_of(op, rng, (4001, 60), -2, window, "f4", "f4")
        check(op, *given, (0, 1))


@pytest.mark.parametrize("window", BIG.values(), ids=list(BIG))
def test_nothing_is_spread_over_what_other_windows_still_need(window):
    def f(x, g):
        x = x * 2.0  # ends with the spreading, and so may its place
        maxima = window_max_p(x, -2, *window[1:])
        return spread_to_maxima_p(g * 3.0, x, maxima, -2, *window[1:]) * 0.5

    rng = np.random.default_rng(0)
    x = rng.integers(-9, 10, (7, window[0], 33)).astype(np.float32)
    g = numbers(rng, resized(x.shape, -2, window_positions(*window)[-1]), "f4")
    np.testing.assert_array_equal(tw.function(f)(x, g), f(x, g))


@pytest.mark.parametrize("window", BIG.values(), ids=list(BIG))
def test_operands_lie_one_behind_the_other_in_an_array(window):
    shape, count = (4, window[0], 5), window_positions(*window)[-1]
    pooled = resized(shape, -2, count)
    sizes = [int(np.prod(s)) for s in (pooled, shape, pooled)]

    def f(z):
        parts, start = [], 0
        for size, s in zip(sizes, (pooled, shape, pooled), strict=True):
            parts.append(tw.reshape(z[start : start + size], s))
            start += size
        return spread_to_maxima_p(*parts, -2, *window[1:])

    z = tw.constant(np.random.default_rng(0).integers(0, 3, sum(sizes)).astype("f4"))
    np.testing.assert_array_equal(tw.function(f)(z), f(z))


@pytest.mark.parametrize(
    ("op", "dtype", "window"),
    [
        (spread_to_maxima_p, "f4", (180, 70, 3, "SAME", 1)),
        (window_mean_p, "f4", (190, 70, 3, "SAME", 1)),
        (spread_means_p, "f4", (190, 3, 70, "VALID", 1)),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_other_pools_are_calls_of_numpy(op, dtype, window):
    rng = np.random.default_rng(0)
    given = (3, window[0], 5), -2, window, dtype, dtype
    arrays, attributes = operands_of(op, rng, *given)
    with np.errstate(all="ignore"):
        wanted = op.primitive.kernel(np, *arrays, **attributes)
        found, instructions = run(op, arrays, attributes, (2, 0, 1))
    for each in found:
        np.testing.assert_array_equal(each, wanted)
    assert {type(each) for each in instructions} & {Opaque, Routine}


@pytest.mark.parametrize(
    ("op", "window"),
    [
        (spread_to_maxima_p, (8, 3, 2, "SAME", 1)),
        (spread_to_maxima_p, (8, 2, 2, "VALID", 1)),
        (window_max_p, (8, 3, 2, "SAME", 1)),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_float16_is_pooled_in_machine_code_by_way_of_float32(op, window):
    rng = np.random.default_rng(0)
    given = (3, window[0], 5), -2, window, "f2", "f2"
    arrays, attributes = operands_of(op, rng, *given)
    wide = [a.astype("f4") for a in arrays]
    with np.errstate(all="ignore"):
        wanted = op.primitive.kernel(np, *wide, **attributes).astype("f2")
        found, instructions = run(op, arrays, attributes, (2, 0, 1))
    for each in found:
        np.testing.assert_array_equal(each, wanted)
    assert not {type(each) for each in instructions} & {Opaque, Routine}


def test_cotangents_with_further_axes_are_a_call_of_numpy():
    rng, window = np.random.default_rng(0), (8, 3, 2, "SAME", 1)
    (g, x, maxima), _ = operands_of(
        spread_to_maxima_p, rng, (3, 8, 5), -2, window, "f4", "f4"
    )
    several = np.stack([g, 2 * g])

    def f(g, x, maxima):
        return spread_to_maxima_p(g, x, maxima, -2, *window[1:])

    wanted = f(*map(tw.constant, (several, x, maxima)))
    found = tw.function(f)(*map(tw.constant, (several, x, maxima)))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("shape", [(0, 8, 3), (2, 8, 0)])
def test_nothing_is_pooled(shape):
    def f(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = tw.nn.max_pool1d(x, 3, 2, "SAME") + tw.nn.avg_pool1d(x, 3, 2, "SAME")
        return y, tape.gradient(y, x)

    x = tw.constant(np.zeros(shape, np.float32))
    for a, b in zip(tw.function(f)(x), f(x), strict=True):
        assert a.shape == b.shape


# ------------------------------------------------------------------------- derivatives


def second(pool):
    def f(x, direction):
        with tw.GradientTape() as outer:
            outer.watch(x)
            with tw.GradientTape() as inner:
                inner.watch(x)
                y = pool(x)
                loss = tw.reduce_sum(y * y * y)
            g = inner.gradient(loss, x)
            along = tw.reduce_sum(g * direction)
        return y, g, outer.gradient(along, x)

    return f


@pytest.mark.parametrize("channels", ["NHWC", "NCHW"])
@pytest.mark.parametrize(
    "arguments",
    [(2, 2, "VALID"), (3, 2, "SAME"), (3, 1, "SAME"), (2, 3, "SAME")],
    ids=str,
)
@pytest.mark.parametrize("pool", [tw.nn.max_pool2d, tw.nn.avg_pool2d])
def test_derivatives_are_those_of_eager_mode(pool, arguments, channels):
    rng = np.random.default_rng(0)
    x, direction = rng.integers(-3, 4, (2, 2, 9, 8, 7)).astype(np.float32)
    f = second(lambda x: pool(x, *arguments, data_format=channels))
    wanted = f(tw.constant(x), tw.constant(direction))
    traced = tw.function(f)
    found = traced(tw.constant(x), tw.constant(direction))
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    made = traced.get_concrete_function(tw.constant(x), tw.constant(direction))
    assert not _calls(made)


def _calls(concrete):
    """The instructions of a trace that are calls of NumPy."""
    each = concrete.executable.program.instructions
    return [x for x in each if not x.is_free and code_of(x) is None]


def test_where_the_maxima_are_is_machine_code():
    x = np.random.default_rng(0).integers(0, 4, (3, 9, 8, 5)).astype(np.float32)

    def f(x):
        return tw.nn.max_pool_with_argmax(x, 3, 2, "SAME", include_batch_in_index=True)

    traced = tw.function(f)
    for a, b in zip(traced(x), f(x), strict=True):
        np.testing.assert_array_equal(a, b)
    assert not _calls(traced.get_concrete_function(tw.constant(x)))


def test_pools_between_convolutions_are_machine_code_without_copies():
    def f(x, v, w):
        with tw.GradientTape() as tape:
            tape.watch([v, w])
            y = tw.nn.max_pool2d(
                tw.nn.relu(tw.nn.conv2d(x, v, 1, "SAME")), 2, 2, "VALID"
            )
            y = tw.nn.relu(tw.nn.conv2d(y, w, 1, "SAME"))
            y = tw.nn.avg_pool2d(tw.nn.max_pool2d(y, 3, 2, "SAME"), 3, 1, "SAME")
            loss = tw.reduce_sum(y * y)
        return loss, tape.gradient(loss, [v, w])

    rng = np.random.default_rng(0)
    shapes = (4, 12, 12, 3), (3, 3, 3, 6), (3, 3, 6, 8)
    arrays = [tw.constant(rng.normal(size=s).astype(np.float32)) for s in shapes]
    traced = tw.function(f)
    for a, b in zip(
        tw.nest.flatten(traced(*arrays)), tw.nest.flatten(f(*arrays)), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-3)
    made = traced.get_concrete_function(*arrays)
    assert not _calls(made)
    names = [each.name for each in made.executable.program.instructions]
    assert not [name for name in names if "copy" in name], names
