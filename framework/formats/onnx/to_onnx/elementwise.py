"""Elementwise ops: arithmetic, functions, comparisons, casts."""

import math

import numpy as np

from tapewright.core.dtypes import as_dtype


def _direct(op):
    return lambda w, *operands: w.emit(op, *operands)


# Ops with the same meaning in ONNX.
_SAME = {
    "abs": "Abs", "acos": "Acos", "acosh": "Acosh", "asin": "Asin", "asinh": "Asinh",
    "atan": "Atan", "atanh": "Atanh", "cos": "Cos", "cosh": "Cosh", "elu": "Elu",
    "equal": "Equal", "erf": "Erf", "exp": "Exp", "gelu": "Gelu", "greater": "Greater",
    "greater_equal": "GreaterOrEqual", "identity": "Identity", "is_inf": "IsInf",
    "is_nan": "IsNaN", "less": "Less", "less_equal": "LessOrEqual", "log": "Log",
    "logical_and": "And", "logical_not": "Not", "logical_or": "Or",
    "logical_xor": "Xor", "maximum": "Max", "minimum": "Min", "multiply": "Mul",
    "negative": "Neg", "power": "Pow", "reciprocal": "Reciprocal", "relu": "Relu",
    "sigmoid": "Sigmoid", "sign": "Sign", "sin": "Sin", "sinh": "Sinh",
    "softplus": "Softplus", "softsign": "Softsign", "sqrt": "Sqrt",
    "stop_gradient": "Identity", "subtract": "Sub", "tan": "Tan", "tanh": "Tanh",
}  # fmt: skip
ELEMENTWISE = {name: _direct(op) for name, op in _SAME.items()}


def _translates(function):
    ELEMENTWISE[function.__name__] = function
    return function


def _of_kinds(name, op, **others):
    """Add a translation with other ops for some kinds of dtypes."""

    def translate(w, *operands):
        return w.emit(others.get(operands[0].dtype.kind, op), *operands)

    ELEMENTWISE[name] = translate


_of_kinds("bitwise_and", "BitwiseAnd", b="And")
_of_kinds("bitwise_or", "BitwiseOr", b="Or")
_of_kinds("bitwise_xor", "BitwiseXor", b="Xor")
_of_kinds("invert", "BitwiseNot", b="Not")
_of_kinds("round", "Round", i="Identity", u="Identity")
_of_kinds("floor", "Floor", i="Identity", u="Identity")
_of_kinds("ceil", "Ceil", i="Identity", u="Identity")
_of_kinds("conj", "Identity")
_of_kinds("real", "Identity")


def _like(x, number):
    """Return a constant of the dtype of an operand."""
    return np.asarray(number, x.dtype)


# ------------------------------------------------------------------------- arithmetic


@_translates
def add(w, x, y):
    return w.emit("Add", x, y)


@_translates
def rest_of_sigmoid(w, s, x):
    return w.emit("Sigmoid", w.emit("Neg", x))


@_translates
def masked(w, x, mask):
    return w.emit("Where", mask, x, _like(x, 0))


@_translates
def where(w, condition, x, y):
    if x.dtype.kind != "b":
        return w.emit("Where", condition, x, y)
    left = w.emit("And", condition, x)  # runtimes choose among numbers only
    return w.emit("Or", left, w.emit("And", w.emit("Not", condition), y))


@_translates
def add_n(w, *operands):
    if operands[0].dtype.kind == "f":
        return w.emit("Sum", *operands)
    total, *rest = operands
    for x in rest:
        total = w.emit("Add", total, x)
    return total if rest else w.emit("Identity", total)


@_translates
def divide(w, x, y):
    if x.dtype.kind == "f":
        return w.emit("Div", x, y)
    dtype = np.float32 if x.dtype.itemsize < 4 else np.float64  # as in TensorFlow
    return w.emit("Div", w.cast(x, dtype), w.cast(y, dtype))


@_translates
def square(w, x):
    return w.emit("Mul", x, x)


@_translates
def squared_difference(w, x, y):
    difference = w.emit("Sub", x, y)
    return w.emit("Mul", difference, difference)


@_translates
def multiply_add(w, x, scale, offset):
    return w.emit("Add", w.emit("Mul", x, scale), offset)


@_translates
def rsqrt(w, x):
    return w.emit("Reciprocal", w.emit("Sqrt", x))


@_translates
def cbrt(w, x):
    root = w.emit("Pow", w.emit("Abs", x), _like(x, 1 / 3))
    return w.emit("Mul", w.emit("Sign", x), root)


