"""The gamma function and its kin: the op table, values to the last digits, poles."""

import math

import numpy as np
import pytest

import tapewright as tw
from tapewright.autodiff.gradient_check import case, check_op, floats

POSITIVE = {"low": 0.4, "high": 2.2}

lgamma = np.vectorize(math.lgamma, otypes=[float])


def digamma(x):
    """By the recurrence, from where the asymptotic series has three terms."""
    z = x + 2000.0
    steps = (1 / (np.asarray(x)[..., None] + np.arange(2000.0))).sum(-1)
    return np.log(z) - 1 / (2 * z) - 1 / (12 * z * z) - steps


def tail_sum(s, q):
    """``sum of (q + k) ** -s``: many terms, and the integral of the rest."""
    k = np.arange(20000.0)
    q, s = np.broadcast_arrays(q, s)
    rest = q + 20000.0
    head = ((q[..., None] + k) ** -s[..., None]).sum(-1)
    return head + rest ** (1 - s) / (s - 1) + rest**-s / 2 + s * rest ** (-s - 1) / 12


def polygamma(a, x):
    a = np.asarray(a)
    factorial = np.vectorize(math.factorial, otypes=[float])(a.astype(int))
    return (-1.0) ** (a + 1) * factorial * tail_sum(a + 1.0, np.asarray(x))


ORDERS = np.array([1.0, 2.0, 5.0])

