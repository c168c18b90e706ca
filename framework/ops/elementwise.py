"""Ops of arithmetic and analysis, entry by entry: sums to powers, logarithms, extremes.

In this order: arithmetic; powers, exponentials and logarithms; trigonometric and
hyperbolic functions; extremes, clipping and rounding. Inputs broadcast by NumPy's rules
and share a dtype. Where a function has a corner, the rule takes a subgradient; a zero
cotangent gives a zero gradient where the derivative is infinite (`sqrt`, `log`, `power`,
`divide`, ... at zero).
"""

from .. import dtypes
from ..rules import elementwise
from .comparison import (
    greater,
    greater_equal,
    less,
    less_equal,
    logical_and,
    logical_or,
    masked,
    surely_finite,
)
from .conversion import cast, conj, real, real_dtype

__all__ = [
    "abs",
    "acos",
    "add",
    "asin",
    "atan",
    "ceil",
    "clip_by_value",
    "cos",
    "cosh",
    "divide",
    "divide_no_nan",
    "exp",
    "expm1",
    "floor",
    "floordiv",
    "floormod",
    "log",
    "log1p",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "multiply_no_nan",
    "negative",
    "pow",
    "reciprocal",
    "round",
    "rsqrt",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "squared_difference",
    "subtract",
    "tan",
    "tanh",
    "truediv",
]

# For the diagonal rule: which inputs, being zero, make the output zero.
UNARY = [{"x"}]
BOTH = [{"x", "y"}]
EITHER = [{"x"}, {"y"}, {"x", "y"}]
FIRST = [{"x"}, {"x", "y"}]


# ---------------------------------------------------------------------- arithmetic


@elementwise(type_name="AddV2", zero_when=BOTH)
def add(xp, x, y):
    """``x + y``."""
    return xp.add(x, y)


@add.vjp("x", "y")
def _(g):
    return g


@elementwise(type_name="Sub", zero_when=BOTH)
def subtract(xp, x, y):
    """``x - y``."""
    return xp.subtract(x, y)


@subtract.vjp("x")
def _(g):
    return g


@subtract.vjp("y")
def _(g):
    return -g


@elementwise(type_name="Mul", zero_when=EITHER)
def multiply(xp, x, y):
    """``x * y``."""
    return xp.multiply(x, y)


@multiply.vjp("x")
def _(g, y):
    return g * y


@multiply.vjp("y")
def _(g, x):
    return g * x


def _quotient(dtype):
    if dtype.is_differentiable:
        return dtype
    return dtypes.float32 if dtype.size < 4 else dtypes.float64


def _divided(xp, x, y):
    if x.dtype.kind in "fc":
        return xp.divide(x, y)
    return xp.divide(x, y, dtype=_quotient(dtypes.as_dtype(x.dtype)).dtype)


@elementwise(type_name="RealDiv", zero_when=[{"x"}], result_dtype=_quotient, quiet=True)
def divide(xp, x, y):
    """``x / y``; of integers in float64, or float32 for those of 8 and 16 bits."""
    return _divided(xp, x, y)


@divide.vjp("x")
def _(g, y):
    return _over(g, y)


@divide.vjp("y")
def _(g, y, out):
    return -_over(_times(g, out), y)


truediv = divide


@elementwise(type_name="DivNoNan", zero_when=FIRST, result_dtype=_quotient, quiet=True)
def divide_no_nan(xp, x, y):
    """``x / y``, and 0 where ``y`` is 0."""
    quotient = _divided(xp, x, y)
    if surely_finite(xp, quotient):
        return quotient
    return xp.where(y == 0, xp.zeros_like(quotient), quotient)


@divide_no_nan.vjp("x")
def _(g, y):
    return divide_no_nan(g, y)


@divide_no_nan.vjp("y")
def _(g, y, out):
    return -divide_no_nan(g * out, y)


@elementwise(type_name="MulNoNan", zero_when=EITHER, quiet=True)
def multiply_no_nan(xp, x, y):
    """``x * y``, and 0 where ``y`` is 0 even if ``x`` is infinite or NaN."""
    product = x * y
    if surely_finite(xp, product):
        return product
    return xp.where(y == 0, xp.zeros_like(product), product)


@multiply_no_nan.vjp("x")
def _(g, y):
    return multiply_no_nan(g, y)


@multiply_no_nan.vjp("y")
def _(g, x):
    return multiply_no_nan(x, g)


