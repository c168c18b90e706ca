"""Special functions: the error function and its inverses, the gamma function and its kin.

Kernels are written with NumPy's own functions, which CuPy has too. They work in double
precision and answer in the dtype of their input; only `erf`, which networks use, has a
faster form for single precision. Sources:

    Abramowitz & Stegun, "Handbook of Mathematical Functions" (1964), chapters 6, 7, 23
    Cody, "Rational Chebyshev approximation for the error function", Math. Comp. 23 (1969)
    Wichura, "Algorithm AS 241: the percentage points of the normal distribution" (1988)
"""

from __future__ import annotations

import math

import numpy as np

from tapewright.core.errors import DTypeError
from tapewright.core.primitive import get_primitive, primitive
from tapewright.core.rules import elementwise
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import TensorLike

from .comparison import greater, logical_or, masked, not_equal, surely_finite
from .elementwise import FIRST, UNARY, log, log1p, zero_safe_divide, zero_safe_multiply

__all__ = [
    "digamma",
    "erf",
    "erfc",
    "erfcinv",
    "erfinv",
    "lbeta",
    "lgamma",
    "ndtri",
    "polygamma",
    "xdivy",
    "xlog1py",
    "xlogy",
    "zeta",
]


# --------------------------------------------------------------- what kernels share

_BLOCK = (
    1 << 15
)  # entries of a large array that are worked on at once: they stay in cache


