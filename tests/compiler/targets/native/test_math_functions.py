"""Functions of numbers as machine code, against NumPy and against long doubles."""

import functools
import itertools
import re
from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from tapewright.compiler.program.instructions import scalar_functions  # noqa: E402
from tapewright.compiler.program.lowering import array_functions
from tapewright.compiler.targets.native.jit import engine  # noqa: E402
from tapewright.compiler.targets.native.llvm_writer import Writer  # noqa: E402
from tapewright.compiler.targets.native.math_functions import (
    is_supported,
    scalar_function,
)

from .native_loops import CPUS, Loops, ulps  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

FLOATS = [np.dtype(np.float32), np.dtype(np.float64)]
INTEGERS = [np.dtype(c) for c in "bBhHiIqQ"]
# in assembly of x86 and of Arm, whose vectors have names such as v1.4s and z1.d
CALLS = re.compile(r"^\s+(callq?|blr?)\s", re.MULTILINE)
VECTORS = re.compile(r"\b[yz]mm\d|\bv\d+\.(4s|2d|16b|8h)|\bz\d+\.")
# name -> largest error in ulp, of float32 and float64
UNARY = {
    "exp": (1, 1),
    "exp2": (1, 1.1),
    "expm1": (2, 2),
    "sinh": (2, 2),
    "cosh": (2, 2),
    "tanh": (2, 2),
    "log": (1, 1),
    "log2": (1, 1),
    "log10": (1, 1),
    "log1p": (2, 2),
    "arcsinh": (1, 3),
    "arccosh": (1, 3),
    "arctanh": (1, 3),
    "cbrt": (1, 1),
    "sin": (1, 1),
    "cos": (1, 1),
    "tan": (1, 2.5),
    "arcsin": (2, 2),
    "arccos": (2, 2),
    "arctan": (2, 2),
}
BINARY = {
    "hypot": (1, 1.5),
    "arctan2": (1, 2),
    "power": (1, 2),
    "float_power": (None, 2),
}
# their results are exact, or rounded correctly
EXACT = """add subtract multiply divide negative positive absolute fabs rint
sign heaviside conjugate sqrt square reciprocal greater greater_equal less less_equal
not_equal equal logical_and logical_or logical_xor logical_not maximum minimum fmax fmin
isfinite isinf isnan signbit copysign nextafter floor ceil trunc""".split()
OF_FLOAT32 = {"fmod", "remainder", "floor_divide"}  # exact, too


def bounded(table):
    """Names and dtypes that have a bound."""
    rows = [(n, d, b) for n, bounds in table.items() for d, b in zip(FLOATS, bounds)]
    return [(name, dtype) for name, dtype, bound in rows if bound is not None]


def signatures(dtypes):
    """All that are supported: name, dtypes of NumPy's loop."""
    for ufunc in sorted(array_functions.UFUNCS, key=lambda f: f.__name__):
        for loop in ufunc.types:
            inputs, output = loop.split("->")
            if set(inputs) <= set(dtypes) and is_supported(
                ufunc.__name__, inputs, output
            ):
                yield ufunc.__name__, inputs, output


@functools.cache
def loops(cpu, dtypes="fd"):
    return Loops(dict.fromkeys(signatures(dtypes)), cpu)


@functools.cache
def conversions():
    every = FLOATS + INTEGERS + [np.dtype(bool)]
    return Loops([("cast", (a,), b) for a in every for b in every])


def special(dtype):
    """Numbers at which something changes, and their neighbours."""
    info = np.finfo(dtype)
    at = [0, 1, 0.5, 2, 3, 10, np.pi / 2, np.e, np.inf, info.max, info.tiny]
    sub = info.smallest_subnormal
    at += [sub, 3 * sub, 1001 * sub, info.eps, 88.7228, 709.7827, 103.97, 745.13]
    at += [2.0**k for k in (23, 24, 31, 32, 52, 53, 63, 64, -24, -53)] + [1e30, 7.5]
    # close to multiples of pi / 2: the closest of float32 and of float64
    at += [252.89820861816406, 7.729178919452902e28, 5.319372648326541e255]
    x = np.array([v for v in at if v == np.inf or v <= float(info.max)], dtype)
    x = np.concatenate([x, np.nextafter(x, dtype.type(np.inf)), np.nextafter(x, -x)])
    return np.concatenate([x, -x, np.array([np.nan], dtype)])


