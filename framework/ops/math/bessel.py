"""Bessel functions of orders 0 and 1, and their scaled forms.

The derivative of a Bessel function is a combination of the functions of neighbouring
orders. So there is one op for each kind of function, with the order as an attribute,
and derivatives of every order. Kernels compute in double precision and return the dtype
of their input. Sources:

    Abramowitz & Stegun, "Handbook of Mathematical Functions" (1964), chapter 9
    Trefethen & Weideman, "The exponentially convergent trapezoidal rule" (2014)
"""

from __future__ import annotations

import math
from functools import cache, partial
from itertools import pairwise

from tapewright.core.rules import check_at_least, check_attributes
from tapewright.core.tensor import Tensor
from tapewright.core.typing import TensorLike

from .approximation import either, in_double, polynomial, special_function
from .elementwise import UNARY, zero_safe_multiply

__all__ = [
    "bessel_i0",
    "bessel_i0e",
    "bessel_i1",
    "bessel_i1e",
    "bessel_j0",
    "bessel_j1",
    "bessel_k0",
    "bessel_k0e",
    "bessel_k1",
    "bessel_k1e",
    "bessel_y0",
    "bessel_y1",
]

_EULER = 0.57721566490153286061

# --------------------------------------------- modified functions of the first kind, I

_BESSEL_FAR = 20.0  # where 40 terms of Hankel's expansion are exact to 1e-17


