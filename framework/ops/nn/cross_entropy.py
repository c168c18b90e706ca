"""Cross-entropies from logits: stable for any logits, and fused, as they end each step.

Also likelihoods of other models: `log_poisson_loss`, and `l2_loss`.
"""

from __future__ import annotations

import math

import numpy as np

from tapewright.core.errors import DTypeError, InvalidArgumentError, ShapeError
from tapewright.core.hardware.blas import sum_of_squares
from tapewright.core.op_definition.costs import per_input
from tapewright.core.primitive import primitive
from tapewright.core.rules import (
    all_mapped,
    batch_leading,
    broadcast_shape,
    checked_broadcast,
    elementwise,
    known_rank,
    normalize_axis,
    same_dtype,
)
from tapewright.core.tensor import Tensor, TensorSpec, convert_to_tensor
from tapewright.core.typing import Axis, TensorLike, as_int

from ..array.conversion import cast, stop_gradient
from ..array.creation import ones_like
from ..array.shape import expand_dims, transpose
from ..math.comparison import (
    cleared,
    greater_equal,
    less,
    less_equal,
    logical_and,
    surely_finite,
    where,
)
from ..math.elementwise import exp, log, square, zero_safe_multiply
from ..math.reduction import reduce_logsumexp, reduce_sum
from .activation import (
    is_short,
    log_softmax_p,
    shifted_rows,
    sigmoid_slope,
    softmax_p,
    softmax_slope,
    softplus,
)

__all__ = [
    "l2_loss",
    "log_poisson_loss",
    "sigmoid_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits",
    "sparse_softmax_cross_entropy_with_logits",
    "weighted_cross_entropy_with_logits",
]


SURE = 1 + 2.0**-10  # a row's sum of exponentials: below it 1 - p has lost over 10 bits


@primitive(
    name="softmax_cross_entropy_with_logits",
    broadcasts=True,
    ignores_float_errors=True,
    linear=[{"labels"}],
    cost=per_input(5, 1),
    batch=batch_leading,
)
def _softmax_cross_entropy(xp, labels: TensorLike, logits: TensorLike):
    """Compute over the last axis; one pass yields the row sums of both terms."""
    if labels.shape != logits.shape:
        labels, logits = xp.broadcast_arrays(labels, logits)
    shifted, lies = shifted_rows(xp, logits)
    log_total = xp.log(xp.exp(shifted).sum(axis=lies, keepdims=True))
    # labels need not sum to 1: log_total counts as often as they do
    xp.subtract(log_total, shifted, out=shifted)
    labels = labels.T if lies == 0 else labels
    terms = labels * shifted
    loss = terms.sum(axis=lies)
    if surely_finite(xp, loss):
        return loss
    # 0 * inf: a class without weight counts nothing, even if it is impossible
    return cleared(xp, terms, (labels == 0) & xp.isinf(shifted)).sum(axis=lies)


@_softmax_cross_entropy.infer
def _(labels, logits):
    who = "softmax_cross_entropy_with_logits"
    given = {"labels": labels, "logits": logits}
    known_rank(who, "labels", labels)
    if known_rank(who, "logits", logits) == 0:
        raise ShapeError(who, "logits must have a class axis", **given)
    shape = checked_broadcast(who, labels.shape, logits.shape, **given)
    return TensorSpec(shape[:-1], same_dtype(who, **given))


@_softmax_cross_entropy.vjp("logits")
def _(g, labels, logits):
    return _softmax_excess(labels, logits) * expand_dims(g, -1)


@_softmax_cross_entropy.vjp("labels")
def _(g, logits):
    return -zero_safe_multiply(log_softmax_p(logits), expand_dims(g, -1))


