"""sin, cos and tan, and the inverse functions.

All are polynomials after a range reduction: for the sine to a quadrant, for the arc
tangent to an eighth of a turn around 0, the diagonal or the pole, for the arc sine to
the half angle.
"""

import numpy as np

from .floats import in_double, is_nan, magnitude, polynomial, signed_as, with_tiny
from .reduction import reduced_float32, reduced_float64

# fmt: off
# (sin(r) - r) / r^3 and (cos(r) - 1 + r^2 / 2) / r^4 in r^2, within 2^-37 and 2^-57
_SIN = {
    4: (-0.1666666664058798, 0.008333329280506103, -0.00019839304411719836,
        2.7180464478707567e-06),
    8: (-0.1666666666666663, 0.008333333333322005, -0.00019841269829495379,
        2.755731358758208e-06, -2.5050742302552656e-08, 1.589590445559101e-10),
}
_COS = {
    4: (0.041666666619106715, -0.0013888883467250259, 2.4799451548932408e-05,
        -2.7205046214391644e-07),
    8: (0.0416666666666666, -0.0013888888888874604, 2.480158728965235e-05,
        -2.755731437621456e-07, 2.0875724089869757e-09, -1.13595976110111e-11),
}
# (arctan(t) - t) / t^3 in t^2 up to t = sqrt(2) - 1, within 2^-30 and 2^-64
_ARCTAN = {
    4: (-0.3333331510525957, 0.19998465997921383, -0.1424342222661442,
        0.10592945982128125, -0.06075914903218774),
    8: (-0.33333333333333326, 0.19999999999997892, -0.14285714285408044,
        0.11111111089137306, -0.09090908172275451, 0.07692283276976039,
        -0.066662332272232, 0.05877076324334473, -0.05218710897120663,
        0.045046509221908844, -0.03349735025124144, 0.015216088914912584),
}
# (arcsin(t) - t) / t^3 in t^2 up to t = 1/2, within 2^-27 and 2^-59
_ARCSIN = {
    4: (0.16666752099990845, 0.07495288550853729, 0.04547160863876343,
        0.024172937497496605, 0.04217825084924698),
    8: (0.1666666666666676, 0.07499999999970632, 0.044642857174780726,
        0.030381942699299676, 0.022372215236794113, 0.017351607366723452,
        0.013980878210974107, 0.011398425043607822, 0.010783066796170825,
        0.003695473300990102, 0.021734780960696285, -0.021038750486989697,
        0.03265406031198779),
}
# fmt: on
# pi / 2 in two parts
_HALF_PI = {
    4: (1.5707963705062866, -4.371138828673793e-08),
    8: (1.5707963267948966, 6.123233995736766e-17),
}


@with_tiny
def sin(x):
    """The sine, within 1 ulp."""
    write = x.writer
    quadrant, sine, cosine = _quadrant(x)
    value = write.select((quadrant & 1) == 0, sine, cosine)
    value = write.select((quadrant & 2) == 0, value, -value)
    value = write.cast(value, x.dtype)
    return _of_numbers(write.select(x < 0.0, -value, value), x)


def cos(x):
    """The cosine, within 1 ulp."""
    write = x.writer
    quadrant, sine, cosine = _quadrant(x)
    value = write.select((quadrant & 1) == 0, cosine, sine)
    value = write.select(((quadrant + 1) & 2) == 0, value, -value)
    return _of_numbers(write.cast(value, x.dtype), x)


@with_tiny
def tan(x):
    """The tangent, within 1 ulp in float32, 2.5 in float64."""
    write = x.writer
    quadrant, sine, cosine = _quadrant(x)
    even = (quadrant & 1) == 0
    value = write.select(even, sine, -cosine) / write.select(even, cosine, sine)
    value = write.cast(value, x.dtype)
    return _of_numbers(write.select(x < 0.0, -value, value), x)


def arctan(x):
    """The arc tangent, within 2 ulp."""
    one = x.writer.const(1.0, x.dtype)
    return signed_as(_angle(magnitude(x), one, _ARCTAN[x.dtype.itemsize]), x)


@with_tiny
def arcsin(x):
    """The arc sine, within 2 ulp; beyond 1/2 from the half angle."""
    near, t, z, tail = _half_angle(x)
    high, low = _HALF_PI[x.dtype.itemsize]
    far = 0.5 * high + ((0.5 * high - 2.0 * t) - (2.0 * tail - low))
    return signed_as(x.writer.select(near, t + tail, far), x)


