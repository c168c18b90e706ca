"""Ops of ragged tensors along an axis, or with a new axis: reverse, softmax, expand_dims."""

from __future__ import annotations

from typing import Any

from tapewright.core import dtypes
from tapewright.core.errors import InvalidArgumentError
from tapewright.core.rules import normalize_axis

from ..array.conversion import cast
from ..array.creation import range as arange
from ..array.gather import gather
from ..array.indexing import one_hot_p
from ..array.joining import reverse
from ..array.segment import unsorted_segment_max, unsorted_segment_sum
from ..array.shape import expand_dims
from ..math.elementwise import exp
from ..nn.activation import softmax_p
from ..strings.joins import reduce_join
from ..strings.packing import packed_joined
from ..strings.splitting import unicode_encode
from .elementwise import OP_RULES
from .ragged_rows import count_of
from .ragged_tensor import RaggedTensor


def _only(op, axis, rank):
    """Return one axis, counted from 0."""
    axes = normalize_axis(op.name, axis, rank)
    if len(axes) != 1:
        raise InvalidArgumentError(
            f"{op.name}: axis of a RaggedTensor must be one axis, got {axis}"
        )
    return axes[0]


def _reversed(op, inputs, attributes):
    (x,) = inputs
    for axis in normalize_axis(op.name, attributes["axis"], x.shape.rank):
        x = _reversed_along(x._unpacked(), axis)
    return x


def _reversed_along(x, axis):
    values = x.values
    if axis > 1:
        return x.with_values(reverse(values, [axis - 1]))
    if axis == 0:
        return gather(x, arange(x._tw_row_count)[::-1])
    # Value i of a row from first to last comes from first + last - i.
    ends = x.row_starts() + x.row_limits() - 1
    numbers = arange(count_of(values), dtype=ends.dtype)
    return x.with_values(gather(values, gather(ends, x.value_rowids()) - numbers))


def _expanded(op, inputs, attributes):
    (x,) = inputs
    axis = _only(op, attributes["axis"], x.shape.rank + 1)
    if axis == 0:
        return RaggedTensor.from_row_lengths(x, x.nrows()[None])
    if axis == 1:
        return RaggedTensor.from_uniform_row_length(x, 1)
    return x.with_values(expand_dims(x.values, axis - 1))


def _softmax(op, inputs, attributes):
    (x,) = inputs
    axis = _only(op, attributes["axis"], x.shape.rank)
    x, values = x._unpacked(), x.values
    if axis > 1:
        return x.with_values(op.general([values], {"axis": axis - 1}))
    if axis == 0 or isinstance(values, RaggedTensor):
        raise InvalidArgumentError(
            f"{op.name}: axis of a RaggedTensor must be its last ragged axis, or an "
            f"axis after it; got {attributes['axis']}"
        )
    rows, count = x.value_rowids(), x._tw_row_count
    weights = exp(values - gather(unsorted_segment_max(values, rows, count), rows))
    total = unsorted_segment_sum(weights, rows, count)
    return x.with_values(weights / gather(total, rows))


def _one_hot(op, inputs, attributes):
    (x,) = inputs
    if _only(op, attributes["axis"], x.shape.rank + 1) != x.shape.rank:
        raise InvalidArgumentError(
            f"{op.name}: axis of ragged indices must be -1, got {attributes['axis']}"
        )
    return x.with_flat_values(op.general([x.flat_values], attributes))


def _reduce_join(op, inputs, attributes):
    (x,) = inputs
    axis, rank = attributes["axis"], x.shape.rank
    if axis is not None and rank > 2:
        axis = _only(op, axis, rank)
        if axis > 1:
            inner = {**attributes, "axis": axis - 1}
            return x.with_values(op.general([x.values], inner))
    if axis is None or rank > 2 or _only(op, axis, rank) != 1:
        raise InvalidArgumentError(
            f"{op.name}: axis of a RaggedTensor must be its last axis, got {axis}"
        )
    texts = packed_joined(x._tw_packed, attributes["separator"])
    return expand_dims(texts, 1) if attributes["keepdims"] else texts


def _encoded(op, inputs, attributes):
    """Encode each row of code points as one string."""
    (x,) = inputs
    if x.ragged_rank + 1 != x.shape.rank:
        return x.with_flat_values(op.general([x.flat_values], attributes))
    codes: Any = expand_dims(cast(x.flat_values, dtypes.int32), 1)
    characters = x.with_flat_values(op.general([codes], attributes))
    return reduce_join(characters, axis=-1)


OP_RULES[reverse.primitive] = _reversed
OP_RULES[expand_dims.primitive] = _expanded
OP_RULES[softmax_p.primitive] = _softmax
OP_RULES[one_hot_p.primitive] = _one_hot
OP_RULES[reduce_join.primitive] = _reduce_join
OP_RULES[unicode_encode.primitive] = _encoded
