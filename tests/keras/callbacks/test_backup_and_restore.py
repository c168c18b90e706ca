"""`BackupAndRestore`: what was interrupted goes on as if it had not been."""

import functools
import os
import random
import signal
import subprocess
import sys

import numpy as np
import pytest

import tapewright as tw
from tapewright.keras.training import training_state

sys.path.insert(0, os.path.dirname(__file__))
import trainings  # noqa: E402

Backup = tw.keras.callbacks.BackupAndRestore


class Interrupt(tw.keras.callbacks.Callback):
    """Ends `fit` with an error after so many batches."""

    comes_last = True  # after the backup

    def __init__(self, after):
        super().__init__()
        self.left = after

    def on_train_batch_end(self, batch, logs=None):
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name, strict=True)


@functools.cache
def uninterrupted(make, epochs=4):
    """What comes of a training that nothing interrupts."""
    return trainings.train(make, epochs)[1]


def interrupted(make, folder, after, **options):
    """Trains, is interrupted, and trains again from the beginning, as a script would."""
    with pytest.raises(KeyboardInterrupt):
        trainings.train(make, more=[Backup(folder, **options), Interrupt(after)])
    return trainings.train(make, more=[Backup(folder, **options)], seed=99)[1]


def test_only_a_backup_makes_the_state_that_is_backed_up(tmp_path, monkeypatch):
    def refuse(self, model):
        raise AssertionError("asked for")

    monkeypatch.setattr(training_state.TrainingState, "__init__", refuse)
    trainings.train(trainings.shuffled_arrays)
    with pytest.raises(AssertionError, match="asked for"):
        trainings.train(trainings.shuffled_arrays, more=[Backup(tmp_path / "backup")])


@pytest.mark.parametrize("make", trainings.ALL)
def test_an_interrupted_epoch_ends_as_it_would_have(make, tmp_path):
    found = interrupted(make, tmp_path / "backup", after=8, save_freq=1)
    assert_same(found, uninterrupted(make))


@pytest.mark.parametrize("make", trainings.ALL)
def test_a_training_goes_on_after_the_last_epoch_that_was_whole(make, tmp_path):
    found = interrupted(make, tmp_path / "backup", after=13)
    assert_same(found, uninterrupted(make))


# ------------------------------------------------------------------ other processes

TRAINEE = os.path.join(os.path.dirname(__file__), "trainee.py")


def train_in_processes(kind, folder, number, ends):
    """Return of each process that got the signal its exit code and the names of backups.

    ``ends``: pairs of batches and seconds, after which one gets it. The last one gets none.
    """
    texts = [f"{batches}:{delay}" for batches, delay in ends]
    command = [sys.executable, TRAINEE, kind, str(folder), str(int(number)), *texts]
    lines = subprocess.check_output(command, text=True).splitlines()
    return [(int(code), names) for code, *names in map(str.split, lines)]


def assert_ended(folder, kind):
    """What the processes wrote is what one training without them comes to."""
    with tw.device("CPU"):  # as theirs
        expected = trainings.train(getattr(trainings, kind), epochs=6)[1]
    with np.load(folder / "outcome.npz") as found:
        assert_same(dict(found), expected)


@pytest.mark.parametrize("kind, kills", [("plateaus", 3), ("data_set", 3)])
def test_processes_killed_at_any_moment_train_as_one_that_was_not(
    tmp_path, kind, kills
):
    chances = random.Random(kind)
    ends = [(chances.randint(1, 8), chances.uniform(0, 0.02)) for _ in range(kills)]
    train_in_processes(kind, tmp_path, signal.SIGKILL, ends)
    assert_ended(tmp_path, kind)
    assert os.listdir(tmp_path) == ["outcome.npz"]


def test_sigterm_makes_a_backup_and_ends_the_process(tmp_path):
    ((code, names),) = train_in_processes(
        "shuffled_arrays", tmp_path, signal.SIGTERM, [(4, 0)]
    )
    assert code == -signal.SIGTERM and "latest.h5" in names
    assert_ended(tmp_path, "shuffled_arrays")


# ------------------------------------------------------------------ the callback itself


def begun(folder, after=8, **options):
    """A training that was interrupted, with its backup in the folder."""
    with pytest.raises(KeyboardInterrupt):
        more = [Backup(folder, **options), Interrupt(after)]
        trainings.train(trainings.shuffled_arrays, more=more)


def damage(path):
    with open(path, "r+b") as file:
        file.seek(700)
        file.write(b"\xff\xff\xff\xff")


