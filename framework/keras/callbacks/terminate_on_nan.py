"""`TerminateOnNaN`: no more steps after a loss that is no number."""

from __future__ import annotations

import math

from .callback import Callback, OptionalLogs
from .console import say

__all__ = ["TerminateOnNaN"]


class TerminateOnNaN(Callback):
    """Stop training at the first batch whose loss is NaN or infinite.

    Args: ``raise_error``: raise ``RuntimeError`` there, so that no callback takes the
    training for finished, instead of setting ``model.stop_training``.
    """

    def __init__(self, raise_error: bool = False):
        super().__init__()
        self.raise_error = raise_error

    def on_batch_end(self, batch: int, logs: OptionalLogs = None) -> None:
        loss = None if logs is None else logs.get("loss")
        if loss is None or math.isfinite(loss):
            return
        if self.raise_error:
            raise RuntimeError(
                f"TerminateOnNaN: the loss is {loss} at batch {batch}; training stops"
            )
        say(f"Batch {batch}: Invalid loss, terminating training")
        self.model.stop_training = True
