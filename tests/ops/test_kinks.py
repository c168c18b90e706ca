"""Numbers at kinks and edges: ties, corners, zeros, infinities.

A zero cotangent gives a zero gradient, never NaN; where a function has a corner, the rule
takes a subgradient; and what is exact is exact at every order.
"""

import numpy as np
import pytest

import tapewright as tw


def derivatives(f, *points, order=1):
    """Values, then the gradient of their sum, then the gradient of its sum, by each point."""
    xs = [tw.constant(np.asarray(p)) for p in points]
    found = []

    def lower(n):
        if n == 0:
            return f(*xs)
        with tw.GradientTape() as tape:
            tape.watch(xs)
            below = lower(n - 1)
        first = below[0] if isinstance(below, list) else below
        if n == 1:
            found.append(first.numpy())
        zero = tw.UnconnectedGradients.ZERO
        grads = tape.gradient(first, xs, unconnected_gradients=zero)
        found.append([g.numpy() for g in grads] if n == 1 else grads[0].numpy())
        return grads

    lower(order)
    return found


def slopes(f, *points):
    return [g.tolist() for g in derivatives(f, *points)[1]]


# ------------------------------------------------------------------------ corners


@pytest.mark.parametrize("reduce", [tw.reduce_max, tw.reduce_min])
def test_ties_of_an_extreme_share_the_gradient_equally(reduce):
    value, (slope,) = derivatives(reduce, [2.0, 2.0, 2.0, 2.0])
    assert value == 2 and slope.tolist() == [0.25] * 4


@pytest.mark.parametrize("reduce", [tw.reduce_max, tw.reduce_min])
def test_ties_are_those_along_the_axis(reduce):
    x = [[1.0, 1.0], [3.0, 1.0]]
    value, (slope,) = derivatives(lambda x: reduce(x, axis=0), x)
    at = 1.0 if reduce is tw.reduce_max else 0.0
    assert slope.tolist() == [[1 - at, 0.5], [at, 0.5]]


@pytest.mark.parametrize("f", [tw.maximum, tw.minimum])
def test_the_first_of_equals_gets_the_gradient(f):
    value, grads = derivatives(f, [2.0], [2.0])
    assert value == [2] and [g.tolist() for g in grads] == [[1], [0]]


def test_clipping_passes_the_gradient_at_both_edges():
    x = [-1.5, -1.0, 0.0, 1.0, 1.5]
    value, (slope,) = derivatives(lambda x: tw.clip_by_value(x, -1.0, 1.0), x)
    assert value.tolist() == [-1, -1, 0, 1, 1] and slope.tolist() == [0, 1, 1, 1, 0]


@pytest.mark.parametrize("f", [tw.abs, tw.nn.relu], ids=["abs", "relu"])
def test_the_corner_at_zero_is_flat(f):
    for found in derivatives(f, [0.0], order=3)[:3]:
        assert np.asarray(found).tolist() in ([0.0], [[0.0]])


# ------------------------------------------------------------------------ norms, std


@pytest.mark.parametrize(
    "f",
    [
        tw.norm,
        lambda x: tw.norm(x, axis=0),
        lambda x: tw.norm(x, ord=2, axis=0),
        lambda x: tw.norm(x[None], ord="fro", axis=(0, 1)),
        tw.math.reduce_euclidean_norm,
        lambda x: tw.norm(x, ord=3, axis=0),
        lambda x: tw.clip_by_norm(x, 1.0) * 0.0 + tw.norm(x),
    ],
    ids="norm axis ord=2 fro euclidean ord=3 clip".split(),
)
def test_the_norm_of_zero_is_flat_at_every_order(f):
    value, *grads = derivatives(f, np.zeros(3), order=3)
    assert not np.any(value)
    for g in grads:
        assert not np.any(g), grads  # a NaN counts


def test_a_norm_elsewhere_is_as_steep_as_ever():
    # one row at zero beside another that is not
    value, (slope,) = derivatives(
        lambda x: tw.norm(x, axis=1), [[0.0, 0.0], [3.0, 4.0]]
    )
    assert value.tolist() == [0, 5]
    np.testing.assert_allclose(slope, [[0, 0], [0.6, 0.8]], rtol=1e-12)