@primitive(
    broadcasts=True,
    ignores_float_errors=True,
    linear=[{"labels"}],
    cost=(5, 1),
    batch=batch_leading,
)
def _softmax_excess(xp, labels: TensorLike, logits: TensorLike):
    """Compute the slope of the cross-entropy, ``softmax(logits) * sum(labels) - labels``.

    At a near-certain class the difference is lost in rounding. It is minus the sum of
    the others, as in `softmax_slope`: NumPy does this extra work on these rows only.
    """
    if labels.shape != logits.shape:
        labels, logits = xp.broadcast_arrays(labels, logits)
    weights, lies = shifted_rows(xp, logits)
    labels = labels.T if lies == 0 else labels
    xp.exp(weights, out=weights)
    total = weights.sum(axis=lies, keepdims=True)
    factor = labels.sum(axis=lies, keepdims=True) / total
    if xp is not np:
        slope = weights * factor - labels
        return slope - weights * (slope.sum(axis=lies, keepdims=True) / total)
    sure = total < SURE
    if not sure.any():
        weights *= factor
        weights -= labels
    else:
        at = ... if lies == 0 else sure[..., 0]
        shares = weights[at].copy()
        weights *= factor
        weights -= labels
        slope = weights[at]
        shares *= slope.sum(axis=lies, keepdims=True)
        slope -= shares
        weights[at] = slope
    return weights.T if lies == 0 else weights


@_softmax_excess.infer
def _(labels, logits):
    dtype = same_dtype("softmax_excess", labels=labels, logits=logits)
    return TensorSpec(broadcast_shape(labels.shape, logits.shape), dtype)


@_softmax_excess.vjp("logits")
def _(g, labels, logits):
    p = softmax_p(logits) * ones_like(g)  # `softmax_slope` does not broadcast
    return softmax_slope(g, p) * reduce_sum(labels, -1, True)


@_softmax_excess.vjp("labels")
def _(g, logits):
    p = softmax_p(logits)
    slope = reduce_sum(g * p, -1, True) - g
    return slope - reduce_sum(slope * p, -1, True)  # as in `softmax_slope`


def softmax_cross_entropy_with_logits(
    labels: TensorLike,
    logits: TensorLike,
    axis: Axis = -1,
    name: str | None = None,
    *,
    assume_normalized: bool = False,
) -> Tensor:
    """Softmax cross-entropy from logits: ``-sum(labels * log_softmax(logits))``.

    The gradient with respect to the logits is exact,
    ``sum(labels) * softmax(logits) - labels``, as in JAX and PyTorch, while
    TensorFlow's gradient is ``softmax(logits) - labels``, also where the labels do not
    sum to 1.

    Args:
        labels: Probabilities of the classes, or any weights.
        logits: Logits of the classes.
        axis: Axis of the classes.
        assume_normalized: If True, assume that the labels sum to 1 and use TensorFlow's
            gradient.

    Shapes:
        ``labels`` and ``logits`` ``[..., classes, ...]``, which broadcast; the result
        lacks ``axis``.

    Example:
        >>> tw.nn.softmax_cross_entropy_with_logits([[1.0, 0.0]], [[0.0, 0.0]]).numpy()
        array([0.6931472], dtype=float32)
    """
    logits = convert_to_tensor(logits)
    labels = convert_to_tensor(labels, dtype_hint=logits.dtype)
    if labels.dtype != logits.dtype:
        labels = cast(labels, logits.dtype)
    rank = len(logits.shape)
    if axis not in (-1, rank - 1):
        who = "softmax_cross_entropy_with_logits"
        (at,) = normalize_axis(who, as_int(axis), rank)
        order = [i for i in range(rank) if i != at] + [at]
        labels, logits = transpose(labels, order), transpose(logits, order)
    loss = _softmax_cross_entropy(labels, logits)
    if not assume_normalized:
        return loss
    missing = stop_gradient(1.0 - reduce_sum(labels, -1))
    total = reduce_logsumexp(logits, -1)
    return loss + missing * (total - stop_gradient(total))  # + 0, for its gradient


@primitive(
    name="sparse_softmax_cross_entropy_with_logits",
    same_dtype=("logits",),
    ignores_float_errors=True,
    may_raise=True,
    cost=per_input(3, 1),
    no_gradient=("labels",),
)
def sparse_cross_entropy(xp, labels: TensorLike, logits: TensorLike):
    if labels.shape != logits.shape[:-1]:
        raise ValueError("shapes do not fit")  # `infer` says it better
    if xp is np:
        return loss_of_picked(xp, logits, _picked(logits, labels))
    # there is no waiting for a GPU to find a wrong label: its loss is NaN, as in TensorFlow
    picks = labels[..., None].astype(xp.int64)
    valid = (picks >= 0) & (picks < logits.shape[-1])
    picked = xp.take_along_axis(logits, xp.where(valid, picks, 0), axis=-1)
    picked = xp.where(valid, picked, xp.nan).astype(logits.dtype)
    return loss_of_picked(xp, logits, picked[..., 0])


