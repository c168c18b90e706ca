"""Losses of probabilities: cross-entropies, the Kullback-Leibler divergence, Poisson.

Logits (``from_logits=True``) are processed by fused ops, which need no clipping, and so
are the logits that a sigmoid or softmax has turned into probabilities. Other
probabilities are clipped to a distance of 1e-7 from 0 and 1 before their logarithm is
taken.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.core.rules import normalize_axis
from tapewright.core.settings.floatx import epsilon
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.shape import transpose
from tapewright.ops.math.comparison import not_equal, where
from tapewright.ops.math.elementwise import clip_by_value, log
from tapewright.ops.math.reduction import reduce_mean, reduce_sum
from tapewright.ops.nn.cross_entropy import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
)

from .loss import Loss
from .shape_utils import aligned, as_labels, floating

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import Axes, DTypeLike, TensorLike

__all__ = [
    "BinaryCrossentropy",
    "CategoricalCrossentropy",
    "KLDivergence",
    "Poisson",
    "SparseCategoricalCrossentropy",
    "binary_crossentropy",
    "categorical_crossentropy",
    "kl_divergence",
    "poisson",
    "sparse_categorical_crossentropy",
]


# ------------------------------------------------------------------------ functions


def binary_crossentropy(
    y_true: TensorLike,
    y_pred: TensorLike,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: Axes = -1,
) -> Tensor:
    """Compute the binary cross-entropy between labels and predictions.

    The loss is ``-mean(y * log(p) + (1 - y) * log(1 - p))`` over ``axis``.

    Args:
        y_true: Labels from 0 to 1.
        y_pred: Probabilities p, or logits with ``from_logits``. For the output of a
            `sigmoid` its inputs are used as logits.
        from_logits: If True, ``y_pred`` contains logits.
        label_smoothing: Number from 0 to 1; the labels become ``y * (1 -
            label_smoothing) + label_smoothing / 2``.
        axis: Axis or axes of the mean.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., n]``, result ``[batch, ...]``.

    Raises:
        ValueError: If ``label_smoothing`` is not between 0 and 1.

    Example:
        >>> keras.losses.binary_crossentropy([[1.0, 0.0]], [[0.5, 0.5]]).numpy()
        array([0.6931472], dtype=float32)
    """
    y_true, y_pred = aligned("binary_crossentropy", y_true, y_pred, exact=True)
    y_true = smoothed("binary_crossentropy", y_true, label_smoothing, 2)
    return reduce_mean(binary_entropy(y_true, y_pred, from_logits), axis)


def binary_entropy(y_true, y_pred, from_logits=False):
    """Compute ``-y * log(p) - (1 - y) * log(1 - p)``, element-wise."""
    p, from_logits = _logits_behind("sigmoid", y_pred, from_logits)
    if from_logits:
        return sigmoid_cross_entropy_with_logits(y_true, p)
    p = clip_by_value(p, epsilon(), 1.0 - epsilon())
    return -(y_true * log(p) + (1.0 - y_true) * log(1.0 - p))


def _logits_behind(activation, y_pred, from_logits, axis=None):
    """Return the logits of an output of ``activation``, and True; else both arguments.

    For a probability that is 0 or 1 in float32, the gradient of the clipped logarithm
    is 0: such an example would never be learnt from.
    """
    logits, name, along = getattr(y_pred, "_tw_logits", (None, None, None))
    if name != activation or (axis is not None and (along - axis) % y_pred.array.ndim):
        return y_pred, from_logits
    if from_logits:
        warnings.warn(
            f"from_logits=True, but y_pred is the output of a {activation}: "
            "its inputs are used as logits. Remove the activation, or "
            "from_logits=True",
            stacklevel=user_stacklevel(),
        )
    return logits, True


def categorical_crossentropy(
    y_true: TensorLike,
    y_pred: TensorLike,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: Axes = -1,
    *,
    assume_normalized: bool = False,
) -> Tensor:
    """Compute the categorical cross-entropy between one-hot labels and predictions.

    The loss is ``-sum(y * log(p))`` over ``axis``, the classes.

    Args:
        y_true: One-hot labels, or probabilities of the classes.
        y_pred: Probabilities p, scaled to sum 1, or logits with ``from_logits``. For
            the output of a `softmax` along ``axis`` its inputs are used as logits.
        from_logits: If True, ``y_pred`` contains logits.
        label_smoothing: Number from 0 to 1; the labels become ``y * (1 -
            label_smoothing) + label_smoothing / classes``.
        axis: Axis of the classes.
        assume_normalized: If True, use TensorFlow's gradient ``softmax(logits) - y``
            also for labels that do not sum to 1, see
            `nn.softmax_cross_entropy_with_logits`.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., classes]``, result ``[batch, ...]``.

    Raises:
        ValueError: If ``label_smoothing`` is not between 0 and 1, or if
            ``assume_normalized`` is used with probabilities, which have no such
            gradient.

    Example:
        >>> keras.losses.categorical_crossentropy([[0.0, 1.0]], [[0.5, 0.5]]).numpy()
        array([0.6931472], dtype=float32)
    """
    who = "categorical_crossentropy"
    y_true, y_pred = class_probabilities(who, y_true, y_pred, label_smoothing, axis)
    _check_assumption(who, assume_normalized, from_logits)
    y_pred, from_logits = _logits_behind("softmax", y_pred, from_logits, axis)
    if from_logits:
        return softmax_cross_entropy_with_logits(
            y_true, y_pred, axis, assume_normalized=assume_normalized
        )
    return -reduce_sum(y_true * log(normalized(y_pred, axis)), axis)


def _check_assumption(who, assume_normalized, from_logits):
    """Raise ``ValueError`` if ``assume_normalized`` is used with probabilities."""
    if assume_normalized and not from_logits:
        raise ValueError(
            f"{who}: assume_normalized=True requires logits; pass from_logits=True"
        )


def class_probabilities(who, y_true, y_pred, label_smoothing, axis):
    """Return smoothed labels, and predictions, in the same shape."""
    hint = "; for integer labels use sparse_categorical_crossentropy"
    y_true, y_pred = aligned(who, y_true, y_pred, exact=True, hint=hint)
    if isinstance(axis, bool):
        raise ValueError(f"{who}: axis must be an int, got {axis!r}")
    (axis,) = normalize_axis(who, axis, y_pred.array.ndim)
    classes = y_pred.array.shape[axis]
    if type(classes) is int and classes == 1:
        warnings.warn(
            f"{who}: y_pred has shape {y_pred.shape}, only one class, for which this "
            "loss is meaningless; use binary_crossentropy for two classes",
            SyntaxWarning,
            stacklevel=user_stacklevel(),
        )
    return smoothed(who, y_true, label_smoothing, classes), y_pred


def smoothed(who, y_true, label_smoothing, classes):
    """Mix labels with the uniform distribution, which has the weight ``label_smoothing``."""
    check_smoothing(who, label_smoothing)
    if not label_smoothing:
        return y_true
    return y_true * (1.0 - label_smoothing) + label_smoothing / classes


def check_smoothing(who, smoothing):
    """Raise ``ValueError`` unless ``smoothing`` is between 0 and 1."""
    if not 0 <= smoothing <= 1:
        raise ValueError(
            f"{who}: label_smoothing must be from 0 to 1, got {smoothing!r}"
        )


def normalized(p, axis):
    """Scale probabilities to sum 1 along ``axis`` and clip them away from 0 and 1."""
    return clip_by_value(p / reduce_sum(p, axis, True), epsilon(), 1.0 - epsilon())


def sparse_categorical_crossentropy(
    y_true: TensorLike,
    y_pred: TensorLike,
    from_logits: bool = False,
    ignore_class: int | None = None,
    axis: Axes = -1,
) -> Tensor:
    """Compute the cross-entropy between integer labels and predictions, ``-log(p[label])``.

    Args:
        y_true: Integer class labels.
        y_pred: Probabilities p, or logits with ``from_logits``. For the output of a
            `softmax` along ``axis`` its inputs are used as logits.
        from_logits: If True, ``y_pred`` contains logits.
        ignore_class: Label whose loss is 0 and which is not counted in means, or None.
        axis: Axis of the classes.

    Shapes:
        ``y_true`` ``[batch, ...]`` or ``[batch, ..., 1]``, integers; ``y_pred``
        ``[batch, ..., classes]``; result ``[batch, ...]``.

    Raises:
        ValueError: If a label is out of range, on the CPU.

    Example:
        >>> keras.losses.sparse_categorical_crossentropy([1], [[0.5, 0.5]]).numpy()
        array([0.6931472], dtype=float32)
    """
    y_pred = floating(y_pred)
    labels = as_labels("sparse_categorical_crossentropy", y_true, y_pred, axis)
    y_pred, from_logits = _logits_behind("softmax", y_pred, from_logits, axis)
    if not from_logits:
        y_pred = log(clip_by_value(y_pred, epsilon(), 1.0 - epsilon()))
    rank = y_pred.array.ndim
    if axis % rank != rank - 1:
        order = [i for i in range(rank) if i != axis % rank] + [axis % rank]
        y_pred = transpose(y_pred, order)
    if ignore_class is None:
        return sparse_softmax_cross_entropy_with_logits(labels, y_pred)
    valid = not_equal(labels, ignore_class)
    labels = labels * cast(valid, labels.dtype)
    entropy = sparse_softmax_cross_entropy_with_logits(labels, y_pred)
    entropy = where(valid, entropy, 0.0)
    entropy._keras_mask = valid
    return entropy


sparse_categorical_crossentropy.integer_labels = True


def kl_divergence(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """Compute the Kullback-Leibler divergence, ``sum(y_true * log(y_true / y_pred))``.

    The sum is over the last axis.

    Args:
        y_true: True probabilities, clipped to at least 1e-7.
        y_pred: Predicted probabilities, clipped to at least 1e-7.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., classes]``, result ``[batch, ...]``.

    Example:
        >>> keras.losses.kl_divergence([[0.5, 0.5]], [[0.25, 0.75]]).numpy()
        array([0.14384106], dtype=float32)
    """
    y_true, y_pred = aligned("kl_divergence", y_true, y_pred)
    y_true = clip_by_value(y_true, epsilon(), 1.0)
    y_pred = clip_by_value(y_pred, epsilon(), 1.0)
    return reduce_sum(y_true * log(y_true / y_pred), -1)


def poisson(y_true: TensorLike, y_pred: TensorLike) -> Tensor:
    """Compute the Poisson loss of counts, ``mean(y_pred - y_true * log(y_pred + 1e-7))``.

    The mean is over the last axis.

    Args:
        y_true: Counts.
        y_pred: Predicted rates.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., n]``, result ``[batch, ...]``.

    Example:
        >>> keras.losses.poisson([[0.0, 2.0]], [[1.0, 1.0]]).numpy()
        array([0.9999999], dtype=float32)
    """
    y_true, y_pred = aligned("poisson", y_true, y_pred)
    return reduce_mean(y_pred - y_true * log(y_pred + epsilon()), -1)


# -------------------------------------------------------------------------- classes


class BinaryCrossentropy(Loss, function=binary_crossentropy):
    """Cross-entropy of binary labels, 0 and 1: `binary_crossentropy`, reduced.

    Args:
        from_logits: If True, predictions are logits, not probabilities, which is
            faster, and exact far from 0.
        label_smoothing: Number from 0 to 1; the labels become ``y * (1 -
            label_smoothing) + label_smoothing / 2``.
        axis: Axis or axes of the mean before the reduction.
        reduction: Reduction over the batch: "sum_over_batch_size" or "mean" (the mean),
            "sum", "mean_with_sample_weight" (the sum divided by the sum of the
            weights), or "none" or None to return one value per example.
        name: Name of the loss.
        dtype: Dtype or `keras.DTypePolicy` of the computation, `floatx` by default.

    Shapes:
        ``y_true``, from 0 to 1, and ``y_pred`` ``[batch, ..., n]``; ``y_true`` may be
        ``[batch]`` for predictions ``[batch, 1]``.

    Raises:
        ValueError: If ``label_smoothing`` is not between 0 and 1.

    Example:
        >>> loss = keras.losses.BinaryCrossentropy(from_logits=True)
        >>> loss([[1.0, 0.0]], [[0.0, 0.0]]).numpy()
        np.float32(0.6931472)
    """

    def __init__(
        self,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: Axes = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "binary_crossentropy",
        dtype: DTypeLike | None = None,
    ):
        super().__init__(name, reduction, dtype)
        check_smoothing("BinaryCrossentropy", label_smoothing)
        self.from_logits = from_logits
        self.label_smoothing = label_smoothing
        self.axis = axis


class CategoricalCrossentropy(Loss, function=categorical_crossentropy):
    """Cross-entropy of one-hot labels: `categorical_crossentropy`, reduced.

    For integer labels use `SparseCategoricalCrossentropy`.

    Args:
        from_logits: If True, predictions are logits, not probabilities, which is
            faster, and exact far from 0.
        label_smoothing: Number from 0 to 1; the labels become ``y * (1 -
            label_smoothing) + label_smoothing / classes``.
        axis: Axis of the classes.
        reduction: Reduction over the batch: "sum_over_batch_size" or "mean" (the mean),
            "sum", "mean_with_sample_weight" (the sum divided by the sum of the
            weights), or "none" or None to return one value per example.
        name: Name of the loss.
        dtype: Dtype or `keras.DTypePolicy` of the computation, `floatx` by default.
        assume_normalized: If True, use TensorFlow's gradient for labels that do not sum
            to 1, see `categorical_crossentropy`.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., classes]``.

    Raises:
        ValueError: If ``label_smoothing`` is not between 0 and 1.

    Example:
        >>> keras.losses.CategoricalCrossentropy()([[0.0, 1.0]], [[0.5, 0.5]]).numpy()
        np.float32(0.6931472)
    """

    # Keras does not know it.
    _tw_omit_defaults: dict[str, Any] = {"assume_normalized": False}

    def __init__(
        self,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: Axes = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "categorical_crossentropy",
        dtype: DTypeLike | None = None,
        *,
        assume_normalized: bool = False,
    ):
        super().__init__(name, reduction, dtype)
        check_smoothing("CategoricalCrossentropy", label_smoothing)
        _check_assumption("CategoricalCrossentropy", assume_normalized, from_logits)
        self.from_logits = from_logits
        self.label_smoothing = label_smoothing
        self.axis = axis
        self.assume_normalized = assume_normalized


class SparseCategoricalCrossentropy(Loss, function=sparse_categorical_crossentropy):
    """Cross-entropy of integer labels: `sparse_categorical_crossentropy`, reduced.

    For one-hot labels use `CategoricalCrossentropy`.

    Args:
        from_logits: If True, predictions are logits, not probabilities, which is
            faster, and exact far from 0.
        ignore_class: Label whose loss is 0 and which is not counted in means, or None.
        reduction: Reduction over the batch: "sum_over_batch_size" or "mean" (the mean),
            "sum", "mean_with_sample_weight" (the sum divided by the sum of the
            weights), or "none" or None to return one value per example.
        axis: Axis of the classes.
        name: Name of the loss.
        dtype: Dtype or `keras.DTypePolicy` of the computation, `floatx` by default.

    Shapes:
        ``y_true`` ``[batch, ...]`` or ``[batch, ..., 1]``, integers; ``y_pred``
        ``[batch, ..., classes]``.

    Raises:
        ValueError: If a label is out of range, on the CPU.

    Example:
        >>> loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        >>> loss([0, 1], [[0.0, 0.0], [0.0, 0.0]]).numpy()
        np.float32(0.6931472)
    """

    def __init__(
        self,
        from_logits: bool = False,
        ignore_class: int | None = None,
        reduction: str | None = "sum_over_batch_size",
        axis: Axes = -1,
        name: str | None = "sparse_categorical_crossentropy",
        dtype: DTypeLike | None = None,
    ):
        super().__init__(name, reduction, dtype)
        self.from_logits = from_logits
        self.ignore_class = ignore_class
        self.axis = axis


class KLDivergence(Loss, function=kl_divergence):
    """Kullback-Leibler divergence of two distributions: `kl_divergence`, reduced.

    Args:
        reduction: Reduction over the batch: "sum_over_batch_size" or "mean" (the mean),
            "sum", "mean_with_sample_weight" (the sum divided by the sum of the
            weights), or "none" or None to return one value per example.
        name: Name of the loss.
        dtype: Dtype or `keras.DTypePolicy` of the computation, `floatx` by default.

    Shapes:
        ``y_true`` and ``y_pred``, probabilities, ``[batch, ..., classes]``.

    Example:
        >>> keras.losses.KLDivergence()([[0.5, 0.5]], [[0.25, 0.75]]).numpy()
        np.float32(0.14384106)
    """

    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "kl_divergence",
        dtype: DTypeLike | None = None,
    ):
        super().__init__(name, reduction, dtype)


class Poisson(Loss, function=poisson):
    """Poisson loss, the negative log-likelihood of counts: `poisson`, reduced.

    Args:
        reduction: Reduction over the batch: "sum_over_batch_size" or "mean" (the mean),
            "sum", "mean_with_sample_weight" (the sum divided by the sum of the
            weights), or "none" or None to return one value per example.
        name: Name of the loss.
        dtype: Dtype or `keras.DTypePolicy` of the computation, `floatx` by default.

    Shapes:
        ``y_true``, counts, and ``y_pred``, rates, ``[batch, ..., n]``.

    Example:
        >>> keras.losses.Poisson()([[0.0, 2.0]], [[1.0, 1.0]]).numpy().round(4)
        np.float32(1.0)
    """

    def __init__(
        self,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "poisson",
        dtype: DTypeLike | None = None,
    ):
        super().__init__(name, reduction, dtype)