@elementwise(name="zero_safe_divide", zero_when=FIRST, quiet=True)
def _over(xp, x, y):
    """``x / y``, and 0 where ``x`` is 0 even if ``y`` is 0: for cotangents."""
    quotient = x / y
    if surely_finite(xp, quotient):
        return quotient
    return xp.where(x == 0, xp.zeros_like(quotient), quotient)


@_over.vjp("x")
def _(g, y):
    return _over(g, y)


@_over.vjp("y")
def _(g, y, out):
    return -_over(_times(g, out), y)


@elementwise(name="zero_safe_multiply", zero_when=EITHER, quiet=True)
def _times(xp, x, y):
    """``x * y``, and 0 where one of them is 0 even if the other is not finite."""
    product = x * y
    if surely_finite(xp, product):
        return product
    return xp.where((x == 0) | (y == 0), xp.zeros_like(product), product)


@_times.vjp("x")
def _(g, y):
    return _times(g, y)


@_times.vjp("y")
def _(g, x):
    return _times(g, x)


@elementwise(type_name="FloorDiv", quiet=True)
def floordiv(xp, x, y):
    """``floor(x / y)``; its gradient is None."""
    return xp.floor_divide(x, y)


floordiv.no_gradient()


@elementwise(type_name="FloorMod", quiet=True)
def floormod(xp, x, y):
    """``x - floor(x / y) * y``: the remainder with the sign of ``y``."""
    return xp.remainder(x, y)


@floormod.vjp("x")
def _(g):
    return g


@floormod.vjp("y")
def _(g, x, y):
    return -(g * floordiv(x, y))


mod = floormod


@elementwise(type_name="Neg", zero_when=UNARY)
def negative(xp, x):
    """``-x``."""
    return xp.negative(x)


@negative.vjp("x")
def _(g):
    return -g


@elementwise(type_name="Abs", zero_when=UNARY, result_dtype=real_dtype)
def abs(xp, x):  # noqa: A001
    """``|x|``; of a complex number, its modulus. The derivative at 0 is 0."""
    return xp.abs(x)


@abs.vjp("x")
def _(g, x, out, x_dtype):
    if x_dtype.kind == "c":
        return conj(x) * cast(divide_no_nan(g, out), x_dtype)
    return g * sign(x)


@elementwise(type_name="Sign", zero_when=UNARY)
def sign(xp, x):
    """-1, 0 or 1; of a complex number ``x / |x|``, and 0 at 0."""
    return xp.sign(x)


@sign.vjp("x")
def _(g, x, x_dtype):
    if x_dtype.kind == "c":  # x / |x|, with |x| as a function of x and its conjugate
        unit = sign(x)
        radial = cast(real(g * unit), x_dtype)
        length = cast(abs(x), x_dtype)
        return divide_no_nan(g - radial * conj(unit), length)
    return g * 0.0


@elementwise(type_name="Square", zero_when=UNARY)
def square(xp, x):
    """``x * x``."""
    return xp.square(x)


@square.vjp("x")
def _(g, x):
    return g * (x + x)


multiply.primitive.on_itself = square


@elementwise(type_name="SquaredDifference", zero_when=BOTH)
def squared_difference(xp, x, y):
    """``|x - y| ** 2``, in the dtype of the inputs."""
    return xp.square(xp.abs(x - y)).astype(x.dtype)


@squared_difference.vjp("x")
def _(g, x, y, x_dtype):
    return _twice_difference(g, x, y, x_dtype)


@squared_difference.vjp("y")
def _(g, x, y, x_dtype):
    return -_twice_difference(g, x, y, x_dtype)


def _twice_difference(g, x, y, dtype):
    d = x - y
    if dtype.kind == "c":
        d, g = conj(d), cast(real(g), dtype)
    return g * (d + d)


@elementwise(type_name="Reciprocal", quiet=True, floating=True)
def reciprocal(xp, x):
    """``1 / x``."""
    return xp.reciprocal(x)


@reciprocal.vjp("x")
def _(g, out):
    return -_times(_times(g, out), out)


# -------------------------------------------------------------- powers, exponentials


@elementwise(type_name="Sqrt", zero_when=UNARY, quiet=True, floating=True)
def sqrt(xp, x):
    """``x ** 0.5``; a zero cotangent gives zero even at ``x == 0``."""
    return xp.sqrt(x)


