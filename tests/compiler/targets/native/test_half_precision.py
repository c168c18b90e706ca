"""float16 and bfloat16 in machine code: 16 bits in memory, float32 in registers."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.targets.native.jit import engine

BFLOAT16 = tw.bfloat16.dtype
HALVES = pytest.mark.parametrize(
    "half", [tw.float16, tw.bfloat16], ids=lambda d: d.name
)


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


@pytest.fixture(params=["by the CPU", "by arithmetic"])
def conversions(request, monkeypatch):
    """float16 converted by instructions, and as on a CPU without these."""
    if request.param == "by arithmetic":
        monkeypatch.setattr(engine, "converts_halves", lambda: False)
    elif not engine.converts_halves():
        pytest.skip("this CPU has no such instructions")


def as_float16(values):
    """``values`` rounded by machine code and by NumPy, as bits; NaN as one of them."""
    found = tw.function(lambda x: tw.cast(x, tw.float16))(tw.constant(values)).numpy()
    with np.errstate(all="ignore"):
        expected = values.astype(np.float16)
    for x in (found, expected):
        x[np.isnan(x)] = np.nan
    return found.view(np.uint16), expected.view(np.uint16)


def test_every_number_of_float16_is_read(conversions):
    narrow = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    with np.errstate(invalid="ignore"):
        expected = narrow.astype(np.float32)
    wide = tw.function(lambda x: tw.cast(x, tw.float32) * 1.0)(narrow).numpy()
    np.testing.assert_array_equal(wide, expected)  # NaN equals NaN
    real = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(wide)[real], np.signbit(expected)[real])


def ties():
    """All numbers halfway between two of float16, the last of which is 65520."""
    finite = np.arange(0x7C01, dtype=np.uint16).view(np.float16).astype(np.float64)
    finite[-1] = 65536
    both = (finite[1:] + finite[:-1]) / 2
    return np.concatenate([both, -both])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_are_rounded_to_float16_as_by_numpy(dtype, conversions):
    rng = np.random.default_rng(5)
    exact = ties().astype(dtype)
    assert (exact == ties()).all()
    bits = np.dtype(f"u{exact.itemsize}")
    values = np.concatenate(
        [
            *(
                exact,
                np.nextafter(exact, dtype(1e30)),
                np.nextafter(exact, dtype(-1e30)),
            ),
            rng.normal(size=100_000).astype(dtype),
            (rng.normal(size=100_000) * 2.0**-20).astype(dtype),  # denormal ones
            rng.integers(0, 2 ** (8 * bits.itemsize), 200_000, dtype=bits).view(dtype),
            np.array(
                [0.0, -0.0, np.inf, -np.inf, np.nan, 1e38, 65519.0, 65520.0], dtype
            ),
        ]
    )
    np.testing.assert_array_equal(*as_float16(values))


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int32", "int64", "uint64"]
)
def test_integers_are_rounded_to_float16_as_by_numpy(dtype, conversions):
    bits = np.random.default_rng(6).integers(-(2**63), 2**63 - 1, 1000)
    values = np.concatenate([bits >> shift for shift in (0, 40, 46, 47, 48, 52)])
    np.testing.assert_array_equal(*as_float16(values.astype(dtype)))


def test_arithmetic_of_float16_is_rounded_as_by_numpy(conversions):
    rng = np.random.default_rng(7)
    bits = rng.integers(0, 1 << 16, (2, 50_000), dtype=np.uint16)
    x, y = (tw.constant(each.view(np.float16)) for each in bits)

    def results(x, y):
        wide = [
            x + y,
            x - y,
            x * y,
            x / y,
            tw.maximum(x, y),
            tw.sqrt(x),
            -x,
            tw.sign(x),
        ]
        return [
            *wide,
            tw.floor(x),
            tw.math.nextafter(x, y),
            x < y,
            x == y,
            tw.math.is_inf(x),
        ]

    with np.errstate(all="ignore"):
        expected = results(x, y)
    traced = tw.function(results)
    for got, wanted in zip(traced(x, y), expected, strict=True):
        np.testing.assert_array_equal(got.numpy(), wanted.numpy())
        assert got.dtype is wanted.dtype
    text = traced.get_concrete_function(x, y).pretty()
    assert "machine code for 12 of 13 instructions" in text  # all but nextafter


@HALVES
@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int32", "int64", "float64"]
)
def test_other_dtypes_become_it_and_it_becomes_them(half, dtype):
    values = np.array([0, 1, 2, 3, 100, 127, 77], dtype)
    found = tw.function(lambda x: tw.cast(x, half))(tw.constant(values))
    np.testing.assert_array_equal(found.numpy(), values.astype(half.dtype))
    back = tw.function(lambda x: tw.cast(x, dtype))(found)
    np.testing.assert_array_equal(back.numpy(), values)


@HALVES
def test_moves_take_16_bits(half):
    x = tw.constant(np.arange(24).reshape(4, 6).astype(half.dtype))

    @tw.function
    def moved(x):
        both = tw.concat([x[:, ::-1], tw.where(x > 5.0, x, tw.zeros_like(x))], 1)
        return tw.gather(tw.transpose(both), [3, 0, 11])

    np.testing.assert_array_equal(moved(x).numpy(), moved.python_function(x).numpy())
    text = moved.get_concrete_function(x).pretty()
    assert f"{'bf16' if half is tw.bfloat16 else 'f16'}[3,4]" in text


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


@HALVES
def test_a_wide_net_takes_about_half_the_memory_between_ops(half):
    sizes = {}
    for dtype in (tw.float32, half):
        step = step_of(dtype, layers=24, width=64)
        traced = step.get_concrete_function(tw.TensorSpec([1024, 64], dtype))
        sizes[dtype.name] = traced.executable.arena_size
    assert sizes[half.name] < 0.58 * sizes["float32"]


@HALVES
def test_a_step_has_the_results_of_the_eager_one(half):
    tw.random.set_seed(0)
    step = step_of(half, layers=3, width=32)
    x = tw.random.normal([64, 32], seed=9, dtype=half)
    tw.random.set_seed(0)  # the seeds of the kernels begin anew
    expected = step_of(half, layers=3, width=32).python_function(x)
    np.testing.assert_allclose(float(step(x)), float(expected), rtol=2.0**-7)
