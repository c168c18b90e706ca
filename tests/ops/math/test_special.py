"""The error function and its inverses: the op table, values to the last digits, ends."""

import math

import numpy as np
import pytest

import tapewright as tw
from tapewright.autodiff.gradient_check import case, check_op, floats

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

CASES = [
    *[case(op, floats(*shape, **low), expect=f)
      for shape in [(2, 3), (), (0, 2)]
      for op, f, low in [
          ("erf", erf, {}), ("erfc", erfc, {}),
          ("erfinv", inverse(erf), {"low": -0.8, "high": 0.9}),
          ("erfcinv", inverse(erfc), {"low": 0.2, "high": 1.8}),
          ("ndtri", ndtri, SHARE)]],
    case("erf", floats(40, low=-6.3, high=6.1), order=1, expect=erf),
    case("erfc", floats(40, low=-6.3, high=6.1), order=1, expect=erfc),
    case("exp_square", floats(2, 3), sign=-1.0, expect=lambda x: np.exp(-x * x)),
    case("exp_square", floats(4), sign=1.0, expect=lambda x: np.exp(x * x)),
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
]  # fmt: skip


@pytest.mark.parametrize("name, x, value", VALUES)
def test_values_are_right_to_the_last_digits(name, x, value):
    f = getattr(tw.math, name)
    np.testing.assert_allclose(f(np.array(x)).numpy(), value, rtol=2e-15, atol=3e-16)


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


@pytest.mark.parametrize("name", "erf erfc erfinv erfcinv ndtri".split())
def test_half_precision_stays_half_and_others_are_refused(name):
    f = getattr(tw.math, name)
    assert f(np.array([0.5], np.float16)).dtype == tw.float16
    with pytest.raises(TypeError, match=f"{name}: x must be"):
        f([1])
    with pytest.raises(TypeError, match=f"{name}: x must be a real"):
        f([1j])
