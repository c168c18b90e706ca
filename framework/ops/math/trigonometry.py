"""Trigonometric and hyperbolic functions with their inverses, and angles.

Angles are in radians. Inverses take the branches of NumPy, for complex numbers too.
Where a derivative is infinite (`asin` at 1, `acosh` at 1, `atanh` at 1, ...) a zero
cotangent gives a zero gradient.
"""

from __future__ import annotations

from tapewright.core.rules import elementwise
from tapewright.core.typing import TensorLike

from ..array.conversion import cast, real_dtype
from .elementwise import (
    UNARY,
    divide_no_nan,
    sqrt,
    transcendental,
    zero_safe_divide,
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


# -------------------------------------------------------------------- trigonometric


@elementwise(zero_when=UNARY, floating=True, cost=(0, 1))
def sin(xp, x: TensorLike):
    """The sine of ``x`` radians."""
    return xp.sin(x)


@sin.vjp("x")
def _(g, x):
    return g * cos(x)


@elementwise(floating=True, cost=(0, 1))
def cos(xp, x: TensorLike):
    """The cosine of ``x`` radians."""
    return xp.cos(x)


@cos.vjp("x")
def _(g, x):
    return -(g * sin(x))


@elementwise(zero_when=UNARY, floating=True, cost=(0, 1))
def tan(xp, x: TensorLike):
    """The tangent of ``x`` radians."""
    return xp.tan(x)


@tan.vjp("x")
def _(g, out):
    return g + g * out * out


@transcendental(zero_when=UNARY, stable_form="asin(clip_by_value(x, -1.0, 1.0))")
def asin(xp, x: TensorLike):
    """The angle from -pi/2 to pi/2 whose sine is ``x``."""
    return xp.arcsin(x)


@asin.vjp("x")
def _(g, x):
    return zero_safe_divide(g, _cosine_of_asin(x))


@transcendental(stable_form="acos(clip_by_value(x, -1.0, 1.0))")
def acos(xp, x: TensorLike):
    """The angle from 0 to pi whose cosine is ``x``."""
    return xp.arccos(x)


@acos.vjp("x")
def _(g, x):
    return -zero_safe_divide(g, _cosine_of_asin(x))


def _cosine_of_asin(x):
    return sqrt((1.0 - x) * (1.0 + x))  # 1 - x * x has lost its digits near 1


@transcendental(zero_when=UNARY)
def atan(xp, x: TensorLike):
    """The angle from -pi/2 to pi/2 whose tangent is ``x``."""
    return xp.arctan(x)


@atan.vjp("x")
def _(g, x):
    return zero_safe_divide(g, x * x + 1.0)


# ---------------------------------------------------------------------------- angles


@elementwise(kinds="f", zero_when=[{"y", "x"}], cost=(0, 1))
def atan2(xp, y: TensorLike, x: TensorLike):
    """The angle from -pi to pi of the point (``x``, ``y``): that of ``y / x``, with signs.

    At the origin, where it jumps, the gradient is 0.

    >>> atan2([1.0, -1.0], [0.0, 0.0]).numpy()
    array([ 1.5707964, -1.5707964], dtype=float32)
    """
    return xp.arctan2(y, x)


@atan2.vjp("y")
def _(g, y, x):
    return divide_no_nan(g * x, x * x + y * y)


@atan2.vjp("x")
def _(g, y, x):
    return -divide_no_nan(g * y, x * x + y * y)


@elementwise(result_dtype=real_dtype, floating=True, cost=(0, 1))
def angle(xp, input: TensorLike):
    """The angle of a complex number, from -pi to pi; 0 or pi for a real number.

    At 0, where the angle jumps, the gradient is 0.

    >>> angle([1 + 1j, -2.0]).numpy()
    array([0.78539816, 3.14159265])
    """
    if input.dtype.kind == "c":
        return xp.angle(input)
    return xp.where(input < 0, input.dtype.type(xp.pi), input.dtype.type(0))


@angle.vjp("input")
def _(g, input, input_dtype):  # the imaginary part of log
    if input_dtype.kind != "c":
        return g * 0.0
    return divide_no_nan(cast(g, input_dtype) * -1j, input)


# ------------------------------------------------------------------------ hyperbolic


@transcendental(
    zero_when=UNARY, stable_form="a bound: sinh(clip_by_value(x, -bound, bound))"
)
def sinh(xp, x: TensorLike):
    """``(exp(x) - exp(-x)) / 2``."""
    return xp.sinh(x)


@sinh.vjp("x")
def _(g, x):
    return g * cosh(x)


@transcendental(stable_form="a bound: cosh(clip_by_value(x, -bound, bound))")
def cosh(xp, x: TensorLike):
    """``(exp(x) + exp(-x)) / 2``."""
    return xp.cosh(x)


@cosh.vjp("x")
def _(g, x):
    return g * sinh(x)


@elementwise(zero_when=UNARY, floating=True, cost=(0, 1))
def tanh(xp, x: TensorLike):
    """The hyperbolic tangent."""
    return xp.tanh(x)


@tanh.vjp("x")
def _(g, out):
    return tanh_grad(g, out)


@elementwise(zero_when=[{"g", "y"}], linear=[{"g"}], cost=(3, 0))
def tanh_grad(xp, g: TensorLike, y: TensorLike):
    """``g * (1 - y ** 2)``, the cotangent behind ``y = tanh(x)``, in one op.

    Three ops less for each further derivative, where tanh is the commonest choice.
    """
    return g - g * y * y


@tanh_grad.vjp("g")
def _(c, y):
    return tanh_grad(c, y)


@tanh_grad.vjp("y")
def _(c, g, y):
    return c * g * y * -2.0


@transcendental(zero_when=UNARY)
def asinh(xp, x: TensorLike):
    """The number whose `sinh` is ``x``."""
    return xp.arcsinh(x)


@asinh.vjp("x")
def _(g, x):
    return zero_safe_divide(g, sqrt(x * x + 1.0))


@transcendental(stable_form="acosh(maximum(x, 1.0))")
def acosh(xp, x: TensorLike):
    """The non-negative number whose `cosh` is ``x``; NaN for a real ``x`` below 1."""
    return xp.arccosh(x)


@acosh.vjp("x")
def _(g, x):  # two roots: the one of their product lies on another branch
    return zero_safe_divide(zero_safe_divide(g, sqrt(x - 1.0)), sqrt(x + 1.0))


@transcendental(zero_when=UNARY, stable_form="a bound within (-1, 1)")
def atanh(xp, x: TensorLike):
    """The number whose `tanh` is ``x``: infinite at 1 and -1, NaN beyond if real."""
    return xp.arctanh(x)


@atanh.vjp("x")
def _(g, x):
    return zero_safe_divide(g, (1.0 - x) * (1.0 + x))
