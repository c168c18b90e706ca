"""Products of sparse and dense tensors, and segment sums."""

from __future__ import annotations

import math
from typing import Any

from tapewright.core import dtypes
from tapewright.core.composite import CompositeTensor
from tapewright.core.errors import DTypeError, InvalidArgumentError, ShapeError
from tapewright.core.hardware import devices
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import Axis, IntLike, TensorLike

from ..array.conversion import cast
from ..array.creation import ones, ones_like, range, zeros_like
from ..array.gather import boolean_mask, embedding_lookup, gather
from ..array.joining import stack
from ..array.segment import (
    known_values,
    unsorted_segment_mean,
    unsorted_segment_sqrt_n,
    unsorted_segment_sum,
)
from ..array.shape import broadcast_to, expand_dims, reshape, transpose
from ..array.sorting import searchsorted, sort, unique
from ..linalg.matmul import affine, matmul_p
from ..math.comparison import greater, greater_equal, less, logical_and, where
from ..math.elementwise import conj, divide_no_nan, sqrt, square
from .coordinates import (
    columns_as_indices,
    columns_of,
    coordinates,
    linear_indices,
    sizes_of,
)
from .elementwise import OP_RULES
from .sparse_tensor import SparseTensor, as_sparse


def sparse_dense_matmul(
    sp_a: Any,
    b: Any,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    name: str | None = None,
) -> Tensor:
    """Multiply a sparse matrix and a dense matrix, in either order; the result is dense.

    Entries may be in any order; entries with equal indices are added. The dense operand
    is not copied: the cost is the number of entries times the columns of the dense
    operand.

    Args:
        sp_a: Sparse matrix, or a dense matrix if ``b`` is sparse.
        b: Dense matrix, or a sparse matrix if ``sp_a`` is dense.
        adjoint_a: If True, use the conjugate transpose of ``sp_a``.
        adjoint_b: If True, use the conjugate transpose of ``b``.

    Raises:
        ShapeError: If the sizes do not match.
        IndexError: If indices are out of range.

    Example:
        >>> x = tw.SparseTensor([[0, 1], [2, 0]], [1.0, 2.0], [3, 2])
        >>> tw.sparse.sparse_dense_matmul(x, [[1.0, 2.0], [3.0, 4.0]]).numpy()
        array([[3., 4.],
               [0., 0.],
               [2., 4.]], dtype=float32)
    """
    who = "sparse_dense_matmul"
    if isinstance(b, SparseTensor) and not isinstance(sp_a, SparseTensor):  # (B* A*)*
        product = sparse_dense_matmul(b, sp_a, not adjoint_b, not adjoint_a)
        return conj(transpose(product))
    sp_a = as_sparse(who, sp_a, "sp_a")
    b = convert_to_tensor(b, dtype_hint=sp_a.dtype)
    shape = sizes_of(who, sp_a)
    if len(shape) != 2 or b.shape.rank != 2:
        raise ShapeError(
            who, f"both must be matrices, sp_a has shape {sp_a.shape}", b=b
        )
    rows, columns, values = *columns_of(sp_a), sp_a.values
    if adjoint_a:
        rows, columns, values, shape = columns, rows, conj(values), shape[::-1]
    if adjoint_b:
        b = conj(transpose(b))
    if shape[1] != b.shape[0]:
        raise ShapeError(
            who, f"inner dimensions must agree: {shape[1]} and {b.shape[0]}", b=b
        )
    # From their numbers, which are checked: a negative row would be passed over.
    rows, columns = coordinates(
        linear_indices(who, stack([rows, columns], axis=1), shape), shape
    )
    return unsorted_segment_sum(
        expand_dims(values, 1) * gather(b, columns), rows, shape[0]
    )