def _scaled_i(xp, x, nu, derivative=0):
    """Compute a derivative of ``exp(-|x|) * I(x)``, where I is of a low order.

    Each is exact relative to the function itself; beyond 20, where derivatives are far
    smaller, relative to its size. Where ``x`` is 0 the slope of ``|x|`` counts as 0.
    """
    odd = (nu + derivative) % 2

    def near(x):
        square, value = x * x, 0.0
        for factor, c in zip((1.0, x), _power_series(nu, derivative)):
            if any(c):
                value = value + polynomial(square, c) * factor
        return value * xp.exp(-x)

    def far(x):
        w = 1.0 / x
        power = xp.sqrt(w) * w**derivative
        return polynomial(w, _hankel_series(nu, derivative)) * power

    size = xp.abs(x)
    value = either(xp, size < _BESSEL_FAR, near, far, size)
    if odd:
        value = xp.where(x < 0, -value, value)
    if derivative:
        middle = math.comb(derivative, derivative // 2) * 0.5**derivative
        value = xp.where(x == 0, 0.0 if odd else middle, value)
    return value


@cache
def _power_series(nu, derivative):
    """Return coefficients of a derivative of ``exp(-x) * I(x)`` but for ``exp(-x)``.

    By A&S 9.6.10. Coefficients of even powers, then of odd powers, each from the
    highest.
    """
    from fractions import Fraction  # a millisecond that an import should not cost

    series = [Fraction(0)] * (96 + derivative)
    series[nu::2] = [
        Fraction(1, 2 ** (2 * k + nu) * math.factorial(k) * math.factorial(k + nu))
        for k in range(len(series[nu::2]))
    ]
    for _ in range(derivative):
        series = [k * c - before for k, (before, c) in enumerate(pairwise(series), 1)]
    return [[float(c) for c in series[odd::2]][::-1] for odd in (0, 1)]


@cache
def _hankel_series(nu, derivative):
    """Return coefficients of the expansion in ``1 / x``, less the first power, A&S 9.7.1."""
    from fractions import Fraction  # a millisecond that an import should not cost

    series, c = [], Fraction(1)
    for k in range(41):
        slope = math.prod([Fraction(-1 - 2 * (k + i), 2) for i in range(derivative)])
        series.append(float(c * slope) / math.sqrt(2.0 * math.pi))
        c *= Fraction((2 * k + 1) ** 2 - 4 * nu**2, 8 * (k + 1))
    return series[::-1]


@special_function(type_name="BesselI0e")
def bessel_i0e(xp, x: TensorLike):
    """Scaled modified Bessel function of the first kind of order 0: ``exp(-|x|) * I0(x)``.

    Its derivative is ``bessel_i1e(x) - sign(x) * bessel_i0e(x)``.

    Args:
        x: Real floating tensor.

    Raises:
        TypeError: If ``x`` is not real and floating.

    References:
        Abramowitz & Stegun, "Handbook of Mathematical Functions" (1964), 9.6.16.

    Example:
        >>> tw.bessel_i0e([0.0, 1.0, -1.0]).numpy()
        array([1.       , 0.4657596, 0.4657596], dtype=float32)
    """
    return in_double(xp, partial(_scaled_i, nu=0), x)


@bessel_i0e.vjp("x")
def _(g, x):
    return g * _bessel_slope(x, nu=0, derivative=1)


@special_function(type_name="BesselI1e", zero_when=UNARY)
def bessel_i1e(xp, x: TensorLike):
    """Scaled modified Bessel function of the first kind of order 1: ``exp(-|x|) * I1(x)``.

    Args:
        x: Real floating tensor.

    Raises:
        TypeError: If ``x`` is not real and floating.

    References:
        Abramowitz & Stegun, "Handbook of Mathematical Functions" (1964), 9.6.18.

    Example:
        >>> tw.bessel_i1e([0.0, 1.0, -1.0]).numpy()
        array([ 0.        ,  0.20791042, -0.20791042], dtype=float32)
    """
    return in_double(xp, partial(_scaled_i, nu=1), x)


@bessel_i1e.vjp("x")
def _(g, x):
    return g * _bessel_slope(x, nu=1, derivative=1)


@special_function()
def _bessel_slope(xp, x: TensorLike, *, nu, derivative):
    kernel = partial(_scaled_i, nu=nu, derivative=derivative)
    return in_double(xp, kernel, x)


@_bessel_slope.vjp("x")
def _(g, x, nu, derivative):
    return g * _bessel_slope(x, nu=nu, derivative=derivative + 1)


@special_function()
def _bessel_i(xp, x: TensorLike, *, nu):
    def kernel(xp, x):
        half = xp.exp(0.5 * xp.abs(x))  # the whole may overflow before the product does
        value = half * _scaled_i(xp, x, nu) * half
        limit = -xp.inf if nu % 2 else xp.inf
        value = xp.where(x == xp.inf, xp.inf, value)
        return xp.where(x == -xp.inf, limit, value)

    return in_double(xp, kernel, x)


@_bessel_i.vjp("x")
def _(g, x, nu):  # A&S 9.6.26
    lower, upper = _bessel_i(x, nu=abs(nu - 1)), _bessel_i(x, nu=nu + 1)
    return zero_safe_multiply(g, (lower + upper) * 0.5)


def bessel_i0(x: TensorLike, name: str | None = None) -> Tensor:
    """Modified Bessel function of the first kind of order 0: ``I0(x)``.

    Use `bessel_i0e` where it overflows.

    Args:
        x: Real floating tensor.

    Raises:
        TypeError: If ``x`` is not real and floating.

    Example:
        >>> tw.math.bessel_i0([0.0, 1.0, -1.0]).numpy()
        array([1.       , 1.2660658, 1.2660658], dtype=float32)
    """
    return _bessel_i(x, nu=0)


def bessel_i1(x: TensorLike, name: str | None = None) -> Tensor:
    """Modified Bessel function of the first kind of order 1: ``I1(x)``.

    Use `bessel_i1e` where it overflows.

    Args:
        x: Real floating tensor.

    Raises:
        TypeError: If ``x`` is not real and floating.

    Example:
        >>> tw.math.bessel_i1([0.0, 1.0, -1.0]).numpy()
        array([ 0.       ,  0.5651591, -0.5651591], dtype=float32)
    """
    return _bessel_i(x, nu=1)


# -------------------------------------------- modified functions of the second kind, K

# The nodes of the trapezoidal rule: to 1e-16 from x = 1 on to where Hankel's expansion
# takes over, for all low orders.
_STEP = 0.125
_NODES = [_STEP * k for k in range(1, 38)]


def _scaled_k(xp, x, nu):
    """Compute ``exp(x) * K(x)``; infinite where ``x`` is not positive, as in TensorFlow."""

    def small(x):  # A&S 9.6.13, and 9.6.11 for the order 1
        square = 0.25 * x * x
        log = xp.log(0.5 * x)
        zeroth = polynomial(square, _series_k(0)) - log * polynomial(
            square, _series_i(0)
        )
        if nu == 0:
            return zeroth * xp.exp(x)
        first = 0.5 * x * (
            log * polynomial(square, _series_i(1)) - polynomial(square, _series_k(1))
        ) + 1.0 / x  # fmt: skip
        return upward(x, zeroth, first) * xp.exp(x)

    def upward(x, lower, upper):  # A&S 9.6.26
        for n in range(1, nu):
            lower, upper = upper, lower + (2 * n / x) * upper
        return upper

    def middle(x):  # A&S 9.6.24
        total = xp.full_like(x, 0.5)
        for t in _NODES:
            total += xp.exp(-2.0 * math.sinh(0.5 * t) ** 2 * x) * math.cosh(nu * t)
        return total * _STEP

    def far(x):  # A&S 9.7.2: that of I with other signs
        w = 1.0 / x
        return polynomial(-w, _hankel_series(nu, 0)) * xp.sqrt(w) * math.pi

    def positive(x):
        return either(xp, x < 1.0, small, beyond, x)

    def beyond(x):
        return either(xp, x < _BESSEL_FAR, middle, far, x)

    value = positive(xp.where(x > 0, x, 1.0))
    return xp.where(x > 0, value, xp.where(x <= 0, xp.inf, xp.nan))


@cache
def _series_i(nu):
    """Return coefficients of ``I(x) / (x / 2) ** order`` in ``x ** 2 / 4``, highest first."""
    return [1.0 / (math.factorial(k) * math.factorial(k + nu)) for k in range(14)][::-1]


@cache
def _series_k(nu):
    """Return `_series_i` times the mean of digamma at ``k + 1`` and ``k + 1 + order``."""
    harmonic = [sum(1.0 / j for j in range(1, k + 1)) - _EULER for k in range(16)]
    means = [0.5 * (harmonic[k] + harmonic[k + nu]) for k in range(14)]
    return [m * c for m, c in zip(means[::-1], _series_i(nu))]


@special_function()
def _bessel_k(xp, x: TensorLike, *, nu, scaled):
    def kernel(xp, x):
        value = _scaled_k(xp, x, nu)
        return value if scaled else value * xp.exp(-xp.maximum(x, 0.0))

    return in_double(xp, kernel, x)


@_bessel_k.vjp("x")
def _(g, x, out, nu, scaled):  # A&S 9.6.26
    lower = _bessel_k(x, nu=abs(nu - 1), scaled=scaled)
    slope = (lower + _bessel_k(x, nu=nu + 1, scaled=scaled)) * -0.5
    return zero_safe_multiply(g, out + slope if scaled else slope)


def bessel_k0(x: TensorLike, name: str | None = None) -> Tensor:
    """Modified Bessel function of the second kind of order 0: ``K0(x)``.

    It is infinite where ``x`` is not positive.

    Args:
        x: Real floating tensor.

    Raises:
        TypeError: If ``x`` is not real and floating.

    Example:
        >>> tw.math.special.bessel_k0([0.5, 1.0, 2.0]).numpy()
        array([0.92441905, 0.42102444, 0.11389387], dtype=float32)
    """
    return _bessel_k(x, nu=0, scaled=False)


def bessel_k0e(x: TensorLike, name: str | None = None) -> Tensor:
    """Scaled modified Bessel function of the second kind of order 0: ``exp(x) * K0(x)``.

    It does not vanish for large ``x``, and is infinite where ``x`` is not positive.

    Args:
        x: Real floating tensor.

    Raises:
        TypeError: If ``x`` is not real and floating.

    Example:
        >>> tw.math.special.bessel_k0e([1.0, 1000.0]).numpy()
        array([1.1444631 , 0.03962832], dtype=float32)
    """
    return _bessel_k(x, nu=0, scaled=True)


def bessel_k1(x: TensorLike, name: str | None = None) -> Tensor:
    """Modified Bessel function of the second kind of order 1: ``K1(x)``.

    It is infinite where ``x`` is not positive.

    Args:
        x: Real floating tensor.

    Raises:
        TypeError: If ``x`` is not real and floating.

    Example:
        >>> tw.math.special.bessel_k1([0.5, 1.0, 2.0]).numpy()
        array([1.6564411 , 0.60190725, 0.13986588], dtype=float32)
    """
    return _bessel_k(x, nu=1, scaled=False)


def bessel_k1e(x: TensorLike, name: str | None = None) -> Tensor:
    """Scaled modified Bessel function of the second kind of order 1: ``exp(x) * K1(x)``.

    It does not vanish for large ``x``, and is infinite where ``x`` is not positive.

    Args:
        x: Real floating tensor.

    Raises:
        TypeError: If ``x`` is not real and floating.

    Example:
        >>> tw.math.special.bessel_k1e([1.0, 1000.0]).numpy()
        array([1.6361535 , 0.03964813], dtype=float32)
    """
    return _bessel_k(x, nu=1, scaled=True)


# ------------------------------------------------------------- functions J and Y

_MILLER = 72  # the order from which the recurrence downward starts, for x below 20


def _downward(xp, x, count):
    """Compute J of the orders 0 to ``count - 1`` for ``x`` from 1 to 20: Miller's method."""
    w = 2.0 / x
    upper, value = xp.zeros_like(x), xp.full_like(x, 1e-200)
    total, values = xp.zeros_like(x), [None] * count
    for n in range(_MILLER, 0, -1):
        upper, value = value, (n * w) * value - upper
        if n <= count:
            values[n - 1] = value
        if n % 2:  # A&S 9.1.46; J of order n - 1
            total += value if n == 1 else 2.0 * value
    return [j / total for j in values]


def _bessel_by_hankel(xp, x, nu, second):
    """Compute J, or Y with ``second``, for ``x`` above 20: A&S 9.2.5 f."""
    w = 1.0 / x
    square = -w * w
    series = [c * math.sqrt(2.0 * math.pi) for c in _hankel_series(nu, 0)[::-1]]
    even = polynomial(square, series[0::2][::-1])
    odd = -polynomial(square, series[1::2][::-1]) * w
    cosine, sine = xp.cos(x), xp.sin(x)  # of x - (nu / 2 + 1 / 4) * pi, see below
    cosine, sine = cosine + sine, sine - cosine
    for _ in range(nu % 4):
        cosine, sine = sine, -cosine
    a, b = (sine, cosine) if second else (cosine, -sine)
    return (even * a + odd * b) * xp.sqrt(w / math.pi)


@special_function()
def _bessel_j(xp, x: TensorLike, *, nu):
    def kernel(xp, x):
        size = xp.abs(x)
        value = either(xp, size < 1.0, small, beyond, xp.minimum(size, 1e300))
        value = xp.where(size == xp.inf, 0.0, value)
        return xp.where(x < 0, -value, value) if nu % 2 else value

    def small(x):  # A&S 9.1.10
        value = polynomial(-0.25 * x * x, _series_i(nu))
        for _ in range(nu):
            value = value * (0.5 * x)
        return value

    def beyond(x):
        return either(xp, x < _BESSEL_FAR, middle, far, x)

    def middle(x):
        return _downward(xp, x, nu + 1)[nu]

    def far(x):
        return _bessel_by_hankel(xp, x, nu, False)

    return in_double(xp, kernel, x)


@_bessel_j.vjp("x")
def _(g, x, nu):  # A&S 9.1.27
    if nu == 0:
        return zero_safe_multiply(g, -_bessel_j(x, nu=1))
    lower, upper = _bessel_j(x, nu=nu - 1), _bessel_j(x, nu=nu + 1)
    return zero_safe_multiply(g, (lower - upper) * 0.5)


@special_function()
def _bessel_y(xp, x: TensorLike, *, nu):
    def kernel(xp, x):
        inside = (x > 0) & (x < xp.inf)
        value = positive(xp.where(inside, x, 1.0))
        edge = xp.where(x <= 0, -xp.inf, xp.where(x == xp.inf, 0.0, xp.nan))
        return xp.where(inside, value, edge)

    def positive(x):
        return either(xp, x < _BESSEL_FAR, near, far, x)

    def near(x):
        return upward(x, *[lowest(n, x) for n in range(1 + (nu > 0))])

    def lowest(n, x):
        return either(xp, x < 1.0, partial(small, n), partial(middle, n), x)

    def small(n, x):  # A&S 9.1.13, and 9.1.11 for the order 1
        square, log = -0.25 * x * x, xp.log(0.5 * x)
        value = log * polynomial(square, _series_i(n)) - polynomial(
            square, _series_k(n)
        )
        return value * (2 / math.pi) if n == 0 else (value * x - 2.0 / x) / math.pi

    def middle(n, x):  # Neumann's series, A&S 9.1.88
        j = _downward(xp, x, 57)
        total = (xp.log(0.5 * x) + _EULER - n) * j[n]
        for k in range(1, 28):
            weight = (-1) ** k * (n + 2 * k) / (k * (n + k))
            total -= weight * j[n + 2 * k]
        return (2.0 * total if n == 0 else 2.0 * total - 2.0 * j[0] / x) / math.pi

    def upward(x, lower, upper=None):  # A&S 9.1.27
        if nu == 0:
            return lower
        for n in range(1, nu):
            lower, upper = upper, (2 * n / x) * upper - lower
        return upper

    def far(x):
        return _bessel_by_hankel(xp, x, nu, True)

    return in_double(xp, kernel, x)


@_bessel_y.vjp("x")
def _(g, x, nu):  # A&S 9.1.27
    if nu == 0:
        return zero_safe_multiply(g, -_bessel_y(x, nu=1))
    lower, upper = _bessel_y(x, nu=nu - 1), _bessel_y(x, nu=nu + 1)
    return zero_safe_multiply(g, (lower - upper) * 0.5)


def bessel_j0(x: TensorLike, name: str | None = None) -> Tensor:
    """Bessel function of the first kind of order 0: ``J0(x)``.

    Near its zeros and beyond 1 it is exact to about ``1e-16``, not relative to its
    size; beyond 1e8 the phase of ``x`` itself has lost digits.

    Args:
        x: Real floating tensor.

    Raises:
        TypeError: If ``x`` is not real and floating.

    Example:
        >>> tw.math.special.bessel_j0([0.0, 1.0, 2.0]).numpy()
        array([1.        , 0.7651977 , 0.22389078], dtype=float32)
    """
    return _bessel_j(x, nu=0)


def bessel_j1(x: TensorLike, name: str | None = None) -> Tensor:
    """Bessel function of the first kind of order 1: ``J1(x)``.

    The precision is the same as for `bessel_j0`.

    Args:
        x: Real floating tensor.

    Raises:
        TypeError: If ``x`` is not real and floating.

    Example:
        >>> tw.math.special.bessel_j1([0.0, 1.0, 2.0]).numpy()
        array([0.        , 0.44005057, 0.5767248 ], dtype=float32)
    """
    return _bessel_j(x, nu=1)


def bessel_y0(x: TensorLike, name: str | None = None) -> Tensor:
    """Bessel function of the second kind of order 0: ``Y0(x)``.

    It is -inf where ``x`` is not positive. The precision is the same as for
    `bessel_j0`.

    Args:
        x: Real floating tensor.

    Raises:
        TypeError: If ``x`` is not real and floating.

    Example:
        >>> tw.math.special.bessel_y0([0.5, 1.0, 2.0]).numpy()
        array([-0.44451874,  0.08825696,  0.5103757 ], dtype=float32)
    """
    return _bessel_y(x, nu=0)


def bessel_y1(x: TensorLike, name: str | None = None) -> Tensor:
    """Bessel function of the second kind of order 1: ``Y1(x)``.

    It is -inf where ``x`` is not positive. The precision is the same as for
    `bessel_j0`.

    Args:
        x: Real floating tensor.

    Raises:
        TypeError: If ``x`` is not real and floating.

    Example:
        >>> tw.math.special.bessel_y1([0.5, 1.0, 2.0]).numpy()
        array([-1.4714724 , -0.7812128 , -0.10703243], dtype=float32)
    """
    return _bessel_y(x, nu=1)


def _check_order(nu, derivative=0):
    check_at_least("bessel", 0, nu=nu, derivative=derivative)


for _op in (_bessel_slope, _bessel_i, _bessel_j):
    check_attributes(_op, _check_order)
