"""Functions of integers and bools, and conversions, with NumPy's semantics.

Results wrap around, division by zero returns 0, and nothing is undefined.
"""

import numpy as np

from tapewright.core.dtypes import is_bfloat16

from . import floats
from .floats import bits_of, float_of


def absolute(x):
    """``|x|``; the lowest number stays itself."""
    return x if x.dtype.kind in "ub" else x.writer.select(x < 0, -x, x)


def sign(x):
    """-1, 0 or 1."""
    select, one = x.writer.select, x.writer.const(1, x.dtype)
    positive = select(x == 0, 0, one)
    return positive if x.dtype.kind == "u" else select(x < 0, -1, positive)


def maximum(x, y):
    """The maximum."""
    return x.writer.select(x > y, x, y)


def minimum(x, y):
    """The minimum."""
    return x.writer.select(x < y, x, y)


def floor_divide(x, y):
    """The quotient rounded down."""
    safe, off = _divisor(x, y)
    quotient, rest = x / safe, fmod(x, y)
    down = x.writer.cast(off(rest), x.dtype)
    return x.writer.select(y == 0, 0, quotient - down)


def remainder(x, y):
    """The remainder with the sign of the divisor."""
    _, off = _divisor(x, y)
    rest = fmod(x, y)
    return x.writer.select(off(rest), rest + y, rest)


def fmod(x, y):
    """The remainder with the sign of the dividend."""
    safe, _ = _divisor(x, y)
    return x.writer.select(y == 0, 0, x.writer.binary("rem", x, safe))


def _divisor(x, y):
    """``y`` or, where the CPU would trap, 1; and whether a remainder has the wrong sign."""
    select, zero = x.writer.select, x.writer.const(0, x.dtype)
    if x.dtype.kind == "u":
        return select(y == 0, 1, y), lambda rest: zero != 0
    lowest = int(np.iinfo(x.dtype).min)
    trap = (y == 0) | ((x == lowest) & (y == -1))
    return select(trap, 1, y), lambda rest: (rest != 0) & ((rest ^ y) < 0)


def reciprocal(x):
    """``1 / x`` truncated; for 0, NumPy's cast of infinity."""
    one = x.writer.const(1.0, np.float64)
    return cast(one / x.writer.cast(x, np.float64), x.dtype)


def left_shift(x, n):
    """``x * 2**n``; 0 if ``n`` is negative or all bits are shifted out."""
    inside, n = _shift(x, n)
    return x.writer.select(inside, x << n, 0)


def right_shift(x, n):
    """``x / 2**n`` rounded down; 0 or -1 if ``n`` is negative or all bits are shifted out."""
    inside, within = _shift(x, n)
    if x.dtype.kind == "u":
        return x.writer.select(inside, x >> within, 0)
    return x >> x.writer.select(inside, within, 8 * x.dtype.itemsize - 1)


def _shift(x, n):
    width = 8 * x.dtype.itemsize
    inside = x.writer.bitcast(n, np.dtype(f"u{n.dtype.itemsize}")) < width
    return inside, x.writer.select(inside, n, 0)


_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}


def compared(name, x, y):
    """``x < y`` and other comparisons; also of int64 with uint64."""
    write = x.writer
    if x.dtype == y.dtype:
        return write.compare(name, x, y)
    if x.dtype.kind == "u":
        return compared(_MIRRORED[name], y, x)
    unsigned = write.compare(name, write.cast(x, y.dtype), y)
    if name in ("lt", "le", "ne"):
        return (x < 0) | unsigned
    return (x >= 0) & unsigned


def positive_bits(y, dtype):
    """All bits set where ``y`` is positive, no bits elsewhere."""
    write = y.writer
    return write.select(y > 0, write.const(-1, dtype), 0)


def kept_bits(x, bits):
    """``x`` where all bits are set, 0 where none are, even if ``x`` is NaN."""
    whole = bits_of(x)
    wide = x.writer.cast(bits, np.dtype(f"i{x.dtype.itemsize}"))
    return float_of(whole & x.writer.cast(wide, whole.dtype))


def cast(x, dtype):
    """Convert a number to ``dtype``.

    Floats out of an integer's range are converted as by NumPy's loops on x86.
    """
    dtype = np.dtype(dtype)
    if dtype == x.dtype:
        return x
    if is_bfloat16(x.dtype):
        return cast(floats.from_bfloat16(x), dtype)
    if is_bfloat16(dtype):
        return floats.to_bfloat16(x.writer.cast(x, np.float32), dtype)
    if x.dtype == np.float16:
        return cast(floats.from_float16(x), dtype)
    if dtype == np.float16:
        return floats.to_float16(x)
    if x.dtype.kind != "f" or dtype.kind not in "iu":
        return x.writer.cast(x, dtype)
    if dtype == np.uint64:
        return _upper_half(x, np.int64)
    if dtype == np.uint32:
        return _upper_half(x, np.int32)
    wide = np.dtype(np.int64 if dtype == np.int64 else np.int32)
    return x.writer.cast(_truncated(x, wide), dtype)


def _truncated(x, dtype):
    """Convert to a signed integer; the lowest one where ``x`` is out of range or NaN."""
    write, bound = x.writer, 2.0 ** (8 * dtype.itemsize - 1)
    lowest = int(np.iinfo(dtype).min)
    inside = (x >= -bound) & (x < bound)
    whole = write.cast(write.select(inside, x, 0.0), dtype)
    return write.select(inside, whole, lowest)


def _upper_half(x, dtype):
    """Convert to an unsigned integer through a signed one.

    The upper half of the range is moved down, and its highest bit set afterwards.
    """
    write, dtype = x.writer, np.dtype(dtype)
    bound = 2.0 ** (8 * dtype.itemsize - 1)
    upper = x >= bound
    whole = _truncated(write.select(upper, x - bound, x), dtype)
    lowest = write.select(upper, write.const(np.iinfo(dtype).min, dtype), 0)
    return write.cast(whole ^ lowest, np.dtype(f"u{dtype.itemsize}"))
