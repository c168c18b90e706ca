"""Dtypes, complex numbers, passing on: the op table, and the gradients of the parts."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.ops.array import conversion
from tapewright.test import (
    case,
    check_op,
    complexes,
    floats,
    integers,
)

CASES = [
    case("identity", floats(2, 3), expect=lambda x: x),
    case("identity", complexes(4), expect=lambda x: x),
    case("set_apart", floats(2, 3), expect=lambda x: x),
    case("stop_gradient", floats(2, 3), expect=lambda x: x),
    case("conj", floats(2, 3), expect=np.conj),
    case("conj", complexes(4), expect=np.conj),
    case("cast", floats(3), dtype="float32", order=0, single=False,
         expect=lambda x: x.astype("float32")),
    case("cast", floats(3), dtype="complex128", single=False, label="to complex",
         expect=lambda x: x + 0j),
    case("cast", complexes(3), dtype="float64", single=False, label="to real",
         expect=np.real),
    case("cast", integers(3), dtype="float64", expect=lambda x: x.astype(float)),
    case("cast", floats(3), dtype="int32", single=False, order=0, label="to int",
         expect=lambda x: x.astype("int32")),
    case("saturate_cast", floats(2, 3, low=-300.0, high=300.0), dtype="int8",
         single=False, order=0, expect=lambda x: np.clip(x, -128, 127).astype("int8")),
    case("saturate_cast", integers(2, 3, low=-300, high=300), dtype="uint8",
         expect=lambda x: np.clip(x, 0, 255).astype("uint8")),
    case("saturate_cast", np.array([1e300, -2.0, 0.5]), dtype="float32", order=0,
         single=False, label="large",
         expect=lambda x: np.array([np.finfo("f").max, -2, 0.5], "f")),
    case("saturate_cast", floats(), dtype="float64", single=False, expect=lambda x: x),
    case("bitcast", floats(2, 3), type="int64", single=False,
         expect=lambda x: x.view("int64")),
    case("bitcast", floats(2, 3), type="int16", single=False, label="smaller",
         expect=lambda x: x.view("int16").reshape(2, 3, 4)),
    case("bitcast", floats(), type="uint8", single=False, label="0-d",
         expect=lambda x: np.frombuffer(x.tobytes(), "uint8")),
    case("bitcast", np.arange(4, dtype="int32").reshape(2, 2), type="int64",
         expect=lambda x: x.view("int64")[:, 0], label="larger"),
    case("complex", floats(2, 3), floats(2, 3), expect=lambda x, y: x + 1j * y),
    case("complex", floats(2, 1), floats(3), expect=lambda x, y: x + 1j * y),
    case("real", complexes(2, 2), expect=np.real),
    case("imag", complexes(2, 2), expect=np.imag),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


def test_real_and_imaginary_part_of_a_complex_number_get_their_own_gradients():
    x, y = tw.constant(2.0), tw.constant(3.0)
    with tw.GradientTape() as tape:
        tape.watch([x, y])
        z = tw.complex(x, y)
        size = tw.math.real(z * tw.math.conj(z))
    assert [g.numpy() for g in tape.gradient(size, [x, y])] == [4.0, 6.0]


@pytest.mark.parametrize("op", ["_real", "_imag", "stop_gradient"])
def test_a_part_of_a_diagonal_is_diagonal(op):
    rule = getattr(conversion, op).primitive.diagonal_rule
    assert rule((-1,), tw.constant(np.ones((2, 3), np.complex64))) == -1


@pytest.mark.parametrize("given, dtype, cast", [  # recorded from TensorFlow 2.21
    ([300.0, -4.0, np.inf], "uint8", [255, 0, 255]),
    ([3e9, -3e9, 1.7], "int32", [2147483520, -2147483648, 1]),
    (np.array([1e300, -1e300, np.inf]), "float32", [3.4028235e38, -3.4028235e38, 3.4028235e38]),
    ([-1, 500], "uint8", [0, 255]),
    (np.array([1 + 2j]), "float32", [1.0]),
    ([1, 2], "complex64", [1.0, 2.0]),
])  # fmt: skip
def test_what_a_dtype_cannot_hold_becomes_the_nearest_that_it_can(given, dtype, cast):
    result = tw.saturate_cast(given, dtype)
    assert result.dtype == dtype
    np.testing.assert_array_equal(result.numpy(), np.array(cast, dtype))


@pytest.mark.parametrize("given", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint64", "float16"])
def test_the_largest_number_stays_large(given, dtype):
    most = np.finfo(given).max
    low, high = tw.saturate_cast(np.array([-most, most], given), dtype).numpy()
    info = (np.iinfo if "int" in dtype else np.finfo)(dtype)
    assert int(low) == max(int(info.min), -int(most))
    assert int(high) >= 0.999 * min(int(info.max), int(most))


def test_gradients_pass_through_a_saturating_cast_where_nothing_is_cut():
    x = tw.constant([1e300, 2.0], "float64")
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.saturate_cast(x, "float32")
    g = tape.gradient(y, x)
    assert g.dtype == tw.float64 and g.numpy().tolist() == [0.0, 1.0]


@pytest.mark.parametrize("cast", [tw.saturate_cast, tw.bitcast])
def test_booleans_have_no_range_and_no_bits_of_their_own(cast):
    with pytest.raises(TypeError, match="must be numeric, got bool"):
        cast([True], "int8")
    with pytest.raises(TypeError, match="must be numeric, got bool"):
        cast([1], "bool")


def test_bytes_read_as_a_larger_dtype_must_fill_it():
    with pytest.raises(ValueError, match="bitcast: .* the last axis must have size 2"):
        tw.bitcast([1.0, 2.0, 3.0], "float64")
    with pytest.raises(ValueError, match="bitcast: .* the last axis must have size 2"):
        tw.bitcast(1.0, "float64")


def test_bytes_are_the_same_there_and_back():
    x = tw.constant([[1.5, -2.0], [0.0, 3.0]])
    for dtype in ("int32", "uint8", "float64", "int16"):
        assert (
            tw.bitcast(tw.bitcast(x, dtype), "float32").numpy().tolist()
            == x.numpy().tolist()
        )


def test_an_infinite_imaginary_part_leaves_the_real_part_alone():
    z = tw.complex([1.0, 2.0], [np.inf, -np.inf]).numpy()
    np.testing.assert_array_equal(z.real, [1, 2])
    np.testing.assert_array_equal(z.imag, [np.inf, -np.inf])


@pytest.mark.parametrize(
    "op",
    [lambda x: tw.cast(x, "float32"), tw.math.real, tw.math.conj],
    ids=["cast", "real", "conj"],
)
@pytest.mark.parametrize(
    "make", [np.array, list, tw.Variable], ids=["array", "list", "variable"]
)
def test_what_is_right_already_is_a_tensor_all_the_same(op, make):
    given = make(np.array([1.0, 2.0], np.float32))
    result = op(given)
    assert type(result) is tw.Tensor
    if isinstance(given, np.ndarray):
        given[0] = 9.0
        assert result.numpy()[0] == 1.0


def test_complex_numbers_are_limited_part_by_part():
    top = np.finfo(np.float32).max
    wide = tw.constant([1e300 - 1e300j, 2.0 + 3.0j], "complex128")
    out = tw.saturate_cast(wide, "complex64").numpy()
    np.testing.assert_array_equal(out, np.array([top - top * 1j, 2 + 3j], np.complex64))
    real = tw.saturate_cast(tw.constant([1e300, -1e300], "float64"), "complex64")
    np.testing.assert_array_equal(real.numpy(), np.array([top, -top], np.complex64))
    assert tw.saturate_cast(wide, "uint8").numpy().tolist() == [255, 2]
    infinite = tw.constant([complex(np.inf, 1.0)], "complex64")
    assert np.isinf(tw.saturate_cast(infinite, "complex128").numpy().real).all()


quietly = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, of such casts
FLOATS = ("float16", "bfloat16", "float32", "float64", "complex64")
OUTSIDE = [np.nan, -np.inf, np.inf, -1.5, 300.7, -(2.0**40), 2.0**40, 2.0**70, 2.0**31]


def as_on_x86(x, dtype):
    """A number as an integer of 64 bits or less, by the rule in words."""
    bits = 8 * np.dtype(dtype).itemsize
    wide, unsigned = max(bits, 32), dtype.startswith("u")

    def signed(x):
        inside = -(2.0 ** (wide - 1)) <= x < 2.0 ** (wide - 1)  # not for NaN
        return int(x) if inside else -(2 ** (wide - 1))

    if unsigned and bits == wide and x >= 2.0 ** (bits - 1):
        whole = signed(x - 2.0 ** (bits - 1)) + 2 ** (bits - 1)
    else:
        whole = signed(x)
    whole %= 2**bits
    return whole if unsigned or whole < 2 ** (bits - 1) else whole - 2**bits


@quietly
@pytest.mark.parametrize("given", FLOATS)
@pytest.mark.parametrize("length", [1, 3, 9, 36])  # in vectors and one by one
def test_floats_out_of_range_are_the_same_integers_everywhere(given, length):
    every = tw.cast(tw.constant(np.tile(OUTSIDE, 4)), given)
    for start in range(0, 36, length):
        x = every[start : start + length]
        exact = tw.cast(x, "complex128" if given == "complex64" else "float64").numpy()
        for dtype in "int8 uint8 int16 uint16 int32 uint32 int64 uint64".split():
            expected = [as_on_x86(float(v.real), dtype) for v in exact]
            assert tw.cast(x, dtype).numpy().tolist() == expected, dtype


@quietly
@pytest.mark.parametrize("target", ["numpy", "native"])
def test_floats_out_of_range_are_the_same_in_traced_functions(target):
    with tw.config.use_target(target):
        for given in FLOATS[:4]:
            x = tw.cast(tw.constant(np.tile(OUTSIDE, 4)), given)
            every = "int8 uint8 int16 uint16 int32 uint32 int64 uint64 bool".split()

            @tw.function
            def casts(x, every=every):
                return [tw.cast(x + 0, dtype) for dtype in every]

            for dtype, traced in zip(every, casts(x)):
                np.testing.assert_array_equal(traced, tw.cast(x, dtype), dtype)


@quietly
@pytest.mark.parametrize("given", FLOATS[:4])
def test_other_processors_give_the_same_integers(given):
    x = tw.cast(tw.constant(np.array(OUTSIDE)), given)
    for dtype in "int8 uint8 int16 uint16 int32 uint32 int64 uint64".split():
        with np.errstate(all="ignore"):
            y = conversion._converted(np, x.numpy(), np.dtype(dtype), False)
        np.testing.assert_array_equal(y, tw.cast(x, dtype), dtype)
