"""bfloat16 in machine code: 16 bits in memory, float32 in registers."""

import numpy as np
import pytest

import tapewright as tw

BFLOAT16 = tw.bfloat16.dtype


@pytest.fixture(autouse=True)
def native():
    pytest.importorskip("llvmlite")
    with tw.config.use_target("native"):
        yield


def test_every_number_is_read_and_every_kind_of_float32_is_rounded_as_by_numpy():
    every = np.arange(1 << 16, dtype=np.uint32)
    narrow = every.astype(np.uint16).view(BFLOAT16)
    wide = np.float32(tw.function(lambda x: tw.cast(x, tw.float32) + 0.0)(narrow))
    np.testing.assert_array_equal(wide, narrow.astype(np.float32))
    for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF):  # below, at and above ties
        values = (every << 16 | low).view(np.float32)
        found = tw.function(lambda x: tw.cast(x, tw.bfloat16))(tw.constant(values))
        with np.errstate(all="ignore"):
            expected = values.astype(BFLOAT16)
        np.testing.assert_array_equal(
            found.numpy().view(np.uint16), expected.view(np.uint16)
        )


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int32", "int64", "float64"]
)
def test_other_dtypes_become_it_and_it_becomes_them(dtype):
    values = np.array([0, 1, 2, 3, 100, 127, 77], dtype)
    found = tw.function(lambda x: tw.cast(x, tw.bfloat16))(tw.constant(values))
    np.testing.assert_array_equal(found.numpy(), values.astype(BFLOAT16))
    back = tw.function(lambda x: tw.cast(x, dtype))(found)
    np.testing.assert_array_equal(back.numpy(), values)


def test_moves_take_16_bits():
    x = tw.constant(np.arange(24).reshape(4, 6).astype(BFLOAT16))

    @tw.function
    def moved(x):
        both = tw.concat([x[:, ::-1], tw.where(x > 5.0, x, tw.zeros_like(x))], 1)
        return tw.gather(tw.transpose(both), [3, 0, 11])

    np.testing.assert_array_equal(moved(x).numpy(), moved.python_function(x).numpy())
    text = moved.get_concrete_function(x).pretty()
    assert "bf16[3,4]" in text


def step_of(dtype, layers, width):
    kernels = [
        tw.Variable(tw.random.normal([width, width], stddev=0.1, seed=i, dtype=dtype))
        for i in range(layers)
    ]

    @tw.function
    def step(x):
        with tw.GradientTape() as tape:
            h = x
            for kernel in kernels:
                h = tw.nn.gelu(tw.matmul(h, kernel))
            loss = tw.reduce_mean(h * h)
        for kernel, g in zip(kernels, tape.gradient(loss, kernels)):
            kernel.assign_sub(g * 0.01)
        return loss

    return step


def test_a_wide_net_takes_about_half_the_memory_between_ops():
    sizes = {}
    for dtype in (tw.float32, tw.bfloat16):
        step = step_of(dtype, layers=24, width=64)
        traced = step.get_concrete_function(tw.TensorSpec([1024, 64], dtype))
        sizes[dtype.name] = traced.executable.arena_size
    assert sizes["bfloat16"] < 0.58 * sizes["float32"]


def test_a_step_has_the_results_of_the_eager_one():
    step = step_of(tw.bfloat16, layers=3, width=32)
    x = tw.random.normal([64, 32], seed=9, dtype=tw.bfloat16)
    expected = step_of(tw.bfloat16, layers=3, width=32).python_function(x)
    np.testing.assert_allclose(float(step(x)), float(expected), rtol=2.0**-7)
