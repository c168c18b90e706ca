"""Ops that write entries at indices: scatter, partition, stitch.

The axes to which coordinates refer are flattened into one (`gather.flat_index`), the
remaining axes into another: the ops write rows of a matrix.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Unpack

from tapewright.core import text
from tapewright.core.errors import (
    InvalidArgumentError,
    OutOfBoundsError,
    ShapeError,
)
from tapewright.core.hardware import devices
from tapewright.core.hardware.combine_at import combine_at
from tapewright.core.op_definition.traits import Traits
from tapewright.core.primitive import primitive
from tapewright.core.rules import all_mapped, infer_like_input, same_dtype
from tapewright.core.tensor import (
    Tensor,
    TensorSpec,
    convert_to_tensor,
    module_of,
    new_tensor,
)
from tapewright.core.typing import (
    IntLike,
    Kernel,
    Op,
    P,
    ShapeLike,
    TensorLike,
    as_shape,
)

from ..math.comparison import equal, masked
from ..math.reduction import reduce_max, reduce_min
from .conversion import cast
from .gather import (
    flat_index,
    flatnonzero,
    gather_p,
    offset,
    scatter_rows,
    whole_numbers,
)
from .joining import concat
from .shape import reshape

__all__ = [
    "dynamic_partition",
    "dynamic_stitch",
    "scatter_nd",
    "tensor_scatter_nd_add",
    "tensor_scatter_nd_max",
    "tensor_scatter_nd_min",
    "tensor_scatter_nd_sub",
    "tensor_scatter_nd_update",
]


# ---------------------------------------------------------------------------- adding


def scatter_nd(
    indices: TensorLike, updates: TensorLike, shape: ShapeLike, name: str | None = None
) -> Tensor:
    """Scatter ``updates`` into zeros of ``shape`` at coordinates.

    Updates with the same coordinates are added.

    Args:
        indices: Integers with the coordinates in the last axis.
        updates: Values to add.
        shape: Shape of the result.

    Shapes:
        ``indices`` ``[..., k]`` holds ``k`` coordinates; ``updates`` has the shape
        ``indices.shape[:-1] + shape[k:]``.

    Raises:
        IndexError: If a coordinate is out of range.

    Example:
        >>> tw.scatter_nd([[1], [3], [1]], [1.0, 2.0, 3.0], [4]).numpy()
        array([0., 4., 0., 2.], dtype=float32)
    """
    shape, updates = as_shape(shape), convert_to_tensor(updates)
    flat, rows, matrix = _as_rows("scatter_nd", indices, updates, shape)
    return reshape(scatter_rows(rows, flat, shape=matrix, axis=0), shape)


def _as_rows(who, indices, updates, shape):
    """Return row indices, updates as rows, and the shape of the matrix to write to."""
    indices = whole_numbers(who, indices)
    lead, depth = tuple(indices.shape[:-1]), (tuple(indices.shape) or (0,))[-1]
    if not indices.shape.rank or depth > len(shape):
        raise ShapeError(who, "the last axis of indices must hold at most "
                         f"{len(shape)} coordinates", indices=indices)  # fmt: skip
    if tuple(updates.shape) != lead + tuple(shape[depth:]):
        raise ShapeError(who, f"updates must have shape {lead + tuple(shape[depth:])}",
                         indices=indices, updates=updates)  # fmt: skip
    count, width = math.prod(lead), math.prod(shape[depth:])
    flat = reshape(flat_index(indices, dims=shape[:depth], who=who), (count,))
    return flat, reshape(updates, (count, width)), (math.prod(shape[:depth]), width)


def tensor_scatter_nd_add(
    tensor: TensorLike,
    indices: TensorLike,
    updates: TensorLike,
    name: str | None = None,
) -> Tensor:
    """Add ``updates`` to a tensor at coordinates.

    Updates with the same coordinates are all added.

    Args:
        tensor: Tensor to copy and update.
        indices: Integers with the coordinates in the last axis.
        updates: Values to add.

    Shapes:
        As in `scatter_nd`, with the shape of ``tensor``.

    Raises:
        IndexError: If a coordinate is out of range.

    Example:
        >>> tw.tensor_scatter_nd_add([1, 1, 1], [[0], [2], [0]], [5, 6, 7]).numpy()
        array([13,  1,  7], dtype=int32)
    """
    tensor, updates = _alike(tensor, updates)
    return tensor + scatter_nd(indices, updates, tensor.shape)


def tensor_scatter_nd_sub(
    tensor: TensorLike,
    indices: TensorLike,
    updates: TensorLike,
    name: str | None = None,
) -> Tensor:
    """Subtract ``updates`` from a tensor at coordinates.

    Updates with the same coordinates are all subtracted.

    Args:
        tensor: Tensor to copy and update.
        indices: Integers with the coordinates in the last axis.
        updates: Values to subtract.

    Shapes:
        As in `scatter_nd`, with the shape of ``tensor``.

    Raises:
        IndexError: If a coordinate is out of range.

    Example:
        >>> tw.tensor_scatter_nd_sub([9, 9, 9], [[0], [2], [0]], [1, 2, 3]).numpy()
        array([5, 9, 7], dtype=int32)
    """
    tensor, updates = _alike(tensor, updates)
    return tensor - scatter_nd(indices, updates, tensor.shape)


def _alike(tensor, updates):
    tensor = convert_to_tensor(tensor)
    return tensor, convert_to_tensor(updates, dtype_hint=tensor.dtype)


# -------------------------------------------------------------------------- replacing


def _batch_rows(op):
    """Make the batching rule of an op on the rows of a matrix: all matrices as one."""

    def _(mapped, *inputs):
        matrix, indices, *rows = all_mapped(mapped, inputs)
        count, size, width = matrix.array.shape
        flat = reshape(offset(indices, size), (-1,))
        rows = [reshape(r, (flat.array.size, width)) for r in rows]
        full = op.entry(reshape(matrix, (count * size, width)), flat, *rows)
        return reshape(full, (count, size, width))

    return _


def rows_op(**traits: Unpack[Traits]) -> Callable[[Kernel[P]], Op[P, Tensor]]:
    """Decorator: an op on the rows of a matrix at ``indices``."""
    own = Traits(
        same_dtype=("matrix", "rows"), may_raise=True, no_gradient=("indices",),
        infer=infer_like_input, batch=_batch_rows,
    )  # fmt: skip
    return primitive(**own | traits)


@rows_op(type_name="TensorScatterUpdate", sizes=True, linear=True, moves=True)
def put_rows(xp, matrix: TensorLike, indices: TensorLike, rows: TensorLike):
    """Replace the rows of ``matrix`` at ``indices``; of equal indices the last one counts."""
    if not len(indices):
        return matrix.copy()
    last = _last_writers(xp, indices, len(matrix))
    hit = (last >= 0)[:, None]
    return xp.where(hit, xp.take(rows, xp.maximum(last, 0), axis=0), matrix)


@put_rows.kernel_for("numpy")
def _(xp, matrix, indices, rows):
    full = matrix.copy()
    full[indices] = rows
    return full


@put_rows.kernel_for("formulas")
def _(xp, matrix, indices, rows):
    full = matrix.copy()
    full[indices.astype(int)] = rows
    return full


def _last_writers(xp, indices, count):
    """Return for each row the position of the last index that names it, or -1."""
    last = xp.full(count, -1, xp.int32)
    xp.maximum.at(last, indices, xp.arange(len(indices), dtype=xp.int32))
    return last


@put_rows.vjp("rows")
def _(g, indices, matrix_shape):
    return masked(gather_p(g, indices, 0), is_last(indices, count=matrix_shape[0]))


@rows_op(kinds="biufc", same_dtype=(), linear=True, moves=True)
def clear_rows(xp, matrix: TensorLike, indices: TensorLike):
    """Set the rows of ``matrix`` at ``indices`` to zero; it is self-adjoint."""
    full = matrix.copy()
    full[indices] = 0
    return full


@put_rows.vjp("matrix")
@clear_rows.vjp("matrix")
def _(g, indices):
    return clear_rows(g, indices)


@primitive(may_raise=True, no_gradient=True)
def is_last(xp, indices: TensorLike, count: int):
    """Return a column that is True where no later index in ``indices`` is the same."""
    positions = xp.arange(len(indices), dtype=xp.int32)
    return (_last_writers(xp, indices, count)[indices] == positions)[:, None]


@is_last.infer
def _(indices, count):
    if count < 0 or (count == 0 and indices.shape[0]):
        raise ShapeError("is_last", f"count must be above the indices, got {count}",
                         indices=indices)  # fmt: skip
    return TensorSpec((indices.shape[0], 1), "bool")


@is_last.batch
def _(mapped, indices, *, count):
    size, each = indices.array.shape
    flat = reshape(offset(indices, count), (size * each,))
    return reshape(is_last(flat, count=size * count), (size, each, 1))


@primitive(
    same_dtype=("params", "row"),
    may_raise=True,
    linear=True,
    moves=True,
    no_gradient=("index",),
    infer=infer_like_input,
)
def put_row(xp, params: TensorLike, index: TensorLike, row: TensorLike):
    """Replace the row of ``params`` at ``index``, a single number."""
    full = params.copy()
    full[row_number(index, len(params)), ...] = row  # a string, not an array of one
    return full


def row_number(index, size):
    """Return an index as a number; raise an error if there is no such row."""
    number = int(index)
    if not 0 <= number < size:
        raise OutOfBoundsError(f"the index must be from 0 to {size - 1}, got {number}")
    return number


@primitive(
    same_dtype=(),
    may_raise=True,
    linear=True,
    moves=True,
    kinds="biufc",
    no_gradient=("index",),
    infer=infer_like_input,
)
def clear_row(xp, params: TensorLike, index: TensorLike):
    """Set the row of ``params`` at ``index`` to zero; it is self-adjoint."""
    full = params.copy()
    full[row_number(index, len(params))] = 0
    return full


@put_row.vjp("params")
@clear_row.vjp("params")
def _(g, index):
    return clear_row(g, index)


@put_row.vjp("row")
def _(g, index):
    return gather_p(g, index, 0)


def tensor_scatter_nd_update(
    tensor: TensorLike,
    indices: TensorLike,
    updates: TensorLike,
    name: str | None = None,
) -> Tensor:
    """Replace the entries of a tensor at coordinates by ``updates``.

    If several updates have the same coordinates, the last one counts, for the value and
    for the gradient.

    Args:
        tensor: Tensor to copy and update.
        indices: Integers with the coordinates in the last axis.
        updates: New values.

    Shapes:
        As in `scatter_nd`, with the shape of ``tensor``.

    Raises:
        IndexError: If a coordinate is out of range.

    Example:
        >>> tw.tensor_scatter_nd_update([1, 2, 3], [[2], [0]], [8, 9]).numpy()
        array([9, 2, 8], dtype=int32)
    """
    return _written("tensor_scatter_nd_update", put_rows, tensor, indices, updates)


def _written(who, op, tensor, indices, updates):
    tensor, updates = _alike(tensor, updates)
    same_dtype(who, tensor=tensor, updates=updates)
    shape = tuple(tensor.shape)
    flat, rows, matrix = _as_rows(who, indices, updates, shape)
    return reshape(op(reshape(tensor, matrix), flat, rows), shape)


# ---------------------------------------------------------------------- the extremes


@rows_op(type_name="TensorScatterMax")
def max_rows(xp, matrix: TensorLike, indices: TensorLike, rows: TensorLike):
    """Compute the maximum of ``rows`` and the rows of ``matrix`` at ``indices``."""
    return _extremes(xp, xp.maximum, matrix, indices, rows)


@rows_op(type_name="TensorScatterMin")
def min_rows(xp, matrix: TensorLike, indices: TensorLike, rows: TensorLike):
    """Compute the minimum of ``rows`` and the rows of ``matrix`` at ``indices``."""
    return _extremes(xp, xp.minimum, matrix, indices, rows)


def _extremes(xp, function, matrix, indices, rows):
    full = matrix.copy()
    combine_at(xp, function, full, indices, rows)
    return full


@max_rows.vjp("matrix")
@min_rows.vjp("matrix")
def _(g, matrix, indices, rows, out):
    ties, _ = _ties(matrix, indices, rows, out)
    return g * cast(equal(matrix, out), g.dtype) / ties


@max_rows.vjp("rows")
@min_rows.vjp("rows")
def _(g, matrix, indices, rows, out):
    ties, winners = _ties(matrix, indices, rows, out)
    return gather_p(g / ties, indices, 0) * winners


def _ties(matrix, indices, rows, out):
    """Count the candidates equal to each entry of ``out``, and mark them in the ``rows``."""
    winners = cast(equal(rows, gather_p(out, indices, 0)), matrix.dtype)
    others = scatter_rows(winners, indices, shape=tuple(matrix.shape), axis=0)
    return others + cast(equal(matrix, out), matrix.dtype), winners


def tensor_scatter_nd_max(
    tensor: TensorLike,
    indices: TensorLike,
    updates: TensorLike,
    name: str | None = None,
) -> Tensor:
    """Replace the entries of a tensor at coordinates by larger ``updates``.

    Ties share the gradient equally.

    Args:
        tensor: Tensor to copy and update.
        indices: Integers with the coordinates in the last axis.
        updates: Values to compare with.

    Shapes:
        As in `scatter_nd`, with the shape of ``tensor``.

    Raises:
        IndexError: If a coordinate is out of range.

    Example:
        >>> tw.tensor_scatter_nd_max([1, 5, 3], [[0], [1]], [4, 4]).numpy()
        array([4, 5, 3], dtype=int32)
    """
    return _written("tensor_scatter_nd_max", max_rows, tensor, indices, updates)


def tensor_scatter_nd_min(
    tensor: TensorLike,
    indices: TensorLike,
    updates: TensorLike,
    name: str | None = None,
) -> Tensor:
    """Replace the entries of a tensor at coordinates by smaller ``updates``.

    Ties share the gradient equally.

    Args:
        tensor: Tensor to copy and update.
        indices: Integers with the coordinates in the last axis.
        updates: Values to compare with.

    Shapes:
        As in `scatter_nd`, with the shape of ``tensor``.

    Raises:
        IndexError: If a coordinate is out of range.

    Example:
        >>> tw.tensor_scatter_nd_min([1, 5, 3], [[0], [1]], [4, 4]).numpy()
        array([1, 4, 3], dtype=int32)
    """
    return _written("tensor_scatter_nd_min", min_rows, tensor, indices, updates)


# ------------------------------------------------------------- partition and stitch


def dynamic_partition(
    data: TensorLike,
    partitions: TensorLike,
    num_partitions: IntLike,
    name: str | None = None,
) -> list[Tensor]:
    """Partition the rows of a tensor into a list: part ``i`` has the rows numbered ``i``.

    Args:
        data: Tensor to partition.
        partitions: Integers from 0 to ``num_partitions - 1``, the part of each row.
        num_partitions: Number of parts.

    Shapes:
        ``partitions`` has the sizes of the first axes of ``data``; in each part these
        axes become one.

    Raises:
        ValueError: If a partition is out of range.

    Example:
        >>> even, odd = tw.dynamic_partition([5, 6, 7], [0, 1, 0], 2)
        >>> even.numpy(), odd.numpy()
        (array([5, 7], dtype=int32), array([6], dtype=int32))
    """
    data = convert_to_tensor(data)
    partitions = whole_numbers("dynamic_partition", partitions, "partitions")
    depth, count = len(partitions.shape), int(num_partitions)
    if tuple(data.shape[:depth]) != tuple(partitions.shape):
        raise ShapeError("dynamic_partition", "partitions must have the shape of the first "
                         "axes of data", data=data, partitions=partitions)  # fmt: skip
    numbers = partitions.array
    if devices.is_array(numbers):
        wrong = numbers[(numbers < 0) | (numbers >= count)]
        if wrong.size:
            raise InvalidArgumentError(
                f"dynamic_partition: partitions must be from 0 to {count - 1}, "
                f"got {int(wrong.reshape(-1)[0])}"
            )
    rows = reshape(data, (math.prod(partitions.shape), *data.shape[depth:]))
    return [gather_p(rows, flatnonzero(equal(partitions, i)), 0) for i in range(count)]


def dynamic_stitch(
    indices: Sequence[TensorLike], data: Sequence[TensorLike], name: str | None = None
) -> Tensor:
    """Interleave rows: ``data[i][j]`` becomes row ``indices[i][j]`` of the result.

    The inverse of `dynamic_partition`. The result has as many rows as the largest index
    plus 1. If an index occurs twice, the last row counts; a row without an index is
    zero.

    Args:
        indices: List of integer tensors.
        data: List of tensors, whose first axes have the shapes of ``indices``.

    Raises:
        ValueError: If an index is negative.

    Example:
        >>> tw.dynamic_stitch([[0, 2], [1]], [[5, 7], [6]]).numpy()
        array([5, 6, 7], dtype=int32)
    """
    if len(indices) != len(data) or not len(data):
        raise InvalidArgumentError(
            "dynamic_stitch: indices and data must be lists of the same length, got "
            f"{len(indices)} and {len(data)}"
        )
    indices = [whole_numbers("dynamic_stitch", i) for i in indices]
    data = [convert_to_tensor(d) for d in data]
    rest = tuple(data[0].shape[len(indices[0].shape) :])
    for own, part in zip(indices, data):
        if tuple(part.shape) != tuple(own.shape) + rest:
            raise ShapeError("dynamic_stitch", f"data must have shape indices + {rest}",
                             indices=own, data=part)  # fmt: skip
    flat = concat([reshape(cast(i, "int64"), (i.array.size,)) for i in indices], axis=0)
    count = int(reduce_max(flat)) + 1 if flat.array.size else 0
    if flat.array.size and int(reduce_min(flat)) < 0:
        raise InvalidArgumentError("dynamic_stitch: indices must not be negative")
    width = math.prod(rest)
    rows = concat([reshape(d, (i.array.size, width)) for i, d in zip(indices, data)], 0)
    xp = module_of(rows)
    blank = new_tensor(text.zeros(xp, (count, width), rows.array.dtype))
    return reshape(put_rows(blank, flat, rows), (count, *rest))
