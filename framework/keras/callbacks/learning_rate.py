"""Changes of the learning rate: `LearningRateScheduler`, `ReduceLROnPlateau`."""

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


class LearningRateScheduler(Callback):
    """Set the learning rate before each epoch by a schedule, a function of the epoch.

    The logs contain the ``learning_rate`` of the epoch. With a `MultiOptimizer` the
    schedule sets the rate of each optimizer, and the logs contain
    ``learning_rate_NAME`` of each.

    Args:
        schedule: Function ``(epoch, learning_rate)``, or ``(epoch)``, that returns the
            new learning rate; ``epoch`` counts from 0.
        verbose: 1 to print the learning rate of each epoch, 0 for no output.

    Raises:
        TypeError: If ``schedule`` is not a function, or the optimizer has its own
            schedule.
        ValueError: If ``schedule`` does not return a number.

    Example:
        >>> import numpy as np
        >>> model = keras.Sequential([keras.layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> halve = keras.callbacks.LearningRateScheduler(
        ...     lambda epoch, rate: rate / 2 if epoch else 1.0
        ... )
        >>> x, y = np.zeros((4, 3)), np.zeros((4, 1))
        >>> history = model.fit(x, y, epochs=3, verbose=0, callbacks=[halve])
        >>> history.history["learning_rate"]
        [1.0, 0.5, 0.25]
    """

    def __init__(self, schedule: Callable[[int, float], float], verbose: int = 0):
        super().__init__()
        if not callable(schedule):
            raise TypeError(
                "LearningRateScheduler: schedule must be a function of the "
                "epoch, or of the epoch and the current learning rate, got "
                f"{schedule!r}"
            )
        self.schedule = schedule
        self.verbose = verbose

    def on_epoch_begin(self, epoch: int, logs: OptionalLogs = None) -> None:
        for suffix, optimizer in _with_rates(self.model):
            rate = self._tw_rate(epoch, optimizer)
            action = "LearningRateScheduler setting"
            _set_rate(self, epoch, action, suffix, optimizer, rate)

    def _tw_rate(self, epoch, optimizer):
        if _takes_two(self.schedule):
            rate = self.schedule(epoch, _rate_of(optimizer))
        else:
            rate = self.schedule(epoch)
        if getattr(rate, "shape", None) == ():
            rate = float(rate)
        if not isinstance(rate, numbers.Real):
            raise ValueError(
                "LearningRateScheduler: schedule must return a number, "
                f"got {rate!r} for epoch {epoch}"
            )
        return rate

    def on_epoch_end(self, epoch: int, logs: OptionalLogs = None) -> None:
        if logs is not None:
            logs.update(current_rates(self.model))


def current_rates(model) -> dict[str, float]:
    """Return the learning rate, or the rates of a `MultiOptimizer`, by their names in logs."""
    pairs = _with_rates(model)
    return {f"learning_rate{suffix}": _rate_of(each) for suffix, each in pairs}


def _with_rates(model):
    """Return pairs of a suffix for names in logs, and an optimizer with a learning rate."""
    optimizer = getattr(model.optimizer, "_tw_inner", None) or model.optimizer
    if getattr(optimizer, "_tw_several", None) is None:
        return [("", optimizer)]
    if not optimizer.built and model.built:  # a function may make the optimizers
        optimizer.build(model.trainable_variables)
    return [(f"_{each.name}", each) for each in optimizer._tw_several]


def _rate_of(optimizer):
    rate = optimizer.learning_rate
    return float(rate.numpy() if hasattr(rate, "numpy") else rate)


def _set_rate(callback, epoch, action, suffix, optimizer, rate):
    """Set the rate of one of the optimizers, and print it if the callback is verbose."""
    optimizer.learning_rate = rate
    if callback.verbose > 0:
        whose = f"{optimizer.name} " if suffix else ""
        message = f"Epoch {epoch + 1}: {action} {whose}learning rate to {rate}."
        say(message, callback.model)


def _takes_two(schedule):
    try:
        inspect.signature(schedule).bind(0, 0.1)
    except TypeError:
        return False
    except ValueError:  # a builtin without a signature
        pass
    return True


class ReduceLROnPlateau(MonitorCallback):
    """Reduce the learning rate when a monitored value has stopped improving.

    After ``patience`` epochs without improvement the learning rate becomes
    ``max(learning_rate * factor, min_lr)``. The logs contain the ``learning_rate`` of
    the epoch. With a `MultiOptimizer` the rate of each optimizer is reduced, and the
    logs contain ``learning_rate_NAME`` of each.

    Args:
        monitor: Name of the value in the logs, such as "val_loss".
        factor: Factor of a reduction, below 1.
        patience: Number of epochs without improvement before each reduction.
        verbose: 1 to print a line for each reduction, 0 for no output.
        mode: "min", "max", or "auto" for the better direction of the metric.
        min_delta: Minimum change that counts as an improvement.
        cooldown: Number of epochs after a reduction that are not counted.
        min_lr: Lower bound of the learning rate.

    Raises:
        ValueError: If ``factor`` is 1 or more, or ``mode`` is unknown.

    Example:
        >>> import numpy as np
        >>> model = keras.Sequential([keras.layers.Dense(1)])
        >>> model.compile(keras.optimizers.SGD(1.0), "mse")
        >>> reduce = keras.callbacks.ReduceLROnPlateau(
        ...     monitor="loss", factor=0.5, patience=1
        ... )
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
        self._tw_reset()

    def _tw_reset(self):
        self.best = None
        self.cooldown_counter = 0
        self.wait = 0

    def in_cooldown(self) -> bool:
        """Return whether epochs are not counted at present, after a reduction."""
        return self.cooldown_counter > 0

    def on_epoch_end(self, epoch: int, logs: OptionalLogs = None) -> None:
        logs = {} if logs is None else logs
        logs.update(current_rates(self.model))
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
                self._tw_reduce(epoch)

    def _tw_reduce(self, epoch):
        pairs = _with_rates(self.model)
        if any([self._tw_reduce_rate(epoch, *pair) for pair in pairs]):
            self.cooldown_counter = self.cooldown
            self.wait = 0

    def _tw_reduce_rate(self, epoch, suffix, optimizer):
        """Reduce the rate of an optimizer; return False if it is at its lower bound."""
        rate = _rate_of(optimizer)
        if rate <= np.float32(self.min_lr):  # the rate is kept in float32
            return False
        rate = max(rate * self.factor, self.min_lr)
        action = "ReduceLROnPlateau reducing"
        _set_rate(self, epoch, action, suffix, optimizer, rate)
        return True
