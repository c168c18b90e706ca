"""`keras.ops` of NumPy that select, sort, count and compare: `take`, `where`, `sort`, ..."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index
from typing import Any, overload

import numpy as np

from tapewright.compiler.control_flow.while_loop import while_loop
from tapewright.core.dtypes import int32
from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.hardware import devices
from tapewright.core.rules import normalize_axis
from tapewright.core.tensor import Tensor, TensorSpec, convert_to_tensor
from tapewright.core.typing import Axis, TensorLike
from tapewright.ops.array import indexing, segment, sorting
from tapewright.ops.array import shape as shapes
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.gather import gather
from tapewright.ops.math import counting
from tapewright.ops.math.comparison import (
    equal,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    not_equal,
)
from tapewright.ops.math.comparison import where as _where
from tapewright.ops.math.elementwise import abs, floordiv, floormod
from tapewright.ops.math.reduction import (
    reduce_any,
    reduce_max,
    reduce_min,
    reduce_sum,
)

from .arrays import moveaxis, pad, ravel
from .creation import linspace, ones_like
from .operation import ANY, REALS, OperationFamily
from .promotion import (
    common_dtype,
    kind_of,
    promote,
    to_bool,
    to_floating,
    to_numbers,
)

__all__ = [
    "argpartition",
    "argsort",
    "bincount",
    "diff",
    "digitize",
    "gcd",
    "get_item",
    "histogram",
    "in_top_k",
    "isin",
    "lcm",
    "nonzero",
    "searchsorted",
    "select",
    "sort",
    "take",
    "take_along_axis",
    "top_k",
    "trapezoid",
    "unique",
    "unravel_index",
    "where",
]

operation = OperationFamily(__name__, "numpy")


# ------------------------------------------------------------------------- picking


def _specs_of_nonzero(x):
    return tuple([TensorSpec([None], int32)] * max(len(x.shape), 1))


def _specs_of_where(condition, x1=None, x2=None):
    return _specs_of_nonzero(condition) if x1 is None and x2 is None else None


@overload
def where(condition: TensorLike) -> tuple[Tensor, ...]: ...
@overload
def where(condition: TensorLike, x1: TensorLike, x2: TensorLike) -> Tensor: ...
@operation(call="condition x1 x2", specs=_specs_of_where, same_as="where", kinds="b")
def where(
    condition: TensorLike, x1: TensorLike | None = None, x2: TensorLike | None = None
) -> Any:
    """Select entries of two tensors by a condition; without them, return `nonzero`.

    Args:
        condition: Boolean tensor.
        x1: Values where ``condition`` is true.
        x2: Values where ``condition`` is false.

    Shapes:
        All three broadcast.

    Raises:
        ValueError: If only one of ``x1`` and ``x2`` is given.

    Example:
        >>> keras.ops.where([True, False], [1, 2], 0.5).numpy()
        array([1. , 0.5], dtype=float32)
    """
    condition = cast(condition, "bool")
    if x1 is None and x2 is None:
        return nonzero(condition)
    if x1 is None or x2 is None:
        raise ValueError("where: x1 and x2 must both be given, or neither, got one")
    return _where(condition, *promote(x1, x2))


@operation(specs=_specs_of_nonzero)
def nonzero(x: TensorLike) -> tuple[Tensor, ...]:
    """Return the coordinates of the entries that are not 0.

    Args:
        x: Input tensor.

    Returns:
        Tuple with an int32 vector for each axis.

    Example:
        >>> rows, columns = keras.ops.nonzero([[0, 1], [2, 0]])
        >>> rows.numpy(), columns.numpy()
        (array([0, 1], dtype=int32), array([1, 0], dtype=int32))
    """
    indices = _where(cast(x, "bool"))
    return tuple([cast(indices[:, i], int32) for i in range(indices.shape[-1])])


@operation(call="condlist choicelist default")
def select(
    condlist: Sequence[TensorLike],
    choicelist: Sequence[TensorLike],
    default: TensorLike = 0,
) -> Tensor:
    """Select entries from a list of tensors by a list of conditions.

    Args:
        condlist: Boolean tensors; the first one that is true selects the tensor.
        choicelist: Tensor for each condition.
        default: Value where no condition is true.

    Shapes:
        Conditions and choices broadcast.

    Raises:
        ValueError: If the lists differ in length.

    Example:
        >>> x = tw.convert_to_tensor([1, 5, 9])
        >>> keras.ops.select([x < 3, x < 7], [x, 10 * x], default=0).numpy()
        array([ 1, 50,  0], dtype=int32)
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueError(
            "select: condlist and choicelist must have the same length, got "
            f"{len(condlist)} and {len(choicelist)}"
        )
    *choices, result = promote(*choicelist, default)
    for condition, choice in zip(condlist[::-1], choices[::-1]):
        result = _where(to_bool(condition), choice, result)
    return result


