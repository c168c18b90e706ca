"""Error functions, Bessel functions: the op table, values to the last digits, ends."""

import math

import numpy as np
import pytest

import tapewright as tw
from tapewright.test import case, check_op, floats

SHARE = {"low": 0.07, "high": 0.95}

erf, erfc = (np.vectorize(f, otypes=[float]) for f in (math.erf, math.erfc))


def inverse(f):
    """The inverse of a monotonous function between -9 and 9, by bisection."""

    def at(y):
        low, high = np.full(np.shape(y), -9.0), np.full(np.shape(y), 9.0)
        up = f(1.0) > f(0.0)
        for _ in range(70):
            middle = (low + high) / 2
            right = (f(middle) < y) == up
            low, high = np.where(right, middle, low), np.where(right, high, middle)
        return (low + high) / 2

    return np.vectorize(at, otypes=[float])


ndtri = inverse(lambda x: erfc(-x / math.sqrt(2)) / 2)


def bessel(nu, derivative=0):
    """A derivative of ``exp(-|x|) * I(x)`` by Bessel's integral, a mean over a circle."""

    def of(x):
        cosine = np.cos(np.linspace(0.0, 2 * np.pi, 400, endpoint=False))
        weight = (cosine - np.sign(x)[..., None]) ** derivative * cosine**nu
        return (np.exp(x[..., None] * cosine - np.abs(x)[..., None]) * weight).mean(-1)

    return of


