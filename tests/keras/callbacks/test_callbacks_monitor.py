"""Callbacks that watch a value: what is better, unknown names, states, files of models."""

import os
import warnings

import pytest

import tapewright as tw
from tapewright.keras.callbacks import (
    CallbackList,
    EarlyStopping,
    ModelCheckpoint,
    ReduceLROnPlateau,
)
from tapewright.storage.atomic import temporary_beside


class Metric:
    def __init__(self, name, direction=None):
        self.name = name
        if direction:
            self._direction = direction


class Compiled:
    """Metrics within one, as models keep those of `compile`."""

    name = "compile_metrics"

    def __init__(self, *metrics):
        self.metrics = metrics


class Model:
    def __init__(self, *metrics):
        self.optimizer = tw.optimizers.SGD(0.1)
        self.metrics = [Metric("loss"), Compiled(*metrics)]
        self.stop_training = False
        self.weights = [0.0]
        self.saved = []
        self.fails = False

    def get_weights(self):
        return list(self.weights)

    def set_weights(self, weights):
        self.weights = list(weights)

    def save_weights(self, path):
        if self.fails:
            raise OSError("the disk is full")
        self.saved.append(str(path))
        with open(path, "w"):
            pass


def lead(callback, values, model=None, name="val_loss"):
    """Epochs with these values; what the model is then."""
    model = model or Model()
    callbacks = CallbackList(callback, model=model, epochs=len(values))
    callbacks.on_train_begin()
    for epoch, value in enumerate(values):
        callbacks.on_epoch_begin(epoch)
        model.weights = [float(epoch)]
        callbacks.on_epoch_end(epoch, {"loss": 1.0, name: value})
        if model.stop_training:
            break
    callbacks.on_train_end()
    callbacks.close()
    return model


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
    lead(callback, [2.0, 1.0], Model(*metrics), name)
    assert callback.best == best


def test_a_value_of_unknown_direction_asks_for_a_mode():
    with pytest.raises(ValueError, match="pass mode='max' or mode='min'"):
        lead(EarlyStopping("val_score"), [1.0], Model(Metric("score")), "val_score")


def test_an_unknown_mode_is_refused():
    with pytest.raises(ValueError, match="mode must be .* got 'best'"):
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
    assert "no 'val_acc' to monitor; did you mean 'val_accuracy'?" in str(
        warning.message
    )


def test_anything_is_better_than_nan():
    callback = EarlyStopping(patience=1)
    lead(callback, [float("nan"), 2.0, 1.0])
    assert callback.best == 1.0


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
    for _ in range(2):
        lead(callback, [1.0, 2.0, 3.0])
        assert (callback.stopped_epoch, callback.best) == (1, 1.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: EarlyStopping(patience=2, restore_best_weights=True),
        lambda: ReduceLROnPlateau(patience=2, cooldown=1),
    ],
)
def test_training_in_two_parts_goes_on_from_a_state(make):
    values = [1.0, 1.1, 0.9, 1.2, 1.3, 1.4, 1.5, 1.6]
    whole, model = make(), Model()
    lead(whole, values, model)
    first, second, other = make(), make(), Model()
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


def test_a_plateau_is_told_of_and_lowers_the_rate(capsys):
    model = lead(ReduceLROnPlateau(patience=1, factor=0.5, verbose=1), [1.0, 1.0])
    assert float(model.optimizer.learning_rate) == pytest.approx(0.05)
    assert "reducing learning rate to 0.05" in capsys.readouterr().out


def test_a_factor_of_one_reduces_nothing_and_is_refused():
    with pytest.raises(ValueError, match="factor must be less than 1, got 1"):
        ReduceLROnPlateau(factor=1)


# ----------------------------------------------------------------------------- files


def weights_file(folder, name="{epoch}.weights.h5", **options):
    return ModelCheckpoint(folder / name, save_weights_only=True, **options)


def test_a_checkpoint_makes_its_folder(tmp_path):
    model = lead(weights_file(tmp_path / "new" / "deep"), [1.0])
    assert model.saved == [str(tmp_path / "new" / "deep" / "1.weights.h5")]


def test_a_folder_that_cannot_be_made_for_a_checkpoint_is_told(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(tw.errors.SavingError, match="its folder cannot be made"):
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
    with pytest.raises(ValueError, match="save_freq must be"):
        ModelCheckpoint("m.weights.h5", save_weights_only=True, save_freq=freq)


def test_a_path_with_an_unknown_value_names_those_there_are(tmp_path):
    callback = weights_file(tmp_path, "{val_los:.2f}.weights.h5")
    with pytest.raises(KeyError, match="did you mean 'val_loss'"):
        lead(callback, [1.0])


def test_a_model_that_cannot_be_saved_as_a_whole_is_refused_at_once():
    with pytest.raises(TypeError, match=r"no method save\(\); try save_weights_only"):
        CallbackList(ModelCheckpoint("m.keras"), model=Model())


def test_what_could_not_be_saved_does_not_count_as_best(tmp_path):
    callback = weights_file(tmp_path, save_best_only=True)
    model = lead(callback, [1.0])
    model.fails = True
    with pytest.raises(OSError, match="disk is full"):
        callback.on_epoch_end(1, {"val_loss": 0.5})
    assert callback.best == 1.0


def test_only_a_frequency_in_batches_wants_batches(tmp_path):
    assert not CallbackList(weights_file(tmp_path)).wants_train_batches
    assert CallbackList(weights_file(tmp_path, save_freq=2)).wants_train_batches


def test_calls_of_several_batches_are_counted_as_such(tmp_path):
    model = Model()
    callback = weights_file(tmp_path, "{batch}.weights.h5", save_freq=4)
    callbacks = CallbackList(callback, model=model)
    callbacks.on_train_begin()
    callbacks.on_epoch_begin(0)
    for last in (2, 5, 8):
        callbacks.on_train_batch_end(last, {"loss": 1.0})
    assert [s.rpartition("/")[2] for s in model.saved] == ["6.weights.h5"]
