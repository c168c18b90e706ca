"""`ModelCheckpoint`: paths, frequencies, best values, failing disks."""

import os

import numpy as np
import pytest

import tapewright as tw
from tapewright.keras import callbacks
from tapewright.keras.callbacks import (
    CallbackList,
    ModelCheckpoint,
)
from tapewright.storage.atomic import temporary_beside

from .loops_by_hand import WatchedModel, lead
from .small_training import fit_small, small_model


def weights_file(folder, name="{epoch}.weights.h5", **options):
    return ModelCheckpoint(folder / name, save_weights_only=True, **options)


def test_a_checkpoint_makes_its_folder(tmp_path):
    model = lead(weights_file(tmp_path / "new" / "deep"), [1.0])
    assert model.saved == [str(tmp_path / "new" / "deep" / "1.weights.h5")]


def test_a_folder_that_cannot_be_made_for_a_checkpoint_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(tw.errors.SavingError, match="the folder cannot be made"):
        lead(weights_file(tmp_path / "file"), [1.0])


def test_a_checkpoint_removes_what_a_killed_training_left(tmp_path):
    with temporary_beside(tmp_path / "1.weights.h5") as path:
        parts = os.path.basename(path).split(".")
    gone = [
        ".".join([*parts[:-4], number, *parts[-3:]]) for number in ("1", "99999999")
    ]
    for name in gone:  # of a process that runs, and of one that does not
        (tmp_path / name).touch()
    lead(weights_file(tmp_path), [1.0])
    assert [name for name in os.listdir(tmp_path) if name.endswith("tmp")] == gone[:1]


def test_a_checkpoint_says_what_it_does(tmp_path, capsys):
    callback = weights_file(tmp_path, "m.weights.h5", save_best_only=True, verbose=1)
    lead(callback, [1.0, 2.0])
    assert capsys.readouterr().out.splitlines() == [
        "Epoch 1: val_loss improved from None to 1.00000, saving model to "
        f"{tmp_path / 'm.weights.h5'}",
        f"Epoch 1: finished saving model to {tmp_path / 'm.weights.h5'}",
        "Epoch 2: val_loss did not improve from 1.00000",
    ]


@pytest.mark.parametrize(
    ("path", "weights_only"),
    [("m.keras", True), ("m.h5", True), ("m.txt", False), ("m", True)],
)
def test_another_ending_is_refused(path, weights_only):
    with pytest.raises(ValueError, match="filepath must end in"):
        ModelCheckpoint(path, save_weights_only=weights_only)


@pytest.mark.parametrize("freq", ["batch", 0, -1, 1.5, None])
def test_another_frequency_is_refused(freq):
    with pytest.raises(ValueError, match="save_freq .*'epoch'"):
        ModelCheckpoint("m.weights.h5", save_weights_only=True, save_freq=freq)


def test_a_path_with_an_unknown_value_names_those_there_are(tmp_path):
    callback = weights_file(tmp_path, "{val_los:.2f}.weights.h5")
    with pytest.raises(KeyError, match="'val_los'.*'val_loss'"):
        lead(callback, [1.0])


def test_a_model_that_cannot_be_saved_as_a_whole_is_refused_at_once():
    with pytest.raises(TypeError, match=r"save\(\).*save_weights_only"):
        CallbackList(ModelCheckpoint("m.keras"), model=WatchedModel())


def test_what_could_not_be_saved_does_not_count_as_best(tmp_path):
    callback = weights_file(tmp_path, save_best_only=True)
    model = lead(callback, [1.0])
    model.fails = True
    with pytest.raises(OSError, match="disk is full"):
        callback.on_epoch_end(1, {"val_loss": 0.5})
    assert callback.best == 1.0


def test_only_a_frequency_in_batches_wants_batches(tmp_path):
    assert not CallbackList(weights_file(tmp_path))._tw_wants_train_batches
    assert CallbackList(weights_file(tmp_path, save_freq=2))._tw_wants_train_batches


def test_calls_of_several_batches_are_counted_as_such(tmp_path):
    model = WatchedModel()
    callback = weights_file(tmp_path, "{batch}.weights.h5", save_freq=4)
    callbacks = CallbackList(callback, model=model)
    callbacks.on_train_begin()
    callbacks.on_epoch_begin(0)
    for last in (2, 5, 8):
        callbacks.on_train_batch_end(last, {"loss": 1.0})
    assert [s.rpartition("/")[2] for s in model.saved] == ["6.weights.h5"]


def test_a_checkpoint_holds_the_weights_of_its_epoch(tmp_path, monkeypatch):
    net, saved, at_end = small_model(), {}, []
    monkeypatch.setattr(
        type(net),
        "save_weights",
        lambda self, path: saved.update({path: self.get_weights()}),
        raising=False,
    )
    path = tmp_path / "{epoch:02d}-{val_loss:.2f}.weights.h5"
    history = fit_small(
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
