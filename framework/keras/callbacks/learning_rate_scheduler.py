"""`LearningRateScheduler`: the learning rate as a function of the epoch."""

from __future__ import annotations

import inspect
import numbers
from typing import TYPE_CHECKING

from .callback import Callback, OptionalLogs
from .console import say

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LearningRateScheduler", "current_rate"]


class LearningRateScheduler(Callback):
    """Before each epoch, ``learning_rate <- schedule(epoch, learning_rate)``.

    Args: ``schedule``, of the epoch, from 0, and of the learning rate so far (or of the
    epoch alone); ``verbose``: 1 says so.
    Raises: ``ValueError`` if ``schedule`` gives no number.

    The logs get the epoch's ``learning_rate``. An optimizer that was made with a schedule
    of its own does not let its learning rate be set.
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
                f"Epoch {epoch + 1}: LearningRateScheduler setting learning rate to {rate}."
            )

    def on_epoch_end(self, epoch: int, logs: OptionalLogs = None) -> None:
        if logs is not None:
            logs["learning_rate"] = current_rate(self.model.optimizer)


def current_rate(optimizer) -> float:
    """The learning rate, of the optimizer inside a `LossScaleOptimizer` too."""
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    rate = optimizer.learning_rate
    return float(rate.numpy() if hasattr(rate, "numpy") else rate)


def _takes_two(schedule):
    try:
        inspect.signature(schedule).bind(0, 0.1)
    except TypeError:
        return False
    except ValueError:  # a builtin that does not tell
        pass
    return True
