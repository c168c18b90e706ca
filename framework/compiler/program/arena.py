"""Places in one block of memory, for arrays that live from one call to another."""

import bisect
import heapq

import numpy as np

__all__ = ["ALIGNMENT", "lay_out"]

ALIGNMENT = 64
# The quick way will do if it wastes no more than this, bytes or a part of what is needed.
WASTE, PART = 1 << 16, 0.02


def lay_out(spans):
    """``(starts, size)``: where each span lies, and how many bytes there are in all.

    Args: ``spans``: ``(first, last, nbytes)``, the calls between which memory is needed.
    Two that are needed at once never overlap. The sum comes within a few percent of the
    most that is needed at one time, in most programs to the byte.

    >>> lay_out([(0, 1, 640), (1, 2, 128), (2, 3, 640)])
    ([0, 640, 0], 768)
    """
    spans = [
        (first, last, -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT)
        for first, last, nbytes in spans
    ]
    starts, size = _by_time(spans)
    needed = _most_at_once(spans)
    if size - needed > max(WASTE, PART * needed):
        others = _by_size(spans)
        starts, size = min((starts, size), others, key=lambda found: found[1])
    return starts, size


def _most_at_once(spans):
    """The most bytes that are needed between two calls."""
    changes = [(first, nbytes) for first, _, nbytes in spans]
    changes += [(last + 1, -nbytes) for _, last, nbytes in spans]
    now = most = 0
    for _, nbytes in sorted(changes):
        now += nbytes
        most = max(most, now)
    return most


def _by_time(spans):
    """Each span takes the smallest gap that there is when it begins.

    It costs little however many there are, and uses again what was used last.
    """
    starts, size = [0] * len(spans), 0
    gaps, ending = [], []  # (start, stop) in order; heap of (last, start, stop)
    for i in sorted(range(len(spans)), key=lambda i: (spans[i][0], -spans[i][2])):
        first, last, nbytes = spans[i]
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
        starts[i] = start
        heapq.heappush(ending, (last, start, start + nbytes))
    return starts, size


def _give_back(gaps, start, stop):
    """Adds a gap, joined with those that touch it."""
    n = bisect.bisect(gaps, (start, stop))
    behind = n < len(gaps) and gaps[n][0] == stop
    before = n > 0 and gaps[n - 1][1] == start
    gaps[n - before : n + behind] = [
        (gaps[n - 1][0] if before else start, gaps[n][1] if behind else stop)
    ]


def _by_size(spans):
    """The largest are placed first, each into the smallest gap that will do."""
    starts, size, count = [0] * len(spans), 0, 0
    placed = np.empty((4, len(spans)), np.int64)  # columns (low, high, first, last)
    for i in sorted(range(len(spans)), key=lambda i: (-spans[i][2], spans[i][0])):
        first, last, nbytes = spans[i]
        low, high, begins, ends = placed[:, :count]
        meets = (begins <= last) & (ends >= first)
        low, high = low[meets], np.maximum.accumulate(high[meets])
        below = np.concatenate(([0], high))  # where the gap below each of them begins
        gaps = low - below[:-1]
        gaps[gaps < nbytes] = np.iinfo(np.int64).max
        n = int(gaps.argmin()) if gaps.size else 0
        fits = gaps.size and gaps[n] >= nbytes and gaps[n] < np.iinfo(np.int64).max
        start = int(below[n] if fits else below[-1])
        starts[i] = start
        at = int(np.searchsorted(placed[0, :count], start))
        placed[:, at + 1 : count + 1] = placed[:, at:count].copy()
        placed[:, at] = start, start + nbytes, first, last
        size, count = max(size, start + nbytes), count + 1
    return starts, size
