"""Products and convolutions of half precision: calls that read 16 bits, beside the host's."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import config
from tapewright.compiler.targets.cuda.kernels.convolution import (
    DirectKernel,
    WindowsKernel,
)
from tapewright.compiler.targets.cuda.products.product import ProductKernel
from tapewright.core.dtypes import finfo

from .....stand_in import shim

pytestmark = pytest.mark.skipif(not shim.gcc(), reason="gcc is not installed")
BOTH = pytest.mark.parametrize("dtype", [tw.float16, tw.bfloat16], ids=lambda d: d.name)
KERNELS = ProductKernel, WindowsKernel, DirectKernel


def random(shape, dtype, seed):
    values = np.random.default_rng(seed).normal(size=shape)
    if len(shape) == 2:
        values[0, 0], values[-1, -1] = np.nan, np.inf
    return tw.constant(values.astype(dtype.as_numpy_dtype))


def kernels(function, *args):
    """The kernels of products and convolutions in a function as it is traced."""
    program = tw.function(function).get_concrete_function(*args).executable.program
    return [each for each in program.instructions if isinstance(each, KERNELS)]


def dtypes(kernel):
    return [a.dtype.name for a in (*kernel.operands[:2], kernel.outputs[0])]


def check(function, *args):
    """A traced function has the results of the host, NaN and infinity included."""
    found = tw.nest.flatten(tw.function(function)(*args))
    with tw.device("CPU"):
        expected = tw.nest.flatten(function(*[tw.constant(x.numpy()) for x in args]))
    for got, wanted in zip(found, expected, strict=True):
        assert got.dtype is wanted.dtype
        eps = 4 * float(finfo(got.dtype.dtype).eps)
        got, wanted = np.float64(got.numpy()), np.float64(wanted.numpy())
        scale = np.abs(wanted[np.isfinite(wanted)]).max(initial=1)
        np.testing.assert_allclose(got, wanted, eps, eps * scale)


def convolution(**keywords):
    return lambda x, w: tw.nn.conv2d(x, w, 1, "SAME", **keywords)


def gradients(function):
    """The gradients of a function of two arrays, in their dtype."""

    def both(x, w):
        with tw.GradientTape() as tape:
            tape.watch([x, w])
            y = function(x, w)
            loss = tw.reduce_sum(tw.cast(y, "float32") ** 2) * 2.0**-9
        return tape.gradient(loss, [x, w])

    return both


# name -> function of two arrays, their shapes, and the dtype that its calls make, if known
CASES = {
    "matrices": (tw.matmul, (150, 90), (90, 70), "half"),
    "transposed": (
        lambda x, w: tw.matmul(x, w, transpose_a=True, transpose_b=True),
        *((90, 150), (70, 90), "half"),
    ),
    "batches": (tw.matmul, (5, 3, 40, 50), (3, 50, 60), "half"),
    "rows of batches": (tw.matmul, (6, 40, 50), (50, 60), "half"),
    "parts": (lambda x, w: tw.matmul(x[:, 10:], w[::2]), (200, 70), (120, 80), "half"),
    "a vector": (tw.linalg.matvec, (900, 800), (800,), "half"),
    "einsum": (
        lambda x, w: tw.einsum("bqhd,bkhd->bhqk", x, w),
        *((3, 40, 4, 20), (3, 50, 4, 20), "half"),
    ),
    "a sum of products": (lambda x, w: tw.matmul(x, w) + x, (90, 90), (90, 90), None),
    "with itself": (lambda x, w: tw.matmul(x, x) @ w, (2, 90, 90), (90, 90), "half"),
    "windows": (convolution(), (4, 14, 14, 16), (3, 3, 16, 40), "float32"),
    "few windows": (convolution(), (2, 6, 6, 3), (3, 3, 3, 4), "float32"),
    "addresses": (convolution(), (4, 14, 14, 16), (1, 1, 16, 40), None),
    "dilated": (convolution(dilations=2), (4, 14, 14, 16), (3, 3, 16, 40), "float32"),
}
CASES |= {
    f"gradients of {name}": (gradients(function), *shapes, None)
    for name, (function, *shapes, _) in CASES.items()
}


@BOTH
@pytest.mark.parametrize("name", CASES)
def test_calls_read_16_bits_and_have_the_results_of_the_host(gpu, name, dtype):
    function, *shapes, made = CASES[name]
    args = [random(shape, dtype, seed) for seed, shape in enumerate(shapes)]
    found = [dtypes(each) for each in kernels(function, *args)]
    assert found
    for *factors, out in found:
        assert factors == [dtype.name] * 2
        assert out == {"half": dtype.name}.get(made, made or out)
    check(function, *args)


def wide(x, w, dtype="float32"):
    return tw.matmul(tw.cast(x, dtype), tw.cast(w, dtype))


def read_twice(x, w):
    made = wide(x, w)
    return tw.cast(made, x.dtype), made * 3.0


def also_returned(x, w):
    made = wide(x, w)
    return tw.cast(made, x.dtype), made


def rounded_to_another(x, w):
    other = tw.bfloat16 if x.dtype is tw.float16 else tw.float16
    return tw.cast(wide(x, w), other)


def in_float64(x, w):
    return tw.cast(wide(x, w, "float64"), x.dtype)


@BOTH
@pytest.mark.parametrize(
    "function", [wide, read_twice, also_returned, rounded_to_another, in_float64]
)
def test_products_that_are_not_only_rounded_stay_wide(gpu, function, dtype):
    x, w = random((150, 90), dtype, 0), random((90, 70), dtype, 1)
    (kernel,) = kernels(function, x, w)
    if function is in_float64:
        assert dtypes(kernel) == ["float64"] * 3
    else:
        assert dtypes(kernel) == [dtype.name, dtype.name, "float32"]
    check(function, x, w)


def test_factors_of_two_dtypes_are_copied(gpu):
    def function(x, w):
        wide = tw.matmul(tw.cast(x, "float32"), tw.cast(w, "float32"))
        return wide, tw.matmul(tw.cast(x, "float32"), tw.cast(x, "float32"))

    x, w = random((150, 150), tw.float16, 0), random((150, 70), tw.bfloat16, 1)
    found = [dtypes(each) for each in kernels(function, x, w)]
    assert found == [["float32"] * 3, ["float16", "float16", "float32"]]
    check(function, x, w)


def test_what_was_read_before_an_assignment_is_multiplied(gpu):
    start = random((90, 70), tw.bfloat16, 1)
    variable = tw.Variable(start)

    @tw.function
    def step(x):
        before = variable.read_value()
        first = tw.matmul(x, before)
        variable.assign(before * 2.0)
        return first, tw.matmul(x + 1.0, before), tw.matmul(x, variable)

    x = random((150, 90), tw.bfloat16, 0)
    found = step(x)
    host = x.numpy(), start.numpy()
    with tw.device("CPU"):
        x, old = map(tw.constant, host)
        expected = tw.matmul(x, old), tw.matmul(x + 1.0, old), tw.matmul(x, old * 2.0)
    for got, wanted in zip(found, expected, strict=True):
        got, wanted = np.float32(got.numpy()), np.float32(wanted.numpy())
        np.testing.assert_allclose(got, wanted, 2.0**-6, 2.0**-4)


def test_a_layer_adds_its_bias_in_the_call(gpu):
    layer = tw.keras.layers.Dense(70, dtype="mixed_bfloat16")
    x = random((150, 90), tw.bfloat16, 0)
    layer(x)
    (kernel,) = kernels(layer, x)
    assert (kernel.name, dtypes(kernel)) == (
        "dot_bias",
        ["bfloat16", "bfloat16", "float32"],
    )
    np.testing.assert_allclose(
        np.float32(tw.function(layer)(x).numpy()), np.float32(layer(x).numpy()), 0.02
    )


@BOTH
@pytest.mark.parametrize("activation", [None, "relu"])
@pytest.mark.parametrize("part", [np.s_[1:, :91], np.s_[:, 1:], np.s_[1:, 1::1]])
def test_addresses_may_be_odd_multiples_of_two_bytes(gpu, dtype, activation, part):
    layer = tw.keras.layers.Dense(70, activation, dtype=f"mixed_{dtype.name}")
    x = tw.constant(np.random.default_rng(0).normal(size=(151, 92)), dtype)
    found, wanted = tw.function(lambda x: layer(x[part]))(x), layer(x[part])
    eps = 4 * float(finfo(dtype.dtype).eps)
    found, wanted = np.float32(found.numpy()), np.float32(wanted.numpy())
    np.testing.assert_allclose(found, wanted, eps, eps)


def test_a_step_on_weights_that_lie_one_behind_the_other(gpu):
    layers = tw.keras.layers
    model = tw.keras.Sequential(
        [layers.Dense(n, "relu", dtype="bfloat16") for n in (133, 131, 33)]
    )
    model.build((None, 90))
    optimizer = tw.keras.optimizers.SGD(0.01)
    optimizer.build(model.trainable_variables)
    x = tw.constant(np.random.default_rng(0).normal(size=(151, 90)), tw.bfloat16)

    def step(x):
        with tw.GradientTape() as tape:
            loss = tw.reduce_mean(tw.cast(model(x), "float32") ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    start, losses = model.get_weights(), []
    for run in (step, tw.function(step)):
        model.set_weights(start)
        losses.append([float(run(x)) for _ in range(3)])
    np.testing.assert_allclose(*losses, 0.02)
    assert losses[0][2] < losses[0][0]


@BOTH
def test_products_on_the_host_stay_there(gpu, dtype):
    values = np.random.default_rng(0).normal(size=(89, 89))
    with tw.device("CPU"):
        variable = tw.Variable(tw.constant(values, dtype))

    def copies():
        return tw.cast(variable, "float32"), tw.cast(variable, "float32")

    def function(x):
        rounded = tw.cast(tw.matmul(*copies()), dtype)
        return x + 1.0, rounded, tw.matmul(*copies()), tw.matmul(variable, variable)

    x = tw.ones([89, 89])
    assert not kernels(function, x)
    for got, wanted in zip(tw.function(function)(x), function(x), strict=True):
        assert got.device == wanted.device
        got, wanted = np.float32(got.numpy()), np.float32(wanted.numpy())
        np.testing.assert_allclose(got, wanted, 2.0**-6, 2.0**-4)


def test_the_pass_can_be_switched_off(gpu):
    x, w = random((150, 90), tw.bfloat16, 0), random((90, 70), tw.bfloat16, 1)
    with config.graph_passes(half_factors=False):
        (kernel,) = kernels(tw.matmul, x, w)
    assert dtypes(kernel) == ["float32"] * 3
