"""Correlations of predictions with labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapewright.core.floatx import epsilon
from tapewright.ops.math.elementwise import sqrt, square
from tapewright.ops.math.reduction import reduce_mean

from ..losses.shape_utils import pair
from .reduction import MeanMetricWrapper

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import Axes, DTypeLike, TensorLike

__all__ = [
    "ConcordanceCorrelation",
    "PearsonCorrelation",
    "concordance_correlation",
    "pearson_correlation",
]


def pearson_correlation(
    y_true: TensorLike, y_pred: TensorLike, axis: Axes = -1
) -> Tensor:
    """``cov(y_true, y_pred) / (std(y_true) * std(y_pred))`` over ``axis``.

    It is NaN where one of them is constant.

    Shapes: ``y_true`` and ``y_pred`` ``[batch, ..., n]``; result without ``axis``.

    Example:
        >>> keras.metrics.pearson_correlation([[0.0, 1.0, 2.0]], [[1.0, 3.0, 5.0]]).numpy().round(5)
        array([1.], dtype=float32)
    """
    y_true, y_pred = pair("pearson_correlation", y_true, y_pred)
    return reduce_mean(_standard(y_true, axis) * _standard(y_pred, axis), axis)


def concordance_correlation(
    y_true: TensorLike, y_pred: TensorLike, axis: Axes = -1
) -> Tensor:
    """``2 cov / (var(y_true) + var(y_pred) + (mean(y_true) - mean(y_pred)) ** 2)``.

    Shapes: ``y_true`` and ``y_pred`` ``[batch, ..., n]``; result without ``axis``.

    Reference: Lin, "A concordance correlation coefficient to evaluate reproducibility"
    (1989).

    Example:
        >>> keras.metrics.concordance_correlation([[0.0, 1.0, 2.0]], [[1.0, 2.0, 3.0]]).numpy().round(5)
        array([0.57143], dtype=float32)
    """
    y_true, y_pred = pair("concordance_correlation", y_true, y_pred)
    true_mean, true_rest = _centered(y_true, axis)
    pred_mean, pred_rest = _centered(y_pred, axis)
    scale = (
        reduce_mean(square(true_rest), axis, True)
        + reduce_mean(square(pred_rest), axis, True)
        + square(true_mean - pred_mean)
    )
    covariance = (y_true - pred_mean) * pred_rest
    return reduce_mean(2 * covariance / (scale + epsilon()), axis)


def _centered(x, axis):
    mean = reduce_mean(x, axis, True)
    return mean, x - mean


def _standard(x, axis):
    rest = _centered(x, axis)[1]
    return rest / sqrt(reduce_mean(square(rest), axis, True))


class PearsonCorrelation(MeanMetricWrapper):
    """The mean of `pearson_correlation` over ``axis``, 1 for a perfect linear relation.

    Shapes: ``y_true`` and ``y_pred`` ``[batch, ..., n]``.

    Example:
        >>> keras.metrics.PearsonCorrelation()([[0.0, 1.0, 2.0]], [[1.0, 3.0, 5.0]]).numpy().round(5)
        np.float32(1.0)
    """

    _direction = "up"

    def __init__(
        self,
        name: str | None = "pearson_correlation",
        dtype: DTypeLike | None = None,
        axis: Axes = -1,
    ):
        super().__init__(pearson_correlation, name, dtype, axis=axis)
        self.axis = axis


class ConcordanceCorrelation(MeanMetricWrapper):
    """The mean of `concordance_correlation` over ``axis``, 1 where both are the same.

    Shapes: ``y_true`` and ``y_pred`` ``[batch, ..., n]``.

    Example:
        >>> keras.metrics.ConcordanceCorrelation()([[0.0, 1.0, 2.0]], [[1.0, 2.0, 3.0]]).numpy().round(5)
        np.float32(0.57143)
    """

    _direction = "up"

    def __init__(
        self,
        name: str | None = "concordance_correlation",
        dtype: DTypeLike | None = None,
        axis: Axes = -1,
    ):
        super().__init__(concordance_correlation, name, dtype, axis=axis)
        self.axis = axis
