"""Ops that work entry by entry: arithmetic, powers, logarithms, comparisons, selection.

Inputs broadcast by NumPy's rules and share a dtype. Where a function has a corner, the
rule takes a subgradient; a zero cotangent gives a zero gradient where the derivative is
infinite (`sqrt`, `log`, `power`, `divide`, ... at zero).
"""

import numpy as np

from .. import dtypes
from ..primitive import DTypeName, primitive
from ..rules import elementwise
from ..tensor import TensorSpec, convert_to_tensor

__all__ = [
    "abs",
    "acos",
    "add",
    "asin",
    "atan",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "cast",
    "ceil",
    "clip_by_value",
    "complex",
    "conj",
    "cos",
    "cosh",
    "divide",
    "divide_no_nan",
    "equal",
    "exp",
    "expm1",
    "floor",
    "floordiv",
    "floormod",
    "greater",
    "greater_equal",
    "identity",
    "imag",
    "is_finite",
    "is_inf",
    "is_nan",
    "less",
    "less_equal",
    "log",
    "log1p",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "multiply_no_nan",
    "negative",
    "not_equal",
    "pow",
    "real",
    "reciprocal",
    "round",
    "rsqrt",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "squared_difference",
    "stop_gradient",
    "subtract",
    "tan",
    "tanh",
    "truediv",
    "where",
]

# For the diagonal rule: which inputs, being zero, make the output zero.
UNARY = [{"x"}]
BOTH = [{"x", "y"}]
EITHER = [{"x"}, {"y"}, {"x", "y"}]
FIRST = [{"x"}, {"x", "y"}]


def _half_of(dtype):
    return dtype.real_dtype


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
    return dtypes.float64 if dtype.is_integer or dtype.is_bool else dtype


@elementwise(type_name="RealDiv", zero_when=[{"x"}], result_dtype=_quotient, quiet=True)
def divide(xp, x, y):
    """``x / y``; integers are divided as float64, as TensorFlow does."""
    return (
        xp.divide(x, y) if x.dtype.kind in "fc" else xp.divide(x, y, dtype=xp.float64)
    )


@divide.vjp("x")
def _(g, y):
    return _over(g, y)


@divide.vjp("y")
def _(g, y, out):
    return -_over(_times(g, out), y)


truediv = divide


def _surely_finite(xp, values):
    """Whether no entry is infinite or NaN. A GPU is not asked: it would have to wait."""
    if xp is not np:
        return False
    total = np.vdot(values, values)  # the cheapest pass over all entries
    return total - total == 0


@elementwise(type_name="DivNoNan", zero_when=FIRST, quiet=True)
def divide_no_nan(xp, x, y):
    """``x / y``, and 0 where ``y`` is 0."""
    quotient = x / y
    if _surely_finite(xp, quotient):
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
    if _surely_finite(xp, product):
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
    if _surely_finite(xp, quotient):
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
    if _surely_finite(xp, product):
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


@elementwise(type_name="Abs", zero_when=UNARY, result_dtype=_half_of)
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


@elementwise(type_name="Reciprocal", quiet=True)
def reciprocal(xp, x):
    """``1 / x``."""
    return xp.reciprocal(x)


@reciprocal.vjp("x")
def _(g, out):
    return -_times(_times(g, out), out)


# -------------------------------------------------------------- powers, exponentials


@elementwise(type_name="Sqrt", zero_when=UNARY, quiet=True)
def sqrt(xp, x):
    """``x ** 0.5``; a zero cotangent gives zero even at ``x == 0``."""
    return xp.sqrt(x)


@sqrt.vjp("x")
def _(g, out):
    return _over(g * 0.5, out)


@elementwise(name="norm_sqrt", zero_when=UNARY, quiet=True)
def norm_sqrt(xp, x):
    """``sqrt(x)`` whose derivatives at 0 are 0: the last step of a norm."""
    return xp.sqrt(x)


@norm_sqrt.vjp("x")
def _(g, out):
    return divide_no_nan(g * 0.5, out)


@elementwise(type_name="Rsqrt", quiet=True)
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


