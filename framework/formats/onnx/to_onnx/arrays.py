"""Shapes, indices and joining."""

import math

import numpy as np

from tapewright.core.shapes.symbolic_dim import is_symbolic
from tapewright.core.shapes.symbolic_shape import definitely_equal

from ..operands import First, Untranslatable, channels_first
from .elementwise import _numpy_dtype
from .recurrent import LastOnly, Reshaped

ARRAYS = {}
LAST = np.iinfo(np.int64).max  # "to the end" in a Slice


def _translates(function):
    ARRAYS[function.__name__] = function
    return function


def int64(w, x):
    """Return indices as int64, which all ops accept."""
    return x if x.dtype == np.int64 else w.cast(x, np.int64)


def as_shape_input(w, old, new):
    """Return the shape input of a Reshape from one shape to another.

    An axis of an open size that keeps its place is 0, the last other one is -1, so that
    most shapes need no computation.
    """
    if math.prod([n for n in new if not is_symbolic(n)]) == 0:
        return w.sizes(new)
    entries = []
    for i, n in enumerate(new):
        if not is_symbolic(n):
            entries.append(n)
        elif i < len(old) and definitely_equal((old[i],), (n,)):
            entries.append(0)
        else:
            entries.append(-1)
    return np.array(entries, np.int64) if entries.count(-1) < 2 else w.sizes(new)


# ----------------------------------------------------------------------------- shapes


@_translates
def reshape(w, tensor, *, shape):
    if tensor.rank == 0 and not shape:
        return w.emit("Identity", tensor)
    target = as_shape_input(w, tensor.shape, shape)
    given = [n for n in shape if not is_symbolic(n)]
    computed = isinstance(target, str) and -1 not in given  # some size may be 0
    zero = {"allowzero": 1} if computed or 0 in given else {}
    return Reshaped(tensor, target, **zero)


@_translates
def transpose(w, a, *, perm, conjugate):
    perm = range(a.rank)[::-1] if perm is None else [n % a.rank for n in perm]
    return a.transposed(w.block, perm)


@_translates
def expand_dims(w, input, *, axis):
    axes = [axis] if isinstance(axis, int) else list(axis)
    rank = input.rank + len(axes)
    return w.emit("Unsqueeze", input, w.axes(*[n % rank for n in axes]))


@_translates
def squeeze(w, input, *, axis):
    if axis is None or axis == ():
        axis = [i for i, n in enumerate(input.shape) if not is_symbolic(n) and n == 1]
    axis = [n % input.rank for n in ([axis] if isinstance(axis, int) else axis)]
    return (
        w.emit("Squeeze", input, w.axes(*axis)) if axis else w.emit("Identity", input)
    )


@_translates
def broadcast_to(w, input, *, shape):
    return w.emit("Expand", input, w.sizes(shape))


@_translates
def sizes(w, *, values, dtype):
    values, dtype = np.array(values, object), _numpy_dtype(dtype)
    if dtype.kind == "f":
        flat = w.emit("Concat", *[w.real(n) for n in values.flat], axis=0)
    else:
        flat = w.sizes(list(values.flat))
    return w.cast(w.emit("Reshape", flat, w.axes(*values.shape)), dtype)


@_translates
def arange(w, *, count, dtype):
    numbers = w.emit("Range", np.int64(0), w.number(count), np.int64(1))
    dtype = _numpy_dtype(dtype)
    return numbers if dtype == np.int64 else w.cast(numbers, dtype)


# ---------------------------------------------------------------------------- joining


def _are_images(*values):
    """Return True if all are images and one of them has channels first."""
    ranks = {x.rank for x in values}
    return any([x.is_first for x in values]) and ranks <= {3, 4, 5} and len(ranks) == 1


@_translates
def concat(w, *values, axis):
    if not _are_images(*values):
        return w.emit("Concat", *values, axis=axis)
    rank = values[0].rank
    axis_first = channels_first(range(rank)).index(axis % rank)
    return First(w.emit("Concat", *[x.first for x in values], axis=axis_first))


@_translates
def stack(w, *values, axis):
    axis = axis % (values[0].rank + 1)
    rows = [w.emit("Unsqueeze", x, w.axes(axis)) for x in values]
    return w.emit("Concat", *rows, axis=axis)