@_translates
def hypot(w, x, y):
    return w.emit("Sqrt", w.emit("Add", w.emit("Mul", x, x), w.emit("Mul", y, y)))


@_translates
def not_equal(w, x, y):
    return w.emit("Not", w.emit("Equal", x, y))


def _remainder(w, x, y):
    """Return the remainder with the sign of the divisor."""
    if x.dtype.kind in "iu":
        return w.emit("Mod", x, y)
    rest = w.emit("Mod", x, y, fmod=1)
    is_zero = w.emit("Equal", rest, _like(x, 0))
    differ = w.emit("Less", w.emit("Mul", rest, y), _like(x, 0))
    moves = w.emit("And", w.emit("Not", is_zero), differ)
    return w.emit("Where", moves, w.emit("Add", rest, y), rest)


@_translates
def floormod(w, x, y):
    return _remainder(w, x, y)


@_translates
def floordiv(w, x, y):
    if x.dtype.kind == "f":
        return w.emit("Floor", w.emit("Div", x, y))
    if x.dtype.kind == "u":
        return w.emit("Div", x, y)
    return w.emit("Div", w.emit("Sub", x, w.emit("Mod", x, y)), y)


@_translates
def truncatediv(w, x, y):
    quotient = w.emit("Div", x, y)
    if x.dtype.kind != "f":
        return quotient
    size = w.emit("Floor", w.emit("Abs", quotient))
    return w.emit("Mul", w.emit("Sign", quotient), size)


@_translates
def truncatemod(w, x, y):
    return w.emit("Mod", x, y, fmod=1)


@_translates
def clip_by_value(w, t, low, high):
    return w.emit("Min", w.emit("Max", t, low), high)


@_translates
def is_finite(w, x):
    if x.dtype.kind != "f":
        return w.emit("Equal", x, x)
    return w.emit("Less", w.emit("Abs", x), _like(x, np.inf))


@_translates
def left_shift(w, x, y):
    if x.dtype.kind == "u":
        return w.emit("BitShift", x, y, direction="LEFT")
    return w.emit("Mul", x, w.emit("Pow", _like(x, 2), y))


@_translates
def right_shift(w, x, y):
    if x.dtype.kind == "u":
        return w.emit("BitShift", x, y, direction="RIGHT")
    factor = w.emit("Pow", _like(x, 2), y)
    return w.emit("Div", w.emit("Sub", x, w.emit("Mod", x, factor)), factor)


# ------------------------------------------------------- values instead of NaN and inf


def _unless(w, is_zero, value, x):
    """Return ``value``, but zero where a condition holds."""
    return w.emit("Where", is_zero, _like(x, 0), value)


@_translates
def divide_no_nan(w, x, y):
    return _unless(w, w.emit("Equal", y, _like(y, 0)), w.emit("Div", x, y), x)


@_translates
def multiply_no_nan(w, x, y):
    return _unless(w, w.emit("Equal", y, _like(y, 0)), w.emit("Mul", x, y), x)


@_translates
def xlogy(w, x, y):
    value = w.emit("Mul", x, w.emit("Log", y))
    return _unless(w, w.emit("Equal", x, _like(x, 0)), value, x)


@_translates
def xlog1py(w, x, y):
    value = w.emit("Mul", x, log1p(w, y))
    return _unless(w, w.emit("Equal", x, _like(x, 0)), value, x)


@_translates
def xdivy(w, x, y):
    return _unless(w, w.emit("Equal", x, _like(x, 0)), w.emit("Div", x, y), x)


@_translates
def where_positive(w, x, y):
    return w.emit("Where", w.emit("Greater", y, _like(y, 0)), x, _like(x, 0))


# -------------------------------------------------------------------------- functions


@_translates
def exp2(w, x):
    return w.emit("Exp", w.emit("Mul", x, _like(x, math.log(2))))


@_translates
def log1p(w, x):
    # log(u) * x / (u - 1) for u = 1 + x is exact where u is rounded (Kahan).
    one = _like(x, 1)
    u = w.emit("Add", x, one)
    rounded = w.emit("Sub", u, one)
    exact = w.emit("Mul", w.emit("Log", u), w.emit("Div", x, rounded))
    small = w.emit("Equal", rounded, _like(x, 0))
    large = w.emit("IsInf", u)
    return w.emit("Where", small, x, w.emit("Where", large, u, exact))


@_translates
def expm1(w, x):
    # (u - 1) * x / log(u) for u = exp(x) (Kahan); log(u) is -inf, inf at the ends.
    one = _like(x, 1)
    u = w.emit("Exp", x)
    difference, log = w.emit("Sub", u, one), w.emit("Log", u)
    exact = w.emit("Mul", difference, w.emit("Div", x, log))
    near = w.emit("Less", w.emit("Abs", x), one)
    small = w.emit("Equal", difference, _like(x, 0))
    exact = w.emit("Where", small, x, exact)
    return w.emit("Where", near, exact, difference)


