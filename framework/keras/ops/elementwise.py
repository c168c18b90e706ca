"""Element-wise `keras.ops` of NumPy: NumPy's names, Keras' dtypes.

Functions that need floating numbers cast integers to `floatx`; operands of two dtypes
are promoted to the common dtype. Most functions are one line: the op, and the
preparation of its arguments.
"""

from __future__ import annotations

import functools
import math

from tapewright.core.dtypes import as_dtype
from tapewright.core.messages.docstrings import summary_of
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import DTypeLike, TensorLike
from tapewright.ops.array import conversion
from tapewright.ops.array.conversion import bitcast, cast
from tapewright.ops.array.creation import ones_like
from tapewright.ops.array.shape import reshape
from tapewright.ops.math import (
    bessel,
    comparison,
    elementwise,
    smooth,
    special,
    trigonometry,
)
from tapewright.ops.math.comparison import equal as _equal
from tapewright.ops.math.comparison import where
from tapewright.ops.math.reduction import reduce_all

from .operation import ANY, FLOATS, NUMBERS, REALS, OperationFamily
from .promotion import promote, to_bool, to_floating, to_numbers

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
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "cbrt",
    "ceil",
    "clip",
    "conj",
    "conjugate",
    "copy",
    "cos",
    "cosh",
    "deg2rad",
    "divide",
    "divide_no_nan",
    "equal",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "fabs",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "greater",
    "greater_equal",
    "heaviside",
    "hypot",
    "i0",
    "imag",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "ldexp",
    "left_shift",
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
    "nan_to_num",
    "negative",
    "nextafter",
    "not_equal",
    "power",
    "rad2deg",
    "real",
    "reciprocal",
    "right_shift",
    "round",
    "rsqrt",
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
    "trunc",
    "view",
]

operation = OperationFamily(__name__, "numpy")


# -------------------------------------------------------------- of one tensor, floating


def _sinc(x):
    if not x.dtype.is_complex:
        return smooth.sinc(x)
    angle = where(_equal(x, 0.0), 1.0, x) * math.pi
    return where(_equal(x, 0.0), 1.0, trigonometry.sin(angle) / angle)


arccos = operation.floats("arccos", trigonometry.acos)
arccosh = operation.floats("arccosh", trigonometry.acosh)
arcsin = operation.floats("arcsin", trigonometry.asin)
arcsinh = operation.floats("arcsinh", trigonometry.asinh)
arctan = operation.floats("arctan", trigonometry.atan)
arctanh = operation.floats("arctanh", trigonometry.atanh)
angle = operation.floats(
    "angle",
    trigonometry.angle,
    "Element-wise angle of complex numbers, from -pi to pi; 0 or pi for real numbers.",
    "c",
)
cbrt = operation.floats(
    "cbrt", elementwise.cbrt, "Element-wise cube root, negative for negative ``x``.", ""
)
ceil = operation.floats("ceil", elementwise.ceil)
cos = operation.floats("cos", trigonometry.cos)
cosh = operation.floats("cosh", trigonometry.cosh)
deg2rad = operation.floats(
    "deg2rad",
    lambda x: x * (math.pi / 180),
    "Element-wise conversion of degrees to radians: ``x * pi / 180``.",
    args={"x": "Angles in degrees; integers are cast to `floatx`."},
)
erf = operation.floats("erf", special.erf, module="math")
erfc = operation.floats("erfc", special.erfc, module="math")
erfinv = operation.floats("erfinv", special.erfinv, module="math")
exp = operation.floats("exp", elementwise.exp)
exp2 = operation.floats("exp2", elementwise.exp2, kinds="")
expm1 = operation.floats("expm1", elementwise.expm1)
fabs = operation.floats(
    "fabs",
    elementwise.abs,
    "Element-wise absolute value ``|x|`` as a floating number.",
    "",
)
floor = operation.floats("floor", elementwise.floor)
log = operation.floats("log", elementwise.log)
log10 = operation.floats(
    "log10",
    lambda x: elementwise.log(x) / math.log(10),
    "Element-wise base-10 logarithm.",
)
log1p = operation.floats("log1p", elementwise.log1p)
log2 = operation.floats(
    "log2", lambda x: elementwise.log(x) / math.log(2), "Element-wise base-2 logarithm."
)
rad2deg = operation.floats(
    "rad2deg",
    lambda x: x * (180 / math.pi),
    "Element-wise conversion of radians to degrees: ``x * 180 / pi``.",
    args={"x": "Angles in radians; integers are cast to `floatx`."},
)
reciprocal = operation.floats("reciprocal", elementwise.reciprocal)
rsqrt = operation.floats("rsqrt", elementwise.rsqrt, module="math")
sin = operation.floats("sin", trigonometry.sin)
sinc = operation.floats(
    "sinc",
    _sinc,
    "Element-wise normalized sinc: ``sin(pi x) / (pi x)``, and 1 at 0.",
    "",
)
sinh = operation.floats("sinh", trigonometry.sinh)
sqrt = operation.floats("sqrt", elementwise.sqrt)
tan = operation.floats("tan", trigonometry.tan)
tanh = operation.floats("tanh", trigonometry.tanh)


