"""Programs as kernels of many threads, run on the CPU, against NumPy."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.program.limits import use_limits
from tapewright.compiler.targets.cuda.kernel import function_source
from tapewright.compiler.targets.cuda.nests import steps_on
from tapewright.compiler.targets.cuda.prelude import PRELUDE

from ....stand_in import nvrtc, shim
from .nest_runs import Kernel, nests_of, program_of, run, source_of

pytestmark = pytest.mark.skipif(not shim.gcc(), reason="gcc is not installed")

SHAPES = [
    *((1, 1), (5, 8), (9, 9), (33, 31), (1000, 2), (300, 257)),
    *((7, 5000), (5000, 7), (1, 40000), (1200, 40)),
]
TOLERANCE = {"float16": 4e-3, "float32": 1e-5, "float64": 1e-12}


def numbers(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def assert_near(found, wanted):
    """The largest difference is small beside the largest number."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    if wanted.dtype.kind == "f":
        scale = max(1.0, np.nanmax(np.abs(wanted), initial=0.0))
        error = np.nanmax(np.abs(found - wanted), initial=0.0) / scale
        assert error <= TOLERANCE[wanted.dtype.name]
    else:
        np.testing.assert_array_equal(found, wanted)


def runs(program, arrays):
    """The outputs by one thread, and by many that take turns in a random order."""
    yield run(program, arrays)
    yield run(program, arrays, "fibers", seed=1)


def check(program, arrays, *wanted):
    for found in runs(program, arrays):
        for got, want in zip(found, wanted, strict=True):
            assert_near(got, want)


def in_double(function, x):
    """What NumPy computes with more digits."""
    found = function(x.astype(np.float64))
    found = found if isinstance(found, tuple) else (found,)
    return [np.asarray(a).astype(x.dtype) for a in found]


# ------------------------------------------------------------------------ reductions


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def layer_norm(x):
    d = x - x.mean(-1, keepdims=True)
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-3)


def tw_layer_norm(x):
    mean, variance = tw.nn.moments(x, [-1], keepdims=True)
    return (x - mean) * tw.math.rsqrt(variance + 1e-3)


def batch_norm(x):
    mean, variance = x.mean(0), x.var(0)
    return (x - mean) / np.sqrt(variance + 1e-3), mean, variance


def tw_batch_norm(x):
    mean, variance = tw.nn.moments(x, [0])
    return (x - mean) * tw.math.rsqrt(variance + 1e-3), mean, variance


FUNCTIONS = {
    "softmax": (tw.nn.softmax, softmax),
    "log_softmax": (tw.nn.log_softmax, log_softmax),
    "layer_norm": (tw_layer_norm, layer_norm),
    "batch_norm": (tw_batch_norm, batch_norm),
    "sums_of_columns": (lambda x: tw.reduce_sum(x, 0), lambda x: x.sum(0)),
    "sums_of_rows": (lambda x: tw.reduce_sum(x, 1), lambda x: x.sum(1)),
    "sum": (tw.reduce_sum, np.sum),
    "mean_of_squares": (
        lambda x: tw.reduce_mean(tw.square(x)),
        lambda x: np.mean(np.square(x)),
    ),
    "map_and_sums": (
        lambda x: (tw.exp(x), tw.reduce_sum(tw.exp(x), 0)),
        lambda x: (np.exp(x), np.exp(x).sum(0)),
    ),
    "transposed": (
        lambda x: tw.transpose(x) * 2.0 + tw.reduce_max(tw.transpose(x), 0),
        lambda x: x.T * 2 + x.max(1),
    ),
    "centered": (lambda x: x - tw.reduce_mean(x), lambda x: x - x.mean()),
}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_a_matrix_gives_what_numpy_gives(name, shape):
    function, numpy_function = FUNCTIONS[name]
    x = numbers(*shape, dtype=np.float64)
    program = program_of(function, x)
    assert nests_of(program)
    check(program, [x], *in_double(numpy_function, x))


