"""Ops of order: sorting, top k, unique entries, positions in sorted rows.

Equal entries keep their order, as in TensorFlow, and NaN comes last. Gradients pass
through `sort` and the values of `top_k`, back to the entries they came from.
"""

from __future__ import annotations

from typing import NamedTuple

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
from tapewright.core.rules import (
    all_mapped,
    batch_along_axis,
    batch_leading,
    check_choice,
    checked_broadcast,
    normalize_axis,
    same_dtype,
)
from tapewright.core.tensor import Tensor, TensorSpec, convert_to_tensor
from tapewright.core.text import is_text, zeros
from tapewright.core.typing import Axis, DTypeLike, IntLike, TensorLike

from ..math.comparison import less, less_equal
from ..math.reduction import reduce_all
from .conversion import cast
from .gather import index_op
from .shape import reshape

__all__ = [
    "argsort",
    "in_top_k",
    "invert_permutation",
    "is_non_decreasing",
    "is_strictly_increasing",
    "searchsorted",
    "sort",
    "top_k",
    "unique",
    "unique_with_counts",
]


class TopKV2(NamedTuple):
    """The result of `top_k`."""

    values: Tensor
    indices: Tensor


class Unique(NamedTuple):
    """The result of `unique`: the distinct entries, and the index of each input among them."""

    y: Tensor
    idx: Tensor


class UniqueWithCounts(NamedTuple):
    """The result of `unique_with_counts`."""

    y: Tensor
    idx: Tensor
    count: Tensor  # type: ignore[assignment]  (TensorFlow's name; hides tuple.count)


# ---------------------------------------------------------------------------- sorting


@primitive(kinds="biufcO", batch=batch_along_axis)
def _sort(xp, values: TensorLike, axis: Axis = -1, descending: bool = False):
    if not descending:
        return xp.sort(_sortable(values), axis=axis)
    if is_text(values.dtype):
        return xp.flip(xp.sort(_sortable(values), axis=axis), axis)
    return _opposite(xp, xp.sort(_opposite(xp, _sortable(values)), axis=axis))


@primitive(
    type_name="ArgSort", kinds="biufcO", no_gradient=True, batch=batch_along_axis
)
def _argsort(xp, values: TensorLike, axis: Axis = -1, descending: bool = False):
    values = _opposite(xp, _sortable(values)) if descending else _sortable(values)
    return xp.argsort(values, axis=axis, kind="stable").astype(xp.int32)


def _sortable(values):
    if values.dtype.kind == "c" or not values.ndim:
        raise TypeError("there is no order")
    return values


def _opposite(xp, values):
    """Return values that sort in the opposite order; applied twice, it is the identity."""
    if is_text(values.dtype):
        _, ranks = xp.unique(values, return_inverse=True)
        return -ranks.reshape(values.shape)
    return xp.negative(values) if values.dtype.kind == "f" else xp.invert(values)


@_sort.infer
def _(values, axis, descending):
    return _sorted_spec("sort", values, axis, values.dtype)


@_argsort.infer
def _(values, axis, descending):
    return _sorted_spec("argsort", values, axis, dtypes.int32)


def _sorted_spec(who, values, axis, dtype):
    normalize_axis(who, axis, values.shape.rank)
    if values.dtype.is_complex:
        raise DTypeError(who, "complex numbers have no order", values=values)
    return TensorSpec(values.shape, dtype)


@_sort.vjp("values")
def _(g, values, values_shape, axis, descending):
    order = _argsort(values, axis, descending)
    return place_along_axis(g, order, size=values_shape[axis], axis=axis)


def sort(
    values: TensorLike,
    axis: Axis = -1,
    direction: str = "ASCENDING",
    name: str | None = None,
) -> Tensor:
    """Sort the entries along an axis.

    Equal entries keep their order; NaN comes last in both directions. Gradients go back
    to the sorted entries.

    Args:
        values: Input tensor.
        axis: Axis to sort along.
        direction: "ASCENDING" or "DESCENDING".

    Raises:
        ValueError: If ``direction`` is unknown.
        TypeError: If ``values`` are complex.

    Example:
        >>> tw.sort([3.0, 1.0, 2.0]).numpy()
        array([1., 2., 3.], dtype=float32)
        >>> tw.sort([[3, 1], [2, 5]], axis=0, direction="DESCENDING").numpy()
        array([[3, 5],
               [2, 1]], dtype=int32)
    """
    return _sort(values, axis, _descends("sort", direction))


