"""Functions of floats that need no approximation."""

import numpy as np

from ..jit import engine
from .floats import bits_of, float_of, in_double, is_nan, magnitude


def sign(x):
    """-1, 0 or 1; NaN for NaN."""
    select = x.writer.select
    return select(x > 0.0, 1.0, select(x < 0.0, -1.0, x + 0.0))


def heaviside(x, at_zero):
    """0 for negative numbers, 1 for positive ones."""
    select = x.writer.select
    return select(x > 0.0, 1.0, select(x < 0.0, 0.0, select(x == 0.0, at_zero, x)))


# Of zeros of both signs, NumPy's vector code returns the second on x86. On Arm 0 is larger
# than -0, as for the instructions there.


def maximum(x, y):
    """The maximum; NaN if either is NaN."""
    if _has_order_of_zeros():
        return x.writer.intrinsic("maximum", x, x.writer.pair(y, x)[0])
    return x.writer.select((x > y) | is_nan(x), x, y)


def minimum(x, y):
    """The minimum; NaN if either is NaN."""
    if _has_order_of_zeros():
        return x.writer.intrinsic("minimum", x, x.writer.pair(y, x)[0])
    return x.writer.select((x < y) | is_nan(x), x, y)


def fmax(x, y):
    """The maximum; if one is NaN, the other one."""
    if _has_order_of_zeros():
        return _unless_nan(x, y, maximum(x, y))
    return x.writer.select((x > y) | is_nan(y), x, y)


def fmin(x, y):
    """The minimum; if one is NaN, the other one."""
    if _has_order_of_zeros():
        return _unless_nan(x, y, minimum(x, y))
    return x.writer.select((x < y) | is_nan(y), x, y)


def _has_order_of_zeros():
    return engine.host().architecture == "aarch64"


def _unless_nan(x, y, result):
    return x.writer.select(is_nan(x), y, x.writer.select(is_nan(y), x, result))


def isfinite(x):
    """False for infinities and NaN."""
    return magnitude(x) < np.inf


def isinf(x):
    """True for infinities."""
    return magnitude(x) == np.inf


def signbit(x):
    """True for negative numbers, -0 and negative NaN."""
    return (bits_of(x) >> (8 * x.dtype.itemsize - 1)) != 0


def logical_and(x, y):
    """True if neither is zero."""
    return (x != 0) & (y != 0)


def logical_or(x, y):
    """True if at least one is not zero."""
    return (x != 0) | (y != 0)


def logical_xor(x, y):
    """True if exactly one is zero."""
    return (x != 0) ^ (y != 0)


def logical_not(x):
    """True for zero."""
    return x == 0


def nextafter(x, y):
    """The next number after ``x`` towards ``y``."""
    select = x.writer.select
    bits = bits_of(x)
    step = select((x < y) ^ (x > 0.0), bits - 1, bits + 1)
    first = (bits_of(y) & (1 << (8 * x.dtype.itemsize - 1))) | 1
    moved = float_of(select(x == 0.0, first, step))
    return select(x == y, y, select(is_nan(x) | is_nan(y), x + y, moved))


def hypot(x, y):
    """``sqrt(x^2 + y^2)`` without overflow or underflow, within 1.5 ulp."""
    select = x.writer.select
    x, y = magnitude(x), magnitude(y)
    length = (_length_in_double if x.dtype == np.float32 else _length)(x, y)
    return select((x == np.inf) | (y == np.inf), np.inf, length)


@in_double
def _length_in_double(x, y):
    return x.writer.intrinsic("sqrt", x * x + y * y)


def _length(x, y):
    select = x.writer.select
    larger = select(x > y, x, y)
    large, small = larger > 2.0**500, larger < 2.0**-450
    one = x.writer.const(1.0, x.dtype)
    scale = select(large, 2.0**-600, select(small, 2.0**600, one))
    back = select(large, 2.0**600, select(small, 2.0**-600, one))
    x, y = x * scale, y * scale
    return x.writer.intrinsic("sqrt", x * x + y * y) * back
