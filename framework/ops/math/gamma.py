"""The gamma function and relatives: zeta, lgamma, digamma, polygamma, lbeta, igamma.

Kernels compute in double precision and return the dtype of their input. Sources:

    Abramowitz & Stegun, "Handbook of Mathematical Functions" (1964), chapters 6 and 23
    DLMF, "Digital Library of Mathematical Functions", https://dlmf.nist.gov, chapter 8
"""

from __future__ import annotations

import math
from functools import cache, partial

import numpy as np

from tapewright.core.errors import GradientLookupError
from tapewright.core.primitive import get_primitive
from tapewright.core.rules import check_at_least, check_attributes
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import TensorLike

from .approximation import either, in_double, polynomial, special_function
from .comparison import greater, less, logical_and, where_p
from .elementwise import log, zero_safe_divide, zero_safe_multiply
from .special import normal_tail

__all__ = ["digamma", "igamma", "igammac", "lbeta", "lgamma", "polygamma", "zeta"]


# ----------------------------------------------------- the zeta function of Hurwitz

_BERNOULLI = [  # B2, B4, ...
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798,
]  # fmt: skip
_SHIFT = 10


def _hurwitz(xp, s, q):
    """Compute ``sum of (q + k) ** -s`` for ``q > 0``: ten terms, then Euler-Maclaurin.

    A&S 23.2.9, for the sum from ``q`` on.
    """
    total = xp.zeros_like(q) + 0.0 * s
    for k in range(_SHIFT):
        total = total + _inverse_power(xp, q + k, s)
    w = q + _SHIFT
    last = _inverse_power(xp, w, s)
    total = total + _inverse_power(xp, w, s - 1) / (s - 1.0) + 0.5 * last
    s = min(s, 1e4) if type(s) is int else xp.minimum(s, 1e4)  # above, `last` is 0
    term = last * s / w
    for j, b in enumerate(_BERNOULLI, 1):
        total = total + term * (b / math.factorial(2 * j))
        term = term * ((s + (2 * j - 1)) * (s + 2 * j)) / (w * w)
    return total


def _hurwitz_ratio(xp, s, q):
    """Compute `_hurwitz` over its first term ``q ** -s``, which overflows for large ``s``."""

    def power(k):
        return xp.exp(-s * xp.log1p(k / q))

    total = sum([power(k) for k in range(1, _SHIFT)], xp.ones_like(q))
    w = q + _SHIFT
    last, terms = power(_SHIFT), w / (s - 1.0) + 0.5
    term = xp.minimum(s / w, 100.0)  # where it is large, `last` is 0
    for j, b in enumerate(_BERNOULLI, 1):
        terms = terms + term * (b / math.factorial(2 * j))
        term = term * xp.minimum((s + (2 * j - 1)) / w, 100.0)
        term = term * xp.minimum((s + 2 * j) / w, 100.0)
    return total + last * terms


def _inverse_power(xp, q, s):
    """Compute ``q ** -s``; by products if ``s`` is a Python int, in a tenth of the time."""
    if type(s) is not int:
        return xp.power(q, -s)
    factor, power = 1.0 / q, None
    while s:
        if s & 1:
            power = factor if power is None else power * factor
        factor, s = factor * factor, s >> 1
    return power


def _hurwitz_anywhere(xp, s, q):
    """Compute `_hurwitz` with negative ``q`` too, for integers ``s`` above 1.

    At 0, -1, ... it is infinite, or NaN where the pole has two signs.
    """

    def positive(q, s=s):
        return _hurwitz(xp, s, q)

    def negative(q, s=s):
        # the terms with q + k < 0, from the last of them on, are a difference of sums
        below = xp.ceil(q) - q
        passed = _hurwitz(xp, s, below) - _hurwitz(xp, s, 1.0 - q)
        return _hurwitz(xp, s, q - xp.floor(q)) + passed * (1 - 2 * (s % 2))

    inputs = (q,) if type(s) is int else (q, s)
    return either(xp, q <= 0, negative, positive, *inputs)


