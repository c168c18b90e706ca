"""Check HDF5's heaps of texts before HDF5 walks through them.

Long texts are stored in collections: a head with the mark ``GCOL`` and a size, then
objects, each with a number, and the size by which the walk advances. A damaged size of
0 makes HDF5 (1.14) loop forever. Sealed files need no such check.
"""

import struct

from tapewright.core.errors import SavingError

MARK = b"GCOL\1\0\0\0"  # with the version
SIGNATURE = b"\x89HDF\r\n\x1a\n"
PIECE = 4 << 20
HEAD = 16  # bytes in front of a collection, and of each object
TIMES = 4  # the size of the file: what all collections together may have


def largest_text(window, path, member=None):
    """Return the size in bytes of the largest text in the heaps of a file.

    Raises:
        SavingError: For a collection of texts in which HDF5 would loop forever.
    """
    if not _is_hdf5(window):
        return 0
    offset, largest, left = 0, 0, TIMES * window.size
    while offset < window.size:
        piece = window.read_at(offset, PIECE)
        at = piece.find(MARK)
        while at >= 0:
            size = _size(window, offset + at)
            left -= size
            text_size = _largest(window, offset + at, size) if left >= 0 else None
            if text_size is None:
                reason = "is damaged: its strings cannot be read (global heap)"
                raise SavingError(path, reason, member)
            largest, at = max(largest, text_size), piece.find(MARK, at + 1)
        offset += PIECE - len(MARK) + 1
    return largest


def _is_hdf5(window):
    """Return True if the file has HDF5's signature at one of the allowed offsets."""
    offsets = [0, *[512 << i for i in range(window.size.bit_length())]]
    return any([window.read_at(p, len(SIGNATURE)) == SIGNATURE for p in offsets])


def _size(window, start):
    """Return the size of a collection; 0 if it is incomplete, which HDF5 detects."""
    size = struct.unpack("<Q", window.read_at(start + 8, 8).ljust(8, b"\0"))[0]
    return size if size <= window.size - start else 0


def _largest(window, start, size):
    """Return the size of the largest object, or None if HDF5 would loop forever."""
    whole = window.read_at(start, size) if size <= PIECE else None
    at, largest = HEAD, 0
    while at + HEAD <= size:
        head = whole[at : at + HEAD] if whole else window.read_at(start + at, HEAD)
        number, _, _, length = struct.unpack("<HHIQ", head)
        step = length if number == 0 else HEAD + (length + 7 & ~7)
        step %= 1 << 64
        if step == 0 or step >> 63:  # it stands still, or goes back
            return None
        if number:
            largest = max(largest, length)
        at += step
    return min(largest, size)