@pytest.mark.always
@pytest.mark.parametrize("others", [[], ["other"]])
def test_the_backup_is_removed_at_the_end_and_nothing_else(others, tmp_path):
    folder, x = tmp_path / "backup", np.ones((2, 1), np.float32)
    folder.mkdir()
    for name in others:
        (folder / name).write_text("")
    model = tw.keras.Sequential([tw.keras.layers.Dense(1)])
    model.compile("sgd", "mse", run_eagerly=True)
    fit = functools.partial(model.fit, x, x, epochs=3, verbose=0)
    with pytest.raises(KeyboardInterrupt):
        fit(callbacks=[Backup(folder, double_checkpoint=True), Interrupt(3)])
    assert sorted(os.listdir(folder)) == ["latest.h5", *others, "previous.h5"]
    fit(callbacks=[Backup(folder, double_checkpoint=True)])
    assert folder.exists() == bool(others)
    assert not others or os.listdir(folder) == others


def test_a_backup_that_is_kept_goes_on_with_more_epochs(tmp_path):
    options = {"delete_checkpoint": False}
    for epochs in (3, 5):
        backup = Backup(tmp_path / "backup", **options)
        _, found = trainings.train(trainings.shuffled_arrays, epochs, [backup])
    assert_same(found, uninterrupted(trainings.shuffled_arrays, 5))


def test_a_finished_training_has_nothing_left_to_do(tmp_path):
    options = {"delete_checkpoint": False}
    found = [
        trainings.train(trainings.plateaus, more=[Backup(tmp_path / "b", **options)])[1]
        for _ in range(2)
    ]
    assert_same(*found)


def test_a_damaged_backup_is_passed_over_for_the_one_before(tmp_path):
    begun(tmp_path, 15, double_checkpoint=True)
    damage(tmp_path / "latest.h5")
    with pytest.warns(UserWarning, match=r"latest\.h5: .*damaged"):
        more = [Backup(tmp_path)]
        _, found = trainings.train(trainings.shuffled_arrays, more=more)
    assert_same(found, uninterrupted(trainings.shuffled_arrays))


def test_the_only_backup_is_not_passed_over(tmp_path):
    begun(tmp_path)
    damage(tmp_path / "latest.h5")
    with pytest.raises(tw.errors.SavingError, match=r"latest\.h5: .*damaged"):
        trainings.train(trainings.shuffled_arrays, more=[Backup(tmp_path)])


def test_a_backup_of_another_model_is_refused_before_a_step(tmp_path):
    begun(tmp_path)
    with pytest.raises(
        tw.errors.SavingError, match="does not match the objects|another"
    ):
        trainings.train(trainings.stateful_recurrence, more=[Backup(tmp_path)])


def test_a_backup_of_another_optimizer_leaves_the_model_as_it_was(tmp_path):
    begun(tmp_path)
    model, settings = trainings.shuffled_arrays()
    model.compile("sgd", "mse")
    model.build((None, 3))
    before = [v.numpy() for v in [*model.variables, *model.optimizer.variables]]
    with pytest.raises(tw.errors.SavingError, match="/momentum/0"):
        model.fit(**settings, verbose=0, callbacks=[Backup(tmp_path)])
    found = [v.numpy() for v in [*model.variables, *model.optimizer.variables]]
    assert all(np.array_equal(a, b) for a, b in zip(found, before, strict=True))


def test_pythons_random_numbers_go_on(tmp_path):
    def fit(*more):
        random.seed(3)
        model, settings = trainings.shuffled_arrays()
        model.fit(**settings, epochs=3, verbose=0, callbacks=[draw, *more])
        return random.random()

    draw = tw.keras.callbacks.LambdaCallback(
        on_train_batch_end=lambda batch, logs: random.gauss(0, 1)
    )
    expected = fit()
    with pytest.raises(KeyboardInterrupt):
        fit(Backup(tmp_path, save_freq=1), Interrupt(9))
    assert fit(Backup(tmp_path, save_freq=1)) == expected


def test_a_backup_of_other_data_is_refused(tmp_path):
    begun(tmp_path)

    def other():
        model, settings = trainings.shuffled_arrays()
        return model, settings | {"batch_size": 11}

    with pytest.raises(tw.errors.SavingError, match="6 batches.*4"):
        trainings.train(other, more=[Backup(tmp_path)])


def test_a_model_of_fewer_layers_is_refused(tmp_path):
    begun(tmp_path)

    def other():
        model, settings = trainings.shuffled_arrays()
        model.pop(), model.pop()
        return model, settings

    with pytest.raises(tw.errors.SavingError, match="model/layers/4"):
        trainings.train(other, more=[Backup(tmp_path)])


@pytest.mark.parametrize(
    "folder, freq", [("", "epoch"), ("a", 0), ("a", True), ("a", "x")]
)
def test_arguments_that_make_no_sense_are_refused(folder, freq):
    with pytest.raises(ValueError, match="backup_dir must be|save_freq must be"):
        Backup(folder, save_freq=freq)


