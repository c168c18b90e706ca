"""Cross-entropies that weigh examples by the confidence of the prediction.

Focal losses lower the cost of easy examples, the generalized cross-entropy that of wrong
labels.
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
    """``mean((1 - q) ** gamma * crossentropy)`` over ``axis``; q: the label's probability.

    Args: ``apply_class_balancing``: labels 1 count ``alpha`` times, labels 0 ``1 -
    alpha`` times; the others as for `binary_crossentropy`.

    Shapes: ``y_true`` and ``y_pred`` ``[batch, ..., n]``; result ``[batch, ...]``.

    Reference: Lin et al., "Focal loss for dense object detection" (2017).

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
    """``-sum(alpha * (1 - p) ** gamma * y * log(p))`` over ``axis``, the classes.

    Args: ``alpha``: a number, or one for each class (of the last axis); the others as
    for `categorical_crossentropy`.

    Shapes: ``y_true`` and ``y_pred`` ``[batch, ..., classes]``; result ``[batch,
    ...]``.

    Reference: Lin et al., "Focal loss for dense object detection" (2017).

    Example:
        >>> keras.losses.categorical_focal_crossentropy([[0.0, 1.0]], [[0.5, 0.5]]).numpy()
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
    """``(1 - p[label] ** q) / q``: cross-entropy for q near 0, absolute error for q = 1.

    Shapes: ``y_true`` ``[batch, ...]`` or ``[batch, ..., 1]``, integers; ``y_pred``,
    probabilities, ``[batch, ..., classes]``; result ``[batch, ...]``.

    Raises: ``OutOfBoundsError``, a ``ValueError``, for a label out of range on the CPU.

    Reference: Zhang & Sabuncu, "Generalized cross entropy loss for training deep neural
    networks with noisy labels" (2018).

    Example:
        >>> keras.losses.categorical_generalized_cross_entropy([0], [[0.25, 0.75]], 0.5).numpy()
        array([1.], dtype=float32)
    """
    y_pred = floating(y_pred)
    labels = as_labels("categorical_generalized_cross_entropy", y_true, y_pred)
    p = gather(y_pred, expand_dims(labels, -1), axis=-1, batch_dims=labels.array.ndim)
    return (1.0 - pow(squeeze(p, -1), q)) / q


categorical_generalized_cross_entropy.integer_labels = True


# -------------------------------------------------------------------------- classes


class BinaryFocalCrossentropy(Loss, function=binary_focal_crossentropy):
    """Cross-entropy of yes-or-no labels with less weight on easy examples.

    This is `binary_focal_crossentropy`, reduced.

    Args: ``gamma``: the power of one minus the label's probability;
    ``apply_class_balancing``: labels 1 count ``alpha`` times, labels 0 ``1 - alpha``
    times; the others as for `BinaryCrossentropy`.

    Shapes: ``y_true`` and ``y_pred`` ``[batch, ..., n]``.

    Raises: ``ValueError`` if ``label_smoothing`` is not from 0 to 1.

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
    """Cross-entropy of one-hot labels with less weight on easy examples.

    This is `categorical_focal_crossentropy`, reduced.

    Args: ``gamma``: the power of one minus the probability; ``alpha``: the weight of a
    class, a number or one for each class; the others as for `CategoricalCrossentropy`.

    Shapes: ``y_true`` and ``y_pred`` ``[batch, ..., classes]``.

    Raises: ``ValueError`` if ``label_smoothing`` is not from 0 to 1.

    Example:
        >>> keras.losses.CategoricalFocalCrossentropy()([[0.0, 1.0]], [[0.5, 0.5]]).numpy()
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
    """``(1 - p[label] ** q) / q``: `categorical_generalized_cross_entropy`, reduced.

    Args: ``q``: between 0 (cross-entropy) and 1 (absolute error); the others as for
    `Loss`.

    Shapes: ``y_true`` ``[batch, ...]`` or ``[batch, ..., 1]``, integers; ``y_pred``,
    probabilities, ``[batch, ..., classes]``.

    Raises: ``ValueError`` unless ``q`` lies between 0 and 1.

    Example:
        >>> keras.losses.CategoricalGeneralizedCrossEntropy(0.5)([0], [[0.25, 0.75]]).numpy()
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
                "CategoricalGeneralizedCrossEntropy: q must lie between 0 and 1, got "
                f"{q!r}"
            )
        self.q = q
