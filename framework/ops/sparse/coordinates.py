"""Coordinates of the entries of sparse tensors, and their linear indices, row by row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tapewright.core import dtypes
from tapewright.core.errors import InvalidArgumentError, MappingError
from tapewright.core.hardware import devices
from tapewright.core.messages.source_lines import user_line
from tapewright.core.primitive import primitive
from tapewright.core.shapes.symbolic_dim import NeedsValue
from tapewright.core.tensor import Tensor, TensorSpec, convert_to_tensor
from tapewright.core.typing import TensorLike

from ..array.conversion import cast
from ..array.creation import zeros
from ..array.gather import flat_index
from ..array.joining import stack, unstack
from ..math.comparison import equal, where
from ..math.elementwise import floordiv, floormod

if TYPE_CHECKING:
    from .sparse_tensor import SparseTensor


def sizes_of(who: str, x: SparseTensor) -> tuple[Any, ...]:
    """Return the dense shape as numbers or symbolic sizes.

    Raises:
        NeedsValue: If the shape is unknown in a trace.
        InvalidArgumentError: If the shape has more than 2^63 entries.
    """
    sizes = tuple(x.shape)
    if None in sizes:
        raise NeedsValue(
            f"{user_line(always=True)}: {who}: the dense shape of the sparse tensor must be "
            f"known, got {x.shape}; give all sizes in SparseTensorSpec"
        )
    plain = [n for n in sizes if type(n) is int]
    if math.prod(plain) >= 2**63:
        raise InvalidArgumentError(
            f"{who}: the dense shape {x.shape} has more than 2^63 entries"
        )
    return sizes


def columns_of(x: SparseTensor) -> list[Tensor]:
    """Return the coordinates of the entries: a tensor ``[n]`` for each axis."""
    return list(unstack(x.indices, axis=1)) if x.shape.rank else []


def columns_as_indices(columns: Sequence[Tensor], count: Tensor) -> Tensor:
    """Stack coordinates to indices ``[n, rank]``; ``count`` is any tensor ``[n]``."""
    if columns:
        return stack(columns, axis=1)
    return zeros((count.shape[0], 0), dtypes.int64)


def linear_indices(
    who: str, indices: Tensor, shape: Any, ordered: bool = False
) -> Tensor:
    """Return the linear index of each entry, row by row over the shape: int64 ``[n]``.

    Raises:
        IndexError: If coordinates are out of range.
        InvalidArgumentError: If ``ordered`` and the indices do not increase.
    """
    if not shape:
        return zeros((indices.shape[0],), dtypes.int64)
    flat = flat_index(indices, dims=shape, who=who)
    return _increasing(flat, who) if ordered else flat


@primitive(may_raise=True, no_gradient=True, view=True)
def _increasing(xp, x: TensorLike, who: str):
    wrong = devices.to_numpy(x[1:] <= x[:-1])
    if wrong.any():
        at = int(wrong.argmax()) + 1
        kind = "out of order" if bool(x[at] < x[at - 1]) else "repeated"
        remedy = (
            "tw.sparse.reorder sorts them"
            if kind[0] == "o"
            else "each must be there once"
        )
        raise InvalidArgumentError(f"{who}: indices[{at}] is {kind}; {remedy}")
    return x


@_increasing.infer
def _(x, who):
    return TensorSpec(x.shape, x.dtype)


@_increasing.batch
def _(mapped, x, *, who):
    raise MappingError(f"{who}: the indices of a sparse tensor cannot be mapped")


def coordinates(linear: Tensor, shape: Sequence[Any]) -> list[Tensor]:
    """Return the coordinates of linear indices: ``[n]`` for each axis."""
    columns: list[Tensor] = []
    for size in reversed(shape):
        size = convert_to_tensor(size, dtype=dtypes.int64)
        size = where(equal(size, 0), cast(1, dtypes.int64), size)
        columns.insert(0, floormod(linear, size))
        linear = floordiv(linear, size)
    return columns
