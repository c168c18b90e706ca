"""Means of probabilistic and hinge losses, as metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..losses import (
    binary_crossentropy,
    categorical_crossentropy,
    categorical_hinge,
    hinge,
    kl_divergence,
    poisson,
    sparse_categorical_crossentropy,
    squared_hinge,
)
from .reduction import _MeanMetric

if TYPE_CHECKING:
    from tapewright.core.typing import Axes, DTypeLike

__all__ = [
    "BinaryCrossentropy",
    "CategoricalCrossentropy",
    "CategoricalHinge",
    "Hinge",
    "KLDivergence",
    "Poisson",
    "SparseCategoricalCrossentropy",
    "SquaredHinge",
]


class KLDivergence(_MeanMetric, function=kl_divergence):
    """Kullback-Leibler divergence, the mean of ``sum(y_true * log(y_true / y_pred))``.

    Args:
        name: Name of the metric, and of its result in the logs.
        dtype: Dtype of the result, `floatx` by default.

    Shapes:
        ``y_true`` and ``y_pred``, probabilities, ``[batch, ..., classes]``.

    Example:
        >>> keras.metrics.KLDivergence()([[0.5, 0.5]], [[0.25, 0.75]]).numpy()
        np.float32(0.14384106)
    """

    def __init__(
        self, name: str | None = "kl_divergence", dtype: DTypeLike | None = None
    ):
        super().__init__(name, dtype)


class Poisson(_MeanMetric, function=poisson):
    """Poisson loss of counts, the mean of ``y_pred - y_true * log(y_pred)``.

    Args:
        name: Name of the metric, and of its result in the logs.
        dtype: Dtype of the result, `floatx` by default.

    Shapes:
        ``y_true``, counts, and ``y_pred``, rates, ``[batch, ..., n]``.

    Example:
        >>> keras.metrics.Poisson()([[0.0, 2.0]], [[1.0, 1.0]]).numpy().round(4)
        np.float32(1.0)
    """

    def __init__(self, name: str | None = "poisson", dtype: DTypeLike | None = None):
        super().__init__(name, dtype)


class BinaryCrossentropy(_MeanMetric, function=binary_crossentropy):
    """Cross-entropy of binary labels: the mean of `binary_crossentropy`.

    Args:
        name: Name of the metric, and of its result in the logs.
        dtype: Dtype of the result, `floatx` by default.
        from_logits: If True, predictions are logits, not probabilities.
        label_smoothing: Number from 0 to 1; the labels become ``y * (1 -
            label_smoothing) + label_smoothing / 2``.

    Shapes:
        ``y_true``, from 0 to 1, and ``y_pred`` ``[batch, ..., n]``.

    Example:
        >>> keras.metrics.BinaryCrossentropy()([[1.0, 0.0]], [[0.5, 0.5]]).numpy()
        np.float32(0.6931472)
    """

    def __init__(
        self,
        name: str | None = "binary_crossentropy",
        dtype: DTypeLike | None = None,
        from_logits: bool = False,
        label_smoothing: float = 0,
    ):
        super().__init__(name, dtype)
        self.from_logits = from_logits
        self.label_smoothing = label_smoothing


class CategoricalCrossentropy(_MeanMetric, function=categorical_crossentropy):
    """Cross-entropy of one-hot labels: the mean of `categorical_crossentropy`.

    Args:
        name: Name of the metric, and of its result in the logs.
        dtype: Dtype of the result, `floatx` by default.
        from_logits: If True, predictions are logits, not probabilities.
        label_smoothing: Number from 0 to 1; the labels become ``y * (1 -
            label_smoothing) + label_smoothing / classes``.
        axis: Axis of the classes.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., classes]``.

    Example:
        >>> keras.metrics.CategoricalCrossentropy()([[0.0, 1.0]], [[0.5, 0.5]]).numpy()
        np.float32(0.6931472)
    """

    def __init__(
        self,
        name: str | None = "categorical_crossentropy",
        dtype: DTypeLike | None = None,
        from_logits: bool = False,
        label_smoothing: float = 0,
        axis: Axes = -1,
    ):
        super().__init__(name, dtype)
        self.from_logits = from_logits
        self.label_smoothing = label_smoothing
        self.axis = axis


class SparseCategoricalCrossentropy(
    _MeanMetric, function=sparse_categorical_crossentropy
):
    """Cross-entropy of integer labels: the mean of `sparse_categorical_crossentropy`.

    Args:
        name: Name of the metric, and of its result in the logs.
        dtype: Dtype of the result, `floatx` by default.
        from_logits: If True, predictions are logits, not probabilities.
        ignore_class: Label whose cross-entropy is 0, or None. It is counted in the
            mean.
        axis: Axis of the classes.

    Shapes:
        ``y_true`` ``[batch, ...]`` or ``[batch, ..., 1]``, integers; ``y_pred``
        ``[batch, ..., classes]``.

    Raises:
        ValueError: If a label is out of range, on the CPU.

    Example:
        >>> keras.metrics.SparseCategoricalCrossentropy()([1], [[0.5, 0.5]]).numpy()
        np.float32(0.6931472)
    """

    def __init__(
        self,
        name: str | None = "sparse_categorical_crossentropy",
        dtype: DTypeLike | None = None,
        from_logits: bool = False,
        ignore_class: int | None = None,
        axis: Axes = -1,
    ):
        super().__init__(name, dtype)
        self.from_logits = from_logits
        self.ignore_class = ignore_class
        self.axis = axis


class Hinge(_MeanMetric, function=hinge):
    """Hinge loss, the mean of ``max(1 - y_true * y_pred, 0)``.

    Args:
        name: Name of the metric, and of its result in the logs.
        dtype: Dtype of the result, `floatx` by default.

    Shapes:
        ``y_true`` (-1 and 1, or 0 and 1) and ``y_pred`` ``[batch, ..., n]``.

    Example:
        >>> keras.metrics.Hinge()([[0.0, 1.0]], [[-2.0, 0.5]]).numpy()
        np.float32(0.25)
    """

    def __init__(self, name: str | None = "hinge", dtype: DTypeLike | None = None):
        super().__init__(name, dtype)


class SquaredHinge(_MeanMetric, function=squared_hinge):
    """Squared hinge loss, the mean of ``max(1 - y_true * y_pred, 0) ** 2``.

    Args:
        name: Name of the metric, and of its result in the logs.
        dtype: Dtype of the result, `floatx` by default.

    Shapes:
        ``y_true`` (-1 and 1, or 0 and 1) and ``y_pred`` ``[batch, ..., n]``.

    Example:
        >>> keras.metrics.SquaredHinge()([[0.0, 1.0]], [[-2.0, 0.5]]).numpy()
        np.float32(0.125)
    """

    def __init__(
        self, name: str | None = "squared_hinge", dtype: DTypeLike | None = None
    ):
        super().__init__(name, dtype)


class CategoricalHinge(_MeanMetric, function=categorical_hinge):
    """Hinge loss for one-hot labels: the mean of `categorical_hinge`.

    It is ``max(1 + max((1 - y_true) * y_pred) - sum(y_true * y_pred), 0)``.

    Args:
        name: Name of the metric, and of its result in the logs.
        dtype: Dtype of the result, `floatx` by default.

    Shapes:
        ``y_true``, one-hot, and ``y_pred`` ``[batch, ..., classes]``.

    Example:
        >>> keras.metrics.CategoricalHinge()([[0.0, 1.0]], [[0.25, 0.75]]).numpy()
        np.float32(0.5)
    """

    def __init__(
        self, name: str | None = "categorical_hinge", dtype: DTypeLike | None = None
    ):
        super().__init__(name, dtype)
