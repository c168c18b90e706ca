"""Moments of all kinds: the op table, edges, derivatives to the third order."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.test import (
    case,
    check_gradients,
    check_op,
    complexes,
    floats,
)


def both(x, axes):
    return x.mean(axes, keepdims=True), x.var(axes, keepdims=True)


def weighted(x, w, axes):
    w = np.broadcast_to(w, np.broadcast_shapes(x.shape, w.shape))
    mean = (w * x).sum(axes, keepdims=True) / w.sum(axes, keepdims=True)
    variance = (w * (x - mean) ** 2).sum(axes) / w.sum(axes)
    return mean.reshape(variance.shape), variance


WEIGHTS = {"low": 0.5, "high": 2.0}

CASES = [
    case("moments", floats(3, 2), axes=(-2,), expect=lambda x: both(x, 0)),
    case("moments", floats(2, 3, 2), axes=(-3, -1), expect=lambda x: both(x, (0, 2))),
    case("moments", floats(4), axes=(-1,), expect=lambda x: both(x, 0)),
    case("moments", floats(0, 2), axes=(-1,), expect=lambda x: both(x, 1)),
    case("moments", floats(2, 2), axes=(), expect=lambda x: (x, 0 * x)),
    # composed of others
    case(tw.nn.moments, floats(3, 2), axes=[0], expect=lambda x: (x.mean(0), x.var(0))),
    case(tw.nn.moments, floats(3, 2), axes=1, expect=lambda x: (x.mean(1), x.var(1))),
    case(tw.nn.moments, floats(2, 3, 2), axes=[-1, 0], keepdims=True,
         expect=lambda x: both(x, (0, 2))),
    case(tw.nn.moments, floats(), axes=[], expect=lambda x: (x, 0 * x)),
    case(tw.nn.moments, complexes(3), axes=[0], expect=lambda x: (x.mean(0), x.var(0) + 0j)),
    case(lambda x, w: tw.nn.weighted_moments(x, [0], w), floats(3, 2),
         floats(3, 2, **WEIGHTS), label="weighted_moments",
         expect=lambda x, w: weighted(x, w, 0)),
    case(lambda x, w: tw.nn.weighted_moments(x, [0, 1], w), floats(3, 2),
         floats(3, 1, **WEIGHTS), label="weighted_moments, broadcast",
         expect=lambda x, w: weighted(x, w, (0, 1))),
    case(lambda x: tw.nn.sufficient_statistics(x, [0], shift=2.0)[:3], floats(3, 2),
         label="sufficient_statistics",
         expect=lambda x: (np.array(3.0), (x - 2).sum(0), ((x - 2) ** 2).sum(0))),
    case(lambda x: tw.nn.normalize_moments(*tw.nn.sufficient_statistics(x, [0], 0.5)),
         floats(3, 2), label="normalize_moments",
         expect=lambda x: (x.mean(0), x.var(0))),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


def test_a_large_mean_does_not_spoil_the_variance():
    x = np.array([10000.0, 10001.0, 10002.0], np.float32)
    assert tw.nn.moments(x, [0])[1].numpy() == np.float32(2 / 3)


def test_half_precision_is_computed_in_single():
    mean, variance = tw.nn.moments(np.full(4000, 200, np.float16), [0])
    assert mean.dtype == variance.dtype == tw.float16
    assert mean.numpy() == 200 and variance.numpy() == 0


def test_weights_that_sum_to_zero_give_zeros():
    mean, variance = tw.nn.weighted_moments([1.0, 2.0], [0], [0.0, 0.0])
    assert mean.numpy() == 0 and variance.numpy() == 0


def test_the_variance_alone_is_exact_to_the_third_order():
    x = np.random.default_rng(0).normal(size=(4, 2))
    check_gradients(lambda x: tw.nn.moments(x, [0])[1] ** 2.0, [x], order=3)


def test_statistics_without_a_shift_give_none_back():
    count, total, squares, shift = tw.nn.sufficient_statistics([1.0, 2.0], [0])
    assert (count.numpy(), total.numpy(), squares.numpy()) == (2, 3, 5)
    assert shift is None
    mean, variance = tw.nn.normalize_moments(count, total, squares, shift)
    assert (mean.numpy(), variance.numpy()) == (1.5, 0.25)


def test_zero_fraction_counts_zeros_of_any_dtype():
    assert tw.nn.zero_fraction([0, 1, 0, 0]).numpy() == np.float32(0.75)
    assert tw.math.zero_fraction is tw.nn.zero_fraction


def test_an_axis_out_of_range_is_explained():
    with pytest.raises(ValueError, match="moments: axes .*-1.*0.*got 1"):
        tw.nn.moments([1.0, 2.0], [1])


def test_of_nothing_the_moments_are_nan_and_the_count_is_zero():
    nothing = np.zeros((0, 2), np.float32)
    for statistic in tw.nn.moments(nothing, [0]):
        np.testing.assert_array_equal(statistic, [np.nan, np.nan])
    assert tw.nn.sufficient_statistics(nothing, [0])[0].numpy() == 0


def test_axes_may_be_one_number_of_numpy():
    mean, _ = tw.nn.moments(np.array([[1.0, 3.0]]), np.int64(1))
    np.testing.assert_array_equal(mean, [2.0])


def test_zero_fraction_takes_booleans():
    assert tw.math.zero_fraction([True, False, False, True]).numpy() == 0.5
