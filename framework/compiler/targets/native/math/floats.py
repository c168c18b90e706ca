"""Bits of floating-point numbers, polynomials and selections: basics for the other files."""

from dataclasses import dataclass

import numpy as np

from ..jit import engine


@dataclass(frozen=True)
class Layout:
    """An IEEE 754 format: sizes, and constants that formulas share."""

    integer: np.dtype  # unsigned, as wide
    digits: int  # of the significand, without the leading 1
    bias: int

    @property
    def one(self):
        """The bits of 1."""
        return self.bias << self.digits

    @property
    def rounder(self):
        """A constant that rounds by addition.

        Added to a number below 2**(digits - 1), it leaves the nearest integer in the
        lowest bits.
        """
        return 1.5 * 2.0**self.digits

    @property
    def smallest(self):
        """The smallest normal number."""
        return 2.0 ** (1 - self.bias)


_LAYOUTS = {
    np.dtype(np.float32): Layout(np.dtype(np.uint32), 23, 127),
    np.dtype(np.float64): Layout(np.dtype(np.uint64), 52, 1023),
}


def layout(x):
    """The format of a float."""
    return _LAYOUTS[x.dtype]


def bits_of(x):
    """The bits of a float as an unsigned integer."""
    return x.writer.bitcast(x, layout(x).integer)


def float_of(bits):
    """The float of these bits."""
    return bits.writer.bitcast(bits, np.dtype(f"f{bits.dtype.itemsize}"))


def from_bfloat16(x):
    """Convert bfloat16, the upper half of a float32, to float32."""
    write = x.writer
    return float_of(write.cast(write.bitcast(x, np.uint16), np.uint32) << 16)


def to_bfloat16(x, dtype):
    """Round to the nearest bfloat16, ties to even; NaN stays NaN."""
    write, bits = x.writer, bits_of(x)
    upper = bits >> 16
    # The half below decides; one more if the last bit that stays is odd makes ties even.
    nearest = (bits + 0x7FFF + (upper & 1)) >> 16
    quiet = upper & 0x8000 | write.const(0x7FC0, np.uint32)
    upper = write.select(is_nan(x), quiet, nearest)
    return write.bitcast(write.cast(upper, np.uint16), dtype)


def from_float16(x):
    """Convert float16 to float32."""
    write = x.writer
    if engine.converts_halves():
        return write.cast(x, np.float32)
    bits = write.cast(write.bitcast(x, np.uint16), np.uint32)
    number = bits & 0x7FFF
    # With the digits in their place the exponent is 112 too small, of denormal numbers too.
    wide = float_of(number << 13) * 2.0**112
    whole = bits_of(wide) | write.select(
        number < 0x7C00, 0, write.const(0x7F800000, bits.dtype)
    )
    return float_of(whole | (bits & 0x8000) << 16)


def to_float16(x):
    """Round to the nearest float16, ties to even; NaN stays NaN."""
    write = x.writer
    if x.dtype != np.float32:
        x = _rounded_to_odd(x) if x.dtype == np.float64 else write.cast(x, np.float32)
    if engine.converts_halves():
        return write.cast(x, np.float16)
    bits = bits_of(x)
    number = bits & 0x7FFFFFFF
    # The 13 lower bits decide, as in `to_bfloat16`; the exponent is 112 less.
    normal = ((number + 0xFFF + (number >> 13 & 1)) >> 13) - (112 << 10)
    # Among the numbers from 0.5 to 1 two neighbours are as far apart as denormal ones.
    with write.exact():
        denormal = bits_of(float_of(number) + 0.5) - 0x3F000000
    half = write.select(number < 0x38800000, denormal, normal)
    half = write.select(number < 0x47800000, half, 0x7C00)
    half = write.select(number > 0x7F800000, 0x7E00, half)
    half = half | bits >> 16 & 0x8000
    return write.bitcast(write.cast(half, np.uint16), np.float16)


def _rounded_to_odd(x):
    """Convert float64 to float32, with the last bit set if digits were cut off.

    So the number is not mistaken for a tie when it is rounded once more.
    """
    write = x.writer
    near = write.cast(x, np.float32)
    back, bits = write.cast(near, np.float64), bits_of(near)
    other = write.select(magnitude(back) > magnitude(x), bits - 1, bits + 1)
    is_even = (bits & 1) == 0
    return float_of(write.select((back != x) & is_even, other, bits))


def polynomial(x, coefficients):
    """``c[0] + c[1] x + c[2] x^2 + ...`` by Horner's rule."""
    *rest, total = coefficients
    for c in reversed(rest):
        total = total * x + c
    return total


def magnitude(x):
    """``|x|``."""
    return x.writer.intrinsic("fabs", x)


def signed_as(x, sign):
    """``|x|`` with the sign of another number."""
    return x.writer.intrinsic("copysign", x, sign)


def is_nan(x):
    """True for NaN."""
    return x != x


def clamped(x, low, high):
    """``x`` clipped to bounds; NaN stays NaN."""
    select = x.writer.select
    x = select(x > high, high, x)
    return select(x < low, low, x)


def with_tiny(function):
    """Return ``x`` itself where an odd function with slope 1 at zero rounds to it.

    This preserves denormal numbers and the sign of zero.
    """

    def whole(x):
        tiny = 2.0 ** -(layout(x).digits + 7)
        return x.writer.select(magnitude(x) < tiny, x, function(x))

    whole.__doc__ = function.__doc__
    return whole


def in_double(function):
    """Compute float32 in float64, so that nearly all results are correctly rounded."""

    def whole(*args):
        write, dtype = args[0].writer, args[0].dtype
        wide = [write.cast(x, np.float64) for x in args]
        return write.cast(function(*wide), dtype)

    whole.__doc__ = function.__doc__
    return whole