CASES = [
    *[case(op, floats(*shape, **low), expect=f)
      for shape in [(2, 3), (), (0, 2)]
      for op, f, low in [
          ("erf", erf, {}), ("erfc", erfc, {}),
          ("erfinv", inverse(erf), {"low": -0.8, "high": 0.9}),
          ("erfcinv", inverse(erfc), {"low": 0.2, "high": 1.8}),
          ("ndtri", ndtri, SHARE),
          ("bessel_i0e", bessel(0), {}), ("bessel_i1e", bessel(1), {})]],
    case("erf", floats(40, low=-6.3, high=6.1), order=1, expect=erf),
    case("erfc", floats(40, low=-6.3, high=6.1), order=1, expect=erfc),
    case("exp_square", floats(2, 3), sign=-1.0, expect=lambda x: np.exp(-x * x)),
    case("exp_square", floats(4), sign=1.0, expect=lambda x: np.exp(x * x)),
    case("bessel_i0e", floats(40, low=-33.0, high=31.0), expect=bessel(0)),
    case("bessel_i1e", floats(40, low=-33.0, high=31.0), expect=bessel(1)),
    *[case("bessel_slope", floats(8, low=-30.0, high=31.0), nu=n, derivative=k,
           expect=bessel(n, k)) for n in (0, 1) for k in (1, 2, 5)],
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


# ------------------------------------------------------------------ to the last digits

# name, argument, value to 17 digits, from mpmath
VALUES = [
    ('erf', 1e-300, 1.1283791670955126e-300), ('erf', 0.25, 0.27632639016823696),
    ('erf', 0.46875, 0.49261347321793797), ('erf', 0.5, 0.5204998778130465),
    ('erf', 3.9, 0.9999999652077514), ('erf', -1.5, -0.9661051464753108),
    ('erfc', 0.25, 0.7236736098317631), ('erfc', 0.5, 0.4795001221869535),
    ('erfc', 2.0, 0.004677734981047266), ('erfc', 4.0, 1.541725790028002e-08),
    ('erfc', 4.5, 1.9661604415428876e-10), ('erfc', 10.0, 2.088487583762545e-45),
    ('erfc', 26.0, 5.663192408856143e-296), ('erfc', -1.5, 1.9661051464753108),
    ('erfinv', 1e-10, 8.862269254527581e-11), ('erfinv', 0.25, 0.2253120550121781),
    ('erfinv', -0.5, -0.4769362762044699), ('erfinv', 0.84375, 1.00253397062404),
    ('erfinv', 0.9375, 1.3171503349861307),
    ('erfinv', 0.9999990463256836, 3.465505025803331),
    ('erfcinv', 1e-300, 26.209469960516124), ('erfcinv', 1e-10, 4.572824967389486),
    ('erfcinv', 0.25, 0.8134198475976185), ('erfcinv', 1.5, -0.4769362762044699),
    ('ndtri', 1e-300, -37.0470962993612), ('ndtri', 1e-10, -6.361340902404057),
    ('ndtri', 0.0625, -1.5341205443525463), ('ndtri', 0.25, -0.6744897501960817),
    ('ndtri', 0.96875, 1.8627318674216515),
    ('bessel_i0e', 1e-300, 1.0), ('bessel_i0e', 0.25, 0.7910171621397194),
    ('bessel_i0e', 1.0, 0.46575960759364043),
    ('bessel_i0e', 7.999999999999999, 0.14343178185685032),
    ('bessel_i0e', 8.000000000000002, 0.1434317818568503),
    ('bessel_i0e', 19.75, 0.09035429414193132), ('bessel_i0e', 20.0, 0.08978031188482602),
    ('bessel_i0e', -1000.0, 0.012617240455891257),
    ('bessel_i0e', 1e+300, 3.9894228040143264e-151), ('bessel_i1e', 1e-300, 5e-301),
    ('bessel_i1e', 0.25, 0.09811262869736824), ('bessel_i1e', 1.0, 0.20791041534970844),
    ('bessel_i1e', 7.999999999999999, 0.13414249329269817),
    ('bessel_i1e', -19.75, -0.0880362924055135), ('bessel_i1e', 20.0, 0.08750622218328867),
    ('bessel_i1e', 1000.0, 0.012610930256928629),
    ('bessel_i1e', 1e+300, 3.9894228040143264e-151),
]  # fmt: skip


@pytest.mark.parametrize("name, x, value", VALUES)
def test_values_are_right_to_the_last_digits(name, x, value):
    f = getattr(tw.math, name)
    np.testing.assert_allclose(f(np.array(x)).numpy(), value, rtol=2e-15, atol=3e-16)


def test_scaled_bessel_functions_keep_their_digits_where_they_are_tiny():
    for f in (tw.math.bessel_i0e, tw.math.bessel_i1e):
        for x, value in [
            (1e16, 3.989422804014327e-09),
            (1e300, 3.9894228040143264e-151),
        ]:
            np.testing.assert_allclose(f(np.array(x)).numpy(), value, rtol=1e-15)
    assert tw.math.bessel_i1e(np.array(-1e-300)).numpy() == -5e-301


# order, order of the derivative, argument, value to 17 digits, from mpmath
SLOPES = [
    (0, 1, 0.5, -0.4886144672642784), (0, 1, 3.0, -0.046173640864524544),
    (0, 1, 25.0, -0.0016206602281439364), (0, 1, 1e4, -1.9947862106984187e-07),
    (0, 2, 0.5, 0.6643873281588133), (0, 2, 3.0, 0.026738377296615472),
    (0, 2, 25.0, 9.82759235161619e-05), (0, 2, 1e4, 2.992254131753587e-11),
    (0, 3, 0.5, -1.0546371653672098), (0, 3, 3.0, -0.025128698593116713),
    (0, 3, 25.0, -9.9346935363444e-06), (0, 3, 1e4, -7.480822382680316e-15),
    (1, 1, 0.5, 0.17577286089453498), (1, 1, 3.0, -0.01943526356790907),
    (1, 1, 25.0, -0.0015223843046277745), (1, 1, 1e4, -1.9944869852852436e-07),
    (1, 2, 0.5, -0.3902498372083965), (1, 2, 3.0, 0.0016096787034987584),
    (1, 2, 25.0, 8.834122997981751e-05), (1, 2, 1e4, 2.991506049515319e-11),
    (1, 3, 0.5, 0.7385868759823355), (1, 3, 3.0, 0.00569343502520764),
    (1, 3, 25.0, -8.528327942526654e-06), (1, 3, 1e4, -7.478204029372813e-15),
]  # fmt: skip


@pytest.mark.parametrize("n, order, x, value", SLOPES)
def test_slopes_of_bessel_functions_are_right_to_the_last_digits(
    slopes, n, order, x, value
):
    f = [tw.math.bessel_i0e, tw.math.bessel_i1e][n]
    near = 2e-15 if x < 20.0 else 0.0  # sums of terms of the size of the function
    np.testing.assert_allclose(slopes(f, x, order=order), value, rtol=1e-14, atol=near)
    mirrored = value * (-1) ** (n + order)
    np.testing.assert_allclose(
        slopes(f, -x, order=order), mirrored, rtol=1e-14, atol=near
    )


def test_slopes_of_bessel_functions_at_their_corner_and_at_infinity(slopes):
    # the slope of |x| at 0 counts as 0, as in TensorFlow
    i0e, i1e = tw.math.bessel_i0e, tw.math.bessel_i1e
    assert [slopes(i0e, 0.0, order=n) for n in (1, 2, 3)] == [0.0, 0.5, 0.0]
    assert [slopes(i1e, 0.0, order=n) for n in (1, 2, 3)] == [0.5, 0.0, 0.375]
    assert slopes(i0e, [INF, -INF]) == slopes(i1e, [INF, -INF]) == [0.0, 0.0]


def test_the_error_function_is_right_in_single_precision():
    x = np.linspace(-5.0, 5.0, 2001, dtype=np.float32)
    np.testing.assert_allclose(tw.math.erf(x).numpy(), erf(x), rtol=3e-7)
    assert tw.math.erf(np.float32([-5.0, 5.0])).numpy().tolist() == [-1.0, 1.0]


def test_a_large_array_goes_through_in_parts():
    x = np.random.default_rng(0).normal(size=(3, 40000))
    np.testing.assert_allclose(tw.math.erf(x).numpy(), erf(x), rtol=1e-14)
    single = tw.math.erf(x.astype(np.float32)).numpy()
    np.testing.assert_allclose(single, erf(x), rtol=1e-6)
    np.testing.assert_allclose(tw.math.erf(x.T).numpy(), erf(x.T), rtol=1e-14)


# ---------------------------------------------------------------- poles, ends, infinity


def at(f, *points):
    return f(np.array(points)).numpy()


INF, NAN = np.inf, np.nan


@pytest.mark.parametrize("f, points, values", [
    (tw.math.erf, [-INF, INF, NAN], [-1, 1, NAN]),
    (tw.math.erfc, [-INF, -30.0, 30.0, INF, NAN], [2, 2, 0, 0, NAN]),
    (tw.math.erfinv, [-1.0, 0.0, 1.0, 1.5, NAN], [-INF, 0, INF, NAN, NAN]),
    (tw.math.erfcinv, [0.0, 1.0, 2.0, -0.5], [INF, 0, -INF, NAN]),
    (tw.math.ndtri, [0.0, 0.5, 1.0, 1.5], [-INF, 0, INF, NAN]),
    (tw.math.bessel_i0e, [0.0, -0.0, INF, -INF, NAN], [1, 1, 0, 0, NAN]),
    (tw.math.bessel_i1e, [0.0, -0.0, INF, -INF, NAN], [0, 0, 0, 0, NAN]),
])  # fmt: skip
def test_the_edges_are_tensorflows(f, points, values):
    np.testing.assert_array_equal(at(f, *points), values)


# f, and a point where it or its derivative is infinite, or it is not defined
MASKED = [
    (tw.math.erf, INF), (tw.math.erfc, -INF), (tw.math.erfinv, 1.0), (tw.math.erfinv, 2.0),
    (tw.math.erfcinv, 0.0), (tw.math.ndtri, 0.0), (tw.math.ndtri, 1.0),
]  # fmt: skip


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("f, x", MASKED)
def test_a_masked_point_has_no_slope_instead_of_nan(slopes, f, x, order):
    masked = slopes(
        lambda x: tw.where([False], f(x), tw.zeros_like(x)), [x], order=order
    )
    assert masked == [0.0]


# --------------------------------------------------------------------------- dtypes


@pytest.mark.parametrize(
    "name", "erf erfc erfinv erfcinv ndtri bessel_i0e bessel_i1e".split()
)
def test_half_precision_stays_half_and_others_are_refused(name):
    f = getattr(tw.math, name)
    assert f(np.array([0.5], np.float16)).dtype == tw.float16
    with pytest.raises(TypeError, match=f"{name}: x must be"):
        f([1])
    with pytest.raises(TypeError, match=f"{name}: x must be floating"):
        f([1j])