@pytest.mark.parametrize("dtype", [np.float16, np.float32], ids=lambda t: t.__name__)
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "layer_norm", "batch_norm"])
def test_a_function_of_other_floats_gives_what_numpy_gives(name, dtype):
    function, numpy_function = FUNCTIONS[name]
    x = numbers(40, 70, dtype=dtype)
    program = program_of(function, x)
    check(program, [x], *in_double(numpy_function, x))


def batch_norm_and_gradients(x):
    channels = x.shape[-1]
    gamma = tw.range(1, channels + 1, dtype=x.dtype)
    beta = tw.sqrt(gamma)
    with tw.GradientTape() as tape:
        tape.watch([x, gamma, beta])
        mean, variance = tw.nn.moments(x, [0, 1, 2])
        y = tw.nn.batch_normalization(x, mean, variance, beta, gamma, 1e-3)
    g = tw.reshape(tw.sin(tw.range(tw.size(x), dtype=x.dtype)), x.shape)
    return (y, *tape.gradient(y, [x, gamma, beta], output_gradients=g))


def loss_and_gradient(x):
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.nn.log_softmax(tw_layer_norm(x))
        loss = tw.reduce_mean(y * y)
    return loss, tape.gradient(loss, x)


@pytest.mark.parametrize(
    "function", [batch_norm_and_gradients], ids="batch_norm".split()
)
@pytest.mark.parametrize(
    "shape", [(2, 3, 3, 5), (16, 20, 20, 3), (8, 16, 16, 40)], ids=str
)
def test_gradients_of_channels_are_those_of_eager_mode(function, shape):
    x = numbers(*shape, dtype=np.float64)
    wanted = [a.numpy() for a in function(tw.constant(x))]
    check(program_of(function, x), [x], *wanted)


@pytest.mark.parametrize("shape", [(3, 5), (64, 100), (4, 30000)], ids=str)
def test_gradients_of_rows_are_those_of_eager_mode(shape):
    x = numbers(*shape, dtype=np.float64)
    wanted = [a.numpy() for a in loss_and_gradient(tw.constant(x))]
    check(program_of(loss_and_gradient, x), [x], *wanted)


SIZES = [1, 3, 8, 9, 31, 33, 129, 2049, 20000]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", ["?", "b", "H", "q", "e", "f"])
def test_every_reduction_of_every_size_gives_what_numpy_gives(dtype, n):
    rng = np.random.default_rng(n)
    if dtype in "efd":
        x = (rng.integers(-4, 5, (3, n)) / 4).astype(dtype)
    else:
        x = rng.integers(0, 2 if dtype == "?" else 100, (3, n)).astype(dtype)
    ufuncs = [np.add, np.maximum, np.minimum]
    ufuncs = ufuncs[1:] if dtype == "?" else ufuncs
    kernel = Kernel(x)
    (operand,) = kernel.inputs
    outputs = [kernel.reduce(u, operand, axis) for u in ufuncs for axis in (None, 1)]
    wanted = [
        u.reduce(x, axis, **({"dtype": dtype} if u is np.add else {}))
        for u in ufuncs
        for axis in (None, 1)
    ]
    check(kernel.formed(*outputs), [x], *wanted)


@pytest.mark.parametrize("dtype", "fd")
def test_products_of_rows_and_columns_give_what_numpy_gives(dtype):
    x = np.random.default_rng(0).uniform(0.9, 1.1, (70, 50)).astype(dtype)
    kernel = Kernel(x)
    outputs = [kernel.reduce(np.multiply, *kernel.inputs, axis) for axis in (0, 1)]
    wide = x.astype(np.float64)
    check(kernel.formed(*outputs), [x], *[wide.prod(a).astype(dtype) for a in (0, 1)])


