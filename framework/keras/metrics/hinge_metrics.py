"""Hinge losses, averaged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..losses import categorical_hinge, hinge, squared_hinge
from .reduction import MeanMetricWrapper

if TYPE_CHECKING:
    from tapewright.core.typing import DTypeLike

__all__ = ["CategoricalHinge", "Hinge", "SquaredHinge"]


class Hinge(MeanMetricWrapper):
    """The mean of ``max(1 - y_true * y_pred, 0)``; labels -1 and 1, or 0 and 1."""

    def __init__(self, name: str | None = "hinge", dtype: DTypeLike | None = None):
        super().__init__(hinge, name, dtype)


class SquaredHinge(MeanMetricWrapper):
    """The mean of ``max(1 - y_true * y_pred, 0) ** 2``; labels -1 and 1, or 0 and 1."""

    def __init__(
        self, name: str | None = "squared_hinge", dtype: DTypeLike | None = None
    ):
        super().__init__(squared_hinge, name, dtype)


class CategoricalHinge(MeanMetricWrapper):
    """The mean of ``max(1 + best wrong score - score of the class, 0)``."""

    def __init__(
        self, name: str | None = "categorical_hinge", dtype: DTypeLike | None = None
    ):
        super().__init__(categorical_hinge, name, dtype)
