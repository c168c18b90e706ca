"""Regression metrics."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from tapewright.core.dtypes import float64
from tapewright.core.interpreters import active_tracer
from tapewright.core.messages.argument_validation import one_of, whole
from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.ops.array.shape import expand_dims, size
from tapewright.ops.math.comparison import greater, is_inf, where
from tapewright.ops.math.elementwise import sqrt, square
from tapewright.ops.math.reduction import reduce_mean, reduce_sum

from .. import losses
from ..losses import (
    log_cosh,
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_squared_error,
    mean_squared_logarithmic_error,
)
from ..losses.shape_utils import as_tensor, broadcast_weight, check_matrices, pair
from .metric import Metric
from .reduction import Mean, _MeanMetric

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import Axes, DTypeLike, TensorLike
    from tapewright.core.variable import Variable

__all__ = [
    "CosineSimilarity",
    "LogCoshError",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanSquaredError",
    "MeanSquaredLogarithmicError",
    "R2Score",
    "RootMeanSquaredError",
]

_AGGREGATIONS = (None, "uniform_average", "variance_weighted_average")


class MeanSquaredError(_MeanMetric, function=mean_squared_error):
    """Mean squared error, the mean of ``(y_true - y_pred) ** 2``.

    Args:
        name: Name of the metric, and of its result in the logs.
        dtype: Dtype of the result, `floatx` by default.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., n]``.

    Example:
        >>> keras.metrics.MeanSquaredError()([[0, 1], [0, 0]], [[1, 1], [0, 0]]).numpy()
        np.float32(0.25)
    """

    def __init__(
        self, name: str | None = "mean_squared_error", dtype: DTypeLike | None = None
    ):
        super().__init__(name, dtype)


class MeanAbsoluteError(_MeanMetric, function=mean_absolute_error):
    """Mean absolute error, the mean of ``|y_true - y_pred|``.

    Args:
        name: Name of the metric, and of its result in the logs.
        dtype: Dtype of the result, `floatx` by default.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., n]``.

    Example:
        >>> keras.metrics.MeanAbsoluteError()([[0.0, 1.0]], [[3.0, 2.0]]).numpy()
        np.float32(2.0)
    """

    def __init__(
        self, name: str | None = "mean_absolute_error", dtype: DTypeLike | None = None
    ):
        super().__init__(name, dtype)


class MeanAbsolutePercentageError(_MeanMetric, function=mean_absolute_percentage_error):
    """Mean absolute percentage error, the mean of ``100 * |y_true - y_pred| / |y_true|``.

    Args:
        name: Name of the metric, and of its result in the logs.
        dtype: Dtype of the result, `floatx` by default.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., n]``.

    Example:
        >>> metric = keras.metrics.MeanAbsolutePercentageError()
        >>> metric([[2.0, 4.0]], [[1.0, 4.0]]).numpy()
        np.float32(25.0)
    """

    def __init__(
        self,
        name: str | None = "mean_absolute_percentage_error",
        dtype: DTypeLike | None = None,
    ):
        super().__init__(name, dtype)


class MeanSquaredLogarithmicError(_MeanMetric, function=mean_squared_logarithmic_error):
    """Mean squared logarithmic error.

    It is the mean of ``(log(1 + y_true) - log(1 + y_pred)) ** 2``.

    Args:
        name: Name of the metric, and of its result in the logs.
        dtype: Dtype of the result, `floatx` by default.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., n]``.

    Example:
        >>> metric = keras.metrics.MeanSquaredLogarithmicError()
        >>> metric([[0.0]], [[1.0]]).numpy().round(4)
        np.float32(0.4805)
    """

    def __init__(
        self,
        name: str | None = "mean_squared_logarithmic_error",
        dtype: DTypeLike | None = None,
    ):
        super().__init__(name, dtype)


class LogCoshError(_MeanMetric, function=log_cosh):
    """Log-cosh error, the mean of ``log(cosh(y_pred - y_true))``.

    Args:
        name: Name of the metric, and of its result in the logs.
        dtype: Dtype of the result, `floatx` by default.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., n]``.

    Example:
        >>> keras.metrics.LogCoshError()([[0.0, 0.0]], [[0.0, 200.0]]).numpy()
        np.float32(99.65343)
    """

    def __init__(self, name: str | None = "logcosh", dtype: DTypeLike | None = None):
        super().__init__(name, dtype)


class RootMeanSquaredError(Mean):
    """Root mean squared error, ``sqrt(mean((y_true - y_pred) ** 2))``.

    Args:
        name: Name of the metric, and of its result in the logs.
        dtype: Dtype of the result, `floatx` by default.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., n]``.

    Example:
        >>> metric = keras.metrics.RootMeanSquaredError()
        >>> metric([[0, 1], [0, 0]], [[1, 1], [0, 0]]).numpy()
        np.float32(0.5)
    """

    _direction = "down"

    def __init__(
        self,
        name: str | None = "root_mean_squared_error",
        dtype: DTypeLike | None = None,
    ):
        super().__init__(name, dtype)

    def update_state(
        self,
        y_true: TensorLike,
        y_pred: TensorLike,
        sample_weight: TensorLike | None = None,
    ) -> None:
        """Add the squared errors of one batch.

        Args:
            y_true: Labels.
            y_pred: Predictions.
            sample_weight: Weights of the examples, or None.
        """
        y_true, y_pred = pair(type(self).__name__, y_true, y_pred, self._dtype)
        super().update_state(square(y_pred - y_true), sample_weight)

    def result(self) -> Tensor:
        return sqrt(super().result())


def cosine_similarity(y_true, y_pred, axis=-1):
    """Compute the cosine similarity of vectors along ``axis``; 0 for a zero vector.

    The loss of the same name is its negative, because losses are minimized.
    """
    return -losses.cosine_similarity(y_true, y_pred, axis)


class CosineSimilarity(_MeanMetric, function=cosine_similarity):
    """Mean cosine similarity of labels and predictions.

    It is 1 for vectors of the same direction, and the negative of the loss of the same
    name.

    Args:
        name: Name of the metric, and of its result in the logs.
        dtype: Dtype of the result, `floatx` by default.
        axis: Axis of the vectors.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., n]``.

    Example:
        >>> keras.metrics.CosineSimilarity()([[0.0, 1.0]], [[0.0, 3.0]]).numpy()
        np.float32(1.0)
    """

    def __init__(
        self,
        name: str | None = "cosine_similarity",
        dtype: DTypeLike | None = None,
        axis: Axes = -1,
    ):
        super().__init__(name, dtype)
        self.axis = axis


class R2Score(Metric):
    """R2 score, the coefficient of determination.

    It is ``1 - sum((y_true - y_pred) ** 2) / sum((y_true - mean(y_true)) ** 2)``.

    Args:
        class_aggregation: Average over the outputs: "uniform_average",
            "variance_weighted_average", or None for one score per output.
        num_regressors: Number of predictors to adjust the score for; 0 for no
            adjustment.
        name: Name of the metric, and of its result in the logs.
        dtype: Dtype of the result, `floatx` by default.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, outputs]``.

    Raises:
        ValueError: If ``class_aggregation`` is unknown or ``num_regressors`` is
            negative.

    Example:
        >>> metric = keras.metrics.R2Score()
        >>> metric([[1.0], [4.0], [3.0]], [[2.0], [4.0], [4.0]]).numpy().round(5)
        np.float32(0.57143)
    """

    squared_sum: Variable
    sum: Variable
    total_mse: Variable
    count: Variable

    _direction = "up"

    def __init__(
        self,
        class_aggregation: str = "uniform_average",
        num_regressors: int = 0,
        name: str | None = "r2_score",
        dtype: DTypeLike | None = None,
    ):
        super().__init__(dtype, name)
        one_of(self, "class_aggregation", class_aggregation, _AGGREGATIONS)
        self.class_aggregation = class_aggregation
        self.num_regressors = whole(self, "num_regressors", num_regressors, 0)
        self.num_samples: Variable = self._tw_add_sum("num_samples")
        self._built = False

    def _build(self, y_true_shape, y_pred_shape):
        shape = (int(y_pred_shape[1]),)
        self.squared_sum = self._tw_add_sum("squared_sum", shape)
        self.sum = self._tw_add_sum("sum", shape)
        self.total_mse = self._tw_add_sum("residual", shape)
        self.count = self._tw_add_sum("count", shape)
        self._built = True

    def update_state(
        self,
        y_true: TensorLike,
        y_pred: TensorLike,
        sample_weight: TensorLike | None = None,
    ) -> None:
        """Add the sums of one batch.

        Args:
            y_true: Labels.
            y_pred: Predictions.
            sample_weight: Weights of the examples, or None.
        """
        y_true, y_pred = pair(type(self).__name__, y_true, y_pred, self._dtype)
        check_matrices("R2Score", "outputs", y_true, y_pred)
        weight = as_tensor(
            1 if sample_weight is None else sample_weight, self._dtype, y_pred
        )
        if len(weight.shape) == 1:
            weight = expand_dims(weight, 1)
        weight = broadcast_weight("R2Score", weight, y_true)
        weighted = y_true * weight
        residual = square(y_true - y_pred) * weight
        if not self._built:
            self._build(y_true.shape, y_pred.shape)
        for variable, values in (
            (self.sum, weighted),
            (self.squared_sum, y_true * weighted),
            (self.total_mse, residual),
            (self.count, weight),
        ):
            variable.assign_add(reduce_sum(values, 0))
        self.num_samples.assign_add(size(y_true, float64))

    def result(self) -> Tensor:
        """Return the score; NaN before the first update."""
        if not self._built:
            return as_tensor(float("nan"), self._dtype)
        total = self.squared_sum - self.sum * (self.sum / self.count)
        scores = 1 - self.total_mse / total
        scores = where(is_inf(scores), 0.0, scores)
        if self.class_aggregation == "uniform_average":
            scores = reduce_mean(scores)
        elif self.class_aggregation == "variance_weighted_average":
            scores = reduce_sum(total * scores) / reduce_sum(total)
        scores = self._tw_adjusted(scores) if self.num_regressors else scores
        return self._tw_as_result(scores)

    def _tw_adjusted(self, score):
        """Return the adjusted score; the score itself if there are too few samples."""
        spare = self.num_samples - 1.0 - self.num_regressors
        if active_tracer() is None and not spare > 0:
            warnings.warn(
                f"R2Score: {self.num_regressors} regressors need more than "
                f"{self.num_regressors + 1} samples; the score is not adjusted",
                stacklevel=user_stacklevel(),
            )
            return score
        adjusted = 1 - (1 - score) * (self.num_samples - 1.0) / spare
        return where(greater(spare, 0.0), adjusted, score)
