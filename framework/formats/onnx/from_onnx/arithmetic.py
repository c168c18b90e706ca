"""Arithmetic, comparisons, logic, casts and activations: ops on each entry.

Unlike tapewright's ops, ``Div`` truncates integers, ``Pow`` takes two dtypes, and
``Max``, ``Min``, ``Sum`` and ``Mean`` any number of operands.
"""

from __future__ import annotations

import functools
import operator

import numpy as np

from tapewright.core.tensor import convert_to_tensor
from tapewright.ops.array.conversion import bitcast, cast, identity
from tapewright.ops.array.creation import ones_like, zeros_like
from tapewright.ops.array.indexing import argmax, one_hot
from tapewright.ops.array.shape import reshape
from tapewright.ops.linalg.contraction import einsum
from tapewright.ops.linalg.matmul import matmul
from tapewright.ops.linalg.matrix_functions import det
from tapewright.ops.math.comparison import (
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    equal,
    greater,
    greater_equal,
    invert,
    is_inf,
    is_nan,
    left_shift,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    right_shift,
    where,
)
from tapewright.ops.math.elementwise import (
    abs,
    add,
    ceil,
    exp,
    expm1,
    floor,
    floordiv,
    floormod,
    log,
    maximum,
    minimum,
    multiply,
    negative,
    pow,
    reciprocal,
    rint,
    sign,
    sqrt,
    subtract,
    truediv,
    truncatediv,
    truncatemod,
)
from tapewright.ops.math.special import erf
from tapewright.ops.math.trigonometry import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    cos,
    cosh,
    sin,
    sinh,
    tan,
    tanh,
)
from tapewright.ops.nn.activation import (
    gelu,
    leaky_relu,
    log_softmax,
    relu,
    sigmoid,
    softmax,
    softplus,
    softsign,
)
from tapewright.ops.strings.numbers import as_string, to_number

from .static import axes_of, dims, formulas, known, sized

# ---------------------------------------------------------------------------- arithmetic


def _divide(a, b):
    if not a.dtype.is_integer:
        return truediv(a, b)
    # Formulas have no `truncatediv`, but sizes are not negative.
    sizes = formulas(a, b)
    if sizes is not None and all([n >= 0 for each in sizes for n in each.flat]):
        return floordiv(a, b)
    return truncatediv(a, b)


def _modulo(a, b, fmod=0):
    return truncatemod(a, b) if fmod else floormod(a, b)


def _power(a, b):
    """Compute in the dtype of ``a``, or of ``b`` if only that is floating."""
    if a.dtype == b.dtype:
        return pow(a, b)
    if a.dtype.is_integer and b.dtype.is_floating:
        return cast(pow(cast(a, b.dtype), b), a.dtype)
    return pow(a, cast(b, a.dtype))


def _fold(op):
    """Return a function of any number of operands."""
    return lambda *values: functools.reduce(op, values)


def _mean(*values):
    return truediv(functools.reduce(add, values), float(len(values)))


def _clip(x, low=None, high=None, min=None, max=None):
    """Clip to bounds, either of which may be missing; before opset 11, attributes."""
    low = min if low is None else low
    high = max if high is None else high
    x = x if low is None else maximum(x, cast(low, x.dtype))
    return x if high is None else minimum(x, cast(high, x.dtype))


def _bit_shift(a, b, direction):
    """Shift; a shift by all bits or more leaves copies of the sign, or zeros."""
    bits = 8 * a.dtype.size
    far = greater_equal(b, cast(bits, b.dtype))
    if direction == "LEFT":
        return where(far, zeros_like(a), left_shift(a, where(far, zeros_like(b), b)))
    most = right_shift(a, where(far, cast(bits - 1, b.dtype), b))
    return most if not a.dtype.is_unsigned else where(far, zeros_like(a), most)


def _is_inf(x, detect_negative=1, detect_positive=1):
    is_chosen = is_inf(x)
    if not detect_negative:
        is_chosen = logical_and(is_chosen, greater(x, zeros_like(x)))
    if not detect_positive:
        is_chosen = logical_and(is_chosen, less(x, zeros_like(x)))
    return is_chosen


def _cast(x, to, saturate=1, round_mode="up"):
    if to == x.dtype:
        return identity(x)
    if x.dtype == "string":
        return cast(to_number(x, "float64"), to)
    return as_string(x) if to == "string" else cast(x, to)


def _cast_like(x, like, saturate=1, round_mode="up"):
    return _cast(x, like.dtype)


def _bit_cast(x, to):
    x = cast(x, "uint8") if x.dtype.is_bool else x
    return cast(x, to) if to == "bool" else bitcast(x, to)


# --------------------------------------------------------------------------- comparisons


def _compared(op, python_operator):
    """Return a comparison that knows its answer for the sizes of shapes."""

    def compare(a, b):
        sizes = formulas(a, b)
        if sizes is None:
            return op(a, b)
        answers = np.frompyfunc(python_operator, 2, 1)(*sizes)
        return convert_to_tensor(np.asarray(answers, bool))

    return compare


def _where(condition, x, y):
    """Select entries; sizes of shapes stay sizes."""
    sizes = formulas(x, y)
    if sizes is None or known(condition) is None:
        return where(condition, x, y)
    return sized(np.where(known(condition).astype(bool), *sizes), x.dtype.name)


# --------------------------------------------------------------------------- activations


def _scaled(x, number):
    """Multiply by a number; nothing is computed for 1."""
    return x if number == 1.0 else x * number


def _elu(x, alpha=1.0):
    low = minimum(x, zeros_like(x))
    return where(less(x, zeros_like(x)), _scaled(expm1(low), alpha), x)