@pytest.mark.parametrize("shape", [(3, 7), (40, 50), (2, 20000), (20000, 2)], ids=str)
@pytest.mark.parametrize("ufunc", [np.maximum, np.minimum, np.add], ids=str)
def test_nan_and_infinities_go_through_reductions(ufunc, shape):
    for special in (np.nan, np.inf, -np.inf):
        x = numbers(*shape)
        x[-1, -1] = special
        kernel = Kernel(x)
        outputs = [kernel.reduce(ufunc, *kernel.inputs, a) for a in (None, 0, 1)]
        wanted = [ufunc.reduce(x, a) for a in (None, 0, 1)]
        for found in runs(kernel.formed(*outputs), [x]):
            for got, want in zip(found, wanted):
                np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
                np.testing.assert_array_equal(got == np.inf, want == np.inf)
                np.testing.assert_array_equal(got == -np.inf, want == -np.inf)


@pytest.mark.parametrize("shape", [(2, 3), (40, 50), (2, 20000), (20000, 2)], ids=str)
def test_sums_of_negative_zeros_are_negative_zeros(shape):
    x = np.full(shape, -0.0, np.float32)
    kernel = Kernel(x)
    outputs = [kernel.reduce(np.add, *kernel.inputs, a) for a in (None, 0, 1)]
    for found in runs(kernel.formed(*outputs), [x]):
        assert all([np.signbit(got).all() for got in found])


def test_sums_of_float16_are_rounded_once():
    x = np.full((1, 5000), 1, np.float16)
    x[0, 0] = 2048  # to which no 1 can be added
    kernel = Kernel(x)
    out = kernel.reduce(np.add, *kernel.inputs, 1)
    for (found,) in runs(kernel.formed(out), [x]):
        np.testing.assert_array_equal(found, x.sum(1))


def test_results_do_not_depend_on_the_order_of_threads():
    x = numbers(3, 30000)
    program = program_of(lambda x: (tw.nn.softmax(x), tw.reduce_sum(x, 0)), x)
    first, second = [run(program, [x], "fibers", seed) for seed in (2, 3)]
    for a, b in zip(first, second):
        np.testing.assert_array_equal(a, b)


def test_the_first_thread_of_a_team_stores_a_sum():
    kernel = Kernel(numbers(50, 40))
    program = kernel.formed(kernel.reduce(np.add, *kernel.inputs, 0))
    assert "if (exists && threadIdx.y == 0) {" in source_of(program)


def test_many_sums_of_several_types_take_turns_in_shared_memory():
    x, n = numbers(90, 64, dtype=np.float64), np.arange(90 * 64).reshape(90, 64) % 7
    kernel = Kernel(x, n)
    outputs, wanted = [], []
    value, number = kernel.inputs
    for _ in range(12):
        value, number = kernel.map(np.sin, value), kernel.map(np.negative, number)
        outputs += [
            kernel.reduce(np.minimum, value, 0),
            kernel.reduce(np.add, number, 0),
        ]
        x, n = np.sin(x), -n
        wanted += [x.min(0), n.sum(0)]
    program = kernel.formed(*outputs)
    assert max([len(nest.outputs) for nest in nests_of(program)]) >= 12
    check(program, kernel.arrays, *wanted)


def test_values_along_fewer_axes_are_computed_with_those_that_are_summed():
    x, rows = numbers(50, 40, dtype=np.float64), numbers(50, 1, dtype=np.float64)
    kernel = Kernel(x, rows)
    twice = kernel.map(np.add, kernel.inputs[1], kernel.inputs[1])
    scaled = kernel.map(np.multiply, kernel.inputs[0], twice)
    outputs = [kernel.reduce(np.add, scaled, 0), twice]
    program = kernel.formed(*outputs)
    assert len(nests_of(program)) == 1
    check(program, [x, rows], (x * (rows + rows)).sum(0), rows + rows)


