"""Losses: what training makes small. Names, defaults and arithmetic are Keras'.

Each loss is a function ``(y_true, y_pred) -> [batch, ...]`` and a class that reduces
what the function gives, weighted if asked, to one number.
"""

import numpy as np

from ..dtypes import as_dtype, float32, int64
from ..errors import ShapeError
from ..ops.comparison import less_equal, not_equal, where
from ..ops.conversion import cast
from ..ops.cross_entropy import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
)
from ..ops.elementwise import abs, clip_by_value, divide_no_nan, log, square
from ..ops.reduction import reduce_mean, reduce_sum
from ..ops.shape import expand_dims, reshape, squeeze, transpose
from ..registry import Configured, plain, register, resolve
from ..tensor import convert_to_tensor, is_tensor, module_of, new_tensor, to_array

__all__ = [
    "BinaryCrossentropy",
    "CategoricalCrossentropy",
    "Huber",
    "Loss",
    "MeanAbsoluteError",
    "MeanSquaredError",
    "SparseCategoricalCrossentropy",
    "binary_crossentropy",
    "categorical_crossentropy",
    "get",
    "huber",
    "mean_absolute_error",
    "mean_squared_error",
    "serialize",
    "sparse_categorical_crossentropy",
]

EPSILON = 1e-7  # probabilities are kept this far from 0 and 1

REDUCTIONS = ("sum_over_batch_size", "sum", "mean", "mean_with_sample_weight", "none")


# ------------------------------------------------------------------------ functions


def mean_squared_error(y_true, y_pred):
    """``mean((y_true - y_pred) ** 2)`` over the last axis.

    >>> mean_squared_error([[0.0, 2.0]], [[1.0, 0.0]]).numpy()
    array([2.5], dtype=float32)
    """
    y_true, y_pred = _aligned(y_true, y_pred)
    return reduce_mean(square(y_true - y_pred), -1)


def mean_absolute_error(y_true, y_pred):
    """``mean(|y_true - y_pred|)`` over the last axis."""
    y_true, y_pred = _aligned(y_true, y_pred)
    return reduce_mean(abs(y_true - y_pred), -1)


def huber(y_true, y_pred, delta=1.0):
    """Squared error near zero, absolute error beyond ``delta``, joined smoothly.

        mean(where(|e| <= delta, e ** 2 / 2, delta * |e| - delta ** 2 / 2))

    Raises: ``ValueError`` if ``delta`` is not positive.
    Reference: Huber, "Robust estimation of a location parameter" (1964).
    """
    if not delta > 0:
        raise ValueError(f"huber: delta must be positive, got {delta!r}")
    y_true, y_pred = _aligned(y_true, y_pred)
    error = abs(y_pred - y_true)
    far = error * delta - 0.5 * delta * delta
    return reduce_mean(where(less_equal(error, delta), square(error) * 0.5, far), -1)


def binary_crossentropy(
    y_true, y_pred, from_logits=False, label_smoothing=0.0, axis=-1
):
    """``-mean(y * log(p) + (1 - y) * log(1 - p))`` over ``axis``.

    Args: ``y_pred``: probabilities p, or logits with ``from_logits``;
    ``label_smoothing``: moves labels that far from 0 and 1 towards 0.5.
    """
    y_true, y_pred = _aligned(y_true, y_pred)
    _check_smoothing("binary_crossentropy", label_smoothing)
    if label_smoothing:
        y_true = y_true * (1.0 - label_smoothing) + 0.5 * label_smoothing
    if from_logits:
        entropy = sigmoid_cross_entropy_with_logits(y_true, y_pred)
    else:
        p = clip_by_value(y_pred, EPSILON, 1.0 - EPSILON)
        entropy = -(y_true * log(p) + (1.0 - y_true) * log(1.0 - p))
    return reduce_mean(entropy, axis)


