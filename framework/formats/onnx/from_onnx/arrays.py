"""Shapes and indices: ops that move entries, pick them, and make arrays.

Indices count from the end if negative, which tapewright's gathers and scatters reject.
"""

from __future__ import annotations

import math

import numpy as np

from tapewright.core.shapes.symbolic_operand import TracedOperand
from tapewright.core.tensor import convert_to_tensor
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import fill, zeros_like
from tapewright.ops.array.creation import range as arange
from tapewright.ops.array.gather import (
    gather,
    gather_nd,
    reverse_sequence,
)
from tapewright.ops.array.indexing import argmax, argmin, one_hot
from tapewright.ops.array.joining import concat, pad, reverse, stack, tile
from tapewright.ops.array.joining import split as split_into
from tapewright.ops.array.scatter import (
    tensor_scatter_nd_add,
    tensor_scatter_nd_max,
    tensor_scatter_nd_min,
    tensor_scatter_nd_update,
)
from tapewright.ops.array.segment import unsorted_segment_prod
from tapewright.ops.array.shape import (
    broadcast_to,
    expand_dims,
    reshape,
    shape,
    squeeze,
    transpose,
)
from tapewright.ops.array.sorting import top_k
from tapewright.ops.math.comparison import equal, invert, less, where
from tapewright.ops.math.scan import cumprod, cumsum

from .static import axes_of, dims, number, numbers, sized

# -------------------------------------------------------------------------------- shapes


def _shape(x, start=0, end=None):
    return cast(shape(x), "int64")[start:end]


def _size(x):
    return sized(math.prod(dims(x)))


def _reshape(x, shape=None, allowzero=0):
    given = numbers(shape)
    if not allowzero:
        given = [dims(x)[i] if type(n) is int and n == 0 else n
                 for i, n in enumerate(given)]  # fmt: skip
    return reshape(x, given)


def _squeeze(x, axes=None):
    if axes is None:
        return squeeze(x)
    rank = len(dims(x))
    return squeeze(x, axes_of(axes, rank)) if rank else x


def _unsqueeze(x, axes):
    axes = numbers(axes)
    axes = [axes] if isinstance(axes, int) else axes
    for axis in sorted(axes_of(axes, len(dims(x)) + len(axes))):
        x = expand_dims(x, axis)
    return x


def _flatten(x, axis=1):
    shape = dims(x)
    axis = axis + len(shape) if axis < 0 else axis
    return reshape(x, (math.prod(shape[:axis]), math.prod(shape[axis:])))


def _expand(x, shape):
    return broadcast_to(x, _broadcast(dims(x), tuple(numbers(shape))))


def _broadcast(a, b):
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    return tuple([m if type(n) is int and n == 1 else n for n, m in zip(a, b)])


def _transpose(x, perm=None):
    return transpose(x, perm)


def _concat(*values, axis):
    return concat(values, axis)


