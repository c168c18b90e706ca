"""Learning rates by epoch and at a plateau; refused arguments."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.keras import callbacks
from tapewright.keras.callbacks import (
    CallbackList,
    LearningRateScheduler,
    ReduceLROnPlateau,
)

from .loops_by_hand import Model, lead, train
from .small_training import fit_small, small_model


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        (lambda epoch, rate: rate / 2, [0.05, 0.025]),
        (lambda epoch: 0.5 + epoch, [0.5, 1.5]),
        (lambda epoch, rate: np.float32(0.25), [0.25, 0.25]),
        (lambda epoch, rate: tw.constant(0.25), [0.25, 0.25]),
    ],
)
def test_a_schedule_sets_the_learning_rate_before_each_epoch(schedule, rates):
    callbacks = CallbackList(LearningRateScheduler(schedule), True, model=Model())
    train(callbacks)
    np.testing.assert_allclose(
        callbacks.model.history.history["learning_rate"], rates, rtol=1e-6
    )


def test_a_schedule_that_gives_no_number_is_refused():
    callbacks = CallbackList(LearningRateScheduler(lambda e, r: None), model=Model())
    with pytest.raises(ValueError, match="schedule .*got None for epoch 0"):
        train(callbacks)


def test_a_type_error_inside_a_schedule_is_not_hidden():
    def schedule(epoch, rate):
        return rate + None

    callbacks = CallbackList(LearningRateScheduler(schedule), model=Model())
    with pytest.raises(TypeError, match="unsupported operand"):
        train(callbacks)


def test_a_rate_that_was_set_counts_for_the_next_traced_step():
    net = small_model(optimizer=keras.optimizers.SGD(0.5))
    fit_small(net, callbacks.LearningRateScheduler(lambda epoch: 0.5), epochs=1)
    before = net.get_weights()
    schedule = callbacks.LearningRateScheduler(lambda epoch: 0.0)
    history = fit_small(net, schedule, epochs=2)
    assert history.history["learning_rate"] == [0.0, 0.0]
    for was, now in zip(before, net.get_weights()):
        np.testing.assert_array_equal(was, now)


def test_a_plateau_is_told_of_and_lowers_the_rate(capsys):
    model = lead(ReduceLROnPlateau(patience=1, factor=0.5, verbose=1), [1.0, 1.0])
    assert float(model.optimizer.learning_rate) == pytest.approx(0.05)
    assert "reducing learning rate to 0.05" in capsys.readouterr().out


def test_a_plateau_begins_anew_with_another_fit():
    callback = ReduceLROnPlateau(patience=2, factor=0.5)
    for _ in range(2):
        model = lead(callback, [1.0, 1.0])
        assert float(model.optimizer.learning_rate) == pytest.approx(0.1)


def test_a_factor_of_one_reduces_nothing_and_is_refused():
    with pytest.raises(ValueError, match="factor .*got 1"):
        ReduceLROnPlateau(factor=1)


def several(rest):
    """A small model, whose kernels Adam trains; ``rest`` trains its biases."""
    adam = keras.optimizers.Adam(0.1, name="adam")
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    optimizer = keras.optimizers.MultiOptimizer(
        lambda variable: adam if len(variable.shape) == 2 else rest
    )
    model.compile(optimizer, "mse")
    return model


def test_the_rates_of_several_optimizers_are_set_and_logged(tmp_path):
    model = several(keras.optimizers.SGD(0.2, name="sgd"))
    halve = LearningRateScheduler(lambda epoch, rate: rate / 2)
    plateau = ReduceLROnPlateau("loss", factor=0.1, patience=1, min_delta=100.0)
    board = callbacks.TensorBoard(tmp_path)
    x, y = np.ones((4, 2)), np.zeros((4, 1))
    history = model.fit(x, y, epochs=2, verbose=0, callbacks=[halve, plateau, board])
    logs = history.history
    np.testing.assert_allclose(logs["learning_rate_adam"], [0.05, 0.025], rtol=1e-6)
    np.testing.assert_allclose(logs["learning_rate_sgd"], [0.1, 0.05], rtol=1e-6)
    rates = [float(each.learning_rate) for each in model.optimizer.optimizers]
    np.testing.assert_allclose(sorted(rates), [0.0025, 0.005], rtol=1e-6)


def test_averages_of_one_of_several_optimizers_are_swapped():
    averaging = keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5)
    model = several(averaging)
    x, y = np.ones((4, 2)), np.zeros((4, 1))
    swap = callbacks.SwapEMAWeights()
    model.fit(x, y, epochs=1, verbose=0, validation_data=(x, y), callbacks=[swap])
    kernel, bias = model.trainable_variables
    (average,) = averaging._model_variables_moving_average
    bias.assign([3.0])
    swap.on_test_begin()
    assert bias.numpy() != 3.0
    np.testing.assert_array_equal(average, [3.0])
    swap.on_test_end()
    np.testing.assert_array_equal(bias, [3.0])
    with pytest.raises(ValueError, match="one of a MultiOptimizer.*use_ema=True"):
        model = several(keras.optimizers.SGD(0.1))
        model.fit(
            x,
            y,
            verbose=0,
            validation_data=(x, y),
            callbacks=[callbacks.SwapEMAWeights()],
        )
