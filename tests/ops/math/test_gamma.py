"""The gamma function and its kin: the op table, values to the last digits, poles."""

import math

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.primitive import get_primitive
from tapewright.test import case, check_op, floats

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


def lower(a, x):
    """P(a, x) by its power series, A&S 6.5.29."""
    a, x, n = a[..., None], x[..., None], np.arange(300.0)
    return np.exp((a + n) * np.log(x) - x - lgamma(a + n + 1.0)).sum(-1)


def upper(a, x):
    return 1.0 - lower(a, x)


def density(a, x):
    return x ** (a - 1.0) * np.exp(-x - lgamma(a))


def by_x(f):
    """``f`` for some ``a``, which is varied no further."""
    a = [0.5, 1.0, 1.7, 2.0, 3.3, 12.0, 21.0, 25.0, 30.0]
    return lambda x: f(tw.constant(a, tw.float64), x)


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
    *[case(op, floats(*shapes[0], **POSITIVE), floats(*shapes[1], low=0.2, high=9.0),
           order=1, single=False, expect=f)
      for shapes in [((2, 3), (2, 3)), ((2, 1), (3,)), ((), (2,)), ((0,), ())]
      for op, f in [("igamma", lower),
                    ("igammac", upper)]],
    *[case(op, floats(6, low=21.0, high=60.0), floats(6, low=9.0, high=90.0), order=1,
           single=False, expect=f, label="large")
      for op, f in [("igamma", lower),
                    ("igammac", upper)]],
    case("igamma", floats(3, **POSITIVE), floats(2, 3, low=0.2, high=9.0), order=0,
         expect=lower, label="single precision"),
    *[case(by_x(f), floats(9, low=0.2, high=31.0), single=False, label=name)
      for name, f in [("igamma by x", tw.math.igamma), ("igammac by x", tw.math.igammac)]],
    case("igamma_slope", floats(2, 3, **POSITIVE), floats(3, low=0.2, high=9.0), order=0),
    case(by_x(get_primitive("igamma_slope").entry),
         floats(9, low=0.2, high=31.0), single=False, label="igamma_slope by x"),
    *[case("gamma_density", floats(2, 3, low=low, high=high), floats(3, low=0.2, high=top),
           expect=density, label=label)
      for low, high, top, label in [(0.4, 2.2, 3.0, ""), (21.0, 40.0, 50.0, "large")]],
    case("gamma_density", floats(), floats(low=0.5, high=2.0), expect=density),
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


# a, x, P, Q, the derivative of P by a, to 17 digits, from mpmath
INCOMPLETE = [
    (1e-08, 0.5, 0.9999999944022641, 5.597735977099587e-09, -0.5597736006437566),
    (1e-08, 30.0, 1.0, 3.02155213184547e-23, -3.0215522530021292e-15),
    (0.1, 1e-10, 0.10511370061022218, 0.8948862993897778, -2.375789951015582),
    (0.5, 0.75, 0.7793286380801532, 0.2206713619198468, -0.5049932647035204),
    (0.5, 1.25, 0.886153701993342, 0.11384629800665805, -0.29978036604510566),
    (1.0, 1.1, 0.6671289163019205, 0.33287108369807955, -0.40985531127824537),
    (1.5, 5.0, 0.9814338645369568, 0.018566135463043233, -0.03258463050623639),
    (2.5, 0.125, 0.0015208185533684398, 0.9984791814466316, -0.004855885686395028),
    (10.0, 9.5, 0.4781739777627926, 0.5218260222372074, -0.1288276416793082),
    (19.5, 35.0, 0.9983210010300474, 0.001678998969952637, -0.0011132986750633607),
    (20.0, 12.5, 0.03059412892699658, 0.9694058710730035, -0.016790173622846728),
    (50.0, 50.0, 0.5188083154720433, 0.48119168452795674, -0.05651312752336055),
    (100.0, 65.0, 3.372775722939482e-05, 0.9999662722427706, -1.5244052737512094e-05),
    (150.0, 300.0, 1.0, 3.290836613617175e-22, -2.3134003149949967e-22),
    (1000.0, 1000.0, 0.5042052441802155, 0.4957947558197845, -0.012616713994069625),
    (10000.0, 9500.0, 1.862454651795155e-07, 0.9999998137545348, -9.892319012214694e-09),
    (1e6, 1002000.0, 0.9771959041012301, 0.022804095898769864, -5.4080860028467676e-05),
    (1e6, 2e6, 1.0, 0.0, 0.0),
]  # fmt: skip