def _matmul(a, b, transpose_a=False, transpose_b=False):
    """`matmul` with one sparse operand: the product of inputs and kernel in a layer."""
    own = (a if isinstance(a, SparseTensor) else b).dtype
    if own.is_complex and (transpose_a or transpose_b):
        raise TypeError(
            "matmul: a complex SparseTensor supports adjoints, not transposes"
        )
    return sparse_dense_matmul(a, b, transpose_a, transpose_b)


def _affine(inputs, kernel, bias):
    return sparse_dense_matmul(inputs, kernel) + bias


OP_RULES[matmul_p.primitive] = _matmul
OP_RULES[affine.primitive] = _affine


# ------------------------------------------------------------- rows of a dense tensor


def segment_sum(
    data: TensorLike,
    indices: TensorLike,
    segment_ids: TensorLike,
    num_segments: IntLike | None = None,
    name: str | None = None,
    sparse_gradient: bool = False,
) -> Tensor:
    """Sum the rows ``data[indices]`` of each segment of sorted ids.

    Args:
        data: Tensor ``[rows, ...]``.
        indices: Rows of ``data`` to reduce, ``[n]``.
        segment_ids: Segment of each of the ``indices``, ``[n]``, sorted.
        num_segments: Number of segments, by default the last id plus one, which is
            unknown in traced functions.
        sparse_gradient: Ignored.

    Raises:
        ValueError: If the ids are not sorted, or not below ``num_segments``.

    Example:
        >>> data = [[1.0], [2.0], [4.0]]
        >>> tw.sparse.segment_sum(data, [0, 2, 1], [0, 0, 2]).numpy()
        array([[5.],
               [0.],
               [2.]], dtype=float32)
    """
    return _segments("segment_sum", unsorted_segment_sum, data, indices, segment_ids,
                     num_segments)  # fmt: skip


def segment_mean(
    data: TensorLike,
    indices: TensorLike,
    segment_ids: TensorLike,
    num_segments: IntLike | None = None,
    name: str | None = None,
    sparse_gradient: bool = False,
) -> Tensor:
    """Mean of the rows ``data[indices]`` of each segment of sorted ids.

    Args:
        data: Tensor ``[rows, ...]``.
        indices: Rows of ``data`` to reduce, ``[n]``.
        segment_ids: Segment of each of the ``indices``, ``[n]``, sorted.
        num_segments: Number of segments, by default the last id plus one, which is
            unknown in traced functions.
        sparse_gradient: Ignored.

    Raises:
        ValueError: If the ids are not sorted, or not below ``num_segments``.

    Example:
        >>> data = [[1.0], [2.0], [4.0]]
        >>> tw.sparse.segment_mean(data, [0, 2, 1], [0, 0, 2]).numpy()
        array([[2.5],
               [0. ],
               [2. ]], dtype=float32)
    """
    return _segments("segment_mean", unsorted_segment_mean, data, indices, segment_ids,
                     num_segments)  # fmt: skip


def segment_sqrt_n(
    data: TensorLike,
    indices: TensorLike,
    segment_ids: TensorLike,
    num_segments: IntLike | None = None,
    name: str | None = None,
    sparse_gradient: bool = False,
) -> Tensor:
    """Sum of the rows of each segment, divided by the square root of their number.

    Args:
        data: Tensor ``[rows, ...]``.
        indices: Rows of ``data`` to reduce, ``[n]``.
        segment_ids: Segment of each of the ``indices``, ``[n]``, sorted.
        num_segments: Number of segments, by default the last id plus one, which is
            unknown in traced functions.
        sparse_gradient: Ignored.

    Raises:
        ValueError: If the ids are not sorted, or not below ``num_segments``.
    """
    return _segments("segment_sqrt_n", unsorted_segment_sqrt_n, data, indices,
                     segment_ids, num_segments)  # fmt: skip


