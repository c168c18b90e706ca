"""`BackupAndRestore`: exact continuation of an interrupted training."""

from __future__ import annotations

import os
import warnings
from contextlib import suppress
from typing import Any

from tapewright.core.errors import SavingError
from tapewright.core.source_lines import user_stacklevel

from ..training.workers import from_first_worker, workers_of
from .callback import Callback, OptionalLogs, only_when
from .console import say

__all__ = ["BackupAndRestore"]


class BackupAndRestore(Callback):
    """Back up the state of `fit` in a folder; a new `fit` with that folder continues.

    The continued training is the uninterrupted one, bit for bit: weights, optimizer,
    metrics, random numbers, the order of the samples, the other callbacks and the
    history are kept, also in the middle of an epoch. Make model, data and callbacks as
    before; the model need not be built. Functions of a `data.Dataset` should draw
    random numbers with `random`; otherwise a warning is issued.

    Args: ``backup_dir``: a folder for this training alone; ``save_freq``: "epoch", a
    number of batches, or False; ``double_checkpoint``: keep the last two backups, in
    case that one is damaged; ``delete_checkpoint``: remove the backup at the end of the
    training; ``save_on_sigterm``: SIGTERM makes a backup after the current step, then
    ends the process as before.

    Several workers (`tw.distribute`) need the callback on each of them, and the folder
    on the host of rank 0. The same number of workers continues bit for bit; with
    another number results agree to rounding, which a line says. SIGTERM to one makes
    all save and end.

    Raises: ``ValueError`` for another ``save_freq``; `SavingError` if the only backup
    is damaged, or of another training.

    >>> import tempfile
    >>> import numpy as np
    >>> from tapewright import keras
    >>> model = keras.Sequential([keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> x, y = np.ones((4, 3)), np.zeros((4, 1))
    >>> backup = BackupAndRestore(tempfile.mkdtemp())
    >>> _ = model.fit(x, y, epochs=2, verbose=0, callbacks=[backup])
    """

    comes_last = True  # a backup has the state of all other callbacks
    is_kept = False

    def __init__(
        self,
        backup_dir: Any,
        save_freq: int | str = "epoch",
        double_checkpoint: bool = False,
        delete_checkpoint: bool = True,
        *,
        save_on_sigterm: bool = True,
    ):
        super().__init__()
        if not backup_dir:
            raise ValueError("BackupAndRestore: backup_dir is empty")
        known = save_freq == "epoch" or save_freq is False
        if not known and (
            not isinstance(save_freq, int) or save_freq is True or save_freq < 1
        ):
            raise ValueError(
                "BackupAndRestore: save_freq must be 'epoch', a number of batches, or "
                f"False, got {save_freq!r}"
            )
        self.backup_dir: str = os.fspath(backup_dir)
        self.save_freq: str = save_freq
        self.double_checkpoint: bool = double_checkpoint
        self.delete_checkpoint: bool = delete_checkpoint
        self.save_on_sigterm: bool = save_on_sigterm
        self._latest = os.path.join(self.backup_dir, "latest.h5")
        self._previous = os.path.join(self.backup_dir, "previous.h5")
        self._epoch = 0
        self._batches_seen = 0  # since the last backup
        self._training = None  # a `TrainingState`, while `fit` runs
        self._workers = None  # a `Communicator`
        self._restored = None  # content for the first epoch to restore again
        self._is_complete = True
        self._termination = None

    # --- restoring

    def on_train_begin(self, logs: OptionalLogs = None) -> None:
        from tapewright.formats.checkpoints.termination import Termination

        from ..training.training_state import TrainingState

        self._training = TrainingState(self.model)
        self._workers = workers_of(self.model)
        self._batches_seen = 0
        if self.save_on_sigterm:
            self._termination = Termination()
            self._termination.install()
        content = self._read()
        if content is not None:
            self._training.restore(content)
            self._is_complete = False
            if self._training.within:  # the beginning of the epoch changes the state
                self._restored = content

    def _read(self):
        """Return the content of the newest backup for this worker; None without a backup."""
        from ..training.worker_content import content_for_worker, count_workers

        content = from_first_worker(self._workers, self._read_newest)
        if content is None:
            return None
        before, now = count_workers(content), self._workers.size
        has_own_data = self._training.has_own_data
        own = content_for_worker(content, self._workers.rank, now, has_own_data)
        if now != before:
            say(
                f"{content.path}: the number of workers was {before} and is {now}: results "
                "agree with those of an uninterrupted training to rounding, not to the bit",
                self.model,
            )
        return own

    def _read_newest(self):
        """Return the content of the newest undamaged backup; None without a backup."""
        from tapewright.formats.checkpoints.checkpoint_file import read_content
        from tapewright.storage.atomic import clear_leftovers

        clear_leftovers(self.backup_dir)
        paths = [p for p in (self._latest, self._previous) if os.path.exists(p)]
        for path in paths:
            try:
                return read_content(path)
            except SavingError as error:
                if path == paths[-1]:
                    raise
                warnings.warn(
                    f"a backup is skipped: {error}", stacklevel=user_stacklevel()
                )
        return None

    def on_epoch_begin(self, epoch: int, logs: OptionalLogs = None) -> None:
        self._epoch = epoch
        if self._restored is not None:
            self._training.restore(self._restored)
            self._restored = None

    # --- saving

    @only_when(lambda self: self._wants_batches())
    def on_train_batch_end(self, batch: int, logs: OptionalLogs = None) -> None:
        if not self._is_complete:  # by now all is built
            self._training.check_consumed()
            self._is_complete = True
        self._batches_seen += 1
        if not self._is_due():
            return
        batches = self._training.run.batches
        if self._workers.any(batches.step != batches.num_batches):
            self._save(self._epoch, True, logs)  # else the epoch's end is near

    def _wants_batches(self):
        counts = self.save_freq not in ("epoch", False)
        return counts or self._termination is not None or not self._is_complete

    def on_epoch_end(self, epoch: int, logs: OptionalLogs = None) -> None:
        if self.save_freq == "epoch" or self._is_due():
            self._save(epoch + 1, False, logs)

    def _is_due(self):
        by_count = self.save_freq not in ("epoch", False)
        return self._is_asked() or (by_count and self._batches_seen >= self.save_freq)

    def _is_asked(self):
        """Return whether a worker got SIGTERM; all come here in the same step, and agree."""
        if self._termination is None:
            return False
        return self._workers.any(self._termination.asked)

    def _save(self, epoch, within, logs):
        content = self._training.content(self._latest, epoch, within, logs)
        if self._workers.rank == 0:
            self._write(content)
        self._batches_seen = 0
        if self._is_asked():  # which waits for the file
            self._termination.pass_on()

    def _write(self, content):
        from tapewright.formats.checkpoints.checkpoint_file import write_content

        if self.double_checkpoint and os.path.exists(self._latest):
            os.replace(self._latest, self._previous)
        write_content(content)

    # --- the end

    def on_train_end(self, logs: OptionalLogs = None) -> None:
        is_asked = self._is_asked()
        if self.delete_checkpoint and not is_asked and self._workers.rank == 0:
            for path in (self._latest, self._previous):
                with suppress(FileNotFoundError):
                    os.unlink(path)
            with suppress(OSError):  # other files may be there
                os.rmdir(self.backup_dir)

    def on_close(self) -> None:
        self._training = self._restored = None
        termination, self._termination = self._termination, None
        if termination is not None:
            asked = termination.asked
            termination.remove()
            if asked:
                termination.pass_on()
