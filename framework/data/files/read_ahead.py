"""Read rows of stored arrays in windows: many rows at once, in the order of the file.

The numbers of the next rows are known long before the rows are needed. A *window* is a
run of these numbers whose rows fit into memory: they are read sorted, once each, in
large pieces, and then gathered in the order of the numbers. While the batches of one
window are yielded, the rows of the next one are read, a few with each batch.
"""

from collections import deque
from itertools import cycle

import numpy as np

PIECE = 1 << 20  # bytes to read at once
GAP = 1 << 16  # bytes that take as long to read as another call


def row_bytes(array):
    """Return the size of a row in memory in bytes, at least 1."""
    return max(int(np.prod(array.shape[1:])) * array.dtype.itemsize, 1)


def whole_chunks(array, rows):
    """Round a number of rows to whole chunks of the file, at least one."""
    chunk = array.chunk_rows or 1
    return max(rows // chunk, 1) * chunk


def read_batches(arrays, batches, window, block):
    """Yield the rows of all ``arrays`` for each of ``batches``, arrays of numbers.

    ``arrays`` have one length, and ``shape``, ``dtype``, ``chunk_rows`` and
    ``read_rows``; up to twice ``window`` rows are in memory; ``block`` rows are best
    read together. Batches are taken ahead. The results are new arrays.
    """
    sizes = deque()
    orders = _windows(_measured(batches, sizes), window, block)
    buffers = [[_buffer(array, window) for array in arrays] for _ in range(2)]
    windows = (
        _Window(order, arrays, b, block)
        for order, b in zip(orders, cycle(buffers), strict=False)
    )
    current = next(windows, None)
    pieces, missing = [], 0
    while current is not None:
        current.read(1.0)
        following = next(windows, None)
        start, end = 0, len(current)
        while start < end:
            missing = missing or sizes.popleft()
            stop = min(start + missing, end)
            if following is not None:
                following.read(stop / end)
            pieces.append(current.rows(start, stop))
            missing -= stop - start
            start = stop
            if not missing:
                yield _join(pieces)
                pieces = []
        current = following


def _measured(batches, sizes):
    for batch in batches:
        sizes.append(len(batch))
        yield batch


def _buffer(array, window):
    return np.empty((window, *array.shape[1:]), array.dtype)


def _join(pieces):
    if len(pieces) == 1:
        return pieces[0]
    return [np.concatenate(column) for column in zip(*pieces, strict=True)]


def _windows(batches, size, block):
    """Yield the numbers of all batches, cut into arrays of at most ``size``."""
    held, count = [], 0
    for batch in batches:
        held.append(batch)
        count += len(batch)
        while count > 2 * size:
            order = np.concatenate(held)
            cut = _cut(order, size, block)
            yield order[:cut]
            held, count = [order[cut:]], count - cut
    while count:
        order = np.concatenate(held)
        cut = _cut(order, size, block) if count > size else count
        yield order[:cut]
        held, count = [order[cut:]], count - cut


def _cut(order, size, block):
    """Return the end of a window of up to ``size`` rows that splits no block, if possible."""
    blocks = order // block
    last = np.zeros(blocks.max() + 1, np.intp)
    last[blocks] = np.arange(len(blocks))  # the last one of equal indices counts
    reached = np.maximum.accumulate(last[blocks[:size]])
    ends = 1 + np.flatnonzero(reached == np.arange(size))
    return int(ends[-1]) if len(ends) and 2 * ends[-1] >= size else size


class _Window:
    """Rows in memory, each once, sorted by their numbers."""

    def __init__(self, order, arrays, buffers, block):
        self._numbers, self._rows = np.unique(order, return_inverse=True)
        self._buffers = buffers
        self._reads = [
            read
            for array, buffer in zip(arrays, buffers, strict=True)
            for read in self._pieces(array, buffer, block)
        ]
        self._done = 0

    def __len__(self):
        return len(self._rows)

    def rows(self, start, stop):
        """Return the rows of a part of the order, one array for each column."""
        rows = self._rows[start:stop]
        return [buffer.take(rows, axis=0) for buffer in self._buffers]

    def read(self, share):
        """Read until this share of the window is in memory."""
        done = min(int(np.ceil(share * len(self._reads))), len(self._reads))
        for array, buffer, start, stop in self._reads[self._done : done]:
            _read(array, self._numbers[start:stop], buffer[start:stop])
        self._done = max(done, self._done)

    def _pieces(self, array, buffer, block):
        rows = whole_chunks(array, block)
        edges = 1 + np.flatnonzero(np.diff(self._numbers // rows))
        edges = [0, *edges.tolist(), len(self._numbers)]
        for start, stop in zip(edges, edges[1:], strict=False):
            yield array, buffer, start, stop


def _read(array, numbers, out):
    """Read the rows of these numbers, which are sorted and lie in one piece."""
    first = int(numbers[0])
    span = int(numbers[-1]) + 1 - first
    if span == len(numbers):
        array.read_rows(out, first)
        return
    if array.chunk_rows is None:
        edges = 1 + np.flatnonzero(np.diff(numbers) > 1)
        if (span - len(numbers)) * row_bytes(array) > GAP * len(edges):
            edges = [0, *edges.tolist(), len(numbers)]
            for start, stop in zip(edges, edges[1:], strict=False):
                array.read_rows(out[start:stop], int(numbers[start]))
            return
    stretch = np.empty((span, *out.shape[1:]), out.dtype)
    array.read_rows(stretch, first)
    np.take(stretch, numbers - first, axis=0, out=out, mode="clip")
