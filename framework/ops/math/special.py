"""The error function and its inverses.

Kernels are written with NumPy functions that CuPy has too. They compute in double
precision and return the dtype of their input; only `erf`, which networks use, has a
faster form for single precision. Sources:

    Cody, "Rational Chebyshev approximation for the error function", Math. Comp. 23 (1969)
    Wichura, "Algorithm AS 241: the percentage points of the normal distribution" (1988)
"""

from __future__ import annotations

import math

import numpy as np

from tapewright.core.rules import elementwise
from tapewright.core.typing import TensorLike

from .approximation import (
    either,
    in_blocks,
    in_double,
    polynomial,
    ratio,
    special_function,
)
from .elementwise import UNARY, zero_safe_multiply

__all__ = ["erf", "erfc", "erfcinv", "erfinv", "ndtri"]

# ------------------------------------------------------------------ error functions

# Cody's coefficients, from the highest power: for |x| <= 0.46875 in x ** 2, up to 4 in
# |x|, beyond in x ** -2.
_NEAR = (
    [1.85777706184603153e-1, 3.16112374387056560e0, 1.13864154151050156e2,
     3.77485237685302021e2, 3.20937758913846947e3],
    [1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3,
     2.84423683343917062e3],
)  # fmt: skip
_MIDDLE = (
    [2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594e0,
     6.61191906371416295e1, 2.98635138197400131e2, 8.81952221241769090e2,
     1.71204761263407058e3, 2.05107837782607147e3, 1.23033935479799725e3],
    [1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2,
     1.62138957456669019e3, 3.29079923573345963e3, 4.36261909014324716e3,
     3.43936767414372164e3, 1.23033935480374942e3],
)  # fmt: skip
_FAR = (
    [1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1,
     1.25781726111229246e-1, 1.60837851487422766e-2, 6.58749161529837803e-4],
    [1.0, 2.56852019228982242e0, 1.87295284992346725e0, 5.27905102951428412e-1,
     6.05183413124413191e-2, 2.33520497626869185e-3],
)  # fmt: skip

# erf(x) = tanh(x * P(x ** 2)) to 1e-7 up to |x| = 4, where it is 1 in single precision:
# P fitted to atanh(erf(x)) / x for the least relative error of the result.
_SINGLE = [
    5.4212319e-9, 2.7584084e-8, -4.7946728e-6, 8.4596832e-5, -6.1483867e-4,
    -1.9528783e-4, 1.0276987e-1, 1.1283792,
]  # fmt: skip

# a ufunc takes an array of rank 0 in half the time that a Python float costs it
_SINGLE_ON_THE_HOST = [np.asarray(c, np.float32) for c in _SINGLE]

ROOT_PI = math.sqrt(math.pi)


def _single_erf(xp, x):
    x = xp.clip(x, -4.0, 4.0)
    return xp.tanh(polynomial(x * x, _SINGLE) * x)


def _single_erf_on_the_host(x):
    x = np.minimum(np.maximum(x, np.float32(-4.0)), np.float32(4.0))
    value = polynomial(x * x, _SINGLE_ON_THE_HOST)
    value *= x
    return np.tanh(value, out=value) if value.ndim else np.tanh(value)


def _erf(xp, x):
    def outer(x):
        return xp.sign(x) * (1.0 - _erfc_beyond(xp, xp.abs(x)))

    return either(xp, xp.abs(x) <= 0.46875, _erf_near, outer, x)


def _erf_near(x):
    return x * ratio(x * x, *_NEAR)


def _erfc(xp, x):
    def outer(x):
        tail = _erfc_beyond(xp, xp.abs(x))
        return xp.where(x < 0, 2.0 - tail, tail)

    return either(xp, xp.abs(x) <= 0.46875, lambda x: 1.0 - _erf_near(x), outer, x)


def _erfc_beyond(xp, x):
    """Compute erfc for ``x`` above 0.46875, exact relative to its size."""
    x = xp.minimum(x, 30.0)  # where erfc is 0
    return _decay(xp, x, 1.0) * _erfcx_beyond(xp, x)


def _decay(xp, x, weight):
    """Compute ``exp(-weight * x ** 2)``, exact relative to its size."""
    head = xp.trunc(x * 16.0) / 16.0  # its square is exact, and so is the exponent
    rest = xp.exp((head - x) * (head + x) * weight)
    return xp.exp(head * head * -weight) * rest


