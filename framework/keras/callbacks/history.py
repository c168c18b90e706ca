"""`History`: what `fit` returns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .callback import Callback, OptionalLogs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from typing import Any

    from matplotlib.figure import Figure

__all__ = ["History"]


class History(Callback):
    """Record the values of every epoch.

    Attributes: ``history``: a dict of lists, by name; ``epoch``: the epochs' numbers.
    `fit` adds one by itself, returns it and sets ``model.history``.
    """

    state_names: tuple[str, str] = ("epoch", "history")

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

    def get_state(self) -> dict[str, Any]:
        history = {name: list(values) for name, values in self.history.items()}
        return {"epoch": list(self.epoch), "history": history}

    def plot(
        self,
        path: str | PathLike[str] | None = None,
        metrics: Sequence[str] | None = None,
    ) -> Figure:
        """Draw the curves of training and validation; see `plot.curves`."""
        from tapewright.plot import curves

        return curves(self, metrics, path=path)