def _segments(who, op, data, indices, segment_ids, num_segments):
    ids = convert_to_tensor(segment_ids)
    if ids.shape.rank != 1:
        raise ShapeError(who, "segment_ids must be [n]", segment_ids=ids)
    if is_known(ids):
        array = known_values(who, "segment_ids", ids)
        if array.size and (int(array[0]) < 0 or bool((array[1:] < array[:-1]).any())):
            raise InvalidArgumentError(
                f"{who}: segment_ids must be sorted and not negative, got {ids}"
            )
    if num_segments is None:
        array = known_values(who, "segment_ids", ids)
        num_segments = int(array[-1]) + 1 if array.size else 0
    return op(gather(data, indices), ids, int(num_segments))


def is_known(x):
    """Return whether a tensor has values: it is neither traced nor mapped."""
    return devices.is_array(x.array)


def embedding_lookup_sparse(
    params: Any,
    sp_ids: SparseTensor,
    sp_weights: SparseTensor | None,
    combiner: str | None = None,
    max_norm: float | None = None,
    name: str | None = None,
    allow_fast_lookup: bool = False,
) -> Tensor:
    """Look up the embeddings of the ids in each row of ``sp_ids``, and combine them.

    The result has the rows up to the last one with an id, a number that is unknown in
    traced functions: there, use `safe_embedding_lookup_sparse`.

    Args:
        params: Embedding table ``[vocabulary, ...]``, or a list of its parts.
        sp_ids: `SparseTensor` of integer ids, in order.
        sp_weights: `SparseTensor` with the weight of each id, at the same indices, or
            None.
        combiner: "sum"; "mean" (the default), the sum divided by the sum of the
            weights; or "sqrtn", the sum divided by the root of the sum of their
            squares.
        max_norm: Largest norm of an embedding, to which longer ones are scaled down, or
            None.
        allow_fast_lookup: Ignored.

    Shapes:
        ``[rows, ...]``; rows without ids are 0.

    Raises:
        ValueError: If ``combiner`` is invalid.
        IndexError: If an id is out of range.

    Example:
        >>> ids = tw.SparseTensor([[0, 0], [0, 1], [2, 0]], [1, 0, 2], [4, 2])
        >>> table = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
        >>> tw.nn.embedding_lookup_sparse(table, ids, None, combiner="sum").numpy()
        array([[4., 6.],
               [0., 0.],
               [5., 6.]], dtype=float32)
    """
    who = "embedding_lookup_sparse"
    rows, ids, weights = _weighted(who, sp_ids, sp_weights)
    array = known_values(who, "sp_ids", rows)
    count = int(array[-1]) + 1 if array.size else 0
    if array.size and bool((array[1:] < array[:-1]).any()):
        raise InvalidArgumentError(
            f"{who}: sp_ids must be sorted row by row; sort them with tw.sparse.reorder"
        )
    return _combined(who, params, rows, ids, weights, combiner, max_norm, count)


