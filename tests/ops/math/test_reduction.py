"""Sums, extremes, products, norms, clipping: the op table, and the corners."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.ops.math import reduction as ops
from tapewright.test import (
    booleans,
    case,
    check_op,
    complexes,
    floats,
    integers,
)

pytestmark = pytest.mark.gpu_first

REDUCTIONS = [
    ("reduce_sum", np.sum), ("reduce_mean", np.mean), ("reduce_max", np.max),
    ("reduce_min", np.min), ("reduce_prod", np.prod),
    ("reduce_logsumexp", lambda x, **how: np.log(np.sum(np.exp(x), **how))),
]  # fmt: skip


def length(x, axis=None, keepdims=False):
    return np.sqrt(np.sum(np.abs(x) ** 2, axis=axis, keepdims=keepdims))


def shortened(x, limit, axes=None):
    return x * np.minimum(1.0, limit / length(x, axes, True))


CASES = [
    *[case(op, floats(2, 3), expect=f) for op, f in REDUCTIONS],
    *[case(op, floats(2, 3), axis=1, expect=lambda x, f=f: f(x, axis=1))
      for op, f in REDUCTIONS],
    *[case(op, floats(2, 3, 2), axis=(0, -1), keepdims=True,
           expect=lambda x, f=f: f(x, axis=(0, 2), keepdims=True)) for op, f in REDUCTIONS],
    *[case(op, floats(2, 3), keepdims=True, expect=lambda x, f=f: f(x, keepdims=True))
      for op, f in REDUCTIONS],
    *[case(op, floats(), expect=f) for op, f in REDUCTIONS],
    case("reduce_sum", complexes(2, 3), axis=0, expect=lambda x: x.sum(0)),
    case("reduce_mean", complexes(2, 3), axis=0, expect=lambda x: x.mean(0)),
    case("reduce_prod", complexes(2, 3), axis=0, expect=lambda x: x.prod(0)),
    case("reduce_sum", floats(0, 3), axis=0, expect=lambda x: np.zeros(3)),
    case("reduce_sum", floats(2, 0), axis=0, expect=lambda x: np.zeros(0)),
    case("reduce_prod", floats(0, 3), axis=0, expect=lambda x: np.ones(3)),
    case("reduce_max", floats(0, 3), axis=0, expect=lambda x: np.full(3, -np.inf)),
    case("reduce_min", floats(0, 3), axis=0, expect=lambda x: np.full(3, np.inf)),
    case("reduce_mean", floats(0, 3), axis=0, expect=lambda x: np.full(3, np.nan)),
    case("reduce_logsumexp", floats(0, 3), axis=0, expect=lambda x: np.full(3, -np.inf)),
    case("reduce_sum", integers(2, 3), axis=0, expect=lambda x: x.sum(0)),
    case("reduce_mean", integers(2, 3), axis=0, expect=lambda x: x.sum(0) // 2,
         label="integers"),
    case("reduce_max", integers(2, 3), axis=0, expect=lambda x: x.max(0), label="integers"),
    case("reduce_prod", np.array([[2.0, 0.0, 3.0], [0.0, 0.0, 1.5]]), axis=1,
         expect=lambda x: x.prod(1), label="zeros"),
    case("reduce_prod", floats(7), expect=np.prod),
    case("reduce_prod", floats(1, 2, 3), axis=0, expect=lambda x: x[0]),
    case("reduce_all", booleans(2, 3), axis=1, expect=lambda x: x.all(1)),
    case("reduce_any", booleans(2, 3), axis=0, keepdims=True,
         expect=lambda x: x.any(0, keepdims=True)),
    case("reduce_all", booleans(2, 3), expect=np.all),
    case("reduce_any", booleans(2, 3), expect=np.any),
    *[case("count_nonzero", x, axis=axis, keepdims=keepdims,
           label=f"{x.kind}, {axis}, {keepdims}",
           expect=lambda x, a=axis, k=keepdims: np.count_nonzero(x, axis=a, keepdims=k))
      for x in (integers(2, 3), booleans(2, 3)) for axis, keepdims in (
          (None, False), ((0, 1), True), (-1, False), (0, True))],
    case("count_nonzero", floats(), expect=lambda x: np.int64(1)),
    case("count_nonzero", floats(0, 3), axis=0, expect=lambda x: np.zeros(3, int)),
    case("count_nonzero", complexes(3), expect=lambda x: np.int64(3)),
    case("clip_by_norm", floats(2, 3), np.array(0.8),
         expect=shortened, label="outside"),
    case("clip_by_norm", floats(2, 3), np.array(9.0),
         expect=shortened, label="inside"),
    case("clip_by_norm", floats(2, 3), np.array(1.2), axes=(1,),
         expect=lambda x, c: shortened(x, c, 1)),
    case("clip_by_norm", floats(2, 3), np.array(1.2), axes=-1,
         expect=lambda x, c: shortened(x, c, -1)),
    case("global_norm", floats(2, 3), floats(2), floats(),
         expect=lambda *v: length(np.concatenate([x.ravel() for x in v]))),
    case("global_norm", floats(2, 3), expect=length),
    # composed of these
    *[case(tw.reduce_euclidean_norm, x, axis=axis, expect=lambda x, a=axis: length(x, a))
      for x in (floats(2, 3), complexes(2, 2)) for axis in (None, 1)
      if x.kind == "f"],
    case(tw.reduce_variance, floats(2, 3), axis=0, expect=lambda x: x.var(0)),
    case(tw.reduce_variance, complexes(2, 3), axis=0, expect=lambda x: x.var(0)),
    *[case(tw.math.reduce_std, x, axis=axis, keepdims=keepdims,
           expect=lambda x, a=axis, k=keepdims: x.std(a, keepdims=k))
      for x in (floats(2, 3), complexes(2, 3))
      for axis, keepdims in ((1, False), (None, True))],
    case(tw.math.reduce_std, floats(0, 3), axis=1, expect=lambda x: np.zeros(0)),
    case(lambda *t: tw.clip_by_global_norm(t, 1.5)[0], floats(2, 2), floats(3), order=2,
         expect=lambda *t: [x * 1.5 / np.hypot(length(t[0]), length(t[1])) for x in t],
         label="clip_by_global_norm"),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


@pytest.mark.parametrize("op", [tw.reduce_max, tw.reduce_min])
def test_ties_for_an_extreme_share_the_gradient_equally(slopes, op):
    assert slopes(op, [2.0, 2.0, 2.0, 2.0]) == [0.25, 0.25, 0.25, 0.25]


@pytest.mark.parametrize(
    ("dtype", "values", "wanted"),  # as TensorFlow has them
    [
        ("uint8", [0, 1, 2, 3, 7, 250], 43),
        ("int8", [127, 127, 100], 118),
        ("int16", [32767, 32767], 32767),
        ("int32", [2**31 - 1, 2**31 - 1], 2**31 - 1),
        ("int32", [-7, 0], -3),
        ("uint16", [65535, 65535], 65535),
    ],
)
def test_a_mean_is_right_where_the_sum_does_not_fit_into_the_dtype(
    dtype, values, wanted
):
    x = tw.constant(np.array([values, values], dtype))
    for mean in (tw.reduce_mean, tw.function(tw.reduce_mean)):
        assert mean(x).numpy() == wanted and mean(x).dtype == dtype
        assert tw.reduce_mean(x, axis=1).numpy().tolist() == [wanted, wanted]


def test_a_mean_in_half_precision_does_not_overflow():
    assert tw.reduce_mean(tw.constant([60000.0, 60000.0], "float16")).numpy() == 6e4


def test_the_euclidean_norm_of_integers_is_rounded_down():
    x = tw.constant([[-7, -1, 0], [1, 2, 5]], "int8")
    for axis, wanted in ((None, 8), (0, [7, 2, 5]), (1, [7, 5])):
        norm = tw.math.reduce_euclidean_norm(x, axis)
        assert norm.dtype == "int8" and norm.numpy().tolist() == wanted


def test_only_those_that_tie_share(slopes):
    assert slopes(tw.reduce_max, [1.0, 3.0, 3.0]) == [0.0, 0.5, 0.5]


@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_global_norm_has_no_slope_at_zero(slopes, order):
    assert slopes(lambda x: tw.global_norm([x]), [0.0, 0.0], order=order) == [0.0, 0.0]


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("value", [2.0, 0.1, -1e8 / 3])  # the mean of three is rounded
def test_the_deviation_of_a_constant_has_no_slope(slopes, order, value):
    assert slopes(tw.reduce_std, [value] * 3, order=order) == [0.0, 0.0, 0.0]


def test_an_extreme_of_nan_passes_no_zero_cotangent_on_as_nan():
    x = tw.constant([np.nan, np.nan])
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.reduce_max(x)
    assert np.isnan(y.numpy())
    g = tape.gradient(y, x, output_gradients=tw.constant(0.0))
    assert g.numpy().tolist() == [0, 0]


def test_finite_entries_beside_infinity_have_no_share_of_a_logsumexp(slopes):
    assert tw.reduce_logsumexp([np.inf, 1.0]).numpy() == np.inf
    assert slopes(tw.reduce_logsumexp, [np.inf, 1.0]) == [1.0, 0.0]
    assert slopes(tw.reduce_logsumexp, [np.inf, np.inf, 1.0]) == [0.5, 0.5, 0.0]


def test_strings_are_counted_unless_empty_and_the_count_takes_a_dtype(device):
    if device == "cupy":
        pytest.skip("CuPy has no strings")
    assert tw.math.count_nonzero(tw.constant(["", "a", "bc"])).numpy() == 2
    count = tw.math.count_nonzero([0.0, 2.0], keepdims=True, dtype=tw.int32)
    assert count.dtype == tw.int32 and count.numpy().tolist() == [1]


BOOLEAN = np.array([True, False])
COMPLEX = np.array([1j, 2.0])
REFUSED = [
    *[(f, BOOLEAN) for f in (tw.reduce_sum, tw.reduce_mean, tw.reduce_prod, tw.reduce_max,
                             tw.reduce_min, tw.reduce_logsumexp, tw.math.reduce_variance)],
    *[(f, np.array([1, 2])) for f in (
        tw.reduce_all, tw.reduce_any, tw.reduce_logsumexp, tw.math.reduce_variance,
        tw.math.reduce_std)],
    *[(f, COMPLEX) for f in (tw.reduce_max, tw.reduce_min, tw.reduce_logsumexp,
                             tw.reduce_all)],
]  # fmt: skip


@pytest.mark.parametrize("op, x", REFUSED)
def test_what_cannot_be_reduced_is_refused(op, x):
    with pytest.raises(tw.errors.DTypeError, match="input_tensor .*cast"):
        op(x)


def test_a_norm_to_an_even_power_is_smooth_at_zero(slopes):
    assert slopes(lambda x: tw.reduce_sum(tw.square(x)) * 0.5, [0.0], order=2) == [1.0]


def test_a_product_with_one_zero_has_one_slope(slopes):
    assert slopes(tw.reduce_prod, [2.0, 0.0, 3.0]) == [0.0, 6.0, 0.0]


def test_a_product_with_two_zeros_has_mixed_second_derivatives():
    x = tw.constant([0.0, 0.0, 3.0])
    with tw.GradientTape() as outer:
        outer.watch(x)
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = tw.reduce_prod(x)
        g = tape.gradient(y, x)
    assert g.numpy().tolist() == [0.0, 0.0, 0.0]
    assert outer.jacobian(g, x).numpy().tolist() == [[0, 3, 0], [3, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("order", [1, 2, 3])
def test_logsumexp_of_nothing_but_minus_infinity_is_flat(slopes, order):
    x = [-np.inf, -np.inf]
    assert tw.reduce_logsumexp(x).numpy() == -np.inf
    assert slopes(tw.reduce_logsumexp, x, order=order) == [0.0, 0.0]


def test_logsumexp_does_not_overflow(slopes):
    assert tw.reduce_logsumexp([1e4, 1e4]).numpy() == np.float32(1e4 + np.log(2))
    assert slopes(tw.reduce_logsumexp, [1e4, -1e4]) == [1.0, 0.0]


def test_a_short_tensor_is_not_clipped_and_passes_its_gradient_whole(slopes):
    assert slopes(lambda x: tw.clip_by_norm(x, 1.0), [0.3, 0.4]) == [1.0, 1.0]
    assert slopes(lambda x: tw.clip_by_norm(x, 1.0), [0.0, 0.0]) == [1.0, 1.0]


def test_clipping_by_the_global_norm_keeps_none_and_says_when_a_norm_is_not_finite():
    clipped, total = tw.clip_by_global_norm([tw.constant([3.0, 4.0]), None], 1.0)
    assert total.numpy() == 5 and clipped[1] is None
    np.testing.assert_allclose(clipped[0].numpy(), [0.6, 0.8], rtol=1e-6)
    clipped, _ = tw.clip_by_global_norm([tw.constant([np.inf])], 1.0)
    assert np.isnan(clipped[0].numpy()).all()


SLICED = {
    "global_norm": lambda x: tw.global_norm([x]),
    "clip_by_global_norm": lambda x: tw.clip_by_global_norm([x], 1.0)[0][0],
    "clip_by_norm": lambda x: tw.clip_by_norm(x, 1.0),
    "clip_by_norm of rows": lambda x: tw.clip_by_norm(x, 1.5, axes=[1]),
    "clip_by_norm of columns": lambda x: tw.clip_by_norm(x, 1.5, axes=[0]),
    "clip_by_value": lambda x: tw.clip_by_value(x, -1.5, tw.constant(1.5)),
    "clip_by_value beside 0": lambda x: tw.clip_by_value(x, 0.5, [1.5, 9.0]),
    "norm": tw.norm,
    "l2_loss": tw.nn.l2_loss,
}


@pytest.mark.parametrize("target", ["eager", "numpy", "native"])
@pytest.mark.parametrize("name", SLICED)
def test_indexed_slices_count_as_the_tensor_that_they_stand_for(name, target):
    """Repeated rows are summed, also in derivatives and for unknown numbers of rows."""
    rows, values = [3, 0, 3, 1, 0], [[1, 2], [-3, 0.5], [2, 2], [0, 1], [-1, 1.5]]
    dense = np.zeros((5, 2), np.float32)
    np.add.at(dense, rows, values)
    weights = tw.constant(np.arange(10, dtype=np.float32).reshape(5, 2) - 4)

    def value_and_slope(values, rows=None):
        with tw.GradientTape() as tape:
            tape.watch(values)
            x = values
            if rows is not None:
                x = tw.IndexedSlices(values, rows, (5, 2))
            y = tw.convert_to_tensor(SLICED[name](x))
            total = tw.reduce_sum(y * weights)
        return y, tape.gradient(total, values)

    expected, slope = value_and_slope(tw.constant(dense))
    run = value_and_slope
    if target != "eager":
        signature = [tw.TensorSpec([None, 2]), tw.TensorSpec([None], "int32")]
        with tw.config.use_target(target):
            run = tw.function(run, input_signature=signature)
    y, found = run(tw.constant(values, "float32"), tw.constant(rows))
    np.testing.assert_allclose(y.numpy(), expected.numpy(), rtol=1e-6)
    np.testing.assert_allclose(found.numpy(), slope.numpy()[rows], rtol=1e-5, atol=1e-6)


def test_clipped_indexed_slices_stay_sparse():
    slices = tw.IndexedSlices(tw.ones((3, 1)), tw.constant([0, 0, 1]))
    (clipped,), total = tw.clip_by_global_norm([slices], 1.0)
    np.testing.assert_allclose(total.numpy(), 5**0.5, rtol=1e-6)
    for each in (
        clipped,
        tw.clip_by_norm(slices, 1.0),
        tw.clip_by_value(slices, -1, 1),
    ):
        assert isinstance(each, tw.IndexedSlices)
    with pytest.raises(ValueError, match="dense_shape"):
        tw.clip_by_value(slices, 0.5, 1.0)


def test_a_mean_of_nothing_is_nan_without_a_warning():
    assert np.isnan(tw.reduce_mean(tw.zeros((0,))).numpy())


def test_an_axis_out_of_range_is_explained():
    with pytest.raises(ValueError, match="axis .*-2.*1.*rank 2.*got 2"):
        tw.reduce_sum(tw.zeros((2, 3)), axis=2)


def answer(op, diagonal, **attributes):
    rule = getattr(ops, op).primitive.diagonal_rule
    return rule((diagonal,), tw.zeros((2, 3, 4)), **attributes)


def test_a_sum_beside_the_diagonal_axis_leaves_it():
    assert answer("reduce_sum", -3, axis=-1, keepdims=False) == -2
    assert answer("reduce_sum", -3, axis=-1, keepdims=True) == -3
    assert answer("reduce_mean", -1, axis=(0, 1), keepdims=False) == -1


def test_a_sum_over_the_diagonal_axis_ends_it():
    assert answer("reduce_sum", -1, axis=2, keepdims=True) is None


def test_a_mean_of_integers_is_rounded_towards_zero():
    assert tw.reduce_mean([-1, -2]).numpy() == -1
    assert tw.reduce_mean([1, 2]).numpy() == 1


def test_keepdims_none_is_false():
    assert tw.reduce_sum(np.ones((2, 3)), axis=1, keepdims=None).shape == (2,)


def test_axes_may_be_a_range():
    assert (
        tw.reduce_sum(tw.ones((2, 3, 4)), axis=range(2)).numpy().tolist() == [6.0] * 4
    )


@pytest.mark.parametrize("axis", [0, -1, [0]])
@pytest.mark.parametrize("wrap", [lambda f: f, tw.function], ids=["eager", "traced"])
def test_a_scalar_has_no_axis_to_reduce(wrap, axis):
    reductions = [
        tw.reduce_sum, tw.reduce_prod, tw.reduce_max, tw.reduce_min, tw.reduce_mean,
        tw.reduce_logsumexp, tw.math.reduce_euclidean_norm, tw.math.count_nonzero,
    ]  # fmt: skip
    for op in reductions:
        with pytest.raises(tw.errors.InvalidArgumentError, match="axis"):
            wrap(lambda x, op=op: op(x, axis=axis))(tw.constant(2.0))
    for op in (tw.reduce_all, tw.reduce_any):
        with pytest.raises(tw.errors.InvalidArgumentError, match="axis"):
            wrap(lambda x, op=op: op(x, axis=axis))(tw.constant(True))


def test_a_scalar_reduced_over_no_axes_stays_itself():
    for axis in (None, ()):
        assert tw.reduce_sum(2.0, axis=axis).numpy() == 2.0
        assert tw.reduce_any(True, axis=axis).numpy()
