"""Rules of ops for ragged tensors that are not element-wise: reductions, gather, concat.

`RaggedTensor._tw_apply_op` looks up the rules of `tw.reduce_sum` and others here.
"""

from __future__ import annotations

from tapewright.core import dtypes
from tapewright.core.errors import InvalidArgumentError
from tapewright.core.hardware import devices
from tapewright.core.rules import normalize_axis
from tapewright.core.tensor import convert_to_tensor

from ..array import joining
from ..array.conversion import cast
from ..array.creation import ones
from ..array.gather import gather, gather_p
from ..array.joining import concat, concat_p, stack_p
from ..array.segment import (
    known_values,
    unsorted_segment_max,
    unsorted_segment_min,
    unsorted_segment_prod,
    unsorted_segment_sum,
)
from ..array.shape import expand_dims, reshape
from ..array.sorting import argsort
from ..math import reduction
from ..math.elementwise import add_n
from .construction import stack
from .elementwise import OP_RULES, same_splits
from .ragged_tensor import RaggedTensor
from .row_splits import longest_row

# ---------------------------------------------------------------------- reductions


def _mean(values, ids, count):
    total = unsorted_segment_sum(values, ids, count)
    entries = unsorted_segment_sum(ones(ids.shape, values.dtype), ids, count)
    return total / reshape(entries, (count, *[1] * (values.shape.rank - 1)))


def _any(values, ids, count):
    return unsorted_segment_sum(cast(values, dtypes.int32), ids, count) > 0


def _all(values, ids, count):
    return unsorted_segment_prod(cast(values, dtypes.int32), ids, count) > 0


_SEGMENTS = {
    reduction.reduce_sum: unsorted_segment_sum,
    reduction.reduce_mean: _mean,
    reduction.reduce_max: unsorted_segment_max,
    reduction.reduce_min: unsorted_segment_min,
    reduction.reduce_prod: unsorted_segment_prod,
    reduction.reduce_any: _any,
    reduction.reduce_all: _all,
}


def _reduced(segments):
    def rule(op, inputs, attributes):
        (x,) = inputs
        axis, keepdims = attributes["axis"], attributes["keepdims"]
        if axis is None:
            values = x.flat_values
            if segments is _mean and not values.dtype.is_differentiable:
                values = cast(values, dtypes.float64)  # as `_mean` along an axis
            result = op.general([values], {"axis": None, "keepdims": False})
            return reshape(result, [1] * x.shape.rank) if keepdims else result
        axes = normalize_axis(op.name, axis, x.shape.rank)
        if len(axes) != 1:
            if len(axes) == x.shape.rank:
                return rule(op, inputs, {"axis": None, "keepdims": keepdims})
            raise InvalidArgumentError(
                f"{op.name}: axis of a RaggedTensor must be one axis, or None, got {axis}"
            )
        return _along(op, segments, x, axes[0], keepdims)

    return rule


def _along(op, segments, x, axis, keepdims):
    x = x._unpacked()
    values = x.values
    if axis > 1:
        attributes = {"axis": axis - 1, "keepdims": keepdims}
        return x.with_values(op.general([values], attributes))
    if isinstance(values, RaggedTensor):
        raise InvalidArgumentError(
            f"{op.name}: a RaggedTensor with several ragged axes can only be reduced along "
            f"the last one, axis {x.ragged_rank}"
        )
    if axis == 1:
        ids, count = x.value_rowids(), x._tw_row_count
    else:
        ids, count = x._positions(), longest_row(op.name, x.row_lengths())
    result = segments(values, ids, count)
    return expand_dims(result, axis) if keepdims else result


for _op, _segments in _SEGMENTS.items():
    OP_RULES[_op.primitive] = _reduced(_segments)


# --------------------------------------------------------------------- gather, joins


def _gathered(op, inputs, attributes):
    """Gather entries at ragged indices, or rows of a ragged tensor at a vector of indices."""
    params, indices = inputs
    axis = attributes["axis"]
    if isinstance(indices, RaggedTensor):
        if isinstance(params, RaggedTensor) or axis:
            raise TypeError(f"{op.name}: for ragged indices, params must be a tensor "
                            "and axis 0")  # fmt: skip
        return indices.with_flat_values(gather(params, indices.flat_values))
    indices = convert_to_tensor(indices)
    if axis or indices.shape.rank != 1:
        raise InvalidArgumentError(
            f"{op.name}: for a RaggedTensor, indices must be [n] and axis 0, got "
            f"{indices.shape} and {axis}"
        )
    numbers = devices.to_numpy(known_values(op.name, "indices", indices))
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < params._tw_row_count:
        raise IndexError(
            f"{op.name}: indices must be from 0 to {params._tw_row_count - 1}"
        )
    return params._unpacked()._tw_rows_at(numbers)


def _concatenated(op, inputs, attributes):
    rows = [x if isinstance(x, RaggedTensor) else convert_to_tensor(x) for x in inputs]
    rank = rows[0].shape.rank
    if any([x.shape.rank != rank for x in rows]):
        raise InvalidArgumentError(
            f"concat: values must be of one rank, got {[tuple(x.shape) for x in rows]}"
        )
    rows = [x._unpacked() if isinstance(x, RaggedTensor) else RaggedTensor.from_tensor(x)
            for x in rows]  # fmt: skip
    (axis,) = normalize_axis("concat", attributes["axis"], rank)
    if axis > 1:
        first = rows[0]
        for x in rows[1:]:
            first = same_splits("concat", first, x)
        return first.with_values(concat([x.values for x in rows], axis - 1))
    values = concat([x.values for x in rows], 0)
    if axis == 0:
        lengths = joining.concat([cast(x.row_lengths(), dtypes.int64) for x in rows], 0)
        return RaggedTensor.from_row_lengths(values, lengths)
    count = rows[0]._tw_row_count
    if any([x._tw_row_count != count for x in rows]):
        raise InvalidArgumentError(
            f"concat: along axis 1 values must have the same number of rows, got "
            f"{[x._tw_row_count for x in rows]}"
        )
    # Values by the number of their row, else in the order of the inputs.
    ids = joining.concat([cast(x.value_rowids(), dtypes.int64) for x in rows], 0)
    values = gather(values, argsort(ids, stable=True))
    return RaggedTensor.from_row_lengths(values, add_n([x.row_lengths() for x in rows]))


def _stacked(op, inputs, attributes):
    return stack(list(inputs), attributes["axis"])


OP_RULES[gather_p.primitive] = _gathered
OP_RULES[concat_p.primitive] = _concatenated
OP_RULES[stack_p.primitive] = _stacked
