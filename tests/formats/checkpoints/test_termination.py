"""SIGTERM: a checkpoint is saved at the end of the step."""

import os
import signal
import subprocess
import sys

import pytest

import tapewright as tw
from tapewright.formats.checkpoints.termination import Termination

from .managing import checkpoint

Manager = tw.train.CheckpointManager


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
    assert os.path.basename(manager.restore_or_initialize()) == "ckpt-2"
    assert v.numpy() == 8.0