@_translates
def erfc(w, x):
    return w.emit("Sub", _like(x, 1), w.emit("Erf", x))


@_translates
def gelu_by_tanh(w, x):
    return w.emit("Gelu", x, approximate="tanh")


@_translates
def silu(w, x):
    return w.emit("Mul", x, w.emit("Sigmoid", x))


@_translates
def leaky_relu(w, x, *, alpha):
    if alpha is None:
        return w.emit("LeakyRelu", x)
    return w.emit("LeakyRelu", x, alpha=float(alpha))


@_translates
def tanh_shrink(w, x):
    return w.emit("Sub", x, w.emit("Tanh", x))


@_translates
def squareplus(w, x, *, b):
    root = w.emit("Sqrt", w.emit("Add", w.emit("Mul", x, x), _like(x, b)))
    return w.emit("Mul", w.emit("Add", x, root), _like(x, 0.5))


@_translates
def log_cosh(w, x):
    # |x| + log1p(exp(-2 |x|)) - log(2), without overflow
    size = w.emit("Abs", x)
    twice = w.emit("Mul", size, _like(x, -2))
    small = log1p(w, _as_operand(x, w.emit("Exp", twice)))
    return w.emit("Sub", w.emit("Add", size, small), _like(x, math.log(2)))


@_translates
def logaddexp(w, x, y, *, log_base):
    low, high = w.emit("Min", x, y), w.emit("Max", x, y)
    difference = w.emit("Sub", low, high)
    scaled = w.emit("Mul", difference, _like(x, log_base))
    rest = log1p(w, _as_operand(x, w.emit("Exp", scaled)))
    rest = w.emit("Div", rest, _like(x, log_base))
    # The difference of equal infinities is NaN.
    equal = w.emit("Equal", low, high)
    rest = w.emit("Where", equal, _like(x, math.log(2) / log_base), rest)
    return w.emit("Add", high, rest)


@_translates
def atan2(w, y, x):
    zero, pi = _like(x, 0), _like(x, math.pi)
    plain = w.emit("Atan", w.emit("Div", y, x))
    below = w.emit("Less", y, zero)
    turn = w.emit("Where", below, _like(x, -math.pi), pi)
    turned = w.emit("Where", w.emit("Less", x, zero), w.emit("Add", plain, turn), plain)
    upright = w.emit("Mul", w.emit("Sign", y), _like(x, math.pi / 2))
    return w.emit("Where", w.emit("Equal", x, zero), upright, turned)


@_translates
def sigmoid_cross_entropy_with_logits(w, labels, logits):
    # max(x, 0) - x * y + log1p(exp(-|x|))
    part = w.emit("Sub", w.emit("Relu", logits), w.emit("Mul", logits, labels))
    small = w.emit("Exp", w.emit("Neg", w.emit("Abs", logits)))
    return w.emit("Add", part, log1p(w, _as_operand(logits, small)))


def _as_operand(x, name):
    """Wrap a name as an operand with the shape and dtype of ``x``."""
    return type(x)(x.shape, x.dtype, None, name)


# ------------------------------------------------------------------------------ casts


@_translates
def cast(w, x, *, dtype):
    dtype = _numpy_dtype(dtype)
    if dtype == x.dtype:
        return w.emit("Identity", x)
    return w.cast(x, dtype)


@_translates
def saturate_cast(w, x, *, dtype):
    dtype = _numpy_dtype(dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        low, high = (_inside(n, x.dtype) for n in (limits.min, limits.max))
        x = w.emit("Min", w.emit("Max", x, low), high)
    elif x.dtype.kind == "f" and dtype.itemsize < x.dtype.itemsize:
        most = np.asarray(np.finfo(dtype).max, x.dtype)
        x = w.emit("Min", w.emit("Max", x, -most), most)
    return w.cast(x, dtype)


def _inside(limit, dtype):
    """Return the representable number nearest to a limit, without exceeding it."""
    if dtype.kind in "iu":
        own = np.iinfo(dtype)
        return np.asarray(min(max(limit, own.min), own.max), dtype)
    number = dtype.type(limit)
    beyond = int(number) > limit if limit > 0 else int(number) < limit
    return np.asarray(np.nextafter(number, dtype.type(0)) if beyond else number)


def _numpy_dtype(dtype):
    return as_dtype(dtype).dtype
