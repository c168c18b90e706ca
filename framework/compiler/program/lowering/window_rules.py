"""Pooling along an axis for targets that compile loops: each entry from its taps.

An entry of the output is computed in one go, for every op: in pooling from the entries
of its window, in gradients from the windows that contain it. Tap by tap the values equal
those of the kernels in `ops.convolution.pooling`.
"""

import numpy as np

from tapewright.ops.convolution.pooling import (
    in_halves,
    pick_at_maxima_p,
    shares_of,
    spread_means_p,
    spread_to_maxima_p,
    window_max_p,
    window_mean_p,
)
from tapewright.ops.convolution.windows import (
    at,
    is_everywhere,
    resized,
    taps,
    window_positions,
)

from ..instructions.array_instructions import Index, read_bounded
from .array_functions import NotTraceable

MOST = 64  # taps: code grows with them
FEW = 4  # taps of which each looks at all before it; more store which one is first


class _Windows:
    """The windows of an axis; a tap may read entries of windows, or windows of entries."""

    def __init__(self, builder, axis, shape, extent, size, stride, padding, dilation):
        self.builder, self.axis, self.shape = builder, axis, shape
        self.extent, self.size, self.stride = extent, size, stride
        self.before, _, self.count = window_positions(
            extent, size, stride, padding, dilation
        )
        self.dilation = dilation
        if not 0 < size <= MOST or stride > MOST or not extent or not self.count:
            raise NotTraceable
        _, slices = taps(extent, size, stride, padding, dilation)
        self.is_everywhere = len(slices) == size and is_everywhere(slices, self.count)
        self.shares = shares_of(extent, size, stride, padding, dilation)

    def read(self, x, index, extent, fill=0):
        """Read an array along the axis; ``fill`` where there is no entry."""
        return self.builder.read(x, fill, {self.axis: (index, extent)})

    def entry(self, x, tap, fill=0):
        """Read for each window the entry that a tap reads."""
        index = Index(self.stride, tap * self.dilation - self.before)
        return self.read(x, index, self.count, fill)

    def window(self, x, tap):
        """Read for each entry the window whose tap reads it."""
        return self.read(x, self.index_of_window(tap), self.extent)

    def index_of_window(self, tap):
        """Return the index of the window whose tap reads an entry."""
        return Index(1, self.before - tap * self.dilation, self.stride)

    def earlier(self, x, taps):
        """Read for each entry the one that a window reads so many taps earlier."""
        return self.read(x, Index(1, -taps * self.dilation), self.extent)

    def ones(self, extent):
        """Return True for each entry of an array, to be read within bounds."""
        return np.broadcast_to(True, resized(self.shape, self.axis, extent))

    def share(self, dtype):
        """Return one over the number of entries of each window."""
        if isinstance(self.shares, np.ndarray):
            return self.along(self.shares.astype(dtype))
        return np.full((), self.shares, dtype)

    def along(self, numbers):
        """Return numbers along the axis, in the shape of the arrays."""
        return numbers.reshape(-1, *(1,) * (-self.axis - 1))


def lower_window_max(builder, input, axis, **window):
    windows, dtype = _windows(builder, axis, input, window), input.dtype
    lowest = -np.inf if dtype.kind == "f" else np.iinfo(dtype).min
    out = windows.entry(input, 0, lowest)
    for tap in range(1, windows.size):
        out = np.maximum(out, windows.entry(input, tap, lowest))
    return out


def lower_window_mean(builder, input, axis, **window):
    windows, dtype = _windows(builder, axis, input, window), input.dtype
    total = windows.entry(input, 0)
    total = total if windows.is_everywhere else total + np.zeros((), dtype)
    for tap in range(1, windows.size):
        total = total + windows.entry(input, tap)
    return total * windows.share(dtype)


def lower_spread_means(builder, g, extent, axis, **window):
    windows = _Windows(builder, axis, g.shape, extent, **window)
    share, total = windows.share(g.dtype), np.zeros((), g.dtype)
    if not share.ndim and not np.isfinite(share):  # all windows are in the margins
        return np.zeros(resized(g.shape, axis, extent), g.dtype)
    for tap in range(windows.size):
        each = share
        if share.ndim:  # of the window that an entry is read from
            index = [windows.index_of_window(tap), *[Index()] * (share.ndim - 1)]
            each = read_bounded(share, 0, index, (extent, *share.shape[1:]))
        total = total + windows.window(g, tap) * each
    return total


def lower_pick_at_maxima(builder, c, input, maxima, axis, **window):
    _check_alike(axis, c, input, maxima)
    windows = _windows(builder, axis, input, window)
    total, free, zero = np.zeros((), c.dtype), np.ones((), bool), np.zeros((), c.dtype)
    for tap in range(windows.size):
        exists = windows.entry(windows.ones(windows.extent), tap)
        hit = free & exists & (windows.entry(input, tap) == maxima)
        total = total + np.where(hit, windows.entry(c, tap), zero)
        free = free & ~hit
    return total


def lower_spread_to_maxima(builder, g, input, maxima, axis, **window):
    _check_alike(axis, g, input, maxima)
    windows = _windows(builder, axis, input, window)
    if in_halves(input.shape, g.dtype, axis, **window):
        return _spread_to_halves(windows, g, input)
    total, zero = np.zeros((), g.dtype), np.zeros((), g.dtype)
    firsts = _first_taps(windows, input, maxima) if windows.size > FEW else None
    for tap in range(windows.size):
        exists = windows.window(windows.ones(windows.count), tap)
        if firsts is not None:
            hit = windows.window(firsts, tap) == tap
        else:
            maximum = windows.window(maxima, tap)
            hit = input == maximum
            for taps in range(1, tap + 1):
                earlier = windows.earlier(input, taps) == maximum
                there = windows.earlier(windows.ones(windows.extent), taps)
                hit = hit & ~(earlier & there)
        total = total + np.where(exists & hit, windows.window(g, tap), zero)
    return total


def _spread_to_halves(windows, g, input):
    """Give each cotangent to the larger entry of two; to the second if unordered."""
    pairs = [slice(tap, 2 * windows.count, 2) for tap in (0, 1)]
    pairs = [input[at(windows.axis, each)] for each in pairs]
    zero, choices = np.zeros((), g.dtype), []
    for tap in (0, 1):
        first, second = [windows.window(each, tap) for each in pairs]
        kept, wins = windows.window(g, tap), first >= second
        choices.append(np.where(wins, *((zero, kept) if tap else (kept, zero))))
    return np.where(windows.window(windows.ones(windows.count), 0), *choices)


def _first_taps(windows, input, maxima):
    """Return for each window the tap of its first maximum."""
    first = np.full((), windows.size, np.int32)
    for tap in range(windows.size)[::-1]:
        exists = windows.entry(windows.ones(windows.extent), tap)
        hit = exists & (windows.entry(input, tap) == maxima)
        first = np.where(hit, np.full((), tap, np.int32), first)
    return first


def _windows(builder, axis, input, window):
    return _Windows(builder, axis, input.shape, input.shape[axis], **window)


def _check_alike(axis, *arrays):
    """Reject arrays that would have to broadcast along another axis."""
    if len({resized(x.shape, axis, 1) for x in arrays}) > 1:
        raise NotTraceable


LOOP_RULES = {
    pick_at_maxima_p.primitive: lower_pick_at_maxima,
    spread_means_p.primitive: lower_spread_means,
    spread_to_maxima_p.primitive: lower_spread_to_maxima,
    window_max_p.primitive: lower_window_max,
    window_mean_p.primitive: lower_window_mean,
}
