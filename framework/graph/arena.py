"""Places in one block of memory, for arrays that live from one call to another."""

import bisect

__all__ = ["ALIGNMENT", "lay_out"]

ALIGNMENT = 64


def lay_out(spans):
    """``(starts, size)``: where each span lies, and how many bytes there are in all.

    Args: ``spans``: ``(first, last, nbytes)``, the calls between which memory is needed.
    Two that are needed at once never overlap. The largest are placed first, each into
    the smallest gap that will do: the sum comes within a few percent of the most that is
    needed at one time.

    >>> lay_out([(0, 1, 640), (1, 2, 128), (2, 3, 640)])
    ([0, 640, 0], 768)
    """
    starts, size = [0] * len(spans), 0
    placed = []  # (start, stop, first, last), in order
    for i in sorted(range(len(spans)), key=lambda i: (-spans[i][2], spans[i][0])):
        first, last, nbytes = spans[i]
        nbytes = -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT
        end, smallest, start = 0, None, None
        for low, high, begins, ends in placed:
            if begins <= last and first <= ends:
                gap = low - end
                if gap >= nbytes and (smallest is None or gap < smallest):
                    smallest, start = gap, end
                if high > end:
                    end = high
        start = end if start is None else start
        starts[i] = start
        bisect.insort(placed, (start, start + nbytes, first, last))
        size = max(size, start + nbytes)
    return starts, size
