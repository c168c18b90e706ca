"""The incomplete beta function, and its derivatives.

Kernels compute in double precision and return the dtype of their input. Source:

    DLMF, "Digital Library of Mathematical Functions", https://dlmf.nist.gov, chapter 8
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from tapewright.core.errors import GradientLookupError
from tapewright.core.tensor import Tensor
from tapewright.core.typing import TensorLike

from .approximation import either, in_double, special_function
from .comparison import greater, where_p
from .elementwise import log, log1p, zero_safe_divide, zero_safe_multiply
from .gamma import digamma, digamma_kernel, digamma_rest, excess, stirling_rest

__all__ = ["betainc"]

_LEAST = 10.0  # from here on Stirling's series is exact
_LARGE = 1000.0


def _incomplete_beta(xp, index, a, b, x):
    """Compute the value, or the slope by ``a`` (``index`` 1) or ``b`` (2), in the domain."""
    # Where both are very large or small only their ratio counts: keep sums and quotients
    # of them in the range of normal numbers.
    scale = xp.where(xp.minimum(a, b) > 1e290, 2.0**-40, 1.0)
    scale = xp.where(xp.maximum(a, b) < 1e-270, 2.0**120, scale)
    a, b = xp.maximum(a * scale, 2.3e-308), xp.maximum(b * scale, 2.3e-308)
    turned = x * (a + b + 2.0) > a + 1.0  # where the fraction of the rest converges
    y = 1.0 - x
    a, b = xp.where(turned, b, a), xp.where(turned, a, b)
    x, y = xp.where(turned, y, x), xp.where(turned, x, y)

    def by(method):
        def compute(a, b, x, y, turned):
            value, slopes = method(xp, a, b, x, y, index > 0)
            if index == 0:
                return xp.where(turned, 1.0 - value, value)
            slope = xp.where(turned, -slopes[2 - index], slopes[index - 1])
            return value * slope

        return compute

    large = xp.minimum(a, b) > _LARGE
    return either(xp, large, by(_by_quadrature), by(_by_fraction), a, b, x, y, turned)


def _by_fraction(xp, a, b, x, y, has_slopes):
    """Compute DLMF 8.17.22, from its end, and the derivatives of the result's logarithm.

    Terms grow in number with the square root of ``min(a, b)``; 72 are enough for
    `_LARGE`.
    """
    largest = float(xp.max(xp.maximum(a, b))) if a.size else 0.0
    rest = rest_a = rest_b = xp.zeros_like(x)
    for m in range(int(min(40 + 4.0 * math.sqrt(largest), 72)), -1, -1):
        # Quotients first: a product of two large parameters may overflow.
        for even in (True, False):
            if even:
                k = m + 1
                near, far = a + (2 * k - 1), a + 2 * k
                d = (k / near) * ((b - k) * x / far)
            else:
                near, far = a + 2 * m, a + (2 * m + 1)
                d = -((a + m) / near) * ((a + b + m) * x / far)
            under = 1.0 + rest
            if has_slopes:
                if even:
                    d_a = -d * (1.0 / near + 1.0 / far)
                    d_b = (k / near) * (x / far)
                else:
                    d_a = -((a + m) / near + (a + b + m) / near) * (x / far)
                    d_a = d_a - d * (1.0 / near + 1.0 / far)
                    d_b = -((a + m) / near) * (x / far)
                rest_a = (d_a - d * rest_a / under) / under
                rest_b = (d_b - d * rest_b / under) / under
            rest = d / under
    under = 1.0 + rest
    value = _power_over_beta(xp, a, b, x, y) / (a * under)
    if not has_slopes:
        return value, None
    both = digamma_kernel(xp, a + b)
    by_a = xp.log(x) + both - digamma_kernel(xp, a) - 1.0 / a - rest_a / under
    by_b = xp.log(y) + both - digamma_kernel(xp, b) - rest_b / under
    return value, (by_a, by_b)


@cache
def _nodes():
    """Return nodes and weights of Gauss-Legendre quadrature from 0 to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(48)
    return [*zip((0.5 * (nodes + 1.0)).tolist(), (0.5 * weights).tolist(), strict=True)]


