"""Trigonometric and hyperbolic functions with their inverses, and angles.

Angles are in radians. Inverses have the same branches as in NumPy, for complex numbers
too. Where a derivative is infinite (`asin` at 1, `acosh` at 1, `atanh` at 1, ...) a
zero cotangent results in a zero gradient. A derivative that is a small number far out,
such as the derivative of `tanh`, is computed from the input: the rounded output has
lost it.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from tapewright.core.rules import elementwise
from tapewright.core.typing import TensorLike

from ..array.conversion import cast, real_dtype
from .approximation import WHOLE, in_blocks
from .elementwise import (
    BOTH,
    FIRST,
    UNARY,
    divide_no_nan,
    sqrt,
    transcendental,
    zero_safe_divide,
    zero_safe_multiply,
)

__all__ = [
    "acos",
    "acosh",
    "angle",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cos",
    "cosh",
    "sin",
    "sinh",
    "tan",
    "tanh",
]


def _is_vectorized(name):
    """Return whether NumPy has vector code for a function of float32 on this machine."""
    try:
        targets = np.lib.introspect.opt_func_info(f"^{name}$", "float32")[name]
    except (AttributeError, KeyError):  # an older NumPy, or plain code alone
        return False
    return not any(
        [each["current"].startswith("baseline") for each in targets.values()]
    )


COSH_IS_VECTORIZED = _is_vectorized("cosh")

# -------------------------------------------------------------------- trigonometric


@elementwise(zero_when=UNARY, floating=True, cost=(0, 1))
def sin(xp, x: TensorLike):
    """Element-wise sine of an angle in radians.

    Args:
        x: Floating or complex tensor.

    Example:
        >>> tw.sin([0.0, 0.5]).numpy().round(4)
        array([0.    , 0.4794], dtype=float32)
    """
    return xp.sin(x)


@sin.vjp("x")
def _(g, x):
    return g * cos(x)


@elementwise(floating=True, cost=(0, 1))
def cos(xp, x: TensorLike):
    """Element-wise cosine of an angle in radians.

    Args:
        x: Floating or complex tensor.

    Example:
        >>> tw.cos([0.0, 0.5]).numpy().round(4)
        array([1.    , 0.8776], dtype=float32)
    """
    return xp.cos(x)


@cos.vjp("x")
def _(g, x):
    return -(g * sin(x))


@elementwise(zero_when=UNARY, floating=True, cost=(0, 1))
def tan(xp, x: TensorLike):
    """Element-wise tangent of an angle in radians.

    Args:
        x: Floating or complex tensor.

    Example:
        >>> tw.tan([0.0, 1.0]).numpy().round(4)
        array([0.    , 1.5574], dtype=float32)
    """
    return xp.tan(x)


@tan.vjp("x")
def _(g, out):
    return g + g * out * out


@transcendental(zero_when=UNARY, stable_form="asin(clip_by_value(x, -1.0, 1.0))")
def asin(xp, x: TensorLike):
    """Element-wise inverse sine: the angle from -pi/2 to pi/2 with sine ``x``.

    Args:
        x: Floating or complex tensor.

    Example:
        >>> tw.asin([0.0, 1.0]).numpy().round(4)
        array([0.    , 1.5708], dtype=float32)
    """
    return xp.arcsin(x)


@asin.vjp("x")
def _(g, x):
    return zero_safe_divide(g, sqrt(one_less_square(x)))


@transcendental(stable_form="acos(clip_by_value(x, -1.0, 1.0))")
def acos(xp, x: TensorLike):
    """Element-wise inverse cosine: the angle from 0 to pi with cosine ``x``.

    Args:
        x: Floating or complex tensor.

    Example:
        >>> tw.acos([1.0, 0.0]).numpy().round(4)
        array([0.    , 1.5708], dtype=float32)
    """
    return xp.arccos(x)


@acos.vjp("x")
def _(g, x):
    return -zero_safe_divide(g, sqrt(one_less_square(x)))


@elementwise(floating=True, ignores_float_errors=True, cost=(3, 0))
def one_less_square(xp, x: TensorLike):
    """Compute ``1 - x ** 2``, exact near 1 and -1; its derivative is exact near 0."""
    return (1.0 - x) * (1.0 + x)


@one_less_square.vjp("x")
def _(g, x):
    return g * x * -2.0


@transcendental(zero_when=UNARY)
def atan(xp, x: TensorLike):
    """Element-wise inverse tangent: the angle from -pi/2 to pi/2 with tangent ``x``.

    Args:
        x: Floating or complex tensor.

    Example:
        >>> tw.atan([0.0, 1.0]).numpy().round(4)
        array([0.    , 0.7854], dtype=float32)
    """
    return xp.arctan(x)


@atan.vjp("x")
def _(g, x, x_dtype):
    if x_dtype.kind == "c":
        return zero_safe_divide(g, x * x + 1.0)
    root = hypot(x, 1.0)
    return g / root / root


# ----------------------------------------------------------------- lengths and angles


@elementwise(
    kinds="f", zero_when=BOTH, ignores_float_errors=True, commutative=True,
    cost=(4, 1),
)  # fmt: skip
def hypot(xp, x: TensorLike, y: TensorLike):
    """Compute ``sqrt(x ** 2 + y ** 2)``, without overflow; its derivatives at 0 are 0."""
    return xp.hypot(x, y)


@hypot.vjp("x")
def _(g, x, y):
    return g * hypot_slope(x, y)


@hypot.vjp("y")
def _(g, x, y):
    return g * hypot_slope(y, x)


@elementwise(kinds="f", zero_when=FIRST, ignores_float_errors=True, cost=(6, 1))
def hypot_slope(xp, x: TensorLike, y: TensorLike):
    """Compute ``x / hypot(x, y)``, the cosine of `atan2`; 0 at the origin.

    It has separate derivatives, so that no digit is lost where one of ``x`` and ``y``
    is tiny.
    """
    size = xp.maximum(xp.abs(x), xp.abs(y))
    endless = xp.isinf(size)
    x = xp.where(endless, xp.isinf(x) * xp.sign(x), x)
    y = xp.where(endless, xp.isinf(y) * xp.sign(y), y)
    size = xp.where(endless | (size == 0), x.dtype.type(1), size)
    x, y = x / size, y / size  # one of them is 1 or -1, but at the origin
    return x / xp.sqrt(xp.maximum(x * x + y * y, x.dtype.type(1)))


@hypot_slope.vjp("x")
def _(g, x, y):
    across = hypot_slope(y, x)
    return divide_no_nan(g * across, hypot(x, y)) * across  # whose square may vanish


@hypot_slope.vjp("y")
def _(g, x, y, out):
    return -(divide_no_nan(g * out, hypot(x, y)) * hypot_slope(y, x))


@elementwise(kinds="f", zero_when=[{"y", "x"}], cost=(0, 1))
def atan2(xp, y: TensorLike, x: TensorLike):
    """Element-wise angle of the point (``x``, ``y``), from -pi to pi.

    It is the inverse tangent of ``y / x`` in the quadrant of the point. At the origin,
    where it jumps, the gradient is 0.

    Args:
        y: Second coordinate, a real floating tensor.
        x: First coordinate, a tensor that broadcasts with ``y``.

    Example:
        >>> tw.atan2([1.0, -1.0], [0.0, 0.0]).numpy()
        array([ 1.5707964, -1.5707964], dtype=float32)
    """
    return xp.arctan2(y, x)


@atan2.vjp("y")
def _(g, y, x):
    return divide_no_nan(g * hypot_slope(x, y), hypot(x, y))


@atan2.vjp("x")
def _(g, y, x):
    return -divide_no_nan(g * hypot_slope(y, x), hypot(x, y))


@elementwise(result_dtype=real_dtype, floating=True, cost=(0, 1))
def angle(xp, input: TensorLike):
    """Element-wise angle of a complex number, from -pi to pi; 0 or pi for a real number.

    At 0, where the angle jumps, the gradient is 0.

    Args:
        input: Input tensor of numbers.

    Example:
        >>> tw.angle([1 + 1j, -2.0]).numpy()
        array([0.78539816, 3.14159265])
    """
    if input.dtype.kind == "c":
        return xp.angle(input)
    return xp.where(input < 0, input.dtype.type(xp.pi), input.dtype.type(0))


@angle.vjp("input")
def _(g, input, input_dtype):  # the imaginary part of log
    if input_dtype.kind != "c":
        return zero_safe_multiply(g, 0.0)
    return divide_no_nan(cast(g, input_dtype) * -1j, input)


# ------------------------------------------------------------------------ hyperbolic


@transcendental(
    zero_when=UNARY, stable_form="a bound: sinh(clip_by_value(x, -bound, bound))"
)
def sinh(xp, x: TensorLike):
    """Element-wise hyperbolic sine: ``(exp(x) - exp(-x)) / 2``.

    Args:
        x: Floating or complex tensor.

    Example:
        >>> tw.sinh([0.0, 1.0]).numpy().round(4)
        array([0.    , 1.1752], dtype=float32)
    """
    return xp.sinh(x)


@sinh.vjp("x")
def _(g, x):
    return g * cosh(x)


@transcendental(stable_form="a bound: cosh(clip_by_value(x, -bound, bound))")
def cosh(xp, x: TensorLike):
    """Element-wise hyperbolic cosine: ``(exp(x) + exp(-x)) / 2``.

    Args:
        x: Floating or complex tensor.

    Example:
        >>> tw.cosh([0.0, 1.0]).numpy().round(4)
        array([1.    , 1.5431], dtype=float32)
    """
    return xp.cosh(x)


@cosh.vjp("x")
def _(g, x):
    return g * sinh(x)


@elementwise(zero_when=UNARY, floating=True, cost=(0, 1))
def tanh(xp, x: TensorLike):
    """Element-wise hyperbolic tangent.

    Args:
        x: Floating or complex tensor.

    Example:
        >>> tw.tanh([-1.0, 0.0, 1.0]).numpy().round(4)
        array([-0.7616,  0.    ,  0.7616], dtype=float32)
    """
    return xp.tanh(x)


@tanh.vjp("x")
def _(g, x, x_dtype):
    if x_dtype.kind == "c":
        return tanh_grad(g, tanh(x))
    return tanh_slope(g, x)


@elementwise(kinds="f", zero_when=[{"g"}, {"g", "x"}], linear=[{"g"}], cost=(2, 1))
def tanh_slope(xp, g: TensorLike, x: TensorLike):
    """Compute ``g / cosh(x) ** 2``, the cotangent behind ``tanh(x)``, in one op.

    ``1 - tanh(x) ** 2`` is 0 where `tanh` has been rounded to 1, from 9 in float32 on.
    An overflow of `cosh` results in 0, which is right; it does not overflow where its
    square does.
    """
    return over_square_of_cosh(xp, g, x)


def over_square_of_cosh(xp, g, x):
    """Compute ``g / cosh(x) ** 2``, for kernels: NumPy divides as fast as it multiplies."""
    if type(x) is np.ndarray and x.size > WHOLE and x.shape == g.shape:
        return in_blocks(partial(_over_square_of_cosh, xp), g, x)
    return _over_square_of_cosh(xp, g, x)


def _over_square_of_cosh(xp, g, x):
    if COSH_IS_VECTORIZED or xp is not np:
        cosh = xp.cosh(x)
    else:
        cosh = xp.exp(x)
        cosh += xp.reciprocal(cosh)
        cosh *= x.dtype.type(0.5)
    slope = g / cosh
    slope /= cosh
    return slope


@tanh_slope.vjp("g")
def _(c, x):
    return tanh_slope(c, x)


@tanh_slope.vjp("x")
def _(c, g, x):
    return tanh_slope(c * g, x) * tanh(x) * -2.0


@elementwise(zero_when=[{"g", "y"}], linear=[{"g"}], cost=(3, 0))
def tanh_grad(xp, g: TensorLike, y: TensorLike):
    """Compute ``g * (1 - y ** 2)``, the cotangent behind a complex ``y = tanh(x)``."""
    return g - g * y * y


@tanh_grad.vjp("g")
def _(c, y):
    return tanh_grad(c, y)


@tanh_grad.vjp("y")
def _(c, g, y):
    return c * g * y * -2.0


@transcendental(zero_when=UNARY)
def asinh(xp, x: TensorLike):
    """Element-wise inverse hyperbolic sine.

    Args:
        x: Floating or complex tensor.

    Example:
        >>> tw.asinh([0.0, 1.0]).numpy().round(4)
        array([0.    , 0.8814], dtype=float32)
    """
    return xp.arcsinh(x)


@asinh.vjp("x")
def _(g, x, x_dtype):
    root = sqrt(x * x + 1.0) if x_dtype.kind == "c" else hypot(x, 1.0)
    return zero_safe_divide(g, root)


@transcendental(stable_form="acosh(maximum(x, 1.0))")
def acosh(xp, x: TensorLike):
    """Element-wise inverse hyperbolic cosine, not negative; NaN for a real ``x`` below 1.

    Args:
        x: Floating or complex tensor.

    Example:
        >>> tw.acosh([1.0, 2.0]).numpy().round(4)
        array([0.   , 1.317], dtype=float32)
    """
    return xp.arccosh(x)


@acosh.vjp("x")
def _(g, x):  # two roots: the one of their product lies on another branch
    return zero_safe_divide(zero_safe_divide(g, sqrt(x - 1.0)), sqrt(x + 1.0))


@transcendental(zero_when=UNARY, stable_form="a bound within (-1, 1)")
def atanh(xp, x: TensorLike):
    """Element-wise inverse hyperbolic tangent: infinite at 1 and -1, NaN beyond if real.

    Args:
        x: Floating or complex tensor.

    Example:
        >>> tw.atanh([0.0, 0.5]).numpy().round(4)
        array([0.    , 0.5493], dtype=float32)
    """
    return xp.arctanh(x)


@atanh.vjp("x")
def _(g, x):
    return zero_safe_divide(g, one_less_square(x))
