"""`CheckpointManager`: which checkpoints stay, and which is the one to go on from."""

import os
import signal
import subprocess
import sys
import time

import pytest

import tapewright as tw
from tapewright.formats.checkpoints.termination import Termination
from tapewright.storage.atomic import replacing

Manager = tw.train.CheckpointManager


def checkpoint(value=1.0):
    return tw.train.Checkpoint(v=tw.Variable(value))


def numbers(manager):
    names = [os.path.basename(path) for path in manager.checkpoints]
    return [int(name.removeprefix("ckpt-").removesuffix(".h5")) for name in names]


def damage(path):
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        file.seek(size // 2)
        byte = file.read(1)
        file.seek(size // 2)
        file.write(bytes([byte[0] ^ 1]))


# ------------------------------------------------------------------ which stay


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
    assert os.path.basename(other.save()) == "ckpt-4.h5"


def test_a_number_can_be_given(tmp_path):
    manager = Manager(checkpoint(), tmp_path, 5, checkpoint_name="model")
    path = manager.save(checkpoint_number=tw.Variable(70, trainable=False))
    assert os.path.basename(path) == "model-70.h5"
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


# ------------------------------------------------------------------ which to go on from


def test_a_damaged_newest_checkpoint_is_passed_over_with_a_warning(tmp_path):
    manager = Manager(checkpoint(1.0), tmp_path, 3)
    manager.save()
    manager.checkpoint.v.assign(2.0)
    manager.save()
    damage(manager.checkpoints[-1])
    other = Manager(checkpoint(0.0), tmp_path, 3)
    with pytest.warns(UserWarning, match=r"passed over: .*ckpt-2\.h5: is damaged"):
        path = other.restore_or_initialize()
    assert path == other.checkpoints[0] and other.checkpoint.v.numpy() == 1.0
    with pytest.warns(UserWarning, match="ckpt-2"):
        assert other.latest_checkpoint == path


def test_a_checkpoint_that_is_damaged_later_is_seen(tmp_path):
    manager = Manager(checkpoint(), tmp_path, 3)
    paths = [manager.save(), manager.save()]
    assert manager.latest_checkpoint == paths[1]
    damage(paths[1])
    os.utime(paths[1])
    with pytest.warns(UserWarning, match="ckpt-2"):
        assert manager.latest_checkpoint == paths[0]


def test_without_a_checkpoint_the_function_initializes(tmp_path):
    called = []
    manager = Manager(
        checkpoint(), tmp_path / "none", 3, init_fn=lambda: called.append(1)
    )
    assert manager.restore_or_initialize() is None and called == [1]
    assert manager.checkpoints == [] and manager.latest_checkpoint is None


def test_a_checkpoint_of_other_objects_is_not_passed_over(tmp_path):
    Manager(checkpoint(), tmp_path, 3).save()
    other = tw.train.Checkpoint(v=tw.Variable([1.0, 2.0]))
    with pytest.raises(tw.errors.SavingError, match="other objects"):
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
        ({"max_to_keep": 0}, "max_to_keep must be a positive"),
        ({"max_to_keep": 1, "keep_every": -1}, "keep_every must be a positive"),
        ({"max_to_keep": 1, "checkpoint_interval": 2}, "step_counter must be given"),
        ({"max_to_keep": 1, "keep_best": ("loss", "down")}, "keep_best must be"),
        ({"max_to_keep": 1, "keep_best": "loss"}, "keep_best must be"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        Manager(checkpoint(), tmp_path, **options)


def test_metrics_must_have_the_one_that_is_compared(tmp_path):
    manager = Manager(checkpoint(), tmp_path, 1, keep_best=("loss", "min"))
    with pytest.raises(ValueError, match="metrics must have 'loss'"):
        manager.save(metrics={"accuracy": 1.0})


# ------------------------------------------------------------------ SIGTERM


@pytest.fixture
def handler():
    """The number of SIGTERMs that reached the handler that was there before."""
    received = []
    before = signal.signal(signal.SIGTERM, lambda *args: received.append(args[0]))
    yield received
    signal.signal(signal.SIGTERM, before)


def test_sigterm_saves_at_the_end_of_the_step_then_the_old_handler_runs(
    tmp_path, handler
):
    old = signal.getsignal(signal.SIGTERM)
    with Manager(checkpoint(), tmp_path, 3, save_on_sigterm=True) as manager:
        assert manager.save_if_asked() is None
        os.kill(os.getpid(), signal.SIGTERM)
        assert handler == [] and manager.checkpoints == []
        assert manager.save_if_asked() == manager.latest_checkpoint
        assert handler == [signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) is old


def test_a_second_sigterm_does_not_wait(tmp_path, handler):
    with Manager(checkpoint(), tmp_path, 3, save_on_sigterm=True):
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)
        assert handler == [signal.SIGTERM]


def test_the_handler_is_put_back_when_the_manager_is_gone(tmp_path, handler):
    old = signal.getsignal(signal.SIGTERM)
    manager = Manager(checkpoint(), tmp_path, 3, save_on_sigterm=True)
    assert signal.getsignal(signal.SIGTERM) is not old
    del manager
    assert signal.getsignal(signal.SIGTERM) is old


def test_a_handler_that_came_later_is_left_alone(handler):
    termination = Termination()
    termination.install()
    later = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    termination.remove()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    assert later == termination._note


def test_a_process_that_is_asked_to_end_saves_first(tmp_path):
    script = f"""
import os, signal, tapewright as tw
v = tw.Variable(0.0)
manager = tw.train.CheckpointManager(
    tw.train.Checkpoint(v=v), {str(tmp_path)!r}, 2, step_counter=v,
    checkpoint_interval=1000, save_on_sigterm=True)
manager.save()
for step in range(100):
    v.assign_add(1.0)
    if step == 7:
        os.kill(os.getpid(), signal.SIGTERM)
    manager.save()
"""
    done = subprocess.run([sys.executable, "-c", script], timeout=60)
    assert done.returncode == -signal.SIGTERM
    v = tw.Variable(0.0)
    manager = Manager(tw.train.Checkpoint(v=v), tmp_path, 2)
    assert os.path.basename(manager.restore_or_initialize()) == "ckpt-2.h5"
    assert v.numpy() == 8.0