@_translates
def unstack(w, value, *, axis):
    axis = axis % value.rank
    parts = split(w, value, sizes=[1] * value.shape[axis], axis=axis)
    return [w.emit("Squeeze", part, w.axes(axis)) for part in parts]


@_translates
def split(w, value, *, sizes, axis):
    if len(sizes) == 1:
        return [w.emit("Identity", value)]
    return w.emit("Split", value, w.sizes(sizes), outputs=len(sizes), axis=axis)


@_translates
def pad(w, tensor, constant_values, *, paddings):
    pairs = list(zip(*paddings))
    if not pairs:
        return w.emit("Identity", tensor)
    pads = w.sizes([*pairs[0], *pairs[1]])
    if tensor.dtype.kind == "b":  # runtimes pad numbers only
        value = w.cast(constant_values, np.int32)
        whole = w.emit("Pad", w.cast(tensor, np.int32), pads, value)
        return w.cast(whole, np.bool_)
    if _are_images(tensor):
        before, after = [channels_first(side) for side in pairs]
        pads = w.sizes([*before, *after])
        return First(w.emit("Pad", tensor.first, pads, constant_values))
    return w.emit("Pad", tensor, pads, constant_values)


@_translates
def crop(w, x, *, paddings):
    starts = [before for before, _ in paddings]
    stops = [n - after for n, (_, after) in zip(x.shape, paddings)]
    return w.emit("Slice", x, w.sizes(starts), w.sizes(stops))


@_translates
def reverse(w, tensor, *, axis):
    axes = [n % tensor.rank for n in ([axis] if isinstance(axis, int) else axis)]
    if not axes:
        return w.emit("Identity", tensor)
    count = len(axes)
    starts, stops = w.axes(*[-1] * count), w.axes(*[-LAST] * count)
    return w.emit("Slice", tensor, starts, stops, w.axes(*axes), w.axes(*[-1] * count))


@_translates
def roll(w, input, *, shift, axis):
    shifts = [shift] if isinstance(shift, int) else list(shift)
    axes = [axis] if isinstance(axis, int) else list(axis)
    x = input
    for by, at in zip(shifts, axes):
        size = input.shape[at]
        if not is_symbolic(size):
            by = by % size if size else 0
        if not is_symbolic(by) and by == 0:
            continue
        at %= input.rank
        if is_symbolic(size):  # which may be 0
            turn = w.emit("Mod", w.size(by), w.emit("Max", w.size(size), w.axes(1)))
            start = w.emit("Neg", turn)
        else:
            start = w.size(-by)
        ahead = w.emit("Slice", x, start, w.axes(LAST), w.axes(at))
        behind = w.emit("Slice", x, w.axes(0), start, w.axes(at))
        x = w.emit("Concat", ahead, behind, axis=at)
    return w.emit("Identity", x)


# ---------------------------------------------------------------------------- indices


@_translates
def getitem(w, x, *, index):
    if type(x.plan) is LastOnly and x.plan.last and index == (-1,):
        return x.plan.last
    given = [i for i in index if not isinstance(i, str)]
    slices, picked, added, axis, out_axis = [], [], [], 0, 0
    for item in (*index, *(() if "..." in index else ("...",))):
        if item == "newaxis" and isinstance(item, str):
            added.append(out_axis)
            out_axis += 1
        elif isinstance(item, str):
            skipped = x.rank - len(given)
            axis, out_axis = axis + skipped, out_axis + skipped
        elif isinstance(item, list):
            start, stop, step = item  # an open size equals None, see `UnknownSize`
            if not (start is None and stop is None and step in (None, 1)):
                slices.append((axis, *item))
            axis, out_axis = axis + 1, out_axis + 1
        else:
            slices.append((axis, item, item + 1 if item != -1 else None, 1))
            picked.append(axis)
            axis += 1
    y = x
    if slices:
        y = _sliced(w, x, slices)
    if picked:
        y = w.emit("Squeeze", y, w.axes(*picked))
    if added:
        y = w.emit("Unsqueeze", y, w.axes(*added))
    return y if isinstance(y, str) else w.emit("Identity", y)


