"""`CheckpointManager`: which checkpoints stay, and which one to go on from."""

import os
import subprocess
import sys
import time

import pytest

import tapewright as tw
from tapewright.storage.atomic import replacing

from .managing import checkpoint

Manager = tw.train.CheckpointManager


def numbers(manager):
    names = [os.path.basename(path) for path in manager.checkpoints]
    return [int(name.removeprefix("ckpt-")) for name in names]


def damage(path):
    path = f"{path}.h5"
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        file.seek(size // 2)
        byte = file.read(1)
        file.seek(size // 2)
        file.write(bytes([byte[0] ^ 1]))


def test_the_newest_stay(tmp_path):
    manager = Manager(checkpoint(), tmp_path, max_to_keep=2)
    paths = [manager.save() for _ in range(4)]
    assert manager.checkpoints == paths[2:]
    assert manager.latest_checkpoint == paths[-1]
    assert sorted(os.listdir(tmp_path)) == ["ckpt-3.h5", "ckpt-4.h5"]


def test_all_stay_if_there_is_no_limit(tmp_path):
    manager = Manager(checkpoint(), tmp_path, max_to_keep=None)
    for _ in range(4):
        manager.save()
    assert numbers(manager) == [1, 2, 3, 4]


@pytest.mark.parametrize("mode, kept", [("min", [2, 5]), ("max", [1, 5])])
def test_the_best_stays_also_for_another_manager(tmp_path, mode, kept):
    losses = [0.9, 0.1, 0.5, float("nan"), 0.6]
    for loss in losses:
        manager = Manager(checkpoint(), tmp_path, 1, keep_best=("loss", mode))
        manager.save(metrics={"loss": loss, "other": 1})
    assert numbers(manager) == kept
    assert manager.best_checkpoint == manager.checkpoints[0]


def test_several_of_the_best_stay(tmp_path):
    manager = Manager(checkpoint(), tmp_path, 1, keep_best=("loss", "min", 2))
    for loss in [0.5, 0.2, 0.4, 0.9, 0.8]:
        manager.save(metrics={"loss": loss})
    assert numbers(manager) == [2, 3, 5]


def test_every_so_many_steps_one_stays(tmp_path):
    step = tw.Variable(0, trainable=False)
    manager = Manager(checkpoint(), tmp_path, 1, keep_every=4, step_counter=step)
    for _ in range(7):
        step.assign_add(2)
        manager.save()
    assert numbers(manager) == [2, 4, 6, 7]


def test_every_so_many_numbers_one_stays_where_no_steps_are_counted(tmp_path):
    manager = Manager(checkpoint(), tmp_path, 1, keep_every=3)
    for _ in range(7):
        manager.save()
    assert numbers(manager) == [3, 6, 7]


def test_of_the_old_ones_one_stays_for_so_many_hours(tmp_path, monkeypatch):
    now = [1e9]
    monkeypatch.setattr(time, "time", lambda: now[0])
    for _ in range(8):
        manager = Manager(checkpoint(), tmp_path, 1, keep_checkpoint_every_n_hours=2)
        manager.save()
        now[0] += 3600
    assert numbers(manager) == [2, 4, 6, 8] or numbers(manager) == [3, 5, 7, 8]


def test_nothing_is_removed_where_saving_fails(tmp_path, monkeypatch):
    manager = Manager(checkpoint(), tmp_path, 1)
    manager.save()
    monkeypatch.setattr(os, "replace", _refuse)
    with pytest.raises(tw.errors.SavingError):
        manager.save()
    assert numbers(manager) == [1]
    assert os.listdir(tmp_path) == ["ckpt-1.h5"]


def _refuse(*args):
    raise OSError(28, "No space left on device")


def test_numbers_go_on_after_those_in_the_folder(tmp_path):
    first = Manager(checkpoint(), tmp_path, 5)
    for _ in range(3):
        first.save()
    other = Manager(checkpoint(), tmp_path, 5)
    other.checkpoint.restore(other.checkpoints[0])
    assert os.path.basename(other.save()) == "ckpt-4"


def test_a_number_can_be_given(tmp_path):
    manager = Manager(checkpoint(), tmp_path, 5, checkpoint_name="model")
    path = manager.save(checkpoint_number=tw.Variable(70, trainable=False))
    assert os.path.basename(path) == "model-70"
    assert int(manager.checkpoint.save_counter) == 1


def test_an_interval_of_steps_passes_between_checkpoints(tmp_path):
    step = tw.Variable(0, trainable=False)
    manager = Manager(
        checkpoint(), tmp_path, None, step_counter=step, checkpoint_interval=3
    )
    saved = []
    for _ in range(7):
        saved.append(manager.save() is not None)
        step.assign_add(1)
    assert saved == [True, False, False, True, False, False, True]
    assert manager.save(check_interval=False) is not None
    assert manager.save(check_interval=False) is None  # no step has passed


def test_a_damaged_newest_checkpoint_is_passed_over_with_a_warning(tmp_path):
    manager = Manager(checkpoint(1.0), tmp_path, 3)
    manager.save()
    manager.checkpoint.v.assign(2.0)
    manager.save()
    damage(manager.checkpoints[-1])
    other = Manager(checkpoint(0.0), tmp_path, 3)
    with pytest.warns(UserWarning, match=r"ckpt-2\.h5: .*damaged"):
        path = other.restore_or_initialize()
    assert path == other.checkpoints[0] and other.checkpoint.v.numpy() == 1.0
    with pytest.warns(UserWarning, match="ckpt-2"):
        assert other.latest_checkpoint == path


def test_a_checkpoint_that_is_damaged_later_is_seen(tmp_path):
    manager = Manager(checkpoint(), tmp_path, 3)
    paths = [manager.save(), manager.save()]
    assert manager.latest_checkpoint == paths[1]
    damage(paths[1])
    os.utime(f"{paths[1]}.h5")
    with pytest.warns(UserWarning, match="ckpt-2"):
        assert manager.latest_checkpoint == paths[0]


def test_without_a_checkpoint_the_function_initializes(tmp_path):
    called = []
    manager = Manager(
        checkpoint(), tmp_path / "none", 3, init_fn=lambda: called.append(1)
    )
    assert manager.restore_or_initialize() is None and called == [1]
    assert manager.checkpoints == [] and manager.latest_checkpoint is None


def test_a_manager_is_for_checkpoints_alone(tmp_path):
    with pytest.raises(ValueError, match="checkpoint must be a Checkpoint, got 3"):
        Manager(3, tmp_path, 1)


def test_a_checkpoint_of_other_objects_is_not_passed_over(tmp_path):
    Manager(checkpoint(), tmp_path, 3).save()
    other = tw.train.Checkpoint(v=tw.Variable([1.0, 2.0]))
    with pytest.raises(tw.errors.SavingError, match="does not match the objects"):
        Manager(other, tmp_path, 3).restore_or_initialize()


def test_temporary_files_of_dead_writers_are_removed(tmp_path):
    script = f"""
import os, signal
from tapewright.storage.atomic import replacing
with replacing({str(tmp_path / "ckpt-1.h5")!r}):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", script], timeout=60)
    assert len(os.listdir(tmp_path)) == 1
    with replacing(tmp_path / "ckpt-2.h5") as temporary:
        Manager(checkpoint(), tmp_path, 3)
        assert os.listdir(tmp_path) == [os.path.basename(temporary)]


@pytest.mark.parametrize(
    "options, message",
    [
        ({"max_to_keep": 0}, "max_to_keep .*None.*got 0"),
        ({"max_to_keep": 1, "keep_every": -1}, "keep_every .*None.*got -1"),
        ({"max_to_keep": 1, "checkpoint_interval": 2}, "step_counter"),
        ({"max_to_keep": 1, "keep_best": ("loss", "down")}, "keep_best"),
        ({"max_to_keep": 1, "keep_best": "loss"}, "keep_best"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        Manager(checkpoint(), tmp_path, **options)


def test_metrics_must_have_the_one_that_is_compared(tmp_path):
    manager = Manager(checkpoint(), tmp_path, 1, keep_best=("loss", "min"))
    with pytest.raises(ValueError, match=r"metrics .*'loss'.*got \['accuracy'\]"):
        manager.save(metrics={"accuracy": 1.0})
