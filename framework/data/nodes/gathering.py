"""Gather rows of an array: batches of samples that are not adjacent in memory."""

from functools import partial

import numpy as np

from tapewright.core.hardware import devices
from tapewright.core.settings import config

# From these bytes on, machine code is faster: what fits into a cache, and rows of a few
# lines of it, NumPy copies as quickly.
ARRAY, BATCH, ROW = 1 << 25, 1 << 16, 1 << 9


def row_taker(array, count):
    """Return ``take``: ``take(rows)`` is ``array[rows]``, for arrays of integers.

    The target is the one set at the time of the call.

    Args:
        array: Array of NumPy or another module.
        count: Approximate number of rows that each call takes.

    Example:
        >>> import numpy as np
        >>> from tapewright.data.nodes.gathering import row_taker
        >>> row_taker(np.arange(6).reshape(3, 2), 2)(np.array([2, 0]))
        array([[4, 5],
               [0, 1]])
    """
    module = devices.array_module(type(array))
    if module is not np:
        return lambda rows: array.take(module.asarray(rows), axis=0)
    take = partial(array.take, axis=0)
    if not _is_large(array, count) or config.target() != "native":
        return take
    from tapewright.compiler.pipeline import make_gather  # loads all passes

    gather = make_gather()
    source, shape, dtype = _as_bytes(array), array.shape[1:], array.dtype

    def gathered(rows):
        if not len(rows):
            return take(rows)
        out = np.empty((len(rows), *shape), dtype)
        if gather(_as_bytes(out), source, rows) is None:
            return out
        return take(rows)  # or raise, as NumPy does

    return gathered


def _is_large(array, count):
    if type(array) is not np.ndarray or array.nbytes < ARRAY:
        return False
    width = array.strides[0]
    plain = array.flags.c_contiguous and not array.dtype.hasobject
    return plain and width >= ROW and count * width >= BATCH


def _as_bytes(array):
    return array.reshape(len(array), -1).view(np.uint8)