def argsort(
    values: TensorLike,
    axis: Axis = -1,
    direction: str = "ASCENDING",
    stable: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the int32 indices that sort a tensor along an axis.

    Equal entries keep their order, with ``stable`` and without.

    Args:
        values: Input tensor.
        axis: Axis to sort along.
        direction: "ASCENDING" or "DESCENDING".
        stable: Ignored; the order is always stable.

    Raises:
        ValueError: If ``direction`` is unknown.

    Example:
        >>> tw.argsort([3.0, 1.0, 2.0], direction="DESCENDING").numpy()
        array([0, 2, 1], dtype=int32)
    """
    return _argsort(values, axis, _descends("argsort", direction))


def _descends(who, direction):
    check_choice(who, "direction", direction, ("ASCENDING", "DESCENDING"))
    return direction == "DESCENDING"


# ------------------------------------------------------------------- the largest entries


@primitive(type_name="TopKV2", multiple=True, batch=batch_leading)
def _top_k(xp, input: TensorLike, k: int = 1, index_type: DTypeLike = "int32"):
    _check_k(input, k)
    indices = xp.argsort(_opposite(xp, input), axis=-1, kind="stable")[..., :k]
    return xp.take_along_axis(input, indices, axis=-1), indices.astype(index_type)


@_top_k.kernel_for("numpy")
def _(xp, input, *, k, index_type):
    _check_k(input, k)
    keys = _opposite(np, input)
    if 0 < 8 * k < keys.shape[-1]:
        indices = _smallest(keys, k)
    else:
        indices = np.argsort(keys, axis=-1, kind="stable")[..., :k]
    return np.take_along_axis(input, indices, axis=-1), indices.astype(index_type)


def _check_k(input, k):
    if not 0 <= k <= input.shape[-1] or input.dtype.kind == "c":
        raise InvalidArgumentError("k does not fit")


def _smallest(keys, k):
    """Return the indices of the ``k`` smallest of each row, of equals the first, sorted."""
    rows = keys.reshape(-1, keys.shape[-1])
    picked = rows <= np.partition(rows, k - 1, axis=-1)[:, k - 1 : k]
    tied = np.count_nonzero(picked, axis=-1) != k  # with entries left out; NaN
    if tied.any():
        first = np.argsort(rows[tied], axis=-1, kind="stable")[:, :k]
        instead = np.zeros((len(first), rows.shape[-1]), bool)
        np.put_along_axis(instead, first, True, axis=-1)
        picked[tied] = instead
    indices = (np.flatnonzero(picked) % rows.shape[-1]).reshape(-1, k)
    picked_keys = np.take_along_axis(rows, indices, axis=-1)
    order = np.argsort(picked_keys, axis=-1, kind="stable")
    return np.take_along_axis(indices, order, axis=-1).reshape(*keys.shape[:-1], k)


@_top_k.infer
def _(input, k, index_type):
    if input.shape.rank == 0 or input.dtype.is_complex:
        raise ShapeError(
            "top_k", "input must hold real numbers and have an axis", input=input
        )
    size = input.shape[-1]
    if k < 0 or (size is not None and k > size):
        raise ShapeError(
            "top_k",
            f"k must be from 0 to the size of the last axis, got {k}",
            input=input,
        )
    dims = (*input.shape[:-1], k)
    return TensorSpec(dims, input.dtype), TensorSpec(dims, index_type)


@_top_k.vjp("input")
def _(g, out, input_shape):
    return place_along_axis(g[0], out[1], size=input_shape[-1], axis=-1)


def top_k(
    input: TensorLike,
    k: IntLike = 1,
    sorted: bool = True,
    index_type: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> TopKV2:  # noqa: A002
    """Return the ``k`` largest entries along the last axis, and their indices.

    Entries are in descending order, equal ones in the order of their indices. Gradients
    pass through the values.

    Args:
        input: Input tensor.
        k: Number of entries to return for each row.
        sorted: Ignored; results are always sorted.
        index_type: Integer dtype of the indices.

    Shapes:
        ``[..., n]`` to ``[..., k]``, both results.

    Returns:
        A named tuple ``(values, indices)``.

    Example:
        >>> values, indices = tw.top_k([1.0, 4.0, 2.0, 4.0], k=3)
        >>> values.numpy(), indices.numpy()
        (array([4., 4., 2.], dtype=float32), array([1, 3, 2], dtype=int32))
    """
    return TopKV2(*_top_k(input, k, index_type))


@primitive(type_name="InTopKV2", kinds="iu", same_dtype=(), no_gradient=True)
def in_top_k(xp, targets: TensorLike, predictions: TensorLike, k: int):
    """Return whether each target class is among the ``k`` highest predictions.

    Classes tied with the last of the ``k`` count as well. The result is False for a row
    with a number that is not finite, or with a target out of range.

    Args:
        targets: Class of each example, integers.
        predictions: Scores of the classes, floating.
        k: Number of highest predictions to consider.

    Shapes:
        ``targets`` ``[batch]``, ``predictions`` ``[batch, classes]``, result
        ``[batch]``.

    Example:
        >>> tw.in_top_k([0, 1], [[0.1, 0.9], [0.1, 0.9]], 1).numpy()
        array([False,  True])
    """
    (batch, classes), (rows,) = predictions.shape, targets.shape
    if rows != batch:
        raise ValueError("shapes differ")
    if not classes:
        return xp.zeros(batch, bool)
    valid = (targets >= 0) & (targets < classes)
    valid_targets = xp.where(valid, targets, 0)[:, None]
    chosen = xp.take_along_axis(predictions, valid_targets, axis=1)
    better = (predictions > chosen).sum(axis=1)
    return valid & (better < k) & xp.isfinite(predictions).all(axis=1)


@in_top_k.infer
def _(targets, predictions, k):
    given = {"targets": targets, "predictions": predictions}
    ranks = targets.shape.rank, predictions.shape.rank
    if ranks != (1, 2) or not targets.shape.is_compatible_with(predictions.shape[:1]):
        what = "targets must be [batch], and predictions [batch, classes]"
        raise ShapeError("in_top_k", what, **given)
    return TensorSpec(targets.shape, dtypes.bool)


@in_top_k.batch
def _(mapped, targets, predictions, *, k):
    targets, predictions = all_mapped(mapped, (targets, predictions))
    count, batch, classes = predictions.array.shape
    flat = reshape(targets, (count * batch,))
    are_in = in_top_k(flat, reshape(predictions, (count * batch, classes)), k)
    return reshape(are_in, (count, batch))


# ---------------------------------------------------- entries by position, for the rules above


@index_op(moves=True, batch=batch_along_axis)
def take_along_axis(xp, x: TensorLike, indices: TensorLike, axis: Axis = -1):
    """Take from each row of ``x`` along ``axis`` the entries at its row of indices."""
    return xp.take_along_axis(x, indices, axis=axis)


@take_along_axis.infer
def _(x, indices, axis):
    (at,) = normalize_axis("take_along_axis", axis, x.shape.rank)
    given = {"x": x, "indices": indices}
    if indices.shape.rank != x.shape.rank:
        raise ShapeError("take_along_axis", "the ranks must be the same", **given)
    dims, own = list(x.shape), list(indices.shape)
    dims[at] = own[at]
    dims = checked_broadcast("take_along_axis", dims, own, **given)
    return TensorSpec(dims, x.dtype)


@take_along_axis.vjp("x")
def _(g, indices, x_shape, axis):
    return place_along_axis(g, indices, size=x_shape[axis], axis=axis)


@index_op(moves=True, batch=batch_along_axis)
def place_along_axis(
    xp, x: TensorLike, indices: TensorLike, size: int, axis: Axis = -1
):
    """Place entries at indices that are distinct per row: the adjoint of `take_along_axis`."""
    x, indices = xp.moveaxis(x, axis, -1), xp.moveaxis(indices, axis, -1)
    count = indices.shape[-1]
    if size < count:
        raise ValueError("too many indices")  # `infer` says it better
    result = zeros(xp, (*x.shape[:-1], size), x.dtype)
    if x.size:
        rows = result.reshape(-1, size)
        lines = xp.arange(rows.shape[0])[:, None]
        rows[lines, indices.reshape(-1, count)] = x.reshape(-1, count)
    return xp.moveaxis(result, -1, axis)


@place_along_axis.infer
def _(x, indices, size, axis):
    (at,) = normalize_axis("place_along_axis", axis, x.shape.rank)
    count = indices.shape[at]
    if count is not None and size < count:
        raise ShapeError("place_along_axis", f"size must be at least {count}, got {size}",
                         indices=indices)  # fmt: skip
    dims = list(x.shape)
    dims[at] = size
    return TensorSpec(dims, x.dtype)


@place_along_axis.vjp("x")
def _(g, indices, axis):
    return take_along_axis(g, indices, axis)


# ------------------------------------------------------------ unique entries, sorted rows


@primitive(kinds="biufcO", multiple=True, no_gradient=True)
def _unique(xp, x: TensorLike, out_idx: DTypeLike = "int32"):
    """Return the entries in the order of first occurrence, the index of each, and counts."""
    if x.ndim != 1:
        raise ValueError("not a list")
    _, first, inverse, count = xp.unique(
        x, return_index=True, return_inverse=True, return_counts=True
    )
    order = xp.argsort(first)
    rank = xp.argsort(order)
    idx = rank[inverse.reshape(-1)].astype(out_idx)
    return x[first[order]], idx, count[order].astype(out_idx)


@_unique.infer
def _(x, out_idx):
    if x.shape.rank != 1:
        raise ShapeError("unique", "x must have one axis", x=x)
    return (
        TensorSpec([None], x.dtype),
        TensorSpec(x.shape, out_idx),
        TensorSpec([None], out_idx),
    )


@_unique.batch
def _(mapped, x, *, out_idx):
    raise MappingError(
        "unique: the number of unique entries depends on each mapped value"
    )


def unique(
    x: TensorLike, out_idx: DTypeLike = dtypes.int32, name: str | None = None
) -> Unique:
    """Return the distinct entries of a vector, in the order in which they first occur.

    No gradient passes.

    Args:
        x: Input vector.
        out_idx: Integer dtype of the indices.

    Shapes:
        ``x`` ``[n]``, ``y`` ``[distinct]``, ``idx`` ``[n]``.

    Returns:
        A named tuple ``(y, idx)`` with ``x[i] == y[idx[i]]``.

    Example:
        >>> y, idx = tw.unique([3, 1, 3, 2])
        >>> y.numpy(), idx.numpy()
        (array([3, 1, 2], dtype=int32), array([0, 1, 0, 2], dtype=int32))
    """
    return Unique(*_unique(x, _index_dtype("unique", out_idx))[:2])


def unique_with_counts(
    x: TensorLike, out_idx: DTypeLike = dtypes.int32, name: str | None = None
) -> UniqueWithCounts:
    """Return the distinct entries of a vector, as `unique`, and how often each occurs.

    Args:
        x: Input vector.
        out_idx: Integer dtype of the indices and counts.

    Returns:
        A named tuple ``(y, idx, count)``; ``count`` has the shape of ``y``.

    Example:
        >>> tw.unique_with_counts([3, 1, 3, 2]).count.numpy()
        array([2, 1, 1], dtype=int32)
    """
    return UniqueWithCounts(*_unique(x, _index_dtype("unique_with_counts", out_idx)))


def _index_dtype(who, out_idx):
    dtype = dtypes.as_dtype(out_idx)
    if not dtype.is_integer:
        raise TypeError(f"{who}: out_idx must be integer, got {dtype.name}")
    return dtype


@primitive(type_name="SearchSorted", no_gradient=True)
def _searchsorted(
    xp,
    sorted_sequence: TensorLike,
    values: TensorLike,
    *,
    right: bool = False,
    out_type: DTypeLike,
):
    side = "right" if right else "left"
    if sorted_sequence.ndim == 1 and values.ndim:
        return xp.searchsorted(sorted_sequence, values, side=side).astype(out_type)
    *lead, size = sorted_sequence.shape
    *other_lead, count = values.shape
    if lead != other_lead:
        raise InvalidArgumentError("rows differ")
    positions = xp.empty(values.shape, out_type)
    rows = sorted_sequence.reshape(-1, size or 1)
    wanted = values.reshape(-1, count or 1)
    flat = positions.reshape(-1, count or 1)
    for i in range(len(wanted)):
        row = rows[i] if size else rows.reshape(-1)
        flat[i] = xp.searchsorted(row, wanted[i], side=side)
    return positions


@_searchsorted.infer
def _(sorted_sequence, values, right, out_type):
    given = {"sorted_sequence": sorted_sequence, "values": values}
    same_dtype("searchsorted", **given)
    lead, other = sorted_sequence.shape[:-1], values.shape[:-1]
    ranks = sorted_sequence.shape.rank, values.shape.rank
    if 0 in ranks or (ranks[0] > 1 and not lead.is_compatible_with(other)):
        what = "both must have rows (the last axis), and the same axes before them"
        raise ShapeError("searchsorted", what, **given)
    return TensorSpec(values.shape, out_type)


@_searchsorted.batch
def _(mapped, sorted_sequence, values, *, right, out_type):
    if not mapped[0] and sorted_sequence.array.ndim == 1:
        return _searchsorted(sorted_sequence, values, right, out_type)
    sequence, values = all_mapped(mapped, (sorted_sequence, values))
    count, *lead, size = sequence.array.shape
    shape = values.array.shape
    if not lead:  # one sorted row for values of any shape
        values = reshape(values, (count, -1) if values.array.size else (count, 0))
    return reshape(_searchsorted(sequence, values, right, out_type), shape)


def searchsorted(
    sorted_sequence: TensorLike,
    values: TensorLike,
    side: str = "left",
    out_type: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Return the index at which each value would be inserted into its sorted row.

    Args:
        sorted_sequence: Rows in ascending order.
        values: Values to search for.
        side: "left" counts smaller entries, "right" smaller and equal ones.
        out_type: Integer dtype of the result.

    Shapes:
        ``sorted_sequence`` ``[..., n]``, or a single row ``[n]``; ``values`` and result
        ``[..., m]``.

    Raises:
        ValueError: If ``side`` is unknown.

    Example:
        >>> tw.searchsorted([1, 3, 5], [0, 3, 6]).numpy()
        array([0, 1, 3], dtype=int32)
        >>> tw.searchsorted([1, 3, 5], [0, 3, 6], side="right").numpy()
        array([0, 2, 3], dtype=int32)
    """
    check_choice("searchsorted", "side", side, ("left", "right"))
    out_type = dtypes.as_dtype(dtypes.int32 if out_type is None else out_type)
    if not out_type.is_integer:
        raise TypeError(f"searchsorted: out_type must be integer, got {out_type.name}")
    return _searchsorted(sorted_sequence, values, side == "right", out_type.name)


@primitive(kinds="iu", may_raise=True, no_gradient=True)
def invert_permutation(xp, x: TensorLike):
    """Return the inverse of a permutation of 0 to n - 1: ``y`` with ``y[x[i]] == i``.

    Args:
        x: Permutation, an integer vector.

    Raises:
        ValueError: If ``x`` is not a permutation.

    Example:
        >>> tw.invert_permutation([2, 0, 1]).numpy()
        array([1, 2, 0], dtype=int32)
    """
    if x.ndim != 1:
        raise ValueError("no permutation")
    if (xp.sort(x) != xp.arange(x.size)).any():
        raise InvalidArgumentError(
            f"invert_permutation: x must be a permutation of 0 to {x.size - 1}, "
            f"got {devices.to_numpy(x)}"
        )
    result = xp.empty(x.shape, x.dtype)
    result[x] = xp.arange(x.size, dtype=x.dtype)
    return result


@invert_permutation.infer
def _(x):
    if x.shape.rank != 1:
        raise ShapeError("invert_permutation", "x must be a vector of integers", x=x)
    return x


@invert_permutation.batch
def _(mapped, x):
    return cast(_argsort(x, -1), x.array.dtype)


def is_non_decreasing(x: TensorLike, name: str | None = None) -> Tensor:
    """Return True if no entry of a tensor, flattened, is smaller than its predecessor.

    The result is a scalar. Comparisons with NaN are false.

    Args:
        x: Input tensor of numbers.

    Example:
        >>> tw.is_non_decreasing([1, 1, 2]).numpy()
        np.True_
    """
    x = reshape(convert_to_tensor(x), [-1])
    return reduce_all(less_equal(x[:-1], x[1:]))


def is_strictly_increasing(x: TensorLike, name: str | None = None) -> Tensor:
    """Return True if each entry of a tensor, flattened, is larger than its predecessor.

    The result is a scalar. Comparisons with NaN are false.

    Args:
        x: Input tensor of numbers.

    Example:
        >>> tw.is_strictly_increasing([1, 1, 2]).numpy()
        np.False_
    """
    x = reshape(convert_to_tensor(x), [-1])
    return reduce_all(less(x[:-1], x[1:]))
