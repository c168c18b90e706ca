"""Functions of numbers as C, against NumPy, on values of all kinds."""

import numpy as np
import pytest

from tapewright.compiler.program.instructions import scalar_functions as own
from tapewright.compiler.program.lowering.array_functions import UFUNCS
from tapewright.compiler.targets.cuda.scalar_functions import is_supported, literal

from ....stand_in import nvrtc, shim
from .nest_runs import Kernel, run, source_of

pytestmark = pytest.mark.skipif(not shim.gcc(), reason="gcc is not installed")

DTYPES = [np.dtype(t) for t in "? b B h H i I q Q e f d".split()]
FLOATS = [np.dtype(t) for t in "efd"]
ULPS = {"e": 1, "f": 4, "d": 4}  # how far functions of two libraries may lie apart
EXACT = set(
    """add subtract multiply divide negative positive reciprocal square absolute fabs sign
    heaviside rint floor ceil trunc maximum minimum fmax fmin copysign nextafter sqrt fmod
    remainder floor_divide""".split()
)


def numbers(dtype, seed):
    """Numbers of all sizes, and those that are special."""
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return rng.integers(0, 2, 64).astype(bool)
    if dtype.kind != "f":
        limits = np.iinfo(dtype)
        few = [0, 1, 2, 3, 7, limits.max, limits.min, limits.max // 2, limits.min // 2]
        few += [-1, -2, -3, -7] if dtype.kind == "i" else []
        wide = rng.integers(limits.min, limits.max, 40, dtype, endpoint=True)
        return np.concatenate([np.array(few, dtype), wide])
    limits = np.finfo(dtype)
    few = [0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, np.inf, -np.inf, np.nan, 3, -3, 100]
    few += [
        limits.max,
        limits.min,
        limits.tiny,
        -limits.tiny,
        limits.smallest_subnormal,
    ]
    few += [2.0**31, -(2.0**31), 2.0**63, -(2.0**63), 2.0**32, 300, -129, 70000]
    wide = rng.standard_normal(40) * np.exp(rng.uniform(-6, 6, 40))
    with np.errstate(over="ignore"):
        return np.concatenate([np.array(few, np.float64), wide]).astype(dtype)


def pairs(first, second):
    """Every pair of two arrays."""
    a, b = np.meshgrid(first, second, indexing="ij")
    return a.ravel(), b.ravel()


def assert_same(name, found, wanted):
    assert found.dtype == wanted.dtype
    if wanted.dtype.kind != "f":
        np.testing.assert_array_equal(found, wanted, name)
        return
    nan = np.isnan(wanted)
    np.testing.assert_array_equal(np.isnan(found), nan, name)
    found, wanted = found[~nan], wanted[~nan]
    np.testing.assert_array_equal(np.isinf(found), np.isinf(wanted), name)
    if name not in ("maximum", "minimum", "fmax", "fmin"):  # of zeros, either may come
        np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted), name)
    if name in EXACT:
        np.testing.assert_array_equal(found, wanted, name)
        return
    is_finite = np.isfinite(wanted)
    found, wanted = found[is_finite], wanted[is_finite]
    np.testing.assert_array_max_ulp(found, wanted, ULPS[wanted.dtype.char])


def supported(ufunc, dtype):
    """The dtypes of NumPy's loop for numbers of a dtype, if there is code for it."""
    try:
        *inputs, output = ufunc.resolve_dtypes((dtype,) * ufunc.nin + (None,))
    except TypeError:
        return False
    return is_supported(ufunc.__name__, inputs, output)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_ufunc_gives_what_numpy_gives(dtype):
    ufuncs = sorted(
        [u for u in UFUNCS if supported(u, dtype)], key=lambda u: u.__name__
    )
    a, b = pairs(numbers(dtype, 0), numbers(dtype, 1))
    kernel = Kernel(a, b)
    outputs = [kernel.map(u, *kernel.inputs[: u.nin]) for u in ufuncs]
    found = run(kernel.formed(*outputs), [a, b])
    assert len(ufuncs) >= {"b": 20, "u": 30, "i": 30, "f": 60}[dtype.kind]
    with np.errstate(all="ignore"):
        for ufunc, got in zip(ufuncs, found):
            name = {"abs": "absolute", "conj": "conjugate"}.get(ufunc.__name__)
            wanted = ufunc(*[a, b][: ufunc.nin])
            if ufunc is np.nextafter:  # NumPy 2.4 has x's sign of zero in float16
                wanted = np.where(a == b, b, wanted)
            assert_same(name or ufunc.__name__, got, wanted)


