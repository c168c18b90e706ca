"""Losses over a sample of many classes: sampled softmax, noise-contrastive estimation."""

from __future__ import annotations

from collections.abc import Sequence

from tapewright.core.errors import ShapeError
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import IntLike, TensorLike, as_int

from ..array.conversion import cast, stop_gradient
from ..array.creation import ones_like, zeros_like
from ..array.gather import embedding_lookup
from ..array.joining import concat
from ..linalg.matmul import matmul
from ..math.comparison import where
from ..math.elementwise import log
from ..math.reduction import reduce_sum
from ..random.candidate_sampling import accidental_hits, log_uniform_candidate_sampler
from .cross_entropy import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits,
)

__all__ = ["nce_loss", "sampled_softmax_loss"]


def sampled_softmax_loss(
    weights: TensorLike | Sequence[TensorLike],
    biases: TensorLike,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: IntLike,
    num_classes: IntLike,
    num_true: IntLike = 1,
    sampled_values: Sequence[TensorLike] | None = None,
    remove_accidental_hits: bool = True,
    seed: IntLike | None = None,
    name: str | None = "sampled_softmax_loss",
) -> Tensor:
    """Sampled softmax loss: cross-entropy over the true classes and a sample of the others.

    Use it to train with very many classes; evaluate with the full softmax.

    Args:
        weights: Weights of the classes, or a list of their parts.
        biases: Biases of the classes.
        labels: True classes of each example, integers.
        inputs: Inputs of the last layer.
        num_sampled: Number of classes to sample per batch.
        num_classes: Number of classes.
        num_true: Number of true classes per example.
        sampled_values: Result of a sampler; defaults to `log_uniform_candidate_sampler`
            with ``unique``.
        remove_accidental_hits: If True, ignore sampled classes that are true classes of
            an example.
        seed: Integer seed of the sampler, or None.

    Shapes:
        ``weights`` ``[num_classes, dim]``; ``biases`` ``[num_classes]``; ``labels``
        ``[batch, num_true]``; ``inputs`` ``[batch, dim]``; result ``[batch]``.

    References:
        Jean et al., "On using very large target vocabulary for neural machine
        translation" (2014).

    Example:
        >>> table, x = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [[1.0, 2.0]]
        >>> tw.nn.sampled_softmax_loss(table, [0.0] * 3, [[1]], x, 2, 3, seed=1).shape
        TensorShape([1])
    """
    given = weights, biases, labels, inputs, num_sampled, num_classes, num_true
    logits, targets = _sampled_logits(
        "sampled_softmax_loss", *given, sampled_values, remove_accidental_hits, seed
    )
    return softmax_cross_entropy_with_logits(targets, logits)


def nce_loss(
    weights: TensorLike | Sequence[TensorLike],
    biases: TensorLike,
    labels: TensorLike,
    inputs: TensorLike,
    num_sampled: IntLike,
    num_classes: IntLike,
    num_true: IntLike = 1,
    sampled_values: Sequence[TensorLike] | None = None,
    remove_accidental_hits: bool = False,
    name: str | None = "nce_loss",
) -> Tensor:
    """Noise-contrastive estimation loss: a logistic loss per true or sampled class.

    The targets of the true classes are ``1 / num_true``.

    Args:
        weights: Weights of the classes, or a list of their parts.
        biases: Biases of the classes.
        labels: True classes of each example, integers.
        inputs: Inputs of the last layer.
        num_sampled: Number of classes to sample per batch.
        num_classes: Number of classes.
        num_true: Number of true classes per example.
        sampled_values: Result of a sampler; defaults to `log_uniform_candidate_sampler`
            with ``unique``.
        remove_accidental_hits: If True, ignore sampled classes that are true classes of
            an example.

    Shapes:
        As in `sampled_softmax_loss`.

    References:
        Gutmann & Hyvarinen, "Noise-contrastive estimation" (2010).

    Example:
        >>> table = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
        >>> tw.nn.nce_loss(table, [0.0] * 3, [[1]], [[1.0, 2.0]], 2, 3).shape
        TensorShape([1])
    """
    given = weights, biases, labels, inputs, num_sampled, num_classes, num_true
    logits, targets = _sampled_logits(
        "nce_loss", *given, sampled_values, remove_accidental_hits, None
    )
    return reduce_sum(sigmoid_cross_entropy_with_logits(targets, logits), 1)


def _sampled_logits(
    who, weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled,
    remove_hits, seed,
):  # fmt: skip
    """Return logits and targets ``[batch, num_true + num_sampled]``, true classes first."""
    inputs, labels = convert_to_tensor(inputs), cast(labels, "int64")
    count = as_int(num_true)
    if inputs.shape.rank != 2 or labels.shape.rank != 2 or labels.shape[1] != count:
        what = f"labels must be [batch, num_true={count}], and inputs [batch, dim]"
        raise ShapeError(who, what, labels=labels, inputs=inputs)
    if sampled is None:
        sampled = log_uniform_candidate_sampler(
            labels, num_true, num_sampled, True, num_classes, seed
        )
    drawn, true_expected, drawn_expected = [stop_gradient(x) for x in sampled]
    drawn = cast(drawn, "int64")

    def rows(table, ids):
        return cast(embedding_lookup(table, ids), inputs.dtype)

    true = reduce_sum(inputs[:, None] * rows(weights, labels), -1) + rows(
        biases, labels
    )
    others = matmul(inputs, rows(weights, drawn), transpose_b=True) + rows(
        biases, drawn
    )
    if remove_hits:
        never = convert_to_tensor(inputs.dtype.min, inputs.dtype)
        others = where(accidental_hits(labels, drawn), never, others)
    true = true - log(cast(true_expected, inputs.dtype))
    others = others - log(cast(drawn_expected, inputs.dtype))
    targets = concat([ones_like(true) / float(count), zeros_like(others)], axis=1)
    return concat([true, others], axis=1), targets
