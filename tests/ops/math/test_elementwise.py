"""Entry by entry: the op table, and what happens at corners, poles and masked points."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.ops.math import elementwise
from tapewright.test import (
    case,
    check_op,
    complexes,
    floats,
    integers,
)

POSITIVE = {"low": 0.4, "high": 2.2}


def over(x, y):
    return np.where(x == 0, 0.0, x / np.where(y == 0, 1.0, y))


# name of the primitive, NumPy's function, range of the entries, whether complex too
UNARY = [
    ("negative", np.negative, {}, True),
    ("abs", np.abs, {}, True),
    ("sign", lambda x: x / np.abs(x), {}, True),
    ("square", lambda x: x * x, {}, True),
    ("reciprocal", lambda x: 1 / x, {"low": 0.6, "high": 2.2}, True),
    ("sqrt", lambda x: x**0.5, POSITIVE, True),
    ("norm_sqrt", lambda x: x**0.5, POSITIVE, True),
    ("rsqrt", lambda x: x**-0.5, POSITIVE, True),
    ("cbrt", lambda x: np.sign(x) * np.abs(x) ** (1 / 3), {}, False),
    ("log_or_zero", np.log, POSITIVE, True),
    ("exp", np.exp, {}, True),
    ("exp2", lambda x: 2**x, {}, True),
    ("expm1", lambda x: np.exp(x) - 1, {}, True),
    ("log", np.log, POSITIVE, True),
    ("log1p", lambda x: np.log(1 + x), POSITIVE, True),
    ("round", np.rint, {}, False),
    ("floor", np.floor, {}, False),
    ("ceil", np.ceil, {}, False),
]
BINARY = [
    ("add", np.add, {}, True),
    ("subtract", np.subtract, {}, True),
    ("multiply", np.multiply, {}, True),
    ("divide", np.divide, POSITIVE, True),
    ("divide_no_nan", np.divide, POSITIVE, True),
    ("multiply_no_nan", np.multiply, {}, True),
    ("zero_safe_multiply", np.multiply, {}, True),
    ("zero_safe_divide", over, POSITIVE, True),
    ("squared_difference", lambda x, y: abs(x - y) ** 2 + 0 * x, {}, True),
    ("power", np.power, POSITIVE, True),
    ("maximum", np.maximum, {}, False),
    ("minimum", np.minimum, {}, False),
    ("floordiv", lambda x, y: np.floor(x / y), {}, False),
    ("floormod", lambda x, y: x - np.floor(x / y) * y, {}, False),
    ("truncatediv", lambda x, y: np.trunc(x / y), {}, False),
    ("truncatemod", lambda x, y: x - np.trunc(x / y) * y, {}, False),
]

CASES = [
    *[case(op, floats(2, 3, **low), expect=f) for op, f, low, _ in UNARY],
    *[case(op, complexes(4, **low), expect=f) for op, f, low, both in UNARY if both],
    *[case(op, floats(2, 3, **low), floats(2, 3, **low), expect=f)
      for op, f, low, _ in BINARY],
    *[case(op, floats(2, 1, **low), floats(3, **low), expect=f) for op, f, low, _ in BINARY],
    *[case(op, complexes(3, **low), complexes(3, **low), expect=f)
      for op, f, low, both in BINARY if both],
    case("add", floats(), floats(2), expect=np.add),
    case("add", floats(3, 1, 2), floats(2), expect=np.add),
    case("multiply", floats(), floats(), expect=np.multiply),
    case("multiply", floats(3), floats(1, 3), expect=np.multiply),
    case("multiply", floats(0, 3), floats(3), expect=np.multiply),
    case("divide", floats(3), floats(2, 1, **POSITIVE), expect=np.divide),
    case("divide", integers(3), integers(3, low=1), expect=np.divide),
    case("floordiv", integers(4, low=-5, high=5), integers(4, low=1), expect=np.floor_divide),
    case("floormod", integers(4, low=-5, high=5), integers(4, low=1), expect=np.remainder),
    case("truncatediv", integers(4, low=-9, high=9), integers(4, low=2, high=5),
         expect=lambda x, y: np.trunc(x / y).astype(np.int64)),
    case("truncatemod", integers(4, low=-9, high=9), integers(4, low=2, high=5),
         expect=np.fmod),
    case("nextafter", floats(2, 1), floats(3), single=False, expect=np.nextafter),
    case("add_n", floats(2, 3), floats(2, 3), floats(2, 3), expect=lambda *x: sum(x)),
    case("add_n", floats(2, 3), expect=lambda x: x),
    case("add_n", floats(), floats(), floats(), expect=lambda *x: sum(x)),
    case("add_n", complexes(3), complexes(3), expect=np.add),
    case("add_n", floats(0, 2), floats(0, 2), expect=np.add),
    case("add_n", integers(3), integers(3), integers(3), expect=lambda *x: sum(x)),
    case(tw.math.reciprocal_no_nan, floats(3, **POSITIVE), expect=lambda x: 1 / x),
    case(tw.math.scalar_mul, 3.0, floats(3), expect=np.multiply),
    case(lambda x, a: tw.math.polyval([2.0, a, -1.0], x), floats(2, 3), floats(3),
         expect=lambda x, a: 2 * x * x + a * x - 1, label="polyval"),
    case("exp", floats(), expect=np.exp),
    case("exp", floats(0), expect=np.exp),
    case("abs", integers(3, low=-3), expect=np.abs),
    case("square", integers(3), expect=np.square),
    case("round", integers(3), expect=lambda x: x),
    # the safe forms at the very points that they are for
    case("divide_no_nan", np.array([1.0, 2.0, 0.0]), np.array([2.0, 0.0, 0.0]), order=0,
         expect=lambda x, y: np.array([0.5, 0.0, 0.0]), label="at zero"),
    case("multiply_no_nan", np.array([1.0, np.inf, np.nan]), np.array([2.0, 0.0, 0.0]),
         order=0, expect=lambda x, y: np.array([2.0, 0.0, 0.0]), label="at zero"),
    case("zero_safe_multiply", np.array([0.0, np.inf, 2.0]), np.array([np.nan, 0.0, 3.0]),
         order=0, expect=lambda x, y: np.array([0.0, 0.0, 6.0]), label="at zero"),
    case("zero_safe_divide", np.array([1.0, 0.0, 0.0]), np.array([2.0, 0.0, 3.0]), order=0,
         expect=lambda x, y: np.array([0.5, 0.0, 0.0]), label="at zero"),
    case("log_or_zero", np.array([1.0, 0.0, -2.0]), order=0, label="not positive",
         expect=lambda x: np.zeros(3)),
    case("power", np.array([-1.5, 2.0, 0.5]), np.array([2.0, 3.0, -1.0]), expect=np.power,
         order=0, label="negative base"),
    case(lambda x: tw.pow(x, 3.0), floats(3), expect=lambda x: x**3, label="cube"),
    case(lambda x: tw.pow(x, 2), floats(3), expect=np.square, label="square"),
    case("clip_by_value", floats(2, 3), np.array(-0.52), np.array(0.83), expect=np.clip),
    case("clip_by_value", floats(2, 3), floats(3, low=-0.9, high=-0.1),
         floats(2, 1, low=0.1, high=1.2), expect=np.clip),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


def test_the_slope_of_expm1_keeps_its_digits_in_the_tail():
    x = tw.constant([-40.0, -12.0], "float64")
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.math.expm1(x)
    np.testing.assert_allclose(tape.gradient(y, x), np.exp(x.numpy()), rtol=1e-14)


def test_maximum_gives_the_gradient_of_a_tie_to_the_first(slopes):
    assert slopes(tw.maximum, [1.0], [1.0]) == [1.0]
    assert slopes(lambda y, x: tw.maximum(x, y), [1.0], [1.0]) == [0.0]


def test_minimum_gives_the_gradient_of_a_tie_to_the_first(slopes):
    assert slopes(tw.minimum, [1.0], [1.0]) == [1.0]
    assert slopes(lambda y, x: tw.minimum(x, y), [1.0], [1.0]) == [0.0]


def test_clip_by_value_passes_gradients_at_its_edges(slopes):
    assert slopes(lambda x: tw.clip_by_value(x, 0.0, 1.0), [-1.0, 0.0, 0.5, 1.0, 2.0]) == [
        0.0, 1.0, 1.0, 1.0, 0.0
    ]  # fmt: skip


def test_clip_by_value_gives_its_gradient_to_the_bound_in_effect():
    x = tw.constant([-1.0, 0.5, 2.0])
    low, high = tw.constant(0.0), tw.constant(1.0)
    with tw.GradientTape() as tape:
        tape.watch([low, high])
        y = tw.clip_by_value(x, low, high)
    assert [g.numpy() for g in tape.gradient(y, [low, high])] == [1.0, 1.0]


@pytest.mark.parametrize("order", [1, 2, 3])
def test_abs_has_no_slope_at_zero(slopes, order):
    assert slopes(tw.abs, [0.0], order=order) == [0.0]


def test_abs_of_a_complex_zero_has_no_slope():
    z = tw.constant(0j)
    with tw.GradientTape() as tape:
        tape.watch(z)
        y = tw.abs(z)
    assert tape.gradient(y, z).numpy() == 0


# f, a point where it or its derivative is infinite, and what stands in its place there
MASKED = [
    (tw.sqrt, 0.0), (tw.math.log, 0.0), (tw.math.rsqrt, 0.0), (tw.math.reciprocal, 0.0),
    (tw.math.log1p, -1.0), (lambda x: 1.0 / x, 0.0), (tw.math.reciprocal_no_nan, 0.0),
    (lambda x: x / x, 0.0), (lambda x: x**0.5, 0.0), (lambda x: x**-1.5, 0.0),
    (tw.sqrt, -1.0), (tw.math.log, -1.0), (lambda x: x**0.5, -1.0),
]  # fmt: skip


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("f, x", MASKED)
def test_a_masked_point_has_no_slope_instead_of_nan(slopes, f, x, order):
    assert slopes(lambda x: tw.where([False], f(x), 0.0 * x), [x], order=order) == [0.0]


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("f", [tw.sqrt, tw.math.log, tw.math.rsqrt, tw.math.reciprocal])
def test_what_where_leaves_out_has_no_slope(slopes, f, order):
    for x in (0.0, -1.0):
        assert slopes(lambda x: tw.where(x > 0.0, f(x), 0.0), [x], order=order) == [0.0]


# As in TensorFlow's guide, by log(1 + exp(x)).
def test_an_overflow_shows_as_nan(slopes):
    assert np.isnan(slopes(lambda x: tw.math.log(1.0 + tw.exp(x)), [1e4])).all()


@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_zeroth_power_is_flat_even_at_zero(slopes, order):
    assert slopes(lambda x: x**0.0, [0.0, 2.0], order=order) == [0.0, 0.0]


def test_powers_at_zero_have_the_derivatives_of_the_polynomial(slopes):
    assert slopes(lambda x: x**3.0, [0.0]) == [0.0]
    assert slopes(lambda x: x**3.0, [0.0], order=2) == [0.0]
    assert slopes(lambda x: x**3.0, [0.0], order=3) == [6.0]
    assert slopes(lambda x: tw.math.multiply(x, x) ** 1.0, [0.0], order=2) == [2.0]


@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_power_of_zero_does_not_depend_on_the_exponent(slopes, order):
    assert slopes(lambda y: tw.pow(tw.zeros_like(y), y), [2.0], order=order) == [0.0]


def test_the_gradient_of_a_complex_square_is_the_conjugate_of_its_derivative():
    z = tw.constant(1 + 2j)
    with tw.GradientTape() as tape:
        tape.watch(z)
        y = z**2
    assert tape.gradient(y, z).numpy() == 2 - 4j


def test_the_gradient_of_a_modulus_points_away_from_zero():
    z = tw.constant(3 + 4j)
    with tw.GradientTape() as tape:
        tape.watch(z)
        y = tw.abs(z)
    np.testing.assert_allclose(tape.gradient(y, z).numpy(), 0.6 + 0.8j)


def test_integers_divide_as_float64():
    assert (tw.constant(3) / tw.constant(2)).dtype == tw.float64


def test_rounding_goes_to_the_even_neighbour():
    assert tw.round([0.5, 1.5, 2.5]).numpy().tolist() == [0.0, 2.0, 2.0]


def test_dividing_by_zero_is_an_answer_and_no_warning():
    assert (tw.constant([1.0, -1.0]) / 0.0).numpy().tolist() == [np.inf, -np.inf]
    assert tw.math.log(0.0).numpy() == -np.inf
    assert np.isnan(tw.sqrt(-1.0).numpy())


# --------------------------------------------------- where a diagonal stays a diagonal


def answer(op, axes, *inputs, **attributes):
    op = elementwise.__dict__.get(op, op).primitive
    return op.diagonal_rule(axes, *(tw.constant(x) for x in inputs), **attributes)


ROWS = np.ones((2, 3), np.float32)


def test_a_product_keeps_the_diagonal_of_either_factor():
    assert answer("multiply", (-2, None), ROWS, ROWS) == -2
    assert answer("multiply", (None, -1), ROWS, ROWS) == -1
    assert answer("multiply", (-1, -1), ROWS, ROWS) == -1


def test_a_product_of_two_diagonals_along_different_axes_has_none():
    assert (
        answer("multiply", (-1, -2), np.ones((3, 3), "f"), np.ones((3, 3), "f")) is None
    )


def test_a_sum_keeps_a_diagonal_only_if_both_terms_have_it():
    assert answer("add", (-2, -2), ROWS, ROWS) == -2
    assert answer("add", (-2, None), ROWS, ROWS) is None


def test_a_repeated_axis_of_size_one_is_no_diagonal():
    assert answer("multiply", (-2, None), np.ones((1, 3), "f"), ROWS) is None


def test_what_is_not_zero_at_zero_has_no_diagonal_rule():
    assert all(
        elementwise.__dict__[name].primitive.diagonal_rule is None
        for name in ("exp", "reciprocal")
    )


@pytest.mark.parametrize("op", [tw.divide, tw.math.divide_no_nan])
@pytest.mark.parametrize(
    "dtype, quotient",
    [("uint8", "float32"), ("int16", "float32"), ("int32", "float64")],
)
def test_integers_are_divided_in_the_dtype_that_tensorflow_takes(op, dtype, quotient):
    x = tw.constant([1, 3], dtype)
    assert op(x, x + x).dtype == quotient
    assert op(x, x + x).numpy().tolist() == [0.5, 0.5]


# ------------------------------------------------------ remainders, sums, polynomials


def test_division_rounds_down_or_towards_zero():
    x, y = tw.constant([-7, 7, -8]), tw.constant([2, -2, 2])
    assert tw.math.floordiv(x, y).numpy().tolist() == [-4, -4, -4]
    assert tw.truncatediv(x, y).numpy().tolist() == [-3, -3, -4]
    assert tw.math.floormod(x, y).numpy().tolist() == [1, -1, 0]
    assert tw.truncatemod(x, y).numpy().tolist() == [-1, 1, 0]


def test_division_of_floating_numbers_rounds_alike():
    assert tw.math.floordiv([-7.5], [2.0]).numpy().tolist() == [-4.0]
    assert tw.truncatediv([-7.5], [2.0]).numpy().tolist() == [-3.0]
    assert tw.math.floormod([-7.5], [2.0]).numpy().tolist() == [0.5]
    assert tw.truncatemod([-7.5], [2.0]).numpy().tolist() == [-1.5]


def test_the_reciprocal_without_nan_is_zero_at_zero(slopes):
    assert tw.math.reciprocal_no_nan([0.0, 2.0]).numpy().tolist() == [0.0, 0.5]
    assert slopes(tw.math.reciprocal_no_nan, [0.0, 2.0]) == [0.0, -0.25]


def test_the_next_number_is_the_nearest_in_that_direction():
    one = np.float32(1.0)
    up, down = tw.math.nextafter([1.0, 1.0], [2.0, 0.0]).numpy()
    assert up - one == np.finfo(np.float32).eps and one - down == up / 2 - one / 2


def test_the_next_number_of_an_integer_is_refused():
    with pytest.raises(TypeError, match="x1 .*floating"):
        tw.math.nextafter([1], [2])


def test_a_sum_of_tensors_wants_one_shape():
    with pytest.raises(ValueError, match="add_n: inputs must have the same shape"):
        tw.math.add_n([[1.0, 2.0], 3.0])
    with pytest.raises(ValueError, match="inputs .*got none"):
        tw.math.add_n([])


def test_a_sum_of_tensors_wants_one_dtype():
    with pytest.raises(TypeError, match="dtypes .*got int32 and float32"):
        tw.math.add_n([tw.constant(1), tw.constant(1.0)])


def test_every_term_of_a_sum_gets_the_gradient_that_is_its_own():
    x, y = tw.constant([1.0, 2.0]), tw.constant([3.0, 4.0])
    with tw.GradientTape() as tape:
        tape.watch([x, y])
        total = tw.math.add_n([x, y, x])
    assert [g.numpy().tolist() for g in tape.gradient(total, [x, y])] == [
        [2, 2],
        [1, 1],
    ]


def test_accumulate_n_holds_the_inputs_against_what_is_known():
    terms = [[1.0], [2.0]]
    total = tw.math.accumulate_n(terms, shape=[None], tensor_dtype="float32")
    assert total.numpy().tolist() == [3.0]
    with pytest.raises(ValueError, match=r"shape .*\(2,\)"):
        tw.math.accumulate_n(terms, shape=[2])
    with pytest.raises(TypeError, match="dtype float64, got float32"):
        tw.math.accumulate_n(terms, tensor_dtype="float64")


def test_scalar_mul_wants_one_number():
    assert tw.math.scalar_mul(2, [1.0, 2.0]).numpy().tolist() == [2.0, 4.0]
    with pytest.raises(ValueError, match=r"scalar .*got \[1\.0, 2\.0\]"):
        tw.math.scalar_mul([1.0, 2.0], [1.0, 2.0])


def test_a_polynomial_without_coefficients_is_zero():
    assert tw.math.polyval([], [np.inf, 2.0]).numpy().tolist() == [0.0, 0.0]


def test_a_polynomial_wants_a_list_of_coefficients():
    with pytest.raises(ValueError, match="coeffs .*got Tensor"):
        tw.math.polyval(tw.constant([1.0, 2.0]), 1.0)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_relu_and_abs_by_extremes_have_the_slope_of_the_first_argument(slopes, order):
    first = 1.0 if order == 1 else 0.0
    assert slopes(lambda x: tw.maximum(x, 0.0), [0.0], order=order) == [first]
    assert slopes(lambda x: tw.maximum(0.0, x), [0.0], order=order) == [0.0]
    assert slopes(lambda x: tw.clip_by_value(x, 0.0, 1.0), [0.0], order=order) == [
        first
    ]


def test_floordiv_is_the_floor_of_the_quotient():
    x, y = [np.inf, -np.inf, 1.0, -1.0, 1.0], [2.0, 2.0, np.inf, 3.0, 0.0]
    result = tw.math.floordiv(x, y).numpy()
    np.testing.assert_array_equal(result, [np.inf, -np.inf, 0, -1, np.inf])


@pytest.mark.parametrize("how", ["eager", "native", "numpy"])
def test_a_power_has_the_rank_of_an_exponent_of_one_entry(how):
    with tw.config.use_target("numpy" if how == "eager" else how):
        run = (lambda f: f) if how == "eager" else tw.function
        cube = run(lambda x: tw.pow(x, tw.constant([[3.0]])))
        assert cube(tw.constant(2.0)).numpy().tolist() == [[8.0]]


AT_EDGES = [
    0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-39, 2.9e-39, 1e-20,
    5e-14, 2e19, 1e20, 3e38, -3e38,
]  # fmt: skip


@pytest.mark.parametrize("how", ["eager", "native", "numpy"])
@pytest.mark.parametrize("exponent", [-2.0, -1.0, -0.5, 0.5, 2.0, 3.0, 4.0, 5.0, 1.5])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_common_powers_are_those_of_the_general_function(dtype, exponent, how):
    rng = np.random.default_rng(0)
    reach = {"f4": 9, "f8": 70}[dtype]
    numbers = rng.normal(size=2000) * 10.0 ** rng.uniform(-reach, reach, 2000)
    x = np.concatenate([AT_EDGES, rng.normal(size=500), numbers]).astype(dtype)
    wide = x.astype("f8")
    with np.errstate(all="ignore"):  # an array of exponents has no shortcuts in NumPy
        wanted = np.power(wide, np.full(x.shape, exponent)).astype(dtype)
    with tw.device("CPU"), tw.config.use_target("numpy" if how == "eager" else how):
        y = tw.constant(exponent, dtype)
        power = (
            (lambda x: tw.pow(x, y))
            if how == "eager"
            else tw.function(lambda x: tw.pow(x, y))
        )
        found = power(tw.constant(x)).numpy()
    np.testing.assert_array_max_ulp(found, wanted, 2)
    there = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[there]), np.signbit(wanted[there]))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(wanted))
