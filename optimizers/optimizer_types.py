"""Types of the arguments that all optimizers share, for type checkers alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypedDict

from .schedules import LearningRateSchedule

__all__ = ["DecayingOptions", "LearningRate", "OptimizerOptions"]

# A number, a schedule, or a function of the iteration or of nothing.
LearningRate: TypeAlias = float | LearningRateSchedule | Callable[..., Any]


class OptimizerOptions(TypedDict, total=False):
    """Keyword arguments that every optimizer hands to `Optimizer`."""

    clipnorm: float | None
    clipvalue: float | None
    global_clipnorm: float | None
    use_ema: bool
    ema_momentum: float
    ema_overwrite_frequency: int | None
    loss_scale_factor: float | None
    gradient_accumulation_steps: int | None
    name: str | None


class DecayingOptions(OptimizerOptions, total=False):
    """`OptimizerOptions` of optimizers that do not list ``weight_decay`` themselves."""

    weight_decay: float | None
