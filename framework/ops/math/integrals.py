"""Functions defined by integrals: Dawson, Fresnel, exponential integral, Spence.

Kernels compute in double precision and return the dtype of their input. Where a
function and its derivatives differ in size, one op computes them all, with the order of
the derivative as an attribute. Sources:

    Abramowitz & Stegun, "Handbook of Mathematical Functions" (1964), chapters 5, 7 and 27
    Rybicki, "Dawson's integral and the sampling theorem", Computers in Physics 3 (1989)
"""

from __future__ import annotations

import math
from functools import cache, partial

from tapewright.core.rules import check_at_least, check_attributes
from tapewright.core.tensor import Tensor
from tapewright.core.typing import TensorLike

from .approximation import either, in_double, polynomial, special_function
from .elementwise import UNARY, exp, zero_safe_divide, zero_safe_multiply

__all__ = ["dawsn", "expint", "fresnel_cos", "fresnel_sin", "spence"]

_EULER = 0.57721566490153286061

# ------------------------------------------------------------------ Dawson's integral

_STEP = 0.25  # between Rybicki's samples: the rest is exp(-(pi / 2 / _STEP) ** 2)
_DAWSON_FAR = 7.0  # where 40 terms of the expansion in 1 / x are exact to 1e-17


def _dawson(xp, x, derivative):
    """Compute a derivative of Dawson's integral, odd or even as its order."""
    size = xp.abs(x)

    def near(x):
        values = [either(xp, x < 0.5, by_powers, by_samples, x)]
        for n in range(derivative):  # of F' = 1 - 2 x F
            before = 2.0 * n * values[-2] if n else -1.0
            values.append(-2.0 * x * values[-1] - before)
        return values[-1]

    def by_powers(x):  # A&S 7.1.6
        return x * polynomial(x * x, _DAWSON_POWERS)

    def by_samples(x):
        middle = 2.0 * xp.rint(x * (0.5 / _STEP))
        rest = x - middle * _STEP
        total = xp.zeros_like(x)
        for n in range(1, 28, 2):
            for odd in (n, -n):
                total += xp.exp(-xp.square(rest - odd * _STEP)) / (middle + odd)
        return total / math.sqrt(math.pi)

    def far(x):
        w = 1.0 / x
        return polynomial(w * w, _dawson_far(derivative)) * w ** (1 + derivative)

    value = either(xp, size < _DAWSON_FAR, near, far, size)
    return value if derivative % 2 else xp.where(x < 0, -value, value)


_DAWSON_POWERS = [(-2.0) ** k / math.prod(range(1, 2 * k + 2, 2)) for k in range(18)][
    ::-1
]


@cache
def _dawson_far(derivative):
    """Return coefficients of derivatives of ``sum_k (2k-1)!! / (2 ** (k+1) x ** (2k+1))``."""
    series, c = [], 0.5
    for k in range(40):
        slope = math.prod([-(2 * k + 1 + i) for i in range(derivative)])
        series.append(c * slope)
        c *= k + 0.5
    return series[::-1]


@special_function(name="dawsn")
def _dawsn(xp, x: TensorLike, *, derivative):
    return in_double(xp, partial(_dawson, derivative=derivative), x)


@_dawsn.vjp("x")
def _(g, x, derivative):
    return zero_safe_multiply(g, _dawsn(x, derivative=derivative + 1))


def dawsn(x: TensorLike, name: str | None = None) -> Tensor:
    """Dawson's integral: ``exp(-x ** 2)`` times the integral of ``exp(t ** 2)`` to ``x``.

    The integral starts at 0.

    Args:
        x: Real floating tensor.

    Raises:
        TypeError: If ``x`` is not real and floating.

    Example:
        >>> tw.math.special.dawsn([0.0, 1.0, -2.0]).numpy()
        array([ 0.       ,  0.5380795, -0.3013404], dtype=float32)
    """
    return _dawsn(x, derivative=0)


# --------------------------------------------------------------- exponential integral


