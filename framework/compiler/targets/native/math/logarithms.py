"""log and its relatives.

``x = 2**k (1 + f)`` with ``1 + f`` between ``sqrt(1/2)`` and ``sqrt(2)``, extracted
from the bits of ``x``; ``log(1 + f)`` is a polynomial in float32, and in float64 one of
``s = f / (2 + f)``, with the order of additions of fdlibm's e_log.c (Ng, 1993), which
rounds once. Coefficients are minimax for the relative error.
"""

import numpy as np

from .exponential import exp
from .floats import (
    bits_of,
    float_of,
    in_double,
    layout,
    magnitude,
    polynomial,
    signed_as,
    with_tiny,
)

# log(2) in two parts; products of the first with an exponent are exact
_HIGH_AND_LOW = {
    4: (0.693145751953125, 1.4286068203094173e-06),
    8: (0.6931471803691238, 1.9082149292705877e-10),
}
_SQRT_HALF = {4: 0x3F3504F3, 8: 0x3FE6A09E667F3BCD}
# fmt: off
# (log(1 + f) - f + f^2 / 2) / f^3, within 2^-27 of the logarithm
_IN_F = (0.3333333134651184, -0.2500082552433014, 0.20001237094402313,
         -0.16623146831989288, 0.1420135349035263, -0.13161972165107727,
         0.12765493988990784, -0.07634535431861877)
# (log((1 + s) / (1 - s)) - 2 s) / s^3 in s^2, within 2^-59 of the logarithm
_IN_S = (0.6666666666666735, 0.39999999999412794, 0.2857142874288966,
         0.22222198513634608, 0.18183567817451665, 0.15313951544292068,
         0.147970332063022)
# as _IN_F within 2^-35, for results in float32
_IN_F_OF_FLOAT64 = (
    0.3333333389247461, -0.24999997075843908, 0.19999911242059304,
    -0.1666685510115026, 0.14290174918153303, -0.12498286795846413,
    0.11014784194158919, -0.09924537718308575, 0.0998851612962282,
    -0.09863099041746101, 0.05386741862474315,
)
# fmt: on


def log(x):
    """The natural logarithm, within 1 ulp."""
    k, f = _parts(x)
    return _with_limits(_log_of_parts(k, f), x)


@with_tiny
def log1p(x):
    """``log(1 + x)``, within 2 ulp: ``f = x 2**-k + (2**-k - 1)``, rounded once."""
    form = layout(x)
    u = x + 1.0
    exponent = _shifted_bits(u) >> form.digits
    # 2**(2 - k), as 2**-k may be denormal
    scale = float_of(((2 * form.bias + 2) - exponent) << form.digits)
    f = (x * 0.25) * scale + (scale * 0.25 - 1.0)
    return _with_limits(_log_of_parts(_exponent(exponent, u), f), u)


def log2(x):
    """The base-2 logarithm, within 1 ulp."""
    if x.dtype.itemsize == 4:
        return _log2_float32(x)
    k, f = _parts(x)
    return _with_limits(_in_base(k, f, _TO_BASE_2, (1.0, 0.0)), x)


def log10(x):
    """The base-10 logarithm, within 1 ulp."""
    if x.dtype.itemsize == 4:
        return _log10_float32(x)
    k, f = _parts(x)
    return _with_limits(_in_base(k, f, _TO_BASE_10, _LOG10_2), x)


def logaddexp(x, y):
    """``log(e**x + e**y)``, without overflow."""
    select = x.writer.select
    larger = select(x > y, x, y)
    added = larger + log1p(exp(-magnitude(x - y)))
    return select(x == y, x + 0.6931471805599453, added)


def log2_in_short(x):
    """The base-2 logarithm of a float64 in float32's range, within 2^-35."""
    k, f = _parts_of_normal(x)
    return _with_limits(k + 1.4426950408889634 * _short(f), x)


_log2_float32 = in_double(log2_in_short)


@in_double
def _log10_float32(x):
    k, f = _parts_of_normal(x)
    return _with_limits(0.3010299956639812 * k + 0.4342944819032518 * _short(f), x)


def _shifted_bits(x):
    """The bits of ``x`` minus the digits of sqrt(1/2).

    Their exponent is ``k``, and their digits are the digits of ``1 + f`` minus the
    digits of sqrt(1/2).
    """
    return bits_of(x) + (layout(x).one - _SQRT_HALF[x.dtype.itemsize])


def _exponent(biased, x):
    """``k`` as a float, assembled from bits as AVX2 cannot convert 64-bit integers."""
    form = layout(x)
    power = 2.0**form.digits
    one = (form.bias + form.digits) << form.digits
    return float_of(biased | one) - (power + form.bias)


def _parts(x):
    """``k`` and ``f`` of a positive number."""
    form, select = layout(x), x.writer.select
    denormal = x < form.smallest
    k, f = _parts_of_normal(select(denormal, x * 2.0 ** (form.digits + 1), x))
    return select(denormal, k - (form.digits + 1.0), k), f


def _parts_of_normal(x):
    form, bits = layout(x), _shifted_bits(x)
    digits = bits & ((1 << form.digits) - 1)
    f = float_of(digits + _SQRT_HALF[x.dtype.itemsize]) - 1.0
    return _exponent(bits >> form.digits, x), f


def _log_of_parts(k, f):
    high, low = _HIGH_AND_LOW[f.dtype.itemsize]
    if f.dtype.itemsize == 4:
        return (f + (f * f * (f * polynomial(f, _IN_F) - 0.5) + k * low)) + k * high
    half, rest = _halves(f)
    return k * high - ((half - (rest + k * low)) - f)


