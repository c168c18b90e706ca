"""`Circle`: attracts embeddings of the same class and repels the others."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tapewright.core.errors import ShapeError
from tapewright.ops.array.creation import eye
from tapewright.ops.array.shape import expand_dims, reshape
from tapewright.ops.linalg.matmul import matmul
from tapewright.ops.math.comparison import (
    equal,
    greater,
    logical_and,
    logical_not,
    where,
)
from tapewright.ops.math.elementwise import maximum
from tapewright.ops.math.reduction import reduce_logsumexp
from tapewright.ops.nn.activation import softplus

from .loss import Loss
from .shape_utils import as_labels, as_tensor, floating

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import DTypeLike, TensorLike

__all__ = ["Circle", "circle"]


def circle(
    y_true: TensorLike,
    y_pred: TensorLike,
    ref_labels: TensorLike | None = None,
    ref_embeddings: TensorLike | None = None,
    remove_diagonal: bool = True,
    gamma: float = 80,
    margin: float = 0.4,
) -> Tensor:
    """Compute the circle loss of embeddings, by the similarities of their pairs.

    The loss of an example is ``log(1 + sum(exp(positive)) * sum(exp(negative)))``. With
    the cosine distance ``d``, one minus the cosine, ``positive`` is
    ``gamma * (d + margin) * (d - margin)`` for pairs with the same label, ``negative``
    is ``gamma * max(1 + margin - d, 0) * (1 - margin - d)`` for the others.

    A mean counts only examples whose loss is not 0. With several replicas, each pairs
    the examples of its part of the batch.

    Args:
        y_true: Integer class labels.
        y_pred: Embeddings, normalized to length 1.
        ref_labels: Labels of the examples to pair with, ``y_true`` by default.
        ref_embeddings: Embeddings of the examples to pair with, ``y_pred`` by default.
        remove_diagonal: If True, do not pair an example with itself.
        gamma: Scale of the similarities.
        margin: Distance at which pairs count as near or far.

    Shapes:
        ``y_true`` ``[batch]`` or ``[batch, 1]``, integers; ``y_pred`` ``[batch, n]``;
        ``ref_labels`` ``[others]``, ``ref_embeddings`` ``[others, n]``; result
        ``[batch]``.

    References:
        Sun et al., "Circle loss: a unified perspective of pair similarity optimization"
        (2020).

    Example:
        >>> labels, embeddings = [0, 0, 1], [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
        >>> keras.losses.circle(labels, embeddings, gamma=1.0).numpy().round(3)
        array([0.546, 0.546, 0.   ], dtype=float32)
    """
    y_pred = _embeddings("y_pred", floating(y_pred))
    labels = as_labels("circle", y_true, y_pred)
    others, other_labels = y_pred, labels
    if ref_embeddings is not None:
        others = _embeddings(
            "ref_embeddings", as_tensor(ref_embeddings, y_pred.dtype, y_pred)
        )
    if ref_labels is not None:
        other_labels = as_labels("circle", ref_labels, others)
    same, different = _pairs(labels, other_labels, remove_diagonal)
    distance = maximum(1.0 - matmul(y_pred, others, transpose_b=True), 0.0)
    near = gamma * (distance + margin) * (distance - margin)
    far = gamma * maximum(1.0 + margin - distance, 0.0) * (1.0 - margin - distance)
    positive = reduce_logsumexp(where(same, near, -math.inf), 1)
    negative = reduce_logsumexp(where(different, far, -math.inf), 1)
    losses = softplus(positive + negative)
    losses._keras_mask = greater(losses, 0.0)
    return losses


circle.integer_labels = True


def _embeddings(name, x):
    if x.array.ndim != 2:
        raise ShapeError("circle", f"{name} must be [batch, n]", **{name: x})
    return x


def _pairs(labels, others, remove_diagonal):
    """Return masks ``[batch, others]`` of pairs with equal and with different labels."""
    same = equal(expand_dims(labels, 1), reshape(others, (1, -1)))
    different = logical_not(same)
    if remove_diagonal:
        itself = eye(labels.array.shape[0], others.array.shape[0], dtype=bool)
        same = logical_and(same, logical_not(itself))
    return same, different


class Circle(Loss, function=circle):
    """Circle loss of embeddings: attracts equal labels, repels others: `circle`, reduced.

    Args:
        gamma: Scale of the similarities.
        margin: Distance at which pairs count as near or far.
        remove_diagonal: If True, do not pair an example with itself.
        reduction: Reduction over the batch: "sum_over_batch_size" or "mean" (the mean),
            "sum", "mean_with_sample_weight" (the sum divided by the sum of the
            weights), or "none" or None to return one value per example.
        name: Name of the loss.
        dtype: Dtype or `keras.DTypePolicy` of the computation, `floatx` by default.

    Shapes:
        ``y_true`` ``[batch]`` or ``[batch, 1]``, integers; ``y_pred``, normalized to
        length 1, ``[batch, n]``.

    Raises:
        ShapeError: If ``y_pred`` is not ``[batch, n]`` with one label per row.

    Example:
        >>> labels, embeddings = [0, 0, 1], [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
        >>> keras.losses.Circle(gamma=1.0)(labels, embeddings).numpy().round(3)
        np.float32(0.546)
    """

    def __init__(
        self,
        gamma: float = 80.0,
        margin: float = 0.4,
        remove_diagonal: bool = True,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = "circle",
        dtype: DTypeLike | None = None,
    ):
        super().__init__(name, reduction, dtype)
        self.gamma = gamma
        self.margin = margin
        self.remove_diagonal = remove_diagonal
