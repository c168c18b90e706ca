"""Segmentation losses: one minus the overlap of predictions and labels.

Sums over the examples of a batch are taken over all replicas that take a step together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tapewright.core.settings.floatx import epsilon
from tapewright.core.state.replica_context import replica_context
from tapewright.core.tensor import convert_to_tensor
from tapewright.ops.array.joining import stack, unstack
from tapewright.ops.math.reduction import reduce_sum

from .loss import Loss, scale_by_share, sum_over_replicas
from .shape_utils import floating, pair

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import Axes, DTypeLike, TensorLike

__all__ = ["Dice", "Tversky", "dice", "tversky"]


def dice(y_true: TensorLike, y_pred: TensorLike, axis: Axes = None) -> Tensor:
    """Compute the Dice loss of masks, one minus their overlap.

    It is ``1 - 2 * sum(y_true * y_pred) / (sum(y_true) + sum(y_pred))``.

    Args:
        y_true: Labels from 0 to 1.
        y_pred: Predictions from 0 to 1.
        axis: Axes of the sums; by default all, so that there is one loss for the batch.

    Shapes:
        ``y_true`` and ``y_pred`` ``[...]``, result without ``axis``.

    Example:
        >>> keras.losses.dice([1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 1.0, 0.0]).numpy()
        np.float32(0.5)
    """
    y_true, y_pred = pair("dice", y_true, floating(y_pred), exact=True)
    terms = y_true * y_pred, y_true, y_pred
    common, labels, predictions = _sums(axis, *terms)
    return 1.0 - 2.0 * common / (labels + predictions + epsilon())


def tversky(
    y_true: TensorLike,
    y_pred: TensorLike,
    alpha: float = 0.5,
    beta: float = 0.5,
    axis: Axes = None,
) -> Tensor:
    """Compute the Tversky loss of masks: `dice` with weights of missed and extra entries.

    It is ``1 - c / (c + alpha * missed + beta * extra)`` with
    ``c = sum(y_true * y_pred)``, ``missed = sum(y_true * (1 - y_pred))`` and
    ``extra = sum((1 - y_true) * y_pred)``. Keras' documentation calls ``alpha`` the
    weight of false positives and ``beta`` the weight of false negatives; its values
    agree with this formula.

    Args:
        y_true: Labels from 0 to 1.
        y_pred: Predictions from 0 to 1.
        alpha: Weight of missed entries.
        beta: Weight of extra entries.
        axis: Axes of the sums; by default all, so that there is one loss for the batch.

    Shapes:
        ``y_true`` and ``y_pred`` ``[...]``, result without ``axis``.

    References:
        Salehi et al., "Tversky loss function for image segmentation" (2017).

    Example:
        >>> loss = keras.losses.tversky([1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], alpha=1.0)
        >>> loss.numpy()
        np.float32(0.5)
    """
    y_true, y_pred = pair("tversky", y_true, floating(y_pred), exact=True)
    terms = y_true * y_pred, (1.0 - y_pred) * y_true, y_pred * (1.0 - y_true)
    common, missed, extra = _sums(axis, *terms)
    return 1.0 - common / (common + missed * alpha + extra * beta + epsilon())


def _sums(axis, *terms):
    sums = [reduce_sum(term, axis) for term in terms]
    if replica_context() is None or not _over_examples(axis, terms[0]):
        return sums
    return unstack(sum_over_replicas(stack(sums)))


def _over_examples(axis, x):
    """Return whether sums over ``axis`` include the examples of a batch."""
    return axis is None or 0 in np.atleast_1d(axis) % x.array.ndim


class _OverlapLoss(Loss):
    """Base class of losses that each replica computes for the whole batch."""

    axis: Any

    def call(self, y_true: TensorLike, y_pred: TensorLike) -> Tensor:
        losses = super().call(y_true, y_pred)
        is_whole = _over_examples(self.axis, convert_to_tensor(y_pred))
        is_mean = self.reduction not in ("sum", "none")
        return scale_by_share(losses) if is_whole and not is_mean else losses


class Dice(_OverlapLoss, function=dice):
    """Dice loss, one minus the overlap of two masks: `dice`, reduced.

    Args:
        reduction: Reduction over the batch: "sum_over_batch_size" or "mean" (the mean),
            "sum", "mean_with_sample_weight" (the sum divided by the sum of the
            weights), or "none" or None to return one value per example.
        name: Name of the loss.
        axis: Axes of the sums, by default all.
        dtype: Dtype or `keras.DTypePolicy` of the computation, `floatx` by default.

    Shapes:
        ``y_true`` and ``y_pred``, from 0 to 1, ``[batch, ...]``.

    Example:
        >>> keras.losses.Dice()([[1.0, 1.0, 0.0, 0.0]], [[1.0, 0.0, 1.0, 0.0]]).numpy()
        np.float32(0.5)
    """

    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "dice",
        axis: Axes = None,
        dtype: DTypeLike | None = None,
    ):
        super().__init__(name, reduction, dtype)
        self.axis = axis


class Tversky(_OverlapLoss, function=tversky):
    """Tversky loss, `Dice` with weights of missed and extra entries: `tversky`, reduced.

    Args:
        alpha: Weight of missed entries.
        beta: Weight of extra entries.
        reduction: Reduction over the batch: "sum_over_batch_size" or "mean" (the mean),
            "sum", "mean_with_sample_weight" (the sum divided by the sum of the
            weights), or "none" or None to return one value per example.
        name: Name of the loss.
        axis: Axes of the sums, by default all.
        dtype: Dtype or `keras.DTypePolicy` of the computation, `floatx` by default.

    Shapes:
        ``y_true`` and ``y_pred``, from 0 to 1, ``[batch, ...]``.

    Example:
        >>> keras.losses.Tversky(alpha=1.0)([[1.0, 1.0, 0.0]], [[1.0, 0.0, 0.0]]).numpy()
        np.float32(0.5)
    """

    def __init__(
        self,
        alpha: float = 0.5,
        beta: float = 0.5,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "tversky",
        axis: Axes = None,
        dtype: DTypeLike | None = None,
    ):
        super().__init__(name, reduction, dtype)
        self.alpha = alpha
        self.beta = beta
        self.axis = axis
