"""Hinge losses: a prediction that is right by a margin of 1 or more costs nothing."""

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
    """Compute the hinge loss, ``mean(max(1 - y_true * y_pred, 0))`` over the last axis.

    Args:
        y_true: Labels -1 and 1; if all labels are 0 or 1, 0 counts as -1.
        y_pred: Predictions.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., n]``, result ``[batch, ...]``.

    Example:
        >>> keras.losses.hinge([[0.0, 1.0]], [[-2.0, 0.5]]).numpy()
        array([0.25], dtype=float32)
    """
    return reduce_mean(_shortfall("hinge", y_true, y_pred), -1)


def squared_hinge(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """Compute the squared hinge loss, ``mean(max(1 - y_true * y_pred, 0) ** 2)``.

    The mean is over the last axis.

    Args:
        y_true: Labels -1 and 1; if all labels are 0 or 1, 0 counts as -1.
        y_pred: Predictions.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., n]``, result ``[batch, ...]``.

    Example:
        >>> keras.losses.squared_hinge([[0.0, 1.0]], [[-2.0, 0.5]]).numpy()
        array([0.125], dtype=float32)
    """
    return reduce_mean(square(_shortfall("squared_hinge", y_true, y_pred)), -1)


def _shortfall(who, y_true, y_pred):
    """Return the distance by which a prediction misses the margin of 1."""
    y_true, y_pred = aligned(who, y_true, y_pred)
    binary = reduce_all(logical_or(equal(y_true, 0.0), equal(y_true, 1.0)))
    y_true = where(binary, 2.0 * y_true - 1.0, y_true)
    return maximum(1.0 - zero_safe_multiply(y_true, y_pred), 0.0)


def categorical_hinge(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """Compute the categorical hinge loss between one-hot labels and predictions.

    The loss is ``max(1 + max((1 - y_true) * y_pred) - sum(y_true * y_pred), 0)``; the
    inner maximum and the sum are over the last axis, the classes.

    Args:
        y_true: One-hot labels.
        y_pred: Scores of the classes.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., classes]``, result ``[batch, ...]``.

    Example:
        >>> keras.losses.categorical_hinge([[0.0, 1.0]], [[0.25, 0.75]]).numpy()
        array([0.5], dtype=float32)
    """
    y_true, y_pred = aligned("categorical_hinge", y_true, y_pred)
    right = reduce_sum(zero_safe_multiply(y_true, y_pred), -1)
    wrong = reduce_max(zero_safe_multiply(1.0 - y_true, y_pred), -1)
    return maximum(wrong - right + 1.0, 0.0)


class Hinge(Loss, function=hinge):
    """Hinge loss, ``max(1 - y_true * y_pred, 0)``: `hinge`, reduced.

    Args:
        reduction: Reduction over the batch: "sum_over_batch_size" or "mean" (the mean),
            "sum", "mean_with_sample_weight" (the sum divided by the sum of the
            weights), or "none" or None to return one value per example.
        name: Name of the loss.
        dtype: Dtype or `keras.DTypePolicy` of the computation, `floatx` by default.

    Shapes:
        ``y_true`` (-1 and 1, or 0 and 1) and ``y_pred`` ``[batch, ..., n]``.

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
    """Squared hinge loss, ``max(1 - y_true * y_pred, 0) ** 2``: `squared_hinge`, reduced.

    Args:
        reduction: Reduction over the batch: "sum_over_batch_size" or "mean" (the mean),
            "sum", "mean_with_sample_weight" (the sum divided by the sum of the
            weights), or "none" or None to return one value per example.
        name: Name of the loss.
        dtype: Dtype or `keras.DTypePolicy` of the computation, `floatx` by default.

    Shapes:
        ``y_true`` (-1 and 1, or 0 and 1) and ``y_pred`` ``[batch, ..., n]``.

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
    """Hinge loss for one-hot labels: `categorical_hinge`, reduced.

    The right class should exceed all others by a margin of 1.

    Args:
        reduction: Reduction over the batch: "sum_over_batch_size" or "mean" (the mean),
            "sum", "mean_with_sample_weight" (the sum divided by the sum of the
            weights), or "none" or None to return one value per example.
        name: Name of the loss.
        dtype: Dtype or `keras.DTypePolicy` of the computation, `floatx` by default.

    Shapes:
        ``y_true``, one-hot, and ``y_pred`` ``[batch, ..., classes]``.

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