def pow(x, y, name=None):  # noqa: A001
    """``x ** y``.

    The derivative by ``x`` is ``y * x ** (y - 1)``, 0 where ``y`` is 0; by ``y`` it is
    ``x ** y * log(x)``, 0 where ``x`` is not positive.

    >>> pow(3.0, 2.0).numpy()
    np.float32(9.0)
    """
    if (type(y) is int or type(y) is float) and y == 2:
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


@elementwise(type_name="Exp", quiet=True)
def exp(xp, x):
    """``e ** x``."""
    return xp.exp(x)


@exp.vjp("x")
def _(g, out):  # an overflow shows, as NaN: TensorFlow's guide has log(1 + exp(100)) so
    return g * out


@elementwise(type_name="Expm1", zero_when=UNARY, quiet=True)
def expm1(xp, x):
    """``exp(x) - 1``, exact for small ``x``."""
    return xp.expm1(x)


@expm1.vjp("x")
def _(g, out):
    return g * (out + 1.0)


@elementwise(type_name="Log", quiet=True)
def log(xp, x):
    """The natural logarithm; a zero cotangent gives zero even at ``x == 0``."""
    return xp.log(x)


@log.vjp("x")
def _(g, x):
    return _over(g, x)


@elementwise(type_name="Log1p", zero_when=UNARY, quiet=True)
def log1p(xp, x):
    """``log(1 + x)``, exact for small ``x``."""
    return xp.log1p(x)


@log1p.vjp("x")
def _(g, x):
    return _over(g, x + 1.0)


# -------------------------------------------------- trigonometric and hyperbolic


@elementwise(type_name="Sin", zero_when=UNARY)
def sin(xp, x):
    """The sine of ``x`` radians."""
    return xp.sin(x)


@sin.vjp("x")
def _(g, x):
    return g * cos(x)


@elementwise(type_name="Cos")
def cos(xp, x):
    """The cosine of ``x`` radians."""
    return xp.cos(x)


@cos.vjp("x")
def _(g, x):
    return -(g * sin(x))


@elementwise(type_name="Tan", zero_when=UNARY)
def tan(xp, x):
    """The tangent of ``x`` radians."""
    return xp.tan(x)


@tan.vjp("x")
def _(g, out):
    return g + g * out * out


@elementwise(type_name="Asin", zero_when=UNARY, quiet=True)
def asin(xp, x):
    """The angle from -pi/2 to pi/2 whose sine is ``x``."""
    return xp.arcsin(x)


@asin.vjp("x")
def _(g, x):
    return _over(g, sqrt(1.0 - x * x))


@elementwise(type_name="Acos", quiet=True)
def acos(xp, x):
    """The angle from 0 to pi whose cosine is ``x``."""
    return xp.arccos(x)


@acos.vjp("x")
def _(g, x):
    return -_over(g, sqrt(1.0 - x * x))


@elementwise(type_name="Atan", zero_when=UNARY)
def atan(xp, x):
    """The angle from -pi/2 to pi/2 whose tangent is ``x``."""
    return xp.arctan(x)


@atan.vjp("x")
def _(g, x):
    return g / (x * x + 1.0)


@elementwise(type_name="Sinh", zero_when=UNARY, quiet=True)
def sinh(xp, x):
    """``(exp(x) - exp(-x)) / 2``."""
    return xp.sinh(x)


@sinh.vjp("x")
def _(g, x):
    return g * cosh(x)


@elementwise(type_name="Cosh", quiet=True)
def cosh(xp, x):
    """``(exp(x) + exp(-x)) / 2``."""
    return xp.cosh(x)


@cosh.vjp("x")
def _(g, x):
    return g * sinh(x)


@elementwise(type_name="Tanh", zero_when=UNARY)
def tanh(xp, x):
    """The hyperbolic tangent."""
    return xp.tanh(x)


@tanh.vjp("x")
def _(g, out):
    return g - g * out * out


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


@elementwise(zero_when=[{"x"}, {"x", "mask"}], alike=("x",))
def masked(xp, x, mask):
    """``x`` where the boolean ``mask`` is true, else 0."""
    return _kept(xp, x, mask)


def _kept(xp, x, mask):
    if xp is np:  # whose `where` takes many times as long as a product
        product = np.multiply(x, mask)
        if _surely_finite(np, product):
            return product
    return xp.where(mask, x, xp.zeros((), x.dtype))


masked.no_gradient("mask")


@masked.vjp("x")
def _(g, mask):
    return masked(g, mask)