def in_blocks(compute, *inputs):
    """``compute(*inputs)``, NumPy arrays of one shape; a large one goes through in parts."""
    first = inputs[0]
    if first.size <= _BLOCK or not all([x.flags.c_contiguous for x in inputs]):
        return compute(*inputs)
    flat = [x.reshape(-1) for x in inputs]
    out = np.empty(first.size, first.dtype)
    for start in range(0, first.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        out[part] = compute(*[x[part] for x in flat])
    return out.reshape(first.shape)


def _in_double(who, xp, compute, x):
    """``compute(xp, x)`` in float64, the result in the dtype of ``x``."""
    if x.dtype.kind != "f":
        raise DTypeError(who, "x must be a real floating number", x=x)
    wide = x.astype(xp.float64, copy=False)
    if xp is np:
        found = in_blocks(lambda part: compute(np, part), np.asarray(wide))
    else:
        found = compute(xp, wide)
    return found.astype(x.dtype, copy=False)


def _either(xp, mask, this, that, *inputs):
    """``this(*inputs)`` where ``mask`` is true, else ``that(*inputs)``.

    On NumPy each sees its own entries only. A GPU computes both everywhere: to sort the
    entries it would have to wait.
    """
    if xp is not np:
        return xp.where(mask, this(*inputs), that(*inputs))
    if mask.all():
        return this(*inputs)
    if not mask.any():
        return that(*inputs)
    out, rest = np.empty(mask.shape), ~mask
    out[mask] = this(*[x[mask] for x in inputs])
    out[rest] = that(*[x[rest] for x in inputs])
    return out


def polynomial(x, coefficients):
    """``c[0] * x ** n + ... + c[n]`` by Horner's scheme, in place."""
    value = x * coefficients[0]
    for c in coefficients[1:-1]:
        value += c
        value *= x
    value += coefficients[-1]
    return value


def _ratio(x, above, below):
    return polynomial(x, above) / polynomial(x, below)


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


def erf_kernel(xp, x):
    """The error function of an array of real floating numbers."""
    if x.dtype.itemsize > 4 or x.dtype.kind != "f":
        return _in_double("erf", xp, _erf, x)
    if xp is np:
        found = in_blocks(_single_erf_on_the_host, np.asarray(x, np.float32))
    else:
        found = _single_erf(xp, x.astype(xp.float32))
    return found.astype(x.dtype, copy=False)


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

    return _either(xp, xp.abs(x) <= 0.46875, _erf_near, outer, x)


def _erf_near(x):
    return x * _ratio(x * x, *_NEAR)


def _erfc(xp, x):
    def outer(x):
        tail = _erfc_beyond(xp, xp.abs(x))
        return xp.where(x < 0, 2.0 - tail, tail)

    return _either(xp, xp.abs(x) <= 0.46875, lambda x: 1.0 - _erf_near(x), outer, x)


def _erfc_beyond(xp, x):
    """erfc for ``x`` above 0.46875, exact relative to its size."""
    x = xp.minimum(x, 30.0)  # where erfc is 0
    return _decay(xp, x, 1.0) * _erfcx_beyond(xp, x)


def _decay(xp, x, weight):
    """``exp(-weight * x ** 2)``, exact relative to its size."""
    head = xp.trunc(x * 16.0) / 16.0  # its square is exact, and so is the exponent
    rest = xp.exp((head - x) * (head + x) * weight)
    return xp.exp(head * head * -weight) * rest


def _erfcx_beyond(xp, x):
    """``exp(x ** 2) * erfc(x)`` for ``x`` above 0.46875."""

    def far(x):
        w = 1.0 / (x * x)
        return (1.0 / ROOT_PI - w * _ratio(w, *_FAR)) / x

    return _either(xp, x <= 4.0, lambda x: _ratio(x, *_MIDDLE), far, x)


# The share of the normal distribution beyond x is exp(-x ** 2 / 2) times a polynomial in
# s = 1 / (1 + 0.21 * x), here without the last factor s: to 2e-8 up to x = 14.5, where it
# vanishes in single precision. Fitted for the least relative error.
_NORMAL_TAIL = [
    -0.071294886579, 0.281804870302, -0.326493717651, 0.344987017509, -0.090772743110,
    0.123472125311, 0.069569754915, 0.085012437413, 0.083715151330,
]  # fmt: skip
_NORMAL_TAIL_ON_THE_HOST = [np.asarray(c, np.float32) for c in _NORMAL_TAIL]


def normal_tail(xp, x):
    """``(share, decay)``: of the normal distribution beyond ``x``; ``exp(-x ** 2 / 2)``.

    ``x`` must not be negative. Both are exact relative to their size, in double
    precision where ``x`` has it, else in single precision.
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

    return _either(xp, x <= 0.6629, inner, outer, x, decay), decay


@elementwise(ignores_float_errors=True, floating=True, cost=(2, 1))
def exp_square(xp, x: TensorLike, *, sign):
    """``exp(sign * x ** 2)``, safe to differentiate where ``x`` is infinite."""
    return xp.exp(x * x * sign)


@exp_square.vjp("x")
def _(g, x, out, sign):
    return zero_safe_multiply(g, zero_safe_multiply(x, out) * (2.0 * sign))


@elementwise(
    type_name="Erf",
    zero_when=UNARY,
    ignores_float_errors=True,
    floating=True,
    cost=(0, 1),
)
def erf(xp, x: TensorLike):
    """The error function: ``2 / sqrt(pi)`` times the integral of ``exp(-t ** 2)`` to ``x``.

    >>> erf([0.0, 1.0]).numpy()
    array([0.       , 0.8427008], dtype=float32)
    """
    return erf_kernel(xp, x)


@erf.vjp("x")
def _(g, x):
    return zero_safe_multiply(g, exp_square(x, sign=-1.0)) * (2.0 / ROOT_PI)


@elementwise(type_name="Erfc", ignores_float_errors=True, floating=True, cost=(0, 1))
def erfc(xp, x: TensorLike):
    """``1 - erf(x)``, exact where it is tiny."""
    return _in_double("erfc", xp, _erfc, x)


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
    """Where the normal distribution function is ``0.5 + q``; ``tail`` is ``0.5 - |q|``."""

    def inner(q, tail):
        return q * _ratio(0.180625 - q * q, *_INNER)

    def outer(q, tail):
        r = xp.sqrt(-xp.log(tail))
        return xp.sign(q) * _either(xp, r <= 5.0, nearer, outmost, r)

    def nearer(r):
        return _ratio(r - 1.6, *_OUTER)

    def outmost(r):
        return xp.where(xp.isinf(r), r, _ratio(r - 5.0, *_OUTMOST))

    return _either(xp, xp.abs(q) <= 0.425, inner, outer, q, tail)


ROOT_2 = math.sqrt(2.0)


def _erfinv(xp, x):
    return _normal_quantile(xp, x / 2.0, (1.0 - xp.abs(x)) / 2.0) / ROOT_2


def _erfcinv(xp, x):
    return _normal_quantile(xp, (1.0 - x) / 2.0, xp.minimum(x, 2.0 - x) / 2.0) / ROOT_2


def _ndtri(xp, x):
    return _normal_quantile(xp, x - 0.5, xp.minimum(x, 1.0 - x))


@elementwise(
    type_name="Erfinv",
    zero_when=UNARY,
    ignores_float_errors=True,
    floating=True,
    cost=(0, 1),
    stable_form="a bound within (-1, 1)",
)
def erfinv(xp, x: TensorLike):
    """The number whose `erf` is ``x``: infinite at 1 and -1, NaN beyond."""
    return _in_double("erfinv", xp, _erfinv, x)


@erfinv.vjp("x")
def _(g, out):
    return zero_safe_multiply(g, exp_square(out, sign=1.0)) * (ROOT_PI / 2.0)


@elementwise(
    type_name="Erfcinv",
    ignores_float_errors=True,
    floating=True,
    cost=(0, 1),
    stable_form="a bound within (0, 2)",
)
def erfcinv(xp, x: TensorLike):
    """The number whose `erfc` is ``x``: infinite at 0 and 2, NaN beyond."""
    return _in_double("erfcinv", xp, _erfcinv, x)


@erfcinv.vjp("x")
def _(g, out):
    return zero_safe_multiply(g, exp_square(out, sign=1.0)) * (-ROOT_PI / 2.0)


@elementwise(
    type_name="Ndtri",
    ignores_float_errors=True,
    floating=True,
    cost=(0, 1),
    stable_form="a bound within (0, 1)",
)
def ndtri(xp, x: TensorLike):
    """The quantile of the standard normal distribution: below it lies the share ``x``.

    >>> ndtri([0.5, 0.975]).numpy()
    array([0.       , 1.9599644], dtype=float32)
    """
    return _in_double("ndtri", xp, _ndtri, x)


@ndtri.vjp("x")
def _(g, out):
    return zero_safe_multiply(g, exp_square(out * (1.0 / ROOT_2), sign=1.0)) * (
        ROOT_PI * ROOT_2
    )


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
    return _either(xp, q <= 0, negative, positive, *inputs)


def _zeta(xp, s, q):
    value = _hurwitz_anywhere(xp, s, q)
    value = xp.where((q <= 0) & (s != xp.floor(s)), xp.nan, value)
    return xp.where(s > 1, value, xp.where(s == 1, xp.inf, xp.nan))


def _pair_in_double(who, xp, compute, **inputs):
    """``compute(xp, a, b)`` in float64 on two inputs that broadcast."""
    first = next(iter(inputs.values()))
    if first.dtype.kind != "f":
        what = f"{' and '.join(inputs)} must be real floating numbers"
        raise DTypeError(who, what, **inputs)
    wide = [x.astype(xp.float64) for x in inputs.values()]
    wide = [x + 0.0 for x in xp.broadcast_arrays(*wide)]
    if xp is np:
        wide = [np.asarray(x) for x in wide]
    return compute(xp, *wide).astype(first.dtype)


@elementwise(
    type_name="Zeta",
    ignores_float_errors=True,
    cost=(0, 1),
    stable_form="x above 1 and positive q",
)
def zeta(xp, x: TensorLike, q: TensorLike):
    """Hurwitz' zeta function: the sum of ``(q + k) ** -x`` over ``k = 0, 1, ...``.

    ``x`` has no gradient. NaN for ``x < 1``, and for ``q < 0`` unless ``x`` is an integer.

    >>> zeta(2.0, 1.0).numpy()  # pi ** 2 / 6
    np.float32(1.644934)
    """
    return _pair_in_double("zeta", xp, _zeta, x=x, q=q)


zeta.no_gradient("x")


@zeta.vjp("q")
def _(g, x, q):
    return -zero_safe_multiply(g, x * zeta(x + 1.0, q))


# ------------------------------------------------------------------- gamma functions

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
        return _either(xp, x >= 8.0, stirling, short, x)

    def stirling(x):  # A&S 6.1.41
        rest = polynomial(1.0 / (x * x), _STIRLING) / x
        return (x - 0.5) * (xp.log(x) - 1.0) + (rest + (_HALF_LOG_2_PI - 0.5))

    def short(x):
        return _either(xp, x < 1.5, below_two, above_two, x)

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

    return _either(xp, x < 0, reflected, positive, x)


def _digamma(xp, x):
    def reflected(x):  # A&S 6.3.7
        value = positive(1.0 - x) - math.pi / xp.tan(math.pi * (x - xp.rint(x)))
        return xp.where(x == xp.floor(x), xp.nan, value)

    def positive(x):
        return _either(xp, x >= _SHIFT, asymptotic, shifted, x)

    def asymptotic(x):  # A&S 6.3.18
        w = 1.0 / (x * x)
        return xp.log(x) - 0.5 / x + polynomial(w, _DIGAMMA) * w

    def shifted(x):  # A&S 6.3.6
        value = asymptotic(x + _SHIFT)
        for k in range(_SHIFT - 1, -1, -1):
            value = value - 1.0 / (x + k)
        return value

    return _either(xp, x <= 0, reflected, positive, x)


@elementwise(
    type_name="Lgamma",
    ignores_float_errors=True,
    floating=True,
    cost=(0, 1),
    stable_form="positive x: the poles are at 0, -1, -2, ...",
)
def lgamma(xp, x: TensorLike):
    """``log(|gamma(x)|)``; infinite at 0, -1, -2, ...

    >>> lgamma([1.0, 5.0]).numpy()  # log(4!)
    array([0.       , 3.1780539], dtype=float32)
    """
    return _in_double("lgamma", xp, _lgamma, x)


@lgamma.vjp("x")
def _(g, x):
    return zero_safe_multiply(g, digamma(x))


@elementwise(
    type_name="Digamma",
    ignores_float_errors=True,
    floating=True,
    cost=(0, 1),
    stable_form="positive x: the poles are at 0, -1, -2, ...",
)
def digamma(xp, x: TensorLike):
    """The derivative of `lgamma`; NaN at its poles 0, -1, -2, ..."""
    return _in_double("digamma", xp, _digamma, x)


@digamma.vjp("x")
def _(g, x):
    return zero_safe_multiply(g, _polygamma_of_order(x, a=1))


@primitive(
    name="polygamma_of_order", ignores_float_errors=True, floating=True, cost=(0, 1)
)
def _polygamma_of_order(xp, x: TensorLike, *, a):
    def kernel(xp, x):
        factor = (-1) ** (a + 1) * float(math.factorial(a))
        return _hurwitz_anywhere(xp, a + 1, x) * factor

    return _in_double("polygamma", xp, kernel if a else _digamma, x)


@_polygamma_of_order.infer
def _(x, a):
    return x


@_polygamma_of_order.batch
def _(mapped, x, a):
    return _polygamma_of_order(x, a=a)


@_polygamma_of_order.vjp("x")
def _(g, x, a):
    return zero_safe_multiply(g, _polygamma_of_order(x, a=a + 1))


_FACTORIALS = [float(math.factorial(n)) for n in range(171)]


@elementwise(
    name="polygamma",
    type_name="Polygamma",
    ignores_float_errors=True,
    cost=(0, 1),
    stable_form="positive x: the poles are at 0, -1, -2, ...",
)
def _polygamma(xp, a: TensorLike, x: TensorLike):
    def kernel(xp, a, x):  # A&S 6.4.10
        valid = (a == xp.floor(a)) & (a >= 0)
        order = xp.where(valid, a, 0.0)
        at = xp.minimum(order, len(_FACTORIALS) - 1.0).astype(xp.int64)
        factor = xp.asarray(_FACTORIALS)[at] * xp.where(a % 2 == 0, -1.0, 1.0)
        value = factor * _zeta(xp, order + 1.0, x)
        value = xp.where(a == 0, _digamma(xp, x), value)
        return xp.where(valid, value, xp.nan)

    return _pair_in_double("polygamma", xp, kernel, a=a, x=x)


_polygamma.no_gradient("a")


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


# ------------------------------------------------------------- products that know zero


def _product(who, xp, x, y, factor):
    """``x * factor(y)``, and 0 where ``x`` is 0 even if the factor is not finite."""
    if x.dtype.kind not in "fc":
        raise DTypeError(who, "x and y must be floating or complex", x=x, y=y)
    product = x * factor(y)
    if surely_finite(xp, product):
        return product
    return xp.where(x == 0, xp.zeros_like(product), product)


def _where_known(g, x, y, edge, dtype):
    """``g``, and 0 where ``x`` is 0 and ``y`` not within the domain, above ``edge``."""
    within = not_equal(y, edge) if dtype.kind == "c" else greater(y, edge)
    return masked(g, logical_or(not_equal(x, 0.0), within))


@elementwise(
    type_name="Xlogy",
    zero_when=FIRST,
    ignores_float_errors=True,
    linear=[{"x"}],
    cost=(1, 1),
    stable_form="a positive y: xlogy(x, maximum(y, epsilon))",
)
def xlogy(xp, x: TensorLike, y: TensorLike):
    """``x * log(y)``, and 0 where ``x`` is 0, whatever ``y`` is.

    >>> xlogy([0.0, 2.0], [0.0, 1.0]).numpy()
    array([0., 0.], dtype=float32)
    """
    return _product("xlogy", xp, x, y, xp.log)


@xlogy.vjp("x")
def _(g, x, y, x_dtype):
    return zero_safe_multiply(_where_known(g, x, y, 0.0, x_dtype), log(y))


@xlogy.vjp("y")
def _(g, x, y):
    return zero_safe_multiply(g, xdivy(x, y))


@elementwise(
    type_name="Xlog1py",
    zero_when=[{"y"}, {"x", "y"}],
    ignores_float_errors=True,
    linear=[{"x"}],
    cost=(1, 1),
    stable_form="y above -1: xlog1py(x, maximum(y, epsilon - 1.0))",
)
def xlog1py(xp, x: TensorLike, y: TensorLike):
    """``x * log(1 + y)``, and 0 where ``x`` is 0, whatever ``y`` is."""
    return _product("xlog1py", xp, x, y, xp.log1p)


@xlog1py.vjp("x")
def _(g, x, y, x_dtype):
    return zero_safe_multiply(_where_known(g, x, y, -1.0, x_dtype), log1p(y))


@xlog1py.vjp("y")
def _(g, x, y):
    return zero_safe_multiply(g, xdivy(x, y + 1.0))


@elementwise(
    type_name="Xdivy",
    zero_when=FIRST,
    ignores_float_errors=True,
    linear=[{"x"}],
    stable_form="math.divide_no_nan(x, y), which is 0 where y is 0",
)
def xdivy(xp, x: TensorLike, y: TensorLike):
    """``x / y``, and 0 where ``x`` is 0, whatever ``y`` is."""
    if x.dtype.kind not in "fc":
        raise DTypeError("xdivy", "x and y must be floating or complex", x=x, y=y)
    quotient = x / y
    if surely_finite(xp, quotient):
        return quotient
    return xp.where(x == 0, xp.zeros_like(quotient), quotient)


@xdivy.vjp("x")
def _(g, x, y):
    return zero_safe_divide(
        masked(g, logical_or(not_equal(x, 0.0), not_equal(y, 0.0))), y
    )


@xdivy.vjp("y")
def _(g, y, out):
    return -zero_safe_divide(zero_safe_multiply(g, out), y)
