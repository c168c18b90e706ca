"""The incomplete beta function, and its derivatives.

Kernels work in double precision and answer in the dtype of their input. Source:

    DLMF, "Digital Library of Mathematical Functions", https://dlmf.nist.gov, chapter 8
"""

from __future__ import annotations

import math

from tapewright.core.errors import GradientLookupError
from tapewright.core.tensor import Tensor
from tapewright.core.typing import TensorLike

from .approximation import either, in_double, special_function
from .comparison import greater, where_p
from .elementwise import log, log1p, zero_safe_divide, zero_safe_multiply
from .gamma import digamma, digamma_kernel, excess, stirling_rest

__all__ = ["betainc"]

_LEAST = 10.0  # from here on Stirling's series is exact


def _incomplete_beta(xp, a, b, x):
    """``(value, slope by a, slope by b)`` for numbers inside of the domain."""
    turned = x * (a + b + 2.0) > a + 1.0  # where the fraction of the rest converges
    y = 1.0 - x
    a, b = xp.where(turned, b, a), xp.where(turned, a, b)
    x, y = xp.where(turned, y, x), xp.where(turned, x, y)
    value, by_a, by_b = _by_fraction(xp, a, b, x, y)
    value = xp.where(turned, 1.0 - value, value)
    by_a, by_b = xp.where(turned, -by_b, by_a), xp.where(turned, -by_a, by_b)
    return value, by_a, by_b


def _by_fraction(xp, a, b, x, y):
    """DLMF 8.17.22, from its end on, with the derivatives of each step."""
    largest = float(xp.max(xp.maximum(a, b))) if a.size else 0.0
    rest = rest_a = rest_b = xp.zeros_like(x)
    for m in range(int(40 + 4.0 * math.sqrt(min(largest, 1e8))), -1, -1):
        for even in (True, False):
            if even:
                k = m + 1
                below = (a + (2 * k - 1)) * (a + 2 * k)
                d = k * (b - k) * x / below
                d_a = -d * (2.0 * a + (4 * k - 1)) / below
                d_b = k * x / below
            else:
                below = (a + 2 * m) * (a + (2 * m + 1))
                d = -(a + m) * (a + b + m) * x / below
                d_a = -(2.0 * a + b + 2 * m) * x / below
                d_a = d_a - d * (2.0 * a + (4 * m + 1)) / below
                d_b = -(a + m) * x / below
            under = 1.0 + rest
            rest_a = (d_a - d * rest_a / under) / under
            rest_b = (d_b - d * rest_b / under) / under
            rest = d / under
    under = 1.0 + rest
    value = _power_over_beta(xp, a, b, x, y) / (a * under)
    both = digamma_kernel(xp, a + b)
    by_a = xp.log(x) + both - digamma_kernel(xp, a) - 1.0 / a - rest_a / under
    by_b = xp.log(y) + both - digamma_kernel(xp, b) - rest_b / under
    return value, value * by_a, value * by_b


def _power_over_beta(xp, a, b, x, y):
    """``x ** a * y ** b / beta(a, b)``, where ``x + y`` is 1.

    Stirling's series gives the beta function of numbers from 10 on. Smaller ones are
    raised by 10, with DLMF 5.12.1 and the recurrence of the gamma function.
    """
    total, factor = a + b, xp.ones_like(x)
    raised = []
    for p in (a, b):
        small = p < _LEAST
        for k in range(int(_LEAST)):
            factor = xp.where(small, factor * ((p + k) / (total + k)), factor)
        total = xp.where(small, total + _LEAST, total)
        raised.append(xp.where(small, p + _LEAST, p))
    shift = x * raised[1] - y * raised[0]
    exponent = stirling_rest(total)
    for p, large, base, more in zip((a, b), raised, (x, y), (shift, -shift)):
        exponent += _log_of_power(xp, p, large, base, more, total / large)
        exponent -= stirling_rest(large)
    a, b = raised
    return factor * xp.sqrt(a / total * b / (2.0 * math.pi)) * xp.exp(exponent)


def _log_of_power(xp, p, large, base, shift, ratio):
    """``p * log(base) + large * log(ratio) - shift``, where the shifts of both cancel."""

    def near(p, large, base, shift, ratio):
        return -large * excess(xp, shift / large)

    def far(p, large, base, shift, ratio):
        return p * xp.log(base) + large * xp.log(ratio) - shift

    small = (p == large) & (shift > -0.6 * large) & (shift < 1.5 * large)
    return either(xp, small, near, far, p, large, base, shift, ratio)


def _in_domain(xp, a, b, x, compute, at_0, at_1):
    """``compute(a, b, x)`` inside of the domain, the limits at its ends, else NaN."""
    valid = (a > 0) & (b > 0) & (a < xp.inf) & (b < xp.inf)
    inside = valid & (x > 0) & (x < 1)
    value = compute(*[xp.where(inside, each, 0.5) for each in (a, b, x)])
    edge = xp.where(x == 0, at_0, xp.where(x == 1, at_1, xp.nan))
    return xp.where(inside, value, xp.where(valid, edge, xp.nan))