@sqrt.vjp("x")
def _(g, out):
    return _over(g * 0.5, out)


@elementwise(name="norm_sqrt", zero_when=UNARY, quiet=True, floating=True)
def norm_sqrt(xp, x):
    """``sqrt(x)`` whose derivatives at 0 are 0: the last step of a norm."""
    return xp.sqrt(x)


@norm_sqrt.vjp("x")
def _(g, out):
    return divide_no_nan(g * 0.5, out)


@elementwise(type_name="Rsqrt", quiet=True, floating=True)
def rsqrt(xp, x):
    """``1 / sqrt(x)``."""
    return xp.reciprocal(xp.sqrt(x))


@rsqrt.vjp("x")
def _(g, x, out):
    return _over(_times(g * -0.5, out), x)


@elementwise(type_name="Pow", quiet=True)
def power(xp, x, y):
    """``x ** y``, with derivatives that are limits at ``x == 0``."""
    return xp.power(x, y)


@power.vjp("x")
def _(g, x, y):
    return _times(g, _times(y, power(x, y - 1.0)))


@power.vjp("y")
def _(g, x, out):
    return _times(g, _times(out, _log_or_zero(x)))


def _is_integer(x):
    dtype = getattr(x, "dtype", None)
    return type(x) is int if dtype is None else dtypes.as_dtype(dtype).is_integer


def pow(x, y, name=None):  # noqa: A001
    """``x ** y``.

    The derivative by ``x`` is ``y * x ** (y - 1)``, 0 where ``y`` is 0; by ``y`` it is
    ``x ** y * log(x)``, 0 where ``x`` is not positive.

    >>> pow(3.0, 2.0).numpy()
    np.float32(9.0)
    """
    if (type(y) is int or (type(y) is float and not _is_integer(x))) and y == 2:
        return square(x)  # exact, and the common case
    return power(x, y)


@elementwise(name="log_or_zero", quiet=True)
def _log_or_zero(xp, x):
    """``log(x)`` where x is positive (nonzero, if complex), else 0."""
    valid = x != 0 if x.dtype.kind == "c" else x > 0
    return xp.where(
        valid, xp.log(xp.where(valid, x, xp.ones_like(x))), xp.zeros_like(x)
    )


@_log_or_zero.vjp("x")
def _(g, x, x_dtype):
    return divide_no_nan(g, x if x_dtype.kind == "c" else maximum(x, 0.0))


@elementwise(type_name="Exp", quiet=True, floating=True)
def exp(xp, x):
    """``e ** x``."""
    return xp.exp(x)


@exp.vjp("x")
def _(g, out):  # an overflow shows, as NaN: TensorFlow's guide has log(1 + exp(100)) so
    return g * out


@elementwise(type_name="Expm1", zero_when=UNARY, quiet=True, floating=True)
def expm1(xp, x):
    """``exp(x) - 1``, exact for small ``x``."""
    return xp.expm1(x)


@expm1.vjp("x")
def _(g, out):
    return g * (out + 1.0)


@elementwise(type_name="Log", quiet=True, floating=True)
def log(xp, x):
    """The natural logarithm; a zero cotangent gives zero even at ``x == 0``."""
    return xp.log(x)


@log.vjp("x")
def _(g, x):
    return _over(g, x)


@elementwise(type_name="Log1p", zero_when=UNARY, quiet=True, floating=True)
def log1p(xp, x):
    """``log(1 + x)``, exact for small ``x``."""
    return xp.log1p(x)


@log1p.vjp("x")
def _(g, x):
    return _over(g, x + 1.0)


# -------------------------------------------------- trigonometric and hyperbolic


@elementwise(type_name="Sin", zero_when=UNARY, floating=True)
def sin(xp, x):
    """The sine of ``x`` radians."""
    return xp.sin(x)


@sin.vjp("x")
def _(g, x):
    return g * cos(x)


@elementwise(type_name="Cos", floating=True)
def cos(xp, x):
    """The cosine of ``x`` radians."""
    return xp.cos(x)


@cos.vjp("x")
def _(g, x):
    return -(g * sin(x))


@elementwise(type_name="Tan", zero_when=UNARY, floating=True)
def tan(xp, x):
    """The tangent of ``x`` radians."""
    return xp.tan(x)


@tan.vjp("x")
def _(g, out):
    return g + g * out * out


