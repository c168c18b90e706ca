"""`EarlyStopping` and `TerminateOnNaN`: when a training ends, and with which weights."""

import warnings

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.keras import callbacks
from tapewright.keras.callbacks import (
    CallbackList,
    EarlyStopping,
    TerminateOnNaN,
)

from .loops_by_hand import Model, lead, train
from .small_training import fit_small, small_model


def test_only_nan_stops_like_no_improvement():
    callback = EarlyStopping(patience=2)
    assert lead(callback, [float("nan")] * 5).stop_training
    assert callback.stopped_epoch == 2


def test_where_nothing_is_best_the_first_weights_are():
    callback = EarlyStopping(patience=2, restore_best_weights=True)
    assert lead(callback, [float("nan")] * 5).weights == [0.0]


def test_early_stopping_says_what_it_does(capsys):
    callback = EarlyStopping(verbose=1, restore_best_weights=True)
    model = lead(callback, [1.0, 2.0])
    assert capsys.readouterr().out == (
        "Epoch 2: early stopping\n"
        "Restoring model weights from the end of the best epoch: 1.\n"
    )
    assert model.weights == [0.0]


def test_a_callback_can_be_used_for_another_fit():
    callback = EarlyStopping(patience=1)
    for first in (1.0, 5.0):
        lead(callback, [first, first - 0.5, first + 1.0])
        assert (callback.stopped_epoch, callback.best) == (2, first - 0.5)


def test_stopping_early_restores_the_best_weights():
    net, kept = small_model(optimizer=keras.optimizers.SGD(0.0)), []
    spoil = callbacks.LambdaCallback(
        on_epoch_begin=lambda e, logs: kept.append(net.get_weights()),
        on_epoch_end=lambda e, logs: logs.update(val_score=[3.0, 2.0, 1.0][e]),
        on_train_batch_end=lambda b, logs: net.weights[0].assign_add(
            tw.ones_like(net.weights[0])
        ),
    )
    stop = callbacks.EarlyStopping(
        "val_score", mode="max", patience=1, restore_best_weights=True
    )
    history = fit_small(net, spoil, stop)
    assert history.epoch == [0, 1] and stop.best_epoch == 0
    np.testing.assert_array_equal(net.get_weights()[0], kept[1][0])


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_training_stops_at_a_loss_that_is_no_number(loss, capsys):
    callbacks = CallbackList(TerminateOnNaN(), model=Model())
    train(callbacks, loss=loss, batches=1)
    assert callbacks.model.stop_training
    assert capsys.readouterr().out == "Batch 0: Invalid loss, terminating training\n"


def test_a_loss_that_is_no_number_can_be_an_error():
    callbacks = CallbackList(TerminateOnNaN(raise_error=True), model=Model())
    with pytest.raises(RuntimeError, match="loss .*nan .*batch 0"):
        train(callbacks, loss=float("nan"))


def test_training_stops_within_an_epoch_at_nan():
    net, seen = small_model(optimizer=keras.optimizers.SGD(float("inf"))), []
    count = callbacks.LambdaCallback(on_train_batch_end=lambda b, logs: seen.append(b))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        fit_small(net, callbacks.TerminateOnNaN(), count)
    assert len(seen) < 4 and net.stop_training