def _sliced(w, x, slices):
    starts, stops, steps, ends = [], [], [], {}
    for axis, start, stop, step in slices:
        step = 1 if step is None else step
        if not is_symbolic(start) and start is not None and start < -1 and step < 0:
            # ONNX begins at entry 0 where Python finds nothing: cut the end off first.
            ends[axis] = start + 1
            if not is_symbolic(stop) and stop is not None and stop < 0:
                stop = min(stop - start, 0) - 1
            start = None
        starts.append((0 if step > 0 else -1) if start is None else start)
        stops.append((LAST if step > 0 else -LAST) if stop is None else stop)
        steps.append(step)
    if ends:
        zeros = w.axes(*[0] * len(ends))
        x = w.emit("Slice", x, zeros, w.axes(*ends.values()), w.axes(*ends))
    axes = w.axes(*[axis for axis, *_ in slices])
    return w.emit("Slice", x, w.sizes(starts), w.sizes(stops), axes, w.sizes(steps))


@_translates
def gather(w, params, indices, *, axis):
    indices = indices if indices.dtype == np.int32 else int64(w, indices)
    return w.emit("Gather", params, indices, axis=axis % params.rank)


@_translates
def take_along_axis(w, x, indices, *, axis):
    axis %= x.rank
    for i, (n, m) in enumerate(zip(x.shape, indices.shape)):
        if i != axis and not definitely_equal((n,), (m,)):
            shape = list(x.shape)
            shape[axis] = indices.shape[axis]
            expanded = w.emit("Expand", int64(w, indices), w.sizes(shape))
            return w.emit("GatherElements", x, expanded, axis=axis)
    return w.emit("GatherElements", x, int64(w, indices), axis=axis)


@_translates
def flat_index(w, indices, *, dims, batch, wrap, who):
    columns, total = int64(w, indices), None
    for i, size in enumerate(dims):
        index = w.emit("Gather", columns, np.int64(i), axis=indices.rank - 1)
        if wrap:
            below = w.emit("Less", index, np.int64(0))
            index = w.emit("Where", below, w.emit("Add", index, w.number(size)), index)
        if total is not None:
            index = w.emit("Add", w.emit("Mul", total, w.number(size)), index)
        total = index
    if total is None:
        total = w.emit("Expand", np.int64(0), w.sizes(indices.shape[:-1]))
    if batch:
        count, rows = math.prod(dims), math.prod(batch)
        starts = w.emit("Mul", arange(w, count=rows, dtype="int64"), w.size(count))
        ahead = indices.rank - 1 - len(batch)
        shape = w.sizes([*batch, *[1] * ahead])
        total = w.emit("Add", total, w.emit("Reshape", starts, shape))
    return total


@_translates
def one_hot(w, indices, *, depth, axis, dtype):
    # An index out of range, negative ones included, gives zeros; in ONNX -1 is the last.
    axis = axis % (indices.rank + 1)
    columns = w.emit("Unsqueeze", int64(w, indices), w.axes(axis))
    shape = [1] * (indices.rank + 1)
    shape[axis] = depth
    numbers = arange(w, count=depth, dtype="int64")
    numbers = w.emit("Reshape", numbers, w.sizes(shape))
    return w.cast(w.emit("Equal", columns, numbers), _numpy_dtype(dtype))


@_translates
def scatter_rows(w, g, indices, *, shape, axis):
    axis %= len(shape)
    lead, tail = list(shape[:axis]), list(shape[axis + 1 :])
    count = math.prod(indices.shape)
    flat = w.emit("Reshape", int64(w, indices), w.axes(-1))
    one = [1] * len(shape)
    one[axis] = -1
    positions = w.emit("Reshape", flat, w.axes(*one))
    rows = [*lead, count, *tail]
    positions = w.emit("Expand", positions, w.sizes(rows))
    values = w.emit("Reshape", g, w.sizes(rows))
    zeros = w.emit("Expand", np.zeros((), g.dtype), w.sizes(shape))
    return w.emit(
        "ScatterElements", zeros, positions, values, axis=axis, reduction="add"
    )


