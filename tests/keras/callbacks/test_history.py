"""`History`, also as the result of `fit`."""

import pytest

from tapewright.keras import callbacks
from tapewright.keras.callbacks import (
    CallbackList,
    History,
)

from .loops_by_hand import Model, train
from .small_training import fit_small, small_model


def test_history_keeps_values_and_numbers_of_epochs():
    callbacks = CallbackList(add_history=True, model=Model(), epochs=2)
    train(callbacks)
    history = callbacks.model.history
    assert history.epoch == [0, 1]
    assert history.history == {"loss": [0.5, 0.5], "val_loss": [0.5, 0.5]}


def test_a_state_that_was_got_can_be_set_and_is_no_view():
    history = History()
    history.on_epoch_end(0, {"loss": 1.0})
    state = history.get_state()
    history.on_epoch_end(1, {"loss": 0.5})
    other = History()
    other.set_state(state)
    assert other.epoch == [0] and other.history == {"loss": [1.0]}
    with pytest.raises(
        ValueError, match=r"names .*\['epoch', 'history'\].*got \['epoch'\]"
    ):
        other.set_state({"epoch": []})


def test_fit_returns_the_history_with_validation():
    history = fit_small(small_model(), validation_split=0.25)
    assert isinstance(history, callbacks.History)
    assert history.epoch == [0, 1, 2] and history.params["epochs"] == 3
    assert list(history.history) == ["accuracy", "loss", "val_accuracy", "val_loss"]
    assert {type(v) for values in history.history.values() for v in values} == {float}