def _zeta(xp, s, q):
    value = _hurwitz_anywhere(xp, s, q)
    value = xp.where((q <= 0) & (s != xp.floor(s)), xp.nan, value)
    return xp.where(s > 1, value, xp.where(s == 1, xp.inf, xp.nan))


@special_function(stable_form="x above 1 and positive q", no_gradient=("x",))
def zeta(xp, x: TensorLike, q: TensorLike):
    """Hurwitz zeta function: the sum of ``(q + k) ** -x`` over ``k = 0, 1, ...``.

    The result is NaN for ``x < 1``, and for ``q < 0`` unless ``x`` is an integer.

    Args:
        x: Exponent, a floating tensor; it gets no gradient.
        q: Offset, a floating tensor that broadcasts with ``x``.

    Example:
        >>> tw.zeta(2.0, 1.0).numpy()  # pi ** 2 / 6
        np.float32(1.644934)
    """
    return in_double(xp, _zeta, x, q)


@zeta.vjp("q")
def _(g, x, q):
    return -zero_safe_multiply(g, x * zeta(x + 1.0, q))


# ------------------------------------------------------------------- gamma functions

_OFF_THE_POLES = "positive x: the poles are at 0, -1, -2, ..."
_STIRLING = [b / (2 * k * (2 * k - 1)) for k, b in enumerate(_BERNOULLI, 1)][::-1]
_DIGAMMA = [-b / (2 * k) for k, b in enumerate(_BERNOULLI, 1)][::-1]
_HALF_LOG_2_PI = 0.5 * math.log(2.0 * math.pi)

# log(gamma(2 + t)) / t for |t| <= 0.5, A&S 6.1.33; zeta(k) - 1 is zeta(k, 2)
_EULER = 0.57721566490153286061
_ABOUT_2 = [
    (-1) ** k * float(_hurwitz(np, k, np.float64(2.0))) / k for k in range(26, 1, -1)
]
_ABOUT_2.append(1.0 - _EULER)


def stirling_rest(x):
    """Compute ``log(gamma(x)) - ((x - 1 / 2) * log(x) - x + log(2 pi) / 2)``, A&S 6.1.41."""
    return polynomial(1.0 / (x * x), _STIRLING) / x


def _lgamma(xp, x):
    def reflected(x):  # A&S 6.1.17
        sine = xp.abs(xp.sin(math.pi * (x - xp.rint(x))))
        value = xp.log(math.pi / sine) - positive(1.0 - x)
        return xp.where(x == xp.floor(x), xp.inf, value)

    def positive(x):
        return either(xp, x >= 8.0, stirling, short, x)

    def stirling(x):  # A&S 6.1.41
        rest = stirling_rest(x) + (_HALF_LOG_2_PI - 0.5)
        return (x - 0.5) * (xp.log(x) - 1.0) + rest

    def short(x):
        return either(xp, x < 1.5, below_two, above_two, x)

    def below_two(x):  # gamma(x) = gamma(x + 1) / x, once or twice
        tiny = x < 0.5
        t, factor = xp.where(tiny, x, x - 1.0), xp.where(tiny, x * (x + 1.0), x)
        return t * polynomial(t, _ABOUT_2) - xp.log(factor)

    def above_two(x):
        x, product = _stepped_down(xp, x - 1.0, 6)
        t = x - 1.0
        return t * polynomial(t, _ABOUT_2) + xp.log(product)

    return either(xp, x < 0, reflected, positive, x)


def _stepped_down(xp, x, steps):
    """Return ``y``, at most 1.5, and a product: ``gamma(x + 1) = gamma(y + 1) * product``."""
    product = xp.ones_like(x)
    for _ in range(steps):
        large = x > 1.5
        product = xp.where(large, product * x, product)
        x = xp.where(large, x - 1.0, x)
    return x, product