def loss_of_picked(xp, logits, picked):
    """Compute the loss, given the entries of the logits at the labels."""
    top = logits.max(axis=-1)
    log_total = xp.log(xp.exp(logits - top[..., None]).sum(axis=-1))
    return log_total - (picked - top)


def _picked(logits, labels):
    """Return the entries at the labels, on NumPy, in a third of take_along_axis' time."""
    classes, indices = logits.shape[-1], check_labels(labels, logits.shape[-1])
    indices += np.arange(labels.size) * classes
    return logits.reshape(-1).take(indices).reshape(labels.shape)


def check_labels(labels, classes):
    """Return labels in a new row of integers, after a check.

    Raises:
        ValueError: If a label is out of range.
    """
    flat = labels.astype(np.int64, order="C").reshape(-1)
    # a negative number is a large one without its sign: one pass finds both kinds
    if labels.size and flat.view(np.uint64).max() >= classes:
        wrong = flat[(flat < 0) | (flat >= classes)]
        raise InvalidArgumentError(
            "sparse_softmax_cross_entropy_with_logits: labels (y of fit, y_true of a loss) "
            f"must be from 0 to {classes - 1}, got {wrong[0]}; {wrong.size} of {labels.size} "
            f"labels are out of range. The output has {classes} classes: number them from 0, "
            "or give the last layer more units"
        )
    return flat


@sparse_cross_entropy.infer
def _(labels, logits):
    who = "sparse_softmax_cross_entropy_with_logits"
    if not labels.dtype.is_integer:
        raise TypeError(f"{who}: labels must be integers, got {labels.dtype.name}")
    if labels.shape != logits.shape[:-1]:
        raise ShapeError(who, "labels must have the shape of logits without the last axis",
                         labels=labels, logits=logits)  # fmt: skip
    return TensorSpec(labels.shape, logits.dtype)


@sparse_cross_entropy.vjp("logits")
def _(g, labels, logits):
    return _sparse_softmax_excess(labels, logits) * expand_dims(g, -1)


@sparse_cross_entropy.batch
def _(mapped, labels, logits):
    return sparse_cross_entropy(*all_mapped(mapped, (labels, logits)))


@primitive(
    same_dtype=("logits",),
    ignores_float_errors=True,
    cost=per_input(4, 1),
    no_gradient=("labels",),
)
def _sparse_softmax_excess(xp, labels: TensorLike, logits: TensorLike):
    """Compute ``softmax(logits)``, less 1 at the label: minus the sum of the others there."""
    if xp is np and not is_short(xp, logits, -1):
        return _less_their_sum(softmax_p.primitive.kernel(xp, logits), labels)
    weights, lies = shifted_rows(xp, logits)
    xp.exp(weights, out=weights)
    total = weights.sum(axis=lies, keepdims=True)
    hits = labels[..., None] == xp.arange(logits.shape[-1])
    if xp is np:
        weights /= total
        slope = weights - hits.T.astype(logits.dtype)
        if (total < SURE).any():
            slope -= weights * slope.sum(axis=0)
        return slope.T
    # one more sum, and a choice: in machine code they cost next to nothing
    below = xp.where(weights < 1, weights, xp.zeros((), logits.dtype))
    below = below.sum(axis=-1, keepdims=True)
    top = xp.where(total < SURE, logits.dtype.type(1), logits.dtype.type(np.inf))
    at_label = xp.where(weights < top, weights - total, -below)
    return xp.where(hits, at_label, weights) / total


def _less_their_sum(p, labels):
    p = np.ascontiguousarray(p)
    entries, classes = p.reshape(-1), p.shape[-1]
    labels = labels.reshape(-1).astype(np.int64)
    rows = np.flatnonzero((labels >= 0) & (labels < classes))  # the loss refuses others
    indices = rows * classes + labels[rows]
    entries[indices] = 0
    entries[indices] = -p.sum(axis=-1).reshape(-1)[rows]
    return p