def samples(dtype, n=40_000, seed=0):
    """Numbers of every size, and more of the usual ones."""
    rng = np.random.default_rng(seed)
    unsigned = np.dtype(f"u{dtype.itemsize}")
    whole = rng.integers(0, 2 ** (8 * dtype.itemsize), n, dtype=unsigned)
    usual = [rng.normal(0, s, n) for s in (0.1, 1, 20)] + [rng.normal(1, 0.1, n)]
    usual += [rng.uniform(-110, 110, n), rng.uniform(-750, 750, n)]
    return np.concatenate([whole.view(dtype), *usual, special(dtype)], dtype=dtype)


def pairs(dtype):
    x = special(dtype)
    return (np.repeat(x, x.size), np.tile(x, x.size))


def same(a, b):
    """Equal bits, but for those of NaN."""
    if a.dtype.kind != "f":
        return a == b
    unsigned = f"u{a.dtype.itemsize}"
    return (a.view(unsigned) == b.view(unsigned)) | (np.isnan(a) & np.isnan(b))


def assert_same(result, expected, *args, name=""):
    assert result.dtype == expected.dtype
    wrong = np.flatnonzero(~same(result, expected))[:5]
    shown = [name, tuple(a[wrong] for a in args), result[wrong], expected[wrong]]
    assert not wrong.size, shown


# ------------------------------------------------------------------------- approximations


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("name, dtype", bounded(UNARY), ids=str)
def test_errors_are_within_bounds(name, dtype, cpu):
    x = samples(dtype)
    exact = getattr(np, name)(x.astype(np.longdouble))
    errors = ulps(loops(cpu)(name, x), exact)
    worst = errors.argmax()
    assert errors[worst] <= UNARY[name][dtype == np.float64], (x[worst], errors[worst])


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("name, dtype", bounded(BINARY), ids=str)
def test_errors_of_two_arguments_are_within_bounds(name, dtype, cpu):
    x, y = samples(dtype, seed=1), samples(dtype, seed=2)
    lines = [np.concatenate(p) for p in zip((x, y), pairs(dtype))]
    ufunc = getattr(np, name)
    finite = np.isfinite(lines[0]) & np.isfinite(lines[1])
    # powl(-inf, -2**63) of glibc is wrong
    exact = np.where(
        finite, ufunc(*[x.astype(np.longdouble) for x in lines]), ufunc(*lines)
    )
    errors = ulps(loops(cpu)(name, *lines), exact)
    worst = errors.argmax()
    at = [x[worst] for x in lines]
    assert errors[worst] <= BINARY[name][dtype == np.float64], (at, errors[worst])


def pi_in(unit):
    """Pi in fractions of one (Machin's formula)."""

    def arctan_of_inverse(n):
        total = term = unit // n
        for k in itertools.count(3, 2):
            term //= -n * n
            if term in (0, -1):
                return total
            total += term // k

    return 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))


