"""`Progbar`: the progress of a loop of your own, with means of its values."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from tapewright.core.argument_validation import one_of
from tapewright.serialization.constructor_call import constructor_call

from ..callbacks.console import Bar, epoch_line, is_live, say

__all__ = ["Progbar"]


class Progbar:
    """Show a bar with values, or one line at the end where the output is no terminal.

    Args: ``target``: the number of steps, None if unknown; ``verbose``: 0 silent, 1 a bar,
    2 a line at the end; ``stateful_metrics``: names of values to show as they are, not
    averaged over the steps; ``stateless_metrics``: names of the only values to average.
    ``width`` and ``interval`` have no effect: the bar follows the screen, and is drawn
    twenty times a second.

    Raises: ``ValueError`` for both lists of names, or another ``verbose``.

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
        """Move to step ``current``, with pairs of a name and the value of the last steps.

        ``finalize``: end with these values, by default at ``target``.
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
        """Move on by ``n`` steps, see `update`."""
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