@special_function()
def expint(xp, x: TensorLike):
    """Exponential integral Ei: the integral of ``exp(t) / t`` from -inf to ``x``.

    Its derivative is ``exp(x) / x``. The result is -inf at 0 and NaN below, as in
    TensorFlow.

    Args:
        x: Real floating tensor.

    Raises:
        TypeError: If ``x`` is not real and floating.

    Example:
        >>> tw.math.special.expint([0.5, 1.0, 2.0]).numpy()
        array([0.4542199, 1.8951178, 4.954234 ], dtype=float32)
    """

    def positive(x):
        return either(xp, x < 40.0, near, far, x)

    def near(x):  # A&S 5.1.10; its zero at 0.37 has the digits of the terms
        return xp.log(x) + _EULER + x * polynomial(x, _EXPINT)

    def far(x):  # A&S 5.1.51
        half, w = xp.exp(0.5 * x), 1.0 / x
        return half * (w * polynomial(w, _FACTORIALS)) * half

    def kernel(xp, x):
        inside = (x > 0) & (x < xp.inf)
        value = positive(xp.where(inside, x, 1.0))
        edge = xp.where(x == 0, -xp.inf, xp.where(x > 0, xp.inf, xp.nan))
        return xp.where(inside, value, edge)

    return in_double(xp, kernel, x)


_EXPINT = [1.0 / (k * math.factorial(k)) for k in range(1, 140)][::-1]
_FACTORIALS = [float(math.factorial(k)) for k in range(40)][::-1]


@expint.vjp("x")
def _(g, x):
    return zero_safe_multiply(g, zero_safe_divide(exp(x), x))


# ----------------------------------------------------------------- Fresnel's integrals

# The trapezoidal rule for A&S 7.3.5 and 7.3.6 with t = (u / x) ** 2: its error is below
# 1e-20 from x = 1.5 on.
_U = [0.125 * k for k in range(1, 42)]


def _fresnel(xp, x, sine):
    size = xp.abs(x)

    def near(x):  # A&S 7.3.11 and 7.3.13
        phase = 0.5 * math.pi * x * x
        value = x * polynomial(phase * phase, _fresnel_powers(sine))
        return value * phase if sine else value

    def far(x):  # A&S 7.3.9 f.
        fourth = x**-4.0
        f, g = xp.full_like(x, 0.5), xp.zeros_like(x)
        for u in _U:
            term = math.exp(-0.5 * math.pi * u * u) / (u**4 * fourth + 1.0)
            f += term
            g += term * (u * u)
        factor = 0.125 * math.sqrt(2.0) / (x * math.pi)
        f, g = f * factor, g * (factor / (x * x))
        cosine, sine_ = _quadratic_phase(xp, x)
        return 0.5 - f * cosine - g * sine_ if sine else 0.5 + f * sine_ - g * cosine

    value = either(xp, size < 1.5, near, far, xp.minimum(size, 2.0**60))
    return xp.where(x < 0, -value, value)


@cache
def _fresnel_powers(sine):
    return [
        (-1) ** k / (math.factorial(2 * k + sine) * (4 * k + 2 * sine + 1))
        for k in range(16)
    ][::-1]


def _quadratic_phase(xp, x):
    """Return cosine and sine of ``pi x ** 2 / 2``, by the remainder of ``x ** 2`` modulo 4.

    From 2 ** 54 on the remainder is 0.
    """
    x = xp.where(xp.isfinite(x), xp.minimum(xp.abs(x), 2.0**60), xp.nan)
    scaled = x * 134217729.0  # Dekker's splitting: the square of the head is exact
    head = scaled - (scaled - x)
    turns = xp.fmod(head * head, 4.0) + xp.fmod((x - head) * (x + head), 4.0)
    phase = turns * (0.5 * math.pi)
    return xp.cos(phase), xp.sin(phase)


@special_function(zero_when=UNARY)
def fresnel_cos(xp, x: TensorLike):
    """Fresnel integral C: the integral of ``cos(pi t ** 2 / 2)`` from 0 to ``x``.

    Args:
        x: Real floating tensor.

    Raises:
        TypeError: If ``x`` is not real and floating.

    Example:
        >>> tw.math.special.fresnel_cos([0.0, 1.0, -2.0]).numpy()
        array([ 0.       ,  0.7798934, -0.4882534], dtype=float32)
    """
    return in_double(xp, partial(_fresnel, sine=False), x)


@fresnel_cos.vjp("x")
def _(g, x):
    return zero_safe_multiply(g, _fresnel_slope(x, sine=False))


@special_function(zero_when=UNARY)
def fresnel_sin(xp, x: TensorLike):
    """Fresnel integral S: the integral of ``sin(pi t ** 2 / 2)`` from 0 to ``x``.

    Args:
        x: Real floating tensor.

    Raises:
        TypeError: If ``x`` is not real and floating.

    Example:
        >>> tw.math.special.fresnel_sin([0.0, 1.0, -2.0]).numpy()
        array([ 0.        ,  0.43825915, -0.34341568], dtype=float32)
    """
    return in_double(xp, partial(_fresnel, sine=True), x)