def test_the_standard_deviation_of_a_constant_is_flat_at_every_order():
    value, *grads = derivatives(tw.math.reduce_std, [2.0, 2.0, 2.0], order=3)
    assert value == 0 and not any(np.any(g) for g in grads)


# ------------------------------------------------------------------ masked points

SINGULAR = {
    "sqrt": (tw.sqrt, 0.0),
    "log": (tw.math.log, 0.0),
    "log of a negative number": (tw.math.log, -1.0),
    "sqrt of a negative number": (tw.sqrt, -1.0),
    "rsqrt": (tw.math.rsqrt, 0.0),
    "reciprocal": (tw.math.reciprocal, 0.0),
    "1 / x": (lambda x: 1.0 / x, 0.0),
    "x / x": (lambda x: x / x, 0.0),
    "x ** 0.5": (lambda x: x**0.5, 0.0),
    "x ** -1.0": (lambda x: x**-1.0, 0.0),
    "x ** 0.3 below 0": (lambda x: x**0.3, -1.0),
    "log1p": (tw.math.log1p, -1.0),
    "asin": (tw.asin, 1.0),
    "acos": (tw.acos, -1.0),
    "atanh": (tw.atanh, 1.0),
    "acosh": (tw.acosh, 1.0),
    "xlogy": (lambda x: tw.math.xlogy(2.0 + 0.0 * x, x), 0.0),
    "xdivy": (lambda x: tw.math.xdivy(2.0 + 0.0 * x, x), 0.0),
    "erfinv": (tw.math.erfinv, 1.0),
    "digamma": (tw.math.digamma, 0.0),
    "lgamma": (tw.math.lgamma, 0.0),
}


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("name", SINGULAR)
def test_a_zero_cotangent_gives_zero_and_never_nan(name, order):
    # one entry is selected; the singular one beside it must not disturb
    f, bad = SINGULAR[name]
    fine = 1.5 if name == "acosh" else 0.5

    def selected(x):
        return tw.where(np.array([True, False]), f(x), 0.0)

    found = derivatives(selected, np.array([fine, bad]), order=order)
    alone = derivatives(f, np.array([fine]), order=order)
    for got, wanted in zip(found, alone):
        got, wanted = np.squeeze(got), np.squeeze(wanted)
        assert got[1] == 0
        np.testing.assert_allclose(got[0], wanted, rtol=1e-12)


def test_a_root_masked_by_its_own_sign_has_the_gradient_of_the_root():
    x = [-1.0, 0.0, 4.0]
    f = lambda x: tw.where(x > 0.0, tw.sqrt(x), 0.0)  # noqa: E731
    value, *grads = derivatives(f, x, order=3)
    assert value.tolist() == [0, 0, 2]
    expected = [[0, 0, 1 / 4], [0, 0, -1 / 32], [0, 0, 3 / 256]]
    np.testing.assert_allclose(np.squeeze(grads[0]), expected[0], rtol=1e-12)
    np.testing.assert_allclose(grads[1:], expected[1:], rtol=1e-12)


def test_a_cotangent_that_is_not_zero_shows_the_infinite_slope():
    assert slopes(tw.sqrt, [0.0]) == [[np.inf]]
    assert slopes(tw.math.log, [0.0]) == [[np.inf]]


# ------------------------------------------------------------------ powers, products


def test_the_power_of_zero_to_zero_is_flat_in_both():
    value, grads = derivatives(lambda x, y: x**y, [0.0], [0.0])
    assert value == [1] and [g.tolist() for g in grads] == [[0], [0]]


@pytest.mark.parametrize(
    "power, expected",
    [(0.0, (1, 0, 0, 0)), (1.0, (0, 1, 0, 0)), (2.0, (0, 0, 2, 0)), (3.0, (0, 0, 0, 6)),
     (2, (0, 0, 2, 0)), (4.0, (0, 0, 0, 0))],
)  # fmt: skip
def test_every_derivative_of_a_power_at_zero_is_its_limit(power, expected):
    found = derivatives(lambda x: x**power, np.array([0.0]), order=3)
    assert [float(np.squeeze(v)) for v in found] == list(expected)