@operation
def i0(x: TensorLike) -> Tensor:
    """Element-wise modified Bessel function of the first kind of order 0.

    Args:
        x: Input tensor; integers are cast to `floatx`, int64 to float64.
    """
    x = convert_to_tensor(x)
    return bessel.bessel_i0(
        cast(x, "float64") if x.dtype == "int64" else to_floating(x)
    )


isfinite = operation.floats("isfinite", comparison.is_finite)
isinf = operation.floats("isinf", comparison.is_inf)
isnan = operation.floats("isnan", comparison.is_nan)
isneginf = operation.floats(
    "isneginf",
    lambda x: comparison.less(x, -_LARGEST[x.dtype]),
    "Element-wise test for negative infinity.",
)
isposinf = operation.floats(
    "isposinf",
    lambda x: comparison.greater(x, _LARGEST[x.dtype]),
    "Element-wise test for positive infinity.",
)


class _LargestFinite(dict):
    def __missing__(self, dtype):
        self[dtype] = largest = float(dtype.max)
        return largest


_LARGEST = _LargestFinite()  # dtype -> its largest number that is finite


# --------------------------------------------------------- of one tensor, of any dtype


def _truncate(x):
    if not x.dtype.is_differentiable:
        return x
    return where(comparison.less(x, 0), elementwise.ceil(x), elementwise.floor(x))


def _signbit(x):
    if x.dtype.is_floating:  # the sign of -0.0 shows in its quotient alone
        small = _equal(x, 0)
        by_zero = 1.0 / where(small, x, 1.0)
        return where(small, comparison.less(by_zero, 0.0), comparison.less(x, 0))
    return comparison.less(to_numbers(x), 0)


def _is_real(x):
    if x.dtype.is_complex:
        return _equal(conversion.imag(x), 0.0)
    return ones_like(x, "bool")


@functools.wraps(elementwise.abs)
def _abs(x):
    return x if x.dtype.is_bool else elementwise.abs(x)


def _invert(x):
    return comparison.logical_not(x) if x.dtype.is_bool else comparison.invert(x)


_INVERT = "Element-wise inversion of all bits of integers; logical not for booleans."
_BITS = {"x": "Tensor of integers or booleans."}
_TRUTH = {"x": "Tensor of booleans; numbers other than 0 count as True."}

abs = absolute = operation.unary(  # noqa: A001
    "absolute", _abs, aliases="abs", same_as="abs", kinds=REALS
)
bitwise_invert = operation.unary(
    "bitwise_invert", _invert, _INVERT, args=_BITS, same_as="invert", kinds="iu"
)
bitwise_not = operation.unary("bitwise_not", _invert, _INVERT, args=_BITS)
conj = conjugate = operation.unary("conjugate", conversion.conj, aliases="conj")
copy = operation.unary(
    "copy", conversion.identity, "Copy a tensor; gradients pass through.", kinds=ANY
)
imag = operation.unary("imag", conversion.imag, same_as="imag", kinds="c")
isreal = operation.unary(
    "isreal", _is_real, "Element-wise test for an imaginary part of 0."
)
logical_not = operation.unary(
    "logical_not", comparison.logical_not, prepare=to_bool, args=_TRUTH, kinds="b"
)
negative = operation.unary("negative", elementwise.negative, kinds=NUMBERS)
real = operation.unary("real", conversion.real, same_as="real", kinds="c")
sign = operation.unary("sign", elementwise.sign, prepare=to_numbers, kinds=REALS)
signbit = operation.unary(
    "signbit", _signbit, "Element-wise test for a set sign bit, which -0.0 has as well."
)
square = operation.unary(
    "square", elementwise.square, prepare=to_numbers, kinds=NUMBERS
)
trunc = operation.unary("trunc", _truncate, "Element-wise rounding towards 0.")


