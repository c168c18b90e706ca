"""Row splits: the start of each row in the values of a ragged tensor, and their checks."""

from __future__ import annotations

import numpy as np

from tapewright.core import dtypes
from tapewright.core.errors import (
    DTypeError,
    InvalidArgumentError,
    MappingError,
    ShapeError,
)
from tapewright.core.hardware import devices
from tapewright.core.primitive import primitive
from tapewright.core.tensor import Tensor, TensorSpec, convert_to_tensor
from tapewright.core.typing import IntLike, TensorLike

from ..array.conversion import cast
from ..array.joining import pad
from ..array.segment import known_values
from ..math.scan import cumsum


@primitive(may_raise=True, no_gradient=True, view=True)
def checked_splits(xp, splits: TensorLike, count: IntLike):
    """Return ``splits``, which must increase from 0 to ``count``."""
    first, last = int(splits[0]), int(splits[-1])
    if first != 0 or last != count or bool((splits[1:] < splits[:-1]).any()):
        raise InvalidArgumentError(
            f"RaggedTensor: row_splits must increase from 0 to {count}, the number of "
            f"values (and the sum of row_lengths), got {devices.to_numpy(splits)}"
        )
    return splits


@primitive(may_raise=True, no_gradient=True, view=True)
def checked_rowids(xp, ids: TensorLike, count: IntLike):
    """Return ``ids``, which must not decrease, and lie from 0 to below ``count``."""
    if ids.size:
        first, last = int(ids[0]), int(ids[-1])
        if first < 0 or last >= count or bool((ids[1:] < ids[:-1]).any()):
            raise InvalidArgumentError(
                f"RaggedTensor: value_rowids must not decrease, and be from 0 to "
                f"{count - 1}, got {devices.to_numpy(ids)}"
            )
    return ids


@primitive(may_raise=True, no_gradient=True, view=True)
def checked_equal(xp, x: TensorLike, y: TensorLike, message: str):
    if x.shape != y.shape or bool((x != y).any()):
        raise InvalidArgumentError(message)
    return x


for _op in (checked_splits, checked_rowids):
    _op.infer(lambda x, count: TensorSpec(x.shape, x.dtype))
checked_equal.infer(lambda x, y, message: TensorSpec(x.shape, x.dtype))


def _refuse_mapped(mapped, *inputs, **attributes):
    raise MappingError("RaggedTensor: its rows cannot be mapped")


for _op in (checked_splits, checked_rowids, checked_equal):
    _op.batch(_refuse_mapped)


def check_equal(x: Tensor, y: Tensor, message: str) -> Tensor:
    """Return ``x``, which must equal ``y`` in each call.

    Raises:
        InvalidArgumentError: If they differ.
    """
    if tuple(x.shape) != tuple(y.shape):
        raise InvalidArgumentError(message)
    return checked_equal(x, y, message)


def splits_of_lengths(lengths: Tensor) -> Tensor:
    """Return the row splits of rows with these lengths."""
    return pad(cumsum(lengths), [[1, 0]])


def row_numbers(who: str, name: str, value: TensorLike) -> Tensor:
    """Convert row numbers to a tensor of int64, or of int32."""
    numbers = convert_to_tensor(value)
    if numbers.shape.rank != 1:
        raise ShapeError(who, f"{name} must have one axis", **{name: numbers})
    if not numbers.dtype.is_integer and numbers.shape[0] != 0:
        raise DTypeError(who, f"{name} must be integers", **{name: numbers})
    plain = not isinstance(value, Tensor) and getattr(value, "dtype", None) != np.int32
    if plain or numbers.dtype not in (dtypes.int32, dtypes.int64):
        return cast(numbers, dtypes.int64)
    return numbers


def longest_row(who: str, lengths: Tensor) -> int:
    """Return the largest length, 0 without rows. Not available in traced functions."""
    array = known_values(who, "row lengths", lengths)
    return int(array.max()) if array.size else 0


def positions_in_rows(lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the position of each value in its row, ``[n]``, and the row splits."""
    splits = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return np.arange(splits[-1]) - np.repeat(splits[:-1], lengths), splits
