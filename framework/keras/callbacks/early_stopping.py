"""Early end of a training: `EarlyStopping` and `TerminateOnNaN`."""

from __future__ import annotations

import math
from typing import Any

from .callback import Callback, OptionalLogs
from .console import say
from .monitor_callback import MonitorCallback

__all__ = ["EarlyStopping", "TerminateOnNaN"]


class EarlyStopping(MonitorCallback):
    """Stop training when a monitored value has stopped improving.

    Training ends after ``patience`` epochs without improvement. If the logs do not
    contain ``monitor``, a warning lists their names.

    Args:
        monitor: Name of the value in the logs, such as "val_loss".
        min_delta: Minimum change that counts as an improvement.
        patience: Number of epochs without improvement after which training stops.
        verbose: 1 to print a line when training stops, 0 for no output.
        mode: "min", "max", or "auto" for the better direction of the metric.
        baseline: Value that must be improved on to reset the patience, or None.
        restore_best_weights: If True, restore the weights of the best epoch at the end.
        start_from_epoch: First epoch to monitor, from 0.

    Attributes:
        best: Best value.
        best_epoch: Epoch of the best value.
        stopped_epoch: Epoch at which training was stopped; 0 if it was not.

    Raises:
        ValueError: If ``mode`` is unknown; in training, if "auto" cannot determine the
            direction of the metric.

    Example:
        >>> import numpy as np
        >>> model = keras.Sequential([keras.layers.Dense(1)])
        >>> model.compile(keras.optimizers.SGD(0.0), "mse")  # nothing improves
        >>> x, y = np.ones((4, 3)), np.zeros((4, 1))
        >>> stop = keras.callbacks.EarlyStopping(monitor="loss", patience=2)
        >>> history = model.fit(x, y, epochs=100, verbose=0, callbacks=[stop])
        >>> len(history.epoch), stop.stopped_epoch
        (3, 2)
    """

    wait: int
    stopped_epoch: int
    best: float | None
    best_epoch: int
    best_weights: list[Any] | None

    state_names: tuple[str, ...] = (
        "wait",
        "stopped_epoch",
        "best",
        "best_epoch",
        "best_weights",
    )

    def __init__(
        self,
        monitor: str = "val_loss",
        min_delta: float = 0,
        patience: int = 0,
        verbose: int = 0,
        mode: str = "auto",
        baseline: float | None = None,
        restore_best_weights: bool = False,
        start_from_epoch: int = 0,
    ):
        super().__init__(monitor, mode, min_delta=min_delta)
        self.patience = patience
        self.verbose = verbose
        self.baseline = baseline
        self.restore_best_weights = restore_best_weights
        self.start_from_epoch = start_from_epoch
        self._tw_reset()

    def _tw_reset(self):
        self.wait = 0
        self.stopped_epoch = 0
        self.best = None
        self.best_epoch = 0
        self.best_weights = None

    def on_epoch_end(self, epoch: int, logs: OptionalLogs = None) -> None:
        current = self.get_monitor_value(logs)
        if current is None or epoch < self.start_from_epoch:
            return
        self.wait += 1
        if self._is_improvement(current, self.best):
            self.best = current
            self._tw_keep(epoch)
            if self.baseline is None or self._is_improvement(current, self.baseline):
                self.wait = 0
            return
        if self.restore_best_weights and self.best_weights is None:
            self._tw_keep(epoch)
        if self.wait >= self.patience and epoch > 0:
            self.stopped_epoch = epoch
            self.model.stop_training = True

    def _tw_keep(self, epoch):
        self.best_epoch = epoch
        if self.restore_best_weights:
            self.best_weights = self.model.get_weights()

    def on_train_end(self, logs: OptionalLogs = None) -> None:
        if self.stopped_epoch > 0 and self.verbose > 0:
            say(f"Epoch {self.stopped_epoch + 1}: early stopping", self.model)
        if self.restore_best_weights and self.best_weights is not None:
            if self.verbose > 0:
                say(
                    "Restoring model weights from the end of the best epoch: "
                    f"{self.best_epoch + 1}.",
                    self.model,
                )
            self.model.set_weights(self.best_weights)


class TerminateOnNaN(Callback):
    """Stop training at the first batch whose loss is NaN or infinite.

    Args:
        raise_error: If True, raise ``RuntimeError``, without calling ``on_train_end``,
            instead of setting ``model.stop_training``.

    Example:
        >>> import numpy as np
        >>> model = keras.Sequential([keras.layers.Dense(1)])
        >>> model.compile("sgd", lambda y_true, y_pred: y_pred * float("inf"))
        >>> x, y = np.ones((4, 3)), np.zeros((4, 1))
        >>> stop = keras.callbacks.TerminateOnNaN()
        >>> history = model.fit(x, y, epochs=9, verbose=0, callbacks=[stop])
        Batch 0: Invalid loss, terminating training
    """

    def __init__(self, raise_error: bool = False):
        super().__init__()
        self.raise_error = raise_error

    def on_batch_end(self, batch: int, logs: OptionalLogs = None) -> None:
        loss = None if logs is None else logs.get("loss")
        if loss is None or math.isfinite(loss):
            return
        if self.raise_error:
            raise RuntimeError(
                f"TerminateOnNaN: the loss is {loss} at batch {batch}; training stops"
            )
        say(f"Batch {batch}: Invalid loss, terminating training", self.model)
        self.model.stop_training = True