CASES = [
    *[case("lgamma", floats(*shape, **POSITIVE), expect=lgamma)
      for shape in [(2, 3), (), (0, 2)]],
    case("lgamma", floats(6, low=3.0, high=25.0), expect=lgamma),
    case("lgamma", floats(3, low=-2.9, high=-2.1), expect=lgamma, label="negative"),
    case("digamma", floats(2, 3, **POSITIVE), expect=digamma),
    case("digamma", floats(0), expect=digamma),
    case("digamma", floats(4, low=3.0, high=25.0), expect=digamma),
    case("digamma", floats(3, low=-2.9, high=-2.1), expect=digamma, label="negative"),
    *[case("polygamma_of_order", floats(4, **POSITIVE), a=a,
           expect=lambda x, a=a: polygamma(a, x)) for a in (1, 2, 5)],
    case("polygamma_of_order", floats(2, 3, **POSITIVE), a=0, expect=digamma),
    case("polygamma_of_order", floats(2, low=-2.9, high=-2.1), a=2, label="negative",
         expect=lambda x: polygamma(2, x)),
    case("polygamma", ORDERS, floats(2, 3, low=1.1, high=2.9), expect=polygamma),
    case("polygamma", np.array(0.0), floats(2, 3, **POSITIVE),
         expect=lambda a, x: digamma(x)),
    case("polygamma", ORDERS[:, None], floats(2, low=-2.9, high=-2.1), label="negative",
         expect=polygamma),
    case("zeta", np.array([1.5, 2.0, 7.0]), floats(2, 3, **POSITIVE), expect=tail_sum),
    case("zeta", np.array(2.0), floats(2, **POSITIVE), expect=tail_sum),
    case(tw.math.lbeta, floats(2, 3, **POSITIVE),
         expect=lambda x: lgamma(x).sum(-1) - lgamma(x.sum(-1))),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


# ------------------------------------------------------------------ to the last digits

# name, argument, value to 17 digits, from mpmath
VALUES = [
    ('lgamma', 1e-300, 690.7755278982137), ('lgamma', 0.1, 2.252712651734206),
    ('lgamma', 0.5, 0.5723649429247001), ('lgamma', 0.9990234375, 0.0005644719118551234),
    ('lgamma', 1.0009765625, -0.0005629031799912047),
    ('lgamma', 1.5, -0.12078223763524522),
    ('lgamma', 1.9990234375, -0.0004125677359714894), ('lgamma', 2.5, 0.2846828704729192),
    ('lgamma', 3.0, 0.6931471805599453), ('lgamma', 7.75, 8.025458396315983),
    ('lgamma', 8.0, 8.525161361065415), ('lgamma', 100.5, 361.4355404677776),
    ('lgamma', 1000000000000000.0, 3.3538776394910668e+16),
    ('lgamma', 1e+300, 6.897755278982137e+302), ('lgamma', -0.5, 1.2655121234846454),
    ('lgamma', -1.5, 0.860047015376481), ('lgamma', -3.75, -1.3172679424463636),
    ('lgamma', -20.25, -41.60096191534053), ('digamma', 1e-10, -10000000000.577215),
    ('digamma', 0.25, -4.2274535333762655), ('digamma', 1.0, -0.5772156649015329),
    ('digamma', 2.0, 0.42278433509846713), ('digamma', 9.5, 2.1977378764029494),
    ('digamma', 10.0, 2.251752589066721), ('digamma', 10000000000.0, 23.025850929890456),
    ('digamma', -0.5, 0.03648997397857652), ('digamma', -1.75, -2.322691628614361),
    ('digamma', -10.3, 4.662403493582087),
]  # fmt: skip


@pytest.mark.parametrize("name, x, value", VALUES)
def test_values_are_right_to_the_last_digits(name, x, value):
    f = getattr(tw.math, name)
    np.testing.assert_allclose(f(np.array(x)).numpy(), value, rtol=2e-15, atol=3e-16)


@pytest.mark.parametrize("a, x, value", [
    (1, 0.125, 65.38813344498803), (1, 1.0, 1.6449340668482264), (1, 3.5, 0.3303577561002349),
    (1, 25.0, 0.04081066325722558), (1, -1.25, 19.181879647671607),
    (1, -7.875, 67.27461257919778), (2, 0.125, -1025.7533381181356),
    (2, 1.0, -2.4041138063191885), (2, 3.5, -0.1082040516417274),
    (2, 25.0, -0.001665279318422468), (2, -1.25, 123.72136678366236),
    (2, -7.875, -1022.3085975573977), (3, 0.125, 24580.143419063566),
    (3, 1.0, 6.493939402266829), (3, 3.5, 0.07030584881725205),
    (3, 25.0, 0.0001358846365082737), (3, -1.25, 1558.2209125348506),
    (3, -7.875, 24590.998943859453), (10, 0.125, -3.1171154648443836e+16),
    (10, 1.0, -3630593.311606629), (10, 3.5, -4.026693041232995),
    (10, 25.0, -4.621664515048832e-09), (10, -1.25, 15220204740174.338),
    (10, -7.875, -3.1171154632675904e+16),
])  # fmt: skip
def test_polygamma_is_right_to_the_last_digits(a, x, value):
    np.testing.assert_allclose(
        tw.math.polygamma(a, np.array(x)).numpy(), value, rtol=2e-15
    )
    by_tensor = tw.math.polygamma(np.array(float(a)), np.array(x))
    np.testing.assert_allclose(by_tensor.numpy(), value, rtol=4e-15)


# ---------------------------------------------------------------- poles, ends, infinity


def at(f, *points):
    return f(np.array(points)).numpy()


INF, NAN = np.inf, np.nan


@pytest.mark.parametrize("f, points, values", [
    (tw.math.lgamma, [0.0, 1.0, 2.0, -1.0, INF, -INF, NAN], [INF, 0, 0, INF, INF, INF, NAN]),
    (tw.math.digamma, [0.0, -1.0, INF, -INF, NAN], [NAN, NAN, INF, NAN, NAN]),
    (lambda x: tw.math.polygamma(1, x), [0.0, -1.0, INF, NAN], [INF, INF, 0, NAN]),
    (lambda x: tw.math.polygamma(2, x), [0.0, -1.0, INF, NAN], [NAN, NAN, 0, NAN]),
    (lambda x: tw.math.polygamma(1.5, x), [1.0], [NAN]),
    (lambda x: tw.math.polygamma(-1, x), [1.0], [NAN]),
    (lambda x: tw.math.zeta(x, np.array(1.0)), [1.0, 0.5, INF], [INF, NAN, NAN]),
    (lambda q: tw.math.zeta(np.array(2.5), q), [-0.5], [NAN]),
])  # fmt: skip
def test_the_edges_are_tensorflows(f, points, values):
    np.testing.assert_array_equal(at(f, *points), values)


# f, and a point where it or its derivative is infinite, or it is not defined
MASKED = [
    (tw.math.lgamma, 0.0), (tw.math.lgamma, -1.0), (tw.math.digamma, -2.0),
    (lambda x: tw.math.polygamma(2, x), 0.0),
]  # fmt: skip


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("f, x", MASKED)
def test_a_masked_point_has_no_slope_instead_of_nan(slopes, f, x, order):
    masked = slopes(
        lambda x: tw.where([False], f(x), tw.zeros_like(x)), [x], order=order
    )
    assert masked == [0.0]


# --------------------------------------------------------------- dtypes and arguments


@pytest.mark.parametrize("name", ["lgamma", "digamma"])
def test_half_precision_stays_half_and_others_are_refused(name):
    f = getattr(tw.math, name)
    assert f(np.array([0.5], np.float16)).dtype == tw.float16
    with pytest.raises(TypeError, match=f"{name}: x must be"):
        f([1])
    with pytest.raises(TypeError, match=f"{name}: x must be a real"):
        f([1j])


def test_integers_are_refused():
    with pytest.raises(TypeError, match="polygamma_of_order: x must be floating"):
        tw.math.polygamma(1, [2])
    with pytest.raises(TypeError, match="zeta: x and q must be real floating"):
        tw.math.zeta([2], [1])


def test_the_order_of_polygamma_is_a_tensor_too():
    a, x = tw.constant([1.0, 2.0]), tw.constant([[1.0], [2.0]])
    table = tw.math.polygamma(a, x).numpy()
    rows = [tw.math.polygamma(n, x).numpy()[:, 0] for n in (1, 2)]
    np.testing.assert_allclose(table, np.stack(rows, 1), rtol=1e-6)


def test_the_logarithm_of_beta_is_infinite_without_arguments():
    assert tw.math.lbeta(np.zeros((2, 0))).numpy().tolist() == [-np.inf, -np.inf]
