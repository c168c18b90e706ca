"""Hinge losses, averaged."""

from ..losses import categorical_hinge, hinge, squared_hinge
from .reduction import MeanMetricWrapper

__all__ = ["CategoricalHinge", "Hinge", "SquaredHinge"]


class Hinge(MeanMetricWrapper):
    """The mean of ``max(1 - y_true * y_pred, 0)``; labels -1 and 1, or 0 and 1."""

    def __init__(self, name="hinge", dtype=None):
        super().__init__(hinge, name, dtype)


class SquaredHinge(MeanMetricWrapper):
    """The mean of ``max(1 - y_true * y_pred, 0) ** 2``; labels -1 and 1, or 0 and 1."""

    def __init__(self, name="squared_hinge", dtype=None):
        super().__init__(squared_hinge, name, dtype)


class CategoricalHinge(MeanMetricWrapper):
    """The mean of ``max(1 + best wrong score - score of the class, 0)``."""

    def __init__(self, name="categorical_hinge", dtype=None):
        super().__init__(categorical_hinge, name, dtype)
