"""`keras.ops` of NumPy that go entry by entry: NumPy's names, Keras' dtypes.

Functions that need floating numbers take integers as float32; operands of two dtypes meet
in the common one. Most are a line: the op, and how its arguments are prepared.
"""

import math

from tapewright.core.dtypes import as_dtype
from tapewright.core.tensor import convert_to_tensor
from tapewright.ops.array import conversion
from tapewright.ops.array.conversion import bitcast, cast
from tapewright.ops.array.creation import ones_like
from tapewright.ops.array.shape import reshape
from tapewright.ops.math import comparison, elementwise, special, trigonometry
from tapewright.ops.math.comparison import equal as _equal
from tapewright.ops.math.comparison import where
from tapewright.ops.math.elementwise import log1p as _log1p
from tapewright.ops.math.elementwise import pow as _pow
from tapewright.ops.math.reduction import reduce_all

from .promotion import (
    binary,
    christen,
    documented,
    floating,
    floats,
    numbers,
    together,
    truth,
    unary,
)

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


# -------------------------------------------------------------- of one tensor, floating


def _rooted(x):
    return elementwise.sign(x) * _pow(elementwise.abs(x), 1 / 3)


def _sampled_sine(x):
    at_zero = _equal(x, 0.0)
    angle = where(at_zero, 1.0, x) * math.pi  # no 0 / 0, which a gradient would meet
    return where(at_zero, 1.0, trigonometry.sin(angle) / angle)


arccos = floats(trigonometry.acos)
arccosh = floats(trigonometry.acosh)
arcsin = floats(trigonometry.asin)
arcsinh = floats(trigonometry.asinh)
arctan = floats(trigonometry.atan)
arctanh = floats(trigonometry.atanh)
angle = floats(trigonometry.angle, "The angle of a complex number; 0 or pi for a real.")
cbrt = floats(_rooted, "The cube root, negative for a negative ``x``.")
ceil = floats(elementwise.ceil)
cos = floats(trigonometry.cos)
cosh = floats(trigonometry.cosh)
deg2rad = floats(lambda x: x * (math.pi / 180), "Degrees as radians.")
erf = floats(special.erf)
erfc = floats(special.erfc)
erfinv = floats(special.erfinv)
exp = floats(elementwise.exp)
exp2 = floats(lambda x: _pow(convert_to_tensor(2.0, x.dtype), x), "``2 ** x``.")
expm1 = floats(elementwise.expm1)
fabs = floats(elementwise.abs)
floor = floats(elementwise.floor)
log = floats(elementwise.log)
log10 = floats(lambda x: elementwise.log(x) / math.log(10), "The logarithm to 10.")
log1p = floats(elementwise.log1p)
log2 = floats(lambda x: elementwise.log(x) / math.log(2), "The logarithm to 2.")
rad2deg = floats(lambda x: x * (180 / math.pi), "Radians as degrees.")
reciprocal = floats(elementwise.reciprocal)
rsqrt = floats(elementwise.rsqrt)
sin = floats(trigonometry.sin)
sinc = floats(_sampled_sine, "``sin(pi x) / (pi x)``, and 1 at 0.")
sinh = floats(trigonometry.sinh)
sqrt = floats(elementwise.sqrt)
tan = floats(trigonometry.tan)
tanh = floats(trigonometry.tanh)
isfinite = floats(comparison.is_finite)
isinf = floats(comparison.is_inf)
isnan = floats(comparison.is_nan)
isneginf = floats(lambda x: comparison.less(x, -_HUGE[x.dtype]), "Whether ``-inf``.")
isposinf = floats(lambda x: comparison.greater(x, _HUGE[x.dtype]), "Whether ``inf``.")


class _Largest(dict):
    def __missing__(self, dtype):
        self[dtype] = largest = float(dtype.max)
        return largest


_HUGE = _Largest()  # dtype -> its largest number that is finite


# --------------------------------------------------------- of one tensor, of any dtype


def _truncated(x):
    if not x.dtype.is_differentiable:
        return x
    return elementwise.sign(x) * elementwise.floor(elementwise.abs(x))


def _signed(x):
    if x.dtype.is_floating:  # the sign of -0.0 shows in its quotient alone
        small = _equal(x, 0)
        by_zero = 1.0 / where(small, x, 1.0)
        return where(small, comparison.less(by_zero, 0.0), comparison.less(x, 0))
    return comparison.less(numbers(x), 0)