def test_the_exponent_gets_the_limit_where_the_base_is_zero():
    value, (_, by_y) = derivatives(lambda x, y: x**y, [0.0, 0.0], [2.0, 0.5])
    assert value.tolist() == [0, 0] and by_y.tolist() == [0, 0]


ZEROS = [[2.0, 3.0, 4.0], [0.0, 3.0, 4.0], [2.0, 0.0, 4.0], [0.0, 0.0, 4.0], [0.0] * 3]


@pytest.mark.parametrize("x", ZEROS, ids=str)
def test_products_with_zeros_have_exact_derivatives(x):
    a, b, c = x
    value, first, second, third = derivatives(tw.reduce_prod, x, order=3)
    assert value == a * b * c
    assert first[0].tolist() == [b * c, a * c, a * b]
    assert second.tolist() == [b + c, a + c, a + b]
    assert third.tolist() == [2, 2, 2]


@pytest.mark.parametrize("x", ZEROS, ids=str)
def test_cumulative_products_with_zeros_have_exact_derivatives(x):
    a, b, c = x
    value, first, second, third = derivatives(tw.math.cumprod, x, order=3)
    assert value.tolist() == [a, a * b, a * b * c]
    assert first[0].tolist() == [1 + b + b * c, a + a * c, a * b]
    assert second.tolist() == [1 + b + c, 1 + a + c, a + b]
    assert third.tolist() == [2, 2, 2]


# ----------------------------------------------------------------- minus infinity


def test_logsumexp_of_minus_infinity_everywhere_is_flat():
    value, (slope,) = derivatives(tw.reduce_logsumexp, [-np.inf, -np.inf])
    assert value == -np.inf and slope.tolist() == [0, 0]


def test_logsumexp_leaves_an_entry_of_minus_infinity_out():
    value, *grads = derivatives(tw.reduce_logsumexp, [0.0, -np.inf, 0.0], order=3)
    np.testing.assert_allclose(value, np.log(2.0))
    assert grads[0][0].tolist() == [0.5, 0, 0.5]
    assert not grads[1].any() and not grads[2].any()  # the sum of the weights is 1


# --------------------------------------------------------- exact through the mean


def test_the_hessian_of_the_variance_sees_the_mean_move():
    # 2/n (1 - 1/n) on the diagonal, -2/n^2 beside it; 2/n and 0 if the mean stood still
    x = tw.constant([1.0, 2.0, 4.0], tw.float64)
    with tw.GradientTape() as outer:
        outer.watch(x)
        with tw.GradientTape() as tape:
            tape.watch(x)
            variance = tw.nn.moments(x, [0])[1]
        slope = tape.gradient(variance, x)
    expected = 2 / 3 * (np.eye(3) - 1 / 3)
    np.testing.assert_allclose(outer.jacobian(slope, x), expected, rtol=1e-12)


def pair(x):
    return tw.reshape(x, [1, 2])


TWINS = {
    "batch": lambda x: tw.nn.fused_batch_norm(x, np.ones(()), np.zeros(()), [0], 0.0)[
        0
    ],
    "layer": lambda x: tw.nn.layer_normalization(pair(x), epsilon=0.0),
    "instance": lambda x: tw.nn.instance_normalization(pair(x)[..., None], epsilon=0.0),
    "group": lambda x: tw.nn.group_normalization(pair(x), 1, epsilon=0.0),
    "moments": lambda x: (
        (x - tw.nn.moments(x, [0])[0]) * tw.nn.moments(x, [0])[1] ** -0.5
    ),
}


@pytest.mark.parametrize("kind", TWINS)
def test_two_numbers_normalized_are_minus_one_and_one_whatever_they_are(kind):
    # So every derivative is 0, at every order: a stop-gradient shortcut shows here.
    value, *grads = derivatives(
        lambda x: tw.reshape(TWINS[kind](x), [2]) * [1.0, 3.0],
        np.array([0.5, 2.0]),
        order=3,
    )
    np.testing.assert_allclose(np.ravel(value), [-1, 3], rtol=1e-12)
    for g in grads:
        np.testing.assert_allclose(np.ravel(g), [0, 0], atol=1e-12)


