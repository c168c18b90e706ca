"""The gamma function and its kin: zeta, lgamma, digamma, polygamma, lbeta.

Kernels work in double precision and answer in the dtype of their input. Source:

    Abramowitz & Stegun, "Handbook of Mathematical Functions" (1964), chapters 6 and 23
"""

from __future__ import annotations

import math

import numpy as np

from tapewright.core.primitive import get_primitive
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import TensorLike

from .approximation import either, in_double, polynomial, special_function
from .elementwise import zero_safe_multiply

__all__ = ["digamma", "lbeta", "lgamma", "polygamma", "zeta"]


# ----------------------------------------------------- the zeta function of Hurwitz

_BERNOULLI = [  # B2, B4, ...
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798,
]  # fmt: skip
_SHIFT = 10


def _hurwitz(xp, s, q):
    """``sum of (q + k) ** -s`` for ``q > 0``: ten terms, then Euler and Maclaurin's rest.

    A&S 23.2.9, for the sum from ``q`` on.
    """
    total = xp.zeros_like(q) + 0.0 * s
    for k in range(_SHIFT):
        total = total + _inverse_power(xp, q + k, s)
    w = q + _SHIFT
    last = _inverse_power(xp, w, s)
    total = total + _inverse_power(xp, w, s - 1) / (s - 1.0) + 0.5 * last
    term = last * s / w
    for j, b in enumerate(_BERNOULLI, 1):
        total = total + term * (b / math.factorial(2 * j))
        term = term * ((s + (2 * j - 1)) * (s + 2 * j)) / (w * w)
    return total


def _inverse_power(xp, q, s):
    """``q ** -s``; by products if ``s`` is a Python int, which takes a tenth of the time."""
    if type(s) is not int:
        return xp.power(q, -s)
    factor, power = 1.0 / q, None
    while s:
        if s & 1:
            power = factor if power is None else power * factor
        factor, s = factor * factor, s >> 1
    return power