def _is_real(x):
    if x.dtype.is_complex:
        return _equal(conversion.imag(x), 0.0)
    return ones_like(x, "bool")


def _magnitude(x):
    return x if x.dtype.is_bool else elementwise.abs(x)


def _inverted(x):
    return comparison.logical_not(x) if x.dtype.is_bool else comparison.invert(x)


abs = absolute = unary(_magnitude, elementwise.abs.__doc__)  # noqa: A001
bitwise_invert = bitwise_not = unary(_inverted, "All bits turned round.")
conj = conjugate = unary(conversion.conj)
copy = unary(conversion.identity)
imag = unary(conversion.imag)
isreal = unary(_is_real, "Whether the imaginary part is 0.")
logical_not = unary(comparison.logical_not, prepare=truth)
negative = unary(elementwise.negative)
real = unary(conversion.real)
sign = unary(elementwise.sign, prepare=numbers)
signbit = unary(_signed, "Whether the sign is a minus, as that of -0.0 is.")
square = unary(elementwise.square, prepare=numbers)
trunc = unary(_truncated, "``x`` rounded towards 0.")


def round(x, decimals=0):  # noqa: A001
    """``x`` rounded to ``decimals`` places, halves to the even neighbour.

    >>> round([0.5, 1.55, -2.25], 1).numpy()
    array([ 0.5,  1.6, -2.2], dtype=float32)
    """
    x = convert_to_tensor(x)
    whole = x.dtype.is_integer
    if decimals == 0 or (whole and decimals > 0):
        return elementwise.round(x)
    factor = 10.0**decimals
    return cast(elementwise.round(floating(x) * factor) / factor, x.dtype)


def clip(x, x_min, x_max):
    """``x``, limited to ``[x_min, x_max]``, in the common dtype of tensors among them.

    Raises: ``TypeError`` for a Python number that is not whole beside integers.

    >>> clip([1, 5, 9], -1, 6).numpy()
    array([1, 5, 6], dtype=int32)
    """
    x = numbers(x)
    bounds = _bound("x_min", x_min, x.dtype), _bound("x_max", x_max, x.dtype)
    return elementwise.clip_by_value(*together(x, *bounds))


def _bound(name, value, dtype):
    if type(value) not in (int, float) or not dtype.is_integer:
        return value
    if value % 1:
        raise TypeError(f"clip: {name} must be whole for {dtype.name}, got {value}")
    return min(max(int(value), dtype.min), dtype.max)  # what is beyond limits nothing


def nan_to_num(x, nan=0.0, posinf=None, neginf=None):
    """``x`` with numbers for NaN and the infinities: None is the largest of the dtype.

    >>> nan_to_num([math.nan, math.inf, 1.0], posinf=9.0).numpy()
    array([0., 9., 1.], dtype=float32)
    """
    x = convert_to_tensor(x)
    if not x.dtype.is_floating:
        return x
    most = _HUGE[x.dtype]
    x = where(comparison.is_nan(x), nan, x)
    x = where(comparison.greater(x, most), most if posinf is None else posinf, x)
    return where(comparison.less(x, -most), -most if neginf is None else neginf, x)


def view(x, dtype=None):
    """The same bytes read as another dtype, along the last axis where sizes differ."""
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
    """``op``; of booleans ``other``, or with None ``op`` of them as int32."""

    def entry(x1, x2):
        if not x1.dtype.is_bool:
            return op(x1, x2)
        return op(numbers(x1), numbers(x2)) if other is None else other(x1, x2)

    entry.__doc__ = op.__doc__
    return entry


def _far_sum(x1, x2):
    large = elementwise.maximum(elementwise.abs(x1), elementwise.abs(x2))
    small = elementwise.minimum(elementwise.abs(x1), elementwise.abs(x2))
    ratio = elementwise.divide_no_nan(small, large)  # its square does not overflow
    return large * elementwise.sqrt(elementwise.square(ratio) + 1.0)


def _log_of_sum(x1, x2, base=1.0):
    distance = x1 - x2  # NaN for two infinities, which are their own result
    apart = elementwise.exp(-elementwise.abs(distance) * base)
    found = elementwise.maximum(x1, x2) + _log1p(apart) / base
    return where(comparison.is_nan(distance), x1 + x2, found)


