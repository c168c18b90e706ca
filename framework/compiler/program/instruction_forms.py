"""How some ops are written for a plan, where their kernels ask for values.

A form gets a `Writer` and the arrays of a node, and gives what the kernel would give. It
may refuse (``NotRecorded``): then the kernel is called as it is.
"""

import numpy as np

from tapewright.core.blas import sum_of_squares

from .lowering import NotRecorded, form_of

__all__ = []

_INTEGERS = {4: np.dtype(np.int32), 8: np.dtype(np.int64)}
_ZEROS = {4: np.zeros((), np.float32), 8: np.zeros(())}
LARGE = 1 << 15  # entries


def positive_bits(y, out=None):
    """All bits set where ``y`` is positive, none elsewhere."""
    if out is None:
        out = np.empty(y.shape, _bits_of(y))
    if out.itemsize == 1:
        np.greater(y, _ZEROS[y.itemsize], out.view(bool))
    else:
        np.greater(y, _ZEROS[y.itemsize], out=out, casting="unsafe")
    return np.negative(out, out)


def _bits_of(y):
    """Integers as wide as ``y``; of large arrays bytes, which are widened on their way."""
    return np.dtype(np.int8) if y.size >= LARGE else _INTEGERS[y.dtype.itemsize]


def kept_bits(x, bits, out=None):
    """``x`` where all bits are set, 0 where none is: whatever ``x`` is there."""
    whole = _INTEGERS[x.itemsize]
    kept = np.bitwise_and(
        x.view(whole), bits, out=None if out is None else out.view(whole)
    )
    return kept.view(x.dtype) if out is None else out


@form_of("where_positive")
def _(writer, x, y):
    plain = x.dtype == y.dtype and x.dtype.char in "fd" and x.shape == y.shape
    if not plain or not x.size:
        raise NotRecorded
    bits = writer.entrywise(positive_bits, (y.array,), y.shape, _bits_of(y))
    return writer.entrywise(kept_bits, (x.array, bits.array), x.shape, x.dtype)


def limited(t, clip_norm, out=None):
    """``t``, scaled down to the norm ``clip_norm`` if it is longer."""
    length = np.sqrt(sum_of_squares(np, t))
    if not length <= clip_norm:  # NaN in either
        return np.multiply(t, clip_norm / length, out=out)
    if out is None:
        return t.copy()
    if not np.may_share_memory(out, t):
        np.copyto(out, t)
    return out


limited.overwrites = 0  # `out` may be `t`


@form_of("clip_by_norm")
def _(writer, t, clip_norm, axes):
    if axes is not None or t.dtype.char not in "fd" or clip_norm.dtype != t.dtype:
        raise NotRecorded
    if not t.ndim or t.ndim > 2:
        raise NotRecorded
    args = (t.array, clip_norm.array)
    return writer.made("out", limited, args, {}, t.shape, t.dtype)


def joined(*values, axis, out=None):
    """``values`` one behind the other along ``axis``."""
    return np.concatenate(values, axis, out)


@form_of("concat")
def _(writer, *values, axis):
    if len({v.dtype for v in values}) > 1 or not values[0].ndim:
        raise NotRecorded
    shape = list(values[0].shape)
    shape[axis] = sum([v.shape[axis] for v in values])
    args = tuple([v.array for v in values])
    return writer.made("out", joined, args, {"axis": axis}, tuple(shape), args[0].dtype)