def test_without_a_frequency_only_sigterm_makes_a_backup(tmp_path):
    begun(tmp_path / "backup", save_freq=False)
    assert not os.path.exists(tmp_path / "backup")


def test_the_handler_of_sigterm_is_put_back(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    begun(tmp_path)
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_callback_with_a_state_of_its_own_goes_on(tmp_path):
    class Count(tw.keras.callbacks.Callback):
        state_names = ("count",)
        count = 0

        def on_train_batch_end(self, batch, logs=None):
            self.count += 1

    counts = [Count(), Count()]
    with pytest.raises(KeyboardInterrupt):
        more = [Backup(tmp_path, save_freq=1), counts[0], Interrupt(8)]
        trainings.train(trainings.shuffled_arrays, more=more)
    more = [counts[1], Backup(tmp_path)]
    trainings.train(trainings.shuffled_arrays, more=more)
    assert counts[1].count == 6 * 4


@pytest.mark.parametrize("append", [False, True])
def test_the_lines_of_a_csv_logger_are_those_of_one_training(tmp_path, append):
    def lines(name, more):
        logger = tw.keras.callbacks.CSVLogger(tmp_path / name, append=append)
        trainings.train(trainings.shuffled_arrays, more=[logger, *more])

    lines("whole.csv", [])
    with pytest.raises(KeyboardInterrupt):
        lines("parts.csv", [Backup(tmp_path / "b", save_freq=5), Interrupt(19)])
    lines("parts.csv", [Backup(tmp_path / "b")])
    whole = (tmp_path / "whole.csv").read_text()
    assert (tmp_path / "parts.csv").read_text() == whole


def test_other_callbacks_than_before_are_warned_of(tmp_path):
    early = tw.keras.callbacks.EarlyStopping("loss", patience=9)
    with pytest.raises(KeyboardInterrupt):
        more = [Backup(tmp_path), early, Interrupt(8)]
        trainings.train(trainings.shuffled_arrays, more=more)
    plateau = tw.keras.callbacks.ReduceLROnPlateau("loss")
    with pytest.warns(UserWarning) as found:
        more = [Backup(tmp_path), plateau]
        trainings.train(trainings.shuffled_arrays, more=more)
    texts = [str(warning.message) for warning in found]
    assert "EarlyStopping is not used" in texts[0]
    assert "ReduceLROnPlateau is missing: this callback starts anew" in texts[1]


@pytest.mark.parametrize(
    ("save_freq", "hook", "number"),
    [(1, "on_train_batch_end", 2), ("epoch", "on_epoch_end", 1)],
)
def test_a_training_that_was_stopped_stays_stopped(tmp_path, save_freq, hook, number):
    def stop(batch_or_epoch, logs):
        if batch_or_epoch == number:
            model.stop_training = True

    model, settings = trainings.shuffled_arrays()
    stopper = tw.keras.callbacks.LambdaCallback(**{hook: stop})
    backup = Backup(tmp_path, save_freq=save_freq, delete_checkpoint=False)
    history = model.fit(**settings, epochs=3, verbose=0, callbacks=[stopper, backup])
    expected = trainings.outcome(model, history)
    model, settings = trainings.shuffled_arrays()
    history = model.fit(**settings, epochs=3, verbose=0, callbacks=[stopper, backup])
    assert_same(trainings.outcome(model, history), expected)


def test_an_epoch_that_its_data_cut_short_keeps_its_logs(tmp_path):
    def train():
        model, settings = trainings.shuffled_arrays()
        batches = (batch for _ in range(3) for batch in trainings.Loader())
        settings = {"x": batches, "steps_per_epoch": 5, "epochs": 3}
        backup = Backup(tmp_path, save_freq=1, delete_checkpoint=False)
        with pytest.warns(UserWarning, match="yielded 2 of the 5 batches of epoch 3"):
            history = model.fit(**settings, verbose=0, callbacks=[backup])
        return trainings.outcome(model, history)

    tw.keras.utils.set_random_seed(1)
    expected = train()
    assert_same(train(), expected)


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(tw.errors.SavingError, match="folder cannot be made"):
        more = [Backup(tmp_path / "file" / "backup")]
        trainings.train(trainings.shuffled_arrays, more=more)


def test_a_model_that_is_built_before_goes_on_as_well(tmp_path):
    begun(tmp_path)

    def built():
        model, settings = trainings.shuffled_arrays()
        model.fit(**settings, epochs=1, verbose=0)
        return model, settings

    _, found = trainings.train(built, more=[Backup(tmp_path)])
    assert_same(found, uninterrupted(trainings.shuffled_arrays))