def digamma_rest(x):
    """Compute ``digamma(x) - log(x)`` for ``x`` from 10 on, A&S 6.3.18."""
    w = 1.0 / (x * x)
    return polynomial(w, _DIGAMMA) * w - 0.5 / x


def digamma_kernel(xp, x):
    def reflected(x):  # A&S 6.3.7
        value = positive(1.0 - x) - math.pi / xp.tan(math.pi * (x - xp.rint(x)))
        return xp.where(x == xp.floor(x), xp.nan, value)

    def positive(x):
        return either(xp, x >= _SHIFT, asymptotic, shifted, x)

    def asymptotic(x):
        return xp.log(x) + digamma_rest(x)

    def shifted(x):  # A&S 6.3.6
        value = asymptotic(x + _SHIFT)
        for k in range(_SHIFT - 1, -1, -1):
            value = value - 1.0 / (x + k)
        return value

    return either(xp, x <= 0, reflected, positive, x)


@special_function(stable_form=_OFF_THE_POLES)
def lgamma(xp, x: TensorLike):
    """Element-wise logarithm of the absolute gamma function: ``log(|gamma(x)|)``.

    It is infinite at 0, -1, -2, ...

    Args:
        x: Real floating tensor.

    Example:
        >>> tw.lgamma([1.0, 5.0]).numpy()  # log(4!)
        array([0.       , 3.1780539], dtype=float32)
    """
    return in_double(xp, _lgamma, x)


@lgamma.vjp("x")
def _(g, x):
    return zero_safe_multiply(g, digamma(x))


@special_function(stable_form=_OFF_THE_POLES)
def digamma(xp, x: TensorLike):
    """Element-wise digamma function: the derivative of `lgamma`.

    It is NaN at its poles 0, -1, -2, ...

    Args:
        x: Real floating tensor.

    Example:
        >>> tw.math.digamma([1.0, 2.0]).numpy().round(4)
        array([-0.5772,  0.4228], dtype=float32)
    """
    return in_double(xp, digamma_kernel, x)


@digamma.vjp("x")
def _(g, x):
    return zero_safe_multiply(g, _polygamma_of_order(x, a=1))


@special_function()
def _polygamma_of_order(xp, x: TensorLike, *, a):
    def kernel(xp, x):
        factor = (-1) ** (a + 1) * float(math.factorial(a))
        return _hurwitz_anywhere(xp, a + 1, x) * factor

    return in_double(xp, kernel if a else digamma_kernel, x)


def _check_polygamma(a):
    check_at_least("polygamma", 0, a=a)


check_attributes(_polygamma_of_order, _check_polygamma)


@_polygamma_of_order.vjp("x")
def _(g, x, a):
    return zero_safe_multiply(g, _polygamma_of_order(x, a=a + 1))


_FACTORIALS = [float(math.factorial(n)) for n in range(171)] + [math.inf]
_LOW_ORDER = 15  # up to here, powers become 0 only where the result does


@special_function(stable_form=_OFF_THE_POLES, no_gradient=("a",))
def _polygamma(xp, a: TensorLike, x: TensorLike):
    def direct(a, x):  # A&S 6.4.10
        at = xp.minimum(a, len(_FACTORIALS) - 1.0).astype(xp.int64)
        return xp.asarray(_FACTORIALS)[at] * _zeta(xp, a + 1.0, x)

    def by_logarithm(a, x):
        exponent = _lgamma(xp, a + 1.0) - (a + 1.0) * xp.log(x)
        return xp.exp(exponent) * _hurwitz_ratio(xp, a + 1.0, x)

    def kernel(xp, a, x):
        valid = (a == xp.floor(a)) & (a >= 0)
        order = xp.where(valid, a, 0.0)
        # Here the factorial overflows, or the sum of powers is 0.
        size = (order + 1.0) * xp.log(xp.maximum(x, 1.0))
        high = (x > 0) & ((order > 60) | (size > 600))
        value = either(xp, high, by_logarithm, direct, order, x)
        value = value * xp.where(a % 2 == 0, -1.0, 1.0)
        value = xp.where(a == 0, digamma_kernel(xp, x), value)
        return xp.where(valid, value, xp.nan)

    return in_double(xp, kernel, a, x)