@pytest.mark.parametrize("shape", [(50, 40), (3, 20000), (20000, 3)], ids=str)
def test_indices_of_64_bits_give_the_same(shape):
    x = numbers(*shape, dtype=np.float64)
    with use_limits(wide_index=1):
        program = program_of(lambda x: (tw.nn.softmax(x), tw.reduce_sum(x, 0)), x)
    assert "(long long)blockIdx.x" in source_of(program)
    check(program, [x], softmax(x), x.sum(0))


# ------------------------------------------------------------------------------ maps


def test_operands_broadcast():
    a, b, c = numbers(4, 1, 6), numbers(5, 1), numbers()
    kernel = Kernel(a, b, c)
    x, y, z = kernel.inputs
    out = kernel.map(np.multiply, kernel.map(np.add, x, y), z)
    check(kernel.formed(out), [a, b, c], (a + b) * c)


def test_views_are_read_where_they_lie():
    x = numbers(6, 7, 8)
    views = [
        (np.ndarray.transpose, (2, 0, 1)),
        (np.ndarray.__getitem__, slice(None), slice(5, None, -2), slice(1, 8, 3)),
        (np.ndarray.__getitem__, 3),
        (np.ndarray.reshape, (42, 8)),
        (np.broadcast_to, (2, 6, 7, 8)),
    ]
    kernel = Kernel(x)
    (operand,) = kernel.inputs
    viewed = [kernel.view(operand, *view) for view in views]
    outputs = [kernel.map(np.negative, v) for v in viewed]
    outputs += [kernel.reduce(np.add, v, 0) for v in viewed]
    arrays = [v.instruction.apply(x) for v in viewed]
    check(
        kernel.formed(*outputs), [x], *[-a for a in arrays], *[a.sum(0) for a in arrays]
    )


def test_copies_of_views_are_in_c_order():
    x = numbers(5, 6)
    kernel = Kernel(x)
    out = kernel.copy(kernel.view(*kernel.inputs, np.ndarray.transpose, (1, 0)))
    check(kernel.formed(out), [x], np.ascontiguousarray(x.T))


def test_arrays_without_entries_stay_calls_of_numpy():
    x = numbers(0, 3)
    kernel = Kernel(x)
    (operand,) = kernel.inputs
    outputs = [kernel.map(np.exp, operand), kernel.reduce(np.add, operand, 0)]
    program = kernel.formed(*outputs)
    assert not nests_of(program)
    check(program, [x], np.exp(x), x.sum(0))


@pytest.mark.parametrize("n", [1, 31, 33, 255, 257, 70000])
def test_maps_of_every_size_write_each_entry(n):
    x = numbers(n)
    kernel = Kernel(x)
    check(kernel.formed(kernel.map(np.square, *kernel.inputs)), [x], x * x)


def test_blocks_take_further_indices_in_turns():
    x = numbers(3000, 20)
    with use_limits(grid_blocks=3):
        kernel = Kernel(x)
    (operand,) = kernel.inputs
    outputs = [kernel.map(np.square, operand), kernel.reduce(np.add, operand, 1)]
    outputs.append(kernel.reduce(np.maximum, kernel.map(np.square, operand), 0))
    program = kernel.formed(*outputs)
    assert any([nest.geometry.blocks == 3 for nest in nests_of(program)])
    check(program, [x], x * x, x.sum(1), (x * x).max(0))


def test_what_is_small_and_dear_is_computed_once():
    x, b = numbers(50, 40), numbers(40)
    kernel = Kernel(x, b)
    dear = kernel.map(np.exp, kernel.map(np.tanh, kernel.map(np.sin, kernel.inputs[1])))
    out = kernel.map(np.multiply, kernel.inputs[0], dear)
    program = kernel.formed(out)
    assert [nest.count for nest in nests_of(program)] == [40, 2000]
    check(program, [x, b], x * np.exp(np.tanh(np.sin(b))))