# ------------------------------------------------------------------------ complex


def test_complex_gradients_follow_tensorflows_convention():
    z = np.array([1 + 2j])
    assert slopes(lambda z: z**2, z) == [[2 - 4j]]
    value, (slope,) = derivatives(tw.abs, z)
    np.testing.assert_allclose(value, np.sqrt([5.0]))
    np.testing.assert_allclose(slope, z / np.sqrt(5.0))


def test_the_modulus_of_a_complex_zero_is_flat():
    value, (slope,) = derivatives(tw.abs, np.array([0j]))
    assert value == [0] and slope.tolist() == [0]


# ---------------------------------------------------------------- composed functions

K = tw.keras.ops
AT_ENDS = {  # function, points, its slopes there
    "hypot of a tie": (lambda x: K.hypot(x, 1.0), [1.0, -1.0], [0.5**0.5, -(0.5**0.5)]),
    "hypot of infinities": (lambda x: K.hypot(x, -np.inf), [np.inf, 1.0], [0.5**0.5, 0]),
    "logaddexp of a tie": (lambda x: K.logaddexp(x, 1.0), [1.0], [0.5]),
    "logaddexp of -inf": (lambda x: K.logaddexp(x, -np.inf), [-np.inf, 2.0], [0, 1]),
    "fmod": (lambda x: K.fmod(x, 3.0), [0.0, 5.0, -5.0], [1, 1, 1]),
    "fmod by the divisor": (lambda x: K.fmod(6.0, x), [0.1, -4.0, np.inf], [-59, 1, 0]),
    "mod by the divisor": (lambda x: K.mod(6.0, x), [0.1, -4.0, np.inf], [-59, 2, 0]),
    "cbrt": (K.cbrt, [0.0, -8.0, np.inf], [np.inf, 1 / 12, 0]),
    "nanstd of a constant": (K.nanstd, [0.1, np.nan, 0.1], [0, 0, 0]),
    "sparse_plus": (K.sparse_plus, [np.inf, -np.inf, 1.0, -1.0], [1, 0, 1, 0]),
    "silu": (K.silu, [np.inf, -np.inf], [1, 0]),
    "mish": (tw.keras.activations.mish, [np.inf, -np.inf], [1, 0]),
    "gelu": (K.gelu, [np.inf, -np.inf], [1, 0]),
    "trunc": (K.trunc, [np.inf, 0.0, -1.5], [0, 0, 0]),
    "atan2": (lambda x: K.arctan2(x, 1e-200), [1e-200], [0.5e200]),
    "entropy of a sure logit": (
        lambda x: tw.nn.sigmoid_cross_entropy_with_logits(tw.ones_like(x), x),
        [40.0, 100.0],
        -np.exp([-40.0, -100.0]),
    ),
    "softmax of a sure logit": (lambda x: tw.nn.softmax(x)[0], [80.0, 0.0],
                                np.exp([-80.0, -80.0]) * [1, -1]),
}  # fmt: skip


@pytest.mark.parametrize("name", AT_ENDS)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_composed_functions_have_the_slopes_of_the_limit(name):
    f, x, wanted = AT_ENDS[name]
    value, (slope,) = derivatives(f, np.array(x))
    np.testing.assert_allclose(slope, wanted, rtol=1e-12)


@pytest.mark.parametrize("name", sorted(set(AT_ENDS) - {"cbrt", "atan2"}))
@pytest.mark.filterwarnings("ignore:invalid value")
def test_their_further_derivatives_there_are_numbers(name):
    f, x, _ = AT_ENDS[name]
    for found in derivatives(f, np.array(x), order=3)[1:]:
        assert np.isfinite(found).all(), found


def test_ldexp_is_right_where_the_power_alone_overflows():
    value, (slope,) = derivatives(
        lambda x: K.ldexp(x, [200, -200]), np.array([1e-30, 1e30], np.float32)
    )
    np.testing.assert_allclose(value, [2.0**200 * 1e-30, 2.0**-200 * 1e30], rtol=1e-6)
    assert slope.tolist() == [np.inf, 0.0]