@_polygamma.vjp("x")
def _(g, a, x):
    return zero_safe_multiply(g, _polygamma(a + 1.0, x))


def polygamma(a: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """Polygamma function: the derivative of order ``a`` of `digamma`.

    Other orders result in NaN.

    Args:
        a: Order of the derivative: 0, 1, ..., a floating tensor; it gets no gradient.
        x: Floating tensor that broadcasts with ``a``.

    Example:
        >>> tw.polygamma(1.0, 1.0).numpy()  # pi ** 2 / 6
        np.float32(1.644934)
    """
    if type(a) in (int, float) and 0 <= a <= _LOW_ORDER and a == int(a):
        return _polygamma_of_order(x, a=int(a))
    if type(x) in (int, float):
        x = convert_to_tensor(x, dtype_hint=convert_to_tensor(a).dtype)
    return _polygamma(a, convert_to_tensor(x))


def lbeta(x: TensorLike, name: str | None = None) -> Tensor:
    """Logarithm of the beta function along the last axis.

    It is ``sum(lgamma(x)) - lgamma(sum(x))``.

    Args:
        x: Real floating tensor.

    Shapes:
        ``[..., n]`` to ``[...]``.

    Example:
        >>> tw.lbeta([1.0, 2.0]).numpy()  # log(1 / 2)
        np.float32(-0.6931472)
    """
    reduce_sum = get_primitive("reduce_sum").entry  # of a family that comes later
    return reduce_sum(lgamma(x), -1) - lgamma(reduce_sum(x, -1))


# -------------------------------------------------------- incomplete gamma functions


def _incomplete_gamma(xp, a, x, upper):
    """Compute P(a, x), or Q = 1 - P.

    By Temme's expansion where ``a`` is large and ``x`` near it, else P by its series or
    Q by a continued fraction.
    """

    def by_series(a, x):  # DLMF 8.11.4
        total = xp.ones_like(x)
        for n in range(80, 0, -1):
            total = total * (x / (a + n)) + 1.0
        p = _power_over_gamma(xp, a, x) * total
        if not upper:
            return p
        return either(xp, (p > 0.5) & (x < 1.1), by_difference, rest_of, a, x, p)

    def rest_of(a, x, p):
        return 1.0 - p

    def by_difference(a, x, p):  # DLMF 8.7.3, where 1 - P loses digits
        term, total = a, xp.zeros_like(x)
        for n in range(1, 20):
            term = term * (x / -n)
            total = total + term / (a + n)
        exponent = a * xp.log(x) - _log_gamma_of_next(xp, a)
        return -xp.expm1(exponent) - xp.exp(exponent) * total

    def by_fraction(a, x):  # DLMF 8.9.2
        rest = xp.zeros_like(x)
        for n in range(80, 0, -1):
            rest = n * (a - n) / (x - a + (2 * n + 1) + rest)
        q = _power_over_gamma(xp, a, x) * (a / (x - a + 1.0 + rest))
        return q if upper else 1.0 - q

    def by_temme(a, x):  # DLMF 8.12.3 f., 8.12.7
        _, eta, tail, decay = _temme_variables(xp, a, x)
        total = 0.0
        for c, _ in _temme_series():
            total = total / a + polynomial(eta, c)
        smaller = tail + xp.where(x < a, -total, total) * decay
        return xp.where((x < a) != upper, smaller, 1.0 - smaller)

    def anywhere(a, x):
        # from this x on the fraction has converged, or below it Q has kept its digits
        limit = xp.maximum(a, 1.1 if upper else 5.0)
        return _in_regions(xp, a, x, limit, by_temme, by_series, by_fraction)

    beyond = (x == xp.inf) if upper else (x == xp.inf) & (a < xp.inf)  # as TensorFlow
    value = _in_domain(xp, a, x, anywhere, xp.where(beyond != upper, 1.0, 0.0))
    return value if upper else xp.where(x == 0, 0.0, value)


def _slope_by_a(xp, a, x):
    """Compute the derivative of P(a, x) by ``a``, from the same series and fraction."""

    def by_series(a, x):
        total, slope = xp.ones_like(x), xp.zeros_like(x)
        for n in range(80, 0, -1):
            ratio = x / (a + n)
            slope = ratio * (slope - total / (a + n))
            total = ratio * total + 1.0
        slope = slope + total * (xp.log(x) - digamma_kernel(xp, a + 1.0))
        return _power_over_gamma(xp, a, x) * slope

    def by_fraction(a, x):
        rest, slope = xp.zeros_like(x), xp.zeros_like(x)
        for n in range(80, 0, -1):
            below = x - a + (2 * n + 1) + rest
            rest = n * (a - n) / below
            slope = (n - rest * (slope - 1.0)) / below
        below = x - a + 1.0 + rest
        slope = xp.log(x) - digamma_kernel(xp, a) + (1.0 - slope) / below
        return -_power_over_gamma(xp, a, x) * slope * (a / below)

    def by_temme(a, x):
        shift, eta, _, decay = _temme_variables(xp, a, x)
        middle, log_ratio = eta == 0, xp.log1p(shift)
        divisor = xp.where(middle, 1.0, eta)
        eta_slope = xp.where(middle, 1.0, shift / divisor) / -a
        total, slope = 0.0, 0.0
        for c, c_slope in _temme_series():
            by_eta = polynomial(eta, c_slope) * eta_slope
            slope = (slope - total / a) / a + by_eta
            total = total / a + polynomial(eta, c)
        slope = slope + total * (log_ratio - 0.5 / a)
        return -decay * (slope + xp.where(middle, 1.0, log_ratio / divisor))

    def anywhere(a, x):
        limit = xp.maximum(a, 1.1)
        return _in_regions(xp, a, x, limit, by_temme, by_series, by_fraction)

    return _in_domain(xp, a, x, anywhere, 0.0)


def _in_domain(xp, a, x, compute, edge):
    """Compute positive numbers, ``edge`` where one is 0 or infinite, else NaN."""
    inside = (a > 0) & (x > 0) & (a < xp.inf) & (x < xp.inf)
    value = compute(xp.where(inside, a, 1.0), xp.where(inside, x, 1.0))
    return xp.where(inside, value, xp.where((a > 0) & (x >= 0), edge, xp.nan))


def _in_regions(xp, a, x, limit, by_temme, by_series, by_fraction):
    """Compute each where it converges: near a large ``a``, below a limit of ``x``, above."""

    def apart(a, x, limit):
        return either(xp, x < limit, by_series, by_fraction, a, x)

    near = (a >= 20.0) & (xp.abs(x - a) <= 0.4 * a)
    return either(xp, near, lambda a, x, _: by_temme(a, x), apart, a, x, limit)


def _temme_variables(xp, a, x):
    """Return ``x / a - 1``; eta; the tail of the normal distribution; the series' factor."""
    shift = (x - a) / a
    root = xp.sqrt(2.0 * excess(xp, shift))
    tail, decay = normal_tail(xp, root * xp.sqrt(a))
    return shift, xp.sign(shift) * root, tail, decay / xp.sqrt(2.0 * math.pi * a)


@cache
def _temme_series():
    """Return coefficients of ``eta ** n / a ** k``, and of its slope by eta: DLMF 8.12.12.

    For each ``k``, from the highest powers on.
    """
    orders, count = 12, 22
    from fractions import Fraction  # a millisecond that an import should not cost

    alpha = [Fraction(0), Fraction(1)]  # x / a - 1 in powers of eta
    for n in range(2, count + 2 * orders + 2):
        rest = sum([j * alpha[j] * alpha[n + 1 - j] for j in range(2, n)])
        alpha.append((alpha[n - 1] - rest) / (n + 1))
    first = [(n + 2) * c - (n == 0) for n, c in enumerate(alpha[2:])]
    rows = [first]
    for k in range(1, orders):
        stirling = (-1) ** k * math.prod(range(1, 2 * k + 2, 2)) * alpha[2 * k + 1]
        before = enumerate(rows[-1][2:], 2)
        rows.append([stirling * c + n * d for c, (n, d) in zip(first, before)])
    pairs = []
    for k, row in enumerate(rows):
        row = row[: count - k]
        slopes = [n * c for n, c in enumerate(row)][1:]
        pairs.append(([float(c) for c in row[::-1]], [float(c) for c in slopes[::-1]]))
    return pairs[::-1]


def _power_over_gamma(xp, a, x, over=None):
    """Compute ``x ** a * exp(-x) / gamma(a + 1)``, divided by ``over``."""

    def small(a, x, over):
        y, product = _stepped_down(xp, a, 9)
        half = root_of_power(a, x)
        return half / over * half / (product * xp.exp(_log_gamma_of_next(xp, y)))

    def large(a, x, over):  # gamma by Stirling's series
        rest = xp.exp(stirling_rest(a))
        decay = either(xp, a < 100.0, by_powers, by_excess, a, x)
        return decay / over / (xp.sqrt(2.0 * math.pi * a) * rest)

    def by_powers(a, x):
        half = root_of_power(a, x)
        return half * (xp.exp(a) * xp.power(a, -a)) * half

    def root_of_power(a, x):  # of x ** a * exp(-x), which may overflow on the way
        x = xp.minimum(x, 1e4)
        return xp.power(x, 0.5 * a) * xp.exp(-0.5 * x)

    def by_excess(a, x):
        return xp.exp(-a * either(xp, (x < 2.5 * a) & (x > 0.4 * a), near, far, a, x))

    def near(a, x):
        return excess(xp, (x - a) / a)

    def far(a, x):
        return (x - a) / a - xp.log(x / a)

    return either(
        xp, a < 10.0, small, large, a, x, xp.ones_like(x) if over is None else over
    )


_ARTANH = [1.0 / (2 * k + 3) for k in range(24)][::-1]


def excess(xp, shift):
    """Compute ``shift - log(1 + shift)``, exact relative to its size between -0.6 and 1.5."""
    half = shift / (shift + 2.0)  # the logarithm is twice its artanh
    square = half * half
    return half * (shift - 2.0 * square * polynomial(square, _ARTANH))


def _log_gamma_of_next(xp, x):
    """Compute ``log(gamma(x + 1))`` for ``x`` from 0 to 1.5, relatively exact near 0."""
    tiny = x < 0.5
    t = xp.where(tiny, x, x - 1.0)
    return t * polynomial(t, _ABOUT_2) - xp.where(tiny, xp.log1p(x), 0.0)


_IN_DOMAIN = "positive a, and x that is not negative"


@special_function(zero_when=[{"x"}, {"a", "x"}], stable_form=_IN_DOMAIN)
def igamma(xp, a: TensorLike, x: TensorLike):
    """Regularized lower incomplete gamma function P(a, x).

    The integral of ``t ** (a - 1) * exp(-t)`` from 0 to ``x``, divided by ``gamma(a)``:
    the distribution function of the gamma distribution. It is exact to a few units in
    the last place, in its tail to about ``1e-15 * |log(P)|``; 0 where ``x`` is 0, else
    NaN where ``a`` is not positive or ``x`` is negative. It has derivatives of every
    order by ``x``, and the first by ``a``.

    Args:
        a: Parameter, positive.
        x: Upper limit of the integral, not negative; broadcasts with ``a``.

    Raises:
        TypeError: If an input is not real and floating.
        LookupError: If a second derivative by ``a`` is requested.

    References:
        Temme, "The asymptotic expansion of the incomplete gamma functions" (1979).

    Example:
        >>> tw.igamma(2.0, [0.0, 1.0, 5.0]).numpy()  # 1 - (1 + x) * exp(-x)
        array([0.        , 0.26424113, 0.9595723 ], dtype=float32)
    """
    return in_double(xp, partial(_incomplete_gamma, upper=False), a, x)


@igamma.vjp("a")
def _(g, a, x):
    return zero_safe_multiply(g, _igamma_slope(a, x))


@igamma.vjp("x")
def _(g, a, x):
    return zero_safe_multiply(g, _gamma_density(a, x))


@special_function(stable_form=_IN_DOMAIN)
def igammac(xp, a: TensorLike, x: TensorLike):
    """Regularized upper incomplete gamma function: ``1 - igamma(a, x)``.

    It is exact to a few units in the last place, also where it is tiny; NaN where ``a``
    is not positive or ``x`` is negative.

    Args:
        a: Parameter, positive.
        x: Lower limit of the integral, not negative; broadcasts with ``a``.

    Raises:
        TypeError: If an input is not real and floating.
        LookupError: If a second derivative by ``a`` is requested.

    Example:
        >>> tw.igammac(2.0, [0.0, 1.0, 5.0]).numpy()  # (1 + x) * exp(-x)
        array([1.        , 0.7357589 , 0.04042768], dtype=float32)
    """
    return in_double(xp, partial(_incomplete_gamma, upper=True), a, x)


@igammac.vjp("a")
def _(g, a, x):
    return -zero_safe_multiply(g, _igamma_slope(a, x))


@igammac.vjp("x")
def _(g, a, x):
    return -zero_safe_multiply(g, _gamma_density(a, x))


@special_function(type_name="IgammaGradA", stable_form=_IN_DOMAIN)
def _igamma_slope(xp, a: TensorLike, x: TensorLike):
    return in_double(xp, _slope_by_a, a, x)


@_igamma_slope.vjp("a")
def _(g):
    raise GradientLookupError("igamma_slope", "IgammaGradA", "a")


@_igamma_slope.vjp("x")
def _(g, a, x):
    return zero_safe_multiply(g, _density_slope(a, x, _gamma_density(a, x)))


def _density_slope(a, x, density):
    return zero_safe_multiply(density, log(x) - digamma(a))


@special_function(stable_form=_IN_DOMAIN)
def _gamma_density(xp, a: TensorLike, x: TensorLike):
    """Compute ``x ** (a - 1) * exp(-x) / gamma(a)``."""

    def kernel(xp, a, x):
        def anywhere(a, x):
            return a * _power_over_gamma(xp, a, x, x)

        start = xp.where(a > 1, 0.0, xp.where(a == 1, 1.0, xp.inf))
        return _in_domain(xp, a, x, anywhere, xp.where(x == 0, start, 0.0))

    return in_double(xp, kernel, a, x)


@_gamma_density.vjp("a")
def _(g, a, x, out):
    return zero_safe_multiply(g, _density_slope(a, x, out))


@_gamma_density.vjp("x")
def _(g, a, x, out):
    # The density of a - 1 less this one: (a - 1) / x times this, but for small x, where
    # this may be 0 beside it.
    near = logical_and(greater(a, 1.0), less(x, 1.0))
    lower = _gamma_density(where_p(near, a - 1.0, a), x)
    factor = zero_safe_divide(a - 1.0, x) - 1.0
    slope = where_p(near, lower - out, zero_safe_multiply(out, factor))
    return zero_safe_multiply(g, slope)
