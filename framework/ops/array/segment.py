"""Reductions over segments: groups of rows that share an id.

``segment_ids`` has the shape of the first axes of ``data``, and row ``i`` of a result
is computed from the entries with the id ``i``. `segment_sum` and its variants need one
axis of sorted ids and infer the number of segments; the ``unsorted`` ones have it as an
argument, accept ids in any order and ignore negative ids.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Unpack

import numpy as np

from tapewright.core import dtypes
from tapewright.core.errors import (
    DTypeError,
    InvalidArgumentError,
    MappingError,
    ShapeError,
)
from tapewright.core.hardware import devices
from tapewright.core.hardware.combine_at import combine_at
from tapewright.core.interpreters import active_tracer
from tapewright.core.messages.source_lines import user_line
from tapewright.core.op_definition.costs import per_input
from tapewright.core.op_definition.traits import Traits
from tapewright.core.primitive import primitive
from tapewright.core.rules import (
    all_mapped,
    batch_leading,
    check_at_least,
    known_rank,
)
from tapewright.core.shapes.symbolic_dim import NeedsValue
from tapewright.core.tensor import (
    Tensor,
    TensorSpec,
    convert_to_tensor,
    module_of,
    new_tensor,
)
from tapewright.core.typing import IntLike, Kernel, Op, P, TensorLike

from ..math.comparison import equal, less, logical_not, masked, where
from ..math.elementwise import (
    abs,
    floordiv,
    maximum,
    sign,
    sqrt,
    zero_safe_divide,
    zero_safe_multiply,
)
from ..math.scan import linear_scan, shift
from .conversion import cast
from .creation import ones_like
from .shape import expand_dims, reshape, transpose

__all__ = [
    "segment_max",
    "segment_mean",
    "segment_min",
    "segment_prod",
    "segment_sum",
    "unsorted_segment_max",
    "unsorted_segment_mean",
    "unsorted_segment_min",
    "unsorted_segment_prod",
    "unsorted_segment_sqrt_n",
    "unsorted_segment_sum",
]


# ---------------------------------------------------- kernels and rules of all of them


def _reduced(xp, ufunc, data, ids, count, start):
    """Reduce the entries of each segment with ``ufunc``; empty segments are ``start``."""
    rows, ids = _flat(data, ids)
    result = xp.full((count, *rows.shape[1:]), start, data.dtype)
    if not rows.size:
        return result
    _check_ids(ids, count)
    if ids.min() < 0:
        kept = ids >= 0
        rows, ids = rows[kept], ids[kept]
    if xp is not np or rows.ndim == 1:
        combine_at(xp, ufunc, result, ids, rows)
    elif len(ids):
        rows, ids = _sorted(rows, ids, count)
        starts = np.flatnonzero(np.concatenate([[True], ids[1:] != ids[:-1]]))
        result[ids[starts]] = ufunc.reduceat(rows, starts, axis=0)
    return result


def _flat(data, ids):
    """Flatten ids to one axis, and ``data`` to as many rows."""
    if ids.dtype.kind not in "iu" or data.shape[: ids.ndim] != ids.shape:
        raise InvalidArgumentError("the ids do not name the rows")
    return data.reshape(ids.size, *data.shape[ids.ndim :]), ids.reshape(-1)


def _check_ids(ids, count):
    if ids.max() >= count:
        raise InvalidArgumentError(
            f"segment_ids must be below num_segments ({count}), got {int(ids.max())}"
        )


def _sorted(rows, ids, count):
    if (ids[1:] >= ids[:-1]).all():
        return rows, ids
    # NumPy sorts 16 bits by their digits, in a fraction of the time.
    short = ids.astype(np.uint16) if count <= 2**16 else ids
    order = np.argsort(short, kind="stable")
    return rows[order], ids[order]


def _infer_segments(op):
    who = op.name

    def _(data, segment_ids, num_segments, **attributes):
        if not segment_ids.dtype.is_integer:
            raise DTypeError(
                who, "segment_ids must be integers", segment_ids=segment_ids
            )
        check_at_least(who, 0, num_segments=num_segments)
        depth = known_rank(who, "segment_ids", segment_ids)
        known_rank(who, "data", data)
        lead = data.shape[:depth]
        if len(lead) < depth or not lead.is_compatible_with(segment_ids.shape):
            raise ShapeError(who, "segment_ids must have the shape of the first axes of "
                             "data", data=data, segment_ids=segment_ids)  # fmt: skip
        return TensorSpec((num_segments, *data.shape[depth:]), data.dtype)

    return _


def _batch_segments(op):
    def _(mapped, data, segment_ids, *, num_segments, **attributes):
        if mapped[1]:  # of each value its own ids: one long list of segments
            data, segment_ids = all_mapped(mapped, (data, segment_ids))
            size = data.array.shape[0]
            ids = offset_ids(segment_ids, num_segments)
            result = op.entry(data, ids, num_segments=size * num_segments, **attributes)
            return reshape(result, (size, num_segments, *result.array.shape[1:]))
        behind = _mapped_behind(data, segment_ids.array.ndim)
        result = op.entry(behind, segment_ids, num_segments=num_segments, **attributes)
        return transpose(result, (1, 0, *range(2, result.array.ndim)))

    return _


def segment_op(**traits: Unpack[Traits]) -> Callable[[Kernel[P]], Op[P, Tensor]]:
    """Decorator: an op on the entries of each segment."""
    own = Traits(
        same_dtype=(), may_raise=True, grows=True, no_gradient=("segment_ids",),
        infer=_infer_segments, batch=_batch_segments, cost=per_input(1),
    )  # fmt: skip
    return primitive(**own | traits)


def _mapped_behind(x, depth):
    """Move the mapped axis of ``x`` behind the ``depth`` axes that follow it."""
    order = (*range(1, depth + 1), 0, *range(depth + 1, x.array.ndim))
    return transpose(x, order)


def offset_ids(ids, count):
    """Convert mapped ids, ``count`` segments each, to ids of all segments in order."""
    xp, shape = module_of(ids), ids.array.shape
    starts = xp.arange(shape[0], dtype=ids.array.dtype) * count
    starts = new_tensor(starts.reshape((-1,) + (1,) * (len(shape) - 1)))
    return where(less(ids, 0), ids, ids + starts)


def _beside_the_ids(axes, data, ids):
    """Keep a diagonal axis if it is not one of the axes of the ids."""
    depth = ids.shape.rank
    return axes[0] if axes[1] is None and data.shape.rank + axes[0] >= depth else None


# ------------------------------------------------------------- ids in any order: primitives


@segment_op(kinds="iufc", linear=True)
def unsorted_segment_sum(
    xp, data: TensorLike, segment_ids: TensorLike, num_segments: int
):
    """Sum the entries of each segment, with ids in any order.

    An empty segment is 0. Entries with a negative id are ignored.

    Args:
        data: Input tensor.
        segment_ids: Segment of each row, integers below ``num_segments``.
        num_segments: Number of segments.

    Shapes:
        ``segment_ids`` has the sizes of the first axes of ``data``; in the result these
        axes become one, of size ``num_segments``.

    Raises:
        ValueError: If an id is not below ``num_segments``.

    Example:
        >>> tw.math.unsorted_segment_sum([1.0, 2.0, 4.0], [1, 0, 1], 2).numpy()
        array([2., 5.], dtype=float32)
    """
    return _reduced(xp, xp.add, data, segment_ids, num_segments, 0)


@primitive(same_dtype=(), may_raise=True, linear=True, no_gradient=("segment_ids",))
def segment_rows(xp, params: TensorLike, segment_ids: TensorLike):
    """Return ``params[id]``, 0 for negative ids: the adjoint of `unsorted_segment_sum`."""
    count = params.shape[0]
    valid = (segment_ids >= 0) & (segment_ids < count)
    if not count:
        return xp.zeros((*segment_ids.shape, *params.shape[1:]), params.dtype)
    rows = xp.take(params, xp.where(valid, segment_ids, 0), axis=0)
    valid = valid.reshape(valid.shape + (1,) * (params.ndim - 1))
    return xp.where(valid, rows, xp.zeros((), params.dtype))


@segment_rows.kernel_for("numpy")
def _(xp, params, segment_ids):
    count, lowest = params.shape[0], segment_ids.min(initial=0)
    if lowest >= 0:
        return np.take(params, segment_ids, axis=0)
    if not count:
        return np.zeros((*segment_ids.shape, *params.shape[1:]), params.dtype)
    rows = np.take(params, np.maximum(segment_ids, 0), axis=0)
    rows[segment_ids < 0] = 0
    return rows


@segment_rows.infer
def _(params, segment_ids):
    if params.shape.rank == 0 or not segment_ids.dtype.is_integer:
        raise ShapeError("segment_rows", "params must have rows, and the ids must be integers",
                         params=params, segment_ids=segment_ids)  # fmt: skip
    return TensorSpec((*segment_ids.shape, *params.shape[1:]), params.dtype)


@unsorted_segment_sum.vjp("data")
def _(g, segment_ids):
    return segment_rows(g, segment_ids)


@segment_rows.vjp("params")
def _(g, segment_ids, params_shape):
    return unsorted_segment_sum(g, segment_ids, params_shape[0])


@segment_rows.batch
def _(mapped, params, segment_ids):
    if mapped[1]:
        params, segment_ids = all_mapped(mapped, (params, segment_ids))
        size, count, *rest = params.array.shape
        flat = reshape(params, (size * count, *rest))
        return segment_rows(flat, offset_ids(segment_ids, count))
    rows = segment_rows(_mapped_behind(params, 1), segment_ids)
    depth = segment_ids.array.ndim
    return transpose(rows, (depth, *range(depth), *range(depth + 1, rows.array.ndim)))


@unsorted_segment_sum.diagonal
def _(axes, data, segment_ids, *, num_segments):
    return _beside_the_ids(axes, data, segment_ids)


@segment_rows.diagonal
def _(axes, params, segment_ids):
    at = params.shape.rank + axes[0] if axes[1] is None else 0
    return axes[0] if at >= 1 else None


@segment_op(kinds="iuf", name="unsorted_segment_max")
def _segment_max(
    xp, data: TensorLike, segment_ids: TensorLike, *, num_segments: int, empty=None
):
    return _extreme(xp, xp.maximum, data, segment_ids, num_segments, empty, "min")


@segment_op(kinds="iuf", name="unsorted_segment_min")
def _segment_min(
    xp, data: TensorLike, segment_ids: TensorLike, *, num_segments: int, empty=None
):
    return _extreme(xp, xp.minimum, data, segment_ids, num_segments, empty, "max")


def _extreme(xp, ufunc, data, ids, count, empty, limit):
    """Compute the extreme of each segment.

    An empty segment holds ``empty``: a number, or None for ``limit``.
    """
    limits = np.finfo if data.dtype.kind == "f" else np.iinfo
    result = _reduced(xp, ufunc, data, ids, count, getattr(limits(data.dtype), limit))
    if empty is not None:
        present = xp.zeros(count, bool)
        present[ids[ids >= 0]] = True
        result[~present] = empty
    return result


@_segment_max.vjp("data")
@_segment_min.vjp("data")
def _(g, data, segment_ids, out, num_segments):
    winners = cast(equal(data, segment_rows(out, segment_ids)), data.dtype)
    ties = unsorted_segment_sum(winners, segment_ids, num_segments)
    return winners * segment_rows(zero_safe_divide(g, ties), segment_ids)


@segment_op(kinds="iufc", ignores_float_errors=True)
def unsorted_segment_prod(
    xp, data: TensorLike, segment_ids: TensorLike, num_segments: int
):
    """Multiply the entries of each segment, with ids in any order.

    An empty segment is 1. Entries with a negative id are ignored. Derivatives are exact
    with zeros, too.

    Args:
        data: Input tensor.
        segment_ids: Segment of each row, integers below ``num_segments``.
        num_segments: Number of segments.

    Shapes:
        As in `unsorted_segment_sum`.

    Raises:
        ValueError: If an id is not below ``num_segments``.

    Example:
        >>> tw.math.unsorted_segment_prod([3.0, 2.0, 4.0], [1, 0, 1], 2).numpy()
        array([ 2., 12.], dtype=float32)
    """
    return _reduced(xp, xp.multiply, data, segment_ids, num_segments, 1)


@unsorted_segment_prod.vjp("data")
def _(g, data, segment_ids, data_shape, segment_ids_shape):
    # The product of the others of a segment: of those before times of those behind.
    count = math.prod(segment_ids_shape)
    flat = reshape(data, (count, *data_shape[len(segment_ids_shape) :]))
    ids = cast(reshape(segment_ids, (count,)), dtypes.int64)
    order = _stable_order(ids)
    rows, ids = segment_rows(flat, order), segment_rows(ids, order)
    goes_on = equal(ids + 1, shift(ids + 1, 0, 1))  # the segment of the row before
    others = zero_safe_multiply(
        _before(rows, goes_on, 1), _before(rows, shift(goes_on, 0, -1), -1)
    )
    others = segment_rows(others, _stable_order(order))
    return zero_safe_multiply(reshape(others, data_shape), segment_rows(g, segment_ids))


def _before(rows, goes_on, step):
    """Return the product of the rows before (after, if ``step`` is -1) in the same segment."""
    depth = len(rows.shape) - 1
    goes_on = expand_dims(goes_on, tuple(range(1, depth + 1))) if depth else goes_on
    factors = masked(shift(rows, 0, step), goes_on)
    starts = masked(ones_like(rows), logical_not(goes_on))
    return linear_scan(factors, starts, 0, step < 0)


@primitive(no_gradient=True, batch=batch_leading)
def _stable_order(xp, ids: TensorLike):
    """Return the indices that sort the last axis; equal values keep their order."""
    return xp.argsort(ids, axis=-1, kind="stable").astype(xp.int64)


@_stable_order.infer
def _(ids):
    return TensorSpec(ids.shape, dtypes.int64)


# ----------------------------------------------------------------------- compositions


def unsorted_segment_max(
    data: TensorLike,
    segment_ids: TensorLike,
    num_segments: IntLike,
    name: str | None = None,
) -> Tensor:
    """Compute the maximum of each segment, with ids in any order.

    An empty segment is the lowest finite number of the dtype. Entries with a negative
    id are ignored. Ties share the gradient equally.

    Args:
        data: Input tensor.
        segment_ids: Segment of each row, integers below ``num_segments``.
        num_segments: Number of segments.

    Shapes:
        As in `unsorted_segment_sum`.

    Raises:
        ValueError: If an id is not below ``num_segments``.

    Example:
        >>> tw.math.unsorted_segment_max([3, 2, 4], [1, 0, 1], 2).numpy()
        array([2, 4], dtype=int32)
    """
    return _segment_max(data, segment_ids, num_segments)


def unsorted_segment_min(
    data: TensorLike,
    segment_ids: TensorLike,
    num_segments: IntLike,
    name: str | None = None,
) -> Tensor:
    """Compute the minimum of each segment, with ids in any order.

    An empty segment is the highest finite number of the dtype. Entries with a negative
    id are ignored. Ties share the gradient equally.

    Args:
        data: Input tensor.
        segment_ids: Segment of each row, integers below ``num_segments``.
        num_segments: Number of segments.

    Shapes:
        As in `unsorted_segment_sum`.

    Raises:
        ValueError: If an id is not below ``num_segments``.

    Example:
        >>> tw.math.unsorted_segment_min([3, 2, 4], [1, 0, 1], 2).numpy()
        array([2, 3], dtype=int32)
    """
    return _segment_min(data, segment_ids, num_segments)


def unsorted_segment_mean(
    data: TensorLike,
    segment_ids: TensorLike,
    num_segments: IntLike,
    name: str | None = None,
) -> Tensor:
    """Compute the mean of each segment, with ids in any order.

    An empty segment is 0. Entries with a negative id are ignored.

    Args:
        data: Input tensor.
        segment_ids: Segment of each row, integers below ``num_segments``.
        num_segments: Number of segments.

    Shapes:
        As in `unsorted_segment_sum`.

    Raises:
        ValueError: If an id is not below ``num_segments``.

    Example:
        >>> tw.math.unsorted_segment_mean([1.0, 2.0, 4.0], [1, 0, 1], 2).numpy()
        array([2. , 2.5], dtype=float32)
    """
    total, count = _total_and_count(data, segment_ids, num_segments)
    return total / count


def unsorted_segment_sqrt_n(
    data: TensorLike,
    segment_ids: TensorLike,
    num_segments: IntLike,
    name: str | None = None,
) -> Tensor:
    """Sum each segment and divide by the square root of its size, with ids in any order.

    An empty segment is 0. Entries with a negative id are ignored.

    Args:
        data: Input tensor.
        segment_ids: Segment of each row, integers below ``num_segments``.
        num_segments: Number of segments.

    Shapes:
        As in `unsorted_segment_sum`.

    Raises:
        ValueError: If an id is not below ``num_segments``.

    Example:
        >>> tw.math.unsorted_segment_sqrt_n([1.0, 1.0, 1.0, 1.0], [0, 0, 0, 0], 2).numpy()
        array([2., 0.], dtype=float32)
    """
    total, count = _total_and_count(data, segment_ids, num_segments)
    return total / sqrt(count)


def _total_and_count(data, segment_ids, num_segments):
    """Return the sum and size of each segment (1 if empty), shaped for a division."""
    data, ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
    total = unsorted_segment_sum(data, ids, num_segments)
    ones = cast(ones_like(ids), data.dtype.real_dtype)
    count = maximum(unsorted_segment_sum(ones, ids, num_segments), 1)
    count = cast(count, data.dtype)
    depth = total.shape.rank - 1
    count = expand_dims(count, tuple(range(1, depth + 1))) if depth else count
    return total, count


def segment_sum(
    data: TensorLike, segment_ids: TensorLike, name: str | None = None
) -> Tensor:
    """Sum the entries of each segment, with sorted ids.

    An empty segment is 0.

    Args:
        data: Input tensor.
        segment_ids: Segment of each row: sorted integers, not negative.

    Shapes:
        ``segment_ids`` ``[n]``, ``data`` ``[n, ...]``, result ``[last id + 1, ...]``.

    Raises:
        ValueError: If the ids are not sorted, or negative.

    Example:
        >>> tw.math.segment_sum([1.0, 2.0, 4.0], [0, 0, 2]).numpy()
        array([3., 0., 4.], dtype=float32)
    """
    return unsorted_segment_sum(*_counted("segment_sum", data, segment_ids))


def segment_mean(
    data: TensorLike, segment_ids: TensorLike, name: str | None = None
) -> Tensor:
    """Compute the mean of each segment, with sorted ids.

    An empty segment is 0. The mean of integers is rounded towards 0.

    Args:
        data: Input tensor.
        segment_ids: Segment of each row: sorted integers, not negative.

    Shapes:
        As in `segment_sum`.

    Raises:
        ValueError: If the ids are not sorted, or negative.

    Example:
        >>> tw.math.segment_mean([1.0, 2.0, 4.0], [0, 0, 2]).numpy()
        array([1.5, 0. , 4. ], dtype=float32)
    """
    data, ids, num = _counted("segment_mean", data, segment_ids)
    total, count = _total_and_count(data, ids, num)
    if data.dtype.is_integer:
        return sign(total) * floordiv(abs(total), count)
    return total / count


def segment_max(
    data: TensorLike, segment_ids: TensorLike, name: str | None = None
) -> Tensor:
    """Compute the maximum of each segment, with sorted ids.

    An empty segment is 0. Ties share the gradient equally.

    Args:
        data: Input tensor.
        segment_ids: Segment of each row: sorted integers, not negative.

    Shapes:
        As in `segment_sum`.

    Raises:
        ValueError: If the ids are not sorted, or negative.

    Example:
        >>> tw.math.segment_max([1, 2, 4], [0, 0, 2]).numpy()
        array([2, 0, 4], dtype=int32)
    """
    return _segment_max(*_counted("segment_max", data, segment_ids), empty=0)


def segment_min(
    data: TensorLike, segment_ids: TensorLike, name: str | None = None
) -> Tensor:
    """Compute the minimum of each segment, with sorted ids.

    An empty segment is 0. Ties share the gradient equally.

    Args:
        data: Input tensor.
        segment_ids: Segment of each row: sorted integers, not negative.

    Shapes:
        As in `segment_sum`.

    Raises:
        ValueError: If the ids are not sorted, or negative.

    Example:
        >>> tw.math.segment_min([1, 2, 4], [0, 0, 2]).numpy()
        array([1, 0, 4], dtype=int32)
    """
    return _segment_min(*_counted("segment_min", data, segment_ids), empty=0)


def segment_prod(
    data: TensorLike, segment_ids: TensorLike, name: str | None = None
) -> Tensor:
    """Multiply the entries of each segment, with sorted ids.

    An empty segment is 1.

    Args:
        data: Input tensor.
        segment_ids: Segment of each row: sorted integers, not negative.

    Shapes:
        As in `segment_sum`.

    Raises:
        ValueError: If the ids are not sorted, or negative.

    Example:
        >>> tw.math.segment_prod([3, 2, 4], [0, 0, 2]).numpy()
        array([6, 1, 4], dtype=int32)
    """
    return unsorted_segment_prod(*_counted("segment_prod", data, segment_ids))


def _counted(who, data, segment_ids):
    """Return ``data``, the checked ids, and the number of segments."""
    data, ids = convert_to_tensor(data), convert_to_tensor(segment_ids)
    if not ids.dtype.is_integer and ids.array.size:
        raise DTypeError(who, "segment_ids must be integers", segment_ids=ids)
    if ids.shape.rank != 1 or data.shape[:1] != ids.shape:
        raise ShapeError(who, "segment_ids must be a vector with an id for each row of data",
                         data=data, segment_ids=ids)  # fmt: skip
    array = known_values(who, "segment_ids", ids)
    if not array.size:
        return data, cast(ids, dtypes.int64), 0
    if bool((array[1:] < array[:-1]).any()) or int(array[0]) < 0:
        raise InvalidArgumentError(
            f"{who}: segment_ids must be sorted and not negative, got {ids}; "
            f"unsorted_{who} accepts ids in any order"
        )
    return data, ids, int(array[-1]) + 1


def known_values(who, name, tensor):
    """Return the array of a tensor on which the shape of a result depends."""
    if not devices.is_array(tensor.array):
        kind = MappingError if active_tracer() is None else NeedsValue
        line = user_line(always=True)
        raise kind(
            f"{line}: {who}: the shape of the result depends on the values of {name}, so "
            f"that {name} can neither be mapped nor traced"
        )
    return tensor.array