@operation(call="x key")
def get_item(x: TensorLike, key: Any) -> Tensor:
    """Index a tensor: ``x[key]``.

    Args:
        x: Input tensor.
        key: Int, slice or tensor, or a tuple of these.

    Raises:
        IndexError: If an index is out of range.

    Example:
        >>> keras.ops.get_item([[1, 2], [3, 4]], (0, slice(1, 2))).numpy()
        array([2], dtype=int32)
    """
    return indexing.getitem(convert_to_tensor(x), key)


@operation(call="x indices", same_as="gather", kinds=ANY)
def take(x: TensorLike, indices: TensorLike, axis: Axis | None = None) -> Tensor:
    """Take slices of a tensor along an axis.

    Args:
        x: Input tensor.
        indices: Integers, of any shape; negative indices count from the end.
        axis: Axis to take from; None flattens ``x``.

    Shapes:
        The shape of ``x``, with the axis replaced by the shape of ``indices``.

    Raises:
        IndexError: If an index is out of range.

    Example:
        >>> keras.ops.take([10, 20, 30], [0, -1]).numpy()
        array([10, 30], dtype=int32)
    """
    x = convert_to_tensor(x)
    x, axis = (ravel(x), 0) if axis is None else (x, axis)
    (axis,) = normalize_axis("take", axis, x.ndim)
    return gather(x, _wrap_negative("take", indices, x.shape[axis]), axis=axis)


def _wrap_negative(who, indices, size):
    indices = convert_to_tensor(indices)
    if not indices.dtype.is_integer:
        raise TypeError(f"{who}: indices must be integers, got {indices.dtype.name}")
    array = indices.array
    if devices.is_array(array) and devices.array_module(type(array)) is np:
        if not array.size or array.min() >= 0:  # known to need no change
            return indices
    return _where(less(indices, 0), indices + cast(size, indices.dtype), indices)


@operation(call="x indices", same_as="take_along_axis", kinds=ANY)
def take_along_axis(
    x: TensorLike, indices: TensorLike, axis: Axis | None = None
) -> Tensor:
    """Take entries of each row along an axis, at separate indices for each row.

    Args:
        x: Input tensor.
        indices: Integers with as many axes as ``x``.
        axis: Axis to take along; None flattens ``x``.

    Shapes:
        The shape of ``indices``; the axes other than ``axis`` broadcast.

    Raises:
        IndexError: If an index is out of range.

    Example:
        >>> keras.ops.take_along_axis([[1, 2], [3, 4]], [[1], [0]], axis=1).numpy()
        array([[2],
               [3]], dtype=int32)
    """
    x, indices = convert_to_tensor(x), convert_to_tensor(indices)
    if axis is None:
        return take(ravel(x), ravel(indices), 0)
    if x.ndim != indices.ndim:
        problem = "indices must have as many axes as x"
        raise ShapeError("take_along_axis", problem, x=x, indices=indices)
    x, indices = moveaxis(x, axis, -1), moveaxis(indices, axis, -1)
    lead = [_common_size(m, n) for m, n in zip(x.shape[:-1], indices.shape[:-1])]
    x = shapes.broadcast_to(x, [*lead, x.shape[-1]])
    indices = shapes.broadcast_to(indices, [*lead, indices.shape[-1]])
    indices = _wrap_negative("take_along_axis", indices, x.shape[-1])
    return moveaxis(gather(x, indices, batch_dims=len(lead)), -1, axis)


def _common_size(m, n):
    """Return the size to which two sizes broadcast."""
    return n if type(m) is int and m == 1 else m


