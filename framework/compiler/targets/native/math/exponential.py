"""exp and its relatives.

``x = n log(2) + r`` with ``|r| <= log(2) / 2``; ``exp(r) - 1`` is a polynomial, and
``2**n`` is assembled from bits (Cody and Waite, "Software Manual for the Elementary
Functions", 1980). Coefficients are minimax for the relative error of ``exp(r) - 1``.
"""

from .floats import (
    bits_of,
    clamped,
    float_of,
    layout,
    magnitude,
    polynomial,
    signed_as,
    with_tiny,
)

_LOG2_E = 1.4426950408889634
_LOG_2 = 0.6931471805599453
# log(2) in two parts; products of the first with an exponent are exact
_HIGH_AND_LOW = {
    4: (0.693145751953125, 1.4286068203094173e-06),
    8: (0.6931471803691238, 1.9082149292705877e-10),
}
# (exp(r) - 1 - r) / r^2, within 2^-31 and 2^-61 of exp(r) - 1
# fmt: off
_COEFFICIENTS = {
    4: (0.5, 0.1666666567325592, 0.04166635870933533, 0.008333389647305012,
        0.0013940823264420033, 0.00019845891802106053),
    8: (0.5, 0.16666666666666677, 0.041666666666666505, 0.008333333333321513,
        0.001388888888896347, 0.00019841269886478058, 2.4801587171099467e-05,
        2.755724380346212e-06, 2.755740325213099e-07, 2.5109195354278527e-08,
        2.0875331210442497e-09),
}
# (sinh(x) - x) / x^3 in x^2, within 2^-34 and 2^-63 of sinh
_NEAR_ZERO_OF_SINH = {
    4: (0.1666666716337204, 0.008333349600434303, 0.0001983615948120132,
        2.8169513370812638e-06),
    8: (0.16666666666666669, 0.008333333333333148, 0.00019841269841431875,
        2.7557319157071264e-06, 2.5052123136800544e-08, 1.6057259763934606e-10,
        7.758748916207734e-13),
}
# (tanh(x) - x) / x^3 in x^2 as a quotient, within 2^-29 and 2^-63 of tanh
_NEAR_ZERO_OF_TANH = {
    4: ((-0.33333321639654445, -0.0015519147298097163), (1.0, 0.40464835456703235)),
    8: ((-0.3333333333333333, -0.0205004886162885, -0.0001992529139166667),
        (1.0, 0.4615014658488614, 0.023293583176623285, 0.00020661393122452278)),
}
# fmt: on
# where exp has reached 0 and infinity for good; the same of exp2, and of expm1 with -1
_RANGE = {4: (-104.0, 89.0), 8: (-746.0, 710.0)}
_RANGE_2 = {4: (-151.0, 128.0), 8: (-1076.0, 1024.0)}
_LOWEST_OF_EXPM1 = {4: -18.0, 8: -40.0}
_HIGHEST_OF_SINH = {4: 89.6, 8: 710.6}


def exp(x):
    """``e**x``, within 1 ulp."""
    x = clamped(x, *_RANGE[x.dtype.itemsize])
    power, n = _octaves(x, x * _LOG2_E)
    return _scaled(1.0 + _less_one(_remainder(x, n)), power)


def exp_of_sum(x, small):
    """``e**(x + small)`` with ``small`` below the last digit of ``x``."""
    x = clamped(x, *_RANGE[x.dtype.itemsize])
    power, n = _octaves(x, x * _LOG2_E)
    return _scaled(1.0 + _less_one(_remainder(x, n) + small), power)


def exp2(x):
    """``2**x``, within 1.1 ulp."""
    x = clamped(x, *_RANGE_2[x.dtype.itemsize])
    power, n = _octaves(x, x)
    return _scaled(1.0 + _less_one((x - n) * _LOG_2), power)


def exp2_in_short(x):
    """``2**x`` of a float64, within 2^-31, for results in float32's range."""
    x = clamped(x, *_RANGE_2[4])
    power, n = _octaves(x, x)
    return (1.0 + _less_one((x - n) * _LOG_2, _COEFFICIENTS[4])) * _two_to(power, x)


@with_tiny
def expm1(x):
    """``e**x - 1``, within 2 ulp."""
    size = x.dtype.itemsize
    return 4.0 * _quarter(clamped(x, _LOWEST_OF_EXPM1[size], _RANGE[size][1]))


def sinh(x):
    """``(e**x - e**-x) / 2`` from expm1, near zero by a polynomial. Within 2 ulp."""
    size, a = x.dtype.itemsize, magnitude(x)
    t = _quarter(clamped(a, 0.0, _HIGHEST_OF_SINH[size]))
    far = 2.0 * (t + t / (4.0 * t + 1.0))
    near = a + a * (a * a) * polynomial(a * a, _NEAR_ZERO_OF_SINH[size])
    return signed_as(x.writer.select(a < 1.0, near, far), x)


def cosh(x):
    """``(e**x + e**-x) / 2``, within 2 ulp."""
    x = clamped(magnitude(x), 0.0, _HIGHEST_OF_SINH[x.dtype.itemsize])
    power, n = _octaves(x, x * _LOG2_E)
    t = (1.0 + _less_one(_remainder(x, n))) * _two_to(power, x, 2)
    return 2.0 * t + 0.125 / t


def tanh(x):
    """``(e**2x - 1) / (e**2x + 1)`` from expm1, within 2 ulp.

    Near zero, ``x`` times a rational function of ``x^2``; both share one division.
    """
    select = x.writer.select
    size, a = x.dtype.itemsize, magnitude(x)
    near, z = a < 0.54, a * a
    above, below = _NEAR_ZERO_OF_TANH[size]
    t = _quarter(clamped(2.0 * a, 0.0, -_LOWEST_OF_EXPM1[size]))
    quotient = select(near, a * z * polynomial(z, above), t) / select(
        near, polynomial(z, below), t + 0.5
    )
    return signed_as(select(near, a + quotient, quotient), x)


def _octaves(x, in_octaves):
    """The nearest integer ``n``: in the lowest bits of an integer, and as a float.

    It uses bit operations in place of a conversion, which is undefined for NaN.
    """
    rounder = layout(x).rounder
    shifted = in_octaves + rounder
    return bits_of(shifted), shifted - rounder


def _remainder(x, n):
    high, low = _HIGH_AND_LOW[x.dtype.itemsize]
    return (x - n * high) - n * low


def _less_one(r, coefficients=None):
    """``e**r - 1`` for small ``r``."""
    return r + r * r * polynomial(r, coefficients or _COEFFICIENTS[r.dtype.itemsize])


def _two_to(power, x, less=0):
    """``2**(n - less)``; the bits above ``n`` are shifted out."""
    form = layout(x)
    return float_of((power << form.digits) + ((form.bias - less) << form.digits))


def _scaled(x, power):
    """``x * 2**n`` in two steps, as 2**n alone may be out of range where the result is not."""
    half = power >> 1
    return x * _two_to(half, x) * _two_to(power - half, x)


def _quarter(x):
    """``(e**x - 1) / 4``: extends the range of 2**n and the result a little."""
    power, n = _octaves(x, x * _LOG2_E)
    scale = _two_to(power, x, 2)
    return _less_one(_remainder(x, n)) * scale + (scale - 0.25)
