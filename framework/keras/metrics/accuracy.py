"""Accuracy metrics: predictions equal to the label, above a threshold, among the top k."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tapewright.core.dtypes import float32, float64, int32, int64
from tapewright.core.errors import ShapeError
from tapewright.core.messages.argument_validation import whole
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.indexing import argmax
from tapewright.ops.array.shape import expand_dims, reshape, squeeze
from tapewright.ops.array.sorting import in_top_k
from tapewright.ops.math.comparison import equal, greater
from tapewright.ops.math.reduction import reduce_any

from ..losses.shape_utils import as_tensor, broadcasts, check_pair, pair, same_rank
from .reduction import _MeanMetric

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import DTypeLike, TensorLike

__all__ = [
    "Accuracy",
    "BinaryAccuracy",
    "CategoricalAccuracy",
    "SparseCategoricalAccuracy",
    "SparseTopKCategoricalAccuracy",
    "TopKCategoricalAccuracy",
    "binary_accuracy",
    "categorical_accuracy",
    "sparse_categorical_accuracy",
    "sparse_top_k_categorical_accuracy",
    "top_k_categorical_accuracy",
]


# ------------------------------------------------------------------------ functions


def accuracy(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """Return 1 where ``y_true`` equals ``y_pred``, else 0.

    Example:
        >>> from tapewright.keras.metrics.accuracy import accuracy
        >>> accuracy([[1], [2]], [[1], [3]]).numpy().tolist()
        [[1.0], [0.0]]
    """
    return cast(equal(*pair("accuracy", y_true, y_pred)), float32)


def binary_accuracy(
    y_true: TensorLike, y_pred: TensorLike, threshold: float = 0.5
) -> Tensor:
    """Return 1 where ``y_pred > threshold`` agrees with the binary label, else 0.

    Args:
        y_true: Labels 0 and 1.
        y_pred: Predicted probabilities or scores.
        threshold: Number above which a prediction counts as 1.

    Shapes:
        ``y_true``, ``y_pred`` and result ``[...]``.

    Example:
        >>> keras.metrics.binary_accuracy([[1], [0]], [[0.7], [0.9]]).numpy().tolist()
        [[1.0], [0.0]]
    """
    y_pred = as_tensor(y_pred)
    y_true, y_pred = same_rank(as_tensor(y_true, beside=y_pred), y_pred)
    check_pair("binary_accuracy", y_true, y_pred)
    if not y_pred.dtype.is_floating:
        y_pred = cast(y_pred, float32)
    positive = cast(greater(y_pred, threshold), y_true.dtype)
    return cast(equal(y_true, positive), float32)


def categorical_accuracy(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """Return 1 where the largest entry of ``y_pred`` is at the one-hot label, else 0.

    Args:
        y_true: One-hot labels, or probabilities of the classes.
        y_pred: Probabilities, logits or scores of the classes.

    Shapes:
        ``y_true`` and ``y_pred`` ``[..., classes]``, result ``[...]``.

    Example:
        >>> keras.metrics.categorical_accuracy([[0, 0, 1]], [[0.1, 0.2, 0.7]]).numpy()
        array([1.], dtype=float32)
    """
    y_pred = as_tensor(y_pred)
    labels = argmax(as_tensor(y_true, beside=y_pred), axis=-1)
    if labels.array.ndim != y_pred.array.ndim or labels.array.shape[-1] != 1:
        return _matches("categorical_accuracy", labels, y_pred)
    matches = _matches("categorical_accuracy", squeeze(labels, -1), y_pred)
    return expand_dims(matches, -1)


def sparse_categorical_accuracy(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """Return 1 where the largest entry of ``y_pred`` is at the integer label, else 0.

    Args:
        y_true: Integer class labels, of any dtype.
        y_pred: Probabilities, logits or scores of the classes.

    Shapes:
        ``y_true`` ``[...]`` or ``[..., 1]``, ``y_pred`` ``[..., classes]``, result
        ``[...]``; axes of size 1 broadcast.

    Example:
        >>> labels, scores = [2, 1], [[0.1, 0.2, 0.7], [0.8, 0.1, 0.1]]
        >>> keras.metrics.sparse_categorical_accuracy(labels, scores).numpy()
        array([1., 0.], dtype=float32)
    """
    y_pred = as_tensor(y_pred)
    labels = as_tensor(y_true, beside=y_pred)
    if labels.array.ndim == y_pred.array.ndim and labels.array.shape[-1] == 1:
        labels = squeeze(labels, -1)
    matches = _matches("sparse_categorical_accuracy", labels, y_pred)
    if matches.array.ndim > 1 and matches.array.shape[-1] == 1:
        matches = squeeze(matches, -1)
    return matches


def top_k_categorical_accuracy(
    y_true: TensorLike, y_pred: TensorLike, k: int = 5
) -> Tensor:
    """Return 1 where the one-hot label is among the top ``k`` predictions, else 0.

    Args:
        y_true: One-hot labels, or probabilities of the classes.
        y_pred: Probabilities, logits or scores of the classes.
        k: Number of top predictions.

    Shapes:
        ``y_true`` and ``y_pred`` ``[..., classes]``, result ``[...]``.

    Example:
        >>> labels, scores = [[0, 1, 0]], [[0.5, 0.3, 0.2]]
        >>> keras.metrics.top_k_categorical_accuracy(labels, scores, k=2).numpy()
        array([1.], dtype=float32)
    """
    y_pred = as_tensor(y_pred)
    labels = argmax(as_tensor(y_true, beside=y_pred), axis=-1)
    return sparse_top_k_categorical_accuracy(labels, y_pred, k)


def sparse_top_k_categorical_accuracy(
    y_true: TensorLike, y_pred: TensorLike, k: int = 5, from_sorted_ids: bool = False
) -> Tensor:
    """Return 1 where the integer label is among the top ``k`` predictions, else 0.

    Args:
        y_true: Integer class labels.
        y_pred: Probabilities, logits or scores of the classes.
        k: Number of top predictions.
        from_sorted_ids: If True, ``y_pred`` contains class numbers, the most probable
            first, instead of scores.

    Shapes:
        ``y_true`` ``[...]``, ``y_pred`` ``[..., classes]``, result ``[...]``.

    Example:
        >>> scores = [[0.5, 0.3, 0.2]]
        >>> keras.metrics.sparse_top_k_categorical_accuracy([1], scores, k=2).numpy()
        array([1.], dtype=float32)
    """
    y_pred = as_tensor(y_pred)
    labels = as_tensor(y_true, y_pred.dtype if from_sorted_ids else int32, y_pred)
    shape = labels.shape
    if len(y_pred.shape) > 2:
        y_pred = reshape(y_pred, (-1, y_pred.shape[-1]))
    if len(shape) > 1:
        labels = reshape(labels, (-1,))
    if from_sorted_ids:
        matches = reduce_any(equal(expand_dims(labels, 1), y_pred[:, :k]), 1)
    else:
        matches = in_top_k(labels, y_pred, k)
    matches = cast(matches, float32)
    return reshape(matches, shape) if len(shape) > 1 else matches


def _matches(who, labels, y_pred):
    """Return 1 where the index of the largest entry of ``y_pred`` is the label.

    As in Keras, axes of size 1 broadcast where both have an axis.
    """
    shape = y_pred.array.shape
    if not shape or not _pairs_up(labels.array.shape, shape[:-1]):
        raise ShapeError(
            who,
            "there must be one class in y_true per row of y_pred, or axes of "
            "size 1 that broadcast",
            classes=labels,
            y_pred=y_pred,
        )
    dtype = labels.dtype
    if dtype is int32 or dtype is int64:
        return cast(equal(labels, argmax(y_pred, -1, dtype)), float32)
    if dtype.is_integer:
        return _matches(who, cast(labels, int64), y_pred)
    dtype = float64 if dtype is float64 else float32
    predicted = cast(argmax(y_pred, -1), dtype)
    return cast(equal(cast(labels, dtype), predicted), float32)


def _pairs_up(a, b):
    return len(a) == len(b) and broadcasts(a, b)


# -------------------------------------------------------------------------- classes


class Accuracy(_MeanMetric, function=accuracy):
    """Accuracy: fraction of predictions that equal the labels.

    In `compile`, the name "accuracy" selects the accuracy that fits the shapes:
    `BinaryAccuracy`, `CategoricalAccuracy` or `SparseCategoricalAccuracy`.

    Args:
        name: Name of the metric, and of its result in the logs.
        dtype: Dtype of the result, `floatx` by default.

    Shapes:
        ``y_true`` and ``y_pred``, both labels, ``[batch, ...]``.

    Example:
        >>> keras.metrics.Accuracy()([[1], [2], [3], [4]], [[0], [2], [3], [4]]).numpy()
        np.float32(0.75)
    """

    def __init__(self, name: str | None = "accuracy", dtype: DTypeLike | None = None):
        super().__init__(name, dtype)


class BinaryAccuracy(_MeanMetric, function=binary_accuracy):
    """Accuracy for binary labels: fraction of predictions on the right side of a threshold.

    Args:
        name: Name of the metric, and of its result in the logs.
        dtype: Dtype of the result, `floatx` by default.
        threshold: Number above which a prediction counts as 1.

    Shapes:
        ``y_true``, 0 or 1, and ``y_pred`` ``[batch, ...]``.

    Example:
        >>> metric = keras.metrics.BinaryAccuracy()
        >>> metric([[1], [1], [0], [0]], [[0.98], [1], [0], [0.6]]).numpy()
        np.float32(0.75)
    """

    def __init__(
        self,
        name: str | None = "binary_accuracy",
        dtype: DTypeLike | None = None,
        threshold: float = 0.5,
    ):
        super().__init__(name, dtype)
        self.threshold = threshold


class CategoricalAccuracy(_MeanMetric, function=categorical_accuracy):
    """Accuracy for one-hot labels: fraction of samples whose most probable class is right.

    Args:
        name: Name of the metric, and of its result in the logs.
        dtype: Dtype of the result, `floatx` by default.

    Shapes:
        ``y_true`` and ``y_pred``, probabilities or logits, ``[batch, ..., classes]``.

    Example:
        >>> metric = keras.metrics.CategoricalAccuracy()
        >>> metric([[0, 1], [1, 0]], [[0.2, 0.8], [0.4, 0.6]]).numpy()
        np.float32(0.5)
    """

    def __init__(
        self, name: str | None = "categorical_accuracy", dtype: DTypeLike | None = None
    ):
        super().__init__(name, dtype)


class SparseCategoricalAccuracy(_MeanMetric, function=sparse_categorical_accuracy):
    """Accuracy for integer labels: fraction of samples whose most probable class is right.

    Args:
        name: Name of the metric, and of its result in the logs.
        dtype: Dtype of the result, `floatx` by default.

    Shapes:
        ``y_true`` ``[batch, ...]`` or ``[batch, ..., 1]``; ``y_pred``, probabilities or
        logits, ``[batch, ..., classes]``.

    Example:
        >>> metric = keras.metrics.SparseCategoricalAccuracy()
        >>> metric([[2], [1]], [[0.1, 0.6, 0.3], [0.05, 0.95, 0]]).numpy()
        np.float32(0.5)
    """

    def __init__(
        self,
        name: str | None = "sparse_categorical_accuracy",
        dtype: DTypeLike | None = None,
    ):
        super().__init__(name, dtype)


class TopKCategoricalAccuracy(_MeanMetric, function=top_k_categorical_accuracy):
    """Top-k accuracy for one-hot labels: fraction of labels among the ``k`` most probable.

    Args:
        k: Number of top predictions.
        name: Name of the metric, and of its result in the logs.
        dtype: Dtype of the result, `floatx` by default.

    Shapes:
        ``y_true`` and ``y_pred``, probabilities or logits, ``[batch, ..., classes]``.

    Raises:
        ValueError: If ``k`` is not a positive integer.

    Example:
        >>> metric = keras.metrics.TopKCategoricalAccuracy(k=2)
        >>> metric([[0, 0, 1]], [[0.5, 0.3, 0.2]]).numpy()
        np.float32(0.0)
    """

    def __init__(
        self,
        k: int = 5,
        name: str | None = "top_k_categorical_accuracy",
        dtype: DTypeLike | None = None,
    ):
        super().__init__(name, dtype)
        self.k = whole(self, "k", k)


class SparseTopKCategoricalAccuracy(
    _MeanMetric, function=sparse_top_k_categorical_accuracy
):
    """Top-k accuracy for integer labels: fraction of labels among the ``k`` most probable.

    Args:
        k: Number of top predictions.
        name: Name of the metric, and of its result in the logs.
        dtype: Dtype of the result, `floatx` by default.
        from_sorted_ids: If True, predictions are class numbers, the most probable
            first, instead of scores.

    Shapes:
        ``y_true`` ``[batch, ...]``; ``y_pred`` ``[batch, ..., classes]``.

    Raises:
        ValueError: If ``k`` is not a positive integer.

    Example:
        >>> metric = keras.metrics.SparseTopKCategoricalAccuracy(k=2)
        >>> metric([1], [[0.5, 0.3, 0.2]]).numpy()
        np.float32(1.0)
    """

    _tw_omit_defaults: dict[str, Any] = {"from_sorted_ids": False}

    def __init__(
        self,
        k: int = 5,
        name: str | None = "sparse_top_k_categorical_accuracy",
        dtype: DTypeLike | None = None,
        from_sorted_ids: bool = False,
    ):
        super().__init__(name, dtype)
        self.k = whole(self, "k", k)
        self.from_sorted_ids = from_sorted_ids
