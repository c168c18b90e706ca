"""Arrays written to a file and hashed at the same time, on several cores.

HDF5 decides where an array is stored, and its bytes are then written there directly.
Each piece of the seal that an array fills is hashed while it is in memory, so that
sealing need not read it again.
"""

import os

import numpy as np

from tapewright.core.dtypes import kind_of
from tapewright.core.hardware.devices import to_numpy

from .checksum import PIECE, USER_BLOCK, digest

UNIT = 4 << 20  # bytes that are written at a time
BLOCK = 4 << 20  # bytes of an array that are copied at a time if they must be
SMALLEST = 64 << 10  # bytes of an array that is worth it
MAX_THREADS = 4  # that write and hash


def is_written_directly(array):
    """Return True if the bytes of an array in memory are the bytes that HDF5 would write."""
    return (
        array.nbytes >= SMALLEST
        and kind_of(array.dtype) in "fiuc"
        and array.dtype.isnative
    )


def blocks(array):
    """Yield the elements in order as contiguous NumPy arrays, copied in parts if at all."""
    is_ready = isinstance(array, np.ndarray) and array.flags.c_contiguous
    if is_ready or array.nbytes <= BLOCK:
        yield np.ascontiguousarray(to_numpy(array))
    elif array.shape[0] == 1:
        yield from blocks(array[0])
    else:
        rows = max(BLOCK * array.shape[0] // array.nbytes, 1)
        for start in range(0, array.shape[0], rows):
            yield from blocks(array[start : start + rows])


class ParallelWriter:
    """Write arrays at offsets of a `GuardedFile` that HDF5 has reserved; keep ``digests``.

    This thread writes, as the system serializes writes, while others hash; then it
    hashes as well.
    """

    def __init__(self, file):
        self._file, self._pool = file, None
        self._others = min(os.cpu_count() or 1, MAX_THREADS) - 1
        self.digests = {}  # of the pieces of the seal that are known

    def close(self):
        if self._pool is not None:
            self._pool.shutdown()

    def write(self, array, offset):
        """Write all bytes of an array, starting at an offset in the file."""
        if self._pool is None and self._others:
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(self._others)
        self._file.reserve(offset, array.nbytes)
        for block in blocks(array):
            self._write(memoryview(block.reshape(-1).view(np.uint8)), offset)
            offset += block.nbytes

    def _write(self, content, offset):
        first = -(-(offset - USER_BLOCK) // PIECE)  # the first piece that starts here
        last = (offset + len(content) - USER_BLOCK) // PIECE
        numbers = iter(range(first, last))  # each goes to one of the threads
        others = [
            self._pool.submit(self._hash, content, offset, numbers)
            for _ in range(min(self._others, max(last - first, 0)))
        ]
        try:
            for start in range(0, len(content), UNIT):
                self._file.write_at(content[start : start + UNIT], offset + start)
            self._file.begin_to_flush(offset, len(content))
            self._hash(content, offset, numbers)
        finally:
            for other in others:
                other.result()

    def _hash(self, content, offset, numbers):
        for number in numbers:
            start = USER_BLOCK + number * PIECE - offset
            self.digests[number] = digest(content[start : start + PIECE])
