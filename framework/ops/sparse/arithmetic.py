"""Sums, extremes and element-wise functions of sparse tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.interpreters import active_tracer
from tapewright.core.rules import normalize_axis
from tapewright.core.tensor import convert_to_tensor
from tapewright.core.typing import Axes, TensorLike, as_axes

from ..array.conversion import cast, stop_gradient
from ..array.creation import ones_like, zeros_like
from ..array.gather import boolean_mask, gather
from ..array.joining import concat
from ..array.scatter import tensor_scatter_nd_add
from ..array.segment import (
    known_values,
    unsorted_segment_max,
    unsorted_segment_sum,
)
from ..array.shape import reshape
from ..array.sorting import searchsorted, sort, unique
from ..math import elementwise
from ..math.comparison import greater_equal, less, logical_or, where
from ..math.elementwise import abs, exp
from .coordinates import (
    columns_as_indices,
    columns_of,
    coordinates,
    linear_indices,
    sizes_of,
)
from .sparse_tensor import SparseTensor, as_sparse


def add(a: Any, b: Any, threshold: TensorLike = 0) -> Any:
    """Add two tensors of which at least one is sparse: ``a + b``.

    The sum is dense if one of them is dense. The sum of two sparse tensors has a size
    that is unknown in traced functions.

    Args:
        a: Sparse or dense tensor.
        b: Sparse or dense tensor of the same shape.
        threshold: If both are sparse, sums with a smaller magnitude are dropped.

    Raises:
        ShapeError: If the shapes differ.
        TypeError: If neither is sparse.

    Example:
        >>> x = tw.SparseTensor([[0], [2]], [1.0, 2.0], [3])
        >>> y = tw.SparseTensor([[0], [1]], [1.0, 5.0], [3])
        >>> tw.sparse.add(x, y).values.numpy()
        array([2., 5., 2.], dtype=float32)
    """
    sparse = [x for x in (a, b) if isinstance(x, SparseTensor)]
    if not sparse:
        raise TypeError("add: at least one input must be a SparseTensor")
    if len(sparse) == 1:
        dense = convert_to_tensor(
            b if a is sparse[0] else a, dtype_hint=sparse[0].dtype
        )
        shape = sizes_of("add", sparse[0])
        if tuple(dense.shape) != tuple(shape):
            raise ShapeError("add", f"both must have shape {tuple(shape)}", dense=dense)
        linear = linear_indices("add", sparse[0].indices, shape)[:, None]
        flat = tensor_scatter_nd_add(reshape(dense, [-1]), linear, sparse[0].values)
        return reshape(flat, shape)
    total, counts = _combine("add", a, b, elementwise.add)
    limit = convert_to_tensor(threshold, dtype_hint=total.dtype.real_dtype)
    limit = cast(limit, total.dtype.real_dtype)
    if not bool(known_values("add", "threshold", limit) > 0):
        return total
    kept = greater_equal(abs(stop_gradient(total.values)), limit)
    kept = logical_or(kept, less(counts, 2))  # as in TensorFlow
    return SparseTensor(
        boolean_mask(total.indices, kept),
        boolean_mask(total.values, kept),
        total.dense_shape,
    )


def maximum(
    sp_a: SparseTensor, sp_b: SparseTensor, name: str | None = None
) -> SparseTensor:
    """Element-wise maximum of sparse tensors; missing entries count as 0.

    The result has the indices of either input. Not available in traced functions.

    Args:
        sp_a: `SparseTensor`.
        sp_b: `SparseTensor` of the same shape.

    Raises:
        ShapeError: If the shapes differ.

    Example:
        >>> x = tw.SparseTensor([[0], [2]], [1.0, 2.0], [3])
        >>> y = tw.SparseTensor([[1], [2]], [-5.0, 9.0], [3])
        >>> tw.sparse.maximum(x, y).values.numpy()
        array([1., 0., 9.], dtype=float32)
    """
    return _combine("maximum", sp_a, sp_b, elementwise.maximum)[0]


def minimum(
    sp_a: SparseTensor, sp_b: SparseTensor, name: str | None = None
) -> SparseTensor:
    """Element-wise minimum of sparse tensors; missing entries count as 0.

    The result has the indices of either input. Not available in traced functions.

    Args:
        sp_a: `SparseTensor`.
        sp_b: `SparseTensor` of the same shape.

    Raises:
        ShapeError: If the shapes differ.

    Example:
        >>> x = tw.SparseTensor([[0], [2]], [1.0, 2.0], [3])
        >>> y = tw.SparseTensor([[1], [2]], [-5.0, 9.0], [3])
        >>> tw.sparse.minimum(x, y).values.numpy()
        array([ 0., -5.,  2.], dtype=float32)
    """
    return _combine("minimum", sp_a, sp_b, elementwise.minimum)[0]


def _combine(who, a, b, op):
    """Apply ``op`` to two tensors at the indices of either, in order, with their entries."""
    a, b = as_sparse(who, a, "sp_a"), as_sparse(who, b, "sp_b")
    shape = sizes_of(who, a)
    if tuple(shape) != tuple(sizes_of(who, b)):
        raise ShapeError(who, f"the shapes differ: {a.shape} and {b.shape}")
    flat = [linear_indices(who, x.indices, shape) for x in (a, b)]
    both = concat(flat, 0)
    known_values(who, "indices", both)
    distinct = unique(sort(both)).y
    size = distinct.shape[0]
    values = [
        unsorted_segment_sum(x.values, searchsorted(distinct, at), size)
        for x, at in zip((a, b), flat)
    ]
    counts = unsorted_segment_sum(ones_like(both), searchsorted(distinct, both), size)
    indices = columns_as_indices(coordinates(distinct, shape), distinct)
    return SparseTensor(indices, op(*values), shape), counts


def map_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> SparseTensor:
    """Apply ``op`` to the values of sparse arguments, which must have the same indices.

    Args:
        op: Function of tensors that keeps the number of values.
        *args: Arguments of ``op``; sparse tensors are replaced by their values.
        **kwargs: Keyword arguments of ``op``, treated in the same way.

    Raises:
        ValueError: If there are no sparse arguments, their indices or shapes differ, or
            the result is not a vector of as many values.

    Example:
        >>> x = tw.SparseTensor([[0], [2]], [1.0, 2.0], [3])
        >>> tw.sparse.map_values(tw.exp, x).values.numpy().round(2)
        array([2.72, 7.39], dtype=float32)
    """
    sparse = [x for x in (*args, *kwargs.values()) if isinstance(x, SparseTensor)]
    if not sparse:
        raise InvalidArgumentError(
            "map_values: at least one argument must be a SparseTensor"
        )
    first = sparse[0]
    for x in sparse[1:]:
        _check_same_indices(first, x)

    def value(x):
        return x.values if isinstance(x, SparseTensor) else x

    result = op(*[value(x) for x in args], **{k: value(x) for k, x in kwargs.items()})
    return first.with_values(result)


def _check_same_indices(x, y):
    same = x.indices is y.indices
    if not same and active_tracer() is None:
        arrays = [known_values("map_values", "indices", s.indices) for s in (x, y)]
        same = arrays[0].shape == arrays[1].shape and bool(
            (arrays[0] == arrays[1]).all()
        )
    elif not same:
        raise InvalidArgumentError(
            "map_values: in a traced function all sparse arguments must share one tensor "
            "of indices; create one from the other by with_values"
        )
    if not same or tuple(x.shape) != tuple(y.shape):
        raise InvalidArgumentError(
            "map_values: the sparse tensors must have the same indices and dense shape"
        )


# ------------------------------------------------------------------------ reductions


def reduce_sum(
    sp_input: SparseTensor,
    axis: Axes = None,
    keepdims: bool | None = None,
    output_is_sparse: bool = False,
    name: str | None = None,
) -> Any:
    """Sum the entries of a sparse tensor over axes; the result is dense.

    Args:
        sp_input: `SparseTensor`.
        axis: Axis or axes to reduce, all by default.
        keepdims: If True, keep reduced axes with size 1.
        output_is_sparse: If True, return a sparse tensor without the entries that
            reduce no value; not available in traced functions.

    Example:
        >>> x = tw.SparseTensor([[0, 1], [2, 0], [2, 1]], [1.0, 2.0, 3.0], [3, 2])
        >>> tw.sparse.reduce_sum(x, 1).numpy()
        array([1., 0., 5.], dtype=float32)
        >>> tw.sparse.reduce_sum(x, 1, output_is_sparse=True).values.numpy()
        array([1., 5.], dtype=float32)
    """

    def total(values, ids, count):
        return unsorted_segment_sum(values, ids, count)

    return _reduced("reduce_sum", sp_input, axis, keepdims, output_is_sparse, total)


def reduce_max(
    sp_input: SparseTensor,
    axis: Axes = None,
    keepdims: bool | None = None,
    output_is_sparse: bool = False,
    name: str | None = None,
) -> Any:
    """Maximum of the entries of a sparse tensor over axes; 0 where there are no entries.

    Args:
        sp_input: `SparseTensor`.
        axis: Axis or axes to reduce, all by default.
        keepdims: If True, keep reduced axes with size 1.
        output_is_sparse: If True, return a sparse tensor without the entries that
            reduce no value; not available in traced functions.

    Example:
        >>> x = tw.SparseTensor([[0, 0], [1, 0], [1, 1]], [-7.0, 4.0, 3.0], [3, 2])
        >>> tw.sparse.reduce_max(x, 1).numpy()
        array([-7.,  4.,  0.], dtype=float32)
    """

    def largest(values, ids, count):
        maxima = unsorted_segment_max(values, ids, count)
        entries = unsorted_segment_sum(ones_like(ids), ids, count)
        return where(greater_equal(entries, 1), maxima, zeros_like(maxima))

    return _reduced("reduce_max", sp_input, axis, keepdims, output_is_sparse, largest)


def _reduced(who, sp_input, axis, keepdims, as_sparse_tensor, op):
    sp_input = as_sparse(who, sp_input)
    shape, columns = sizes_of(who, sp_input), columns_of(sp_input)
    rank = len(shape)
    axes = range(rank) if axis is None else normalize_axis(who, as_axes(axis), rank)
    kept = [a for a in range(rank) if a not in axes]
    sizes = tuple([shape[a] for a in kept])
    indices = columns_as_indices([columns[a] for a in kept], sp_input.values)
    flat = linear_indices(who, indices, sizes)
    full = tuple([shape[a] if a in kept else 1 for a in range(rank)])
    if not as_sparse_tensor:
        reduced = op(sp_input.values, flat, math.prod(sizes))
        return reshape(reduced, full if keepdims else sizes)
    known_values(who, "indices", flat)
    distinct = unique(sort(flat)).y
    values = op(sp_input.values, searchsorted(distinct, flat), distinct.shape[0])
    rows = iter(coordinates(distinct, sizes))
    if keepdims:
        rows = [next(rows) if a in kept else zeros_like(distinct) for a in range(rank)]
    indices = columns_as_indices(list(rows), distinct)
    return SparseTensor(indices, values, full if keepdims else sizes)


def softmax(sp_input: SparseTensor, name: str | None = None) -> SparseTensor:
    """Softmax of the entries of each row, along the last axis; missing entries are -inf.

    Args:
        sp_input: `SparseTensor` of rank 2 or more.

    Raises:
        ShapeError: If the rank is less than 2.

    Example:
        >>> x = tw.SparseTensor([[0, 0], [1, 0], [1, 1]], [5.0, 0.0, 0.0], [2, 2])
        >>> tw.sparse.softmax(x).values.numpy()
        array([1. , 0.5, 0.5], dtype=float32)
    """
    sp_input = as_sparse("softmax", sp_input)
    shape, columns = sizes_of("softmax", sp_input), columns_of(sp_input)
    if len(shape) < 2:
        raise ShapeError("softmax", f"needs two axes or more, got {sp_input.shape}")
    values, count = sp_input.values, math.prod(shape[:-1])
    rows = columns_as_indices(columns[:-1], values)
    rows = linear_indices("softmax", rows, shape[:-1])
    largest = gather(unsorted_segment_max(stop_gradient(values), rows, count), rows)
    weights = exp(values - largest)
    total = gather(unsorted_segment_sum(weights, rows, count), rows)
    return sp_input.with_values(weights / total)