def categorical_crossentropy(
    y_true, y_pred, from_logits=False, label_smoothing=0.0, axis=-1
):
    """``-sum(y * log(p))`` over ``axis``, the classes; ``y_true`` are probabilities.

    Args: ``y_pred``: probabilities p, scaled to sum 1, or logits with ``from_logits``;
    ``label_smoothing``: mixes the labels with that much of the even distribution.

    >>> categorical_crossentropy([[0.0, 1.0]], [[0.5, 0.5]]).numpy()
    array([0.6931472], dtype=float32)
    """
    y_pred = _floating(y_pred)
    y_true = _like(y_true, y_pred)
    if y_true.shape != y_pred.shape:
        hint = "; integer labels go to sparse_categorical_crossentropy"
        raise ShapeError(
            "categorical_crossentropy",
            f"the shapes must be the same{hint}",
            y_true=y_true,
            y_pred=y_pred,
        )
    _check_smoothing("categorical_crossentropy", label_smoothing)
    if label_smoothing:
        classes = y_pred.shape[axis]
        y_true = y_true * (1.0 - label_smoothing) + label_smoothing / classes
    if from_logits:
        return softmax_cross_entropy_with_logits(y_true, y_pred, axis)
    p = y_pred / reduce_sum(y_pred, axis, True)
    return -reduce_sum(y_true * log(clip_by_value(p, EPSILON, 1.0 - EPSILON)), axis)


def sparse_categorical_crossentropy(
    y_true, y_pred, from_logits=False, ignore_class=None, axis=-1
):
    """``-log(p[label])``, the classes along ``axis``.

    Args: ``y_true``: integers of the shape of ``y_pred`` without ``axis`` (or with size
    1 there); ``y_pred``: probabilities p, or logits with ``from_logits``;
    ``ignore_class``: a label for which the loss is 0.

    >>> sparse_categorical_crossentropy([1], [[0.5, 0.5]]).numpy()
    array([0.6931472], dtype=float32)
    """
    y_pred = _floating(y_pred)
    labels = _labels(y_true, y_pred, axis)
    if not from_logits:
        y_pred = log(clip_by_value(y_pred, EPSILON, 1.0 - EPSILON))
    rank = len(y_pred.shape)
    if axis % rank != rank - 1:
        order = [i for i in range(rank) if i != axis % rank] + [axis % rank]
        y_pred = transpose(y_pred, order)
    if ignore_class is None:
        return sparse_softmax_cross_entropy_with_logits(labels, y_pred)
    valid = not_equal(labels, ignore_class)
    labels = labels * cast(valid, labels.dtype)
    entropy = sparse_softmax_cross_entropy_with_logits(labels, y_pred)
    return where(valid, entropy, 0.0)


def _check_smoothing(who, smoothing):
    if not 0 <= smoothing <= 1:
        raise ValueError(
            f"{who}: label_smoothing must be from 0 to 1, got {smoothing!r}"
        )


def _floating(y_pred):
    """A tensor of floating dtype."""
    y_pred = convert_to_tensor(y_pred)
    return y_pred if y_pred.dtype.is_floating else cast(y_pred, float32)


def _like(value, tensor):
    """``value`` as a tensor of the dtype of ``tensor``, and beside it."""
    if is_tensor(value):
        value = convert_to_tensor(value)
        return value if value.dtype is tensor.dtype else cast(value, tensor.dtype)
    value = value if hasattr(value, "dtype") else np.asarray(value)
    return new_tensor(to_array(value, tensor.dtype, None, module_of(tensor)))


def _aligned(y_true, y_pred):
    """Both as tensors of one floating dtype; their ranks agree if they differed by one."""
    y_pred = _floating(y_pred)
    return _same_rank(_like(y_true, y_pred), y_pred)


