"""`SwapEMAWeights`: averages in evaluation, training weights between."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.keras import callbacks
from tapewright.keras.callbacks import (
    CallbackList,
    SwapEMAWeights,
)

from .loops_by_hand import Model
from .small_training import X, Y, fit_small, small_model


class Averaging:
    """As much of an optimizer with averages as the callback needs."""

    use_ema = True

    def __init__(self):
        self._trainable_variables = [tw.Variable([1.0])]
        self._model_variables_moving_average = [tw.Variable([2.0], trainable=False)]

    def values(self):
        both = self._trainable_variables + self._model_variables_moving_average
        return [v.numpy().item() for v in both]


def averaging(**options):
    model = Model()
    model.optimizer = Averaging()
    callbacks = CallbackList(SwapEMAWeights(**options), model=model, epochs=2)
    return callbacks, model.optimizer.values


def test_evaluation_sees_averages_and_training_weights():
    callbacks, values = averaging()
    callbacks.on_train_begin()
    callbacks.on_epoch_begin(0)
    callbacks.on_test_begin()
    assert values() == [2.0, 1.0]
    callbacks.on_test_end()
    assert values() == [1.0, 2.0]
    callbacks.on_predict_begin()
    assert values() == [2.0, 1.0]
    callbacks.on_predict_end()
    assert values() == [1.0, 2.0]


def test_averages_can_stay_between_epochs_and_are_kept_after_the_last():
    callbacks, values = averaging(swap_on_epoch=True)
    callbacks.on_epoch_begin(0)
    callbacks.on_epoch_end(0)
    assert values() == [2.0, 1.0]
    callbacks.on_epoch_begin(1)
    assert values() == [1.0, 2.0]
    callbacks.on_epoch_end(1)
    assert values() == [2.0, 2.0]


def test_an_interrupted_evaluation_gives_the_weights_back():
    callbacks, values = averaging()
    callbacks.on_test_begin()
    callbacks.on_close()
    assert values() == [1.0, 2.0]


def test_averages_need_an_optimizer_that_keeps_them():
    callbacks = CallbackList(SwapEMAWeights(), model=Model())
    with pytest.raises(ValueError, match="use_ema=True"):
        callbacks.on_test_begin()


def test_evaluation_with_averages_leaves_the_weights_as_they_are():
    optimizer = keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5)
    net = small_model(optimizer=optimizer)
    fit_small(net, callbacks.SwapEMAWeights(), validation_split=0.25)
    before = net.get_weights()
    net.evaluate(X, Y, verbose=0, callbacks=[callbacks.SwapEMAWeights()])
    for was, now in zip(before, net.get_weights()):
        np.testing.assert_array_equal(was, now)


def test_averages_are_kept_where_training_stops_early():
    """Keras has the latest weights then, the averages being overwritten."""

    def last(swap, stop):
        optimizer = keras.optimizers.SGD(0.5, use_ema=True, ema_momentum=0.9)
        net = small_model(optimizer=optimizer)
        end = callbacks.LambdaCallback(
            on_epoch_end=lambda e, logs: setattr(net, "stop_training", e == stop)
        )
        fit_small(net, end, callbacks.SwapEMAWeights(swap_on_epoch=swap), shuffle=False)
        return net.get_weights()

    for mine, theirs in zip(last(True, 1), last(False, 1)):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)
