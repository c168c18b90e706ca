"""A look at HDF5's heaps of texts, before HDF5 walks through them.

Long texts lie in collections: a head with the mark ``GCOL`` and a size, then objects, each
with a number, and the size by which the walk goes on. A damaged one that goes on by nothing
keeps HDF5 (1.14) walking for ever. Files that are sealed need no such look.
"""

import struct

from ...errors import SavingError

__all__ = ["check_heaps"]

MARK = b"GCOL\1\0\0\0"  # with the version
PIECE = 4 << 20
HEAD = 16  # bytes in front of a collection, and of each object


def check_heaps(window, path, member=None):
    """Raises: `SavingError` for a collection of texts in which HDF5 would never end."""
    place = 0
    while place < window.size:
        piece = window.read_at(place, PIECE)
        at = piece.find(MARK)
        while at >= 0:
            if _is_endless(window, place + at):
                reason = "is damaged: its texts cannot be walked through (global heap)"
                raise SavingError(path, reason, member)
            at = piece.find(MARK, at + 1)
        place += PIECE - len(MARK) + 1


def _is_endless(window, start):
    size = struct.unpack("<Q", window.read_at(start + 8, 8).ljust(8, b"\0"))[0]
    if size > min(PIECE, window.size - start):
        return False  # not there as a whole, which HDF5 notices
    collection, at = window.read_at(start, size), HEAD
    while at + HEAD <= size:
        number, _, _, length = struct.unpack_from("<HHIQ", collection, at)
        step = length if number == 0 else HEAD + (length + 7 & ~7)
        step %= 1 << 64
        if step == 0:
            return True
        at += step
    return False
