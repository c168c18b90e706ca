"""Offsets in one block of memory, for buffers with known live ranges."""

import bisect
import heapq

import numpy as np

ALIGNMENT = 64
# The fast layout is taken if it wastes at most so many bytes, or this part of the need.
WASTE, PART = 1 << 16, 0.02


def lay_out(ranges):
    """Return ``(offsets, size)``: the offset of each buffer, and the bytes of all.

    ``ranges`` are the live ranges, ``(first, last, nbytes)``, as instruction numbers.
    Buffers that are live at once never overlap. The size is within a few percent of the
    most bytes that are live at once, and equal to it in most programs.

    Example:
        >>> from tapewright.compiler.program.arena import lay_out
        >>> lay_out([(0, 1, 640), (1, 2, 128), (2, 3, 640)])
        ([0, 640, 0], 768)
    """
    ranges = [
        (first, last, -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT)
        for first, last, nbytes in ranges
    ]
    offsets, size = _by_time(ranges)
    needed = _most_at_once(ranges)
    if size - needed > max(WASTE, PART * needed):
        others = _by_size(ranges)
        offsets, size = min((offsets, size), others, key=lambda each: each[1])
    return offsets, size


def _most_at_once(ranges):
    """Return the most bytes that are live at once."""
    changes = [(first, nbytes) for first, _, nbytes in ranges]
    changes += [(last + 1, -nbytes) for _, last, nbytes in ranges]
    now = most = 0
    for _, nbytes in sorted(changes):
        now += nbytes
        most = max(most, now)
    return most


def _by_time(ranges):
    """Place buffers in order of first use, each in the smallest gap that fits.

    This is fast for any number of buffers.
    """
    offsets, size = [0] * len(ranges), 0
    gaps, ending = [], []  # (start, stop) in order; heap of (last, start, stop)
    for i in sorted(range(len(ranges)), key=lambda i: (ranges[i][0], -ranges[i][2])):
        first, last, nbytes = ranges[i]
        while ending and ending[0][0] < first:
            _, start, stop = heapq.heappop(ending)
            _give_back(gaps, start, stop)
        fitting = [(b - a, n) for n, (a, b) in enumerate(gaps) if b - a >= nbytes]
        if fitting:
            _, n = min(fitting)
            start, stop = gaps[n]
            gaps[n : n + 1] = [(start + nbytes, stop)] if stop - start > nbytes else []
        else:
            at_end = gaps and gaps[-1][1] == size
            start = gaps.pop()[0] if at_end else size
            size = start + nbytes
        offsets[i] = start
        heapq.heappush(ending, (last, start, start + nbytes))
    return offsets, size


def _give_back(gaps, start, stop):
    """Free a gap, merged with adjacent gaps."""
    n = bisect.bisect(gaps, (start, stop))
    behind = n < len(gaps) and gaps[n][0] == stop
    before = n > 0 and gaps[n - 1][1] == start
    gaps[n - before : n + behind] = [
        (gaps[n - 1][0] if before else start, gaps[n][1] if behind else stop)
    ]


def _by_size(ranges):
    """Place the largest buffers first, each in the smallest gap that fits."""
    offsets, size, count = [0] * len(ranges), 0, 0
    placed = np.empty((4, len(ranges)), np.int64)  # columns (low, high, first, last)
    for i in sorted(range(len(ranges)), key=lambda i: (-ranges[i][2], ranges[i][0])):
        first, last, nbytes = ranges[i]
        low, high, begins, ends = placed[:, :count]
        meets = (begins <= last) & (ends >= first)
        low, high = low[meets], np.maximum.accumulate(high[meets])
        below = np.concatenate(([0], high))  # where the gap below each of them begins
        gaps = low - below[:-1]
        gaps[gaps < nbytes] = np.iinfo(np.int64).max
        n = int(gaps.argmin()) if gaps.size else 0
        fits = gaps.size and gaps[n] >= nbytes and gaps[n] < np.iinfo(np.int64).max
        start = int(below[n] if fits else below[-1])
        offsets[i] = start
        at = int(np.searchsorted(placed[0, :count], start))
        placed[:, at + 1 : count + 1] = placed[:, at:count].copy()
        placed[:, at] = start, start + nbytes, first, last
        size, count = max(size, start + nbytes), count + 1
    return offsets, size
