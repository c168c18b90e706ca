"""Convolutions with small groups, in particular depthwise: small products in the cache.

Products of groups with few channels are limited by memory bandwidth. The columns of a
few groups at a time are therefore built in scratch memory that stays in the cache, and
one batched product uses them. All arrays are
``[groups, channels, width, height, batch]`` in memory.
"""

import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tapewright.core.hardware.parallel import parallel_for, threads_for

from .im2col import GPU_BLOCK, Room, columns_size, meetings, product, unroll
from .windows import positions

# Numbers in one block of columns: they and what they are made of stay near the core.
BLOCK = 1 << 19
# Rows that are long enough for a product for each position along the width.
LONG = 64
# Multiplications of the products that BLAS does not share out to threads.
SMALL = 1 << 18


def are_small(xp, filters, counts, batch):
    """Return whether groups are too small for separate matrix products.

    ``filters`` is the shape ``[groups, *window, depth, each]`` of the filters.
    """
    groups, *rest = filters
    size = math.prod(rest) * math.prod(counts[:-1]) * batch
    return groups > 1 and (xp is not np or size <= SMALL)


def by_groups(compute, xp, arrays, *geometry, room):
    """Call ``compute(xp, *arrays, *geometry, room)`` on some of the groups in each thread."""
    groups, size = len(arrays[0]), max([x.size for x in arrays])
    count = min(groups, threads_for(size)) if xp is np else 1
    rooms = [room, *[Room(xp, arrays[0].dtype) for _ in range(1, count)]]

    def work(i):
        part = slice(i * groups // count, (i + 1) * groups // count)
        compute(xp, *[x[part] for x in arrays], *geometry, rooms[i])

    if count > 1:
        parallel_for(work, range(count))
    else:
        compute(xp, *arrays, *geometry, room)


# --------------------------------------------------------------------------- columns


class Blocks(NamedTuple):
    """The shape of a block of columns: a number of groups, and of outputs along the width.

    ``overlap``: the taps along the width share columns, because the matrices of
    neighbouring outputs overlap. ``size``: the number of entries.
    """

    overlap: bool
    groups: int
    outputs: int
    size: int


def _blocks(xp, groups, filters, strides, dilations, counts, batch):
    """Return the `Blocks` for filters ``[*window, depth, each]`` of every group."""
    *window, depth, each = filters
    row, most = math.prod(counts[:-1]) * batch, BLOCK if xp is np else GPU_BLOCK
    overlap = xp is np and dilations[-1] == 1 and row >= max(LONG, each)
    column, step, more = depth * math.prod(window[:-1]) * row, strides[-1], window[-1]
    if not overlap:
        column, step, more = column * window[-1], 1, 1
    outputs = min(counts[-1], max(1, (most // max(column, 1) - more) // step + 1))
    size = column * ((outputs - 1) * step + more)
    groups = min(groups, max(1, most // max(size, 1)))
    return Blocks(overlap, groups, outputs, groups * size)


def _columns(xp, x, filters, strides, dilations, befores, counts, room):
    """Yield ``(groups, outputs, columns)``: two slices, and ``[groups, _, rows, columns]``.

    Rows are ordered by taps along the width, then by the other taps, then by channels.
    """
    *window, depth, _ = filters
    groups, batch, sizes = len(x), x.shape[-1], x.shape[-2:1:-1]
    blocks = _blocks(xp, groups, filters, strides, dilations, counts, batch)
    space, step, taps, views = room.take(blocks.size), 1, window, _separate
    if blocks.overlap:
        step, taps, views = strides[-1], (*window[:-1], 1), _overlapping
        strides = (*strides[:-1], 1)
    for first in range(0, counts[-1], blocks.outputs):
        outputs = min(blocks.outputs, counts[-1] - first)
        width = (outputs - 1) * step + window[-1] if blocks.overlap else outputs
        met = list(meetings(sizes, taps, strides, dilations, befores, counts,
                            first * step, width))  # fmt: skip
        for start in range(0, groups, blocks.groups):
            part = slice(start, min(start + blocks.groups, groups))
            pixels = (depth, width, *counts[-2::-1], batch)
            by_tap, cols = views(xp, space, x[part], window, pixels, outputs, step)
            # margins stay there for the groups that follow
            unroll(by_tap, x[part], met, clear=start == 0)
            yield part, slice(first, first + outputs), cols


def _overlapping(xp, space, x, window, pixels, outputs, step):
    """Columns without taps along the width: by tap, and as the matrices of the outputs."""
    depth, width, *others = pixels
    shape = len(x), width, *window[:-1], depth, *others
    cols = space[: math.prod(shape)].reshape(shape)
    row, rows, each = math.prod(others), math.prod(window) * depth, cols.itemsize
    lead, along = cols.strides[:2]
    matrices = as_strided(
        cols, (len(x), outputs, rows, row), (lead, along * step, row * each, each)
    )
    by_tap = np.moveaxis(cols, 1, len(window) + 1)
    return np.expand_dims(by_tap, len(window)), matrices


def _separate(xp, space, x, window, pixels, outputs, step):
    """Columns for all taps: by tap, and as one matrix."""
    shape = len(x), window[-1], *window[:-1], *pixels
    cols = space[: math.prod(shape)].reshape(shape)
    rows = math.prod(window) * pixels[0]
    return xp.moveaxis(cols, 1, len(window)), cols.reshape(len(x), 1, rows, -1)


def _beside(y, cols):
    """Reshape ``[groups, channels, outputs, ...]`` to matrices that match columns, in place."""
    groups, channels = y.shape[:2]
    return y.reshape(groups, channels, cols.shape[1], -1).swapaxes(1, 2)


# ------------------------------------------------------------------------ the three ops


def convolve_groups(xp, x, filters, out, strides, dilations, befores, counts, room):
    """Convolve ``x`` into ``out`` with ``filters`` ``[groups, *window, depth, each]``."""
    groups, *window, depth, each = filters.shape
    weights = filters.reshape(groups, -1, window[-1], depth, each)
    weights = weights.transpose(0, 4, 2, 1, 3).reshape(groups, 1, each, -1)
    for part, outputs, cols in _columns(
        xp, x, filters.shape[1:], strides, dilations, befores, counts, room
    ):
        target = out[part, :, outputs]
        if out.flags.c_contiguous:
            product(xp, weights[part], cols, _beside(target, cols))
        else:
            result = product(xp, weights[part], cols)
            target[...] = result.swapaxes(1, 2).reshape(target.shape)


def filter_gradient_of_groups(xp, x, g, out, strides, dilations, befores, counts, room):
    """Write the adjoint in the filters to ``out`` ``[groups, *window, depth, each]``."""
    groups, *window, depth, each = out.shape
    dtype = xp.float32 if out.dtype.name == "float16" else out.dtype
    total = xp.zeros((groups, math.prod(window) * depth, each), dtype)
    for part, outputs, cols in _columns(
        xp, x, out.shape[1:], strides, dilations, befores, counts, room
    ):
        matrices = _beside(g[part, :, outputs], cols).swapaxes(2, 3)
        total[part] += product(xp, cols, matrices).sum(1)
    split = total.reshape(groups, window[-1], *window[:-1], depth, each)
    out[...] = xp.moveaxis(split, 1, len(window))


def input_gradient_of_groups(xp, g, filters, out, strides, dilations, befores, room):
    """Write the adjoint in the input to ``out``: convolutions with flipped filters.

    There is one convolution for each phase of the strides.
    """
    sizes = out.shape[-2:1:-1]
    for phase in _phases(sizes, filters.shape[1:-2], strides, dilations, befores):
        entries, taps, *geometry = zip(*phase)
        target = out[(..., *entries[::-1], slice(None))]
        chosen = filters[(slice(None), *taps)].swapaxes(-1, -2)
        if not target.size:
            continue
        if not chosen.size:
            target[...] = 0
            continue
        convolve_groups(xp, g, chosen, target, (1,) * len(taps), *geometry, room)


def _phases(sizes, window, strides, dilations, befores):
    """Yield, per phase, ``(entries, taps, dilation, before, count)`` for each axis.

    The entries ``r, r + stride, ...`` of the input meet taps some steps apart; the last
    of these taps meets the first position.
    """
    axes = [
        [_phase(start, *axis) for start in range(axis[2])]
        for axis in zip(sizes, window, strides, dilations, befores)
    ]
    return itertools.product(*axes)


def _phase(start, size, window, stride, dilation, before):
    common = math.gcd(stride, dilation)
    step, apart = stride // common, dilation // common
    met = [t for t in range(window) if (t * dilation - before - start) % stride == 0]
    last = met[-1] if met else 0
    taps = slice(last, None, -step) if met else slice(0)
    ahead = (start + before - last * dilation) // stride
    count = len(range(start, size, stride))
    return slice(start, None, stride), taps, apart, -ahead, count


def group_columns_size(image, filters, strides, padding, dilations, groups):
    """Return the number of entries in the columns, for the convolution and its adjoints."""
    *window, depth, count = filters
    margins, counts = positions(image[1:-1], window, strides, padding, dilations)
    filters = *window, depth, count // groups
    if not are_small(np, (groups, *filters), counts, image[0]):
        return columns_size((*image[:-1], depth), filters, strides, padding, dilations)
    sizes = [_blocks(np, groups, filters, strides, dilations, counts, image[0]).size]
    befores = [before for before, _ in margins]
    for phase in _phases(image[1:-1], window, strides, dilations, befores):
        _, taps, apart, _, counts = zip(*phase)
        window_met = [len(range(*t.indices(n))) for t, n in zip(taps, window)]
        if all(window_met) and all(counts):
            met = *window_met, count // groups, depth
            ones = (1,) * len(window)
            sizes.append(_blocks(np, groups, met, ones, apart, counts, image[0]).size)
    return max(sizes)