@elementwise(type_name="Asin", zero_when=UNARY, quiet=True, floating=True)
def asin(xp, x):
    """The angle from -pi/2 to pi/2 whose sine is ``x``."""
    return xp.arcsin(x)


@asin.vjp("x")
def _(g, x):
    return _over(g, sqrt(1.0 - x * x))


@elementwise(type_name="Acos", quiet=True, floating=True)
def acos(xp, x):
    """The angle from 0 to pi whose cosine is ``x``."""
    return xp.arccos(x)


@acos.vjp("x")
def _(g, x):
    return -_over(g, sqrt(1.0 - x * x))


@elementwise(type_name="Atan", zero_when=UNARY, floating=True)
def atan(xp, x):
    """The angle from -pi/2 to pi/2 whose tangent is ``x``."""
    return xp.arctan(x)


@atan.vjp("x")
def _(g, x):
    return g / (x * x + 1.0)


@elementwise(type_name="Sinh", zero_when=UNARY, quiet=True, floating=True)
def sinh(xp, x):
    """``(exp(x) - exp(-x)) / 2``."""
    return xp.sinh(x)


@sinh.vjp("x")
def _(g, x):
    return g * cosh(x)


@elementwise(type_name="Cosh", quiet=True, floating=True)
def cosh(xp, x):
    """``(exp(x) + exp(-x)) / 2``."""
    return xp.cosh(x)


@cosh.vjp("x")
def _(g, x):
    return g * sinh(x)


@elementwise(type_name="Tanh", zero_when=UNARY, floating=True)
def tanh(xp, x):
    """The hyperbolic tangent."""
    return xp.tanh(x)


@tanh.vjp("x")
def _(g, out):
    return tanh_grad(g, out)


@elementwise(zero_when=[{"g"}])
def tanh_grad(xp, g, y):
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


# ----------------------------------------------------------- extremes and rounding


@elementwise(type_name="Maximum", zero_when=BOTH)
def maximum(xp, x, y):
    """The larger of ``x`` and ``y``; where they are equal, ``x`` gets the gradient."""
    return xp.maximum(x, y)


@maximum.vjp("x")
def _(g, x, y):
    return masked(g, greater_equal(x, y))


@maximum.vjp("y")
def _(g, x, y):
    return masked(g, less(x, y))


@elementwise(type_name="Minimum", zero_when=BOTH)
def minimum(xp, x, y):
    """The smaller of ``x`` and ``y``; where they are equal, ``x`` gets the gradient."""
    return xp.minimum(x, y)


@minimum.vjp("x")
def _(g, x, y):
    return masked(g, less_equal(x, y))


@minimum.vjp("y")
def _(g, x, y):
    return masked(g, greater(x, y))


@elementwise(name="clip_by_value", type_name="ClipByValue", alike=("t", "low", "high"))
def _clip_by_value(xp, t, low, high):
    return xp.minimum(xp.maximum(t, low), high)


@_clip_by_value.vjp("t")
def _(g, t, low, high):
    return masked(g, logical_and(greater_equal(t, low), less_equal(t, high)))


@_clip_by_value.vjp("low")
def _(g, t, low, high):
    return masked(g, logical_and(less(t, low), less(low, high)))


@_clip_by_value.vjp("high")
def _(g, t, low, high):
    return masked(g, logical_or(greater(t, high), greater_equal(low, high)))


def clip_by_value(t, clip_value_min, clip_value_max, name=None):
    """``t`` limited to [``clip_value_min``, ``clip_value_max``]; the edges pass gradients.

    >>> clip_by_value([-1.0, 0.5, 9.0], 0.0, 1.0).numpy()
    array([0. , 0.5, 1. ], dtype=float32)
    """
    return _clip_by_value(t, clip_value_min, clip_value_max)


@elementwise(type_name="Round", zero_when=UNARY)
def round(xp, x):  # noqa: A001
    """The nearest integer, halves to the even one; its gradient is None."""
    return xp.rint(x) if x.dtype.kind in "fc" else x


@elementwise(type_name="Floor", zero_when=UNARY)
def floor(xp, x):
    """The largest integer not above ``x``; its gradient is None."""
    return xp.floor(x)


@elementwise(type_name="Ceil", zero_when=UNARY)
def ceil(xp, x):
    """The smallest integer not below ``x``; its gradient is None."""
    return xp.ceil(x)


for _flat in (round, floor, ceil):
    _flat.no_gradient()
