"""Functions of numbers that NumPy has no ufunc for, applied entry by entry like one.

Each is called as ``f(*arrays, out=out)``; with ``out`` None it makes the result.
"""

import numpy as np

__all__ = ["bits_of", "cast", "kept_bits", "positive_bits", "where"]

_INTEGERS = {4: np.dtype(np.int32), 8: np.dtype(np.int64)}
_ZEROS = {4: np.zeros((), np.float32), 8: np.zeros(())}
LARGE = 1 << 15  # entries


def cast(x, out=None, dtype=None):
    """``x`` in another dtype."""
    if out is None:
        return x.astype(dtype)
    np.copyto(out, x, casting="unsafe")
    return out


def positive_bits(y, out=None):
    """All bits set where ``y`` is positive, none elsewhere."""
    if out is None:
        out = np.empty(y.shape, bits_of(y))
    if out.itemsize == 1:
        np.greater(y, _ZEROS[y.itemsize], out.view(bool))
    else:
        np.greater(y, _ZEROS[y.itemsize], out=out, casting="unsafe")
    return np.negative(out, out)


def bits_of(y):
    """Integers as wide as ``y``; of large arrays bytes, which are widened on their way."""
    return np.dtype(np.int8) if y.size >= LARGE else _INTEGERS[y.dtype.itemsize]


def kept_bits(x, bits, out=None):
    """``x`` where all bits are set, 0 where none is: whatever ``x`` is there."""
    whole = _INTEGERS[x.itemsize]
    kept = np.bitwise_and(
        x.view(whole), bits, out=None if out is None else out.view(whole)
    )
    return kept.view(x.dtype) if out is None else out


def where(condition, x, y, out=None):
    """``x`` where the condition is true, else ``y``."""
    if out is None:
        return np.where(condition, x, y)
    np.copyto(out, np.where(condition, x, y))  # which may be one of the operands
    return out