def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: SparseTensor,
    sparse_weights: SparseTensor | None = None,
    combiner: str = "mean",
    default_id: IntLike | None = None,
    max_norm: float | None = None,
    name: str | None = None,
    allow_fast_lookup: bool = False,
) -> Tensor:
    """`embedding_lookup_sparse` for all rows, without invalid ids and weights.

    Negative ids and weights of 0 or less are skipped; with ``combiner="sum"`` all
    weights count. Available in traced functions.

    Args:
        embedding_weights: Embedding table ``[vocabulary, ...]``, or a list of its
            parts.
        sparse_ids: `SparseTensor` of integer ids ``[d0, ..., dn]``.
        sparse_weights: `SparseTensor` with the weight of each id, at the same indices,
            or None.
        combiner: "mean", "sum" or "sqrtn"; see `embedding_lookup_sparse`.
        default_id: Id that is used for rows without ids; zeros by default.
        max_norm: Largest norm of an embedding, to which longer ones are scaled down, or
            None.
        allow_fast_lookup: Ignored.

    Shapes:
        ``sparse_ids`` ``[d0, ..., dn]``, the result ``[d0, ..., dn-1, ...]``.

    Example:
        >>> ids = tw.SparseTensor([[0, 0], [0, 1], [2, 0]], [1, -1, 2], [4, 2])
        >>> table = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
        >>> tw.nn.safe_embedding_lookup_sparse(table, ids, default_id=0).numpy()
        array([[3., 4.],
               [1., 2.],
               [5., 6.],
               [1., 2.]], dtype=float32)
    """
    who = "safe_embedding_lookup_sparse"
    if isinstance(sparse_ids, CompositeTensor) and not isinstance(
        sparse_ids, SparseTensor
    ):
        sparse_ids, sparse_weights = [
            x if x is None else x.to_sparse() for x in (sparse_ids, sparse_weights)
        ]
    rows, ids, weights = _weighted(who, sparse_ids, sparse_weights)
    lead = sizes_of(who, sparse_ids)[:-1]
    if len(lead) > 1:
        rows = linear_indices(who, sparse_ids.indices[:, :-1], lead)
    count = math.prod(lead)
    kept = greater_equal(ids, zeros_like(ids))
    if weights is not None and combiner != "sum":
        kept = logical_and(kept, greater(weights, zeros_like(weights)))
    # Dropped entries get the row -1: unsorted segments pass over negative ids.
    rows = where(kept, rows, zeros_like(rows) - 1)
    ids = where(kept, ids, zeros_like(ids))
    combined = _combined(
        who, embedding_weights, rows, ids, weights, combiner, max_norm, count
    )
    if default_id is not None:
        entries = unsorted_segment_sum(ones_like(rows), rows, count)
        default = embedding_lookup(embedding_weights, [int(default_id)], max_norm)
        shape = (count, *[1] * (combined.shape.rank - 1))
        combined = where(reshape(greater(entries, 0), shape), combined, default)
    return (
        reshape(combined, (*lead, *combined.shape[1:])) if len(lead) != 1 else combined
    )


def _weighted(who, sp_ids, sp_weights):
    """Return rows, ids and weights of the entries: ``[n]`` each, or None without weights."""
    if isinstance(sp_ids, CompositeTensor) and not isinstance(sp_ids, SparseTensor):
        rows, ids = sp_ids.value_rowids(), sp_ids.flat_values  # ragged
        weights = None if sp_weights is None else sp_weights.flat_values
    else:
        sp_ids = as_sparse(who, sp_ids, "sp_ids")
        rows, ids = sp_ids.indices[:, 0], sp_ids.values
        weights = (
            None
            if sp_weights is None
            else as_sparse(who, sp_weights, "sp_weights").values
        )
    if not ids.dtype.is_integer:
        raise DTypeError(who, "ids must be integers", ids=ids)
    if weights is not None and tuple(weights.shape) != tuple(ids.shape):
        raise ShapeError(who, "each id must have a weight", ids=ids, weights=weights)
    return rows, ids, weights


def _combined(who, params, rows, ids, weights, combiner, max_norm, count):
    combiner = "mean" if combiner is None else combiner
    if combiner not in ("mean", "sqrtn", "sum"):
        raise ValueError(
            f"{who}: combiner must be one of 'mean', 'sqrtn' or 'sum', got {combiner}"
        )
    vectors = embedding_lookup(params, ids, max_norm)
    if weights is None:
        ops = {
            "sum": unsorted_segment_sum,
            "mean": unsorted_segment_mean,
            "sqrtn": unsorted_segment_sqrt_n,
        }
        return ops[combiner](vectors, rows, count)
    weights = cast(weights, vectors.dtype)
    behind = [1] * (vectors.shape.rank - 1)
    total = unsorted_segment_sum(
        vectors * reshape(weights, (weights.shape[0], *behind)), rows, count
    )
    if combiner == "sum":
        return total
    sums = weights if combiner == "mean" else square(weights)
    sums = unsorted_segment_sum(sums, rows, count)
    # As in TensorFlow: 0 weights give 0, not NaN.
    sums = sums if combiner == "mean" else sqrt(sums)
    return divide_no_nan(total, reshape(sums, (count, *behind)))