@operation
def unravel_index(indices: TensorLike, shape: Sequence[int]) -> tuple[Tensor, ...]:
    """Convert flat indices to coordinates in a shape.

    Args:
        indices: Flat indices, integers; negative indices count from the end. The range
            is not checked.
        shape: Shape of the indexed array.

    Returns:
        Tuple with a tensor, in the shape of ``indices``, for each axis.

    Example:
        >>> rows, columns = keras.ops.unravel_index([1, 5], (2, 3))
        >>> rows.numpy(), columns.numpy()
        (array([0, 1], dtype=int32), array([1, 2], dtype=int32))
    """
    indices, result = convert_to_tensor(indices), []
    size = math.prod(shape)
    indices = _where(less(indices, 0), indices + size, indices)
    for n in reversed(shape):
        result.append(floormod(indices, n))
        indices = floordiv(indices, n)
    return tuple(result[::-1])


# ------------------------------------------------------------------------ ordering


@operation(same_as="sort", kinds=REALS)
def sort(x: TensorLike, axis: Axis | None = -1) -> Tensor:
    """Sort the entries along an axis, in ascending order.

    Args:
        x: Input tensor.
        axis: Axis to sort along; None flattens ``x``.

    Example:
        >>> keras.ops.sort([[3, 1], [2, 5]], axis=0).numpy()
        array([[2, 1],
               [3, 5]], dtype=int32)
    """
    x, axis = _flatten_for_none(x, axis)
    if x.dtype.is_bool:
        return cast(sorting.sort(to_numbers(x), axis), "bool")
    return sorting.sort(x, axis)


@operation(same_as="argsort", kinds=REALS)
def argsort(x: TensorLike, axis: Axis | None = -1) -> Tensor:
    """Return the int32 indices that sort the entries along an axis.

    Equal entries keep their order.

    Args:
        x: Input tensor.
        axis: Axis to sort along; None flattens ``x``.

    Example:
        >>> keras.ops.argsort([3, 1, 2]).numpy()
        array([1, 2, 0], dtype=int32)
    """
    x, axis = _flatten_for_none(x, axis)
    return sorting.argsort(to_numbers(x), axis)


def _flatten_for_none(x, axis):
    """Return ``(x, axis)``, with ``x`` flattened if ``axis`` is None or ``x`` is a scalar."""
    x = convert_to_tensor(x)
    return (x, axis) if x.ndim and axis is not None else (ravel(x), -1)


@operation
def argpartition(x: TensorLike, kth: int, axis: Axis | None = -1) -> Tensor:
    """Return int32 indices that move the ``kth`` smallest entry to its sorted position.

    They are the indices of `argsort`, which sorts the other entries as well.

    Args:
        x: Input tensor.
        kth: Position in sorted order.
        axis: Axis to partition along; None flattens ``x``.

    Raises:
        ValueError: If ``kth`` is out of range.
    """
    x, axis = _flatten_for_none(x, axis)
    (index,) = normalize_axis("argpartition", axis, x.shape.rank)
    size = x.shape[index]
    if size is not None and not -size <= kth < size:
        raise InvalidArgumentError(
            f"argpartition: kth must be from {-size} to {size - 1} for an axis of size "
            f"{size}, got {kth}"
        )
    return argsort(x, axis)


@operation(module="math")
def top_k(x: TensorLike, k: int, sorted: bool = True) -> tuple[Tensor, Tensor]:
    """Return the ``k`` largest entries along the last axis, and their indices.

    Args:
        x: Input tensor ``[..., n]``.
        k: Number of entries.
        sorted: Ignored; the entries are always in descending order.

    Shapes:
        ``[..., n]`` to ``[..., k]``, both.

    Returns:
        ``(values, indices)``; the indices are int32.

    Example:
        >>> values, indices = keras.ops.top_k([1.0, 4.0, 2.0], k=2)
        >>> values.numpy(), indices.numpy()
        (array([4., 2.], dtype=float32), array([1, 2], dtype=int32))
    """
    return sorting.top_k(to_numbers(x), k, sorted)


@operation(call="targets predictions", module="math", same_as="in_top_k", kinds="iu")
def in_top_k(targets: TensorLike, predictions: TensorLike, k: int) -> Tensor:
    """Test whether the target class is among the ``k`` best predictions of each example.

    Args:
        targets: Classes, integers ``[batch]``.
        predictions: Scores ``[batch, classes]``.
        k: Number of best predictions.

    Returns:
        Booleans ``[batch]``.

    Example:
        >>> keras.ops.in_top_k([0, 1], [[0.1, 0.9], [0.1, 0.9]], k=1).numpy()
        array([False,  True])
    """
    return sorting.in_top_k(targets, predictions, k)


