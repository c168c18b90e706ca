"""`TerminateOnNaN`: losses that are no numbers end the training."""

import warnings

import pytest

from tapewright import keras
from tapewright.keras import callbacks
from tapewright.keras.callbacks import (
    CallbackList,
    TerminateOnNaN,
)

from .loops_by_hand import Model, train
from .small_training import fit_small, small_model


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
