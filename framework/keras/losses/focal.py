"""Cross-entropies that weight examples by the confidence of the prediction.

Focal losses lower the weight of easy examples; the generalized cross-entropy lowers the
weight of wrong labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapewright.ops.array.gather import gather
from tapewright.ops.array.shape import expand_dims, squeeze
from tapewright.ops.math.elementwise import log, pow
from tapewright.ops.math.reduction import reduce_mean, reduce_sum
from tapewright.ops.nn.activation import sigmoid, softmax

from .loss import Loss
from .probabilistic import (
    binary_entropy,
    check_smoothing,
    class_probabilities,
    normalized,
    smoothed,
)
from .shape_utils import aligned, as_labels, floating

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import Axes, DTypeLike, TensorLike

__all__ = [
    "BinaryFocalCrossentropy",
    "CategoricalFocalCrossentropy",
    "CategoricalGeneralizedCrossEntropy",
    "binary_focal_crossentropy",
    "categorical_focal_crossentropy",
    "categorical_generalized_cross_entropy",
]


def binary_focal_crossentropy(
    y_true: TensorLike,
    y_pred: TensorLike,
    apply_class_balancing: bool = False,
    alpha: float = 0.25,
    gamma: float = 2.0,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: Axes = -1,
) -> Tensor:
    """Compute the binary focal cross-entropy between labels and predictions.

    The loss is ``mean((1 - q) ** gamma * crossentropy)`` over ``axis``, with the
    probability ``q`` that is predicted for the label. Easy examples, with ``q`` near 1,
    get less weight.

    Args:
        y_true: Labels from 0 to 1.
        y_pred: Predicted probabilities, or logits with ``from_logits``.
        apply_class_balancing: If True, weight labels 1 by ``alpha`` and labels 0 by
            ``1 - alpha``.
        alpha: Weight of labels 1.
        gamma: Exponent of the focal factor; 0 for equal weights.
        from_logits: If True, ``y_pred`` contains logits.
        label_smoothing: Number from 0 to 1; the labels become ``y * (1 -
            label_smoothing) + label_smoothing / 2``.
        axis: Axis or axes of the mean.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., n]``, result ``[batch, ...]``.

    Raises:
        ValueError: If ``label_smoothing`` is not between 0 and 1.

    References:
        Lin et al., "Focal loss for dense object detection" (2017).

    Example:
        >>> keras.losses.binary_focal_crossentropy([[1.0]], [[0.5]]).numpy()
        array([0.1732868], dtype=float32)
    """
    who = "binary_focal_crossentropy"
    y_true, p = aligned(who, y_true, y_pred, exact=True)
    y_true = smoothed(who, y_true, label_smoothing, 2)
    if from_logits:
        p = sigmoid(p)
    likely = y_true * p + (1.0 - y_true) * (1.0 - p)
    focal = pow(1.0 - likely, gamma) * binary_entropy(y_true, p)
    if apply_class_balancing:
        focal = (y_true * alpha + (1.0 - y_true) * (1.0 - alpha)) * focal
    return reduce_mean(focal, axis)


def categorical_focal_crossentropy(
    y_true: TensorLike,
    y_pred: TensorLike,
    alpha: float = 0.25,
    gamma: float = 2.0,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    axis: Axes = -1,
) -> Tensor:
    """Compute the categorical focal cross-entropy between one-hot labels and predictions.

    The loss is ``-sum(alpha * (1 - p) ** gamma * y * log(p))`` over ``axis``, the
    classes.

    Args:
        y_true: One-hot labels, or probabilities of the classes.
        y_pred: Predicted probabilities, scaled to sum 1, or logits with
            ``from_logits``.
        alpha: Weight of the classes: a number, or one number per class (of the last
            axis).
        gamma: Exponent of the focal factor; 0 for equal weights.
        from_logits: If True, ``y_pred`` contains logits.
        label_smoothing: Number from 0 to 1; the labels become ``y * (1 -
            label_smoothing) + label_smoothing / classes``.
        axis: Axis of the classes.

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., classes]``, result ``[batch, ...]``.

    Raises:
        ValueError: If ``label_smoothing`` is not between 0 and 1.

    References:
        Lin et al., "Focal loss for dense object detection" (2017).

    Example:
        >>> loss = keras.losses.categorical_focal_crossentropy([[0.0, 1.0]], [[0.5, 0.5]])
        >>> loss.numpy()
        array([0.0433217], dtype=float32)
    """
    who = "categorical_focal_crossentropy"
    y_true, p = class_probabilities(who, y_true, y_pred, label_smoothing, axis)
    if from_logits:
        p = softmax(p, axis)
    p = normalized(p, axis)
    return -reduce_sum(pow(1.0 - p, gamma) * alpha * (y_true * log(p)), axis)


def categorical_generalized_cross_entropy(
    y_true: TensorLike, y_pred: TensorLike, q: float
) -> Tensor:
    """Compute the generalized cross-entropy, ``(1 - p[label] ** q) / q``.

    It is more robust to wrong labels than the cross-entropy.

    Args:
        y_true: Integer class labels.
        y_pred: Predicted probabilities.
        q: Exponent: near 0 the cross-entropy, at 1 the absolute error.

    Shapes:
        ``y_true`` ``[batch, ...]`` or ``[batch, ..., 1]``, integers; ``y_pred``
        ``[batch, ..., classes]``; result ``[batch, ...]``.

    Raises:
        OutOfBoundsError: If a label is out of range, on the CPU; a ``ValueError``.

    References:
        Zhang & Sabuncu, "Generalized cross entropy loss for training deep neural
        networks with noisy labels" (2018).

    Example:
        >>> loss = keras.losses.categorical_generalized_cross_entropy([0], [[0.25, 0.75]], 0.5)
        >>> loss.numpy()
        array([1.], dtype=float32)
    """
    y_pred = floating(y_pred)
    labels = as_labels("categorical_generalized_cross_entropy", y_true, y_pred)
    p = gather(y_pred, expand_dims(labels, -1), axis=-1, batch_dims=labels.array.ndim)
    return (1.0 - pow(squeeze(p, -1), q)) / q


categorical_generalized_cross_entropy.integer_labels = True


# -------------------------------------------------------------------------- classes


class BinaryFocalCrossentropy(Loss, function=binary_focal_crossentropy):
    """Focal cross-entropy of binary labels: `binary_focal_crossentropy`, reduced.

    Easy examples get less weight than in `BinaryCrossentropy`.

    Args:
        apply_class_balancing: If True, weight labels 1 by ``alpha`` and labels 0 by
            ``1 - alpha``.
        alpha: Weight of labels 1.
        gamma: Exponent of one minus the label's probability; 0 for equal
            weights.
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
        ``y_true`` and ``y_pred`` ``[batch, ..., n]``.

    Raises:
        ValueError: If ``label_smoothing`` is not between 0 and 1.

    Example:
        >>> keras.losses.BinaryFocalCrossentropy()([[1.0]], [[0.5]]).numpy()
        np.float32(0.1732868)
    """

    def __init__(
        self,
        apply_class_balancing: bool = False,
        alpha: float = 0.25,
        gamma: float = 2.0,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: Axes = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "binary_focal_crossentropy",
        dtype: DTypeLike | None = None,
    ):
        super().__init__(name, reduction, dtype)
        check_smoothing("BinaryFocalCrossentropy", label_smoothing)
        self.apply_class_balancing = apply_class_balancing
        self.alpha = alpha
        self.gamma = gamma
        self.from_logits = from_logits
        self.label_smoothing = label_smoothing
        self.axis = axis


class CategoricalFocalCrossentropy(Loss, function=categorical_focal_crossentropy):
    """Focal cross-entropy of one-hot labels: `categorical_focal_crossentropy`, reduced.

    Easy examples get less weight than in `CategoricalCrossentropy`.

    Args:
        alpha: Weight of the classes: a number, or one number per class.
        gamma: Exponent of one minus the probability; 0 for equal weights.
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

    Shapes:
        ``y_true`` and ``y_pred`` ``[batch, ..., classes]``.

    Raises:
        ValueError: If ``label_smoothing`` is not between 0 and 1.

    Example:
        >>> loss = keras.losses.CategoricalFocalCrossentropy()
        >>> loss([[0.0, 1.0]], [[0.5, 0.5]]).numpy()
        np.float32(0.0433217)
    """

    def __init__(
        self,
        alpha: float = 0.25,
        gamma: float = 2.0,
        from_logits: bool = False,
        label_smoothing: float = 0.0,
        axis: Axes = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "categorical_focal_crossentropy",
        dtype: DTypeLike | None = None,
    ):
        super().__init__(name, reduction, dtype)
        check_smoothing("CategoricalFocalCrossentropy", label_smoothing)
        self.alpha = alpha
        self.gamma = gamma
        self.from_logits = from_logits
        self.label_smoothing = label_smoothing
        self.axis = axis


class CategoricalGeneralizedCrossEntropy(
    Loss, function=categorical_generalized_cross_entropy
):
    """Generalized cross-entropy: `categorical_generalized_cross_entropy`, reduced.

    The loss is ``(1 - p[label] ** q) / q``, which is robust to wrong labels.

    Args:
        q: Exponent between 0 (near it, the cross-entropy) and 1 (the absolute error).
        reduction: Reduction over the batch: "sum_over_batch_size" or "mean" (the mean),
            "sum", "mean_with_sample_weight" (the sum divided by the sum of the
            weights), or "none" or None to return one value per example.
        name: Name of the loss.
        dtype: Dtype or `keras.DTypePolicy` of the computation, `floatx` by default.

    Shapes:
        ``y_true`` ``[batch, ...]`` or ``[batch, ..., 1]``, integers; ``y_pred``,
        probabilities, ``[batch, ..., classes]``.

    Raises:
        ValueError: If ``q`` is not between 0 and 1.

    Example:
        >>> loss = keras.losses.CategoricalGeneralizedCrossEntropy(0.5)
        >>> loss([0], [[0.25, 0.75]]).numpy()
        np.float32(1.0)
    """

    def __init__(
        self,
        q: float = 0.5,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "categorical_generalized_cross_entropy",
        dtype: DTypeLike | None = None,
    ):
        super().__init__(name, reduction, dtype)
        if not 0 < q < 1:
            raise ValueError(
                "CategoricalGeneralizedCrossEntropy: q must be between 0 and 1, "
                f"got {q!r}"
            )
        self.q = q