def cast_to(dtype):
    def cast(x, out=None):
        return own.cast(x, out, dtype)

    return cast


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_cast_gives_what_numpy_gives(dtype):
    x = numbers(dtype, 0)
    kernel = Kernel(x)
    outputs = [kernel.map(cast_to(d), *kernel.inputs, dtype=d) for d in DTYPES]
    found = run(kernel.formed(*outputs), [x])
    with np.errstate(all="ignore"):
        for d, got in zip(DTYPES, found):
            if dtype.kind == "f" and d.kind in "iu":
                # vector code of NumPy differs where an integer has no such number
                limits = np.iinfo(d)
                is_in = (x >= float(limits.min)) & (x < float(limits.max))
                assert_same("positive", got[is_in], x[is_in].astype(d))
            else:
                assert_same("positive", got, x.astype(d))


@pytest.mark.parametrize("wide", [np.int32, np.int64], ids=lambda t: t.__name__)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_floats_out_of_the_range_become_the_lowest_integer(dtype, wide):
    x = np.array([np.nan, np.inf, -np.inf, 1e10, -1e10, 1e20, 5.9, -5.9])
    with np.errstate(over="ignore"):
        x = x.astype(dtype)
    kernel = Kernel(x)
    out = kernel.map(cast_to(wide), *kernel.inputs, dtype=wide)
    (found,) = run(kernel.formed(out), [x])
    lowest = np.iinfo(wide).min
    wanted = [int(n) if abs(float(n)) < -float(lowest) else lowest for n in x]
    np.testing.assert_array_equal(found, wanted)


def test_integers_of_64_bits_with_and_without_sign_are_compared_as_numbers():
    a, b = pairs(numbers(np.dtype("q"), 0), numbers(np.dtype("Q"), 1))
    kernel = Kernel(a, b)
    ufuncs = [np.less, np.less_equal, np.greater, np.greater_equal, np.equal]
    ufuncs.append(np.not_equal)
    outputs = [kernel.map(u, *kernel.inputs) for u in ufuncs]
    outputs += [kernel.map(u, *kernel.inputs[::-1]) for u in ufuncs]
    found = run(kernel.formed(*outputs), [a, b])
    wanted = [u(a, b) for u in ufuncs] + [u(b, a) for u in ufuncs]
    for got, want in zip(found, wanted):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_where_selects_bits(dtype):
    a, b = pairs(numbers(dtype, 0), numbers(dtype, 1))
    condition = np.random.default_rng(2).integers(0, 2, a.size).astype(bool)
    kernel = Kernel(condition, a, b)
    out = kernel.map(own.where, *kernel.inputs, dtype=dtype)
    (found,) = run(kernel.formed(out), [condition, a, b])
    assert_same("positive", found, np.where(condition, a, b))


@pytest.mark.parametrize("bits", [np.int8, np.int32])
def test_bits_of_positive_numbers_keep_others(bits):
    x, y = pairs(numbers(np.dtype("f"), 0), numbers(np.dtype("f"), 1))
    kernel = Kernel(x, y)
    mask = kernel.map(own.positive_bits, kernel.inputs[1], dtype=bits)
    kept = kernel.map(own.kept_bits, kernel.inputs[0], mask, dtype=np.float32)
    found, got = run(kernel.formed(mask, kept), [x, y])
    np.testing.assert_array_equal(found, np.where(y > 0, -1, 0).astype(bits))
    np.testing.assert_array_equal(
        got.view(np.int32), np.where(y > 0, x, np.float32(0)).view(np.int32)
    )


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_constants_keep_their_bits(dtype):
    values = numbers(dtype, 3)
    x = np.zeros(3, dtype)
    kernel = Kernel(x)
    condition = kernel.constant(np.zeros((), bool))
    outputs = [
        kernel.map(
            own.where, condition, kernel.inputs[0], kernel.constant(v), dtype=dtype
        )
        for v in values
    ]
    found = run(kernel.formed(*outputs), [x])
    for v, got in zip(values, found):
        assert (got == v).all() or (v != v and (got != got).all()), literal(v, dtype)
        assert v != v or dtype.kind != "f" or (np.signbit(got) == np.signbit(v)).all()


@pytest.mark.skipif(bool(nvrtc.missing()), reason=nvrtc.missing())
@pytest.mark.parametrize(
    "arch, letters", [("sm_80", "?if"), ("sm_90", "Qed"), ("sm_100", "ef")]
)
def test_every_function_compiles_for_a_gpu(arch, letters):
    dtypes = [np.dtype(letter) for letter in letters]
    kernel, outputs = Kernel(*[np.ones(4, d) for d in dtypes]), []
    for x in kernel.inputs:
        own = [u for u in UFUNCS if supported(u, x.dtype)]
        own = [
            u
            for u in own
            if u.resolve_dtypes((x.dtype,) * u.nin + (None,))[0] == x.dtype
        ]
        outputs += [kernel.map(u, *(x,) * u.nin) for u in own]
        outputs += [kernel.map(cast_to(d), x, dtype=d) for d in DTYPES]
    assert nvrtc.compile_for(source_of(kernel.formed(*outputs)), arch)