def nearest_multiples(digits, exponents):
    """Floats ``m 2**e`` next to multiples of ``pi / 2``: number of it, and what is left.

    The best ``m`` are denominators of the continued fraction of ``2**e * 2 / pi``.
    """
    unit = 1 << 1400
    pi = pi_in(unit)
    for e in exponents:
        scaled = Fraction(2 * unit, pi) * Fraction(2) ** e
        a, b = scaled.numerator, scaled.denominator
        (n, before_n), (m, before_m) = (1, 0), (0, 1)
        while b:
            quotient, rest = divmod(a, b)
            if quotient * m + before_m >= 2**digits:
                break
            (n, before_n), (m, before_m) = (
                (quotient * n + before_n, n),
                (quotient * m + before_m, m),
            )
            a, b = b, rest
        left = (m * scaled - n) * Fraction(pi, 2 * unit)
        yield float(m) * 2.0**e, n, float(left)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_sines_next_to_multiples_of_half_pi_are_right_to_the_last_digits(dtype, cpu):
    digits, exponents = (24, range(104)) if dtype == "f" else (53, range(971))
    found = list(nearest_multiples(digits, exponents))
    x, left = [np.array([row[i] for row in found]) for i in (0, 2)]
    number = np.array([row[1] % 4 for row in found])
    odd, negative = number % 2 == 1, (number == 1) | (number == 2)
    sin, cos = [loops(cpu)(name, x.astype(dtype)) for name in ("sin", "cos")]
    assert x.astype(dtype).astype(float).tolist() == x.tolist()
    small, expected = np.where(odd, cos, sin), np.where(negative, -left, left)
    assert ulps(small, expected.astype(np.longdouble)).max() <= 1
    assert (np.abs(np.where(odd, sin, cos)) == 1).all()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_logaddexp_is_numpys_within_rounding(dtype):
    x, y = [np.concatenate([a, b]) for a, b in zip(pairs(dtype), pairs(dtype)[::-1])]
    x, y = np.append(x, samples(dtype, seed=1)), np.append(y, samples(dtype, seed=2))
    exact = np.logaddexp(x.astype(np.longdouble), y.astype(np.longdouble))
    result, expected = loops(None)("logaddexp", x, y), exact.astype(dtype)
    finite = np.isfinite(expected)
    assert_same(result[~finite], expected[~finite], x[~finite], y[~finite])
    # the sum may cancel, as NumPy's does
    scale = np.maximum(np.abs(np.maximum(x, y)), np.finfo(dtype).tiny)[finite]
    error = np.abs(result[finite].astype(np.longdouble) - exact[finite])
    assert (error <= 3 * np.finfo(dtype).eps * np.maximum(scale, np.log(2))).all()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_results_do_not_jump_where_a_formula_ends(dtype):
    for name, at in [("tanh", 0.54), ("sinh", 1.0), ("exp", 0.0), ("log", 1.0)]:
        x = np.array(at, dtype) + np.arange(-500, 500) * np.finfo(dtype).eps.astype(
            dtype
        )
        errors = ulps(loops(None)(name, x), getattr(np, name)(x.astype(np.longdouble)))
        assert errors.max() <= 2, name


# ----------------------------------------------------------------------- exact functions


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_exact_functions_of_floats_are_numpys(name, dtype, cpu):
    ufunc = getattr(np, name)
    args = pairs(dtype) if ufunc.nin == 2 else (samples(dtype),)
    expected = ufunc(*args)
    assert_same(loops(cpu)(name, *args, output=expected.dtype), expected, *args)


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("name", sorted(OF_FLOAT32))
def test_rests_of_float32_are_numpys(name, cpu):
    x, y = [samples(FLOATS[0], seed=s) for s in (1, 2)]
    near = np.nextafter(x * np.round(y, 0), np.float32(0))  # around whole quotients
    a, b = pairs(FLOATS[0])
    x, y = np.concatenate([x, near, a]), np.concatenate([y, x, b])
    assert_same(loops(cpu)(name, x, y), getattr(np, name)(x, y), x, y)