@operation(same_as="round", kinds=FLOATS)
def round(x: TensorLike, decimals: int = 0) -> Tensor:  # noqa: A001
    """Element-wise rounding to a number of decimals, half to even.

    Args:
        x: Input tensor.
        decimals: Number of decimal places; negative numbers round to tens, hundreds,
            ...

    Example:
        >>> keras.ops.round([0.5, 1.55, -2.25], 1).numpy()
        array([ 0.5,  1.6, -2.2], dtype=float32)
    """
    x = convert_to_tensor(x)
    whole = x.dtype.is_integer
    if decimals == 0 or (whole and decimals > 0):
        return elementwise.round(x)
    floats = to_floating(x)
    # Positive powers, as 0.1 is not exact.
    factor = 10.0 ** max(decimals, -decimals)
    if decimals < 0:
        return cast(elementwise.round(floats / factor) * factor, x.dtype)
    return cast(elementwise.round(floats * factor) / factor, x.dtype)


@operation
def clip(x: TensorLike, x_min: TensorLike, x_max: TensorLike) -> Tensor:
    """Clip values element-wise to a range.

    The result has the common dtype of the tensors.

    Args:
        x: Input tensor.
        x_min: Lower limit; broadcasts with ``x``.
        x_max: Upper limit; broadcasts with ``x``.

    Raises:
        TypeError: If ``x`` holds integers and a limit is a Python number that is not
            whole.

    Example:
        >>> keras.ops.clip([1, 5, 9], -1, 6).numpy()
        array([1, 5, 6], dtype=int32)
    """
    x = to_numbers(x)
    bounds = _bound("x_min", x_min, x.dtype), _bound("x_max", x_max, x.dtype)
    return elementwise.clip_by_value(*promote(x, *bounds))


def _bound(name, value, dtype):
    if type(value) not in (int, float) or not dtype.is_integer:
        return value
    if value % 1:
        raise TypeError(
            f"clip: {name} must be a whole number for {dtype.name}, got {value}"
        )
    return min(max(int(value), dtype.min), dtype.max)  # what is beyond limits nothing


@operation
def nan_to_num(
    x: TensorLike,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
) -> Tensor:
    """Replace NaN and infinities by numbers.

    Args:
        x: Input tensor.
        nan: Replacement of NaN.
        posinf: Replacement of ``inf``; None means the largest number of the dtype.
        neginf: Replacement of ``-inf``; None means the lowest number of the dtype.

    Example:
        >>> import math
        >>> keras.ops.nan_to_num([math.nan, math.inf, 1.0], posinf=9.0).numpy()
        array([0., 9., 1.], dtype=float32)
    """
    x = convert_to_tensor(x)
    if not x.dtype.is_floating:
        return x
    most = _LARGEST[x.dtype]
    x = where(comparison.is_nan(x), nan, x)
    x = where(comparison.greater(x, most), most if posinf is None else posinf, x)
    return where(comparison.less(x, -most), -most if neginf is None else neginf, x)