def arccos(x):
    """The arc cosine, within 2 ulp."""
    select = x.writer.select
    near, t, z, tail = _half_angle(x)
    high, low = _HALF_PI[x.dtype.itemsize]
    signed, signed_tail = signed_as(t, x), signed_as(tail, x)
    middle = high - (signed - (low - signed_tail))
    far = 2.0 * (t + tail)
    far = select(x < 0.0, 2.0 * high - (far - 2.0 * low), far)
    return select(near, middle, far)


def _of_numbers(value, x):
    """Replace the result for infinities and NaN by NaN."""
    return x.writer.select(magnitude(x) < np.inf, value, np.nan)


def _quadrant(x):
    """The number of a quadrant of ``|x|``, sine and cosine of the remainder: float64."""
    if x.dtype == np.float32:
        quadrant, r = reduced_float32(x)
        z = r * r
        sine = r + r * z * polynomial(z, _SIN[4])
        return quadrant, sine, (1.0 - 0.5 * z) + z * z * polynomial(z, _COS[4])
    quadrant, r, rest = reduced_float64(x)
    z = r * r
    sine = r + (r * z * polynomial(z, _SIN[8]) + rest * (1.0 - 0.5 * z))
    with x.writer.exact():
        most = 1.0 - 0.5 * z
        lost = (1.0 - most) - 0.5 * z
    return quadrant, sine, most + (lost + (z * z * polynomial(z, _COS[8]) - r * rest))


# -------------------------------------------------------------------------------- angles


def _angle(y, x, coefficients):
    """``arctan(y / x)`` of positive numbers; around the diagonal, relative to it."""
    select = x.writer.select
    size, factor = x.dtype.itemsize, float(np.sqrt(2) - 1)
    flat, steep = y <= x * factor, x < y * factor
    t = select(steep, -x, select(flat, y, y - x)) / select(
        steep, y, select(flat, x, y + x)
    )
    z = t * t
    high, low = _HALF_PI[size]
    zero = x.writer.const(0.0, x.dtype)
    start = select(steep, high, select(flat, zero, 0.5 * high))
    start_low = select(steep, low, select(flat, zero, 0.5 * low))
    return start + (t + (t * z * polynomial(z, coefficients) + start_low))


def arctan2(y, x):
    """The angle of a point from the positive x axis, within 2 ulp."""
    if x.dtype == np.float32:
        return _angle_of_float32(y, x)
    # sums in range, and digits left of quotients of denormal numbers
    select, (a, b) = x.writer.select, [magnitude(v) for v in (y, x)]
    large = (a > 2.0**1000) | (b > 2.0**1000)
    small = (a < 2.0**-900) & (b < 2.0**-900)
    one = x.writer.const(1.0, x.dtype)
    scale = select(large, 0.25, select(small, 2.0**200, one))
    return _full_angle(y * scale, x * scale, _ARCTAN[8])


@in_double
def _angle_of_float32(y, x):
    return _full_angle(y, x, _ARCTAN[4])


def _full_angle(y, x, coefficients):
    write, select = x.writer, x.writer.select
    high, low = _HALF_PI[x.dtype.itemsize]
    a, b = magnitude(y), magnitude(x)
    # the diagonal for two infinities, the axis for two zeros
    infinite = (a == np.inf) & (b == np.inf)
    zero = (a == 0.0) & (b == 0.0)
    a, b = select(infinite, 1.0, a), select(infinite | zero, 1.0, b)
    angle = _angle(a, b, coefficients)
    one = write.const(1.0, x.dtype)
    left = write.intrinsic("copysign", one, x) < 0.0
    angle = select(left, 2.0 * high - (angle - 2.0 * low), angle)
    return select(is_nan(x) | is_nan(y), x + y, signed_as(angle, y))


def _half_angle(x):
    """``t``, its square and the rest of ``arcsin(t) = t + rest``.

    ``t`` is ``|x|`` up to 1/2, and beyond it the sine of half the angle between x and
    the pole.
    """
    write, a = x.writer, magnitude(x)
    near = a <= 0.5
    z = write.select(near, a * a, 0.5 * (1.0 - a))
    t = write.select(near, a, write.intrinsic("sqrt", z))
    return near, t, z, t * z * polynomial(z, _ARCSIN[x.dtype.itemsize])
