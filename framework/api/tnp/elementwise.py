"""`tw.experimental.numpy`: element-wise functions and comparisons."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from tapewright.core.messages.docstrings import ARGUMENTS
from tapewright.core.dtypes import float32, float64, int8
from tapewright.core.tensor import Tensor
from tapewright.core.typing import TensorLike
from tapewright.keras import ops
from tapewright.ops.array import conversion
from tapewright.ops.math import comparison, elementwise
from tapewright.ops.math.reduction import reduce_all
from tapewright.ops.nn.activation import relu

from .definition import define
from .promotion import arrays, asarray, bools, floats, promote, promote_floats

__all__ = [
    "abs",
    "absolute",
    "add",
    "allclose",
    "angle",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "around",
    "array_equal",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "cbrt",
    "ceil",
    "clip",
    "conj",
    "conjugate",
    "cos",
    "cosh",
    "deg2rad",
    "divide",
    "divmod",
    "equal",
    "exp",
    "exp2",
    "expm1",
    "fabs",
    "fix",
    "float_power",
    "floor",
    "floor_divide",
    "gcd",
    "greater",
    "greater_equal",
    "heaviside",
    "hypot",
    "imag",
    "isclose",
    "iscomplex",
    "iscomplexobj",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "isrealobj",
    "lcm",
    "less",
    "less_equal",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "power",
    "rad2deg",
    "real",
    "reciprocal",
    "remainder",
    "round",
    "sign",
    "signbit",
    "sin",
    "sinc",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "true_divide",
]

# ------------------------------------- of one array; integers and booleans as float64

arccos = define(ops.arccos, floats, "x")
arccosh = define(ops.arccosh, floats, "x")
arcsin = define(ops.arcsin, floats, "x")
arcsinh = define(ops.arcsinh, floats, "x")
arctan = define(ops.arctan, floats, "x")
arctanh = define(ops.arctanh, floats, "x")
cbrt = define(ops.cbrt, floats, "x")
ceil = define(ops.ceil, floats, "x")
cos = define(ops.cos, floats, "x")
cosh = define(ops.cosh, floats, "x")
deg2rad = define(ops.deg2rad, floats, "x")
exp = define(ops.exp, floats, "x")
exp2 = define(ops.exp2, floats, "x")
expm1 = define(ops.expm1, floats, "x")
fix = define(ops.trunc, floats, "x", name="fix")
floor = define(ops.floor, floats, "x")
isfinite = define(ops.isfinite, floats, "x")
isinf = define(ops.isinf, floats, "x")
isnan = define(ops.isnan, floats, "x")
isneginf = define(ops.isneginf, floats, "x")
isposinf = define(ops.isposinf, floats, "x")
log = define(ops.log, floats, "x")
log10 = define(ops.log10, floats, "x")
log1p = define(ops.log1p, floats, "x")
log2 = define(ops.log2, floats, "x")
rad2deg = define(ops.rad2deg, floats, "x")
sin = define(ops.sin, floats, "x")
sinc = define(ops.sinc, floats, "x")
sinh = define(ops.sinh, floats, "x")
sqrt = define(ops.sqrt, floats, "x")
tan = define(ops.tan, floats, "x")
tanh = define(ops.tanh, floats, "x")


def angle(z: TensorLike, deg: bool = False) -> Tensor:
    """Element-wise angle of complex numbers.

    The angle of a real number is 0 or pi.

    Args:
        z: Input tensor.
        deg: If True, return degrees instead of radians.

    Example:
        >>> tw.experimental.numpy.angle([1j, -1.0], deg=True).numpy()
        array([ 90., 180.])
    """
    radians = ops.angle(*floats(z))
    return ops.rad2deg(radians) if deg else radians


# ----------------------------------------------------------- of one array, of its dtype

_X = {"x": ARGUMENTS["x"]}

abs = absolute = define(ops.absolute, arrays, "x")  # noqa: A001
bitwise_not = define(ops.bitwise_not, arrays, "x")
conj = conjugate = define(ops.conjugate, arrays, "x")
fabs = define(ops.absolute, arrays, "x", name="fabs")
imag = define(ops.imag, arrays, "val")
isreal = define(ops.isreal, arrays, "x")
logical_not = define(ops.logical_not, bools, "x")
negative = define(ops.negative, arrays, "x")
positive = define(
    conversion.identity,
    arrays,
    "x",
    "Element-wise ``+x``: return ``x`` unchanged, of any dtype.",
    name="positive",
    args=_X,
)
real = define(ops.real, arrays, "val")
reciprocal = define(elementwise.reciprocal, arrays, "x", args=_X)
sign = define(elementwise.sign, arrays, "x", args=_X)
signbit = define(ops.signbit, arrays, "x")
square = define(elementwise.square, arrays, "x", args=_X)


def iscomplex(x: TensorLike) -> Tensor:
    """Element-wise test for a nonzero imaginary part.

    Args:
        x: Input tensor.
    """
    return comparison.logical_not(isreal(x))


def iscomplexobj(x: TensorLike) -> bool:
    """Return whether an array has a complex dtype.

    Args:
        x: Input tensor.
    """
    return asarray(x).dtype.is_complex


def isrealobj(x: TensorLike) -> bool:
    """Return whether an array has a dtype that is not complex.

    Args:
        x: Input tensor.
    """
    return not iscomplexobj(x)


def around(a: TensorLike, decimals: int = 0) -> Tensor:
    """Element-wise rounding to a number of decimals; halves round to even.

    Args:
        a: Input tensor.
        decimals: Number of decimal places; negative numbers round to tens, hundreds,
            ...

    Example:
        >>> tw.experimental.numpy.round([1.25, 12.5, 17.0], -1).numpy()
        array([ 0., 10., 20.])
    """
    a = asarray(a)
    return conversion.cast(ops.round(*floats(a), decimals), a.dtype)


round = around  # noqa: A001


# --------------------------------------------- of two arrays, in the dtype where they meet


def _numbers(*values):
    """Promote the values to a common dtype, int8 for booleans."""
    values = promote(*values)
    return [conversion.cast(x, int8) if x.dtype.is_bool else x for x in values]


def _quotients(*values):
    """Promote the values to the dtype of their quotient: float32 for small integers."""
    values = promote(*values)
    dtype = values[0].dtype
    if dtype.is_differentiable:
        return values
    dtype = float32 if dtype.is_integer and dtype.size < 4 else float64
    return [conversion.cast(x, dtype) for x in values]


add = define(ops.add, promote, "x1 x2")
subtract = define(ops.subtract, promote, "x1 x2")
multiply = define(ops.multiply, promote, "x1 x2")
divide = define(ops.divide, _quotients, "x1 x2")
true_divide = define(ops.true_divide, _quotients, "x1 x2")
floor_divide = define(ops.floor_divide, _numbers, "x1 x2")
mod = define(ops.mod, _numbers, "x1 x2")
remainder = define(ops.mod, _numbers, "x1 x2", name="remainder")
power = define(ops.power, _numbers, "x1 x2")
float_power = define(ops.power, _numbers, "x1 x2", name="float_power")
minimum = define(ops.minimum, promote, "x1 x2")
arctan2 = define(ops.arctan2, promote_floats, "x1 x2")
heaviside = define(ops.heaviside, promote_floats, "x1 x2")
hypot = define(ops.hypot, promote_floats, "x1 x2")
logaddexp = define(ops.logaddexp, promote_floats, "x1 x2")
logaddexp2 = define(ops.logaddexp2, promote_floats, "x1 x2")
nextafter = define(ops.nextafter, promote_floats, "x1 x2")
gcd = define(ops.gcd, promote, "x1 x2")
lcm = define(ops.lcm, promote, "x1 x2")
bitwise_and = define(ops.bitwise_and, promote, "x1 x2")
bitwise_or = define(ops.bitwise_or, promote, "x1 x2")
bitwise_xor = define(ops.bitwise_xor, promote, "x1 x2")
equal = define(ops.equal, promote, "x1 x2")
not_equal = define(ops.not_equal, promote, "x1 x2")
greater = define(ops.greater, promote, "x1 x2")
greater_equal = define(ops.greater_equal, promote, "x1 x2")
less = define(ops.less, promote, "x1 x2")
less_equal = define(ops.less_equal, promote, "x1 x2")
logical_and = define(ops.logical_and, bools, "x1 x2")
logical_or = define(ops.logical_or, bools, "x1 x2")
logical_xor = define(ops.logical_xor, bools, "x1 x2")
isclose = define(ops.isclose, promote, "a b")
allclose = define(ops.allclose, promote, "a b")


def divmod(x1: TensorLike, x2: TensorLike) -> tuple[Tensor, Tensor]:  # noqa: A001
    """Element-wise quotient and remainder: `floor_divide` and `mod`.

    Args:
        x1: Dividend.
        x2: Divisor; broadcasts with ``x1``.
    """
    return floor_divide(x1, x2), mod(x1, x2)


def maximum(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Element-wise maximum; for a tensor and the number 0 it is `nn.relu`.

    Args:
        x1: First tensor.
        x2: Second tensor; broadcasts with ``x1``.

    Example:
        >>> tw.experimental.numpy.maximum(tw.constant([-1.0, 2.0]), 0).numpy()
        array([0., 2.], dtype=float32)
    """
    if type(x1) is Tensor and not x1.dtype.is_bool and _is_zero(x2):
        return relu(x1)  # whose derivative at 0 is 0
    return ops.maximum(*promote(x1, x2))


