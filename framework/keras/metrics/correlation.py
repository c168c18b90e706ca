"""Correlation coefficients of predictions and labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapewright.core.settings.floatx import epsilon
from tapewright.ops.math.elementwise import sqrt, square
from tapewright.ops.math.reduction import reduce_mean

from ..losses.shape_utils import pair
from .reduction import _MeanMetric

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
    """Compute the Pearson correlation coefficient over ``axis``.

    It is ``cov(y_true, y_pred) / (std(y_true) * std(y_pred))``, and NaN where one of
    them is constant.

    Args:
        y_true: Labels.
        y_pred: Predictions.
        axis: Axis or axes to correlate over.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., n]``, result without ``axis``.

    Example:
        >>> labels, predictions = [[0.0, 1.0, 2.0]], [[1.0, 3.0, 5.0]]
        >>> keras.metrics.pearson_correlation(labels, predictions).numpy().round(5)
        array([1.], dtype=float32)
    """
    y_true, y_pred = pair("pearson_correlation", y_true, y_pred)
    return reduce_mean(_standard(y_true, axis) * _standard(y_pred, axis), axis)


def concordance_correlation(
    y_true: TensorLike, y_pred: TensorLike, axis: Axes = -1
) -> Tensor:
    """Compute Lin's concordance correlation coefficient over ``axis``.

    It is ``2 cov / (var(y_true) + var(y_pred) + (mean(y_true) - mean(y_pred)) ** 2)``.

    Args:
        y_true: Labels.
        y_pred: Predictions.
        axis: Axis or axes to correlate over.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., n]``, result without ``axis``.

    References:
        Lin, "A concordance correlation coefficient to evaluate reproducibility" (1989).

    Example:
        >>> labels, predictions = [[0.0, 1.0, 2.0]], [[1.0, 2.0, 3.0]]
        >>> keras.metrics.concordance_correlation(labels, predictions).numpy().round(5)
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


class PearsonCorrelation(_MeanMetric, function=pearson_correlation):
    """Pearson correlation coefficient: the mean of `pearson_correlation`.

    It is 1 for a perfect linear relation.

    Args:
        name: Name of the metric, and of its result in the logs.
        dtype: Dtype of the result, `floatx` by default.
        axis: Axis or axes to correlate over.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., n]``.

    Example:
        >>> metric = keras.metrics.PearsonCorrelation()
        >>> metric([[0.0, 1.0, 2.0]], [[1.0, 3.0, 5.0]]).numpy().round(5)
        np.float32(1.0)
    """

    def __init__(
        self,
        name: str | None = "pearson_correlation",
        dtype: DTypeLike | None = None,
        axis: Axes = -1,
    ):
        super().__init__(name, dtype)
        self.axis = axis


class ConcordanceCorrelation(_MeanMetric, function=concordance_correlation):
    """Concordance correlation coefficient: the mean of `concordance_correlation`.

    It is 1 if labels and predictions are equal.

    Args:
        name: Name of the metric, and of its result in the logs.
        dtype: Dtype of the result, `floatx` by default.
        axis: Axis or axes to correlate over.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., n]``.

    Example:
        >>> metric = keras.metrics.ConcordanceCorrelation()
        >>> metric([[0.0, 1.0, 2.0]], [[1.0, 2.0, 3.0]]).numpy().round(5)
        np.float32(0.57143)
    """

    def __init__(
        self,
        name: str | None = "concordance_correlation",
        dtype: DTypeLike | None = None,
        axis: Axes = -1,
    ):
        super().__init__(name, dtype)
        self.axis = axis