def _hurwitz_anywhere(xp, s, q):
    """`_hurwitz` with negative ``q`` too, for integers ``s`` above 1.

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
    """Hurwitz' zeta function: the sum of ``(q + k) ** -x`` over ``k = 0, 1, ...``.

    ``x`` has no gradient. NaN for ``x < 1``, and for ``q < 0`` unless ``x`` is an integer.

    >>> zeta(2.0, 1.0).numpy()  # pi ** 2 / 6
    np.float32(1.644934)
    """
    return in_double("zeta", xp, _zeta, x=x, q=q)


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


def _lgamma(xp, x):
    def reflected(x):  # A&S 6.1.17
        sine = xp.abs(xp.sin(math.pi * (x - xp.rint(x))))
        value = xp.log(math.pi / sine) - positive(1.0 - x)
        return xp.where(x == xp.floor(x), xp.inf, value)

    def positive(x):
        return either(xp, x >= 8.0, stirling, short, x)

    def stirling(x):  # A&S 6.1.41
        rest = polynomial(1.0 / (x * x), _STIRLING) / x
        return (x - 0.5) * (xp.log(x) - 1.0) + (rest + (_HALF_LOG_2_PI - 0.5))

    def short(x):
        return either(xp, x < 1.5, below_two, above_two, x)

    def below_two(x):  # gamma(x) = gamma(x + 1) / x, once or twice
        tiny = x < 0.5
        t, factor = xp.where(tiny, x, x - 1.0), xp.where(tiny, x * (x + 1.0), x)
        return t * polynomial(t, _ABOUT_2) - xp.log(factor)

    def above_two(x):  # gamma(x) = gamma(x - 1) * (x - 1), until 2.5
        product = xp.ones_like(x)
        for _ in range(6):
            large = x > 2.5
            x = xp.where(large, x - 1.0, x)
            product = xp.where(large, product * x, product)
        t = x - 2.0
        return t * polynomial(t, _ABOUT_2) + xp.log(product)

    return either(xp, x < 0, reflected, positive, x)


def _digamma(xp, x):
    def reflected(x):  # A&S 6.3.7
        value = positive(1.0 - x) - math.pi / xp.tan(math.pi * (x - xp.rint(x)))
        return xp.where(x == xp.floor(x), xp.nan, value)

    def positive(x):
        return either(xp, x >= _SHIFT, asymptotic, shifted, x)

    def asymptotic(x):  # A&S 6.3.18
        w = 1.0 / (x * x)
        return xp.log(x) - 0.5 / x + polynomial(w, _DIGAMMA) * w

    def shifted(x):  # A&S 6.3.6
        value = asymptotic(x + _SHIFT)
        for k in range(_SHIFT - 1, -1, -1):
            value = value - 1.0 / (x + k)
        return value

    return either(xp, x <= 0, reflected, positive, x)


@special_function(floating=True, stable_form=_OFF_THE_POLES)
def lgamma(xp, x: TensorLike):
    """``log(|gamma(x)|)``; infinite at 0, -1, -2, ...

    >>> lgamma([1.0, 5.0]).numpy()  # log(4!)
    array([0.       , 3.1780539], dtype=float32)
    """
    return in_double("lgamma", xp, _lgamma, x=x)


@lgamma.vjp("x")
def _(g, x):
    return zero_safe_multiply(g, digamma(x))


@special_function(floating=True, stable_form=_OFF_THE_POLES)
def digamma(xp, x: TensorLike):
    """The derivative of `lgamma`; NaN at its poles 0, -1, -2, ..."""
    return in_double("digamma", xp, _digamma, x=x)


@digamma.vjp("x")
def _(g, x):
    return zero_safe_multiply(g, _polygamma_of_order(x, a=1))


@special_function(floating=True)
def _polygamma_of_order(xp, x: TensorLike, *, a):
    def kernel(xp, x):
        factor = (-1) ** (a + 1) * float(math.factorial(a))
        return _hurwitz_anywhere(xp, a + 1, x) * factor

    return in_double("polygamma", xp, kernel if a else _digamma, x=x)


@_polygamma_of_order.vjp("x")
def _(g, x, a):
    return zero_safe_multiply(g, _polygamma_of_order(x, a=a + 1))


_FACTORIALS = [float(math.factorial(n)) for n in range(171)]


@special_function(stable_form=_OFF_THE_POLES, no_gradient=("a",))
def _polygamma(xp, a: TensorLike, x: TensorLike):
    def kernel(xp, a, x):  # A&S 6.4.10
        valid = (a == xp.floor(a)) & (a >= 0)
        order = xp.where(valid, a, 0.0)
        at = xp.minimum(order, len(_FACTORIALS) - 1.0).astype(xp.int64)
        factor = xp.asarray(_FACTORIALS)[at] * xp.where(a % 2 == 0, -1.0, 1.0)
        value = factor * _zeta(xp, order + 1.0, x)
        value = xp.where(a == 0, _digamma(xp, x), value)
        return xp.where(valid, value, xp.nan)

    return in_double("polygamma", xp, kernel, a=a, x=x)


@_polygamma.vjp("x")
def _(g, a, x):
    return zero_safe_multiply(g, _polygamma(a + 1.0, x))


def polygamma(a: TensorLike, x: TensorLike, name: str | None = None) -> Tensor:
    """The ``a``-th derivative of `digamma`, of order 0, 1, ...; ``a`` has no gradient.

    >>> polygamma(1.0, 1.0).numpy()  # pi ** 2 / 6
    np.float32(1.644934)
    """
    if type(a) in (int, float) and 0 <= a <= 170 and a == int(a):
        return _polygamma_of_order(x, a=int(a))
    if type(x) in (int, float):
        x = convert_to_tensor(x, dtype_hint=convert_to_tensor(a).dtype)
    return _polygamma(a, convert_to_tensor(x))


def lbeta(x: TensorLike, name: str | None = None) -> Tensor:
    """The logarithm of Beta along the last axis: ``sum(lgamma(x)) - lgamma(sum(x))``.

    >>> lbeta([1.0, 2.0]).numpy()  # log(1 / 2)
    np.float32(-0.6931472)
    """
    reduce_sum = get_primitive("reduce_sum").entry  # of a family that comes later
    return reduce_sum(lgamma(x), -1) - lgamma(reduce_sum(x, -1))
