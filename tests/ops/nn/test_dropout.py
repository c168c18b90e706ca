"""Dropout: what is zeroed, what it is scaled by, which stream decides."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.test import case, check_op

KEY = np.array([7, 4])

CASES = [
    case("dropout_mask", KEY, shape=[2, 3], rate=0.4, purpose=1),
    case("dropout_mask", KEY, shape=[], rate=0.4, dtype="float64", unmapped=["state"]),
]


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


def test_the_mask_is_that_of_uniform_numbers_however_large_it_is():
    x = tw.ones([3, 20_000])
    tw.random.set_seed(2)
    drawn = tw.random.uniform([3, 20_000], seed=4).numpy()
    wanted = np.where(drawn >= np.float32(0.25), np.float32(1 / 0.75), 0)
    tw.random.set_seed(2)
    np.testing.assert_array_equal(tw.nn.dropout(x, 0.25, seed=4), wanted)


def test_a_share_is_zeroed_and_the_rest_scaled_up():
    tw.random.set_seed(0)
    y = tw.nn.dropout(tw.ones([200, 100]), 0.2).numpy()
    assert y.dtype == np.float32
    assert set(np.unique(y)) == {np.float32(0), np.float32(1.25)}
    assert (y == 0).mean() == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize("dtype", [tw.float16, tw.float32, tw.float64])
def test_the_dtype_stays(dtype):
    assert tw.nn.dropout(tw.ones([3], dtype), 0.5).dtype == dtype


def test_a_rate_of_zero_returns_the_input():
    x = tw.constant([1.0, 2.0])
    assert tw.nn.dropout(x, 0) is x and tw.nn.dropout(x, 0.0) is x


def test_the_gradient_is_the_mask_and_the_second_is_none():
    x = tw.constant(np.arange(1.0, 40.0))
    with tw.GradientTape() as outer:
        outer.watch(x)
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = tw.nn.dropout(x, 0.5)
        slope = tape.gradient(y, x)
    np.testing.assert_allclose(slope, y.numpy() / x.numpy(), rtol=1e-12)
    assert outer.gradient(slope, x) is None


def test_a_rate_that_is_a_tensor_gets_the_gradient_of_the_scale():
    rate = tw.constant(0.5, tw.float64)
    with tw.GradientTape() as tape:
        tape.watch(rate)
        y = tw.nn.dropout(np.ones(100), rate, seed=1)
    kept = (y.numpy() == 2).sum()
    assert 30 < kept < 70
    assert tape.gradient(y, rate).numpy() == kept * 4.0  # of 1 / (1 - rate)


def test_axes_of_size_one_share_a_draw():
    y = tw.nn.dropout(
        tw.ones([4, 30, 5]), 0.5, noise_shape=[None, 1, 5], seed=3
    ).numpy()
    assert (y == y[:, :1]).all() and len(np.unique(y[:, 0])) == 2


def test_a_seed_has_a_stream_of_its_own_and_leaves_the_global_one():
    x = tw.ones([100])
    tw.random.set_seed(5)
    plain = tw.random.uniform([3]).numpy()
    tw.random.set_seed(5)
    first = tw.nn.dropout(x, 0.5, seed=7).numpy()
    np.testing.assert_array_equal(tw.random.uniform([3]), plain)
    assert (tw.nn.dropout(x, 0.5, seed=7).numpy() != first).any()
    tw.random.set_seed(5)
    np.testing.assert_array_equal(tw.nn.dropout(x, 0.5, seed=7), first)


def test_without_a_seed_the_global_stream_decides():
    x = tw.ones([100])
    tw.random.set_seed(5)
    first, second = tw.nn.dropout(x, 0.5).numpy(), tw.nn.dropout(x, 0.5).numpy()
    tw.random.set_seed(5)
    np.testing.assert_array_equal(tw.nn.dropout(x, 0.5), first)
    assert not np.array_equal(first, second)


def test_stateless_noise_is_a_function_of_its_seed():
    x, f = tw.ones([100]), tw.nn.experimental.stateless_dropout
    first = f(x, 0.5, seed=[1, 2]).numpy()
    np.testing.assert_array_equal(f(x, 0.5, [1, 2], "philox"), first)
    assert not np.array_equal(f(x, 0.5, seed=[1, 3]).numpy(), first)
    assert not np.array_equal(f(x, 0.5, seed=[2, 2]).numpy(), first)


@pytest.mark.parametrize("rate", [-0.1, 1.0, 2])
def test_a_rate_out_of_range_is_refused(rate):
    with pytest.raises(ValueError, match=f"dropout: rate must be .* got {rate}"):
        tw.nn.dropout([1.0], rate)


def test_integers_are_refused():
    with pytest.raises(tw.errors.DTypeError, match="dropout: x must be floating"):
        tw.nn.dropout([1, 2], 0.5)


@pytest.mark.parametrize("noise_shape", [[2], [3, 3], [2, 3, 1]])
def test_a_noise_shape_that_does_not_fit_is_refused(noise_shape):
    with pytest.raises(tw.errors.ShapeError, match="noise_shape"):
        tw.nn.dropout(tw.ones([2, 3]), 0.5, noise_shape)


def test_a_stateless_seed_is_two_integers():
    with pytest.raises(ValueError, match="seed .*got 3"):
        tw.nn.experimental.stateless_dropout([1.0], 0.5, seed=3)


def test_another_algorithm_is_refused():
    with pytest.raises(ValueError, match="rng_alg .*None.*'philox'.*got 'threefry'"):
        tw.nn.experimental.stateless_dropout([1.0], 0.5, [1, 2], rng_alg="threefry")