@elementwise(zero_when=[{"x"}, {"x", "y"}], alike=("x",))
def where_positive(xp, x, y):
    """``x`` where ``y`` is positive, else 0."""
    return _kept(xp, x, y > 0)


where_positive.no_gradient("y")


@where_positive.vjp("x")
def _(g, y):
    return where_positive(g, y)


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


# ------------------------------------------------------ comparisons, logic, bits


def _boolean(dtype):
    return dtypes.bool


@elementwise(type_name="Equal", result_dtype=_boolean)
def equal(xp, x, y):
    """Whether ``x == y``, entry by entry."""
    return xp.equal(x, y)


@elementwise(type_name="NotEqual", result_dtype=_boolean)
def not_equal(xp, x, y):
    """Whether ``x != y``, entry by entry."""
    return xp.not_equal(x, y)


@elementwise(type_name="Less", result_dtype=_boolean)
def less(xp, x, y):
    """Whether ``x < y``, entry by entry."""
    return xp.less(x, y)


@elementwise(type_name="LessEqual", result_dtype=_boolean)
def less_equal(xp, x, y):
    """Whether ``x <= y``, entry by entry."""
    return xp.less_equal(x, y)


@elementwise(type_name="Greater", result_dtype=_boolean)
def greater(xp, x, y):
    """Whether ``x > y``, entry by entry."""
    return xp.greater(x, y)


@elementwise(type_name="GreaterEqual", result_dtype=_boolean)
def greater_equal(xp, x, y):
    """Whether ``x >= y``, entry by entry."""
    return xp.greater_equal(x, y)


@elementwise(type_name="LogicalAnd", result_dtype=_boolean)
def logical_and(xp, x, y):
    """Whether both are true."""
    return xp.logical_and(x, y)


@elementwise(type_name="LogicalOr", result_dtype=_boolean)
def logical_or(xp, x, y):
    """Whether one of both is true."""
    return xp.logical_or(x, y)


@elementwise(type_name="LogicalXor", result_dtype=_boolean)
def logical_xor(xp, x, y):
    """Whether exactly one of both is true."""
    return xp.logical_xor(x, y)


@elementwise(type_name="LogicalNot", result_dtype=_boolean)
def logical_not(xp, x):
    """Whether ``x`` is false."""
    return xp.logical_not(x)


@elementwise(type_name="BitwiseAnd")
def bitwise_and(xp, x, y):
    """The bits set in both; for booleans, logical and."""
    return xp.bitwise_and(x, y)


@elementwise(type_name="BitwiseOr")
def bitwise_or(xp, x, y):
    """The bits set in one of both; for booleans, logical or."""
    return xp.bitwise_or(x, y)


@elementwise(type_name="BitwiseXor")
def bitwise_xor(xp, x, y):
    """The bits set in exactly one of both; for booleans, exclusive or."""
    return xp.bitwise_xor(x, y)


@elementwise(type_name="IsNan", result_dtype=_boolean)
def is_nan(xp, x):
    """Where ``x`` is not a number."""
    return xp.isnan(x)


@elementwise(type_name="IsInf", result_dtype=_boolean)
def is_inf(xp, x):
    """Where ``x`` is infinite."""
    return xp.isinf(x)


@elementwise(type_name="IsFinite", result_dtype=_boolean)
def is_finite(xp, x):
    """Where ``x`` is neither infinite nor NaN."""
    return xp.isfinite(x)


for _flat in (
    round, floor, ceil, equal, not_equal, less, less_equal, greater, greater_equal,
    logical_and, logical_or, logical_xor, logical_not, bitwise_and, bitwise_or,
    bitwise_xor, is_nan, is_inf, is_finite,
):  # fmt: skip
    _flat.no_gradient()


# ----------------------------------------------------------------------- selection


@elementwise(name="where", type_name="SelectV2", alike=("x", "y"), zero_when=BOTH)
def _where(xp, condition, x, y):
    return xp.where(condition, x, y)


_where.no_gradient("condition")


@_where.vjp("x")
def _(g, condition):
    return masked(g, condition)


@_where.vjp("y")
def _(g, condition):
    return masked(g, logical_not(condition))


