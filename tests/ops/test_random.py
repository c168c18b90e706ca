"""Random numbers: they come back, and are spread as they should be."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.errors import ShapeError

DRAWS = [
    lambda **how: tw.random.normal((50,), **how),
    lambda **how: tw.random.uniform((50,), **how),
    lambda **how: tw.random.uniform((50,), 0, 1000, tw.int32, **how),
    lambda **how: tw.random.truncated_normal((50,), **how),
    lambda **how: tw.random.categorical(tw.zeros((2, 9)), 20, **how),
    lambda **how: tw.random.shuffle(tw.range(50), **how),
]


@pytest.mark.parametrize("draw", DRAWS)
def test_a_seed_gives_the_same_numbers_again(draw):
    tw.random.set_seed(5)
    first, second = draw().numpy(), draw().numpy()
    tw.random.set_seed(5)
    np.testing.assert_array_equal(draw().numpy(), first)
    assert (first != second).any()


@pytest.mark.parametrize("draw", DRAWS)
def test_a_seed_of_its_own_does_not_move_the_global_stream(draw):
    tw.random.set_seed(5)
    expected = tw.random.normal((3,)).numpy()
    tw.random.set_seed(5)
    np.testing.assert_array_equal(draw(seed=1).numpy(), draw(seed=1).numpy())
    np.testing.assert_array_equal(tw.random.normal((3,)).numpy(), expected)


def test_the_state_of_a_generator_can_be_kept_and_put_back():
    generator = tw.random.Generator.from_seed(7)
    generator.normal((3,))
    state = generator.state.read()
    expected = generator.normal((3,)).numpy()
    generator.state.assign(state)
    np.testing.assert_array_equal(generator.normal((3,)).numpy(), expected)


def test_normal_numbers_have_the_mean_and_deviation_asked_for():
    x = tw.random.normal(
        (20_000,), mean=3.0, stddev=2.0, dtype=tw.float64, seed=0
    ).numpy()
    assert x.dtype == np.float64
    assert abs(x.mean() - 3) < 0.06 and abs(x.std() - 2) < 0.04


def test_uniform_numbers_fill_their_range_and_stay_in_it():
    x = tw.random.uniform((20_000,), -1.0, 3.0, seed=0).numpy()
    assert x.min() >= -1 and x.max() < 3 and x.dtype == np.float32
    assert abs(x.mean() - 1) < 0.05


def test_uniform_integers_take_each_value_and_none_beyond():
    x = tw.random.uniform((1000,), 2, 5, tw.int32, seed=0).numpy()
    assert sorted(set(x.tolist())) == [2, 3, 4] and x.dtype == np.int32


def test_truncated_numbers_stay_within_two_deviations():
    x = tw.random.truncated_normal((5000,), mean=1.0, stddev=0.5, seed=0).numpy()
    assert x.min() >= 0 and x.max() <= 2 and 0.4 < x.std() < 0.48


def test_classes_are_drawn_as_often_as_their_softmax_says():
    logits = tw.math.log([[0.7, 0.2, 0.1]])
    counts = np.bincount(tw.random.categorical(logits, 5000, seed=0).numpy()[0]) / 5000
    np.testing.assert_allclose(counts, [0.7, 0.2, 0.1], atol=0.03)


def test_a_shuffle_keeps_the_rows_together():
    x = tw.constant([[1, 10], [2, 20], [3, 30]])
    y = tw.random.shuffle(x, seed=0).numpy()
    assert sorted(y[:, 0].tolist()) == [1, 2, 3]
    np.testing.assert_array_equal(y[:, 1], y[:, 0] * 10)


def test_tensors_can_be_the_bounds():
    x = tw.random.uniform(
        (4,), tw.constant([0.0, 1, 2, 3]), tw.constant([1.0, 2, 3, 4])
    )
    assert np.floor(x.numpy()).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("call, kind, message", [
    (lambda: tw.random.normal((2,), dtype=tw.int32), TypeError, "floating"),
    (lambda: tw.random.uniform((2,), dtype=tw.int32), ValueError, "maxval"),
    (lambda: tw.random.categorical([0.0], 1), ShapeError, "batch, classes"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
