"""`MonitorCallback`: monitors a value of the logs for improvement."""

from __future__ import annotations

import operator
import warnings
from typing import TYPE_CHECKING

from tapewright.core.messages.argument_validation import one_of
from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.core.messages.suggestions import suggestion

from .callback import Callback, OptionalLogs

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class MonitorCallback(Callback):
    """Base class of callbacks that compare a value in the logs with the best one so far.

    Args:
        monitor: Name of the value in the logs.
        mode: "min", "max", or "auto", which is "min" for losses and the better
            direction for metrics.
        baseline: Value that the first must improve on, or None.
        min_delta: Minimum change that counts as an improvement.

    Raises:
        ValueError: If ``mode`` is unknown.
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        mode: str = "auto",
        baseline: float | None = None,
        min_delta: float = 0,
    ):
        super().__init__()
        self.monitor = monitor
        self.mode: str = one_of(self, "mode", mode, ("auto", "min", "max"))
        self.best: float | None = baseline
        self.min_delta: float = abs(min_delta)
        self.monitor_op: Callable[[Any, Any], Any] | None = None  # once metrics exist
        self._tw_has_warned = False

    def on_train_begin(self, logs: OptionalLogs = None) -> None:
        self._tw_has_warned = False
        self._tw_reset()

    def _tw_reset(self):
        """Reset the attributes to their values at the beginning of a training."""

    def get_monitor_value(self, logs: dict[str, Any]) -> float | None:
        """Return the monitored value; None, after one warning, if the logs lack it.

        Args:
            logs: Metrics of the epoch by name.
        """
        logs = logs or {}
        value = logs.get(self.monitor)
        if value is None and not self._tw_has_warned:
            self._tw_has_warned = True
            warnings.warn(
                f"{type(self).__name__}: the logs have no {self.monitor!r} to monitor"
                f"{suggestion(self.monitor, logs, 'there are')}",
                stacklevel=user_stacklevel(),
            )
        return value

    def _is_improvement(self, value, reference):
        if getattr(value, "shape", ()) != ():
            raise ValueError(
                f"{type(self).__name__}: {self.monitor!r} in the logs must be a single "
                f"number, got shape {value.shape}; log its mean"
            )
        if self.monitor_op is None:
            self.monitor_op = self._tw_comparison()
        if reference is None or reference != reference:  # anything is better than NaN
            return reference is None or value == value
        toward = 1 if self.monitor_op is operator.lt else -1
        return bool(self.monitor_op(value + toward * self.min_delta, reference))

    def _tw_comparison(self):
        if self.mode != "auto":
            return operator.lt if self.mode == "min" else operator.gt
        name = self.monitor.removeprefix("val_")
        if name == "loss" or name.endswith("_loss"):
            return operator.lt
        for metric in _metrics_in(getattr(self.model, "metrics", ())):
            if name == metric.name or name.endswith(f"_{metric.name}"):
                direction = getattr(metric, "_direction", None)
                if direction is not None:
                    return operator.gt if direction == "up" else operator.lt
        raise ValueError(
            f"{type(self).__name__}: mode cannot be inferred for "
            f"monitor={self.monitor!r}; pass mode='max' or mode='min'"
        )


def _metrics_in(metrics):
    """Yield the metrics of a list, including inner metrics."""
    for metric in metrics:
        inner = getattr(metric, "metrics", ())
        if isinstance(inner, (list, tuple)):  # else an attribute of a user's metric
            yield from _metrics_in(inner)
        if hasattr(metric, "name"):
            yield metric
