"""`BackupAndRestore`: exact continuation of an interrupted training."""

from __future__ import annotations

import os
import warnings
from contextlib import suppress
from typing import Any

from tapewright.core.errors import SavingError
from tapewright.core.messages.source_lines import user_stacklevel

from ..training.workers import from_first_worker, workers_of
from .callback import Callback, OptionalLogs, only_when
from .console import say

__all__ = ["BackupAndRestore"]


class BackupAndRestore(Callback):
    """Back up the state of `fit` to a folder; a new `fit` with that folder continues.

    The continued training is bit for bit the same as without the interruption: weights,
    optimizer, metrics, random numbers, the order of the samples, the other callbacks
    and the history are restored, also in the middle of an epoch. Create the model, data
    and callbacks as before; the model need not be built. Functions of a `data.Dataset`
    should draw random numbers with `random`; otherwise a warning is issued.

    With several workers (`tw.distribute`) each of them needs the callback, and the
    folder must be on the host of rank 0. If the number of workers is unchanged,
    training continues bit for bit; otherwise the results agree up to rounding, and a
    line reports it. SIGTERM to one worker makes all of them save and end.

    Args:
        backup_dir: Folder for the backups of this training only.
        save_freq: "epoch" to back up after each epoch, a number of batches, or False.
        double_checkpoint: If True, keep the last two backups in case one is damaged.
        delete_checkpoint: If True, remove the backup at the end of the training.
        save_on_sigterm: If True, SIGTERM makes a backup after the current step, then
            ends the process as usual.

    Raises:
        ValueError: If ``save_freq`` has another value.
        SavingError: If the only backup is damaged, or belongs to another training.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> model = keras.Sequential([keras.layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> x, y = np.ones((4, 3)), np.zeros((4, 1))
        >>> backup = keras.callbacks.BackupAndRestore(tempfile.mkdtemp())
        >>> _ = model.fit(x, y, epochs=2, verbose=0, callbacks=[backup])
    """

    _tw_comes_last = True  # a backup has the state of all other callbacks
    _tw_is_kept = False

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
            raise ValueError(
                "BackupAndRestore: backup_dir must be a folder, got an empty path"
            )
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
        self._tw_latest = os.path.join(self.backup_dir, "latest.h5")
        self._tw_previous = os.path.join(self.backup_dir, "previous.h5")
        self._tw_epoch = 0
        self._tw_batches_seen = 0  # since the last backup
        self._tw_training = None  # a `TrainingState`, while `fit` runs
        self._tw_workers = None  # a `Communicator`
        self._tw_restored = None  # content for the first epoch to restore again
        self._tw_is_complete = True
        self._tw_termination = None

    # --- restoring

    def on_train_begin(self, logs: OptionalLogs = None) -> None:
        from tapewright.formats.checkpoints.termination import Termination

        from ..training.training_state import TrainingState

        self._tw_training = TrainingState(self.model)
        self._tw_workers = workers_of(self.model)
        self._tw_batches_seen = 0
        if self.save_on_sigterm:
            self._tw_termination = Termination()
            self._tw_termination.install()
        content = self._tw_read()
        if content is not None:
            self._tw_training.restore(content)
            self._tw_is_complete = False
            if self._tw_training.within:  # the beginning of the epoch changes the state
                self._tw_restored = content

    def _tw_read(self):
        """Return the content of the newest backup for this worker; None without a backup."""
        from ..training.worker_content import content_for_worker, count_workers

        content = from_first_worker(self._tw_workers, self._tw_read_newest)
        if content is None:
            return None
        before, now = count_workers(content), self._tw_workers.size
        has_own_data = self._tw_training.has_own_data
        own = content_for_worker(content, self._tw_workers.rank, now, has_own_data)
        if now != before:
            say(
                f"{content.path}: the number of workers has changed from {before} "
                f"to {now}: results agree with an uninterrupted training up to "
                "rounding, not bit for bit",
                self.model,
            )
        return own

    def _tw_read_newest(self):
        """Return the content of the newest undamaged backup; None without a backup."""
        from tapewright.formats.checkpoints.checkpoint_file import read_content
        from tapewright.storage.atomic import clear_leftovers

        clear_leftovers(self.backup_dir)
        paths = [p for p in (self._tw_latest, self._tw_previous) if os.path.exists(p)]
        for path in paths:
            try:
                return read_content(path)
            except SavingError as error:
                if path == paths[-1]:
                    raise
                warnings.warn(
                    f"skipping a backup: {error}", stacklevel=user_stacklevel()
                )
        return None

    def on_epoch_begin(self, epoch: int, logs: OptionalLogs = None) -> None:
        self._tw_epoch = epoch
        if self._tw_restored is not None:
            self._tw_training.restore(self._tw_restored)
            self._tw_restored = None

    # --- saving

    @only_when(lambda self: self._tw_wants_batches())
    def on_train_batch_end(self, batch: int, logs: OptionalLogs = None) -> None:
        if not self._tw_is_complete:  # by now all is built
            self._tw_training.check_consumed()
            self._tw_is_complete = True
        self._tw_batches_seen += 1
        if not self._tw_is_due():
            return
        batches = self._tw_training.loop.epoch_iterator
        if self._tw_workers.any(batches.step != batches.num_batches):
            self._tw_save(self._tw_epoch, True, logs)  # else the epoch's end is near

    def _tw_wants_batches(self):
        counts = self.save_freq not in ("epoch", False)
        return counts or self._tw_termination is not None or not self._tw_is_complete

    def on_epoch_end(self, epoch: int, logs: OptionalLogs = None) -> None:
        if self.save_freq == "epoch" or self._tw_is_due():
            self._tw_save(epoch + 1, False, logs)

    def _tw_is_due(self):
        by_count = self.save_freq not in ("epoch", False)
        return self._tw_is_asked() or (
            by_count and self._tw_batches_seen >= self.save_freq
        )

    def _tw_is_asked(self):
        """Return whether a worker has received SIGTERM; all workers agree in the same step."""
        if self._tw_termination is None:
            return False
        return self._tw_workers.any(self._tw_termination.asked)

    def _tw_save(self, epoch, within, logs):
        content = self._tw_training.content(self._tw_latest, epoch, within, logs)
        if self._tw_workers.rank == 0:
            self._tw_write(content)
        self._tw_batches_seen = 0
        if self._tw_is_asked():  # which waits for the file
            self._tw_termination.pass_on()

    def _tw_write(self, content):
        from tapewright.formats.checkpoints.checkpoint_file import write_content

        if self.double_checkpoint and os.path.exists(self._tw_latest):
            os.replace(self._tw_latest, self._tw_previous)
        write_content(content)

    # --- the end

    def on_train_end(self, logs: OptionalLogs = None) -> None:
        is_asked = self._tw_is_asked()
        if self.delete_checkpoint and not is_asked and self._tw_workers.rank == 0:
            for path in (self._tw_latest, self._tw_previous):
                with suppress(FileNotFoundError):
                    os.unlink(path)
            with suppress(OSError):  # other files may be there
                os.rmdir(self.backup_dir)

    def on_close(self) -> None:
        self._tw_training = self._tw_restored = None
        termination, self._tw_termination = self._tw_termination, None
        if termination is not None:
            asked = termination.asked
            termination.remove()
            if asked:
                termination.pass_on()
