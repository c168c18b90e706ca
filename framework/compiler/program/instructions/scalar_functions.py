"""Scalar functions without a NumPy ufunc, applied entry by entry like one.

Each is called as ``f(*arrays, out=out)``; if ``out`` is None, the result is a new
array.
"""

import numpy as np

_INTEGERS = {4: np.dtype(np.int32), 8: np.dtype(np.int64)}
_ZEROS = {4: np.zeros((), np.float32), 8: np.zeros(())}
LARGE = 1 << 15  # entries


def cast(x, out=None, dtype=None):
    """Return ``x`` in another dtype."""
    if out is None:
        return x.astype(dtype)
    np.copyto(out, x, casting="unsafe")
    return out


def positive_bits(y, out=None):
    """Return all bits set where ``y`` is positive, no bits elsewhere."""
    if out is None:
        out = np.empty(y.shape, bits_of(y))
    if out.itemsize == 1:
        np.greater(y, _ZEROS[y.itemsize], out.view(bool))
    else:
        np.greater(y, _ZEROS[y.itemsize], out=out, casting="unsafe")
    return np.negative(out, out)


def bits_of(y):
    """Return integers as wide as ``y``; for large arrays bytes, which are widened on use."""
    return np.dtype(np.int8) if y.size >= LARGE else _INTEGERS[y.dtype.itemsize]


def kept_bits(x, bits, out=None):
    """Return ``x`` where all bits are set, 0 where none are, even if ``x`` is NaN."""
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
