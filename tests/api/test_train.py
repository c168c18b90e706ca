"""`tw.train.ExponentialMovingAverage`, with TensorFlow's numbers."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.train import ExponentialMovingAverage


def test_averages_follow_their_variables():
    v, w = tw.Variable([1.0, 2.0], name="v"), tw.Variable(3.0, dtype="float64")
    ema = ExponentialMovingAverage(0.9)
    assert ema.average(v) is None
    assert ema.apply([v, w]) is None
    average = ema.average(v)
    assert average.name == ema.average_name(v) == "v/ExponentialMovingAverage"
    assert not average.trainable and ema.average(w).dtype == tw.float64
    v.assign([5.0, 5.0])
    ema.apply([v, w])
    np.testing.assert_allclose(average, [1.4, 2.3], rtol=1e-6)
    v.assign([0.0, 5.0])
    ema.apply([v])
    np.testing.assert_allclose(average, [1.26, 2.57], rtol=1e-6)
    assert ema.average(w).numpy() == 3.0


def test_the_number_of_updates_bounds_the_decay():
    v, n = tw.Variable(0.0), tw.Variable(0)
    ema = ExponentialMovingAverage(0.99, num_updates=n)
    ema.apply([v])
    v.assign(10.0)
    ema.apply([v])
    assert ema.average(v).numpy() == 9.0
    n.assign(50)
    ema.apply([v])
    np.testing.assert_allclose(ema.average(v), 9.15, rtol=1e-6)


def test_a_traced_step_may_make_the_averages_of_a_model():
    model = tw.keras.Sequential([tw.keras.Input((2,)), tw.keras.layers.Dense(1)])
    rate = tw.Variable(0.5)
    ema = ExponentialMovingAverage(rate)

    @tw.function
    def step():
        for v in model.trainable_variables:
            v.assign(tw.ones_like(v) + v)
        ema.apply(model.trainable_variables)

    start = [v.numpy() for v in model.trainable_variables]
    step()
    step()
    for v, before in zip(model.trainable_variables, start):
        np.testing.assert_allclose(ema.average(v), before + 1.25, rtol=1e-5)


@pytest.mark.parametrize("make", [lambda: tw.constant(1.0), lambda: tw.Variable(1)])
def test_only_floating_variables_have_averages(make):
    with pytest.raises(
        TypeError, match="var_list must contain floating variables, got"
    ):
        ExponentialMovingAverage(0.9).apply([make()])