@fresnel_sin.vjp("x")
def _(g, x):
    return zero_safe_multiply(g, _fresnel_slope(x, sine=True))


@special_function()
def _fresnel_slope(xp, x: TensorLike, *, sine):
    return in_double(xp, lambda xp, x: _quadratic_phase(xp, x)[int(sine)], x)


@_fresnel_slope.vjp("x")
def _(g, x, sine):
    factor = math.pi if sine else -math.pi
    return zero_safe_multiply(g, x * _fresnel_slope(x, sine=not sine) * factor)


# ------------------------------------------------------------------- Spence's integral


def _spence(xp, x):
    def inside(x):
        return either(xp, x > 2.0, inverted, upto_two, x)

    def inverted(x):  # A&S 27.7.4, in 1 - x
        log = xp.log(x)
        return -0.5 * log * log - upto_two(1.0 / x)

    def upto_two(x):
        return either(xp, x < 0.5, reflected, middle, x)

    def reflected(x):  # A&S 27.7.3
        rest = -xp.log1p(-x)
        log = xp.log(xp.where(x > 0, x, 1.0))
        return math.pi**2 / 6.0 + log * rest - by_powers(rest)

    def middle(x):
        return by_powers(-xp.log(x))

    def by_powers(u):  # the Debye function of A&S 27.1, by its Bernoulli numbers
        return u * (polynomial(u * u, _BERNOULLI) - 0.25 * u)

    valid = (x >= 0) & (x < xp.inf)
    value = inside(xp.where(valid, x, 1.0))
    return xp.where(valid, value, xp.where(x > 0, -xp.inf, xp.nan))


def _bernoulli_series(count):
    """Return ``B(2k) / (2k + 1)!``, from the highest."""
    numbers = [1.0]
    for n in range(1, 2 * count):
        numbers.append(
            -sum(math.comb(n + 1, k) * b for k, b in enumerate(numbers)) / (n + 1)
        )
    terms = [numbers[2 * k] / math.factorial(2 * k + 1) for k in range(count)]
    return terms[::-1]


_BERNOULLI = _bernoulli_series(12)


@special_function()
def spence(xp, x: TensorLike):
    """Spence's function: the integral of ``log(t) / (1 - t)`` from 1 to ``x``.

    It is also known as ``Li2(1 - x)``, and NaN where ``x`` is negative.

    Args:
        x: Real floating tensor.

    Raises:
        TypeError: If ``x`` is not real and floating.

    Example:
        >>> tw.math.special.spence([0.0, 1.0, 2.0]).numpy()  # pi ** 2 times 1 / 6, 0, -1 / 12
        array([ 1.644934, -0.      , -0.822467], dtype=float32)
    """
    return in_double(xp, _spence, x)


@spence.vjp("x")
def _(g, x):
    return zero_safe_multiply(g, _spence_slope(x, derivative=0))


@special_function()
def _spence_slope(xp, x: TensorLike, *, derivative):
    """Compute a derivative of ``log(x) / (1 - x)``, which is -1 at 1."""

    if derivative < 0:
        raise ValueError("a negative order")  # `infer` says it better

    def kernel(xp, x):
        return either(xp, xp.abs(x - 1.0) < 0.5, near, far, x)

    def near(x):
        return polynomial(1.0 - x, _slope_powers(derivative))

    def far(x):
        value = xp.log(x) / (1.0 - x)
        for n in range(1, derivative + 1):  # of log(x) = (1 - x) * this
            term = (-1) ** (n - 1) * math.factorial(n - 1) / x**n
            value = (n * value + term) / (1.0 - x)
        return value

    return in_double(xp, kernel, x)


@cache
def _slope_powers(derivative):
    sign = (-1) ** (derivative + 1)
    return [
        float(sign * math.perm(k + derivative, derivative)) / (k + derivative + 1)
        for k in range(64 + 8 * derivative)
    ][::-1]


@_spence_slope.vjp("x")
def _(g, x, derivative):
    return zero_safe_multiply(g, _spence_slope(x, derivative=derivative + 1))


def _check_spence(derivative):
    check_at_least("spence", 0, derivative=derivative)


check_attributes(_spence_slope, _check_spence)