@operation(call="sorted_sequence values", class_name="SearchSorted")
def searchsorted(
    sorted_sequence: TensorLike, values: TensorLike, side: str = "left"
) -> Tensor:
    """Return the int32 indices at which values would be inserted into a sorted vector.

    Args:
        sorted_sequence: Vector ``[n]`` in ascending order.
        values: Values to insert, of any shape.
        side: "left" counts the smaller entries, "right" the smaller and equal entries.

    Shapes:
        The result has the shape of ``values``.

    Raises:
        ValueError: If ``side`` is unknown.

    Example:
        >>> keras.ops.searchsorted([1, 3, 5], [0, 3, 6]).numpy()
        array([0, 1, 3], dtype=int32)
    """
    sorted_sequence = convert_to_tensor(sorted_sequence)
    if sorted_sequence.ndim != 1:
        problem = "sorted_sequence must be a vector; vectorized_map takes several"
        raise ShapeError("searchsorted", problem, sorted_sequence=sorted_sequence)
    sorted_sequence, values = promote(sorted_sequence, values)
    return sorting.searchsorted(sorted_sequence, values, side)


@operation(call="x bins")
def digitize(x: TensorLike, bins: TensorLike) -> Tensor:
    """Return the int32 index of the bin of each entry: i if ``bins[i - 1] <= x < bins[i]``.

    Args:
        x: Input tensor.
        bins: Edges of the bins, ``[n]``, in ascending order.

    Shapes:
        The result has the shape of ``x``.

    Example:
        >>> keras.ops.digitize([0.5, 1.5, 2.5], [1.0, 2.0]).numpy()
        array([0, 1, 2], dtype=int32)
    """
    return searchsorted(bins, x, "right")


def _specs_of_unique(
    x,
    sorted=True,
    return_index=False,
    return_inverse=False,
    return_counts=False,
    axis=None,
    size=None,
    fill_value=None,
):
    dims, inverse = [size], x.shape
    if axis is not None:
        (at,) = normalize_axis("unique", axis, len(x.shape))
        dims, inverse = [*x.shape[:at], size, *x.shape[at + 1 :]], x.shape[at : at + 1]
    shapes = [s for asked, s in (
        (return_index, [size]), (return_inverse, inverse), (return_counts, [size]),
    ) if asked]  # fmt: skip
    result = [TensorSpec(dims, x.dtype), *[TensorSpec(s, int32) for s in shapes]]
    return tuple(result) if shapes else result[0]


@operation(specs=_specs_of_unique)
def unique(
    x: TensorLike,
    sorted: bool = True,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: Axis | None = None,
    size: int | None = None,
    fill_value: TensorLike | None = None,
) -> Any:
    """Return the unique entries of a tensor.

    Args:
        x: Input tensor.
        sorted: If True, return them in ascending order; else in the order of their
            first occurrence.
        return_index: If True, also return the index of the first occurrence of each
            entry.
        return_inverse: If True, also return the index among the unique entries of each
            entry of ``x``.
        return_counts: If True, also return the number of occurrences of each entry.
        axis: Axis along which slices are compared; None flattens ``x``.
        size: Length of the result, which is padded or truncated; None for all entries.
        fill_value: Value of the padding, 0 by default.

    Returns:
        The unique entries; a tuple of them and the further results, if there are any.

    Example:
        >>> keras.ops.unique([3, 1, 3]).numpy()
        array([1, 3], dtype=int32)
        >>> values, counts = keras.ops.unique([3, 1, 3], return_counts=True)
        >>> counts.numpy()
        array([1, 2], dtype=int32)
    """
    x = convert_to_tensor(x)
    segment.known_values("unique", "x", x)
    flat, along = (ravel(x), 0) if axis is None else (x, axis)
    _, first, inverse, counts = np.unique(
        devices.to_numpy(flat.array), return_index=True, return_inverse=True,
        return_counts=True, axis=along, equal_nan=False,
    )  # fmt: skip
    inverse = inverse.reshape(x.shape if axis is None else -1)
    if not sorted:  # in the order in which they come
        order = np.argsort(first)
        first, counts = first[order], counts[order]
        inverse = np.argsort(order)[inverse]
    result = gather(flat, convert_to_tensor(first, int32), axis=along)
    if size is not None:
        result = _resize(result, size, along, 0 if fill_value is None else fill_value)
        first = np.append(first, np.ones(size, int))[:size]
        counts = np.append(counts, np.zeros(size, int))[:size]
    wanted = (return_index, first), (return_inverse, inverse), (return_counts, counts)
    others = [convert_to_tensor(array, int32) for asked, array in wanted if asked]
    return (result, *others) if others else result


