"""Memory of large outputs, which is reused once nothing references it.

The C library returns large blocks to the system when they are freed, and the system
clears each page of a new block on first use: that takes several times as long as
writing the numbers. So the most recently used blocks are kept, up to `MOST` bytes.
References from arrays and views of them keep their memory in use.
"""

import math
import os
import sys
import threading

import numpy as np

LEAST = 1 << 20  # bytes of an array from which on its memory is kept
MOST = 1 << 28
ALIGNMENT = 64  # of arrays, so that no vector crosses the lines of a cache

# Where references are not counted, or not exactly, no piece is taken again.
_is_counted = (
    hasattr(sys, "getrefcount") and getattr(sys, "_is_gil_enabled", lambda: True)()
)
_pieces, _lock = [], threading.RLock()  # those used last stand last
if hasattr(os, "register_at_fork"):  # a fork waits until no piece is being taken
    os.register_at_fork(
        before=_lock.acquire,
        after_in_parent=_lock.release,
        after_in_child=_lock.release,
    )


class Piece(np.ndarray):
    """A reusable block of memory.

    It is not a plain array, so that views of an array in it have that array as their
    base: the reference count of the array then includes its views.
    """


def new_array(shape, dtype):
    """Return an uninitialized array, like ``np.empty``."""
    size = math.prod(shape) * dtype.itemsize + ALIGNMENT
    if size > MOST or not _is_counted:
        return np.empty(shape, dtype)
    with _lock:
        pieces = _pieces[:]
        _pieces.clear()  # a finalizer that gets here meanwhile finds none
        counts = _references(pieces)
        free = [
            i for i, n in enumerate(counts) if n == _ALONE and pieces[i].size == size
        ]
        pieces.append(pieces.pop(free[-1]) if free else Piece(size, np.uint8))
        start = -pieces[-1].ctypes.data % ALIGNMENT
        array = np.ndarray(shape, dtype, pieces[-1], start)
        while sum([piece.size for piece in pieces]) > MOST:
            del pieces[0]
        _pieces.extend(pieces)
    return array


def _references(pieces):
    return list(map(sys.getrefcount, pieces))


_ALONE = _references([np.empty(0)])[0] if _is_counted else None