# ---------------------------------------------------------------------------- counting


def bincount(
    values: Any,
    weights: Any = None,
    axis: Axis | None = 0,
    minlength: IntLike | None = None,
    maxlength: IntLike | None = None,
    binary_output: bool = False,
    name: str | None = None,
) -> SparseTensor:
    """Count each number in ``values``; the result is sparse.

    Args:
        values: Integers, not negative, dense or sparse.
        weights: Weight of each value, summed instead of ones, or None.
        axis: 0 to count over all values, -1 to count in each row of a matrix.
        minlength: Smallest size of the result.
        maxlength: Largest size of the result; greater or equal values are ignored.
        binary_output: If True, return 1 for each number that occurs.

    Raises:
        InvalidArgumentError: If a value is negative.

    Example:
        >>> counts = tw.sparse.bincount([[1, 2, 1], [4, 4, 4]], axis=-1)
        >>> counts.indices.numpy().tolist(), counts.values.numpy()
        ([[0, 1], [0, 2], [1, 4]], array([2, 1, 3], dtype=int32))
    """
    who = "bincount"
    sparse = isinstance(values, SparseTensor)
    numbers = values.values if sparse else convert_to_tensor(values)
    if not numbers.dtype.is_integer:
        raise DTypeError(who, "values must be integers", values=numbers)
    if weights is not None:
        if binary_output:
            raise InvalidArgumentError(
                f"{who}: weights must be None with binary_output=True"
            )
        weights = _weights_of(who, weights, numbers)
    shape = sizes_of(who, values) if sparse else tuple(numbers.shape)
    if axis not in (0, -1, None) or len(shape) > 2 or not shape:
        raise InvalidArgumentError(
            f"{who}: axis must be 0 or -1, and values a vector or matrix, got axis={axis} "
            f"and shape {tuple(shape)}"
        )
    by_rows = axis == -1 and len(shape) == 2
    if sparse:
        rows = values.indices[:, 0]
    else:
        rows = range(shape[0], dtype=dtypes.int64)
        rows = (
            reshape(broadcast_to(expand_dims(rows, 1), shape), [-1])
            if by_rows
            else rows
        )
    dtype = numbers.dtype
    numbers = cast(reshape(numbers, [-1]), dtypes.int64)
    array = known_values(who, "values", numbers)
    if array.size and int(array.min()) < 0:
        raise InvalidArgumentError(f"{who}: values must not be negative, got {values}")
    size = max(int(array.max()) + 1 if array.size else 0, int(minlength or 0))
    if maxlength is not None:
        kept = less(numbers, convert_to_tensor(int(maxlength), dtype=dtypes.int64))
        numbers, size = boolean_mask(numbers, kept), min(size, int(maxlength))
        rows = boolean_mask(rows, kept) if by_rows else rows
        weights = None if weights is None else boolean_mask(weights, kept)
    flat = rows * size + numbers if by_rows else numbers
    full = (shape[0], size) if by_rows else (size,)
    distinct = unique(sort(flat)).y
    positions = searchsorted(distinct, flat)
    if weights is None:
        weights = ones(flat.shape, dtype)
    counts = unsorted_segment_sum(weights, positions, distinct.shape[0])
    counts = ones_like(counts) if binary_output else counts
    return SparseTensor(
        columns_as_indices(coordinates(distinct, full), distinct), counts, full
    )


def _weights_of(who, weights, numbers):
    """Return the weights of the numbers, as a vector."""
    weights = weights.values if isinstance(weights, SparseTensor) else weights
    weights = convert_to_tensor(weights)
    if tuple(weights.shape) != tuple(numbers.shape):
        what = "weights must be of the shape of values"
        raise ShapeError(who, what, values=numbers, weights=weights)
    return reshape(weights, [-1])