def _is_zero(x: Any) -> bool:
    return (
        isinstance(x, numbers.Real) and not isinstance(x, (bool, np.bool_)) and x == 0
    )


def clip(a: TensorLike, a_min: TensorLike | None, a_max: TensorLike | None) -> Tensor:
    """Clip entries to the range from ``a_min`` to ``a_max``.

    Args:
        a: Input tensor.
        a_min: Lower bound, or None for no bound; broadcasts with ``a``.
        a_max: Upper bound, or None for no bound; broadcasts with ``a``.

    Raises:
        ValueError: If both bounds are None.

    Example:
        >>> tw.experimental.numpy.clip([1, 5, 9], 2, None).numpy()
        array([2, 5, 9])
    """
    if a_min is None and a_max is None:
        raise ValueError("clip: a_min and a_max must not both be None")
    if a_min is None:
        return minimum(a, a_max)
    if a_max is None:
        return maximum(a, a_min)
    return elementwise.clip_by_value(*promote(a, a_min, a_max))


def array_equal(a1: TensorLike, a2: TensorLike) -> Tensor:
    """Return whether two arrays have the same shape and equal entries, as a scalar.

    Args:
        a1: First tensor.
        a2: Second tensor.

    Example:
        >>> tw.experimental.numpy.array_equal([1, 2], [1.0, 2.0]).numpy()
        np.True_
        >>> tw.experimental.numpy.array_equal([1, 1], [1]).numpy()
        np.False_
    """
    a1, a2 = promote(a1, a2)
    if tuple(a1.shape) != tuple(a2.shape):
        return asarray(False)
    return reduce_all(comparison.equal(a1, a2))