def _erfcx_beyond(xp, x):
    """Compute ``exp(x ** 2) * erfc(x)`` for ``x`` above 0.46875."""

    def far(x):
        w = 1.0 / (x * x)
        return (1.0 / ROOT_PI - w * ratio(w, *_FAR)) / x

    return either(xp, x <= 4.0, lambda x: ratio(x, *_MIDDLE), far, x)


# The share of the normal distribution beyond x is exp(-x ** 2 / 2) times a polynomial in
# s = 1 / (1 + 0.21 * x), here without the last factor s: to 2e-8 up to x = 14.5, where it
# vanishes in single precision. Fitted for the least relative error.
_NORMAL_TAIL = [
    -0.071294886579, 0.281804870302, -0.326493717651, 0.344987017509, -0.090772743110,
    0.123472125311, 0.069569754915, 0.085012437413, 0.083715151330,
]  # fmt: skip
_NORMAL_TAIL_ON_THE_HOST = [np.asarray(c, np.float32) for c in _NORMAL_TAIL]


def normal_tail(xp, x):
    """Return the share of the normal distribution beyond ``x``, and ``exp(-x ** 2 / 2)``.

    ``x`` must not be negative. Both are exact relative to their size, in double
    precision if ``x`` is, else in single precision.
    """
    if x.dtype.itemsize > 4:
        return _normal_tail_in_double(xp, x)
    decay = xp.exp(x * x * x.dtype.type(-0.5))
    s = xp.reciprocal(x * x.dtype.type(0.21) + x.dtype.type(1.0))
    share = polynomial(s, _NORMAL_TAIL_ON_THE_HOST if xp is np else _NORMAL_TAIL)
    share *= s
    share *= decay
    return share, decay


def _normal_tail_in_double(xp, x):
    x = xp.minimum(x, 40.0)  # where both are 0
    decay = _decay(xp, x, 0.5)

    def outer(x, decay):
        return _erfcx_beyond(xp, x * math.sqrt(0.5)) * decay * 0.5

    def inner(x, decay):
        return 0.5 - _erf_near(x * math.sqrt(0.5)) * 0.5

    return either(xp, x <= 0.6629, inner, outer, x, decay), decay


@elementwise(ignores_float_errors=True, floating=True, cost=(2, 1))
def exp_square(xp, x: TensorLike, *, sign):
    """Compute ``exp(sign * x ** 2)``, safe to differentiate where ``x`` is infinite."""
    return xp.exp(x * x * sign)


@exp_square.vjp("x")
def _(g, x, out, sign):
    return zero_safe_multiply(g, zero_safe_multiply(x, out) * (2.0 * sign))


@special_function(zero_when=UNARY)
def erf(xp, x: TensorLike):
    """Element-wise error function: ``2 / sqrt(pi)`` times the integral of ``exp(-t ** 2)``.

    The integral is from 0 to ``x``.

    Args:
        x: Real floating tensor.

    Example:
        >>> tw.erf([0.0, 1.0]).numpy()
        array([0.       , 0.8427008], dtype=float32)
    """
    if x.dtype.itemsize > 4:
        return in_double(xp, _erf, x)
    if xp is np:
        result = in_blocks(_single_erf_on_the_host, np.asarray(x, np.float32))
    else:
        result = _single_erf(xp, x.astype(xp.float32))
    return result.astype(x.dtype, copy=False)


@erf.vjp("x")
def _(g, x):
    return zero_safe_multiply(g, exp_square(x, sign=-1.0)) * (2.0 / ROOT_PI)


@special_function()
def erfc(xp, x: TensorLike):
    """Element-wise complementary error function: ``1 - erf(x)``, exact where it is tiny.

    Args:
        x: Real floating tensor.

    Example:
        >>> tw.math.erfc([0.0, 1.0]).numpy().round(4)
        array([1.    , 0.1573], dtype=float32)
    """
    return in_double(xp, _erfc, x)


@erfc.vjp("x")
def _(g, x):
    return zero_safe_multiply(g, exp_square(x, sign=-1.0)) * (-2.0 / ROOT_PI)


# ----------------------------------------------------------- inverse error functions

