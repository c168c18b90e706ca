"""Encode integers as one-hot, multi-hot or count vectors, for the preprocessing layers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tapewright.compiler.tracing.tracer import fall_back
from tapewright.core.errors import ShapeError
from tapewright.core.interpreters import active_tracer
from tapewright.core.tensor import is_composite
from tapewright.core.typing import Shape
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import ones
from tapewright.ops.array.creation import range as arange
from tapewright.ops.array.indexing import one_hot
from tapewright.ops.array.joining import stack
from tapewright.ops.array.segment import unsorted_segment_sum
from tapewright.ops.array.shape import expand_dims, reshape, squeeze, transpose
from tapewright.ops.math.comparison import less, logical_and, where
from tapewright.ops.math.counting import bincount
from tapewright.ops.math.elementwise import minimum
from tapewright.ops.math.reduction import reduce_max, reduce_sum
from tapewright.ops.ragged.ragged_tensor import RaggedTensor
from tapewright.ops.sparse.coordinates import coordinates
from tapewright.ops.sparse.products import bincount as sparse_bincount
from tapewright.ops.sparse.sparse_tensor import SparseTensor
from tapewright.ops.sparse.structure import reshape as sparse_reshape

from ..base.layer import Layer
from ..base.symbolic_tensor import KerasTensor


class CategoryLayer(Layer):
    """Base of layers that return `encoded` categories, dense or sparse."""

    autocast = False  # half precision would round integers
    sparse: bool
    output_mode: str

    def compute_output_spec(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        if not self.sparse or self.output_mode == "int":
            return super().compute_output_spec(inputs, *args, **kwargs)
        is_list = isinstance(inputs, list | tuple)
        shapes = [tuple(x.shape) for x in inputs] if is_list else tuple(inputs.shape)
        shape = self.compute_output_shape(shapes)
        return KerasTensor(shape, self.compute_dtype, sparse=True)


def checked_sparse(layer: Any, sparse: Any, mode: str) -> bool:
    """Return ``sparse`` as a bool.

    Raises:
        ValueError: If it is true and the mode is "int".
    """
    if sparse and mode == "int":
        raise ValueError(
            f"{type(layer).__name__}: sparse=True requires an output_mode other than "
            f"'int', got {mode!r}; use sparse=False or another mode"
        )
    return bool(sparse)


def map_entries(function: Callable[..., Any], x: Any) -> Any:
    """Apply ``function`` to a tensor, or to the values of a ragged or sparse tensor."""
    if isinstance(x, RaggedTensor):
        if len(x._tw_components()) == 1 and active_tracer() is not None:
            fall_back(
                "the number of strings in a RaggedTensor is unknown while tracing, before "
                "they are split; pass a tensor, for example rows.to_tensor(shape=...)"
            )
        return x.with_flat_values(function(x.flat_values))
    if isinstance(x, SparseTensor):
        return x.with_values(function(x.values))
    return function(x)


def encoded(
    indices: Any,
    mode: str,
    depth: int,
    dtype: Any,
    weights: Any = None,
    sparse: bool = False,
) -> Any:
    """Encode integers as "int", "one_hot", "multi_hot" or "count".

    Integers out of range are ignored.

    Ragged and sparse inputs are counted per row; with "one_hot", each entry of a ragged
    tensor becomes a vector in its row. If ``sparse``, return a `SparseTensor`.
    """
    if mode == "int":
        return cast(indices, dtype)
    indices = cast(indices, "int64")
    if is_composite(indices):
        if weights is not None:
            raise TypeError(
                f"count_weights requires dense inputs, got a {type(indices).__name__}; "
                "make the inputs dense"
            )
        return _encoded_rows(indices, mode, depth, dtype, sparse)
    if len(indices.shape) == 0:
        indices = expand_dims(indices, -1)
    rank = len(indices.shape)
    if mode == "one_hot":
        if rank > 1 and indices.shape[-1] == 1:
            indices = squeeze(indices, -1)
        make = sparse_one_hot if sparse else one_hot
        return make(indices, depth, dtype=dtype)
    is_binary = mode == "multi_hot"
    if sparse:
        return _sparse_counts(indices, depth, dtype, is_binary, weights)
    if weights is None and rank <= 2:
        indices = where(less(indices, 0), depth, indices)
        bounds = {"minlength": depth, "maxlength": depth}
        counts = bincount(indices, **bounds, axis=-1, binary_output=is_binary)
        return cast(counts, dtype)
    axis = 1 if rank > 1 else 0
    rows = one_hot(indices, depth, dtype=dtype)
    if is_binary:
        return reduce_max(rows, axis)
    if weights is not None:
        rows = rows * expand_dims(cast(weights, dtype), -1)
    return reduce_sum(rows, axis)


def _encoded_rows(x, mode, depth, dtype, sparse):
    """Encode a ragged or sparse matrix, or a ragged tensor with two ragged axes."""
    is_ragged, is_binary = isinstance(x, RaggedTensor), mode == "multi_hot"
    if mode == "one_hot":
        if is_ragged and not sparse:
            return map_entries(lambda values: one_hot(values, depth, dtype=dtype), x)
        raise TypeError(
            f"output_mode 'one_hot' with sparse={sparse} does not accept a "
            f"{type(x).__name__}; use 'multi_hot' or 'count', or make the inputs dense"
        )
    if x.shape.rank != 2:
        raise ShapeError(
            mode, f"a {type(x).__name__} must have the shape [batch, n], got {x.shape}"
        )
    if sparse:
        _refuse_traces()
        x = x.to_sparse() if is_ragged else x
        return _sparse_counts(x, depth, dtype, is_binary)
    rows = x.value_rowids() if is_ragged else x.indices[:, 0]
    numbers, count = x.values, x._tw_row_count if is_ragged else x.shape[0]
    entries = where(_inside(numbers, depth), cast(rows, "int64") * depth + numbers, -1)
    counts = unsorted_segment_sum(ones(entries.shape, "int64"), entries, count * depth)
    counts = minimum(counts, 1) if is_binary else counts
    return cast(reshape(counts, (count, depth)), dtype)


def _inside(numbers, depth):
    return logical_and(less(-1, numbers), less(numbers, depth))


def sparse_one_hot(indices: Any, depth: int, dtype: Any, axis: int = -1) -> Any:
    """Sparse one-hot encoding with one stored entry per integer: 1, or 0 if out of range.

    The number of stored entries is the number of integers, which is known in a trace.
    ``axis`` is the position of the new axis.
    """
    shape, inside = tuple(indices.shape), _inside(indices, depth)
    numbers = reshape(where(inside, indices, 0), [-1])
    at = coordinates(arange(math.prod(shape), dtype="int64"), shape)
    values = cast(reshape(inside, [-1]), dtype)
    sizes, axis = list(shape), axis % (len(shape) + 1)
    at.insert(axis, numbers)
    sizes.insert(axis, depth)
    return SparseTensor(stack(at, axis=1), values, sizes)


def _sparse_counts(x, depth, dtype, is_binary, weights=None):
    """Count the integers of each row; the stored entries are in ascending order."""
    _refuse_traces()
    rank, lead = len(x.shape), None
    if rank > 2:  # counts are those along axis 1
        order = [0, *range(2, rank), 1]
        lead, rows = [x.shape[i] for i in order[:-1]], (-1, x.shape[1])
        x = reshape(transpose(x, order), rows)
        weights = None if weights is None else reshape(transpose(weights, order), rows)
    counts = sparse_bincount(
        map_entries(lambda numbers: where(less(numbers, 0), depth, numbers), x),
        None if weights is None else cast(weights, dtype),
        axis=-1,
        minlength=depth,
        maxlength=depth,
        binary_output=is_binary,
    )
    counts = cast(counts, dtype)
    return counts if lead is None else sparse_reshape(counts, (*lead, depth))


def _refuse_traces():
    if active_tracer() is not None:
        fall_back(
            "sparse=True: the number of distinct integers in each row is unknown while "
            "tracing; call the layer outside of traced functions, or use sparse=False"
        )


def encoded_shape(shape: Any, mode: str, depth: int | None) -> Shape:
    """Return the shape of `encoded` for integers of the given shape."""
    shape = tuple(shape)
    if mode == "int":
        return shape
    if mode == "one_hot":
        return (*(shape[:-1] if len(shape) > 1 and shape[-1] == 1 else shape), depth)
    return (*shape[:1], *shape[2:], depth) if len(shape) > 1 else (depth,)
