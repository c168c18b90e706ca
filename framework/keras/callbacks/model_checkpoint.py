"""`ModelCheckpoint`: saves the model every epoch, or whenever it improves."""

from __future__ import annotations

import os
import warnings
from functools import partial
from typing import TYPE_CHECKING

from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.core.messages.suggestions import suggestion
from tapewright.core.state.sharded_variable import sharing, write_together

from ..training.workers import is_first_worker
from .callback import OptionalLogs, only_when
from .console import say
from .monitor_callback import MonitorCallback

if TYPE_CHECKING:
    from os import PathLike

    from ..models.model import Model

__all__ = ["ModelCheckpoint"]


class ModelCheckpoint(MonitorCallback):
    """Save the model or its weights during training.

    Args:
        filepath: Path that ends in ``.weights.h5`` with ``save_weights_only``, else in
            ``.keras`` or ``.h5``. It may contain fields for the epoch (from 1), the
            batch and values of the logs: ``"{epoch:02d}-{val_loss:.2f}.weights.h5"``.
            Folders are created.
        monitor: Name of the value in the logs, such as "val_loss".
        verbose: 1 to print a line for each file, 0 for no output.
        save_best_only: If True, save only after an improvement of ``monitor``.
        save_weights_only: If True, save the weights instead of the whole model.
        mode: "min", "max", or "auto" for the better direction of the metric.
        save_freq: "epoch" to save after each epoch, or a number of batches.
        initial_value_threshold: Value that the first saved epoch must improve on, or
            None.

    Raises:
        ValueError: If the path has another ending or ``save_freq`` another value.
        KeyError: If the path contains a name that is not in the logs.
        SavingError: If the file cannot be written.

    Example:
        >>> import os, tempfile
        >>> import numpy as np
        >>> folder = tempfile.mkdtemp()
        >>> path = os.path.join(folder, "{epoch:02d}.keras")
        >>> save = keras.callbacks.ModelCheckpoint(path)
        >>> model = keras.Sequential([keras.layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> x, y = np.zeros((4, 3)), np.zeros((4, 1))
        >>> _ = model.fit(x, y, epochs=2, verbose=0, callbacks=[save])
        >>> sorted(os.listdir(folder))
        ['01.keras', '02.keras']
    """

    state_names: tuple[str, ...] = ("best", "_tw_batches_seen", "_tw_last_batch")

    def __init__(
        self,
        filepath: str | PathLike[str],
        monitor: str = "val_loss",
        verbose: int = 0,
        save_best_only: bool = False,
        save_weights_only: bool = False,
        mode: str = "auto",
        save_freq: int | str = "epoch",
        initial_value_threshold: float | None = None,
    ):
        super().__init__(monitor, mode, initial_value_threshold)
        self.filepath: str = os.fspath(filepath)
        self.verbose = verbose
        self.save_best_only = save_best_only
        self.save_weights_only = save_weights_only
        self.save_freq = save_freq
        self._tw_epoch = 0
        self._tw_batches_seen = 0  # since the last time
        self._tw_last_batch = None
        self._tw_cleared = set()  # folders without files of a killed process
        self._tw_check()

    def _tw_check(self):
        if self.save_freq != "epoch" and (
            not isinstance(self.save_freq, int) or self.save_freq < 1
        ):
            raise ValueError(
                "ModelCheckpoint: save_freq must be 'epoch' or a number of batches, "
                f"got {self.save_freq!r}"
            )
        endings = (".weights.h5",) if self.save_weights_only else (".keras", ".h5")
        if not self.filepath.endswith(endings):
            raise ValueError(
                "ModelCheckpoint: filepath must end in "
                f"{' or '.join(map(repr, endings))} with save_weights_only="
                f"{self.save_weights_only}, got {self.filepath!r}"
            )

    def set_model(self, model: Model) -> None:
        method = "save_weights" if self.save_weights_only else "save"
        if not hasattr(model, method):
            raise TypeError(
                f"ModelCheckpoint: {type(model).__name__} has no method {method}()"
                + ("" if self.save_weights_only else "; try save_weights_only=True")
            )
        super().set_model(model)

    def on_epoch_begin(self, epoch: int, logs: OptionalLogs = None) -> None:
        self._tw_epoch = epoch

    @only_when(lambda self: self.save_freq != "epoch")
    def on_train_batch_end(self, batch: int, logs: OptionalLogs = None) -> None:
        if self._tw_is_due(batch):
            self._tw_save(self._tw_epoch, batch, logs)

    def on_epoch_end(self, epoch: int, logs: OptionalLogs = None) -> None:
        if self.save_freq == "epoch":
            self._tw_save(epoch, None, logs)

    def _tw_is_due(self, batch):
        """Count batches, of which a single call may have processed several."""
        if self.save_freq == "epoch":
            return False
        is_new_epoch = self._tw_last_batch is None or batch <= self._tw_last_batch
        self._tw_batches_seen += (
            batch + 1 if is_new_epoch else batch - self._tw_last_batch
        )
        self._tw_last_batch = batch
        if self._tw_batches_seen < self.save_freq:
            return False
        self._tw_batches_seen = 0
        return True

    def _tw_save(self, epoch, batch, logs):
        logs = logs or {}
        path = self._tw_path(epoch, batch, logs)
        best = self.best
        if not self._tw_is_wanted(epoch, logs, path):
            return
        try:
            variables = getattr(self.model.optimizer, "variables", ())
            if is_first_worker(self.model) or sharing(variables).size > 1:
                write_together(variables, partial(self._tw_write, path))
        except BaseException:
            self.best = best  # as in the file
            raise
        self._tw_say(epoch, f"finished saving model to {path}")

    def _tw_write(self, path):
        self._tw_prepare(path)
        if self.save_weights_only:
            self.model.save_weights(path)
        else:
            self.model.save(path)

    def _tw_prepare(self, path):
        """Remove, once per folder, temporary files left by a killed training."""
        from tapewright.storage.atomic import clear_leftovers

        folder = os.path.dirname(path) or "."
        if folder not in self._tw_cleared:
            clear_leftovers(folder)
            self._tw_cleared.add(folder)

    def _tw_path(self, epoch, batch, logs):
        names = {"epoch": epoch + 1}
        if batch is not None:
            names["batch"] = batch + 1
        names = {**names, **logs}
        try:
            return self.filepath.format(**names)
        except KeyError as error:
            raise KeyError(
                f"ModelCheckpoint: filepath {self.filepath!r} contains {error}, "
                f"which is not in the logs{suggestion(error.args[0], names, 'there are')}"
            ) from None

    def _tw_is_wanted(self, epoch, logs, path):
        if not self.save_best_only:
            self._tw_say(epoch, f"saving model to {path}")
            return True
        current = self.get_monitor_value(logs)
        if current is None:
            return True
        if getattr(current, "shape", ()) != ():
            warnings.warn(
                f"ModelCheckpoint: {self.monitor!r} must be a single number, got "
                f"shape {current.shape}; the model is saved anyway",
                stacklevel=user_stacklevel(),
            )
            return True
        best = "None" if self.best is None else f"{self.best:.5f}"
        if not self._is_improvement(current, self.best):
            self._tw_say(epoch, f"{self.monitor} did not improve from {best}")
            return False
        self._tw_say(
            epoch,
            f"{self.monitor} improved from {best} to {current:.5f}, "
            f"saving model to {path}",
        )
        self.best = current
        return True

    def _tw_say(self, epoch, message):
        if self.verbose > 0:
            say(f"Epoch {epoch + 1}: {message}", self.model)