def _resize(x, size, axis, fill):
    missing = size - x.shape[axis]
    if missing <= 0:
        return gather(x, np.arange(size), axis=axis)
    widths = [(0, missing if i == axis % x.ndim else 0) for i in range(x.ndim)]
    return pad(x, widths, constant_values=fill)


@operation(call="x1 x2", class_name="IsIn")
def isin(
    x1: TensorLike, x2: TensorLike, assume_unique: bool = False, invert: bool = False
) -> Tensor:
    """Test whether each entry of a tensor is among the entries of another.

    Args:
        x1: Entries to test.
        x2: Entries to search.
        assume_unique: Ignored.
        invert: If True, negate the result.

    Shapes:
        The result has the shape of ``x1``.

    Example:
        >>> keras.ops.isin([1, 2, 3], [2, 9]).numpy()
        array([False,  True, False])
    """
    x1, x2 = promote(x1, x2)
    result = reduce_any(equal(x1[..., None], ravel(x2)), -1)
    return logical_not(result) if invert else result


# ------------------------------------------------------------------------- counting


def _specs_of_bincount(x, weights=None, minlength=0, sparse=False):
    dtype = int32 if weights is None else common_dtype(x.dtype, kind_of(weights))
    return TensorSpec([*x.shape[:-1], None], dtype)


@operation(specs=_specs_of_bincount)
def bincount(
    x: TensorLike,
    weights: TensorLike | None = None,
    minlength: int = 0,
    sparse: bool = False,
) -> Tensor:
    """Count the occurrences of each number 0, 1, ... in each row of integers.

    Args:
        x: Integers ``[n]`` or ``[batch, n]``, not negative.
        weights: Weights in the shape of ``x`` that are summed instead, or None.
        minlength: Least length of the result, whose length is the largest number plus
            1.
        sparse: Must be False; there are no sparse tensors here.

    Shapes:
        ``[n]`` to ``[length]``, or ``[batch, n]`` to ``[batch, length]``.

    Raises:
        ValueError: If ``x`` holds negative numbers, has another rank, or ``sparse`` is
            True.

    Example:
        >>> keras.ops.bincount([1, 1, 3]).numpy()
        array([0, 2, 0, 1], dtype=int32)
    """
    if sparse:
        raise ValueError(
            "bincount: sparse must be False, got True; there are no sparse tensors"
        )
    x = convert_to_tensor(x)
    if minlength < 0:
        raise ValueError(f"bincount: minlength must be 0 or more, got {minlength}")
    if not (x.dtype.is_integer or x.dtype.is_bool) or x.ndim not in (1, 2):
        raise ShapeError("bincount", "x must be integers, a vector or a matrix", x=x)
    if weights is None:
        return counting.bincount(cast(x, int32), minlength=minlength, axis=-1)
    dtype = common_dtype(x.dtype, kind_of(weights))
    result = counting.bincount(
        cast(x, int32), to_numbers(weights), minlength=minlength, axis=-1
    )
    return cast(result, dtype)


@operation
def histogram(
    x: TensorLike, bins: int = 10, range: tuple[float, float] | None = None
) -> tuple[Tensor, Tensor]:
    """Compute the histogram of a vector with bins of equal width.

    Args:
        x: Vector.
        bins: Number of bins.
        range: Ends ``(low, high)`` of the bins, by default the extremes of ``x``;
            entries outside are not counted.

    Shapes:
        ``counts`` ``[bins]``, ``edges`` ``[bins + 1]``, both in the dtype of ``x``.

    Returns:
        ``(counts, edges)``.

    Raises:
        ValueError: If ``x`` is not a vector, ``bins`` is below 1, or ``range`` descends or
            is not finite.

    Example:
        >>> counts, edges = keras.ops.histogram([0.0, 1.0, 4.0], bins=2)
        >>> counts.numpy(), edges.numpy()
        (array([2., 1.], dtype=float32), array([0., 2., 4.], dtype=float32))
    """
    x, bins = convert_to_tensor(x), index(bins)
    if x.ndim != 1:
        raise ValueError(f"histogram: x must be a vector, got shape {tuple(x.shape)}")
    if bins < 1:
        raise ValueError(f"histogram: bins must be a positive integer, got {bins}")
    pair = isinstance(range, tuple) and len(range) == 2
    if range is not None and not (pair and -np.inf < range[0] <= range[1] < np.inf):
        raise ValueError(f"histogram: range must be (low, high), finite, got {range}")
    low, high = (reduce_min(x), reduce_max(x)) if range is None else range
    edges = cast(linspace(low, high, bins + 1), x.dtype)
    indices = sorting.searchsorted(edges[1:-1], x, "right")
    low, high = cast(low, x.dtype), cast(high, x.dtype)
    inside = logical_and(greater_equal(x, low), less_equal(x, high))
    counts = segment.unsorted_segment_sum(cast(inside, x.dtype), indices, bins)
    return counts, edges


