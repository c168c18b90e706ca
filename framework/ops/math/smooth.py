"""Smooth functions whose plain formulas have a corner, a pole or cancellation.

Each is a separate op, with derivatives that keep their digits where derivatives of the
formula lose them: `logaddexp` at equal entries, `sinc` and `tanh_shrink` near 0,
`log_cosh` at both ends.
"""

from __future__ import annotations

import math
from functools import cache, partial

from tapewright.core.rules import elementwise
from tapewright.core.typing import TensorLike

from ..array.conversion import cast
from ..nn.activation import sigmoid
from .approximation import either, in_double, polynomial, special_function
from .elementwise import BOTH, UNARY, divide_no_nan, square
from .trigonometry import hypot, hypot_slope, tanh

# ------------------------------------------------------- logarithms of sums of powers


@elementwise(kinds="f", ignores_float_errors=True, cost=(5, 2))
def logaddexp(xp, x: TensorLike, y: TensorLike, *, log_base: float = 1.0):
    """Compute ``log(base ** x + base ** y)`` to that base, given as its logarithm.

    It does not overflow. Two entries of -inf result in -inf, and the derivatives there
    are 0, as for `reduce_logsumexp`.
    """
    scale = x.dtype.type(log_base)
    distance = x - y  # NaN for two equal infinities, which are their own result
    more = xp.log1p(xp.exp(xp.abs(distance) * -scale)) / scale
    return xp.where(xp.isnan(distance), x + y, xp.maximum(x, y) + more)


@logaddexp.vjp("x")
def _(g, x, y, log_base):
    return g * sigmoid(_distance(x, y) * log_base)


@logaddexp.vjp("y")
def _(g, x, y, log_base):
    return g * sigmoid(_distance(y, x) * log_base)


@elementwise(
    kinds="f", zero_when=BOTH, ignores_float_errors=True, linear=True, cost=(2, 0)
)
def _distance(xp, x: TensorLike, y: TensorLike):
    """Compute ``x - y``; 0 for two entries of inf, and -inf for two of -inf."""
    distance = x - y
    alike = xp.isnan(distance) & (x == y)
    return xp.where(alike, xp.minimum(x, x.dtype.type(0)), distance)


@_distance.vjp("x")
def _(g):
    return g


@_distance.vjp("y")
def _(g):
    return -g


# ------------------------------------------------------------------ hyperbolic functions


@elementwise(kinds="f", zero_when=UNARY, ignores_float_errors=True, cost=(6, 2))
def log_cosh(xp, x: TensorLike):
    """Compute ``log(cosh(x))``, without overflow, exact near 0."""
    size = xp.abs(x)
    near = xp.minimum(size, x.dtype.type(20))  # beyond, it is |x| - log(2)
    half = xp.sinh(near * x.dtype.type(0.5))
    return xp.log1p(half * half * x.dtype.type(2)) + (size - near)


@log_cosh.vjp("x")
def _(g, x):
    return g * tanh(x)


@elementwise(kinds="f", zero_when=UNARY, ignores_float_errors=True, cost=(12, 1))
def tanh_shrink(xp, x: TensorLike):
    """Compute ``x - tanh(x)``, exact near 0, where it is ``x ** 3 / 3``."""
    near = xp.clip(x, -1, 1)
    z = near * near
    rest = x.dtype.type(15)  # of the continued fraction of tanh: x / (1 + z / rest)
    for odd in (13, 11, 9, 7, 5, 3):
        rest = z / rest + x.dtype.type(odd)
    return xp.where(xp.abs(x) < 1, near * (z / (rest + z)), x - xp.tanh(x))


@tanh_shrink.vjp("x")
def _(g, x):
    return g * square(tanh(x))


# ----------------------------------------------------------------------- squareplus


@elementwise(kinds="f", ignores_float_errors=True, cost=(6, 1))
def squareplus(xp, x: TensorLike, *, b: float):
    """Compute ``(x + sqrt(x ** 2 + b)) / 2``, without overflow, exact where it is tiny."""
    if not b:
        return xp.maximum(x, x.dtype.type(0))
    half = x.dtype.type(0.5)
    if b < 0:
        return (x + xp.sqrt(x * x + x.dtype.type(b))) * half
    root = xp.hypot(x, x.dtype.type(math.sqrt(b)))
    return xp.where(x > 0, (x + root) * half, half * x.dtype.type(b) / (root - x))


@squareplus.vjp("x")
def _(g, x, b):
    return g * _squareplus_slope(x, b=b)


@elementwise(kinds="f", ignores_float_errors=True, cost=(8, 1))
def _squareplus_slope(xp, x: TensorLike, *, b: float):
    """Compute the value over the root: ``(1 + x / root) / 2``."""
    if not b:
        return (x > 0).astype(x.dtype)
    if b < 0:
        root = xp.sqrt(x * x + x.dtype.type(b))
        return (x / root + x.dtype.type(1)) * x.dtype.type(0.5)
    root, size = xp.hypot(x, x.dtype.type(math.sqrt(b))), xp.abs(x)
    rest = x.dtype.type(b / 2) / (root + size) / root
    return xp.where(x > 0, x.dtype.type(1) - rest, rest)


@_squareplus_slope.vjp("x")
def _(g, x, x_dtype, b):
    if b < 0:
        return g * 0.5 * b * (x * x + b) ** -1.5
    root = cast(math.sqrt(b), x_dtype)
    share = hypot_slope(root, x)
    return divide_no_nan(g * 0.5 * share, hypot(x, root)) * share


# ---------------------------------------------------------------------------- sinc


@special_function()
def sinc(xp, x: TensorLike, *, derivative: int = 0):
    """Compute ``sin(pi * x) / (pi * x)`` and 1 at 0, or its ``derivative``-th derivative."""
    return in_double(xp, partial(_sinc, order=derivative), x)


@sinc.vjp("x")
def _(g, x, derivative):
    return g * sinc(x, derivative=derivative + 1)


def _sinc(xp, x, order):
    endless = xp.isinf(x)
    x = xp.where(endless, 1.0, x)
    value = either(
        xp,
        xp.abs(x) * math.pi <= 1.0 + order / 2,
        partial(_sinc_by_series, order=order),
        partial(_sinc_by_recurrence, xp, order=order),
        x,
    )
    return xp.where(endless, 0.0, value)


def _sinc_by_series(x, order):
    angle = x * math.pi
    odd = angle if order % 2 else 1.0
    return polynomial(angle * angle, _sinc_series(order)) * odd


@cache
def _sinc_series(order):
    """Return coefficients of a derivative by ``x`` in powers of the square of the angle."""
    first = (order + 1) // 2
    return [
        math.pi**order * (-1.0) ** k / (math.factorial(2 * k - order) * (2 * k + 1))
        for k in range(first + 20, first - 1, -1)
    ]


def _sinc_by_recurrence(xp, x, order):
    """Compute derivative n of ``sin(t) / t``: ``(sin(t + n pi / 2) - n * previous) / t``."""
    whole = xp.rint(x)
    # The sign of cos(pi * whole).
    sign = 1.0 - 2.0 * xp.abs(whole - 2.0 * xp.rint(whole * 0.5))
    rest, angle = (x - whole) * math.pi, x * math.pi
    sine, cosine = xp.sin(rest) * sign, xp.cos(rest) * sign
    value = sine / angle
    for n in range(1, order + 1):
        turned = cosine if n % 2 else sine
        turned = turned if n % 4 < 2 else -turned
        value = (turned - value * n) / angle
    return value * math.pi**order
