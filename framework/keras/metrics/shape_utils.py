"""Fit labels, predictions and weights of different dtypes and ranks together."""

from tapewright.core.errors import ShapeError
from tapewright.core.tensor import (
    convert_to_tensor,
    is_tensor,
    module_of,
    new_tensor,
    to_array,
)
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.shape import broadcast_to, reshape

from ..losses.shape_utils import broadcasts, same_rank

__all__ = [
    "as_tensor",
    "check_matrices",
    "check_pair",
    "fitted_weight",
    "pair",
    "same_rank",
    "trailing_axes",
]


def as_tensor(value, dtype=None, beside=None):
    """``value`` as a tensor of ``dtype``, on the device of the tensor ``beside``."""
    if is_tensor(value):
        tensor = convert_to_tensor(value)
    else:
        module = None if beside is None else module_of(beside)
        tensor = new_tensor(to_array(value, None, None, module))
    return tensor if dtype is None or tensor.dtype is dtype else cast(tensor, dtype)


def pair(who, y_true, y_pred, dtype=None):
    """Both as tensors of one dtype, that of ``y_pred`` if none is given, and one rank.

    Raises: ``ShapeError`` if they do not broadcast at the same rank.
    """
    y_pred = as_tensor(y_pred, dtype)
    y_true, y_pred = same_rank(as_tensor(y_true, y_pred.dtype, y_pred), y_pred)
    check_pair(who, y_true, y_pred)
    return y_true, y_pred


def check_pair(who, y_true, y_pred):
    """Raise ``ShapeError`` unless the shapes broadcast at the same rank."""
    a, b = y_true.array.shape, y_pred.array.shape
    if a != b and not broadcasts(a, b):
        what = "the shapes of y_true and y_pred must be the same"
        raise ShapeError(who, what, y_true=y_true, y_pred=y_pred)


def check_matrices(who, axis, y_true, y_pred):
    """Raise ``ShapeError`` unless both are ``[batch, axis]``, and of one shape."""
    a, b = y_true.array.shape, y_pred.array.shape
    if len(a) != 2 or a != b:
        what = f"y_true and y_pred must be [batch, {axis}] both"
        raise ShapeError(who, what, y_true=y_true, y_pred=y_pred)


def trailing_axes(x, rank):
    """``x`` with axes of size 1 at its end, of at least this rank."""
    missing = rank - x.array.ndim
    return reshape(x, (*x.array.shape, *[1] * missing)) if missing > 0 else x


def fitted_weight(who, sample_weight, values):
    """Weights in the shape of ``values``; broadcast where an axis has size 1.

    Raises: ``ShapeError`` that names both.
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