@pytest.mark.parametrize("a, x, p, q, by_a", INCOMPLETE)
def test_incomplete_gamma_functions_are_right_to_the_last_digits(
    slopes, a, x, p, q, by_a
):
    found = [
        f(np.array(a), np.array(x)).numpy() for f in (tw.math.igamma, tw.math.igammac)
    ]
    np.testing.assert_allclose(found, [p, q], rtol=4e-15)
    np.testing.assert_allclose(slopes(tw.math.igamma, a, x), by_a, rtol=6e-15)
    np.testing.assert_allclose(slopes(tw.math.igammac, a, x), -by_a, rtol=6e-15)


@pytest.mark.parametrize("f, a, x, value", [
    (tw.math.igamma, 1000.0, 600.0, 2.324060057960917e-50),
    (tw.math.igamma, 150.0, 1.0, 6.481830476248712e-264),
    (tw.math.igammac, 50.0, 600.0, 6.390680383682107e-188),
    (tw.math.igammac, 1e4, 1.4e4, 1.2615264204743979e-278),
])  # fmt: skip
def test_far_tails_of_the_gamma_distribution_keep_twelve_digits(f, a, x, value):
    np.testing.assert_allclose(f(np.array(a), np.array(x)).numpy(), value, rtol=1e-12)


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


POINTS = [0.0, 0.5, INF, -0.5, -INF, NAN]


@pytest.mark.parametrize("a, lower, upper", [
    (0.0, [0, NAN, NAN, NAN, NAN, NAN], [NAN] * 6),
    (-0.5, [0, NAN, NAN, NAN, NAN, NAN], [NAN] * 6),
    (0.5, [0, 0.6826894921370859, 1, NAN, NAN, NAN],
     [1, 0.31731050786291415, 0, NAN, NAN, NAN]),
    (1e-30, [0, 1, 1, NAN, NAN, NAN], [1, 5.597735947761608e-31, 0, NAN, NAN, NAN]),
    (INF, [0, 0, 0, NAN, NAN, NAN], [1, 1, 0, NAN, NAN, NAN]),
    (NAN, [0, NAN, NAN, NAN, NAN, NAN], [NAN] * 6),
])  # fmt: skip
def test_the_edges_of_incomplete_gamma_functions_are_tensorflows(a, lower, upper):
    # but for igammac(1e-30, 0.5), which TensorFlow finds to be -2e-15
    for f, values in ((tw.math.igamma, lower), (tw.math.igammac, upper)):
        found = f(np.array(a), np.array(POINTS)).numpy()
        np.testing.assert_allclose(found, values, rtol=1e-14)


def igamma_by_x(x, a):
    return tw.math.igamma(a, x)


def igammac_by_x(x, a):
    return tw.math.igammac(a, x)


@pytest.mark.parametrize("a, wanted", [
    (0.5, [INF, -INF, INF]), (1.0, [1.0, -1.0, 1.0]), (2.0, [0.0, 1.0, -2.0]),
    (3.0, [0.0, 0.0, 1.0]), (4.5, [0.0, 0.0, 0.0]),
])  # fmt: skip
def test_the_slopes_of_igamma_at_0_are_limits(slopes, a, wanted):
    for order, value in enumerate(wanted, 1):
        assert slopes(igamma_by_x, 0.0, a, order=order) == value
        assert slopes(igammac_by_x, 0.0, a, order=order) == -value


@pytest.mark.parametrize("a", [0.5, 1.0, 30.0])
def test_the_slopes_of_igamma_vanish_at_infinity(slopes, a):
    assert [slopes(igamma_by_x, INF, a, order=n) for n in (1, 2, 3)] == [0.0, 0.0, 0.0]
    assert slopes(tw.math.igamma, a, INF) == slopes(tw.math.igamma, a, 0.0) == 0.0