def integers_of(dtype):
    """All of a byte, edges and some others of the rest."""
    if dtype.kind == "b":
        return np.array([False, True])
    info = np.iinfo(dtype)
    if dtype.itemsize == 1:
        return np.arange(info.min, info.max + 1, dtype=dtype)
    edges = {info.min, info.min + 1, info.max, info.max - 1, info.max // 2, 100, 1000}
    edges |= {n for n in range(-70, 70) if n >= info.min}
    return np.array(sorted(edges), dtype)


@pytest.mark.usefixtures("few_passes")
@pytest.mark.parametrize("code", "?bBhHiIqQ")
def test_functions_of_integers_are_numpys(code):
    x = integers_of(np.dtype(code))
    x = np.append(x, x[: 7 - x.size % 7])
    crossed = (np.repeat(x, x.size), np.tile(x, x.size))
    seen = list(signatures(code))
    for name, inputs, output in seen:
        args = crossed if len(inputs) == 2 else (x,)
        if name == "reciprocal" and engine.host().architecture != "x86_64":
            args = (x[x != 0],)  # infinity as an integer, which is the processor's
        expected = getattr(np, name)(*args)
        result = loops(None, code)(name, *args, output=output)
        assert_same(result, expected.astype(output), *args, name=name)
    assert len(seen) > (25 if code == "?" else 35)


@pytest.mark.parametrize("codes", ["qQ", "Qq"])
def test_signed_and_unsigned_integers_are_compared_by_value(codes):
    x, y = [integers_of(np.dtype(c)) for c in codes]
    x, y = np.repeat(x, y.size), np.tile(y, x.size)
    for name in (
        "less",
        "less_equal",
        "greater",
        "greater_equal",
        "equal",
        "not_equal",
    ):
        result = loops(None, "qQ")(name, x, y, output=bool)
        assert_same(result, getattr(np, name)(x, y), x, y)


@pytest.mark.parametrize("output", FLOATS + INTEGERS + [np.dtype(bool)], ids=str)
@pytest.mark.parametrize("source", FLOATS, ids=str)
def test_casts_of_floats_are_numpys_out_of_range_too(source, output):
    x = np.concatenate(
        [samples(source), np.array([300.7, 7e4, 3e9, 1e10, 5e18], source)]
    )
    x = np.concatenate([x, -x])
    if engine.host().architecture != "x86_64" and output.kind in "iu":
        # There NumPy's own results differ from array to array, by its length.
        info = np.iinfo(output)
        x = x[
            (np.trunc(x) >= info.min)
            & (np.trunc(x) < 2.0 ** int(info.max).bit_length())
        ]
    expected = np.empty(x.shape, output)
    np.copyto(expected, x, casting="unsafe")
    assert_same(conversions()("cast", x, output=output), expected, x)


@pytest.mark.parametrize("source", INTEGERS + [np.dtype(bool)], ids=str)
def test_casts_of_integers_are_numpys(source):
    x = integers_of(source)
    for output in FLOATS + INTEGERS + [np.dtype(bool)]:
        expected = x.astype(output)
        assert_same(conversions()("cast", x, output=output), expected, x)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("bits", "biq")
def test_masks_of_bits_drop_whatever_is_there(dtype, bits):
    bits = np.dtype(bits)
    native = Loops(
        [("positive_bits", (dtype,), bits), ("kept_bits", (dtype, bits), dtype)]
    )
    x = np.append(special(dtype), special(dtype))
    kept = np.arange(x.size) < x.size // 2
    mask = -kept.astype(bits)
    result = native("kept_bits", x, mask)
    assert_same(result, np.where(kept, x, dtype.type(0)), x, mask)
    expected = np.empty(x.shape, bits)
    scalar_functions.positive_bits(x, expected)
    assert_same(native("positive_bits", x, output=bits), expected, x)


# ------------------------------------------------------------------------------ the rest


@pytest.mark.parametrize("cpu", CPUS[:2])
def test_loops_are_vectorized_and_make_no_calls(cpu):
    native = loops(cpu)
    for signature in native.signatures:
        text = native.assembly_of(*signature)
        assert not CALLS.search(text), signature
        if signature[0] in ("conjugate", "positive"):
            continue  # a copy of memory
        assert VECTORS.search(text), signature


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_where_takes_whatever_stands_there(dtype):
    x, y = pairs(dtype)
    native = Loops([("where", (bool, dtype, dtype), dtype)])
    chosen = np.arange(x.size) % 3 == 0
    assert_same(
        native("where", chosen, x, y, output=dtype), np.where(chosen, x, y), x, y
    )


def test_complex_numbers_are_left_to_numpy():
    for ufunc in array_functions.UFUNCS:
        for dtype in (np.complex64, np.complex128, np.longdouble):
            inputs = [dtype] * ufunc.nin
            assert not is_supported(ufunc.__name__, inputs, dtype)
    assert not is_supported("cast", [np.complex64], np.float32)
    assert not is_supported("exp", [np.int32], np.float64)
    assert is_supported("exp", [np.float32], np.float32)


def test_float16_has_the_functions_of_float32_but_its_neighbours():
    for ufunc in array_functions.UFUNCS:
        half, single = (
            is_supported(ufunc.__name__, [dtype] * ufunc.nin, dtype)
            for dtype in (np.float16, np.float32)
        )
        assert half == (single and ufunc is not np.nextafter), ufunc
    assert is_supported("cast", [np.float32], np.float16)


def test_an_unknown_function_is_refused_by_name():
    writer = Writer()
    x = writer.const(1, np.int32)
    with pytest.raises(NotImplementedError, match="no_such_function.*int32"):
        scalar_function(writer, "no_such_function", [x], np.int32)


def test_every_function_is_tested():
    named = {name for name, *_ in signatures("fd")}
    assert named == {*UNARY, *BINARY, *EXACT, *OF_FLOAT32, "logaddexp"}
    assert not set(itertools.chain(UNARY, BINARY)) & set(EXACT)
