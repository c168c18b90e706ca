"""Dawson's, Fresnel's, Spence's and the exponential integral, the incomplete beta function."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.primitive import get_primitive
from tapewright.test import case, check_op, floats

special = tw.math.special
NODES, WEIGHTS = np.polynomial.legendre.leggauss(60)
NODES, WEIGHTS = (NODES + 1) / 2, WEIGHTS / 2


def integral(f, start=0.0):
    """That of ``f(t, x)`` over ``t`` from ``start`` to ``x``."""

    def of(x):
        x = x[..., None]
        return f(start + (x - start) * NODES, x) * (x - start) @ WEIGHTS

    return of


dawsn = integral(lambda t, x: np.exp(t * t - x * x))
cosine = integral(lambda t, x: np.cos(np.pi / 2 * t * t))
sine = integral(lambda t, x: np.sin(np.pi / 2 * t * t))
spence = integral(lambda t, x: np.log(t) / (1 - t), 1.0)
entire = integral(lambda t, x: np.expm1(t) / t)


def expint(x):
    return 0.57721566490153286061 + np.log(x) + entire(x)


def density(a, b, x):
    """With the beta function by the substitution ``t = sin(angle) ** 2``."""
    angles = np.pi / 2 * NODES
    powers = np.sin(angles) ** (2 * a - 1)[..., None]
    beta = np.pi * (powers * np.cos(angles) ** (2 * b - 1)[..., None]) @ WEIGHTS
    return x ** (a - 1) * (1 - x) ** (b - 1) / beta


def betainc(a, b, x):
    at = np.arcsin(np.sqrt(x))[..., None] * NODES
    powers = np.sin(at) ** (2 * a - 1)[..., None] * np.cos(at) ** (2 * b - 1)[..., None]
    total = 2 * np.arcsin(np.sqrt(x)) * (powers @ WEIGHTS)
    return total * density(a, b, x) / (x ** (a - 1) * (1 - x) ** (b - 1))


# Half-integers, where the substitution leaves polynomials; x is varied for all orders.
A = np.array([1.5, 2.0, 3.5, 12.0])
B = np.array([2.5, 1.0, 13.0, 11.5])
WIDE = {"low": -2.3, "high": 2.4}
SHARE = {"low": 0.1, "high": 0.9}


def betainc_by_x(x):
    return tw.math.betainc(tw.constant(A, x.dtype), tw.constant(B, x.dtype), x)


def slope_by_x(x):
    slope = get_primitive("betainc_slope").entry
    return slope(tw.constant(A, x.dtype), tw.constant(B, x.dtype), x, by_b=True)


CASES = [
    case(special.fresnel_cos, floats(5, **WIDE), expect=cosine),
    case(special.fresnel_sin, floats(5, **WIDE), expect=sine),
    *[case(special.spence, floats(4, low=low, high=high), expect=spence,
           label=f"from {low}")
      for low, high in [(0.1, 0.45), (0.6, 1.4), (2.1, 4.0)]],
    case("fresnel_slope", floats(4, **WIDE), sine=False,
         expect=lambda x: np.cos(np.pi / 2 * x * x)),
    case("spence_slope", np.array([0.2, 0.9, 1.0, 1.7]), derivative=1),
    case(special.expint, floats(4, low=0.3, high=3.0), expect=expint),
    case("dawsn", floats(6, low=-2.5, high=2.4), derivative=0, expect=dawsn),
    case("dawsn", np.array([-9.0, 6.9, 7.1]), derivative=1, order=2),
    case(betainc_by_x, floats(4, **SHARE), expect=lambda x: betainc(A, B, x)),
    case("betainc", floats(2, low=1.1, high=3.0), floats(2, low=1.2, high=2.9),
         floats(2, **SHARE), order=1, single=False),
    case("betainc_slope", np.array(1.5), np.array(2.5), floats(2, **SHARE), order=0,
         by_b=False),
    case(slope_by_x, floats(4, **SHARE)),
    case("beta_density", floats(2, low=1.5, high=12.0), floats(2, low=1.5, high=12.0),
         floats(2, **SHARE), expect=density),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


# name -> arguments, and values to 17 digits from mpmath
VALUES = {
    "dawsn": [
        (1e-200, 1e-200),
        (0.46875, 0.4057593346927333),
        (0.53125, 0.44172312990491347),
        (-3.0, -0.1782710306105583),
        (6.96875, 0.07251167629518233),
        (7.25, 0.06964122764217069),
        (1000.0, 0.000500000250000375),
    ],
    "expint": [
        (1e-200, -459.93980293390763),
        (0.25, -0.5425432646619137),
        (1.0, 1.8951178163559368),
        (39.75, 4734127948150601.0),
        (40.25, 7705685769793696.0),
        (712.0, 2.3216800841052115e+306),
    ],
    "fresnel_cos": [
        (1e-200, 1e-200),
        (0.25, 0.2497591503565432),
        (1.46875, 0.4749026712855554),
        (1.53125, 0.41738084002099696),
        (-3.25, -0.42633865559802075),
        (1000.3, 0.5000448367037948),
    ],
    "fresnel_sin": [
        (1e-60, 5.235987755982988e-181),
        (0.25, 0.008175600235777757),
        (1.46875, 0.7073139978869789),
        (1.53125, 0.6834533089863105),
        (-3.25, -0.5642211995671413),
        (1000.3, 0.49968496017986497),
    ],
    "spence": [
        (1e-200, 1.6449340668482264),
        (0.25, 0.9784693929303061),
        (0.46875, 0.626177822172486),
        (0.75, 0.2676526390827326),
        (1.0009765625, -0.0009763241848443766),
        (1.75, -0.6427612688399789),
        (2.25, -0.990049001260104),
        (1e+200, -106039.60714363481),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values_are_right_to_the_last_digits(name):
    x, values = np.array(VALUES[name]).T
    f = getattr(special, name)
    np.testing.assert_allclose(f(x).numpy(), values, rtol=4e-15)
    np.testing.assert_allclose(f(x[1:-1].astype("f")).numpy(), values[1:-1], rtol=2e-6)


def test_ends_are_limits_and_those_of_tensorflow():
    x = np.array([-np.inf, -2.0, 0.0, np.inf, np.nan])
    inf, nan = np.inf, np.nan
    for name, ends in {
        "dawsn": [0, -0.30134038892379197, 0, 0],
        "expint": [nan, nan, -inf, inf],
        "fresnel_cos": [-0.5, -0.4882534060753408, 0, 0.5],
        "fresnel_sin": [-0.5, -0.3434156783636982, 0, 0.5],
        "spence": [nan, nan, np.pi**2 / 6, -inf],
    }.items():
        found = getattr(special, name)(x).numpy()
        np.testing.assert_allclose(found, [*ends, nan], 1e-14, err_msg=name)


# a, b, x, the value, its derivatives by a and b, from mpmath
BETA = np.array([
    (0.5, 0.5, 0.25, 0.3333333333333333, -0.6461318944389011, 0.4307545962926007),
    (2.0, 3.0, 0.96875, 0.9998807907104492, -0.00012631845151904233, 0.00038358401093479714),
    (0.001, 5.0, 1e-09, 0.9815320183721018, -18.29708674154146, 0.00021721162563877037),
    (30.0, 7.5, 0.8125, 0.5441212322977997, -0.03180653117280295, 0.1345986330705558),
    (1000.0, 400.0, 0.703125, 0.17730823069112675, -0.004462824768907862, 0.010861684500524223),
    (0.25, 2000.0, 0.0001, 0.7098302667393228, -1.0698969094218642, 7.552069427050854e-05),
    (25.0, 3.0, 1e-05, 3.509932500325007e-123, -4.01445964632929e-122, 8.393818031848704e-123),
])  # fmt: skip


def test_the_incomplete_beta_function_keeps_digits_for_large_and_small_numbers():
    a, b, x = (tw.constant(column) for column in BETA.T[:3])
    with tw.GradientTape() as tape:
        tape.watch([a, b])
        value = tw.math.betainc(a, b, x)
    np.testing.assert_allclose(value.numpy(), BETA[:, 3], rtol=2e-13)
    for got, wanted in zip(tape.gradient(value, [a, b]), BETA.T[4:]):
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-10)
    single = tw.math.betainc(*[tw.cast(n, "float32") for n in (a, b, x)])
    np.testing.assert_allclose(single.numpy(), BETA[:, 3], rtol=1e-4, atol=1e-30)


# Both parameters large, where a fraction needs a number of terms that grows with them.
LARGE_BETA = np.array([
    (1001.0, 1001.0, 0.27656071891562406,
     2.8503338028592636e-99, -1.6917863651818832e-99, 1.055402077528118e-99),
    (1001.0, 1001.0, 0.5055859820271094,
     0.6914020270271887, -0.007826918021575039, 0.007914845736324371),
    (1500.0, 100000.0, 0.01364209661524218,
     0.0010672675474449618, -9.28696815577433e-05, 1.337861557543537e-06),
    (1500.0, 100000.0, 0.017050782138973767,
     0.9999999949792042, -7.399956464792243e-10, 1.1945488398332438e-11),
    (100000.0, 1500.0, 0.9852216748768473,
     0.49664302143782135, -0.00015335597147330494, 0.010224850435612852),
    (10000.0, 10000.0, 0.47171643583280387,
     5.919663164101141e-16, -3.499269328701154e-17, 3.306671846503288e-17),
    (10000.0, 10000.0, 0.507070891041799,
     0.9772512180706426, -0.0003790694949247153, 0.0003844685240399388),
    (10000.0, 3000000.0, 0.0032890917833015673,
     0.1586512730748305, -0.00241974489425939, 8.025220119321593e-06),
    (1000000.0, 1000000.0, 0.4929289339559008,
     2.6993631595060035e-89, -3.854289601954052e-91, 3.8001626646175126e-91),
    (1000000.0, 1000000.0, 0.5001767766511025,
     0.6914624007628168, -0.0002489038476614658, 0.00024899186399246926),
    (999.0, 1000000.0, 0.0009033240703916661,
     0.0010015435333704547, -0.00010841747652843051, 1.0306411626986699e-07),
    (999.0, 1000000.0, 0.001187360844240629,
     0.9999999927931981, -1.291446306852078e-09, 1.4089064792681006e-12),
    (1000000.0, 900.0, 0.9991008092716556,
     0.495573261143838, -1.1961784676970033e-05, 0.013293331193531262),
])  # fmt: skip


def test_the_incomplete_beta_function_of_large_parameters():
    a, b, x = (tw.constant(column) for column in LARGE_BETA.T[:3])
    with tw.GradientTape() as tape:
        tape.watch([a, b])
        value = tw.math.betainc(a, b, x)
    np.testing.assert_allclose(value.numpy(), LARGE_BETA[:, 3], rtol=1e-11)
    for got, wanted in zip(tape.gradient(value, [a, b]), LARGE_BETA.T[4:]):
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-10)


def test_parameters_of_any_size_take_the_same_time():
    a = np.array([1e6, 1e8, 1e8, 1e300, 1e15, 1e30, 1.7e308, 1e-300, 1e-320, 2, 1])
    b = np.array([2.0, 2, 1e8, 2, 1e15, 1e30, 1.7e308, 1e-300, 0.5, 1e300, 1e9])
    x = np.array([0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.25, 0.3, 1e-300, 1e-9])
    # For large b it is the incomplete gamma function of b * x.
    wanted = [0, 0, 0.5, 0, 0.5, 0.5, 0.5, 0.5, 1, 1 - 2 / np.e, 1 - 1 / np.e]
    found = tw.math.betainc(a, b, x).numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
    assert tw.math.betainc(1e8, 1e8, 0.5).numpy() == np.float32(0.5)


def test_ends_of_the_incomplete_beta_function():
    a = np.array([0.0, 1, 2, -1, 2, 2, 2, np.inf, 1])
    b = np.array([1.0, 0, 2, 2, 2, 2, 2, 2, 3])
    x = np.array([0.5, 0.5, 0.5, 0.5, 0, 1, 1.5, 0.5, 0])
    nan = np.nan
    found = tw.math.betainc(a, b, x).numpy()
    np.testing.assert_allclose(found, [nan, nan, 0.5, nan, 0, 1, nan, nan, 0], 1e-14)
    x = tw.constant([0.0, 1.0], tw.float64)
    with tw.GradientTape() as outer:
        outer.watch(x)
        with tw.GradientTape() as inner:
            inner.watch(x)
            value = tw.math.betainc(tw.constant(2.0, x.dtype), 1.0, x)
        slope = inner.gradient(value, x)
    np.testing.assert_allclose(slope.numpy(), [0, 2])  # of x ** 2
    np.testing.assert_allclose(outer.gradient(slope, x).numpy(), [2, 2])


def test_second_derivatives_by_the_parameters_are_refused():
    a = tw.constant(2.0)
    with tw.GradientTape() as outer:
        outer.watch(a)
        with tw.GradientTape() as inner:
            inner.watch(a)
            value = tw.math.betainc(a, 3.0, 0.25)
        slope = inner.gradient(value, a)
    with pytest.raises(LookupError, match="'a'"):
        outer.gradient(slope, a)
