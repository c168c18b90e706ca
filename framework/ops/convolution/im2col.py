"""The windows of a convolution as columns of matrices (im2col).

The memory order is ``[channels, width, height, batch]``: windows then move long runs of
neighbours. A block of columns is made at a time, in scratch memory that a caller may give.
"""

import itertools
import math

import numpy as np

from tapewright.core.blas import gemm

from .windows import positions

__all__ = [
    "Room",
    "blocks_of",
    "clear_around",
    "columns",
    "columns_size",
    "flattened",
    "matrices",
    "meetings",
    "product",
    "shared_taps",
    "turned",
]

# Numbers in one block of columns: enough for a product at full speed, no more memory.
BLOCK, GPU_BLOCK = 1 << 22, 1 << 26
# From so many numbers on a product that adds is worth the call of BLAS.
LARGE = 1 << 14


class Room:
    """Scratch memory, piece by piece: of an array while it lasts, else new each time."""

    def __init__(self, xp, dtype, array=None):
        self.xp, self.dtype, self.rest = xp, dtype, array

    def take(self, *shape):
        size, rest = math.prod(shape), self.rest
        if rest is None or rest.dtype != self.dtype or rest.size < size:
            return self.xp.empty(shape, self.dtype)
        self.rest = rest[-(-size // 16) * 16 :]
        return rest[:size].reshape(shape)


def turned(xp, x, room):
    """``[n, h, w, c]`` as ``[c, w, h, n]``, all of it contiguous in memory."""
    view = x.transpose()
    if view.flags.c_contiguous:
        return view
    if xp is not np:
        return xp.ascontiguousarray(view)
    out = room.take(*view.shape)
    if len(x) > 1 and view.strides[-1] == x.itemsize:
        out[...] = view
    else:
        _transpose(np.ascontiguousarray(x).reshape(len(x), -1), out)
    return out


def _transpose(rows, out):
    """``rows`` ``[n, h * w * c]`` into ``out`` ``[c, w, h, n]``.

    A matrix is turned in pieces, in a third of the time of one large transpose; what is
    left then is to move whole batches.
    """
    flat = np.empty((rows.shape[1], len(rows)), rows.dtype)
    for i in range(0, len(flat), 1024):
        flat[i : i + 1024] = rows[:, i : i + 1024].T
    last = out.transpose(*range(out.ndim - 2, -1, -1), out.ndim - 1)
    last[...] = flat.reshape(last.shape)


def flattened(xp, x, groups, room):
    """``[n, h, w, c]`` as the matrices ``[groups, c / groups, w * h * n]``."""
    channels = x.shape[-1]
    return turned(xp, x, room).reshape(
        groups, channels // groups, math.prod(x.shape[1:-1]) * x.shape[0]
    )


def matrices(filters, groups, shifts=1):
    """Filters ``[*window, c / groups, o]`` as matrices, one for each shift.

    Shape: ``[shifts, groups, taps * c / groups, o / groups]``; see `columns`.
    """
    *window, depth, count = filters.shape
    taps, each = math.prod(window) // shifts, count // groups
    split = filters.reshape(taps, shifts, depth, groups, each)
    return split.transpose(1, 3, 0, 2, 4).reshape(shifts, groups, taps * depth, each)


def blocks_of(xp, depth, counts, batch):
    """Blocks ``(first, rows)`` of the first of the spatial axes in memory."""
    count, each = counts[-1], depth * math.prod(counts[:-1]) * batch
    fit = max(1, (BLOCK if xp is np else GPU_BLOCK) // max(each, 1))
    rows = -(-count // -(-count // fit))
    return [(i, min(rows, count - i)) for i in range(0, count, rows)]


def _met(tap, size, stride, dilation, before, count, first=0):
    """Slices: those of ``count`` windows that meet an entry with this tap, and the entries."""
    offset = tap * dilation - before + first * stride
    start = max(0, -(offset // stride))
    stop = min(count, (size - 1 - offset) // stride + 1)
    if start >= stop:
        return None
    at = start * stride + offset
    return slice(start, stop), slice(at, at + (stop - start - 1) * stride + 1, stride)


def meetings(sizes, window, strides, dilations, befores, counts, first, rows):
    """For each tap of the window ``(tap, places, entries)``, indices of arrays in memory.

    ``places``: of the windows of a block that meet entries there; ``entries``: which. Both
    are None for a tap that meets margins only.
    """
    each = []
    for axis in zip(sizes, window, strides, dilations, befores, counts):
        size, taps, stride, dilation, before, count = axis
        each.append([(size, stride, dilation, before, count)] * taps)
    last = len(each) - 1
    found = [
        [
            _met(tap, *(*spec[:4], rows, first) if i == last else spec)
            for tap, spec in enumerate(specs)
        ]
        for i, specs in enumerate(each)
    ]
    for tap in itertools.product(*[range(n) for n in window]):
        pairs = [found[i][t] for i, t in enumerate(tap)][::-1]
        if None in pairs:
            yield tap, None, None
            continue
        places, entries = zip(*pairs)
        yield tap, (..., *places, slice(None)), (..., *entries, slice(None))


def shared_taps(window, strides, depth, count):
    """The number of taps that share columns: those along the width, where it pays.

    Sharing saves copies of the input, but the output is summed up from several products.
    """
    pays = math.prod(window[:-1]) * depth >= count
    return window[-1] if strides[-1] == 1 and pays else 1


def columns(xp, x, window, strides, dilations, margins, counts, groups, shifts, room):
    """Yield the entries in the windows, block by block: ``(start, stop, matrices)``.

    A matrix is ``[groups, taps * depth, places]``. With stride 1 a tap further along the
    width sees what its neighbour sees one place later: the same columns, shifted.
    """
    channels, *sizes, batch = x.shape
    depth, rest = channels // groups, math.prod(counts[:-1]) * batch
    if shifts > 1:
        window = (*window[:-1], 1)
    taps, more = math.prod(window), (shifts - 1) * dilations[-1]

    def shifted(cols, rows):
        cols = cols.reshape(groups, taps * depth, (rows + more) * rest)
        starts = [j * dilations[-1] * rest for j in range(shifts)]
        return [cols[:, :, i : i + rows * rest] for i in starts]

    befores, sizes = [before for before, _ in margins], sizes[::-1]
    exact = (*counts[:-1], counts[-1] + more)
    if taps == 1 and set(strides) == {1} and tuple(sizes) == exact and not any(befores):
        yield 0, counts[-1] * rest, shifted(x, counts[-1])  # there is nothing to copy
        return
    blocks = blocks_of(xp, channels * taps, counts, batch)
    space = room.take(channels * taps * (blocks[0][1] + more) * rest)
    x = x.reshape(groups, depth, *x.shape[1:])
    padded = any([b > 0 or a > 0 for b, a in margins])
    for first, rows in blocks:
        cols = space[: channels * taps * (rows + more) * rest]
        cols = cols.reshape(groups, *window, depth, rows + more, *counts[-2::-1], batch)
        for tap, places, entries in meetings(
            sizes, window, strides, dilations, befores, counts, first, rows + more
        ):
            seen = cols[(slice(None), *tap)]
            if places is None:
                seen[...] = 0
                continue
            if padded:
                clear_around(seen, places)
            seen[places] = x[entries]
        yield first * rest, (first + rows) * rest, shifted(cols, rows)


def columns_size(image, filters, strides, padding, dilations, groups=1):
    """The size of the columns, in numbers, for an image and filters of these shapes."""
    *window, depth, count = filters
    _, counts = positions(image[1:-1], window, strides, padding, dilations)
    shifts = shared_taps(window, strides, depth, count // groups)
    taps = math.prod(window) // shifts
    more = (shifts - 1) * dilations[-1]
    rows = blocks_of(np, depth * groups * taps, counts, image[0])[0][1]
    return depth * groups * taps * (rows + more) * math.prod(counts[:-1]) * image[0]


def product(xp, a, b, out=None, add=False):
    """``a @ b`` of stacks of matrices, into ``out`` or added to it.

    NumPy has no fast product of halves, so these are made in single.
    """
    half = a.dtype.name == "float16"
    if half:
        a, b = a.astype(xp.float32), b.astype(xp.float32)
    if out is None:
        return a @ b
    if half or xp is not np:
        if add:
            out += a @ b
        else:
            out[...] = a @ b
    elif add and len(out) == 1 and out.size >= LARGE:
        gemm(a[0], b[0], out[0], beta=1.0)
    elif add:
        out += a @ b
    else:
        np.matmul(a, b, out=out)
    return out


def clear_around(x, entries):
    """Zeros where ``entries``, slices for the axes before the last, do not reach."""
    for axis, part in enumerate(entries[1:-1], 2):
        if part.step not in (None, 1):
            x[...] = 0
            return
        lead = (slice(None),) * axis
        if part.start:
            x[(*lead, slice(0, part.start))] = 0
        if part.stop < x.shape[axis]:
            x[(*lead, slice(part.stop, None))] = 0
