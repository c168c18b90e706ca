"""Regression losses: squared, absolute, relative and robust errors, cosine similarity."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tapewright.core.settings.floatx import epsilon
from tapewright.ops.math.elementwise import abs, clip_by_value, log, maximum, square
from tapewright.ops.math.reduction import reduce_mean, reduce_sum
from tapewright.ops.math.smooth import log_cosh as _log_cosh
from tapewright.ops.nn.normalization import l2_normalize

from .loss import Loss
from .shape_utils import aligned

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import Axes, DTypeLike, TensorLike

__all__ = [
    "CosineSimilarity",
    "Huber",
    "LogCosh",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanSquaredError",
    "MeanSquaredLogarithmicError",
    "cosine_similarity",
    "huber",
    "log_cosh",
    "mean_absolute_error",
    "mean_absolute_percentage_error",
    "mean_squared_error",
    "mean_squared_logarithmic_error",
]


# ------------------------------------------------------------------------ functions


def mean_squared_error(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """Compute the mean squared error, ``mean((y_true - y_pred) ** 2)`` over the last axis.

    Args:
        y_true: Labels.
        y_pred: Predictions.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., n]``, or shapes that broadcast; a last
        axis of size 1 that only one of them has is ignored. Result ``[batch, ...]``.

    Example:
        >>> keras.losses.mean_squared_error([[0.0, 2.0]], [[1.0, 0.0]]).numpy()
        array([2.5], dtype=float32)
    """
    y_true, y_pred = aligned("mean_squared_error", y_true, y_pred)
    return reduce_mean(square(y_true - y_pred), -1)


def mean_absolute_error(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """Compute the mean absolute error, ``mean(|y_true - y_pred|)`` over the last axis.

    Args:
        y_true: Labels.
        y_pred: Predictions.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., n]``, or shapes that broadcast; a last
        axis of size 1 that only one of them has is ignored. Result ``[batch, ...]``.

    Example:
        >>> keras.losses.mean_absolute_error([[0.0, 2.0]], [[1.0, 0.0]]).numpy()
        array([1.5], dtype=float32)
    """
    y_true, y_pred = aligned("mean_absolute_error", y_true, y_pred)
    return reduce_mean(abs(y_true - y_pred), -1)


def mean_absolute_percentage_error(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """Compute the mean absolute percentage error over the last axis.

    It is ``100 * mean(|y_true - y_pred| / max(|y_true|, 1e-7))``.

    Args:
        y_true: Labels.
        y_pred: Predictions.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., n]``, or shapes that broadcast; a last
        axis of size 1 that only one of them has is ignored. Result ``[batch, ...]``.

    Example:
        >>> error = keras.losses.mean_absolute_percentage_error([[2.0, 4.0]], [[1.0, 4.0]])
        >>> error.numpy()
        array([25.], dtype=float32)
    """
    y_true, y_pred = aligned("mean_absolute_percentage_error", y_true, y_pred)
    relative = abs((y_true - y_pred) / maximum(abs(y_true), epsilon()))
    return 100.0 * reduce_mean(relative, -1)


def mean_squared_logarithmic_error(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """Compute the mean squared logarithmic error over the last axis.

    It is ``mean((log(1 + y_true) - log(1 + y_pred)) ** 2)``; values below 1e-7 are
    replaced by 1e-7.

    Args:
        y_true: Labels.
        y_pred: Predictions.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., n]``, or shapes that broadcast; a last
        axis of size 1 that only one of them has is ignored. Result ``[batch, ...]``.

    Example:
        >>> keras.losses.mean_squared_logarithmic_error([[0.0]], [[1.0]]).numpy().round(4)
        array([0.4805], dtype=float32)
    """
    y_true, y_pred = aligned("mean_squared_logarithmic_error", y_true, y_pred)
    gap = log(maximum(y_pred, epsilon()) + 1.0) - log(maximum(y_true, epsilon()) + 1.0)
    return reduce_mean(square(gap), -1)


def huber(y_true: TensorLike, y_pred: TensorLike, delta: float = 1.0) -> Tensor:
    """Compute the Huber loss: squared near zero, linear for errors beyond ``delta``.

    It is the mean over the last axis of the function of ``e = y_true - y_pred``

        where(|e| <= delta, e ** 2 / 2, delta * |e| - delta ** 2 / 2)

    Args:
        y_true: Labels.
        y_pred: Predictions.
        delta: Error at which the loss becomes linear, positive.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., n]``, or shapes that broadcast; a last
        axis of size 1 that only one of them has is ignored. Result ``[batch, ...]``.

    Raises:
        ValueError: If ``delta`` is not positive.

    References:
        Huber, "Robust estimation of a location parameter" (1964).

    Example:
        >>> keras.losses.huber([[0.0]], [[3.0]], delta=1.0).numpy()
        array([2.5], dtype=float32)
    """
    if not delta > 0:
        raise ValueError(f"huber: delta must be positive, got {delta!r}")
    y_true, y_pred = aligned("huber", y_true, y_pred)
    error = y_pred - y_true
    near = clip_by_value(error, -delta, delta)
    return reduce_mean(near * (error - near * 0.5), -1)


def log_cosh(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """Compute the log-cosh loss, ``mean(log(cosh(y_pred - y_true)))`` over the last axis.

    It is computed without overflow.

    Args:
        y_true: Labels.
        y_pred: Predictions.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., n]``, or shapes that broadcast; a last
        axis of size 1 that only one of them has is ignored. Result ``[batch, ...]``.

    Example:
        >>> keras.losses.log_cosh([[0.0, 0.0]], [[0.0, 200.0]]).numpy()
        array([99.65343], dtype=float32)
    """
    y_true, y_pred = aligned("log_cosh", y_true, y_pred)
    return reduce_mean(_log_cosh(y_pred - y_true), -1)


def cosine_similarity(
    y_true: TensorLike, y_pred: TensorLike, axis: Axes = -1
) -> Tensor:
    """Compute the negative cosine similarity of vectors along ``axis``.

    It is -1 for vectors of the same direction, 1 for vectors of opposite direction, and
    0 for a vector of length 0.

    Args:
        y_true: Labels.
        y_pred: Predictions.
        axis: Axis of the vectors.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., n]``, result without ``axis``.

    Example:
        >>> labels, predictions = [[0.0, 1.0], [3.0, 4.0]], [[5.0, 0.0], [6.0, 8.0]]
        >>> keras.losses.cosine_similarity(labels, predictions).numpy()
        array([-0., -1.], dtype=float32)
    """
    y_true, y_pred = aligned("cosine_similarity", y_true, y_pred)
    unit = partial(l2_normalize, axis=axis, epsilon=epsilon() ** 2)
    return -reduce_sum(unit(y_true) * unit(y_pred), axis)


# -------------------------------------------------------------------------- classes


class MeanSquaredError(Loss, function=mean_squared_error):
    """Mean squared error, ``(y_true - y_pred) ** 2``: `mean_squared_error`, reduced.

    Args:
        reduction: Reduction over the batch: "sum_over_batch_size" or "mean" (the mean),
            "sum", "mean_with_sample_weight" (the sum divided by the sum of the
            weights), or "none" or None to return one value per example.
        name: Name of the loss.
        dtype: Dtype or `keras.DTypePolicy` of the computation, `floatx` by default.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., n]``.

    Example:
        >>> keras.losses.MeanSquaredError()([[0.0, 2.0]], [[1.0, 0.0]]).numpy()
        np.float32(2.5)
    """

    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "mean_squared_error",
        dtype: DTypeLike | None = None,
    ):
        super().__init__(name, reduction, dtype)


class MeanAbsoluteError(Loss, function=mean_absolute_error):
    """Mean absolute error, ``|y_true - y_pred|``: `mean_absolute_error`, reduced.

    Args:
        reduction: Reduction over the batch: "sum_over_batch_size" or "mean" (the mean),
            "sum", "mean_with_sample_weight" (the sum divided by the sum of the
            weights), or "none" or None to return one value per example.
        name: Name of the loss.
        dtype: Dtype or `keras.DTypePolicy` of the computation, `floatx` by default.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., n]``.

    Example:
        >>> keras.losses.MeanAbsoluteError()([[0.0, 2.0]], [[1.0, 0.0]]).numpy()
        np.float32(1.5)
    """

    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "mean_absolute_error",
        dtype: DTypeLike | None = None,
    ):
        super().__init__(name, reduction, dtype)


class MeanAbsolutePercentageError(Loss, function=mean_absolute_percentage_error):
    """Mean absolute error in percent: `mean_absolute_percentage_error`, reduced.

    Args:
        reduction: Reduction over the batch: "sum_over_batch_size" or "mean" (the mean),
            "sum", "mean_with_sample_weight" (the sum divided by the sum of the
            weights), or "none" or None to return one value per example.
        name: Name of the loss.
        dtype: Dtype or `keras.DTypePolicy` of the computation, `floatx` by default.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., n]``.

    Example:
        >>> loss = keras.losses.MeanAbsolutePercentageError()
        >>> loss([[2.0, 4.0]], [[1.0, 4.0]]).numpy()
        np.float32(25.0)
    """

    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "mean_absolute_percentage_error",
        dtype: DTypeLike | None = None,
    ):
        super().__init__(name, reduction, dtype)


class MeanSquaredLogarithmicError(Loss, function=mean_squared_logarithmic_error):
    """Mean squared error of ``log(1 + y)``: `mean_squared_logarithmic_error`, reduced.

    Args:
        reduction: Reduction over the batch: "sum_over_batch_size" or "mean" (the mean),
            "sum", "mean_with_sample_weight" (the sum divided by the sum of the
            weights), or "none" or None to return one value per example.
        name: Name of the loss.
        dtype: Dtype or `keras.DTypePolicy` of the computation, `floatx` by default.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., n]``.

    Example:
        >>> keras.losses.MeanSquaredLogarithmicError()([[0.0]], [[1.0]]).numpy().round(4)
        np.float32(0.4805)
    """

    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "mean_squared_logarithmic_error",
        dtype: DTypeLike | None = None,
    ):
        super().__init__(name, reduction, dtype)


class CosineSimilarity(Loss, function=cosine_similarity):
    """Negative cosine similarity of vectors: `cosine_similarity`, reduced.

    Args:
        axis: Axis of the vectors.
        reduction: Reduction over the batch: "sum_over_batch_size" or "mean" (the mean),
            "sum", "mean_with_sample_weight" (the sum divided by the sum of the
            weights), or "none" or None to return one value per example.
        name: Name of the loss.
        dtype: Dtype or `keras.DTypePolicy` of the computation, `floatx` by default.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., n]``.

    Example:
        >>> keras.losses.CosineSimilarity()([[3.0, 4.0]], [[6.0, 8.0]]).numpy()
        np.float32(-1.0)
    """

    def __init__(
        self,
        axis: Axes = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "cosine_similarity",
        dtype: DTypeLike | None = None,
    ):
        super().__init__(name, reduction, dtype)
        self.axis = axis


class Huber(Loss, function=huber):
    """Huber loss: squared error up to ``delta``, linear beyond: `huber`, reduced.

    Args:
        delta: Error at which the loss becomes linear, positive.
        reduction: Reduction over the batch: "sum_over_batch_size" or "mean" (the mean),
            "sum", "mean_with_sample_weight" (the sum divided by the sum of the
            weights), or "none" or None to return one value per example.
        name: Name of the loss.
        dtype: Dtype or `keras.DTypePolicy` of the computation, `floatx` by default.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., n]``.

    Raises:
        ValueError: If ``delta`` is not positive.

    Example:
        >>> keras.losses.Huber()([[0.0, 0.0]], [[1.0, 3.0]]).numpy()
        np.float32(1.5)
    """

    def __init__(
        self,
        delta: float = 1.0,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "huber_loss",
        dtype: DTypeLike | None = None,
    ):
        super().__init__(name, reduction, dtype)
        if not delta > 0:
            raise ValueError(f"Huber: delta must be positive, got {delta!r}")
        self.delta = delta


class LogCosh(Loss, function=log_cosh):
    """Logarithm of the hyperbolic cosine of the error: `log_cosh`, reduced.

    It behaves like the squared error near zero and like the absolute error far from it.

    Args:
        reduction: Reduction over the batch: "sum_over_batch_size" or "mean" (the mean),
            "sum", "mean_with_sample_weight" (the sum divided by the sum of the
            weights), or "none" or None to return one value per example.
        name: Name of the loss.
        dtype: Dtype or `keras.DTypePolicy` of the computation, `floatx` by default.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., n]``.

    Example:
        >>> keras.losses.LogCosh()([[0.0, 0.0]], [[0.0, 200.0]]).numpy()
        np.float32(99.65343)
    """

    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "log_cosh",
        dtype: DTypeLike | None = None,
    ):
        super().__init__(name, reduction, dtype)
