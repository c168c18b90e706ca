"""Rows of an array as a new one: a batch of samples that do not lie side by side."""

import numpy as np

from tapewright.core import config

__all__ = ["take_rows"]

# From these bytes on, machine code is faster: what fits into a cache, and rows of a few
# lines of it, NumPy copies as quickly.
ARRAY, BATCH, ROW = 1 << 25, 1 << 16, 1 << 9


def take_rows(array, rows):
    """Return ``array[rows]``, for a NumPy array and an array of integers.

    >>> take_rows(np.arange(6).reshape(3, 2), np.array([2, 0]))
    array([[4, 5],
           [0, 1]])
    """
    if _is_large(array, len(rows)) and config.target() == "native":
        from tapewright.compiler.pipeline import make_gather  # loads all passes

        gather = make_gather()
        if gather is not None:
            out = np.empty((len(rows), *array.shape[1:]), array.dtype)
            if gather(_as_bytes(out), _as_bytes(array), rows) is None:
                return out
    return array.take(rows, axis=0)


def _is_large(array, count):
    if array.nbytes < ARRAY or type(array) is not np.ndarray:
        return False
    width = array.strides[0]
    plain = array.flags.c_contiguous and not array.dtype.hasobject
    return plain and width >= ROW and count * width >= BATCH


def _as_bytes(array):
    return array.reshape(len(array), -1).view(np.uint8)
