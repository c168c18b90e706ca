"""`Progbar`: progress bar for custom loops, with means of values."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from tapewright.core.messages.argument_validation import one_of
from tapewright.serialization.constructor_call import constructor_call

from ..callbacks.console import Bar, epoch_line, is_live, say


class Progbar:
    """Progress bar with values; one line at the end if the output is not a terminal.

    Args:
        target: Number of steps, or None if unknown.
        width: Ignored: the bar adapts to the terminal.
        verbose: 0 silent, 1 a bar, 2 a line at the end.
        interval: Ignored: the bar is updated twenty times a second.
        stateful_metrics: Names of values to show unchanged instead of averaged over the
            steps.
        stateless_metrics: Names of the only values to average.
        unit_name: Name of the steps.

    Raises:
        ValueError: If both lists of names are given, or ``verbose`` is invalid.

    Example:
        >>> bar = keras.utils.Progbar(2)
        >>> bar.update(1, [("loss", 0.5)])
        >>> bar.update(2, [("loss", 0.25)])  # doctest: +ELLIPSIS
        2/2 - ...s - ... - loss: 0.2500
    """

    def __init__(
        self,
        target: int | None,
        width: int = 20,
        verbose: int = 1,
        interval: float = 0.05,
        stateful_metrics: Iterable[str] | None = None,
        stateless_metrics: Iterable[str] | None = None,
        unit_name: str = "step",
    ):
        if stateful_metrics is not None and stateless_metrics is not None:
            raise ValueError(
                "Progbar: pass stateful_metrics or stateless_metrics, not both"
            )
        self.target = target
        self.verbose: int = one_of(self, "verbose", verbose, (0, 1, 2))
        self.unit_name = unit_name
        self.stateful_metrics = set(stateful_metrics or ())
        self.stateless_metrics = stateless_metrics and set(stateless_metrics)
        self._values = {}  # name -> [weighted sum, weight]
        self._seen = 0
        self._start = time.perf_counter()
        self._bar = None

    __repr__ = constructor_call

    def update(
        self,
        current: int,
        values: Iterable[tuple[str, Any]] | None = None,
        finalize: bool | None = None,
    ) -> None:
        """Move to step ``current``, with values of the steps since the last update.

        Args:
            current: Number of steps done.
            values: Pairs of a name and a value.
            finalize: If True, finish with these values; by default at ``target``.
        """
        if finalize is None:
            finalize = self.target is not None and current >= self.target
        for name, value in values or ():
            self._add(
                name, float(np.mean(value)), max(current - self._seen, 1), finalize
            )
        self._seen = current
        logs = {name: total / weight for name, (total, weight) in self._values.items()}
        if self.verbose == 1 and is_live():
            self._show(current, logs, finalize)
        elif self.verbose and finalize:
            seconds = time.perf_counter() - self._start
            say(epoch_line(current, self.target or current, seconds, logs))

    def add(self, n: int, values: Iterable[tuple[str, Any]] | None = None) -> None:
        """Advance by ``n`` steps, see `update`.

        Args:
            n: Number of steps.
            values: Pairs of a name and a value.
        """
        self.update(self._seen + n, values)

    def _add(self, name, value, weight, finalize):
        averaged = name not in self.stateful_metrics
        if self.stateless_metrics is not None:
            averaged = name in self.stateless_metrics
        if finalize or not averaged:
            self._values[name] = [value, 1]
        else:
            total, count = self._values.get(name, (0.0, 0))
            self._values[name] = [total + value * weight, count + weight]

    def _show(self, current, logs, finalize):
        if self._bar is None:
            self._bar = Bar(self.target, unit=self.unit_name)
        if finalize:
            self._bar.finish(current, logs)
            self._bar = None
        else:
            self._bar.move_to(current, logs)