def _selu(x, alpha=1.67326319217681884765625, gamma=1.05070102214813232421875):
    return _scaled(_elu(x, alpha), gamma)


def _celu(x, alpha=1.0):
    low = minimum(x, zeros_like(x))
    return maximum(x, zeros_like(x)) + _scaled(expm1(low / alpha), alpha)


def _prelu(x, slope):
    return where(less(x, zeros_like(x)), multiply(x, slope), x)


def _leaky_relu(x, alpha=0.01):
    return leaky_relu(x, alpha)


def _hard_sigmoid(x, alpha=0.2, beta=0.5):
    return maximum(minimum(x * alpha + beta, ones_like(x)), zeros_like(x))


def _hard_swish(x):
    return x * _hard_sigmoid(x, 1.0 / 6.0, 0.5)


def _mish(x):
    return x * tanh(softplus(x))


def _swish(x, alpha=1.0):
    return x * sigmoid(_scaled(x, alpha))


def _gelu(x, approximate="none"):
    return gelu(x, approximate == "tanh")


def _thresholded_relu(x, alpha=1.0):
    return where(greater(x, cast(alpha, x.dtype)), x, zeros_like(x))


def _shrink(x, bias=0.0, lambd=0.5):
    zero, edge = zeros_like(x), cast(lambd, x.dtype)
    bias = cast(bias, x.dtype)
    low = where(less(x, negative(edge)), x + bias, zero)
    return where(greater(x, edge), x - bias, low)


def _along(op):
    """Return an op along an axis, -1 by default."""
    return lambda x, axis=-1: op(x, axis)


def _over_rows(op):
    """Return an op over all axes from ``axis`` on, as before opset 13."""

    def flat(x, axis=1):
        (axis,) = axes_of(axis, len(dims(x)))
        shape = dims(x)
        return reshape(op(reshape(x, (*shape[:axis], -1)), -1), shape)

    return flat


def _hardmax(x, axis=-1):
    return one_hot(argmax(x, axis), dims(x)[axis], axis=axis, dtype=x.dtype)


# ------------------------------------------------------------------------------ products


def _matmul(a, b):
    """Multiply matrices; a vector is a row on the left, a column on the right."""
    row, column = len(dims(a)) == 1, len(dims(b)) == 1
    out = matmul(a[None] if row else a, b[:, None] if column else b)
    if column:
        out = out[..., 0]
    return (out[..., 0] if column else out[..., 0, :]) if row else out


def _gemm(a, b, c=None, alpha=1.0, beta=1.0, transA=0, transB=0):  # noqa: N803
    product = matmul(a, b, transpose_a=bool(transA), transpose_b=bool(transB))
    product = product if alpha == 1.0 else product * cast(alpha, product.dtype)
    if c is None:
        return product
    return product + (c if beta == 1.0 else c * cast(beta, c.dtype))


def _einsum(*operands, equation):
    return einsum(equation.replace(" ", ""), *operands)


OPS = {
    "Abs": abs,
    "Acos": acos,
    "Acosh": acosh,
    "Add": add,
    "And": logical_and,
    "Asin": asin,
    "Asinh": asinh,
    "Atan": atan,
    "Atanh": atanh,
    "BitCast": _bit_cast,
    "BitShift": _bit_shift,
    "BitwiseAnd": bitwise_and,
    "BitwiseNot": invert,
    "BitwiseOr": bitwise_or,
    "BitwiseXor": bitwise_xor,
    "Cast": _cast,
    "CastLike": _cast_like,
    "Ceil": ceil,
    "Celu": _celu,
    "Clip": _clip,
    "Cos": cos,
    "Cosh": cosh,
    "Det": det,
    "Div": _divide,
    "Einsum": _einsum,
    "Elu": _elu,
    "Equal": _compared(equal, operator.eq),
    "Erf": erf,
    "Exp": exp,
    "Floor": floor,
    "Gelu": _gelu,
    "Gemm": _gemm,
    "Greater": _compared(greater, operator.gt),
    "GreaterOrEqual": _compared(greater_equal, operator.ge),
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _hard_swish,
    "Hardmax": {1: _over_rows(_hardmax), 13: _hardmax},
    "Identity": identity,
    "IsInf": _is_inf,
    "IsNaN": is_nan,
    "LeakyRelu": _leaky_relu,
    "Less": _compared(less, operator.lt),
    "LessOrEqual": _compared(less_equal, operator.le),
    "Log": log,
    "LogSoftmax": {1: _over_rows(log_softmax), 13: _along(log_softmax)},
    "MatMul": _matmul,
    "Max": _fold(maximum),
    "Mean": _mean,
    "Min": _fold(minimum),
    "Mish": _mish,
    "Mod": _modulo,
    "Mul": multiply,
    "Neg": negative,
    "Not": logical_not,
    "Or": logical_or,
    "PRelu": _prelu,
    "Pow": _power,
    "Reciprocal": reciprocal,
    "Relu": relu,
    "Round": rint,
    "Selu": _selu,
    "Shrink": _shrink,
    "Sigmoid": sigmoid,
    "Sign": sign,
    "Sin": sin,
    "Sinh": sinh,
    "Softmax": {1: _over_rows(softmax), 13: _along(softmax)},
    "Softplus": softplus,
    "Softsign": softsign,
    "Sqrt": sqrt,
    "Sub": subtract,
    "Sum": _fold(add),
    "Swish": _swish,
    "Tan": tan,
    "Tanh": tanh,
    "ThresholdedRelu": _thresholded_relu,
    "Where": _where,
    "Xor": logical_xor,
}
