"""Sets along the last axis of dense and sparse tensors, as in ``tf.sets``."""

from __future__ import annotations

import math

import numpy as np

from tapewright.core import dtypes
from tapewright.core.errors import DTypeError, MappingError, ShapeError
from tapewright.core.hardware import devices
from tapewright.core.primitive import primitive
from tapewright.core.rules import check_choice
from tapewright.core.shapes.symbolic_shape import agree
from tapewright.core.tensor import Tensor, TensorSpec, convert_to_tensor
from tapewright.core.typing import ShapeLike, TensorLike

from ..array.creation import range as arange
from ..array.gather import repeat
from ..array.shape import reshape
from .coordinates import linear_indices, sizes_of
from .sparse_tensor import SparseTensor, as_sparse


def intersection(
    a: TensorLike | SparseTensor, b: TensorLike | SparseTensor,
    validate_indices: bool = True,
) -> SparseTensor:  # fmt: skip
    """Set intersection of each row of ``a`` with the same row of ``b``.

    Each row along the last axis is a set: its values count once, and the result has
    them in ascending order. Not available in traced functions, where the number of
    values is unknown.

    Args:
        a: Dense or sparse tensor ``[..., m]`` of integers or strings.
        b: Dense or sparse tensor ``[..., n]`` of the same dtype.
        validate_indices: If True, entries of sparse tensors must be in order (see
            `tw.sparse.reorder`).

    Shapes:
        ``[..., m]`` and ``[..., n]``, of rank 2 or more, to a sparse ``[..., k]``,
        where ``k`` is the size of the largest set.

    Raises:
        TypeError: If the dtypes differ or are not supported.
        InvalidArgumentError: If the shapes do not match, or indices are not in order (a
            ``ValueError``).

    Example:
        >>> tw.sparse.to_dense(tw.sets.intersection([[3, 1, 2]], [[2, 3, 3]])).numpy()
        array([[2, 3]], dtype=int32)
    """
    return _combined("intersection", a, b, validate_indices)


def union(
    a: TensorLike | SparseTensor, b: TensorLike | SparseTensor,
    validate_indices: bool = True,
) -> SparseTensor:  # fmt: skip
    """Set union of each row of ``a`` with the same row of ``b``.

    See `tw.sets.intersection`.

    Args:
        a: Dense or sparse tensor ``[..., m]`` of integers or strings.
        b: Dense or sparse tensor ``[..., n]`` of the same dtype.
        validate_indices: If True, entries of sparse tensors must be in order (see
            `tw.sparse.reorder`).

    Shapes:
        ``[..., m]`` and ``[..., n]``, of rank 2 or more, to a sparse ``[..., k]``,
        where ``k`` is the size of the largest set.

    Raises:
        TypeError: If the dtypes differ or are not supported.
        InvalidArgumentError: If the shapes do not match, or indices are not in order (a
            ``ValueError``).

    Example:
        >>> tw.sparse.to_dense(tw.sets.union([[3, 1, 2]], [[2, 4]])).numpy()
        array([[1, 2, 3, 4]], dtype=int32)
    """
    return _combined("union", a, b, validate_indices)


def difference(
    a: TensorLike | SparseTensor, b: TensorLike | SparseTensor,
    aminusb: bool = True, validate_indices: bool = True,
) -> SparseTensor:  # fmt: skip
    """Set difference of each row of ``a`` and the same row of ``b``.

    See `tw.sets.intersection`.

    Args:
        a: Dense or sparse tensor ``[..., m]`` of integers or strings.
        b: Dense or sparse tensor ``[..., n]`` of the same dtype.
        aminusb: If True, the values of ``a`` that are not in ``b``; if False, the
            values of ``b`` that are not in ``a``.
        validate_indices: If True, entries of sparse tensors must be in order (see
            `tw.sparse.reorder`).

    Shapes:
        ``[..., m]`` and ``[..., n]``, of rank 2 or more, to a sparse ``[..., k]``,
        where ``k`` is the size of the largest set.

    Raises:
        TypeError: If the dtypes differ or are not supported.
        InvalidArgumentError: If the shapes do not match, or indices are not in order (a
            ``ValueError``).

    Example:
        >>> tw.sparse.to_dense(tw.sets.difference([[3, 1, 2]], [[2, 4]])).numpy()
        array([[1, 3]], dtype=int32)
    """
    return _combined("difference", a, b, validate_indices, exchanged=not aminusb)


def size(a: SparseTensor, validate_indices: bool = True) -> Tensor:
    """Count the distinct values in each row of a sparse tensor.

    Args:
        a: `SparseTensor` of integers or strings.
        validate_indices: If True, entries of sparse tensors must be in order (see
            `tw.sparse.reorder`).

    Shapes:
        ``[..., n]``, of rank 2 or more, to ``[...]``, int32.

    Raises:
        TypeError: If the dtype is not supported.
        InvalidArgumentError: If the shape is invalid, or indices are not in order (a
            ``ValueError``).

    Example:
        >>> x = tw.SparseTensor([[0, 0], [0, 1], [2, 0]], [3, 3, 1], [3, 2])
        >>> tw.sets.size(x).numpy()
        array([1, 0, 1], dtype=int32)
    """
    rows, values, shape = _rows_of("size", as_sparse("size", a, "a"), "a",
                                   validate_indices)  # fmt: skip
    return _set_size(rows, values, shape=shape)


