"""`ProgbarLogger`: the bar of `fit`, `evaluate` and `predict`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from .callback import Callback, OptionalLogs, only_when
from .console import Bar, epoch_line, is_live, say

if TYPE_CHECKING:
    from typing import Any

__all__ = ["ProgbarLogger"]


def _is_shown(logger):
    """Return whether batches are counted: lines tell the progress of each epoch."""
    return logger.verbose


class ProgbarLogger(Callback):
    """Show a bar for each epoch, with loss and metrics.

    ``verbose`` among the params: 0 shows nothing; 1 and "auto" a bar, or plain lines
    where the output is no terminal; 2 one plain line for each epoch. `fit` adds this
    callback by itself.
    """

    def __init__(self):
        super().__init__()
        self.seen: int = 0
        self.target: None = None
        self.verbose: int = 1
        self.epochs: int = 1
        self._bar = None
        self._title = ""
        self._is_live = False
        self._in_fit = False
        self._start = 0.0

    def set_params(self, params: dict[str, Any]) -> None:
        super().set_params(params)
        verbose = params.get("verbose", 1)
        if verbose not in (0, 1, 2, "auto"):
            raise ValueError(f"verbose must be 0, 1, 2 or 'auto', got {verbose!r}")
        self.verbose = 1 if verbose == "auto" else int(verbose)
        self.epochs = params.get("epochs", 1)
        self.target = params.get("steps")
        self._is_live = self.verbose == 1 and is_live()

    def on_train_begin(self, logs: OptionalLogs = None) -> None:
        self._in_fit = True  # validation inside is silent

    def on_train_end(self, logs: OptionalLogs = None) -> None:
        self._in_fit = False

    def on_epoch_begin(self, epoch: int, logs: OptionalLogs = None) -> None:
        self._begin(f"Epoch {epoch + 1}/{self.epochs}")

    @only_when(_is_shown)
    def on_train_batch_end(self, batch: int, logs: OptionalLogs = None) -> None:
        self._move(batch, logs)

    def on_epoch_end(self, epoch: int, logs: OptionalLogs = None) -> None:
        self._end(logs)

    def on_test_begin(self, logs: OptionalLogs = None) -> None:
        if not self._in_fit:
            self._begin()

    @only_when(lambda self: self.verbose and not self._in_fit)
    def on_test_batch_end(self, batch: int, logs: OptionalLogs = None) -> None:
        self._move(batch, logs)

    def on_test_end(self, logs: OptionalLogs = None) -> None:
        if not self._in_fit:
            self._end(logs)

    def on_predict_begin(self, logs: OptionalLogs = None) -> None:
        self._begin()

    @only_when(_is_shown)
    def on_predict_batch_end(self, batch: int, logs: OptionalLogs = None) -> None:
        self._move(batch, None)

    def on_predict_end(self, logs: OptionalLogs = None) -> None:
        self._end(None)

    def on_close(self) -> None:
        self._in_fit = False
        if self._bar is not None:
            self._bar.close(self.seen)
            self._bar = None

    def _begin(self, title=""):
        self.seen, self._title = 0, title
        self._start = time.perf_counter()
        if self._is_live:
            self._bar = Bar(self.target, title)

    def _move(self, batch, logs):
        self.seen = batch + 1
        if self._bar is not None:
            self._bar.move_to(self.seen, logs)

    def _end(self, logs):
        if not self.verbose:
            return
        if self.target is None:
            self.target = self.seen
        if self._bar is not None:
            self._bar.finish(self.seen, logs)
            self._bar = None
        else:
            seconds = time.perf_counter() - self._start
            say(epoch_line(self._title, self.seen, self.target, seconds, logs))