def _step(x1, x2):
    above = where(comparison.greater(x1, 0.0), 1.0, x2)
    return where(comparison.less(x1, 0.0), 0.0, above)


def _first_if_nan(op):
    def entry(x1, x2):
        if not x1.dtype.is_floating:
            return op(x1, x2)
        x1 = where(comparison.is_nan(x1), x2, x1)
        return op(x1, where(comparison.is_nan(x2), x1, x2))

    return entry


def _remainder(x1, x2):
    return elementwise.sign(x1) * elementwise.floormod(
        elementwise.abs(x1), elementwise.abs(x2)
    )


_largest = _for_bools(elementwise.maximum, comparison.logical_or)
_smallest = _for_bools(elementwise.minimum, comparison.logical_and)

add = binary(_for_bools(elementwise.add, comparison.logical_or))
subtract = binary(elementwise.subtract)
multiply = binary(_for_bools(elementwise.multiply, comparison.logical_and))
divide = binary(elementwise.divide, "``x1 / x2``.", float)
true_divide = binary(elementwise.divide, "``x1 / x2``.", float)
divide_no_nan = binary(elementwise.divide_no_nan, None, float)
floor_divide = binary(_for_bools(elementwise.floordiv))
mod = binary(_for_bools(elementwise.floormod))
fmod = binary(
    _for_bools(_remainder), "The remainder of ``x1 / x2``, signed like ``x1``."
)
power = binary(elementwise.pow)
maximum = binary(_largest)
minimum = binary(_smallest)
fmax = binary(_first_if_nan(_largest), "`maximum`, and the other one beside NaN.")
fmin = binary(_first_if_nan(_smallest), "`minimum`, and the other one beside NaN.")
arctan2 = binary(trigonometry.atan2, None, float)
heaviside = binary(_step, "0 below 0, 1 above, and ``x2`` where ``x1`` is 0.", float)
hypot = binary(_far_sum, "``sqrt(x1 ** 2 + x2 ** 2)``, without overflow.", float)
nextafter = binary(elementwise.nextafter, None, float)
logaddexp = binary(_log_of_sum, "``log(exp(x1) + exp(x2))``, without overflow.", float)
logaddexp2 = binary(
    lambda x1, x2: _log_of_sum(x1, x2, math.log(2)),
    "``log2(2 ** x1 + 2 ** x2)``, without overflow.",
    float,
)


def ldexp(x1, x2):
    """``x1 * 2 ** x2``, with integers ``x2``."""
    x2 = convert_to_tensor(x2)
    if not x2.dtype.is_integer:
        raise TypeError(f"ldexp: x2 must hold integers, got {x2.dtype.name}")
    x1, x2 = together(x1, x2, at_least=float)
    return x1 * _pow(convert_to_tensor(2.0, x1.dtype), x2)


equal = binary(comparison.equal)
not_equal = binary(comparison.not_equal)
greater = binary(_for_bools(comparison.greater))
greater_equal = binary(_for_bools(comparison.greater_equal))
less = binary(_for_bools(comparison.less))
less_equal = binary(_for_bools(comparison.less_equal))


def _logical(op):
    def entry(x1, x2):
        return op(truth(x1), truth(x2))

    return documented(entry, op.__doc__)


logical_and = _logical(comparison.logical_and)
logical_or = _logical(comparison.logical_or)
logical_xor = _logical(comparison.logical_xor)

_XY = ("x", "y")
bitwise_and = binary(comparison.bitwise_and, names=_XY)
bitwise_or = binary(comparison.bitwise_or, names=_XY)
bitwise_xor = binary(comparison.bitwise_xor, names=_XY)
left_shift = bitwise_left_shift = binary(comparison.left_shift, names=_XY)
right_shift = bitwise_right_shift = binary(comparison.right_shift, names=_XY)


def isclose(x1, x2, rtol=1e-05, atol=1e-08, equal_nan=False):
    """``|x1 - x2| <= atol + rtol * |x2|``; NaN is close to NaN if ``equal_nan``.

    >>> isclose([1.0, 2.0], [1.0, 2.1]).numpy()
    array([ True, False])
    """
    x1, x2 = together(x1, x2)
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


def allclose(x1, x2, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Return whether all entries are close; see `isclose`."""
    return reduce_all(isclose(x1, x2, rtol, atol, equal_nan))


christen(globals())