def _combined(who, a, b, validate_indices, exchanged=False):
    """Return the sparse tensor of a set operation on the rows of two tensors."""
    rows_a, values_a, shape = _rows_of(who, a, "a", validate_indices)
    rows_b, values_b, other = _rows_of(who, b, "b", validate_indices)
    if values_a.dtype != values_b.dtype:
        raise DTypeError(who, "the dtypes must be the same", a=values_a, b=values_b)
    if len(shape) != len(other) or not all(map(agree, shape, other)):
        raise ShapeError(
            who, "a and b must have the same sizes up to the last axis, got "
            f"{shape} and {other}",
        )  # fmt: skip
    sets = (rows_a, values_a), (rows_b, values_b)
    first, second = reversed(sets) if exchanged else sets
    return SparseTensor(*_set_operation(*first, *second, kind=who, shape=shape))


def _rows_of(who, x, name, validate_indices):
    """Return the row and the value of each entry, and the shape without the last axis."""
    is_sparse = isinstance(x, SparseTensor)
    x = x if is_sparse else convert_to_tensor(x)
    values = x.values if is_sparse else x
    if not (values.dtype.is_integer or values.dtype == dtypes.string):
        raise DTypeError(who, f"{name} must be integers or strings", **{name: values})
    if x.shape.rank is None or x.shape.rank < 2:
        raise ShapeError(
            who, f"{name} must have 2 axes or more, got the shape {x.shape}"
        )
    if is_sparse:
        sizes = sizes_of(who, x)
        linear = linear_indices(who, x.indices, sizes, ordered=validate_indices)
        return linear // max(sizes[-1], 1), values, sizes[:-1]
    *shape, count = x.shape
    rows = repeat(arange(math.prod(shape), dtype=dtypes.int64), count)
    return rows, reshape(x, [-1]), tuple(shape)


_OPERATIONS = {
    "intersection": np.intersect1d,
    "union": np.union1d,
    "difference": np.setdiff1d,
}


def _numbered(*parts):
    """Return the distinct values, in ascending order, and the index of each value.

    The indices come as one array for each of the ``parts``.
    """
    values = np.concatenate([devices.to_numpy(part) for part in parts])
    distinct, numbers = np.unique(values, return_inverse=True)
    return distinct, numbers.reshape(-1)


@primitive(kinds="iuO", same_dtype=(), multiple=True, no_gradient=True)
def _set_operation(
    xp, rows_a: TensorLike, values_a: TensorLike,
    rows_b: TensorLike, values_b: TensorLike, *, kind: str, shape: ShapeLike,
):  # fmt: skip
    """Indices, values and dense shape of the sets of the rows that occur."""
    rows, row_numbers = _numbered(rows_a, rows_b)
    values, value_numbers = _numbered(values_a, values_b)
    pairs = row_numbers * max(len(values), 1) + value_numbers
    kept = _OPERATIONS[kind](*np.split(pairs, [len(rows_a)]))
    row, value = np.divmod(kept, max(len(values), 1))
    counts = np.bincount(row, minlength=len(rows))
    position = np.arange(len(row)) - (np.cumsum(counts) - counts)[row]
    columns, rest = [position], rows[row]
    for size in reversed(shape):
        rest, column = np.divmod(rest, max(size, 1))
        columns.insert(0, column)
    indices = np.stack(columns, axis=1)
    dense_shape = np.array([*shape, counts.max(initial=0)], np.int64)
    return (
        xp.asarray(indices.astype(np.int64)),
        xp.asarray(values[value]),
        xp.asarray(dense_shape),
    )


@_set_operation.infer
def _(rows_a, values_a, rows_b, values_b, kind, shape):
    check_choice("sets", "kind", kind, tuple(_OPERATIONS))
    return (
        TensorSpec([None, len(shape) + 1], dtypes.int64),
        TensorSpec([None], values_a.dtype),
        TensorSpec([len(shape) + 1], dtypes.int64),
    )


@primitive(type_name="SetSize", kinds="iuO", same_dtype=(), no_gradient=True)
def _set_size(xp, rows: TensorLike, values: TensorLike, *, shape: ShapeLike):
    _, numbers = _numbered(values)
    different = np.unique(np.stack([devices.to_numpy(rows), numbers]), axis=1)
    counts = np.zeros(shape, np.int32)
    ends = np.searchsorted(different[0], np.arange(counts.size + 1))
    counts.flat = np.diff(ends)
    return xp.asarray(counts)


@_set_size.infer
def _(rows, values, shape):
    return TensorSpec(shape, dtypes.int32)


@_set_operation.batch
@_set_size.batch
def _(mapped, *parts, **attributes):
    raise MappingError("sets: mapped tensors are not supported")
