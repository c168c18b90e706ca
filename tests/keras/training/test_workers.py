"""The workers of a training: which there are, and what the first one does for all."""

from types import SimpleNamespace

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.communication.communicator import Communicator
from tapewright.keras import callbacks as c
from tapewright.keras.callbacks import progress_bars
from tapewright.keras.training import workers

from ..callbacks.small_training import small_model


class Rank(Communicator):
    """The communicator of one rank of two, of which there is no other."""

    size = 2

    def __init__(self, rank):
        self.rank, self.calls = rank, []

    def barrier(self):
        self.calls.append("barrier")


class Replicas(tw.distribute.Strategy):
    num_replicas_in_sync = 2


@pytest.fixture
def train_on(monkeypatch, tmp_path):
    """Call the hooks of a training on one rank of two; return its `CallbackList`."""

    def train(rank, *callbacks, verbose=0, losses=(2.0, 1.0, 3.0)):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(workers, "communicator", lambda: Rank(rank))
        with Replicas().scope():
            model = small_model()
        params = {"epochs": len(losses), "steps": 2, "verbose": verbose}
        hooks = c.CallbackList(list(callbacks), add_progbar=True, model=model, **params)
        hooks.on_train_begin()
        for epoch, loss in enumerate(losses):
            hooks.on_epoch_begin(epoch)
            for batch in range(2):
                hooks.on_train_batch_begin(batch)
                hooks.on_train_batch_end(batch, {"loss": loss})
            hooks.on_epoch_end(epoch, {"loss": loss})
        hooks.on_train_end()
        hooks.on_close()
        return hooks

    return train


def test_a_model_without_a_strategy_has_one_worker_also_in_a_job_of_several(
    monkeypatch,
):
    monkeypatch.setattr(workers, "communicator", lambda: Rank(1))
    for model in (None, small_model()):
        assert workers.workers_of(model).size == 1
        assert workers.is_first_worker(model)
    model = SimpleNamespace(distribute_strategy=Replicas())
    assert workers.workers_of(model).rank == 1
    assert not workers.is_first_worker(model)


def every_writer():
    return [
        c.LearningRateScheduler(lambda epoch: 0.5, verbose=1),
        c.ReduceLROnPlateau("loss", patience=1, verbose=1),
        c.EarlyStopping("loss", patience=1, verbose=1, restore_best_weights=True),
        c.TerminateOnNaN(),
        c.ModelCheckpoint("{epoch}.keras", "loss", 1, save_best_only=True),
        c.ModelCheckpoint("last.weights.h5", save_weights_only=True, save_freq=2),
        c.CSVLogger("log.csv"),
        c.TensorBoard("board", 1, update_freq=1, profile_batch=1),
        c.TqdmCallback(),
    ]


@pytest.mark.parametrize("verbose", [1, 2])
def test_only_the_first_worker_prints_and_writes(train_on, tmp_path, capfd, verbose):
    losses = [2.0, 1.0, float("nan")]
    train_on(1, *every_writer(), verbose=verbose, losses=losses)
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")

    train_on(0, *every_writer(), verbose=verbose, losses=losses)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"1.keras", "2.keras", "last.weights.h5", "log.csv", "board"}
    out, err = capfd.readouterr()
    for line in ("Epoch 1/3", "2/2 - ", "LearningRateScheduler", "ReduceLROnPlateau",
                 "early stopping", "Invalid loss", "finished saving"):  # fmt: skip
        assert line in out
    assert "3/3" in err  # tqdm's


def test_no_other_worker_than_the_first_shows_a_bar(train_on, monkeypatch):
    shown = []
    monkeypatch.setattr(progress_bars, "is_live", lambda: True)
    monkeypatch.setattr(progress_bars, "Bar", lambda *args: shown.append(args))
    train_on(1, verbose=1)
    assert shown == []
    train_on(0, verbose=1)
    assert len(shown) == 3


def test_callbacks_decide_alike_on_all_workers(train_on):
    states = []
    for rank in range(2):
        hooks = train_on(rank, *every_writer(), losses=[2.0, 1.0, 1.5, 1.6])
        model = hooks.model
        kinds = (c.ReduceLROnPlateau, c.EarlyStopping, c.ModelCheckpoint, c.CSVLogger)
        kept = [each.get_state() for each in hooks.callbacks if isinstance(each, kinds)]
        states.append((kept, model.stop_training, float(model.optimizer.learning_rate)))
    first, other = states
    np.testing.assert_equal(other, first)
    assert first[1] and first[2] == pytest.approx(0.05)


def test_fit_ends_when_the_files_of_the_first_worker_are_there(monkeypatch):
    job = Rank(1)
    monkeypatch.setattr(workers, "communicator", lambda: job)
    model = SimpleNamespace(distribute_strategy=Replicas())
    late = c.LambdaCallback(on_train_end=lambda logs: job.calls.append("last hook"))
    c.CallbackList([late], model=model).on_train_end()
    assert job.calls == ["last hook", "barrier"]