def test_mixed_derivatives_of_igamma_are_those_of_the_density(slopes):
    def by_x(a, x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            p = tw.math.igamma(a, x)
        return tape.gradient(p, x)

    a, x = 2.5, 1.75
    wanted = density(a, x) * (np.log(x) - digamma(a))
    np.testing.assert_allclose(slopes(by_x, a, x), wanted, rtol=1e-9)


def test_a_second_derivative_of_igamma_by_a_is_refused(slopes):
    for f in (tw.math.igamma, tw.math.igammac):
        with pytest.raises(
            tw.errors.GradientLookupError, match="'IgammaGradA'.*for 'a'"
        ):
            slopes(f, 2.0, 1.5, order=2)


# f, and a point where it or its derivative is infinite, or it is not defined
MASKED = [
    (tw.math.lgamma, 0.0), (tw.math.lgamma, -1.0), (tw.math.digamma, -2.0),
    (lambda x: tw.math.polygamma(2, x), 0.0),
    *[(lambda x, a=a: tw.math.igamma(tw.constant([a], tw.float64), x), x)
      for a, x in [(0.5, 0.0), (0.5, -1.0), (-1.0, 2.0), (2.0, INF)]],
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
    with pytest.raises(TypeError, match=f"{name}: x must be floating"):
        f([1j])


def test_integers_are_refused():
    with pytest.raises(TypeError, match="polygamma_of_order: x must be floating"):
        tw.math.polygamma(1, [2])
    with pytest.raises(TypeError, match="zeta: x must be floating"):
        tw.math.zeta([2], [1])
    for f in (tw.math.igamma, tw.math.igammac):
        with pytest.raises(TypeError, match="igammac?: a must be floating"):
            f([2], [1])


def test_incomplete_gamma_functions_are_there_in_half_precision():
    a = np.array([0.5, 2.0, 40.0], np.float16)
    x = np.array([0.25, 3.0, 35.0], np.float16)
    for f in (tw.math.igamma, tw.math.igammac):
        assert f(a, x).dtype == tw.float16
        wide = f(a.astype(np.float64), x.astype(np.float64)).numpy()
        np.testing.assert_array_equal(f(a, x).numpy(), wide.astype(np.float16))


def test_the_order_of_polygamma_is_a_tensor_too():
    a, x = tw.constant([1.0, 2.0]), tw.constant([[1.0], [2.0]])
    table = tw.math.polygamma(a, x).numpy()
    rows = [tw.math.polygamma(n, x).numpy()[:, 0] for n in (1, 2)]
    np.testing.assert_allclose(table, np.stack(rows, 1), rtol=1e-6)


def test_the_logarithm_of_beta_is_infinite_without_arguments():
    assert tw.math.lbeta(np.zeros((2, 0))).numpy().tolist() == [-np.inf, -np.inf]


# The order, x, and the value, from mpmath.
HIGH_ORDERS = np.array([
    (59, 0.5, 1.5989074969726645e+98),
    (59, 1000.0, 2.4205962624443513e-99),
    (61, 10.0, 5.089642249068296e+21),
    (100, 0.5, -2.366100660490897e+188),
    (100, 1000.0, -9.807106203035294e-145),
    (169, 100.0, 5.237721077977481e-36),
    (170, 10.0, -7.257416221531799e+135),
    (171, 3.0, 1.0688636146529578e+227),
    (171, 1000000.0, 0.0),
    (200, 1000.0, -4.3508192705971016e-228),
    (500, 1000000.0, -0.0),
    (1000000, 1000000.0, -0.0),
])  # fmt: skip


def test_polygamma_of_high_orders_neither_over_nor_underflows_on_the_way():
    order, x, wanted = HIGH_ORDERS.T
    np.testing.assert_allclose(tw.math.polygamma(order, x).numpy(), wanted, rtol=1e-12)
    for n, at, value in HIGH_ORDERS:
        found = tw.math.polygamma(int(n), np.float64(at)).numpy()
        np.testing.assert_allclose(found, value, rtol=1e-12)
    x = tw.constant(100.0, tw.float64)
    with tw.GradientTape() as tape:
        tape.watch(x)
        value = tw.math.polygamma(170, x)
    slope = tw.math.polygamma(171, x)  # 171! / 100 ** 172 and more
    np.testing.assert_allclose(tape.gradient(value, x), slope, rtol=1e-13)
    assert 2.8e-36 < slope.numpy() / 171 * 100 < 1e-34


def test_zeta_of_a_huge_exponent_is_its_first_term():
    found = tw.math.zeta(np.array([1e200, 1e300, 1e200]), np.array([1.0, 1.0, 2.0]))
    np.testing.assert_array_equal(found.numpy(), [1, 1, 0])
