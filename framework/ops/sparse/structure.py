"""Reorder, reshape, slice and join sparse tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tapewright.core import dtypes
from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.rules import normalize_axis
from tapewright.core.shapes.symbolic_shape import agree
from tapewright.core.tensor import (
    IndexedSlices,
    Tensor,
    convert_to_tensor,
)
from tapewright.core.typing import (
    Axes,
    Axis,
    IntLike,
    ShapeLike,
    TensorLike,
    as_axes,
    as_shape,
)

from ..array import joining
from ..array.conversion import cast
from ..array.creation import fill, zeros_like
from ..array.gather import boolean_mask, gather
from ..array.segment import known_values, unsorted_segment_sum
from ..array.sorting import argsort
from ..math.comparison import (
    equal,
    greater_equal,
    less,
    logical_and,
    logical_not,
    where,
)
from ..math.reduction import reduce_all, reduce_any
from .coordinates import (
    columns_as_indices,
    columns_of,
    coordinates,
    linear_indices,
    sizes_of,
)
from .sparse_tensor import SparseTensor, as_sparse


def reorder(sp_input: SparseTensor, name: str | None = None) -> SparseTensor:
    """Sort the entries by their indices, row by row.

    Args:
        sp_input: `SparseTensor`.

    Example:
        >>> x = tw.SparseTensor([[1, 0], [0, 1]], [1, 2], [2, 2])
        >>> tw.sparse.reorder(x).indices.numpy()
        array([[0, 1],
               [1, 0]])
    """
    sp_input = as_sparse("reorder", sp_input)
    shape = sizes_of("reorder", sp_input)
    order = argsort(linear_indices("reorder", sp_input.indices, shape), stable=True)
    return SparseTensor(
        gather(sp_input.indices, order), gather(sp_input.values, order), shape
    )


def reshape(
    sp_input: SparseTensor, shape: ShapeLike, name: str | None = None
) -> SparseTensor:
    """Reshape a sparse tensor: the same entries, counted row by row.

    Args:
        sp_input: `SparseTensor`.
        shape: New shape; one size may be -1, for the remaining entries.

    Raises:
        InvalidArgumentError: If the new shape has another number of entries.

    Example:
        >>> x = tw.SparseTensor([[0, 1], [2, 0]], [1, 2], [3, 2])
        >>> tw.sparse.reshape(x, [2, -1]).indices.numpy()
        array([[0, 1],
               [1, 1]])
    """
    sp_input = as_sparse("reshape", sp_input)
    old, new = sizes_of("reshape", sp_input), list(as_shape(shape))
    count = math.prod(old)
    if sum([type(n) is int and n == -1 for n in new]) > 1:
        raise InvalidArgumentError(f"reshape: only one size may be -1, got {shape}")
    if -1 in [n for n in new if type(n) is int]:
        rest = math.prod([n for n in new if not (type(n) is int and n == -1)])
        if type(rest) is int and rest == 0:
            raise InvalidArgumentError(
                f"reshape: a shape with -1 must not contain 0, got {shape}"
            )
        new = [count // rest if type(n) is int and n == -1 else n for n in new]
    if not agree(math.prod(new), count):
        raise InvalidArgumentError(
            f"reshape: the shape {tuple(new)} does not hold the {count} entries of "
            f"{sp_input.shape}"
        )
    flat = linear_indices("reshape", sp_input.indices, old)
    indices = columns_as_indices(coordinates(flat, new), flat)
    return SparseTensor(indices, sp_input.values, tuple(new))


def transpose(
    sp_input: SparseTensor, perm: Axes = None, name: str | None = None
) -> SparseTensor:
    """Permute the axes of a sparse tensor; the entries of the result are in order.

    Args:
        sp_input: `SparseTensor`.
        perm: Order of the axes, reversed by default.

    Example:
        >>> x = tw.SparseTensor([[0, 1], [2, 0]], [1, 2], [3, 2])
        >>> tw.sparse.transpose(x).indices.numpy()
        array([[0, 2],
               [1, 0]])
    """
    sp_input = as_sparse("transpose", sp_input)
    shape, columns = sizes_of("transpose", sp_input), columns_of(sp_input)
    rank = len(shape)
    perm = tuple(reversed(range(rank))) if perm is None else as_axes(perm)
    axes = normalize_axis("transpose", perm, rank)
    if sorted(axes) != list(range(rank)):
        raise InvalidArgumentError(
            f"transpose: perm must be a permutation of the {rank} axes, got {perm}"
        )
    indices = columns_as_indices([columns[a] for a in axes], sp_input.values)
    sizes = tuple([shape[a] for a in axes])
    return reorder(SparseTensor(indices, sp_input.values, sizes))


def expand_dims(
    sp_input: SparseTensor, axis: Axis | None = None, name: str | None = None
) -> SparseTensor:
    """Insert an axis of size 1.

    Args:
        sp_input: `SparseTensor`.
        axis: Position of the new axis, the last by default.

    Example:
        >>> tw.sparse.expand_dims(tw.SparseTensor([[0, 1]], [1], [3, 2]), 0).shape
        TensorShape([1, 3, 2])
    """
    sp_input = as_sparse("expand_dims", sp_input)
    shape, columns = list(sizes_of("expand_dims", sp_input)), columns_of(sp_input)
    wanted = -1 if axis is None else int(axis)
    (at,) = normalize_axis("expand_dims", wanted, len(shape) + 1)
    columns.insert(at, linear_indices("expand_dims", sp_input.indices[:, :0], ()))
    shape.insert(at, 1)
    return SparseTensor(joining.stack(columns, axis=1), sp_input.values, tuple(shape))


def concat(
    axis: Axis,
    sp_inputs: Sequence[SparseTensor],
    expand_nonconcat_dims: bool = False,
    name: str | None = None,
) -> SparseTensor:
    """Concatenate sparse tensors along an axis; the entries of the result are in order.

    Args:
        axis: Axis to concatenate along.
        sp_inputs: List of sparse tensors of one rank.
        expand_nonconcat_dims: If True, the sizes of other axes are the largest of all
            inputs; otherwise they must be equal.

    Raises:
        ShapeError: If the sizes differ.

    Example:
        >>> x = tw.SparseTensor([[0, 1]], [1], [2, 2])
        >>> tw.sparse.concat(1, [x, x]).indices.numpy()
        array([[0, 1],
               [0, 3]])
    """
    parts = [as_sparse("concat", x, "sp_inputs") for x in sp_inputs]
    if not parts:
        raise InvalidArgumentError("concat: sp_inputs must hold a sparse tensor")
    shapes = [sizes_of("concat", x) for x in parts]
    rank = len(shapes[0])
    if any([len(s) != rank for s in shapes]):
        raise ShapeError("concat", f"sp_inputs must have one rank, got {shapes}")
    (at,) = normalize_axis("concat", int(axis), rank)
    shape = []
    for i, sizes in enumerate(zip(*shapes)):
        if i == at:
            shape.append(sum(sizes))
        elif expand_nonconcat_dims:
            shape.append(max(sizes))
        elif all([agree(n, sizes[0]) for n in sizes]):
            shape.append(sizes[0])
        else:
            raise ShapeError(
                "concat", f"all sizes except along axis {at} must be equal, got "
                f"{[tuple(s) for s in shapes]}; expand_nonconcat_dims=True uses the "
                "largest"
            )  # fmt: skip
    moved, start = [], 0
    for x, sizes in zip(parts, shapes):
        columns = columns_of(x)
        columns[at] = columns[at] + convert_to_tensor(start, dtype=dtypes.int64)
        moved.append(joining.stack(columns, axis=1))
        start = start + sizes[at]
    values = joining.concat([x.values for x in parts], 0)
    return reorder(SparseTensor(joining.concat(moved, 0), values, tuple(shape)))


# ------------------------------------------------------------------- some of the entries


def retain(sp_input: SparseTensor, to_retain: TensorLike) -> SparseTensor:
    """Keep the entries where ``to_retain`` is true. Not available in traced functions.

    Args:
        sp_input: `SparseTensor`.
        to_retain: Booleans ``[n]``, one per entry.

    Example:
        >>> x = tw.SparseTensor([[0], [2]], [1, 2], [3])
        >>> tw.sparse.retain(x, [True, False]).values.numpy()
        array([1], dtype=int32)
    """
    sp_input, kept = as_sparse("retain", sp_input), convert_to_tensor(to_retain)
    if tuple(kept.shape) != tuple(sp_input.values.shape) or not kept.dtype.is_bool:
        raise ShapeError(
            "retain", f"to_retain must be booleans of shape {sp_input.values.shape}",
            to_retain=kept,
        )  # fmt: skip
    known_values("retain", "to_retain", kept)
    return SparseTensor(
        boolean_mask(sp_input.indices, kept),
        boolean_mask(sp_input.values, kept),
        sp_input.dense_shape,
    )


def slice(
    sp_input: SparseTensor, start: ShapeLike, size: ShapeLike, name: str | None = None
) -> SparseTensor:
    """Slice a sparse tensor. Not available in traced functions.

    Args:
        sp_input: `SparseTensor`.
        start: Start along each axis.
        size: Size along each axis; slices are cut off at the end of the tensor.

    Example:
        >>> x = tw.SparseTensor([[0, 1], [2, 0]], [1, 2], [3, 2])
        >>> part = tw.sparse.slice(x, [1, 0], [2, 2])
        >>> part.indices.numpy(), part.shape
        (array([[1, 0]]), TensorShape([2, 2]))
    """
    sp_input = as_sparse("slice", sp_input)
    shape, start, size = sizes_of("slice", sp_input), as_shape(start), as_shape(size)
    if len(start) != len(shape) or len(size) != len(shape):
        raise InvalidArgumentError(
            f"slice: start and size must have a number for each of the {len(shape)} axes, "
            f"got {start} and {size}"
        )
    if min((*start, *size), default=0) < 0:
        raise InvalidArgumentError(
            f"slice: start and size must not be negative, got {start} and {size}"
        )
    low = convert_to_tensor(list(start), dtype=dtypes.int64)
    sizes = tuple([max(0, min(n, m - s)) for n, m, s in zip(size, shape, start)])
    moved = sp_input.indices - low
    end = convert_to_tensor(list(sizes), dtype=dtypes.int64)
    inside = logical_and(greater_equal(moved, cast(0, dtypes.int64)), less(moved, end))
    part = retain(sp_input, reduce_all(inside, axis=1))
    return SparseTensor(part.indices - low, part.values, sizes)


def split(
    sp_input: SparseTensor | None = None,
    num_split: IntLike | None = None,
    axis: Axis | None = None,
    name: str | None = None,
) -> list[SparseTensor]:
    """Split a sparse tensor into ``num_split`` parts along an axis.

    If the size is not divisible, the first parts are larger by one. Not available in
    traced functions.

    Args:
        sp_input: `SparseTensor`.
        num_split: Number of parts.
        axis: Axis to split.

    Returns:
        A list of sparse tensors.

    Raises:
        InvalidArgumentError: If the axis has fewer entries than ``num_split``.

    Example:
        >>> x = tw.SparseTensor([[0, 1], [2, 0]], [1, 2], [3, 2])
        >>> [part.shape.as_list() for part in tw.sparse.split(x, 2, axis=0)]
        [[2, 2], [1, 2]]
    """
    for title, given in (("num_split", num_split), ("axis", axis)):
        if given is None:
            raise ValueError(f"split: {title} must be given")
    sp_input = as_sparse("split", sp_input)
    shape, count = sizes_of("split", sp_input), int(num_split)
    (at,) = normalize_axis("split", int(axis), len(shape))
    if not 1 <= count <= shape[at]:
        raise InvalidArgumentError(
            f"split: num_split must be from 1 to {shape[at]}, the size of axis {at}, got "
            f"{count}"
        )
    least, larger = divmod(shape[at], count)
    parts, begin = [], 0
    for i in range(count):
        size = least + (i < larger)
        start = [begin if a == at else 0 for a in range(len(shape))]
        sizes = [size if a == at else n for a, n in enumerate(shape)]
        parts.append(slice(sp_input, start, sizes))
        begin += size
    return parts


def mask(
    a: IndexedSlices, mask_indices: TensorLike, name: str | None = None
) -> IndexedSlices:
    """Remove the rows of `IndexedSlices` with an index in ``mask_indices``.

    Not available in traced functions.

    Args:
        a: `IndexedSlices`.
        mask_indices: Indices to remove.

    Example:
        >>> values = tw.convert_to_tensor([[1.0], [2.0]])
        >>> rows = tw.IndexedSlices(values, tw.convert_to_tensor([5, 7]))
        >>> tw.sparse.mask(rows, [7]).indices.numpy()
        array([5], dtype=int32)
    """
    if not isinstance(a, IndexedSlices):
        raise TypeError(f"mask: a must be IndexedSlices, got {type(a).__name__}")
    hidden = convert_to_tensor(mask_indices, dtype_hint=a.indices.dtype)
    pairs = equal(convert_to_tensor(a.indices)[:, None], hidden[None, :])
    kept = logical_not(reduce_any(pairs, axis=1))
    return IndexedSlices(
        boolean_mask(a.values, kept), boolean_mask(a.indices, kept), a.dense_shape
    )


def reset_shape(
    sp_input: SparseTensor, new_shape: ShapeLike | None = None
) -> SparseTensor:
    """Set a larger dense shape, or the smallest that holds the entries.

    Args:
        sp_input: `SparseTensor`.
        new_shape: New shape, no smaller than the old one; None for the smallest
            possible.

    Raises:
        ValueError: If a size is smaller than before, or the rank differs.

    Example:
        >>> tw.sparse.reset_shape(tw.SparseTensor([[0, 1]], [1], [3, 2]), [5, 5]).shape
        TensorShape([5, 5])
    """
    who = "reset_shape"
    sp_input = as_sparse(who, sp_input)
    old = sizes_of(who, sp_input)
    if new_shape is None:
        indices = known_values(who, "indices", sp_input.indices)
        shape = [int(column.max()) + 1 if len(column) else 0 for column in indices.T]
    else:
        shape = as_shape(new_shape)
        if len(shape) != len(old) or any([n < m for n, m in zip(shape, old)]):
            raise InvalidArgumentError(
                f"{who}: new_shape must be {sp_input.shape} or larger, got {shape}"
            )
    return SparseTensor(sp_input.indices, sp_input.values, tuple(shape))


def fill_empty_rows(
    sp_input: SparseTensor, default_value: TensorLike, name: str | None = None
) -> tuple[SparseTensor, Tensor]:
    """Fill empty rows with an entry ``default_value`` in column 0.

    Not available in traced functions.

    Args:
        sp_input: `SparseTensor` of rank 2.
        default_value: Value of the new entries.

    Returns:
        The sparse tensor, in order, and booleans ``[rows]`` that mark the rows that
        were empty.

    Example:
        >>> x = tw.SparseTensor([[0, 1]], [1], [2, 2])
        >>> filled, empty = tw.sparse.fill_empty_rows(x, 7)
        >>> filled.indices.numpy(), filled.values.numpy(), empty.numpy()
        (array([[0, 1],
               [1, 0]]), array([1, 7], dtype=int32), array([False,  True]))
    """
    who = "fill_empty_rows"
    sp_input = as_sparse(who, sp_input)
    shape = sizes_of(who, sp_input)
    if len(shape) != 2:
        raise ShapeError(who, f"sp_input must have two axes, got {sp_input.shape}")
    default = convert_to_tensor(default_value, dtype_hint=sp_input.dtype)
    rows = sp_input.indices[:, 0]
    known_values(who, "indices", rows)
    ones = fill([rows.shape[0]], cast(1, dtypes.int64))
    empty = equal(unsorted_segment_sum(ones, rows, shape[0]), cast(0, dtypes.int64))
    new_rows = where(empty)[:, 0]
    new = joining.stack([new_rows, zeros_like(new_rows)], axis=1)
    values = [sp_input.values, fill([new_rows.shape[0]], default)]
    indices = joining.concat([sp_input.indices, new], 0)
    filled = SparseTensor(indices, joining.concat(values, 0), shape)
    return reorder(filled), empty
