"""Callbacks in `fit`, `evaluate` and `predict`, which run traced."""

import csv
import warnings

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.keras import callbacks, layers

RNG = np.random.default_rng(0)
X = RNG.normal(size=(64, 4)).astype(np.float32)
Y = (X[:, :1] > 0).astype(np.float32)


def model(**options):
    keras.utils.set_random_seed(1)
    net = tw.Sequential(
        [
            keras.Input((4,)),
            layers.Dense(8, activation="relu"),
            layers.Dense(1, activation="sigmoid"),
        ]
    )
    options = {"optimizer": "adam", "metrics": ["accuracy"], **options}
    net.compile(loss="binary_crossentropy", **options)
    return net


def fit(net, *given, **options):
    options = {"epochs": 3, "batch_size": 16, "verbose": 0, **options}
    return net.fit(X, Y, callbacks=list(given), **options)


def test_fit_returns_the_history_with_validation():
    history = fit(model(), validation_split=0.25)
    assert isinstance(history, callbacks.History)
    assert history.epoch == [0, 1, 2] and history.params["epochs"] == 3
    assert list(history.history) == ["accuracy", "loss", "val_accuracy", "val_loss"]
    assert {type(v) for values in history.history.values() for v in values} == {float}


def test_stopping_early_restores_the_best_weights():
    net, kept = model(optimizer=keras.optimizers.SGD(0.0)), []
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
    history = fit(net, spoil, stop)
    assert history.epoch == [0, 1] and stop.best_epoch == 0
    np.testing.assert_array_equal(net.get_weights()[0], kept[1][0])


@pytest.mark.parametrize("name", ["val_accuracy", "accuracy", "val_loss"])
def test_the_direction_of_the_models_metrics_is_known(name):
    stop = callbacks.EarlyStopping(name)
    values = fit(model(), stop, validation_split=0.25).history[name]
    assert stop.best == (max if "accuracy" in name else min)(values)


def test_a_rate_that_was_set_counts_for_the_next_traced_step():
    net = model(optimizer=keras.optimizers.SGD(0.5))
    fit(net, callbacks.LearningRateScheduler(lambda epoch: 0.5), epochs=1)
    before = net.get_weights()
    schedule = callbacks.LearningRateScheduler(lambda epoch: 0.0)
    history = fit(net, schedule, epochs=2)
    assert history.history["learning_rate"] == [0.0, 0.0]
    for was, now in zip(before, net.get_weights()):
        np.testing.assert_array_equal(was, now)


def test_training_stops_within_an_epoch_at_nan():
    net, seen = model(optimizer=keras.optimizers.SGD(float("inf"))), []
    count = callbacks.LambdaCallback(on_train_batch_end=lambda b, logs: seen.append(b))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        fit(net, callbacks.TerminateOnNaN(), count)
    assert len(seen) < 4 and net.stop_training


def test_a_checkpoint_holds_the_weights_of_its_epoch(tmp_path, monkeypatch):
    net, saved, at_end = model(), {}, []
    monkeypatch.setattr(
        type(net),
        "save_weights",
        lambda self, path: saved.update({path: self.get_weights()}),
        raising=False,
    )
    path = tmp_path / "{epoch:02d}-{val_loss:.2f}.weights.h5"
    history = fit(
        net,
        callbacks.ModelCheckpoint(path, save_weights_only=True),
        callbacks.LambdaCallback(
            on_epoch_end=lambda e, logs: at_end.append(net.get_weights())
        ),
        validation_split=0.25,
    )
    losses = history.history["val_loss"]
    names = [f"{e:02d}-{v:.2f}.weights.h5" for e, v in enumerate(losses, 1)]
    assert list(saved) == [str(tmp_path / name) for name in names]
    for mine, theirs in zip(saved.values(), at_end):
        np.testing.assert_array_equal(mine[0], theirs[0])


def test_a_log_holds_what_the_history_does(tmp_path):
    path = tmp_path / "log.csv"
    history = fit(model(), callbacks.CSVLogger(path), validation_split=0.25)
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    for name, values in history.history.items():
        assert [float(row[name]) for row in rows] == values


def test_evaluation_with_averages_leaves_the_weights_as_they_are():
    optimizer = keras.optimizers.SGD(0.1, use_ema=True, ema_momentum=0.5)
    net = model(optimizer=optimizer)
    fit(net, callbacks.SwapEMAWeights(), validation_split=0.25)
    before = net.get_weights()
    net.evaluate(X, Y, verbose=0, callbacks=[callbacks.SwapEMAWeights()])
    for was, now in zip(before, net.get_weights()):
        np.testing.assert_array_equal(was, now)


def test_averages_are_kept_where_training_stops_early():
    """Keras has the latest weights then, the averages being overwritten."""

    def last(swap, stop):
        optimizer = keras.optimizers.SGD(0.5, use_ema=True, ema_momentum=0.9)
        net = model(optimizer=optimizer)
        end = callbacks.LambdaCallback(
            on_epoch_end=lambda e, logs: setattr(net, "stop_training", e == stop)
        )
        fit(net, end, callbacks.SwapEMAWeights(swap_on_epoch=swap), shuffle=False)
        return net.get_weights()

    for mine, theirs in zip(last(True, 1), last(False, 1)):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def test_without_a_terminal_fit_prints_a_line_an_epoch(capsys):
    net = model()
    fit(net, verbose="auto", epochs=2)
    net.evaluate(X, Y)
    net.predict(X)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" - ")[:2] for line in lines[:2]] == [
        ["Epoch 1/2", "4/4"],
        ["Epoch 2/2", "4/4"],
    ]
    assert len(lines) == 4 and lines[2].startswith("2/2 - ") and "loss: " in lines[2]
    assert lines[3].startswith("2/2 - ") and "loss" not in lines[3]


def test_a_hook_for_predictions_sees_the_outputs():
    shapes = []
    note = callbacks.LambdaCallback(
        on_predict_batch_end=lambda b, logs: shapes.append(logs["outputs"].shape)
    )
    model().predict(X, batch_size=40, verbose=0, callbacks=[note])
    assert shapes == [(40, 1), (24, 1)]


def test_an_error_in_a_callback_ends_fit_and_closes_files(tmp_path):
    def fail(epoch, logs):
        raise RuntimeError("enough")

    logger = callbacks.CSVLogger(tmp_path / "log.csv")
    ended = []
    with pytest.raises(RuntimeError, match="enough"):
        fit(
            model(),
            logger,
            callbacks.LambdaCallback(on_epoch_end=fail, on_train_end=ended.append),
        )
    assert logger.csv_file is None and not ended