def _halves(f):
    """``f^2 / 2`` and the rest of ``log(1 + f) = f - f^2 / 2 + rest``."""
    s = f / (2.0 + f)
    z = s * s
    half = 0.5 * f * f
    return half, s * (half + z * polynomial(z, _IN_S))


def _short(f):
    return f + f * f * (f * polynomial(f, _IN_F_OF_FLOAT64) - 0.5)


# 1 / log(2), 1 / log(10) and log10(2) in two parts, the first of 26 or 40 bits
_TO_BASE_2 = (1.4426950216293335, 1.9259629911266175e-08)
_TO_BASE_10 = (0.4342944771051407, 4.798111141615973e-09)
_LOG10_2 = (0.30102999566361177, 3.694239077158931e-13)


def _in_base(k, f, factor, per_octave):
    """``k * per_octave + log(1 + f) * factor``, each factor in two parts."""
    write = f.writer
    half, rest = _halves(f)
    with write.exact():
        # the upper 26 bits of f - f^2 / 2, whose product with a factor of as many is exact
        high = float_of(bits_of(f - half) & ~((1 << 27) - 1))
        low = (f - high) - half + rest
        main = high * factor[0]
        whole = k * per_octave[0]
        total = whole + main
        lost = (whole - total) + main
    small = (low + high) * factor[1] + low * factor[0]
    return total + (lost + (small + k * per_octave[1]))


def _with_limits(result, x):
    """-infinity at 0, NaN below, infinity at infinity."""
    write = x.writer
    outside = write.select(x == 0.0, write.const(-np.inf, x.dtype), np.nan)
    return write.select(x > 0.0, write.select(x < np.inf, result, x), outside)


# ------------------------------------------------------------------ inverse hyperbolics


@with_tiny
@in_double
def arcsinh(x):
    """``log(|x| + sqrt(x^2 + 1))`` with the sign of ``x``, within 3 ulp."""
    a, large = magnitude(x), magnitude(x) > 2.0**500
    inside = x.writer.select(large, 1.0, a)
    square = inside * inside
    root = x.writer.intrinsic("sqrt", square + 1.0)
    u = inside + square / (1.0 + root)
    return signed_as(_log1p_or_double(u, a, large), x)


@in_double
def arccosh(x):
    """``log(x + sqrt(x^2 - 1))``, within 3 ulp."""
    write, large = x.writer, x > 2.0**500
    t = write.select(large, 1.0, x) - 1.0
    u = t + write.intrinsic("sqrt", t * (t + 2.0))
    return write.select(x < 1.0, np.nan, _log1p_or_double(u, x, large))


@with_tiny
@in_double
def arctanh(x):
    """``log((1 + x) / (1 - x)) / 2``, within 3 ulp."""
    a = magnitude(x)
    return signed_as(0.5 * log1p(2.0 * a / (1.0 - a)), x)


def _log1p_or_double(u, x, large):
    """``log(1 + u)``, or ``log(2 x)`` for a large ``x``."""
    select, zero = x.writer.select, x.writer.const(0.0, x.dtype)
    return log1p(select(large, x, u)) + select(large, 0.6931471805599453, zero)


# -------------------------------------------------------------- a logarithm in two floats

# (log((1 + s) / (1 - s)) - 2 s - 2/3 s^3) / s^5 in s^2, within 2^-66 of the logarithm
# fmt: off
_AFTER_THE_CUBE = (0.40000000000001373, 0.2857142857045245, 0.22222222465552038,
                   0.1818178857095747, 0.15386583350883792, 0.13260502865369322,
                   0.13164918403930953)
# fmt: on
_TWO_THIRDS = (0.6666666666666666, 3.700743415417188e-17)
_LOG_2 = (0.6931471805598903, 5.497923018708371e-14)  # 42 bits, and the rest


def log_in_two(x):
    """The logarithm of a positive float64 as an unevaluated sum of two, within 2^-64.

    For 0 and infinity it is infinite and 0.
    """
    write = x.writer
    k, f = _parts(x)
    with write.exact():
        s = _quotient(f, f + 2.0)
        z = _product(s, s)
        tail = z[0] * polynomial(z[0], _AFTER_THE_CUBE)
        factor = _sum(write.const(_TWO_THIRDS[0], x.dtype), tail)
        cube = _product(s, _product(z, (factor[0], factor[1] + _TWO_THIRDS[1])))
        whole = _sum(2.0 * s[0], cube[0])
        whole = whole[0], whole[1] + (2.0 * s[1] + cube[1])
        octaves = _sum(k * _LOG_2[0], whole[0])
        # k log(2) may be zero, or less than the rest is large
        octaves = write.select(k == 0.0, whole[0], octaves[0]), octaves[1]
        low = write.select(k == 0.0, 0.0, octaves[1]) + (whole[1] + k * _LOG_2[1])
        high, low = _sum(octaves[0], low)
    number = (x > 0.0) & (x < np.inf)
    return _with_limits(high, x), write.select(number, low, 0.0)


def _sum(a, b):
    """``a + b`` and its rounding error, for ``|a| >= |b|`` (Dekker, 1971)."""
    total = a + b
    return total, b - (total - a)


def _product(a, b):
    """The product of two numbers, each an unevaluated sum of two."""
    high = a[0] * b[0]
    return high, a[0].writer.fma(a[0], b[0], -high) + (a[0] * b[1] + a[1] * b[0])


def _quotient(f, d):
    """``f / (2 + f)`` as an unevaluated sum of two; ``d`` is the rounded divisor."""
    lost = f - (d - 2.0)
    s = f / d
    return s, (f.writer.fma(-s, d, f) - s * lost) / d