def _segments(name, reduction, start):
    def translate(w, data, segment_ids, *, num_segments, empty=None):
        first = start(data.dtype) if empty is None else empty
        # Ids out of range are dropped: they go to a row of their own, which is cut off.
        ids = int64(w, segment_ids)
        low = w.emit("Less", ids, np.int64(0))
        high = w.emit("GreaterOrEqual", ids, w.number(num_segments))
        outside = w.emit("Or", low, high)
        ids = w.emit("Where", outside, w.number(num_segments), ids)
        rank = segment_ids.rank
        tail = data.shape[rank:]
        count = math.prod(segment_ids.shape)
        positions = w.emit("Reshape", ids, w.axes(-1, *[1] * len(tail)))
        positions = w.emit("Expand", positions, w.sizes([count, *tail]))
        values = w.emit("Reshape", data, w.sizes([count, *tail]))
        rows = w.sizes([num_segments + 1, *tail])
        full = w.emit("Expand", np.asarray(first, data.dtype), rows)
        reduced = w.emit(
            "ScatterElements", full, positions, values, axis=0, reduction=reduction
        )
        return w.emit("Slice", reduced, w.axes(0), w.size(num_segments), w.axes(0))

    translate.__name__ = name
    return _translates(translate)


@_translates
def unravel_index(w, indices, *, dims):
    rows, step = [], 1
    for size in reversed(dims):
        index = indices
        if rows:
            index = w.emit("Div", indices, np.asarray(step, indices.dtype))
        index = w.emit("Mod", index, np.asarray(size, indices.dtype))
        rows.insert(0, w.emit("Unsqueeze", index, w.axes(0)))
        step *= size
    return w.emit("Concat", *rows, axis=0)


@_translates
def invert_permutation(w, x):
    numbers = w.cast(arange(w, count=x.shape[0], dtype="int64"), x.dtype)
    return w.emit("ScatterElements", numbers, int64(w, x), numbers, axis=0)


def _unchanged(name):
    ARRAYS[name] = lambda w, x, *rest, **attributes: w.emit("Identity", x)


_unchanged("checked_equal")
_unchanged("checked_permutation")


def _limit(side):
    return lambda dtype: getattr(
        (np.finfo if dtype.kind == "f" else np.iinfo)(dtype), side
    )


_segments("unsorted_segment_sum", "add", lambda dtype: 0)
_segments("unsorted_segment_prod", "mul", lambda dtype: 1)
_segments("unsorted_segment_max", "max", _limit("min"))
_segments("unsorted_segment_min", "min", _limit("max"))


@_translates
def put_rows(w, matrix, indices, rows):
    columns = w.emit("Unsqueeze", int64(w, indices), w.axes(indices.rank))
    return w.emit("ScatterND", matrix, columns, rows)


@_translates
def put_row(w, params, index, row):
    position = w.emit("Reshape", int64(w, index), w.axes(1, 1))
    return w.emit("ScatterND", params, position, w.emit("Unsqueeze", row, w.axes(0)))


@_translates
def nonzero(w, condition):
    indices = w.emit("NonZero", condition)
    return w.emit("Transpose", indices, perm=(1, 0))


@_translates
def flatnonzero(w, condition):
    flat = w.emit("Reshape", condition, w.axes(-1))
    return w.emit("Squeeze", w.emit("NonZero", flat), w.axes(0))


# --------------------------------------------------------------------------- matrices


@_translates
def band_part(w, input, *, num_lower, num_upper):
    x = input
    if num_lower >= 0:
        x = w.emit("Trilu", x, np.int64(-num_lower), upper=1)
    if num_upper >= 0:
        x = w.emit("Trilu", x, np.int64(num_upper), upper=0)
    return w.emit("Identity", x)


@_translates
def diag_part(w, input, *, k, align):
    if k[0] != k[1]:
        raise Untranslatable("several diagonals")
    rows, columns = input.shape[-2:]
    count = max(0, min(rows, columns, rows + k[0], columns - k[0]))
    numbers = np.arange(count)
    positions = (numbers + max(0, -k[0])) * columns + numbers + max(0, k[0])
    lead = input.shape[:-2]
    flat = w.emit("Reshape", input, w.sizes([*lead, rows * columns]))
    return w.emit("Gather", flat, positions, axis=len(lead))


@_translates
def triangle(w, x, *, lower, half):
    part = w.emit("Trilu", x, np.int64(0), upper=0 if lower else 1)
    if not half:
        return part
    strict = w.emit("Trilu", x, np.int64(-1 if lower else 1), upper=0 if lower else 1)
    both = w.emit("Add", part, strict)
    return w.emit("Mul", both, np.asarray(0.5, x.dtype))
