"""The windows of a convolution as columns of matrices (im2col).

The memory order is ``[channels, width, height, batch]``: windows then move long
contiguous runs. Columns are built one block at a time, in scratch memory that the
caller may provide.
"""

import itertools
import math

import numpy as np

from tapewright.core.hardware.blas import gemm
from tapewright.core.hardware.parallel import parallel_for

from .windows import positions

# Numbers in one block of columns: enough for a product at full speed, no more memory.
BLOCK, GPU_BLOCK = 1 << 22, 1 << 26
# Numbers in the piece of an image that is transposed at a time.
PIECE = 1 << 15
# From so many numbers on a product that adds is worth the call of BLAS.
LARGE = 1 << 14
# The channels of the input for each of the output from which on the output is thin.
THIN = 4


class Room:
    """Scratch memory, handed out in pieces: from an array while it lasts, then allocated."""

    def __init__(self, xp, dtype, array=None):
        self.xp, self.dtype, self.rest = xp, dtype, array

    def take(self, *shape):
        size, rest = math.prod(shape), self.rest
        if rest is None or rest.dtype != self.dtype or rest.size < size:
            return self.xp.empty(shape, self.dtype)
        self.rest = rest[-(-size // 16) * 16 :]
        return rest[:size].reshape(shape)

    def remaining(self):
        """Return the rest as a separate `Room`, for one of several successive uses."""
        return Room(self.xp, self.dtype, self.rest)


def turned(xp, x, room):
    """Return ``[n, h, w, c]`` as ``[c, w, h, n]``, contiguous in memory."""
    view = x.transpose()
    if view.flags.c_contiguous:
        return view
    if xp is not np:
        return xp.ascontiguousarray(view)
    return turn_into(x, room.take(*view.shape))


def turn_into(x, out):
    """Write ``[n, h, w, c]`` to ``out`` ``[c, w, h, n]``; return ``out``."""
    view = x.transpose()
    if view.flags.c_contiguous or (len(x) > 1 and view.strides[-1] == x.itemsize):
        out[...] = view
    else:
        _transpose(np.ascontiguousarray(x), out)
    return out


def _transpose(x, out):
    """Write ``[n, ..., w, c]`` to ``out`` ``[c, w, ..., n]``, a few rows of images at once.

    The rows are copied first: images may lie a power of two apart, so that the entries
    of a pixel would evict each other from the cache.
    """
    batch, height, row = len(x), x.shape[1], math.prod(x.shape[2:])
    step = max(1, PIECE // max(batch * row, 1))

    def work(i):
        part = x[:, i : i + step]
        space = np.empty((batch, step * row + 16), x.dtype)
        piece = space[:, : part.shape[1] * row].reshape(part.shape)
        piece[...] = part
        out.T[:, i : i + step] = piece

    parallel_for(work, range(0, height, step), x.size)


def matrices(filters, shifts=1):
    """Reshape filters ``[*window, c, o]`` to ``[shifts, taps * c, o]``; see `columns`."""
    *window, depth, count = filters.shape
    taps = math.prod(window) // shifts
    split = filters.reshape(taps, shifts, depth, count)
    return split.swapaxes(0, 1).reshape(shifts, taps * depth, count)


def blocks_of(xp, depth, counts, batch):
    """Return blocks ``(first, rows)`` of the first spatial axis in memory."""
    count, each = counts[-1], depth * math.prod(counts[:-1]) * batch
    fit = max(1, (BLOCK if xp is np else GPU_BLOCK) // max(each, 1))
    rows = -(-count // -(-count // fit))
    return [(i, min(rows, count - i)) for i in range(0, count, rows)]


def _met(tap, size, stride, dilation, before, count, first=0):
    """Return slices: the windows (of ``count``) in which a tap meets an entry; the entries."""
    offset = tap * dilation - before + first * stride
    start = max(0, -(offset // stride))
    stop = min(count, (size - 1 - offset) // stride + 1)
    if start >= stop:
        return None
    at = start * stride + offset
    return slice(start, stop), slice(at, at + (stop - start - 1) * stride + 1, stride)


def meetings(sizes, window, strides, dilations, befores, counts, first, rows):
    """Return ``(tap, windows, entries)`` for each tap of the window: indices into memory.

    ``windows`` are the windows of a block that meet entries at this tap, ``entries`` the
    entries that they meet. Both are None for a tap that meets margins only.
    """
    each = []
    for axis in zip(sizes, window, strides, dilations, befores, counts):
        size, taps, stride, dilation, before, count = axis
        each.append([(size, stride, dilation, before, count)] * taps)
    last = len(each) - 1
    tables = [
        [
            _met(tap, *(*spec[:4], rows, first) if i == last else spec)
            for tap, spec in enumerate(specs)
        ]
        for i, specs in enumerate(each)
    ]
    for tap in itertools.product(*[range(n) for n in window]):
        pairs = [tables[i][t] for i, t in enumerate(tap)][::-1]
        if None in pairs:
            yield tap, None, None
            continue
        windows, entries = zip(*pairs)
        yield tap, (..., *windows, slice(None)), (..., *entries, slice(None))


def shared_taps(window, strides, depth, count):
    """Return the number of taps that share columns: taps along the width, where it pays.

    Sharing saves copies of the input, but the output is summed from several products.
    """
    pays = math.prod(window[:-1]) * depth >= count
    return window[-1] if strides[-1] == 1 and pays else 1


def has_thin_output(filters, strides):
    """Return whether the output of a convolution has far fewer channels than the input.

    If so, the windows of the adjoint are copied instead: with stride 1, a convolution
    is the adjoint of a convolution with flipped filters.
    """
    *window, depth, count = filters
    return set(strides) == {1} and math.prod(window) > 1 and THIN * count <= depth


def as_adjoint(filters, dilations, befores):
    """Return filters ``[*window, o, c]`` of the adjoint, a view, and the leading margins.

    An entry meets tap ``t`` of one where it meets tap ``n - 1 - t`` of the other.
    """
    window = filters.shape[:-2]
    flipped = filters[(slice(None, None, -1),) * len(window)].swapaxes(-1, -2)
    reaches = [(n - 1) * dilation for n, dilation in zip(window, dilations)]
    return flipped, [reach - b for reach, b in zip(reaches, befores)]


def columns(xp, x, window, strides, dilations, befores, counts, shifts, room):
    """Yield the entries in the windows, block by block: ``(start, stop, matrices)``.

    A matrix is ``[taps * channels, positions]``. With stride 1, a tap further along the
    width meets the same entries as its neighbour one position later: the same columns,
    shifted.
    """
    channels, *sizes, batch = x.shape
    rest = math.prod(counts[:-1]) * batch
    if shifts > 1:
        window = (*window[:-1], 1)
    taps, more = math.prod(window), (shifts - 1) * dilations[-1]

    def shifted(cols, rows):
        cols = cols.reshape(taps * channels, (rows + more) * rest)
        starts = [j * dilations[-1] * rest for j in range(shifts)]
        return [cols[:, i : i + rows * rest] for i in starts]

    sizes, exact = tuple(sizes[::-1]), (*counts[:-1], counts[-1] + more)
    if taps == 1 and set(strides) == {1} and sizes == exact and not any(befores):
        yield 0, counts[-1] * rest, shifted(x, counts[-1])  # there is nothing to copy
        return
    blocks = blocks_of(xp, channels * taps, counts, batch)
    space = room.take(channels * taps * (blocks[0][1] + more) * rest)
    for first, rows in blocks:
        cols = space[: channels * taps * (rows + more) * rest]
        cols = cols.reshape(1, *window, channels, rows + more, *counts[-2::-1], batch)
        unroll(cols, x[None], meetings(sizes, window, strides, dilations, befores, counts,
                                       first, rows + more))  # fmt: skip
        yield first * rest, (first + rows) * rest, shifted(cols, rows)


def unroll(cols, x, met, clear=True):
    """Copy the entries of ``x`` that each tap meets into columns, with zeros for margins.

    If ``clear`` is False, those zeros are already there.
    """
    for tap, windows, entries in met:
        seen = cols[(slice(None), *tap)]
        if windows is not None:
            seen[windows] = x[entries]
        if clear:
            clear_around(seen, windows)


def columns_size(image, filters, strides, padding, dilations):
    """Return the number of entries in the columns for an image and filters of these shapes."""
    *window, depth, count = filters
    _, counts = positions(image[1:-1], window, strides, padding, dilations)
    if has_thin_output(filters, strides):
        depth, count = count, depth
        # The blocks of the convolution and of its adjoint.
        counts = tuple(map(max, counts, image[1:-1]))
    shifts = shared_taps(window, strides, depth, count)
    taps = math.prod(window) // shifts
    more = (shifts - 1) * dilations[-1]
    rows = blocks_of(np, depth * taps, counts, image[0])[0][1]
    return depth * taps * (rows + more) * math.prod(counts[:-1]) * image[0]


def product(xp, a, b, out=None, add=False):
    """Compute ``a @ b`` for stacks of matrices, into ``out`` or added to it.

    NumPy has no fast product for float16, so float16 products are computed in float32,
    and a new array is float32.
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
    elif add and out.ndim == 2 and out.size >= LARGE:
        gemm(a, b, out, beta=1.0)
    elif add:
        out += a @ b
    else:
        np.matmul(a, b, out=out)
    return out


def clear_around(x, entries):
    """Set zeros where ``entries``, slices for the axes before the last, do not reach.

    If they are None, set zeros everywhere.
    """
    if entries is None:
        x[...] = 0
        return
    for axis, part in enumerate(entries[1:-1], 2):
        if part.step not in (None, 1):
            x[...] = 0
            return
        lead = (slice(None),) * axis
        if part.start:
            x[(*lead, slice(0, part.start))] = 0
        if part.stop < x.shape[axis]:
            x[(*lead, slice(part.stop, None))] = 0
