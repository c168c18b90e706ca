"""Values of each epoch: in memory (`History`) and in a file (`CSVLogger`)."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.storage.file_objects import discard

from ..training.workers import is_first_worker
from .callback import Callback, OptionalLogs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from typing import Any, TextIO

    from matplotlib.figure import Figure

__all__ = ["CSVLogger", "History"]

_MOST_SHOWN = 4  # metrics of a history in print


class History(Callback):
    """Record the loss and metrics of every epoch.

    `fit` adds this callback by itself, returns it and assigns it to ``model.history``.

    Attributes:
        history: Dict from name to a list with one value per epoch.
        epoch: List of the epoch numbers, from 0.

    Example:
        >>> history = keras.callbacks.History()
        >>> history.on_epoch_end(0, {"loss": 0.5})
        >>> history.on_epoch_end(1, {"loss": 0.25})
        >>> history.epoch, history.history
        ([0, 1], {'loss': [0.5, 0.25]})
        >>> history
        <History: 2 epochs, loss 0.5 -> 0.25>
    """

    state_names: tuple[str, ...] = ("epoch", "history")

    def __init__(self):
        super().__init__()
        self.epoch: list[int] = []
        self.history: dict[str, list[Any]] = {}

    def on_train_begin(self, logs: OptionalLogs = None) -> None:
        self.epoch: list[int] = []

    def on_epoch_end(self, epoch: int, logs: OptionalLogs = None) -> None:
        self.epoch.append(epoch)
        for name, value in (logs or {}).items():
            self.history.setdefault(name, []).append(value)
        if self.model is not None:
            self.model.history = self

    def __repr__(self) -> str:
        """Return the number of epochs, and the first and last value of some metrics."""
        count = len(self.epoch)
        parts = [f"{count} epoch{'' if count == 1 else 's'}"]
        for name, values in [*self.history.items()][:_MOST_SHOWN]:
            ends = values[:: max(len(values) - 1, 1)]
            parts.append(f"{name} {' -> '.join([_short(value) for value in ends])}")
        if len(self.history) > _MOST_SHOWN:
            parts.append(f"{len(self.history) - _MOST_SHOWN} more")
        return f"<{type(self).__name__}: {', '.join(parts)}>"

    def get_state(self) -> dict[str, Any]:
        history = {name: list(values) for name, values in self.history.items()}
        return {"epoch": list(self.epoch), "history": history}

    def plot(
        self,
        path: str | PathLike[str] | None = None,
        metrics: Sequence[str] | None = None,
    ) -> Figure:
        """Plot the curves of training and validation with Matplotlib; see `plot.curves`.

        Args:
            path: File to write the figure to, or None.
            metrics: Names to plot, without ``val_``; all by default.

        Returns:
            The figure.
        """
        from tapewright.plot import curves

        return curves(self, metrics, path=path)


class CSVLogger(Callback):
    """Write the values of each epoch to a CSV file, as soon as the epoch ends.

    The first epoch determines the columns. A missing value is written as "NA"; a value
    without a column is omitted, with a warning.

    Args:
        filename: Path of the file.
        separator: Text between columns.
        append: If True, append to an existing file, under its header; by default it is
            overwritten.

    Raises:
        OSError: If the file cannot be written; it then ends with the last complete
            line.
        ValueError: If the first column of a file to append to is not "epoch".

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> path = Path(tempfile.mkdtemp()) / "log.csv"
        >>> log = keras.callbacks.CSVLogger(path)
        >>> log.on_train_begin()
        >>> log.on_epoch_end(0, {"loss": 0.5, "val_loss": 0.75})
        >>> log.on_train_end()
        >>> print(path.read_text(), end="")
        epoch,loss,val_loss
        0,0.5,0.75
    """

    def __init__(
        self, filename: str | PathLike[str], separator: str = ",", append: bool = False
    ):
        super().__init__()
        self.filename: str = os.fspath(filename)
        self.sep = separator
        self.append = append
        self.keys: list[str] | None = None  # of the columns after "epoch"
        self.csv_file: TextIO | None = None
        self._tw_left_out = set()

    def on_train_begin(self, logs: OptionalLogs = None) -> None:
        self.on_close()
        self.keys, self._tw_left_out = None, set()
        if not is_first_worker(self.model):
            self.csv_file = io.StringIO()  # the first worker has the file
            return
        goes_on = self.append and os.path.isfile(self.filename)
        if goes_on:
            self.keys = self._tw_header()
        mode = "a" if goes_on else "w"
        self.csv_file = open(self.filename, mode, newline="", encoding="utf-8")
        if goes_on and not _ends_with_newline(self.filename):
            self._tw_write("\n")  # the last line was interrupted

    def _tw_header(self):
        """Return the columns of the file, without "epoch"; None if it is empty."""
        import csv

        with open(self.filename, newline="", encoding="utf-8") as file:
            header = next(csv.reader(file, delimiter=self.sep), None)
        if header and header[0] != "epoch":
            raise ValueError(
                f"CSVLogger: cannot append to {self.filename}: the first column "
                f"must be 'epoch', got {header[0]!r} (separator {self.sep!r}); "
                "pass append=False or another file"
            )
        return header and header[1:]

    def on_epoch_end(self, epoch: int, logs: OptionalLogs = None) -> None:
        logs = logs or {}
        has_header = self.keys is not None
        if not has_header:
            self.keys = sorted(logs)
            if not any(key.startswith("val_") for key in self.keys):
                self.keys += [f"val_{key}" for key in self.keys]
        rows = [] if has_header else [["epoch", *self.keys]]
        self._tw_warn_of(set(logs) - set(self.keys) - self._tw_left_out)
        rows.append([epoch, *(_cell(logs.get(k, "NA")) for k in self.keys)])
        self._tw_write(self._tw_lines(rows))

    def _tw_lines(self, rows):
        import csv

        text = io.StringIO(newline="")
        csv.writer(text, delimiter=self.sep).writerows(rows)
        return text.getvalue()

    def _tw_write(self, text):
        """Write complete lines, all of them or none."""
        file = self.csv_file
        end = file.seek(0, os.SEEK_END) if file.seekable() else None
        try:
            file.write(text)
            file.flush()
        except OSError as error:
            if end is not None:
                os.ftruncate(file.fileno(), end)
            discard(file)
            self.csv_file = None
            raise OSError(error.errno, error.strerror, self.filename) from error

    def _tw_warn_of(self, names):
        if names:
            self._tw_left_out |= names
            warnings.warn(
                f"CSVLogger: {self.filename} has no column for "
                f"{', '.join(map(repr, sorted(names)))}, which is omitted; its "
                f"columns are {', '.join(map(repr, self.keys))}",
                stacklevel=user_stacklevel(),
            )

    def get_state(self) -> dict[str, Any]:
        """Return the lines written so far and the columns."""
        if isinstance(self.csv_file, io.StringIO):
            return {"text": self.csv_file.getvalue(), "keys": self.keys}
        if not os.path.exists(self.filename):
            return {"text": "", "keys": None}
        with open(self.filename, newline="", encoding="utf-8") as file:
            return {"text": file.read(), "keys": self.keys}

    def set_state(self, state: dict[str, Any]) -> None:
        if self.csv_file is None:
            raise ValueError("CSVLogger.set_state: call on_train_begin first")
        self.csv_file.seek(0)
        self.csv_file.truncate()
        self._tw_write(state["text"])
        self.keys = state["keys"]

    def on_train_end(self, logs: OptionalLogs = None) -> None:
        self.on_close()

    def on_close(self) -> None:
        if self.csv_file is not None:
            self.csv_file.close()
            self.csv_file = None


def _short(value):
    """A number with four digits, the shape of an array, and anything else as its text.

    Example:
        >>> from tapewright.keras.callbacks.history import _short
        >>> _short(0.123456), _short([1.0, 2.0]), _short(None)
        ('0.1235', '[2]', 'None')
    """
    array = np.asarray(value)
    if array.shape:
        return str(list(array.shape))
    return f"{array[()]:.4g}" if array.dtype.kind in "iuf" else str(value)


def _ends_with_newline(path):
    with open(path, "rb") as file:
        file.seek(0, os.SEEK_END)
        if not file.tell():
            return True
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def _cell(value):
    """Return a cell of the file; arrays are written as a list in quotes."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        return value
    if getattr(value, "ndim", 1) == 0:
        return value
    return f'"[{", ".join(map(str, value))}]"'