def where(condition, x=None, y=None, name=None):
    """``x`` where ``condition`` is true, else ``y``; all three broadcast.

    With ``condition`` alone: the indices of its true entries, ``[count, rank]``, int64.

    >>> where([True, False], [1.0, 2.0], 0.0).numpy()
    array([1., 0.], dtype=float32)
    """
    if (x is None) != (y is None):
        raise ValueError("where: x and y must both be given, or neither")
    if x is None:
        return _nonzero(condition)
    return _where(condition, x, y)


@primitive(name="nonzero", type_name="Where")
def _nonzero(xp, condition):
    return xp.stack(xp.nonzero(xp.atleast_1d(condition)), axis=-1).astype(xp.int64)


_nonzero.no_gradient()


@_nonzero.infer
def _(condition):
    return TensorSpec([None, condition.shape.rank], dtypes.int64)


# ----------------------------------------------------------------- dtypes, passing on


@elementwise(name="cast", type_name="Cast", zero_when=UNARY)
def _cast(xp, x, *, dtype: DTypeName):
    if x.dtype.kind == "c" and dtypes.as_dtype(dtype).dtype.kind != "c":
        x = x.real
    return x.astype(dtypes.as_dtype(dtype).dtype)


@_cast.infer
def _(x, dtype):
    return TensorSpec(x.shape, dtype)


@_cast.vjp("x")
def _(g, x_dtype):
    return cast(g, x_dtype)


def cast(x, dtype, name=None):
    """``x`` in another dtype; of a complex number cast to a real one, the real part.

    Only between floating and complex numbers do gradients pass.
    """
    dtype = dtypes.as_dtype(dtype)
    if getattr(x, "dtype", None) == dtype and hasattr(x, "shape"):
        return x if not hasattr(type(x), "__tensor__") else convert_to_tensor(x)
    if isinstance(x, np.ndarray | np.generic) or hasattr(x, "dtype"):
        return _cast(x, dtype=dtype.name)
    return _cast(convert_to_tensor(x), dtype=dtype.name)


def _complex_of(dtype):
    return "complex64" if dtype == "float32" else "complex128"


@elementwise(
    name="complex",
    type_name="Complex",
    zero_when=[{"real", "imag"}],
    result_dtype=_complex_of,
)
def _complex(xp, real, imag):
    return real + xp.multiply(imag, xp.asarray(1j, dtype=_complex_of(real.dtype)))


@_complex.vjp("real")
def _(g):
    return real(g)


@_complex.vjp("imag")
def _(g):
    return -imag(g)


def complex(real, imag, name=None):  # noqa: A001
    """``real + i * imag`` of two float32 or float64 tensors."""
    return _complex(real, imag)


@elementwise(name="real", type_name="Real", zero_when=UNARY, result_dtype=_half_of)
def _real(xp, input):
    return xp.real(input)


@_real.vjp("input")
def _(g, input_dtype):
    return cast(g, input_dtype)


def real(input, name=None):
    """The real part; a real tensor is returned as it is."""
    return _real(input) if _is_complex(input) else input


@elementwise(name="imag", type_name="Imag", zero_when=UNARY, result_dtype=_half_of)
def _imag(xp, input):
    return xp.imag(input)


@_imag.vjp("input")
def _(g, input_dtype):
    return cast(g, input_dtype) * -1j


def imag(input, name=None):
    """The imaginary part; zeros for a real tensor."""
    return _imag(input)


@elementwise(name="conj", type_name="Conj", zero_when=UNARY)
def _conj(xp, x):
    return xp.conj(x)


@_conj.vjp("x")
def _(g):
    return conj(g)


def conj(x, name=None):
    """The complex conjugate; a real tensor is returned as it is."""
    return _conj(x) if _is_complex(x) else x


def _is_complex(x):
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        return convert_to_tensor(x).dtype.is_complex
    return dtype.kind == "c" if isinstance(dtype, np.dtype) else dtype.is_complex


@elementwise(type_name="Identity", zero_when=UNARY)
def identity(xp, x):
    """``x`` as another tensor; gradients pass."""
    return x


@identity.vjp("x")
def _(g):
    return g


@elementwise(type_name="StopGradient", zero_when=UNARY)
def stop_gradient(xp, input):
    """``input``, through which no gradient passes: it counts as a constant."""
    return input


stop_gradient.no_gradient()