def _by_quadrature(xp, a, b, x, y, has_slopes):
    """Integrate below ``x``, with ``t = x * exp(-z)``, for large ``a`` and ``b``.

    Its logarithm is concave in ``z``: Newton's method finds the end where it has fallen
    by 40, and nodes between 0 and this end work for parameters of any size.
    """
    ratio = x / y
    shift = x * b - y * a
    slope = (x - shift) / y  # a - (b - 1) * ratio, where x is near the mean

    def fall(z):
        """Return minus the logarithm, without cancellation; ``log(1 - t) - log(1 - x)``."""
        step = xp.expm1(-z)
        grown = -ratio * step
        more = ratio * excess(xp, step) + excess(xp, grown)
        return slope * z + (b - 1.0) * more, grown

    curvature = (b - 1.0) * ratio * (1.0 + ratio)
    end = 80.0 / (slope + xp.sqrt(slope * slope + 80.0 * curvature))
    for _ in range(3):
        fallen, grown = fall(end)
        steepness = slope - curvature * xp.expm1(-end) / (1.0 + grown)
        end = end + (40.0 - fallen) / steepness
    total = sum_z = sum_log = xp.zeros_like(x)
    for node, weight in _nodes():
        z = end * node
        fallen, grown = fall(z)
        part = weight * xp.exp(-fallen)
        total = total + part
        if has_slopes:
            sum_z = sum_z + part * z
            sum_log = sum_log + part * xp.log1p(grown)
    value = _power_over_beta(xp, a, b, x, y) * (end * total / y)
    if not has_slopes:
        return value, None
    both = digamma_rest(a + b)
    by_a = xp.log1p(shift / a) + both - digamma_rest(a) - sum_z / total
    by_b = xp.log1p(-shift / b) + both - digamma_rest(b) + sum_log / total
    return value, (by_a, by_b)


def _power_over_beta(xp, a, b, x, y):
    """Compute ``x ** a * y ** b / beta(a, b)``, where ``x + y`` is 1.

    Stirling's series computes the beta function of numbers from 10 on. Smaller ones are
    raised by 10, with DLMF 5.12.1 and the recurrence of the gamma function; each of its
    steps includes a factor of the power of ``total / large``, so that neither overflows
    or underflows.
    """
    smalls = [p < _LEAST for p in (a, b)]
    raised = [xp.where(small, p + _LEAST, p) for p, small in zip((a, b), smalls)]
    last, total, factor = a + b, raised[0] + raised[1], xp.ones_like(x)
    for p, small, large in zip((a, b), smalls, raised):
        for k in range(int(_LEAST)):
            step = (p + k) / large * (total / (last + k))
            factor = xp.where(small, factor * step, factor)
        last = xp.where(small, last + _LEAST, last)
    shift = x * raised[1] - y * raised[0]
    exponent = stirling_rest(total)
    for p, large, base, more in zip((a, b), raised, (x, y), (shift, -shift)):
        exponent += _log_of_power(xp, p, large, base, more, total / large)
        exponent -= stirling_rest(large)
    a, b = raised
    return factor * xp.sqrt(a / total * b / (2.0 * math.pi)) * xp.exp(exponent)


def _log_of_power(xp, p, large, base, shift, ratio):
    """Compute ``p * log(base * ratio) - shift``, where the shifts of both cancel."""

    def near(p, large, base, shift, ratio):
        return -large * excess(xp, shift / large)

    def far(p, large, base, shift, ratio):
        return p * (xp.log(base) + xp.log(ratio)) - shift

    small = (p == large) & (shift > -0.6 * large) & (shift < 1.5 * large)
    return either(xp, small, near, far, p, large, base, shift, ratio)


def _in_domain(xp, a, b, x, compute, at_0, at_1):
    """Apply ``compute(a, b, x)`` inside the domain, use the limits at its ends, else NaN."""
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
            return _incomplete_beta(xp, index, a, b, x)

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
    """Regularized incomplete beta function ``I(a, b, x)``.

    The integral of ``t ** (a - 1) * (1 - t) ** (b - 1)`` from 0 to ``x``, divided by
    the integral from 0 to 1: the distribution function of the beta distribution. The
    result is NaN unless ``a`` and ``b`` are positive and ``x`` is from 0 to 1. It has
    derivatives of every order by ``x``, and first derivatives by ``a`` and ``b``, which
    TensorFlow lacks.

    Args:
        a: First parameter, positive.
        b: Second parameter, positive; broadcasts with ``a``.
        x: Upper limit of the integral, from 0 to 1; broadcasts with ``a``.

    Raises:
        TypeError: If an input is not real and floating.
        LookupError: If a second derivative by ``a`` or ``b`` is requested.

    Example:
        >>> tw.math.betainc(2.0, 1.0, [0.0, 0.5, 1.0]).numpy()  # x ** 2
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
    """Compute ``x ** (a - 1) * (1 - x) ** (b - 1) / beta(a, b)``."""

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
