"""Monitored values: direction, names, NaN, states."""

import warnings

import numpy as np
import pytest

import tapewright as tw
from tapewright.keras import callbacks
from tapewright.keras.callbacks import (
    CallbackList,
    EarlyStopping,
    ModelCheckpoint,
    ReduceLROnPlateau,
)

from .loops_by_hand import Metric, WatchedModel, lead
from .small_training import fit_small, small_model


@pytest.mark.parametrize(
    ("name", "metrics", "best"),
    [
        ("loss", (), 1.0),
        ("out_loss", (), 1.0),
        ("accuracy", (Metric("accuracy", "up"),), 2.0),
        ("val_accuracy", (Metric("accuracy", "up"),), 2.0),
        ("val_mae", (Metric("mae", "down"),), 1.0),
        ("val_out_accuracy", (Metric("accuracy", "up"),), 2.0),
    ],
)
def test_the_direction_of_a_value_is_known(name, metrics, best):
    callback = EarlyStopping(name, patience=5)
    lead(callback, [2.0, 1.0], WatchedModel(*metrics), name)
    assert callback.best == best


def test_a_value_of_unknown_direction_asks_for_a_mode():
    with pytest.raises(ValueError, match="mode='max'.*mode='min'"):
        lead(
            EarlyStopping("val_score"),
            [1.0],
            WatchedModel(Metric("score")),
            "val_score",
        )


def test_an_unknown_mode_is_refused():
    with pytest.raises(ValueError, match="mode .*got 'best'"):
        EarlyStopping(mode="best")


@pytest.mark.parametrize(
    "make",
    [
        EarlyStopping,
        ReduceLROnPlateau,
        lambda monitor: ModelCheckpoint(
            "m.weights.h5", monitor, save_best_only=True, save_weights_only=True
        ),
    ],
)
def test_an_unknown_name_warns_once_with_names_like_it(make, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        lead(make("val_acc"), [1.0, 0.9, 0.8], name="val_accuracy")
    (warning,) = caught
    assert "no 'val_acc' to monitor. Did you mean 'val_accuracy'?" in str(
        warning.message
    )


def test_anything_is_better_than_nan():
    callback = EarlyStopping(patience=1)
    lead(callback, [float("nan"), 2.0, 1.0])
    assert callback.best == 1.0


@pytest.mark.parametrize(
    "make",
    [
        lambda: EarlyStopping(patience=2, restore_best_weights=True),
        lambda: ReduceLROnPlateau(patience=2, cooldown=1),
    ],
)
def test_training_in_two_parts_goes_on_from_a_state(make):
    values = [1.0, 1.1, 0.9, 1.2, 1.3, 1.4, 1.5, 1.6]
    whole, model = make(), WatchedModel()
    lead(whole, values, model)
    first, second, other = make(), make(), WatchedModel()
    callbacks = CallbackList(first, model=other)
    callbacks.on_train_begin()
    for epoch in (0, 1, 2):
        other.weights = [float(epoch)]
        callbacks.on_epoch_end(epoch, {"val_loss": values[epoch]})
    callbacks = CallbackList(second, model=other)
    callbacks.on_train_begin()
    second.set_state(first.get_state())
    for epoch in range(3, len(values)):
        other.weights = [float(epoch)]
        callbacks.on_epoch_end(epoch, {"val_loss": values[epoch]})
        if other.stop_training:
            break
    callbacks.on_train_end()
    assert second.get_state() == whole.get_state()
    assert other.weights == model.weights
    assert float(other.optimizer.learning_rate) == float(model.optimizer.learning_rate)


@pytest.mark.parametrize("name", ["val_accuracy", "accuracy", "val_loss"])
def test_the_direction_of_the_models_metrics_is_known(name):
    stop = callbacks.EarlyStopping(name)
    values = fit_small(small_model(), stop, validation_split=0.25).history[name]
    assert stop.best == (max if "accuracy" in name else min)(values)


@pytest.mark.parametrize("kind", [callbacks.EarlyStopping, callbacks.ReduceLROnPlateau])
def test_an_array_cannot_be_monitored(kind):
    class Model(tw.keras.Model):
        def call(self, inputs):
            return inputs

        def train_step(self, data):
            return {"losses": tw.constant([1.0, 2.0])}

    model = Model()
    model.compile("sgd")
    with pytest.raises(ValueError, match=f"{kind.__name__}: 'losses'.*single number"):
        model.fit(np.ones((2, 1)), callbacks=[kind("losses", mode="min")], verbose=0)