@_sparse_softmax_excess.infer
def _(labels, logits):
    return TensorSpec(logits.shape, logits.dtype)


@_sparse_softmax_excess.vjp("logits")
def _(g, logits):
    return softmax_slope(g, softmax_p(logits))


@_sparse_softmax_excess.batch
def _(mapped, labels, logits):
    return _sparse_softmax_excess(*all_mapped(mapped, (labels, logits)))


def sparse_softmax_cross_entropy_with_logits(
    labels: TensorLike, logits: TensorLike, name: str | None = None
) -> Tensor:
    """Softmax cross-entropy with integer labels: ``-log_softmax(logits)[label]``.

    Classes are on the last axis.

    Args:
        labels: Integers from 0 to the number of classes - 1.
        logits: Logits of the classes.

    Shapes:
        ``labels`` ``[...]``, ``logits`` ``[..., classes]``, result ``[...]``.

    Raises:
        ValueError: If a label is out of range, on the CPU; on a GPU its loss is NaN.

    Example:
        >>> logits = [[0.0, 0.0], [99.0, 0.0]]
        >>> tw.nn.sparse_softmax_cross_entropy_with_logits([1, 0], logits).numpy()
        array([0.6931472, 0.       ], dtype=float32)
    """
    who = "sparse_softmax_cross_entropy_with_logits"
    logits, labels = convert_to_tensor(logits), convert_to_tensor(labels)
    if not labels.dtype.is_integer:
        raise TypeError(f"{who}: labels must be integers, got {labels.dtype.name}")
    _check_floating(who, logits)
    if len(logits.shape) < 1:
        raise ShapeError(who, "logits must be [..., classes]", logits=logits)
    return sparse_cross_entropy(labels, logits)


@elementwise(
    name="sigmoid_cross_entropy_with_logits",
    ignores_float_errors=True,
    floating=True,
    cost=(4, 2),
)
def _sigmoid_cross_entropy(xp, labels: TensorLike, logits: TensorLike):
    """Compute ``max(x, 0) - x * labels + log(1 + exp(-|x|))``."""
    positive = xp.maximum(logits, xp.zeros((), logits.dtype))
    loss = positive - logits * labels + xp.log1p(xp.exp(-xp.abs(logits)))
    if surely_finite(xp, loss):
        return loss
    # inf - inf and 0 * inf: the limit is |x| times the weight of the other label
    wrong = xp.where(logits > 0, 1 - labels, labels)
    certain = cleared(xp, xp.abs(logits) * wrong, wrong == 0)
    return xp.where(xp.isinf(logits), certain, loss)


@_sigmoid_cross_entropy.vjp("logits")
def _(g, labels, logits):
    return g * _sigmoid_minus(logits, labels)


@elementwise(kinds="f", cost=(7, 2))
def _sigmoid_minus(xp, logits: TensorLike, labels: TensorLike):
    """Compute ``sigmoid(x) - labels``, where digits would cancel for near-certain logits."""
    one = logits.dtype.type(1)
    yes = xp.reciprocal(xp.exp(-logits) + one)
    no = xp.reciprocal(xp.exp(logits) + one)
    return yes * (one - labels) - no * labels


@_sigmoid_minus.vjp("logits")
def _(g, logits):
    return sigmoid_slope(g, logits)


@_sigmoid_minus.vjp("labels")
def _(g):
    return -g


@_sigmoid_cross_entropy.vjp("labels")
def _(g, logits):
    return -zero_safe_multiply(g, logits)