def _same_rank(a, b):
    """Where one has a last axis of size 1 too many, it goes, or the other gets one."""
    if len(a.shape) == len(b.shape):
        return a, b
    if len(b.shape) == len(a.shape) + 1:
        b, a = _same_rank(b, a)
    elif len(a.shape) == len(b.shape) + 1 and a.shape[-1] == 1:
        if len(b.shape) == 1:
            b = expand_dims(b, -1)
        else:
            a = squeeze(a, -1)
    return a, b


def _labels(y_true, y_pred, axis):
    """Integer labels without the class axis."""
    if is_tensor(y_true):
        labels = convert_to_tensor(y_true)
    else:
        labels = new_tensor(to_array(y_true, None, None, module_of(y_pred)))
    if not labels.dtype.is_integer:
        labels = cast(labels, int64)
    if len(labels.shape) == len(y_pred.shape) and labels.shape[axis] == 1:
        labels = squeeze(labels, axis)
    return labels


# -------------------------------------------------------------------------- classes


class Loss(Configured):
    """Base: ``call(y_true, y_pred)`` gives the losses, calling the object reduces them.

    Args: ``reduction``: "sum_over_batch_size" or "mean" (the sum divided by the number
    of losses), "sum", "mean_with_sample_weight" (divided by the sum of the weights), or
    "none"; ``dtype``: in which to compute (default: that of ``y_pred``).

    A loss is called with ``y_true``, ``y_pred`` and, if wanted, ``sample_weight``, which
    multiplies the losses: ``[batch]``, or any shape that broadcasts to theirs.
    """

    kind = "loss"

    def __init__(self, name=None, reduction="sum_over_batch_size", dtype=None):
        reduction = "none" if reduction is None else reduction
        if reduction not in REDUCTIONS:
            raise ValueError(
                f"{type(self).__name__}: reduction must be one of "
                f"{', '.join(REDUCTIONS)} or None, got {reduction!r}"
            )
        self.name = name or _default_name(type(self))
        self.reduction = reduction
        self.dtype = None if dtype is None else as_dtype(dtype)

    def call(self, y_true, y_pred):
        """The losses, one for each example (or more)."""
        raise NotImplementedError(
            f"{type(self).__name__} must define call(y_true, y_pred)"
        )

    def __call__(self, y_true, y_pred, sample_weight=None):
        y_pred = _floating(y_pred)
        if self.dtype is not None and y_pred.dtype is not self.dtype:
            y_pred = cast(y_pred, self.dtype)
        losses = convert_to_tensor(self.call(y_true, y_pred))
        valid = self._valid(y_true, y_pred)
        if sample_weight is not None:
            sample_weight = _like(sample_weight, losses)
        if valid is not None:
            valid = reshape(cast(valid, losses.dtype), losses.shape)
        return _reduced(losses, sample_weight, valid, self.reduction)

    def _valid(self, y_true, y_pred):
        """Which losses count; None if all do."""
        return None


def _reduced(losses, weight, valid, reduction):
    means = reduction in ("sum_over_batch_size", "mean")
    if weight is None and valid is None:
        if reduction == "none":
            return losses
        if reduction == "sum" or not losses.array.size:
            return reduce_sum(losses)
        return reduce_mean(losses)
    if valid is not None:
        if weight is None:
            weight = valid
        else:
            valid, weight = _same_rank(valid, weight)
            weight = weight * valid
    losses, weight = _same_rank(losses, weight)
    losses = losses * weight
    if reduction == "none":
        return losses
    total = reduce_sum(losses)
    if means and valid is not None:
        return divide_no_nan(total, reduce_sum(valid))
    if reduction == "mean_with_sample_weight":
        return divide_no_nan(total, reduce_sum(weight))
    count = losses.array.size
    return total * (1.0 / count) if means and count else total


class MeanSquaredError(Loss):
    """`mean_squared_error`, reduced.

    >>> MeanSquaredError()([[0.0, 2.0]], [[1.0, 0.0]]).numpy()
    np.float32(2.5)
    """

    def __init__(self, reduction="sum_over_batch_size", **kwargs):
        super().__init__(reduction=reduction, **kwargs)

    def call(self, y_true, y_pred):
        return mean_squared_error(y_true, y_pred)