@operation
def view(x: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Reinterpret the bytes of a tensor as another dtype.

    Args:
        x: Input tensor.
        dtype: Dtype of the result; None keeps the dtype of ``x``.

    Shapes:
        The last axis shrinks or grows by the ratio of the sizes of the dtypes.

    Example:
        >>> keras.ops.view([1.0], "int32").numpy()
        array([1065353216], dtype=int32)
    """
    x = convert_to_tensor(x)
    if dtype is None or x.dtype == dtype:
        return x
    size, new_size = x.dtype.size, as_dtype(dtype).size
    if size < new_size:
        x = reshape(x, (*x.shape[:-1], -1, new_size // size))
    out = bitcast(x, dtype)
    return reshape(out, (*out.shape[:-2], -1)) if size > new_size else out


# -------------------------------------------------------------------- of two tensors


def _for_bools(op, other=None):
    """Return ``op`` that calls ``other`` for booleans; with None, it casts them to int32."""

    @functools.wraps(op)
    def entry(x1, x2):
        if not x1.dtype.is_bool:
            return op(x1, x2)
        return op(to_numbers(x1), to_numbers(x2)) if other is None else other(x1, x2)

    return entry


def _heaviside(x1, x2):
    above = where(comparison.greater(x1, 0.0), 1.0, x2)
    return where(comparison.less(x1, 0.0), 0.0, above)


def _ignoring_nan(op):
    def entry(x1, x2):
        if not x1.dtype.is_floating:
            return op(x1, x2)
        x1 = where(comparison.is_nan(x1), x2, x1)
        return op(x1, where(comparison.is_nan(x2), x1, x2))

    return entry


_maximum = _for_bools(elementwise.maximum, comparison.logical_or)
_minimum = _for_bools(elementwise.minimum, comparison.logical_and)

add = operation.binary(
    "add", _for_bools(elementwise.add, comparison.logical_or), kinds=NUMBERS
)
subtract = operation.binary("subtract", elementwise.subtract, kinds=NUMBERS)
multiply = operation.binary(
    "multiply", _for_bools(elementwise.multiply, comparison.logical_and), kinds=NUMBERS
)
divide = operation.binary("divide", elementwise.divide, at_least=float)
true_divide = operation.binary(
    "true_divide", elementwise.divide, at_least=float, kinds="fc"
)
divide_no_nan = operation.binary(
    "divide_no_nan", elementwise.divide_no_nan, at_least=float, kinds=FLOATS
)
floor_divide = operation.binary(
    "floor_divide", _for_bools(elementwise.floordiv), kinds=REALS
)
mod = operation.binary("mod", _for_bools(elementwise.floormod), kinds=REALS)
fmod = operation.binary(
    "fmod",
    _for_bools(elementwise.truncatemod),
    "Element-wise remainder of ``x1 / x2`` with the sign of ``x1``.",
)
power = operation.binary("power", elementwise.pow, same_as="power", kinds=REALS)
maximum = operation.binary("maximum", _maximum, kinds=REALS)
minimum = operation.binary("minimum", _minimum, kinds=REALS)
fmax = operation.binary(
    "fmax", _ignoring_nan(_maximum), "Element-wise `maximum` that ignores NaN."
)
fmin = operation.binary(
    "fmin", _ignoring_nan(_minimum), "Element-wise `minimum` that ignores NaN."
)
arctan2 = operation.binary(
    "arctan2", trigonometry.atan2,
    "Element-wise arc tangent of ``x1 / x2`` in the right quadrant, from -pi to pi.",
    float, kinds=FLOATS, args={
        "x1": "The y coordinates.",
        "x2": "The x coordinates; broadcast with ``x1``.",
    },
)  # fmt: skip
heaviside = operation.binary(
    "heaviside",
    _heaviside,
    "Element-wise step function: 0 where ``x1 < 0``, 1 where ``x1 > 0``, else ``x2``.",
    float,
)
hypot = operation.binary(
    "hypot",
    trigonometry.hypot,
    "Element-wise hypotenuse: ``sqrt(x1 ** 2 + x2 ** 2)``, without overflow.",
    float,
)
nextafter = operation.binary(
    "nextafter", elementwise.nextafter, at_least=float, kinds=FLOATS
)
logaddexp = operation.binary(
    "logaddexp",
    smooth.logaddexp,
    "Element-wise ``log(exp(x1) + exp(x2))``, without overflow.",
    float,
)
logaddexp2 = operation.binary(
    "logaddexp2",
    lambda x1, x2: smooth.logaddexp(x1, x2, log_base=math.log(2.0)),
    "Element-wise ``log2(2 ** x1 + 2 ** x2)``, without overflow.",
    float,
)


@operation(call="x1 x2")
def ldexp(x1: TensorLike, x2: TensorLike) -> Tensor:
    """Element-wise ``x1 * 2 ** x2``.

    Args:
        x1: Input tensor; integers are cast to `floatx`.
        x2: Exponents, integers; broadcast with ``x1``.

    Raises:
        TypeError: If ``x2`` does not hold integers.

    Example:
        >>> keras.ops.ldexp([1.0, 3.0], [2, 1]).numpy()
        array([4., 6.], dtype=float32)
    """
    x2 = convert_to_tensor(x2)
    if not x2.dtype.is_integer:
        raise TypeError(f"ldexp: x2 must hold integers, got {x2.dtype.name}")
    # 2 ** x2 may overflow where the result does not.
    half = comparison.right_shift(x2, 1)
    rest = x2 - half
    x1, half, rest = promote(x1, half, rest, at_least=float)
    return x1 * elementwise.exp2(half) * elementwise.exp2(rest)


equal = operation.binary("equal", comparison.equal, kinds=ANY)
not_equal = operation.binary("not_equal", comparison.not_equal, kinds=ANY)
greater = operation.binary("greater", _for_bools(comparison.greater), kinds=REALS)
greater_equal = operation.binary(
    "greater_equal", _for_bools(comparison.greater_equal), kinds=REALS
)
less = operation.binary("less", _for_bools(comparison.less), kinds=REALS)
less_equal = operation.binary(
    "less_equal", _for_bools(comparison.less_equal), kinds=REALS
)


def _logical(name, op):
    def function(x1: TensorLike, x2: TensorLike) -> Tensor:
        return op(to_bool(x1), to_bool(x2))

    summary, args = summary_of(op, ["x1", "x2"]), {"x1": _TRUTH["x"]}
    return operation.named(
        name, function, summary, args=args, call="x1 x2", same_as=name, kinds="b"
    )


logical_and = _logical("logical_and", comparison.logical_and)
logical_or = _logical("logical_or", comparison.logical_or)
logical_xor = _logical("logical_xor", comparison.logical_xor)


def _bitwise(name, op, same_as=""):
    """Define the operation ``op(x, y)`` of two tensors, in their common dtype."""

    def function(x: TensorLike, y: TensorLike) -> Tensor:
        return op(*promote(x, y))

    summary = summary_of(op, ["x", "y"])
    return operation.named(
        name, function, summary, args=_BITS, call="x y", same_as=same_as, kinds="iu"
    )


bitwise_and = _bitwise("bitwise_and", comparison.bitwise_and)
bitwise_or = _bitwise("bitwise_or", comparison.bitwise_or)
bitwise_xor = _bitwise("bitwise_xor", comparison.bitwise_xor)
bitwise_left_shift = _bitwise("bitwise_left_shift", comparison.left_shift)
bitwise_right_shift = _bitwise("bitwise_right_shift", comparison.right_shift)
left_shift = _bitwise("left_shift", comparison.left_shift, "left_shift")
right_shift = _bitwise("right_shift", comparison.right_shift, "right_shift")


@operation(call="x1 x2 rtol atol")
def isclose(
    x1: TensorLike,
    x2: TensorLike,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> Tensor:
    """Element-wise test for equality within a tolerance.

    An entry is True if ``|x1 - x2| <= atol + rtol * |x2|``.

    Args:
        x1: First tensor.
        x2: Second tensor; broadcasts with ``x1``.
        rtol: Relative tolerance.
        atol: Absolute tolerance.
        equal_nan: If True, NaN equals NaN.

    Example:
        >>> keras.ops.isclose([1.0, 2.0], [1.0, 2.1]).numpy()
        array([ True, False])
    """
    x1, x2 = promote(x1, x2)
    if not x1.dtype.is_differentiable:
        return _equal(x1, x2)
    distance = elementwise.abs(x1 - x2)
    close = comparison.less_equal(distance, elementwise.abs(x2) * rtol + atol)
    close = comparison.logical_or(_equal(x1, x2), close)  # equal infinities
    if equal_nan:
        nan = comparison.logical_and(comparison.is_nan(x1), comparison.is_nan(x2))
        close = comparison.logical_or(close, nan)
    unlike = comparison.logical_and(comparison.is_inf(x2), comparison.not_equal(x1, x2))
    return comparison.logical_and(close, comparison.logical_not(unlike))


@operation(call="x1 x2", class_name="AllClose")
def allclose(
    x1: TensorLike,
    x2: TensorLike,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> Tensor:
    """Test two tensors for equality of all entries within a tolerance; see `isclose`.

    Args:
        x1: First tensor.
        x2: Second tensor; broadcasts with ``x1``.
        rtol: Relative tolerance.
        atol: Absolute tolerance.
        equal_nan: If True, NaN equals NaN.

    Returns:
        Boolean scalar.

    Example:
        >>> keras.ops.allclose([1.0, 2.0], [1.0, 2.1]).numpy()
        np.False_
    """
    return reduce_all(isclose(x1, x2, rtol, atol, equal_nan))
