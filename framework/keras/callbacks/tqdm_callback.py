"""`TqdmCallback`: two bars for a training, one of epochs and one of batches."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from .callback import Callback, OptionalLogs, only_when
from .console import Bar

if TYPE_CHECKING:
    from typing import Any

__all__ = ["TqdmCallback"]


class TqdmCallback(Callback):
    """Show a bar of epochs and below it one of batches, like ``tqdm.keras``.

    Args: ``epochs``, ``data_size``, ``batch_size``: the totals, where `fit` does not tell
    them; ``verbose``: 0 for the bar of epochs alone, 1 for one of batches that goes at
    the end, 2 for one that stays for each epoch; ``tqdm_class``: whose bars (default:
    ``tqdm.auto.tqdm``); ``tqdm_kwargs``: for all bars, such as ``file=``.

    Pass ``verbose=0`` to `fit` beside it.
    """

    epoch_bar: None
    batch_bar: None

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
        if verbose not in (0, 1, 2):
            raise ValueError(
                f"TqdmCallback: verbose must be 0, 1 or 2, got {verbose!r}"
            )
        self.epochs = epochs
        self.batches: None = None
        if data_size and batch_size:
            self.batches = math.ceil(data_size / batch_size)
        self.verbose = verbose
        self.tqdm_class = tqdm_class
        self.tqdm_kwargs = tqdm_kwargs
        self.epoch_bar = self.batch_bar = None
        self._seen = 0

    def _bar(self, total, unit, leave=True):
        if self.tqdm_class is None:
            from tqdm.auto import tqdm as bar_class
        else:
            bar_class = self.tqdm_class
        options = {"leave": leave, **self.tqdm_kwargs}
        return Bar(total, unit=unit, bar=bar_class, **options)

    def on_train_begin(self, logs: OptionalLogs = None) -> None:
        self.on_close()
        epochs = (self.params or {}).get("epochs", self.epochs)
        self.epoch_bar = self._bar(epochs, "epoch")

    def on_epoch_begin(self, epoch: int, logs: OptionalLogs = None) -> None:
        self._seen = 0
        self.epoch_bar.start_at(epoch)
        total = (self.params or {}).get("steps") or self.batches
        if self.batch_bar is not None and self.verbose == 1:
            self.batch_bar.restart(total)
        elif self.verbose:
            self.batch_bar = self._bar(total, "batch", leave=self.verbose == 2)

    @only_when(lambda self: self.verbose)
    def on_train_batch_end(self, batch: int, logs: OptionalLogs = None) -> None:
        self._seen = batch + 1
        if self.batch_bar is not None:
            self.batch_bar.move_to(self._seen, logs)

    def on_epoch_end(self, epoch: int, logs: OptionalLogs = None) -> None:
        if self.batch_bar is not None:
            self.batch_bar.move_to(self._seen, at_once=True)
            if self.verbose == 2:
                self.batch_bar.finish(self._seen, logs)
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
