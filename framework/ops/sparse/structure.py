"""Sparse tensors in another order or shape, their parts, and several joined."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tapewright.core import dtypes
from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.rules import normalize_axis
from tapewright.core.symbolic_shape import agree
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

__all__ = [
    "concat",
    "expand_dims",
    "fill_empty_rows",
    "mask",
    "reorder",
    "reset_shape",
    "reshape",
    "retain",
    "slice",
    "split",
    "transpose",
]


def reorder(sp_input: SparseTensor, name: str | None = None) -> SparseTensor:
    """The entries sorted by their indices, row by row.

    Example:
        >>> tw.sparse.reorder(tw.SparseTensor([[1, 0], [0, 1]], [1, 2], [2, 2])).indices.numpy()
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
    """The same entries, counted row by row, in another shape; -1 is what is left.

    Raises: ``InvalidArgumentError`` for a shape of another number of entries.

    Example:
        >>> tw.sparse.reshape(tw.SparseTensor([[0, 1], [2, 0]], [1, 2], [3, 2]), [2, -1]).indices.numpy()
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
            raise InvalidArgumentError(f"reshape: -1 is unclear beside 0 in {shape}")
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
    """The axes in the order of ``perm``, by default the reverse; entries in order.

    Example:
        >>> tw.sparse.transpose(tw.SparseTensor([[0, 1], [2, 0]], [1, 2], [3, 2])).indices.numpy()
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
            f"transpose: perm must be an order of the {rank} axes, got {perm}"
        )
    indices = columns_as_indices([columns[a] for a in axes], sp_input.values)
    sizes = tuple([shape[a] for a in axes])
    return reorder(SparseTensor(indices, sp_input.values, sizes))


def expand_dims(
    sp_input: SparseTensor, axis: Axis | None = None, name: str | None = None
) -> SparseTensor:
    """A further axis of size 1, by default the last.

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
    """Sparse tensors side by side along an axis, entries in order.

    Args: ``expand_nonconcat_dims``: the other sizes are the largest of all; else they
    must be equal.

    Raises: ``ShapeError`` for sizes that differ.

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
                "concat", f"all sizes but that of axis {at} must be equal, got "
                f"{[tuple(s) for s in shapes]}; expand_nonconcat_dims=True takes the "
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
    """The entries where ``to_retain``, booleans ``[n]``, is true. Not in traced functions.

    Example:
        >>> tw.sparse.retain(tw.SparseTensor([[0], [2]], [1, 2], [3]), [True, False]).values.numpy()
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
    """The part of ``size`` that begins at ``start``, cut at the end. Not in traced functions.

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
    """``num_split`` parts along an axis; the first are larger by one if it leaves a rest.

    Not in traced functions.

    Raises: ``InvalidArgumentError`` if the axis has fewer rows than ``num_split``.

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
    """`IndexedSlices` without the rows whose index is among ``mask_indices``.

    Not in traced functions.

    Example:
        >>> rows = tw.IndexedSlices(tw.convert_to_tensor([[1.0], [2.0]]), tw.convert_to_tensor([5, 7]))
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
    """The same entries in a larger shape, or in the smallest that holds them (None).

    Raises: ``ValueError`` for a size smaller than before, or another rank.

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
    """An entry ``default_value`` in column 0 of each row without any. Not in traced functions.

    Returns: the sparse tensor in order, and which rows were empty: booleans ``[rows]``.

    Example:
        >>> filled, empty = tw.sparse.fill_empty_rows(tw.SparseTensor([[0, 1]], [1], [2, 2]), 7)
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