def _split(x, split_sizes=None, axis=0, split=None, num_outputs=None, *, output_count):
    """Split into parts of given sizes, or into equal parts, the last one smaller."""
    sizes = numbers(split if split_sizes is None else split_sizes)
    if sizes is None:
        count = num_outputs or output_count
        each = -(-dims(x)[axis] // count)
        sizes = [each] * (count - 1) + [dims(x)[axis] - each * (count - 1)]
    return tuple(split_into(x, sizes, axis))


def _tile(x, repeats):
    return tile(x, numbers(repeats))


def _slice(x, starts, ends, axes=None, steps=None):
    rank = len(dims(x))
    starts, ends, axes, steps = [numbers(n) for n in (starts, ends, axes, steps)]
    axes = range(len(starts)) if axes is None else axes_of(axes, rank)
    index = [slice(None)] * rank
    for axis, start, end, step in zip(axes, starts, ends, steps or [1] * len(starts)):
        index[axis] = _range_of(start, end, step, dims(x)[axis])
    return x[tuple(index)]


def _range_of(start, end, step, size):
    """Return a slice; backwards, a start before the axis is its first entry."""
    if step < 0 and type(start) is int and start < 0 and size > 0 and start + size < 0:
        start = 0
    return slice(_near(start), _near(end), step)


def _near(n):
    """Return a bound of a slice, which may be far outside, in 32 bits."""
    return max(min(n, 2**31 - 1), -(2**31)) if type(n) is int else n


def _pad(x, pads=None, constant_value=None, axes=None, mode="constant", value=0.0):
    """Pad, or with negative numbers crop, at both ends of axes."""
    rank = len(dims(x))
    pads = numbers(pads)
    axes = range(rank) if axes is None else axes_of(axes, rank)
    pairs = [(0, 0)] * rank
    for axis, before, after in zip(axes, pads, pads[len(pads) // 2 :]):
        pairs[axis] = before, after
    x = x[tuple([slice(max(-b, 0), n - max(-a, 0)) if min(a, b) < 0 else slice(None)
                 for n, (b, a) in zip(dims(x), pairs)])]  # fmt: skip
    pairs = [(max(b, 0), max(a, 0)) for b, a in pairs]
    if mode == "constant":
        fill_value = value if constant_value is None else reshape(constant_value, ())
        return pad(x, pairs, constant_values=cast(fill_value, x.dtype))
    for axis, pair in enumerate(pairs):
        if pair != (0, 0):
            x = gather(x, np.pad(np.arange(dims(x)[axis]), pair, mode), axis=axis)
    return x


def _trilu(x, k=None, upper=1):
    """Keep the triangle above a diagonal, itself included, or the one below it."""
    rows, columns = dims(x)[-2:]
    below = arange(rows, dtype="int64")[:, None] + number(k, 0)
    across = arange(columns, dtype="int64")[None, :]
    kept = (across >= below) if upper else (across <= below)
    return where(kept, x, zeros_like(x))


def _depth_to_space(x, blocksize, mode="DCR"):
    n, c, h, w = dims(x)
    b = blocksize
    if mode == "DCR":
        x = transpose(reshape(x, (n, b, b, c // b**2, h, w)), (0, 3, 4, 1, 5, 2))
    else:
        x = transpose(reshape(x, (n, c // b**2, b, b, h, w)), (0, 1, 4, 2, 5, 3))
    return reshape(x, (n, c // b**2, h * b, w * b))


def _space_to_depth(x, blocksize, mode="DCR"):
    n, c, h, w = dims(x)
    b = blocksize
    x = reshape(x, (n, c, h // b, b, w // b, b))
    x = transpose(x, (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4))
    return reshape(x, (n, c * b**2, h // b, w // b))


# ------------------------------------------------------------------------------- creation


def _constant(**values):
    """Return the value, which one attribute holds: numbers, text or a tensor."""
    ((name, value),) = values.items()
    kind = {"value_float": "float32", "value_floats": "float32", "value_int": "int64",
            "value_ints": "int64"}.get(name)  # fmt: skip
    return convert_to_tensor(value, kind)


def _constant_of_shape(shape, value=None):
    value = np.zeros(1, np.float32) if value is None else np.asarray(value)
    return fill(numbers(shape), convert_to_tensor(value.reshape(())))


def _range(start, limit, delta):
    start, limit, delta = [reshape(n, ()) for n in (start, limit, delta)]
    if start.dtype.is_integer:
        kind = start.dtype
        values = arange(number(start), number(limit), number(delta), dtype="int64")
        return cast(values, kind)
    return arange(start, limit, delta)


def _eye_like(x, dtype=None, k=0):
    rows, columns = dims(x)
    is_diagonal = equal(
        arange(columns, dtype="int64")[None, :],
        arange(rows, dtype="int64")[:, None] + k,
    )
    return cast(is_diagonal, x.dtype if dtype is None else dtype)


def _one_hot(indices, depth, values, axis=-1):
    depth = int(number(depth))
    indices = cast(indices, "int64")
    indices = where(indices < 0, indices + depth, indices)
    return one_hot(indices, depth, values[1], values[0], axis=axis, dtype=values.dtype)


# -------------------------------------------------------------------------------- indices


def _from_front(indices, size):
    """Return indices in which negative ones are counted from the front."""
    if not isinstance(indices, TracedOperand) and not (indices.numpy() < 0).any():
        return indices
    size = sized(size, indices.dtype.name)
    return where(less(indices, zeros_like(indices)), indices + size, indices)


def _gather(x, indices, axis=0):
    return gather(x, _from_front(indices, dims(x)[axis]), axis=axis)


def _positions(indices, axis, x):
    """Return ``[*indices.shape, rank]``: positions in ``x`` of entries along an axis."""
    shape, (axis,) = dims(indices), axes_of(axis, len(dims(x)))
    grid = []
    for i, n in enumerate(shape):
        across = reshape(arange(n, dtype="int64"), [n if i == j else 1
                                                    for j in range(len(shape))])  # fmt: skip
        grid.append(broadcast_to(across, shape))
    grid[axis] = cast(_from_front(indices, dims(x)[axis]), "int64")
    return stack(grid, -1)


def _gather_elements(x, indices, axis=0):
    return gather_nd(x, _positions(indices, axis, x))


def _nd_from_front(indices, shape):
    sizes = sized(shape[: dims(indices)[-1]], indices.dtype.name)
    return where(less(indices, zeros_like(indices)), indices + sizes, indices)


def _gather_nd(x, indices, batch_dims=0):
    indices = _nd_from_front(indices, dims(x)[batch_dims:])
    return gather_nd(x, indices, batch_dims)


def _scatter_elements(x, indices, updates, axis=0, reduction="none"):
    positions = _positions(indices, axis, x)
    return _SCATTERS[reduction](x, positions, updates)


def _scatter_nd(x, indices, updates, reduction="none"):
    return _SCATTERS[reduction](x, _nd_from_front(indices, dims(x)), updates)


def _scatter_mul(x, indices, updates):
    """Multiply entries by updates: by their product, where several meet one entry."""
    depth, shape = dims(indices)[-1], dims(x)
    rows, row = math.prod(shape[:depth]), shape[depth:]
    steps = [math.prod(shape[i + 1 : depth]) for i in range(depth)]
    flat = [cast(indices[..., i], "int64") * step for i, step in enumerate(steps)]
    flat = reshape(sum(flat[1:], flat[0]), (-1,))
    factors = unsorted_segment_prod(reshape(updates, (-1, *row)), flat, rows)
    return x * reshape(factors, shape)


_SCATTERS = {
    "none": tensor_scatter_nd_update,
    "add": tensor_scatter_nd_add,
    "max": tensor_scatter_nd_max,
    "min": tensor_scatter_nd_min,
    "mul": _scatter_mul,
}


def _arg(op):
    """Return ArgMax or ArgMin: of equal entries, the first, or the last if so selected."""

    def arg(x, axis=0, keepdims=1, select_last_index=0):
        if select_last_index:
            index = dims(x)[axis] - 1 - op(reverse(x, [axis]), axis)
        else:
            index = op(x, axis)
        return expand_dims(index, axis) if keepdims else index

    return arg


def _top_k(x, k, axis=-1, largest=1, sorted=1):
    k, last = number(k), len(dims(x)) - 1
    (axis,) = axes_of(axis, last + 1)
    order = [last if i == axis else axis if i == last else i for i in range(last + 1)]
    x = transpose(x, order)
    turned = x if largest else invert(x) if x.dtype.is_integer else -x
    values, indices = top_k(turned, k, index_type="int64")
    if not largest:
        values = invert(values) if x.dtype.is_integer else -values
    return transpose(values, order), transpose(indices, order)


def _non_zero(x):
    # The number of results is unknown while tracing: such a call runs eagerly.
    indices = numbers(where(x if x.dtype.is_bool else x != zeros_like(x)))
    return transpose(convert_to_tensor(np.reshape(indices, (-1, len(dims(x))))), (1, 0))


def _compress(x, condition, axis=None):
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    kept = np.flatnonzero(np.asarray(numbers(condition)))
    return gather(x, kept, axis=axis)


def _unique(x, axis=None, sorted=1):
    values = np.asarray(numbers(x), x.dtype.dtype)
    unique, first, inverse, counts = np.unique(values, True, True, True, axis=axis)
    if not sorted:
        order = np.argsort(first)
        unique = np.take(unique, order, axis=axis or 0)
        first, counts = first[order], counts[order]
        inverse = np.argsort(order)[inverse.reshape(-1)]
    positions = [n.reshape(-1).astype(np.int64) for n in (first, inverse, counts)]
    return convert_to_tensor(unique), *map(convert_to_tensor, positions)


def _cumulative(op):
    return lambda x, axis, exclusive=0, reverse=0: op(
        x, number(axis), bool(exclusive), bool(reverse)
    )


def _reverse_sequence(x, lengths, batch_axis=1, time_axis=0):
    return reverse_sequence(x, lengths, time_axis, batch_axis)


OPS = {
    "ArgMax": _arg(argmax),
    "ArgMin": _arg(argmin),
    "Compress": _compress,
    "Concat": _concat,
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "CumProd": _cumulative(cumprod),
    "CumSum": _cumulative(cumsum),
    "DepthToSpace": _depth_to_space,
    "Expand": _expand,
    "EyeLike": _eye_like,
    "Flatten": _flatten,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "NonZero": _non_zero,
    "OneHot": _one_hot,
    "Pad": _pad,
    "Range": _range,
    "Reshape": _reshape,
    "ReverseSequence": _reverse_sequence,
    "Scatter": _scatter_elements,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "Shape": _shape,
    "Size": _size,
    "Slice": _slice,
    "SpaceToDepth": _space_to_depth,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "TopK": _top_k,
    "Transpose": _transpose,
    "Trilu": _trilu,
    "Unique": _unique,
    "Unsqueeze": _unsqueeze,
}