_IN_DOMAIN = "positive a and b, and x from 0 to 1"


@special_function(stable_form=_IN_DOMAIN)
def _betainc(xp, a: TensorLike, b: TensorLike, x: TensorLike):
    return _part(xp, 0, a, b, x)


def _part(xp, index, a, b, x):
    def kernel(xp, a, b, x):
        def compute(a, b, x):
            return _incomplete_beta(xp, a, b, x)[index]

        return _in_domain(xp, a, b, x, compute, 0.0, 0.0 if index else 1.0)

    return in_double(xp, kernel, a, b, x)


@_betainc.vjp("a")
def _(g, a, b, x):
    return zero_safe_multiply(g, _betainc_slope(a, b, x, by_b=False))


@_betainc.vjp("b")
def _(g, a, b, x):
    return zero_safe_multiply(g, _betainc_slope(a, b, x, by_b=True))


@_betainc.vjp("x")
def _(g, a, b, x):
    return zero_safe_multiply(g, _beta_density(a, b, x))


def betainc(
    a: TensorLike, b: TensorLike, x: TensorLike, name: str | None = None
) -> Tensor:
    """The regularized incomplete beta function ``I(a, b, x)``.

    The integral of ``t ** (a - 1) * (1 - t) ** (b - 1)`` from 0 to ``x``, divided by the
    one to 1: the distribution function of the beta distribution. ``a``, ``b`` and ``x``
    broadcast; NaN unless ``a`` and ``b`` are positive and ``x`` is from 0 to 1. It has
    derivatives of every order by ``x``, and of the first by ``a`` and ``b``; TensorFlow
    has none by these. The time grows with the square root of the largest of them.

    Raises: ``TypeError`` if they are not real floating numbers; ``LookupError`` where a
    second derivative by ``a`` or ``b`` is asked for.

    >>> betainc(2.0, 1.0, [0.0, 0.5, 1.0]).numpy()  # x ** 2
    array([0.  , 0.25, 1.  ], dtype=float32)
    """
    return _betainc(a, b, x)


@special_function(stable_form=_IN_DOMAIN)
def _betainc_slope(xp, a: TensorLike, b: TensorLike, x: TensorLike, *, by_b):
    return _part(xp, 1 + by_b, a, b, x)


@_betainc_slope.vjp("a")
def _(g):
    raise GradientLookupError("betainc_slope", "BetaincSlope", "a")


@_betainc_slope.vjp("b")
def _(g):
    raise GradientLookupError("betainc_slope", "BetaincSlope", "b")


@_betainc_slope.vjp("x")
def _(g, a, b, x, by_b):
    density = _beta_density(a, b, x)
    slope = _density_slope(a, b, x, density, by_b)
    return zero_safe_multiply(g, slope)


def _density_slope(a, b, x, density, by_b):
    part, at = (b, log1p(-x)) if by_b else (a, log(x))
    return zero_safe_multiply(density, at + digamma(a + b) - digamma(part))


@special_function(stable_form=_IN_DOMAIN)
def _beta_density(xp, a: TensorLike, b: TensorLike, x: TensorLike):
    """``x ** (a - 1) * (1 - x) ** (b - 1) / beta(a, b)``."""

    def kernel(xp, a, b, x):
        def compute(a, b, x):
            return _power_over_beta(xp, a, b, x, 1.0 - x) / x / (1.0 - x)

        ends = [
            xp.where(p > 1, 0.0, xp.where(p == 1, other, xp.inf))
            for p, other in ((a, b), (b, a))
        ]
        return _in_domain(xp, a, b, x, compute, *ends)

    return in_double(xp, kernel, a, b, x)


@_beta_density.vjp("a")
def _(g, a, b, x, out):
    return zero_safe_multiply(g, _density_slope(a, b, x, out, False))


@_beta_density.vjp("b")
def _(g, a, b, x, out):
    return zero_safe_multiply(g, _density_slope(a, b, x, out, True))


@_beta_density.vjp("x")
def _(g, a, b, x, out):
    y = 1.0 - x
    slopes = []
    for p, at, lower in ((a, x, (a - 1.0, b)), (b, y, (a, b - 1.0))):
        # At 0 and 1 this density may be 0 where that of a number less by 1 is not.
        large = greater(p, 1.0)
        below = _beta_density(*[where_p(large, n, o) for n, o in zip(lower, (a, b))], x)
        other = zero_safe_multiply(out, zero_safe_divide(p - 1.0, at))
        slopes.append(where_p(large, below * (a + b - 1.0), other))
    return zero_safe_multiply(g, slopes[0] - slopes[1])