@pytest.mark.parametrize("axis", [0, 1, None])
def test_what_is_dear_along_some_axes_is_computed_once_for_sums(axis):
    x, b = numbers(50, 40, dtype=np.float64), numbers(40, dtype=np.float64)
    kernel = Kernel(x, b)
    dear = kernel.map(np.exp, kernel.map(np.tanh, kernel.map(np.sin, kernel.inputs[1])))
    out = kernel.map(np.multiply, kernel.inputs[0], dear)
    program = kernel.formed(kernel.reduce(np.add, out, axis))
    check(program, [x, b], (x * np.exp(np.tanh(np.sin(b)))).sum(axis))


def test_numbers_and_arrays_of_one_group_are_both_stored():
    x, s = numbers(50, 40), numbers()
    kernel = Kernel(x, s)
    twice = kernel.map(np.add, kernel.inputs[1], kernel.inputs[1])
    out = kernel.map(np.multiply, kernel.inputs[0], twice)
    program = kernel.formed(out, twice)
    check(program, [x, s], x * (s + s), s + s)


def test_long_chains_are_several_kernels():
    x = numbers(100)
    kernel, wanted = Kernel(x), x
    (value,) = kernel.inputs
    for _ in range(60):
        value = kernel.map(np.negative, kernel.map(np.sin, value))
        wanted = -np.sin(wanted)
    program = kernel.formed(value)
    assert len(nests_of(program)) > 1
    check(program, [x], wanted)


# ------------------------------------------------------------------------- in place


def run_in_place(program, buffer, array):
    """The output of the only nest, written to the memory of an operand."""
    (nest,) = nests_of(program)
    (out,) = nest.outputs
    assert nest.is_done_with(buffer, out)
    (launch,) = steps_on(nest, {buffer: 0, out: 0})
    assert [p.is_written for p in launch.parameters] == [True]
    module = shim.Module(PRELUDE + function_source(launch))
    address = array.ctypes.data
    module.launch(launch.name, launch.grid, launch.block, [address], "fibers")


@pytest.mark.parametrize("shape", [(5, 7), (40, 300), (300, 40)], ids=str)
@pytest.mark.parametrize("name", ["softmax", "layer_norm"])
def test_rows_are_overwritten_in_place(name, shape):
    function, numpy_function = FUNCTIONS[name]
    x = numbers(*shape)
    (wanted,), array = in_double(numpy_function, x), x.copy()
    program = program_of(function, x)
    run_in_place(program, program.inputs[0], array)
    assert_near(array, wanted)


def test_threads_without_an_entry_do_not_overwrite_that_of_another():
    x = numbers(257, dtype=np.float64)
    kernel, array = Kernel(x), x.copy()
    out = kernel.map(np.square, *kernel.inputs)
    run_in_place(kernel.formed(out), kernel.inputs[0], array)
    np.testing.assert_array_equal(array, x * x)


def test_what_other_threads_read_is_not_overwritten():
    x, b = numbers(50, 40), numbers(40)
    kernel = Kernel(x, b)
    twice = kernel.map(np.add, kernel.inputs[1], kernel.inputs[1])
    total = kernel.map(np.add, kernel.reduce(np.add, kernel.inputs[0], 0), twice)
    (nest,) = nests_of(kernel.formed(total))
    assert nest.geometry.team > 1
    assert not nest.is_done_with(kernel.inputs[1], total)


# ---------------------------------------------------------------------- compilation


@pytest.mark.skipif(bool(nvrtc.missing()), reason=nvrtc.missing())
@pytest.mark.parametrize("arch", nvrtc.ARCHITECTURES)
def test_every_shape_of_nests_compiles_for_a_gpu(arch):
    sources = [
        source_of(program_of(function, numbers(*shape, dtype=dtype)))
        for function, _ in FUNCTIONS.values()
        for shape, dtype in [((300, 257), np.float16), ((5000, 7), np.float32)]
    ]
    for source in sources[:: 1 if arch == "sm_90" else 4]:
        assert nvrtc.compile_for(source, arch)