class MeanAbsoluteError(Loss):
    """`mean_absolute_error`, reduced."""

    def __init__(self, reduction="sum_over_batch_size", **kwargs):
        super().__init__(reduction=reduction, **kwargs)

    def call(self, y_true, y_pred):
        return mean_absolute_error(y_true, y_pred)


class Huber(Loss):
    """`huber`, reduced."""

    def __init__(
        self, delta=1.0, reduction="sum_over_batch_size", name="huber_loss", **kwargs
    ):
        super().__init__(name, reduction, **kwargs)
        self.delta = delta

    def call(self, y_true, y_pred):
        return huber(y_true, y_pred, self.delta)


class BinaryCrossentropy(Loss):
    """`binary_crossentropy`, reduced."""

    def __init__(self, from_logits=False, label_smoothing=0.0, axis=-1, **kwargs):
        super().__init__(**kwargs)
        _check_smoothing("BinaryCrossentropy", label_smoothing)
        self.from_logits = from_logits
        self.label_smoothing = label_smoothing
        self.axis = axis

    def call(self, y_true, y_pred):
        return binary_crossentropy(
            y_true, y_pred, self.from_logits, self.label_smoothing, self.axis
        )


class CategoricalCrossentropy(Loss):
    """`categorical_crossentropy`, reduced."""

    def __init__(self, from_logits=False, label_smoothing=0.0, axis=-1, **kwargs):
        super().__init__(**kwargs)
        _check_smoothing("CategoricalCrossentropy", label_smoothing)
        self.from_logits = from_logits
        self.label_smoothing = label_smoothing
        self.axis = axis

    def call(self, y_true, y_pred):
        return categorical_crossentropy(
            y_true, y_pred, self.from_logits, self.label_smoothing, self.axis
        )


class SparseCategoricalCrossentropy(Loss):
    """`sparse_categorical_crossentropy`, reduced; a mean leaves ignored labels out.

    >>> loss = SparseCategoricalCrossentropy(from_logits=True)
    >>> loss([0, 1], [[0.0, 0.0], [0.0, 0.0]]).numpy()
    np.float32(0.6931472)
    """

    def __init__(
        self,
        from_logits=False,
        ignore_class=None,
        reduction="sum_over_batch_size",
        axis=-1,
        **kwargs,
    ):
        super().__init__(reduction=reduction, **kwargs)
        self.from_logits = from_logits
        self.ignore_class = ignore_class
        self.axis = axis

    def call(self, y_true, y_pred):
        return sparse_categorical_crossentropy(
            y_true, y_pred, self.from_logits, self.ignore_class, self.axis
        )

    def _valid(self, y_true, y_pred):
        if self.ignore_class is None:
            return None
        return not_equal(_labels(y_true, y_pred, self.axis), self.ignore_class)


# ---------------------------------------------------------------------------- names


def get(identifier):
    """The loss that a name, class, config or callable stands for; None for None.

    A class's name gives an object of it, a function's the function.

    Raises: ``ValueError`` that lists the known names; ``TypeError`` for what is neither.

    >>> get("mse") is mean_squared_error
    True
    """
    return resolve("loss", identifier)


def serialize(loss):
    """The name of a function, the config of an object, as `get` takes them."""
    return plain(loss)


def _default_name(cls):
    name = cls.__name__
    return "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")


for _function, _short in (
    (mean_squared_error, ("mse", "MSE")),
    (mean_absolute_error, ("mae", "MAE")),
    (huber, ()),
    (binary_crossentropy, ("bce", "BCE")),
    (categorical_crossentropy, ()),
    (sparse_categorical_crossentropy, ()),
):
    for _name in (_function.__name__, *_short):
        register("loss", _name, _function)
