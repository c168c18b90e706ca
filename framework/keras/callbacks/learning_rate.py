"""The learning rate during a training: `LearningRateScheduler`, `ReduceLROnPlateau`."""

from __future__ import annotations

import inspect
import numbers
from typing import TYPE_CHECKING

import numpy as np

from .callback import Callback, OptionalLogs
from .console import say
from .monitor_callback import MonitorCallback

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LearningRateScheduler", "ReduceLROnPlateau", "current_rate"]


class LearningRateScheduler(Callback):
    """Before each epoch, ``learning_rate <- schedule(epoch, learning_rate)``.

    Args: ``schedule``: a function of the epoch, from 0, and of the current learning
    rate (or of the epoch alone); ``verbose``: 1 prints a line.

    The logs get the epoch's ``learning_rate``.

    Raises: ``TypeError`` if ``schedule`` is no function, or the optimizer has a
    schedule of its own; ``ValueError`` if it returns no number.

    >>> import numpy as np
    >>> from tapewright import keras
    >>> model = keras.Sequential([keras.layers.Dense(1)])
    >>> model.compile("sgd", "mse")
    >>> halve = LearningRateScheduler(lambda epoch, rate: rate / 2 if epoch else 1.0)
    >>> x, y = np.zeros((4, 3)), np.zeros((4, 1))
    >>> history = model.fit(x, y, epochs=3, verbose=0, callbacks=[halve])
    >>> history.history["learning_rate"]
    [1.0, 0.5, 0.25]
    """

    def __init__(self, schedule: Callable[[int, float], float], verbose: int = 0):
        super().__init__()
        if not callable(schedule):
            raise TypeError(
                "LearningRateScheduler: schedule must be a function of the epoch (and, if "
                f"it takes two arguments, the present rate), got {schedule!r}"
            )
        self.schedule = schedule
        self.verbose = verbose

    def on_epoch_begin(self, epoch: int, logs: OptionalLogs = None) -> None:
        optimizer = self.model.optimizer
        if _takes_two(self.schedule):
            rate = self.schedule(epoch, current_rate(optimizer))
        else:
            rate = self.schedule(epoch)
        if getattr(rate, "shape", None) == ():
            rate = float(rate)
        if not isinstance(rate, numbers.Real):
            raise ValueError(
                "LearningRateScheduler: schedule must return a number, "
                f"got {rate!r} for epoch {epoch}"
            )
        optimizer.learning_rate = rate
        if self.verbose > 0:
            say(
                f"Epoch {epoch + 1}: LearningRateScheduler setting learning rate to {rate}.",
                self.model,
            )

    def on_epoch_end(self, epoch: int, logs: OptionalLogs = None) -> None:
        if logs is not None:
            logs["learning_rate"] = current_rate(self.model.optimizer)


def current_rate(optimizer) -> float:
    """Return the learning rate, of the optimizer inside a `LossScaleOptimizer` too."""
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    rate = optimizer.learning_rate
    return float(rate.numpy() if hasattr(rate, "numpy") else rate)


def _takes_two(schedule):
    try:
        inspect.signature(schedule).bind(0, 0.1)
    except TypeError:
        return False
    except ValueError:  # a builtin without a signature
        pass
    return True


class ReduceLROnPlateau(MonitorCallback):
    """``learning_rate <- max(learning_rate * factor, min_lr)`` without improvement.

    Args: ``monitor``: a name in the logs; ``factor``, below 1; ``patience``: the number
    of epochs without improvement before each reduction; ``verbose``: 1 prints a line;
    ``mode``: "min", "max", or "auto", the direction that is better for the metric;
    ``min_delta``: the least improvement; ``cooldown``: the number of epochs after a
    reduction that do not count; ``min_lr``: the least learning rate.

    The logs get the epoch's ``learning_rate``.

    Raises: ``ValueError`` if ``factor`` is 1 or more, or for another ``mode``.

    >>> import numpy as np
    >>> from tapewright import keras
    >>> model = keras.Sequential([keras.layers.Dense(1)])
    >>> model.compile(keras.optimizers.SGD(1.0), "mse")
    >>> reduce = ReduceLROnPlateau(monitor="loss", factor=0.5, patience=1)
    >>> x, y = np.zeros((4, 3)), np.zeros((4, 1))  # the loss is 0 from the beginning
    >>> history = model.fit(x, y, epochs=4, verbose=0, callbacks=[reduce])
    >>> history.history["learning_rate"]
    [1.0, 1.0, 0.5, 0.25]
    """

    best: float | None
    cooldown_counter: int
    wait: int

    state_names: tuple[str, ...] = ("best", "wait", "cooldown_counter")

    def __init__(
        self,
        monitor: str = "val_loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: int = 0,
        mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0.0,
    ):
        super().__init__(monitor, mode, min_delta=min_delta)
        if factor >= 1.0:
            raise ValueError(
                f"ReduceLROnPlateau: factor must be less than 1, got {factor!r}"
            )
        self.factor = factor
        self.min_lr = min_lr
        self.patience = patience
        self.verbose = verbose
        self.cooldown = cooldown
        self._reset()

    def _reset(self):
        self.best = None
        self.cooldown_counter = 0
        self.wait = 0

    def in_cooldown(self) -> bool:
        """Return whether epochs do not count now, after a reduction."""
        return self.cooldown_counter > 0

    def on_epoch_end(self, epoch: int, logs: OptionalLogs = None) -> None:
        logs = {} if logs is None else logs
        logs["learning_rate"] = current_rate(self.model.optimizer)
        current = self.get_monitor_value(logs)
        if current is None:
            return
        if self.in_cooldown():
            self.cooldown_counter -= 1
            self.wait = 0
        if self._is_improvement(current, self.best):
            self.best = current
            self.wait = 0
        elif not self.in_cooldown():
            self.wait += 1
            if self.wait >= self.patience:
                self._reduce(epoch)

    def _reduce(self, epoch):
        rate = current_rate(self.model.optimizer)
        if rate <= np.float32(self.min_lr):  # the rate is kept in float32
            return
        rate = max(rate * self.factor, self.min_lr)
        self.model.optimizer.learning_rate = rate
        if self.verbose > 0:
            say(
                f"Epoch {epoch + 1}: ReduceLROnPlateau reducing learning rate to {rate}.",
                self.model,
            )
        self.cooldown_counter = self.cooldown
        self.wait = 0