# Wichura's coefficients, from the highest power: in 0.180625 - q ** 2 for |q| <= 0.425,
# then in r - 1.6 and beyond 5 in r - 5, with r = sqrt(-log(tail)).
_INNER = (
    [2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4,
     4.5921953931549871457e4, 1.3731693765509461125e4, 1.9715909503065514427e3,
     1.3314166789178437745e2, 3.3871328727963666080e0],
    [5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4,
     2.1213794301586595867e4, 5.3941960214247511077e3, 6.8718700749205790830e2,
     4.2313330701600911252e1, 1.0],
)  # fmt: skip
_OUTER = (
    [7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1,
     1.27045825245236838258e0, 3.64784832476320460504e0, 5.76949722146069140550e0,
     4.63033784615654529590e0, 1.42343711074968357734e0],
    [1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2,
     1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940e0,
     2.05319162663775882187e0, 1.0],
)  # fmt: skip
_OUTMOST = (
    [2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3,
     2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580e0,
     5.46378491116411436990e0, 6.65790464350110377720e0],
    [2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5,
     7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1,
     5.99832206555887937690e-1, 1.0],
)  # fmt: skip


def _normal_quantile(xp, q, tail):
    """Compute the quantile ``0.5 + q`` of the normal distribution; ``tail``: ``0.5 - |q|``."""

    def inner(q, tail):
        return q * ratio(0.180625 - q * q, *_INNER)

    def outer(q, tail):
        r = xp.sqrt(-xp.log(tail))
        return xp.sign(q) * either(xp, r <= 5.0, nearer, outmost, r)

    def nearer(r):
        return ratio(r - 1.6, *_OUTER)

    def outmost(r):
        return xp.where(xp.isinf(r), r, ratio(r - 5.0, *_OUTMOST))

    return either(xp, xp.abs(q) <= 0.425, inner, outer, q, tail)


ROOT_2 = math.sqrt(2.0)


def _erfinv(xp, x):
    return _normal_quantile(xp, x / 2.0, (1.0 - xp.abs(x)) / 2.0) / ROOT_2


def _erfcinv(xp, x):
    return _normal_quantile(xp, (1.0 - x) / 2.0, xp.minimum(x, 2.0 - x) / 2.0) / ROOT_2


def _ndtri(xp, x):
    return _normal_quantile(xp, x - 0.5, xp.minimum(x, 1.0 - x))


@special_function(zero_when=UNARY, stable_form="a bound within (-1, 1)")
def erfinv(xp, x: TensorLike):
    """Element-wise inverse of `erf`: infinite at 1 and -1, NaN beyond.

    Args:
        x: Real floating tensor.

    Example:
        >>> tw.math.erfinv([0.0, 0.5]).numpy()
        array([0.        , 0.47693628], dtype=float32)
    """
    return in_double(xp, _erfinv, x)


@erfinv.vjp("x")
def _(g, out):
    return zero_safe_multiply(g, exp_square(out, sign=1.0)) * (ROOT_PI / 2.0)


@special_function(stable_form="a bound within (0, 2)")
def erfcinv(xp, x: TensorLike):
    """Element-wise inverse of `erfc`: infinite at 0 and 2, NaN beyond.

    Args:
        x: Real floating tensor.

    Example:
        >>> tw.math.erfcinv([1.0, 0.5]).numpy().round(4)
        array([0.    , 0.4769], dtype=float32)
    """
    return in_double(xp, _erfcinv, x)


@erfcinv.vjp("x")
def _(g, out):
    return zero_safe_multiply(g, exp_square(out, sign=1.0)) * (-ROOT_PI / 2.0)


@special_function(stable_form="a bound within (0, 1)")
def ndtri(xp, x: TensorLike):
    """Quantile function of the standard normal distribution, the inverse of its CDF.

    Args:
        x: Probabilities from 0 to 1, a real floating tensor.

    Example:
        >>> tw.ndtri([0.5, 0.975]).numpy()
        array([0.       , 1.9599644], dtype=float32)
    """
    return in_double(xp, _ndtri, x)


@ndtri.vjp("x")
def _(g, out):
    return zero_safe_multiply(g, exp_square(out * (1.0 / ROOT_2), sign=1.0)) * (
        ROOT_PI * ROOT_2
    )
