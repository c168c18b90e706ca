"""Progress bars: `ProgbarLogger`, which `fit` uses, and `TqdmCallback`."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from tapewright.core.messages.argument_validation import one_of

from ..training.workers import is_first_worker
from .callback import Callback, OptionalLogs, only_when
from .console import Bar, epoch_line, is_live, say

if TYPE_CHECKING:
    from typing import Any

__all__ = ["ProgbarLogger", "TqdmCallback"]


def _is_shown(logger):
    """Return whether batches are counted, for a bar or for the line of an epoch."""
    return logger.verbose


class ProgbarLogger(Callback):
    """Show a progress bar for each epoch, with loss and metrics.

    `fit` adds this callback by default. Its argument ``verbose`` selects the output: 0
    shows nothing; 1 and "auto" show a bar, or plain lines if the output is not a
    terminal; 2 shows plain lines, "Epoch 1/3" before the epoch and its values after it.
    """

    def __init__(self):
        super().__init__()
        self.seen: int = 0
        self.target: int | None = None
        self.verbose: int = 1
        self.epochs: int = 1
        self._tw_bar = None
        self._tw_is_live = False
        self._tw_in_fit = False
        self._tw_start = 0.0

    def set_params(self, params: dict[str, Any]) -> None:
        super().set_params(params)
        verbose = params.get("verbose", 1)
        if verbose not in (0, 1, 2, "auto"):
            raise ValueError(f"verbose must be 0, 1, 2 or 'auto', got {verbose!r}")
        self.verbose = 1 if verbose == "auto" else int(verbose)
        self.epochs = params.get("epochs", 1)
        self.target = params.get("steps")
        self._tw_is_live = self.verbose == 1 and is_live()

    def on_train_begin(self, logs: OptionalLogs = None) -> None:
        self._tw_in_fit = True  # validation inside is silent

    def on_train_end(self, logs: OptionalLogs = None) -> None:
        self._tw_in_fit = False

    def on_epoch_begin(self, epoch: int, logs: OptionalLogs = None) -> None:
        title = f"Epoch {epoch + 1}/{self.epochs}"
        self._tw_begin(title)
        if self.verbose and self.epochs > 1 and not self._tw_is_live:
            say(title, self.model)

    @only_when(_is_shown)
    def on_train_batch_end(self, batch: int, logs: OptionalLogs = None) -> None:
        self._tw_move(batch, logs)

    def on_epoch_end(self, epoch: int, logs: OptionalLogs = None) -> None:
        self._tw_end(logs)

    def on_test_begin(self, logs: OptionalLogs = None) -> None:
        if not self._tw_in_fit:
            self._tw_begin()

    @only_when(lambda self: self.verbose and not self._tw_in_fit)
    def on_test_batch_end(self, batch: int, logs: OptionalLogs = None) -> None:
        self._tw_move(batch, logs)

    def on_test_end(self, logs: OptionalLogs = None) -> None:
        if not self._tw_in_fit:
            self._tw_end(logs)

    def on_predict_begin(self, logs: OptionalLogs = None) -> None:
        self._tw_begin()

    @only_when(_is_shown)
    def on_predict_batch_end(self, batch: int, logs: OptionalLogs = None) -> None:
        self._tw_move(batch, None)

    def on_predict_end(self, logs: OptionalLogs = None) -> None:
        self._tw_end(None)

    def on_close(self) -> None:
        self._tw_in_fit = False
        if self._tw_bar is not None:
            self._tw_bar.close(self.seen)
            self._tw_bar = None

    def _tw_begin(self, title=""):
        self.seen = 0
        self._tw_start = time.perf_counter()
        if self._tw_is_live and is_first_worker(self.model):
            self._tw_bar = Bar(self.target, title)

    def _tw_move(self, batch, logs):
        self.seen = batch + 1
        if self._tw_bar is not None:
            self._tw_bar.move_to(self.seen, logs)

    def _tw_end(self, logs):
        if not self.verbose:
            return
        if self.target is None:
            self.target = self.seen
        if self._tw_bar is not None:
            self._tw_bar.finish(self.seen, logs)
            self._tw_bar = None
        else:
            seconds = time.perf_counter() - self._tw_start
            say(epoch_line(self.seen, self.target, seconds, logs), self.model)


class TqdmCallback(Callback):
    """Show a progress bar of epochs and below it one of batches, like ``tqdm.keras``.

    Pass ``verbose=0`` to `fit` along with this callback.

    Args:
        epochs: Number of epochs, if `fit` does not provide it.
        data_size: Number of samples, if `fit` does not provide the number of batches.
        batch_size: Batch size for ``data_size``.
        verbose: 0 for the bar of epochs only, 1 for a bar of batches that disappears at
            the end, 2 for one that remains for each epoch.
        tqdm_class: Class of the bars, ``tqdm.auto.tqdm`` by default.
        **tqdm_kwargs: Arguments of all bars, such as ``file``.

    Raises:
        ValueError: If ``verbose`` has another value.
    """

    epoch_bar: Any
    batch_bar: Any

    def __init__(
        self,
        epochs: int | None = None,
        data_size: int | None = None,
        batch_size: int | None = None,
        verbose: int = 1,
        tqdm_class: Any = None,
        **tqdm_kwargs: Any,
    ):
        super().__init__()
        self.epochs = epochs
        self.batches: int | None = None
        if data_size and batch_size:
            self.batches = math.ceil(data_size / batch_size)
        self.verbose: int = one_of(self, "verbose", verbose, (0, 1, 2))
        self.tqdm_class = tqdm_class
        self.tqdm_kwargs = tqdm_kwargs
        self.epoch_bar = self.batch_bar = None
        self._tw_seen = 0

    def _tw_bar(self, total, unit, leave=True):
        if self.tqdm_class is None:
            from tqdm.auto import tqdm as bar_class
        else:
            bar_class = self.tqdm_class
        options = {"leave": leave, **self.tqdm_kwargs}
        if not is_first_worker(self.model):
            options["disable"] = True
        return Bar(total, unit=unit, bar=bar_class, **options)

    def on_train_begin(self, logs: OptionalLogs = None) -> None:
        self.on_close()
        epochs = (self.params or {}).get("epochs", self.epochs)
        self.epoch_bar = self._tw_bar(epochs, "epoch")

    def on_epoch_begin(self, epoch: int, logs: OptionalLogs = None) -> None:
        self._tw_seen = 0
        self.epoch_bar.start_at(epoch)
        total = (self.params or {}).get("steps") or self.batches
        if self.batch_bar is not None and self.verbose == 1:
            self.batch_bar.restart(total)
        elif self.verbose:
            self.batch_bar = self._tw_bar(total, "batch", leave=self.verbose == 2)

    @only_when(lambda self: self.verbose)
    def on_train_batch_end(self, batch: int, logs: OptionalLogs = None) -> None:
        self._tw_seen = batch + 1
        if self.batch_bar is not None:
            self.batch_bar.move_to(self._tw_seen, logs)

    def on_epoch_end(self, epoch: int, logs: OptionalLogs = None) -> None:
        if self.batch_bar is not None:
            self.batch_bar.move_to(self._tw_seen, at_once=True)
            if self.verbose == 2:
                self.batch_bar.finish(self._tw_seen, logs)
                self.batch_bar = None
        self.epoch_bar.move_to(epoch + 1, logs, at_once=True)

    def on_train_end(self, logs: OptionalLogs = None) -> None:
        self.on_close()

    def on_close(self) -> None:
        for bar in (self.batch_bar, self.epoch_bar):
            if bar is not None:
                bar.close()
        self.epoch_bar = self.batch_bar = None

    def display(self) -> None:
        """Show the bars in the current cell of a notebook."""
        for bar in (self.epoch_bar, self.batch_bar):
            if bar is not None and bar.widget() is not None:
                from tqdm.notebook import display

                display(bar.widget())