def sigmoid_cross_entropy_with_logits(
    labels: TensorLike | None = None,
    logits: TensorLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Binary cross-entropy from logits, numerically stable.

    It is ``-labels * log(sigmoid(x)) - (1 - labels) * log(1 - sigmoid(x))``.

    Args:
        labels: Probabilities of the positive class, in the shape of ``logits``.
        logits: Floating tensor.

    Shapes:
        ``labels``, ``logits`` and the result have the same shape.

    Example:
        >>> tw.nn.sigmoid_cross_entropy_with_logits([1.0], [0.0]).numpy()
        array([0.6931472], dtype=float32)
    """
    who = "sigmoid_cross_entropy_with_logits"
    labels, logits = _of_one_shape(who, labels=labels, logits=logits)
    _check_floating(who, logits)
    return _sigmoid_cross_entropy(labels, logits)


def _of_one_shape(who, **given):
    """Convert to two tensors of one shape; the first gets the dtype of the second if open."""
    (first, x), (second, y) = given.items()
    y = convert_to_tensor(y)
    x = convert_to_tensor(x, dtype_hint=y.dtype)
    if x.shape != y.shape:
        raise ShapeError(who, "the shapes must be the same", **{first: x, second: y})
    return x, y


def _check_floating(who, logits):
    if not logits.dtype.is_floating:
        raise DTypeError(who, "logits must be floating", logits=logits)


def weighted_cross_entropy_with_logits(
    labels: TensorLike,
    logits: TensorLike,
    pos_weight: TensorLike,
    name: str | None = None,
) -> Tensor:
    """Binary cross-entropy from logits, with a weight for positive labels.

    It is `sigmoid_cross_entropy_with_logits` with a weighted first term:

        -pos_weight * labels * log(sigmoid(x)) - (1 - labels) * log(1 - sigmoid(x))

    Args:
        labels: Probabilities of the positive class, in the shape of ``logits``.
        logits: Floating tensor.
        pos_weight: Weight of the positive term; broadcasts with ``logits``.

    Shapes:
        ``labels``, ``logits`` and the result have the same shape.

    Example:
        >>> tw.nn.weighted_cross_entropy_with_logits([1.0, 0.0], [0.0, 0.0], 2.0).numpy()
        array([1.3862944, 0.6931472], dtype=float32)
    """
    who = "weighted_cross_entropy_with_logits"
    labels, logits = _of_one_shape(who, labels=labels, logits=logits)
    pos_weight = convert_to_tensor(pos_weight, dtype_hint=logits.dtype)
    no = zero_safe_multiply(1.0 - labels, softplus(logits))
    return no + zero_safe_multiply(labels * pos_weight, softplus(-logits))


def log_poisson_loss(
    targets: TensorLike,
    log_input: TensorLike,
    compute_full_loss: bool = False,
    name: str | None = None,
) -> Tensor:
    """Poisson loss of counts: ``exp(log_input) - targets * log_input``.

    Args:
        targets: Counts, in the shape of ``log_input``.
        log_input: Logarithm of the predicted rate.
        compute_full_loss: If True, add Stirling's approximation of ``log(targets!)``,
            which is 0 for targets from 0 to 1.

    Shapes:
        ``targets``, ``log_input`` and the result have the same shape.

    Example:
        >>> tw.nn.log_poisson_loss([2.0], [0.0]).numpy()
        array([1.], dtype=float32)
    """
    given = {"targets": targets, "log_input": log_input}
    targets, log_input = _of_one_shape("log_poisson_loss", **given)
    finite = where(less(log_input, math.inf), log_input, 0.0)  # exp is infinite there
    loss = exp(log_input) - zero_safe_multiply(targets, finite)
    if not compute_full_loss:
        return loss
    few = logical_and(greater_equal(targets, 0.0), less_equal(targets, 1.0))
    many = where(few, 1.0, targets)  # where log and its derivatives are finite
    stirling = many * log(many) - many + 0.5 * log(many * (2.0 * math.pi))
    return loss + where(few, 0.0, stirling)


@primitive(kinds="f", cost=per_input(2))
def l2_loss(xp, t: TensorLike):
    """L2 loss of all entries: ``sum(t ** 2) / 2``, a scalar.

    Args:
        t: Input tensor.

    Example:
        >>> tw.nn.l2_loss([3.0, 4.0]).numpy()
        np.float32(12.5)
    """
    return sum_of_squares(xp, t) * t.dtype.type(0.5)


@l2_loss.infer
def _(t):
    return TensorSpec((), t.dtype)


@l2_loss.vjp("t")
def _(g, t):
    return g * t


@l2_loss.batch
def _(mapped, t):
    return reduce_sum(square(t), tuple(range(1, t.array.ndim))) * 0.5
