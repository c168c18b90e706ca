"""Conversion of labels, predictions and weights to tensors of matching dtypes and shapes."""

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
from tapewright.ops.array.shape import broadcast_to, expand_dims, reshape, squeeze

# -------------------------------------------------------------------- single tensors


def as_tensor(value, dtype=None, beside=None):
    """Convert ``value`` to a tensor of ``dtype`` on the device of the tensor ``beside``."""
    if is_tensor(value) or any([is_tensor(leaf) for leaf in flatten(value)]):
        tensor = convert_to_tensor(value)
    else:
        module = None if beside is None else module_of(beside)
        tensor = new_tensor(to_array(value, None, dtype, module))
    return tensor if dtype is None or tensor.dtype is dtype else cast(tensor, dtype)


def floating(y_pred):
    """Convert ``y_pred`` to a tensor of floating dtype."""
    y_pred = convert_to_tensor(y_pred)
    return y_pred if y_pred.dtype.is_floating else cast(y_pred, float32)


def as_labels(who, y_true, y_pred, axis=-1):
    """Return integer labels, one for each entry of ``y_pred`` along all axes but ``axis``.

    A last axis of size 1 (or an axis of size 1 at ``axis``) is dropped, as in Keras.
    """
    labels = as_tensor(y_true, beside=y_pred)
    if not labels.dtype.is_integer:
        labels = cast(labels, int64)
    _check_has_axis(who, labels, y_pred)
    classes = y_pred.array.shape
    if len(labels.array.shape) == len(classes) and labels.array.shape[axis] == 1:
        labels = squeeze(labels, axis)
    at = axis % len(classes)
    if labels.array.shape != classes[:at] + classes[at + 1 :]:
        one_hot = labels.array.ndim == len(classes) and who.startswith("sparse")
        hint = "; for one-hot labels use categorical_crossentropy" if one_hot else ""
        raise ShapeError(
            who,
            "y_true must contain integer labels, with the shape of y_pred "
            f"without axis {axis} (or with size 1 there){hint}",
            y_true=labels,
            y_pred=y_pred,
        )
    return labels


# ----------------------------------------------------------------------------- pairs


def aligned(who, y_true, y_pred, exact=False, hint=""):
    """Return the `pair` in the dtype of ``y_pred``, which is made floating.

    Raises:
        ShapeError: As `pair`, and if both are scalars.
    """
    y_true, y_pred = pair(who, y_true, floating(y_pred), exact=exact, hint=hint)
    _check_has_axis(who, y_true, y_pred)
    return y_true, y_pred


def _check_has_axis(who, y_true, y_pred):
    if y_pred.shape.rank == 0:
        what = "y_pred must have at least one axis to reduce along"
        raise ShapeError(who, what, y_true=y_true, y_pred=y_pred)


def pair(who, y_true, y_pred, dtype=None, exact=False, hint=""):
    """Convert both to tensors of one dtype, by default the dtype of ``y_pred``, and rank.

    Ranks that differ by one are made equal, see `same_rank`.

    Raises:
        ShapeError: If the shapes are then not equal and (without ``exact``) do not
            broadcast at equal rank.
    """
    y_pred = as_tensor(y_pred, dtype)
    y_true, y_pred = same_rank(as_tensor(y_true, y_pred.dtype, y_pred), y_pred)
    check_pair(who, y_true, y_pred, exact, hint)
    return y_true, y_pred


def check_pair(who, y_true, y_pred, exact=False, hint=""):
    """Raise ``ShapeError`` unless the shapes are equal or broadcast at equal rank."""
    a, b = y_true.array.shape, y_pred.array.shape
    if a != b and (exact or not broadcasts(a, b)):
        what = f"the shapes of y_true and y_pred must be the same{hint}"
        raise ShapeError(who, what, y_true=y_true, y_pred=y_pred)


def check_matrices(who, axis, y_true, y_pred):
    """Raise ``ShapeError`` unless both are ``[batch, axis]`` and have the same shape."""
    a, b = y_true.array.shape, y_pred.array.shape
    if len(a) != 2 or a != b:
        what = f"y_true and y_pred must be [batch, {axis}], with the same shape"
        raise ShapeError(who, what, y_true=y_true, y_pred=y_pred)


def broadcasts(a, b):
    """Return whether two shapes of equal rank broadcast; a scalar does with any shape."""
    if not a or not b:
        return True
    return len(a) == len(b) and all(m == 1 or n == 1 or m == n for m, n in zip(a, b))


def same_rank(a, b, expand_vectors=True):
    """Remove a last axis of size 1 that only one of both has, or add one to a vector."""
    surplus = a.array.ndim - b.array.ndim
    if surplus == 1 and a.array.shape[-1] == 1:
        if b.array.ndim == 1 and expand_vectors:
            return a, expand_dims(b, -1)
        return squeeze(a, -1), b
    if surplus == -1:
        b, a = same_rank(b, a, expand_vectors)
    return a, b


# --------------------------------------------------------------------------- weights


def aligned_weight(who, name, weight, losses):
    """Return ``(losses, weight)`` in shapes that multiply; ``[batch]`` weights examples.

    Raises:
        ShapeError: If the product would have more entries than the losses.
    """
    losses, weight = same_rank(losses, weight)
    shape, target = weight.array.shape, losses.array.shape
    if not target or shape == target:  # one loss for all takes any weights
        return losses, weight
    rank, missing = len(shape), len(target) - len(shape)
    if missing > 0 and shape == target[:rank]:
        return losses, trailing_axes(weight, len(target))
    if missing < 0 or any(m != 1 and m != n for m, n in zip(shape, target[missing:])):
        raise ShapeError(
            who,
            f"{name} must be [batch], or broadcast to the shape of the "
            "losses, which is the shape of y_pred without the axis that the "
            "loss reduces",
            **{name: weight, "losses": losses},
        )
    return losses, weight


def broadcast_weight(who, sample_weight, values):
    """Broadcast weights to the shape of ``values``, along axes of size 1.

    Raises:
        ShapeError: If they do not broadcast; the message names both.
    """
    if sample_weight.array.shape == values.array.shape:
        return sample_weight
    try:
        return broadcast_to(sample_weight, values.shape)
    except ValueError:
        raise ShapeError(
            who,
            "sample_weight must broadcast to the values that it weights",
            values=values,
            sample_weight=sample_weight,
        ) from None


def trailing_axes(x, rank):
    """Append axes of size 1 to ``x`` up to this rank."""
    missing = rank - x.array.ndim
    return reshape(x, (*x.array.shape, *[1] * missing)) if missing > 0 else x


# ------------------------------------------------------------------------ structures


def is_structure(value):
    """Return whether ``value`` is a nest of arrays or tensors, not a list of numbers."""
    if not is_nested(value):
        return False
    return isinstance(value, dict) or any(
        [getattr(leaf, "ndim", 0) for leaf in flatten(value)]
    )


def predictions(y_pred, dtype):
    """Convert predictions, a tensor or a nest, to ``dtype``."""
    if is_structure(y_pred):
        return map_structure(lambda leaf: as_tensor(leaf, dtype), y_pred)
    return as_tensor(y_pred, dtype)
