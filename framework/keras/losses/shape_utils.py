"""Arguments of losses as floating tensors whose shapes fit each other."""

import numpy as np

from tapewright.core.dtypes import float32, int64
from tapewright.core.errors import ShapeError
from tapewright.core.nest import flatten, is_nested, map_structure
from tapewright.core.tensor import (
    convert_to_tensor,
    is_tensor,
    module_of,
    new_tensor,
    to_array,
)
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.shape import expand_dims, reshape, squeeze

__all__ = [
    "aligned",
    "as_labels",
    "broadcasts",
    "fitted",
    "floating",
    "is_structure",
    "like",
    "predictions",
    "same_rank",
]


# -------------------------------------------------------------------- single tensors


def floating(y_pred):
    """A tensor of floating dtype."""
    y_pred = convert_to_tensor(y_pred)
    return y_pred if y_pred.dtype.is_floating else cast(y_pred, float32)


def like(value, tensor):
    """``value`` as a tensor of the dtype of ``tensor``, and beside it."""
    if is_tensor(value):
        value = convert_to_tensor(value)
        return value if value.dtype is tensor.dtype else cast(value, tensor.dtype)
    if is_structure(value):  # a list of tensors, which packs them
        return like(convert_to_tensor(value), tensor)
    value = value if hasattr(value, "dtype") else np.asarray(value)
    return new_tensor(to_array(value, tensor.dtype, None, module_of(tensor)))


def as_labels(who, y_true, y_pred, axis=-1):
    """Integer labels, one for each entry of ``y_pred`` along all axes but ``axis``.

    A last axis of size 1 (or a size of 1 at ``axis``) is dropped, as in Keras.
    """
    if is_tensor(y_true):
        labels = convert_to_tensor(y_true)
    else:
        labels = new_tensor(to_array(y_true, None, None, module_of(y_pred)))
    if not labels.dtype.is_integer:
        labels = cast(labels, int64)
    classes = y_pred.array.shape
    if len(labels.array.shape) == len(classes) and labels.array.shape[axis] == 1:
        labels = squeeze(labels, axis)
    at = axis % len(classes)
    if labels.array.shape != classes[:at] + classes[at + 1 :]:
        one_hot = labels.array.ndim == len(classes) and who.startswith("sparse")
        hint = "; for one-hot labels use categorical_crossentropy" if one_hot else ""
        raise ShapeError(
            who,
            f"y_true holds integer labels, of the shape of y_pred without axis {axis} "
            f"(or with size 1 there){hint}",
            y_true=labels,
            y_pred=y_pred,
        )
    return labels


# ----------------------------------------------------------------------------- pairs


def aligned(who, y_true, y_pred, exact=False, hint=""):
    """Both as tensors of one floating dtype, whose ranks agree if they differed by one.

    Raises: ``ShapeError`` if then they neither have one shape nor (without ``exact``)
    broadcast at the same rank.
    """
    y_pred = floating(y_pred)
    y_true, y_pred = same_rank(like(y_true, y_pred), y_pred)
    a, b = y_true.array.shape, y_pred.array.shape
    if a != b and (exact or not broadcasts(a, b)):
        raise ShapeError(
            who, f"the shapes must be the same{hint}", y_true=y_true, y_pred=y_pred
        )
    return y_true, y_pred


def broadcasts(a, b):
    """Return whether two shapes of one rank broadcast; a number does with any shape."""
    if not a or not b:
        return True
    return len(a) == len(b) and all(m == 1 or n == 1 or m == n for m, n in zip(a, b))


def same_rank(a, b, expand_vectors=True):
    """Remove a last axis of size 1 that only one has, or add one to a vector."""
    surplus = a.array.ndim - b.array.ndim
    if surplus == 1 and a.array.shape[-1] == 1:
        if b.array.ndim == 1 and expand_vectors:
            return a, expand_dims(b, -1)
        return squeeze(a, -1), b
    if surplus == -1:
        b, a = same_rank(b, a, expand_vectors)
    return a, b


def fitted(who, name, weight, losses):
    """``(losses, weight)`` that can be multiplied; ``[batch]`` weighs whole examples.

    Raises: ``ShapeError`` if the weights would make more of the losses than they are.
    """
    losses, weight = same_rank(losses, weight)
    given, wanted = weight.array.shape, losses.array.shape
    if not wanted or given == wanted:  # one loss for all takes any weights
        return losses, weight
    rank, missing = len(given), len(wanted) - len(given)
    if missing > 0 and given == wanted[:rank]:
        return losses, reshape(weight, tuple(given) + (1,) * missing)
    if missing < 0 or any(m != 1 and m != n for m, n in zip(given, wanted[missing:])):
        raise ShapeError(
            who,
            f"{name} must be [batch], or broadcast to the shape of the losses, which is "
            "that of y_pred without the axis that the loss reduces",
            **{name: weight, "losses": losses},
        )
    return losses, weight


# ------------------------------------------------------------------------ structures


def is_structure(value):
    """Return whether ``x`` is a nest of arrays or tensors, and not a list of numbers."""
    if not is_nested(value):
        return False
    return isinstance(value, dict) or any(
        [getattr(leaf, "ndim", 0) for leaf in flatten(value)]
    )


def predictions(y_pred, dtype):
    """Tensors of ``dtype``."""
    if is_structure(y_pred):
        return map_structure(lambda leaf: predictions(leaf, dtype), y_pred)
    y_pred = convert_to_tensor(y_pred)
    return y_pred if y_pred.dtype is dtype else cast(y_pred, dtype)
