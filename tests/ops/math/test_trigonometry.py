"""Trigonometry: the op table, branches, and the slopes at the ends of domains."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.tensor import new_tensor
from tapewright.ops.math import trigonometry
from tapewright.ops.nn.activation import sigmoid_slope
from tapewright.test import case, check_op, complexes, floats

UNIT = {"low": -0.85, "high": 0.75}
ABOVE_1 = {"low": 1.3, "high": 2.9}

# name, formula, range of the entries
UNARY = [
    ("sin", np.sin, {}),
    ("cos", np.cos, {}),
    ("tan", lambda x: np.sin(x) / np.cos(x), {"low": -1.1, "high": 1.2}),
    ("asin", np.arcsin, UNIT),
    ("acos", np.arccos, UNIT),
    ("atan", np.arctan, UNIT),
    ("sinh", lambda x: (np.exp(x) - np.exp(-x)) / 2, {}),
    ("cosh", lambda x: (np.exp(x) + np.exp(-x)) / 2, {}),
    ("tanh", lambda x: np.sinh(x) / np.cosh(x), {}),
    ("asinh", lambda x: np.log(x + np.sqrt(x * x + 1)), {"low": -0.9, "high": 2.5}),
    ("acosh", lambda x: np.log(x + np.sqrt(x - 1) * np.sqrt(x + 1)), ABOVE_1),
    ("atanh", lambda x: np.log((1 + x) / (1 - x)) / 2, UNIT),
]

CASES = [
    *[case(op, floats(2, 3, **low), expect=f) for op, f, low in UNARY],
    *[case(op, floats(**low), expect=f) for op, f, low in UNARY],
    *[case(op, complexes(4, **low), expect=f) for op, f, low in UNARY],
    case("tanh", floats(2, 0), expect=np.tanh),
    case("acosh", complexes(4, low=-2.5, high=-0.3), expect=np.arccosh, label="left"),
    case("tanh_grad", floats(2, 3), floats(2, 3), expect=lambda g, y: g * (1 - y * y)),
    case("tanh_grad", floats(3), floats(2, 1), expect=lambda g, y: g * (1 - y * y)),
    case("tanh_slope", floats(2, 3), floats(2, 3), expect=lambda g, x: g / np.cosh(x) ** 2),
    case("tanh_slope", floats(3), floats(2, 1), expect=lambda g, x: g / np.cosh(x) ** 2),
    case("one_less_square", floats(2, 3), expect=lambda x: 1 - x * x),
    case("one_less_square", complexes(3), expect=lambda x: 1 - x * x),
    *[case(op, floats(*m), floats(*n), expect=f)
      for m, n in [((2, 3), (2, 3)), ((2, 1), (3,)), ((), (0,))]
      for op, f in [("hypot", lambda x, y: (x * x + y * y) ** 0.5),
                    ("hypot_slope", lambda x, y: x / (x * x + y * y) ** 0.5)]],
    case("tanh_grad", complexes(3), complexes(3), expect=lambda g, y: g * (1 - y * y)),
    case("atan2", floats(2, 3), floats(2, 3), expect=np.arctan2),
    case("atan2", floats(2, 1), floats(3), expect=np.arctan2),
    case("atan2", floats(), floats(0), expect=np.arctan2),
    case("angle", complexes(2, 3), expect=lambda z: np.arctan2(z.imag, z.real)),
    case("angle", complexes(), expect=lambda z: np.arctan2(z.imag, z.real)),
    case("angle", floats(4), expect=lambda x: np.pi * (x < 0)),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


# f, and a point where it or its derivative is infinite, or it is not defined
MASKED = [
    (tw.asin, 1.0), (tw.acos, -1.0), (tw.asin, 2.0), (tw.acosh, 1.0), (tw.acosh, 0.5),
    (tw.atanh, 1.0), (tw.atanh, -2.0), (lambda x: tw.atan2(x, x), 0.0),
    (lambda x: tw.math.angle(tw.complex(x, x)), 0.0),
]  # fmt: skip


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("f, x", MASKED)
def test_a_masked_point_has_no_slope_instead_of_nan(slopes, f, x, order):
    assert slopes(lambda x: tw.where([False], f(x), 0.0 * x), [x], order=order) == [0.0]


def test_the_slope_at_the_end_of_a_domain_is_infinite(slopes):
    assert slopes(tw.asin, [1.0]) == [np.inf]
    assert slopes(tw.acos, [-1.0]) == [-np.inf]
    assert slopes(tw.acosh, [1.0]) == [np.inf]
    assert slopes(tw.atanh, [-1.0]) == [np.inf]


@pytest.mark.parametrize(
    "f, x, slope",  # by hand: 1 / sqrt(2 d), 1 / (2 d) to the first order in d
    [(tw.asin, 1 - 2.0**-40, 2.0**19.5), (tw.acosh, 1 + 2.0**-40, 2.0**19.5),
     (tw.atanh, 1 - 2.0**-40, 2.0**39)],
)  # fmt: skip
def test_slopes_keep_their_digits_near_the_end_of_a_domain(slopes, f, x, slope):
    np.testing.assert_allclose(slopes(f, [x]), [slope], rtol=1e-11)


def test_atan2_knows_all_quadrants():
    y, x = [0.0, 1.0, 1.0, -1.0, 0.0], [1.0, 0.0, -1.0, -1.0, -1.0]
    quarters = tw.atan2(y, x).numpy() / (np.pi / 4)
    np.testing.assert_allclose(quarters, [0, 2, 3, -3, 4], rtol=1e-6)


def test_atan2_has_no_slope_at_the_origin(slopes):
    assert slopes(tw.atan2, [0.0], [0.0]) == [0.0]
    assert slopes(lambda x, y: tw.atan2(y, x), [0.0], [0.0]) == [0.0]


def test_atan2_of_integers_is_refused():
    with pytest.raises(TypeError, match="atan2: y must be floating"):
        tw.atan2([1], [2])


def test_the_gradient_of_an_angle_turns_left():  # recorded from TensorFlow 2.21
    z = tw.constant(1 + 2j)
    with tw.GradientTape() as tape:
        tape.watch(z)
        angle = tw.math.angle(z)
    np.testing.assert_allclose(tape.gradient(angle, z).numpy(), -0.4 + 0.2j)


def test_the_angle_of_a_complex_zero_has_no_slope():
    z = tw.constant(0j)
    with tw.GradientTape() as tape:
        tape.watch(z)
        angle = tw.math.angle(z)
    assert tape.gradient(angle, z).numpy() == 0


def test_the_gradient_of_acosh_is_on_the_branch_of_its_value():  # from TensorFlow 2.21
    z = tw.constant(-1 + 0.5j)
    with tw.GradientTape() as tape:
        tape.watch(z)
        y = tw.acosh(z)
    np.testing.assert_allclose(tape.gradient(y, z).numpy(), -0.60615525 + 0.77634935j)


@pytest.mark.parametrize("op", ["sin", "acosh", "atanh", "angle"])
def test_an_integer_is_refused(op):
    with pytest.raises(TypeError, match=f"{op}: .* must be floating"):
        getattr(tw.math, op)([1])


def test_what_is_not_zero_at_zero_has_no_diagonal_rule():
    assert all(
        trigonometry.__dict__[name].primitive.diagonal_rule is None
        for name in ("cos", "cosh", "acos", "acosh", "angle")
    )


@np.errstate(all="ignore")  # as in backward passes, where these ops run
@pytest.mark.parametrize("vectorized", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_slopes_of_tanh_and_sigmoid_keep_their_digits(vectorized, dtype, monkeypatch):
    monkeypatch.setattr(trigonometry, "COSH_IS_VECTORIZED", vectorized)
    end = 42 if dtype is np.float32 else 350
    x = np.linspace(-end, end, 2001).astype(dtype)
    decay = np.exp(-2 * np.abs(x.astype(np.longdouble)))
    expected = 4 * decay / (1 + decay) ** 2  # 1 / cosh(x) ** 2
    for slope, factor in ((trigonometry.tanh_slope, 1), (sigmoid_slope, 0.25)):
        x_of = tw.constant(x if factor == 1 else 2 * x)
        for g in (1.0, -1e30):
            found = slope(tw.constant(np.full(x.shape, g, dtype)), x_of).numpy()
            right = expected * g * factor
            near = 4 * np.finfo(dtype).eps * (1 + np.abs(x) / 8)  # of the exponential
            assert np.all(np.abs(found - right) <= near * np.abs(right))
        ends = tw.constant(np.array([-np.inf, np.inf, np.nan, -1e4, 1e4], dtype))
        found = slope(tw.ones(5, dtype), ends).numpy()
        np.testing.assert_array_equal(found, [0, 0, np.nan, 0, 0])


@pytest.mark.parametrize("order", "CF")
def test_the_slope_of_tanh_takes_large_arrays_in_any_order(order):
    x = np.random.default_rng(0).normal(size=(700, 300)).astype(np.float32, order=order)
    with np.errstate(all="ignore"):
        found = trigonometry.tanh_slope(
            new_tensor(np.ones_like(x)), new_tensor(x)
        ).numpy()
    np.testing.assert_allclose(found, 1 / np.cosh(x.astype(np.float64)) ** 2, 1e-6)