# ---------------------------------------------------------------- along an axis, pairs


@operation
def diff(a: TensorLike, n: int = 1, axis: Axis = -1) -> Tensor:
    """Compute the differences of neighboring entries along an axis.

    Args:
        a: Input tensor.
        n: Number of times to take the differences.
        axis: Axis to take the differences along, which becomes shorter by ``n``.

    Raises:
        ValueError: If ``n`` is negative.

    Example:
        >>> keras.ops.diff([1, 4, 9]).numpy()
        array([3, 5], dtype=int32)
    """
    a = convert_to_tensor(a)
    if n < 0 or not a.ndim:
        raise ValueError(
            f"diff: n must be 0 or more and a have an axis, got {n} and {a}"
        )
    (axis,) = normalize_axis("diff", axis, a.ndim)
    lead = (slice(None),) * axis
    for _ in range(n):
        after, before = a[(*lead, slice(1, None))], a[(*lead, slice(None, -1))]
        a = not_equal(after, before) if a.dtype.is_bool else after - before
    return a


@operation
def trapezoid(
    y: TensorLike, x: TensorLike | None = None, dx: float = 1.0, axis: Axis = -1
) -> Tensor:
    """Integrate along an axis by the trapezoidal rule.

    Args:
        y: Values of the function.
        x: Points of the values, or None for points ``dx`` apart.
        dx: Distance between points if ``x`` is None.
        axis: Axis to integrate along, which the result lacks.

    Example:
        >>> keras.ops.trapezoid([1.0, 2.0, 3.0], x=[0.0, 1.0, 3.0]).numpy()
        np.float32(6.5)
    """
    y = moveaxis(to_floating(y), axis, -1)
    if x is None:
        widths = cast(dx, y.dtype)
    else:
        x = cast(x, y.dtype)
        widths = diff(moveaxis(x, axis, -1) if x.ndim > 1 else x)
    return reduce_sum((y[..., 1:] + y[..., :-1]) * widths, -1) / 2.0


@operation(call="x1 x2")
def gcd(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Element-wise greatest common divisor of integers.

    Args:
        x1: First tensor of integers.
        x2: Second tensor of integers; broadcasts with ``x1``.

    Raises:
        TypeError: If a tensor does not hold integers.

    Example:
        >>> keras.ops.gcd([4, 9], 6).numpy()
        array([2, 3], dtype=int32)
    """
    x1, x2 = _check_integers("gcd", x1, x2)
    dims = (x1 + x2).shape
    start = [abs(shapes.broadcast_to(x, dims)) for x in (x1, x2)]

    def step(a, b):
        safe = _where(equal(b, 0), ones_like(b), b)
        return _where(equal(b, 0), a, b), _where(equal(b, 0), b, floormod(a, safe))

    return while_loop(lambda a, b: reduce_any(not_equal(b, 0)), step, tuple(start))[0]


def _check_integers(who, *values):
    values = promote(*values)
    if not values[0].dtype.is_integer:
        raise TypeError(
            f"{who}: x1 and x2 must be integers, got {values[0].dtype.name}"
        )
    return values


@operation(call="x1 x2")
def lcm(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Element-wise least common multiple of integers.

    Args:
        x1: First tensor of integers.
        x2: Second tensor of integers; broadcasts with ``x1``.

    Raises:
        TypeError: If a tensor does not hold integers.

    Example:
        >>> keras.ops.lcm([4, 9], 6).numpy()
        array([12, 18], dtype=int32)
    """
    x1, x2 = _check_integers("lcm", x1, x2)
    divisor = gcd(x1, x2)
    safe = _where(equal(divisor, 0), ones_like(divisor), divisor)
    return abs(floordiv(x1, safe) * x2)
