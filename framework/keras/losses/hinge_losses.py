"""Losses of margins: a prediction that is right by 1 or more costs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapewright.ops.math.comparison import equal, logical_or, where
from tapewright.ops.math.elementwise import maximum, square, zero_safe_multiply
from tapewright.ops.math.reduction import (
    reduce_all,
    reduce_max,
    reduce_mean,
    reduce_sum,
)

from .loss import Loss
from .shape_utils import aligned

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import DTypeLike, TensorLike

__all__ = [
    "CategoricalHinge",
    "Hinge",
    "SquaredHinge",
    "categorical_hinge",
    "hinge",
    "squared_hinge",
]


def hinge(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """``mean(max(1 - y_true * y_pred, 0))`` over the last axis; labels are -1 and 1.

    If all labels are 0 or 1, 0 counts as -1.

    Shapes: ``y_true`` and ``y_pred`` ``[batch, ..., n]``; result ``[batch, ...]``.

    Example:
        >>> keras.losses.hinge([[0.0, 1.0]], [[-2.0, 0.5]]).numpy()
        array([0.25], dtype=float32)
    """
    return reduce_mean(_shortfall("hinge", y_true, y_pred), -1)


def squared_hinge(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """``mean(max(1 - y_true * y_pred, 0) ** 2)`` over the last axis; labels as for `hinge`.

    Shapes: ``y_true`` and ``y_pred`` ``[batch, ..., n]``; result ``[batch, ...]``.

    Example:
        >>> keras.losses.squared_hinge([[0.0, 1.0]], [[-2.0, 0.5]]).numpy()
        array([0.125], dtype=float32)
    """
    return reduce_mean(square(_shortfall("squared_hinge", y_true, y_pred)), -1)


def _shortfall(who, y_true, y_pred):
    """The distance by which a margin of 1 is missed."""
    y_true, y_pred = aligned(who, y_true, y_pred)
    binary = reduce_all(logical_or(equal(y_true, 0.0), equal(y_true, 1.0)))
    y_true = where(binary, 2.0 * y_true - 1.0, y_true)
    return maximum(1.0 - zero_safe_multiply(y_true, y_pred), 0.0)


def categorical_hinge(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """``max(1 + max((1 - y_true) * y_pred) - sum(y_true * y_pred), 0)``, one-hot labels.

    The inner maximum and the sum are over the last axis, the classes.

    Shapes: ``y_true`` and ``y_pred`` ``[batch, ..., classes]``; result ``[batch,
    ...]``.

    Example:
        >>> keras.losses.categorical_hinge([[0.0, 1.0]], [[0.25, 0.75]]).numpy()
        array([0.5], dtype=float32)
    """
    y_true, y_pred = aligned("categorical_hinge", y_true, y_pred)
    right = reduce_sum(zero_safe_multiply(y_true, y_pred), -1)
    wrong = reduce_max(zero_safe_multiply(1.0 - y_true, y_pred), -1)
    return maximum(wrong - right + 1.0, 0.0)


class Hinge(Loss, function=hinge):
    """Penalty for predictions within a margin of 1 to labels of -1 and 1: `hinge`, reduced.

    Args: as for `Loss`.

    Shapes: ``y_true`` (-1 and 1, or 0 and 1) and ``y_pred`` ``[batch, ..., n]``.

    Example:
        >>> keras.losses.Hinge()([[0.0, 1.0]], [[-2.0, 0.5]]).numpy()
        np.float32(0.25)
    """

    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "hinge",
        dtype: DTypeLike | None = None,
    ):
        super().__init__(name, reduction, dtype)


class SquaredHinge(Loss, function=squared_hinge):
    """The square of the distance to a margin of 1: `squared_hinge`, reduced.

    Args: as for `Loss`.

    Shapes: ``y_true`` (-1 and 1, or 0 and 1) and ``y_pred`` ``[batch, ..., n]``.

    Example:
        >>> keras.losses.SquaredHinge()([[0.0, 1.0]], [[-2.0, 0.5]]).numpy()
        np.float32(0.125)
    """

    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "squared_hinge",
        dtype: DTypeLike | None = None,
    ):
        super().__init__(name, reduction, dtype)


class CategoricalHinge(Loss, function=categorical_hinge):
    """Penalty for a margin below 1 of the right class: `categorical_hinge`, reduced.

    Args: as for `Loss`.

    Shapes: ``y_true``, one-hot, and ``y_pred`` ``[batch, ..., classes]``.

    Example:
        >>> keras.losses.CategoricalHinge()([[0.0, 1.0]], [[0.25, 0.75]]).numpy()
        np.float32(0.5)
    """

    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "categorical_hinge",
        dtype: DTypeLike | None = None,
    ):
        super().__init__(name, reduction, dtype)
