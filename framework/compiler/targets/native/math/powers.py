"""Powers, cube roots, and remainders of divisions."""

import numpy as np

from .exponential import exp2_in_short, exp_of_sum
from .floats import (
    bits_of,
    float_of,
    in_double,
    layout,
    magnitude,
    polynomial,
    signed_as,
)
from .logarithms import log2_in_short, log_in_two

# -------------------------------------------------------------------------------- powers


def power(x, y):
    """``x**y``, within 2 ulp: ``exp(y log|x|)``, with float64's logarithm in two parts."""
    size = magnitude(x)
    value = (_power_in_double if x.dtype == np.float32 else _power)(size, y)
    return _with_limits_of_power(value, size, x, y)


@in_double
def _power_in_double(x, y):
    return exp2_in_short(y * log2_in_short(x))


def _power(x, y):
    write = x.writer
    high, low = log_in_two(x)
    with write.exact():
        product = y * high
        rest = write.fma(y, high, -product) + y * low
    # beyond these the power is 0 or infinity, and so may be the logarithm
    return exp_of_sum(product, write.select(magnitude(product) < 800.0, rest, 0.0))


def _with_limits_of_power(value, size, x, y):
    write, select = x.writer, x.writer.select
    whole = write.intrinsic("trunc", y) == y
    half = y * 0.5
    odd = whole & (write.intrinsic("trunc", half) != half)
    value = select((size == 1.0) & (y == y), 1.0, value)
    negative = bits_of(x) >> (8 * x.dtype.itemsize - 1) != 0
    value = select(negative & odd, -value, value)
    nowhere = (x < 0.0) & (size < np.inf) & ~whole
    value = select(nowhere, np.nan, value)
    return select((y == 0.0) | (x == 1.0), 1.0, value)


# ---------------------------------------------------------------------------- cube roots

# r^(-1/3) around 1, within 2^-22
# fmt: off
_CUBE_ROOT = (1.8750465687105393, -1.880929882702463, 1.614717311981,
              -0.753504218339581, 0.1446702134865331)
# fmt: on


def cbrt(x):
    """The cube root, within 1 ulp.

    The bits divided by 3 are the root to 5 bits, a polynomial improves it to 22, a step
    of Newton's method to 44 or of Halley's to 53 (after s_cbrt.c of fdlibm).
    """
    select, a = x.writer.select, magnitude(x)
    root = (_root_of_float32 if x.dtype == np.float32 else _root)(a)
    return select((a > 0.0) & (a < np.inf), signed_as(root, x), x)


@in_double
def _root_of_float32(a):
    inverse = 1.0 / a
    t = _first_root(a)
    t = t * polynomial(t * t * (t * inverse), _CUBE_ROOT)
    return t + t * (1 / 3 - t * t * (t * (inverse * (1 / 3))))


def _root(a):
    select = a.writer.select
    denormal = a < layout(a).smallest
    a = select(denormal, a * 2.0**54, a)
    t = _first_root(a)
    t = t * polynomial(t * t * (t / a), _CUBE_ROOT)
    # 22 bits, so that the square is exact
    t = float_of((bits_of(t) + 0x80000000) & ~((1 << 30) - 1))
    r = a / (t * t)
    t = t + t * ((r - t) / (t + t + r))
    return select(denormal, t * 2.0**-18, t)


def _first_root(a):
    """The upper half of the bits, as a float, divided by 3."""
    power = 2.0 ** layout(a).digits
    upper = float_of((bits_of(a) >> 32) | bits_of(a.writer.const(power, a.dtype)))
    third = (upper - power) * (1 / 3) + (715094163.0 + power)
    return float_of(bits_of(third) << 32)


# ----------------------------------------------------------------------- rests of float32


def fmod(x, y):
    """The remainder of ``x / y`` with the sign of ``x``, exact."""
    return signed_as(_rest(magnitude(x), magnitude(y)), x)


def remainder(x, y):
    """The remainder of ``x / y`` with the sign of ``y``, rounded once."""
    select = x.writer.select
    rest = fmod(x, y)
    moved = select((rest < 0.0) ^ (y < 0.0), rest + y, rest)
    return select(rest == 0.0, signed_as(rest, y), moved)


def floor_divide(x, y):
    """The quotient rounded down; unrounded where ``y`` is zero."""
    write, select = x.writer, x.writer.select
    rest = fmod(x, y)
    wrong = (rest != 0.0) & ((rest < 0.0) ^ (y < 0.0))
    quotient = (x - rest) / y
    quotient = select(wrong, quotient - 1.0, quotient)
    whole = write.intrinsic("floor", quotient)
    whole = select(quotient - whole > 0.5, whole + 1.0, whole)
    plain = x / y
    return select(
        y == 0.0, plain, select(quotient == 0.0, signed_as(quotient, plain), whole)
    )


@in_double
def _rest(x, y):
    """``x`` minus multiples of ``y`` times powers of 2**28, largest first.

    Each product has at most 52 bits, so every step is exact.
    """
    write, select = x.writer, x.writer.select
    rest, inverse = x, 1.0 / y
    for step in range(9, -1, -1):
        count = write.intrinsic("rint", rest * (inverse * 2.0 ** (-28 * step)))
        rest = rest - count * 2.0 ** (28 * step) * y
    rest = select(rest < 0.0, rest + y, rest)
    rest = select(rest >= y, rest - y, rest)
    return select((y == np.inf) & (x < np.inf), x, rest)
