"""The functions that a `Map` may name, as arithmetic on `IRValue`s.

They match NumPy's values, infinities, NaN, signs of zero and denormal numbers; the
largest errors are in docs/background/accuracy.md. They contain no branch and no call,
so that LLVM vectorizes the loop around. A combination of name and dtypes that is
missing here stays a call of NumPy.
"""

import numpy as np

from tapewright.core.dtypes import is_bfloat16

from .math import (
    arithmetic,
    exponential,
    floats,
    integers,
    logarithms,
    powers,
    trigonometry,
)

_float16, _float32 = np.dtype(np.float16), np.dtype(np.float32)


def scalar_function(writer, name, args, dtype):
    """Compute a ufunc, or one of `scalar_functions`, by name; the result has ``dtype``.

    ``args`` are values of the dtypes of NumPy's loop; see `is_supported`. float16 is
    computed in float32 and rounded, as in NumPy's loops.
    """
    dtype = np.dtype(dtype)
    if name == "cast":
        return integers.cast(*args, dtype)
    if name == "where":
        return writer.select(*args)
    args = [integers.cast(x, _computed_in(x.dtype)) for x in args]
    if name == "positive_bits":
        return integers.positive_bits(*args, dtype)
    if name == "divide":
        args = [writer.cast(x, _computed_in(dtype)) for x in args]
    function = _function(name, [x.dtype for x in args])
    if function is None:
        kinds = ", ".join([str(x.dtype) for x in args])
        raise NotImplementedError(
            f"native: {name} is not supported for {kinds}; call is_supported first"
        )
    return integers.cast(function(*args), dtype)


def is_supported(name, input_dtypes, output_dtype):
    """True if `scalar_function` supports a function for the dtypes of NumPy's loop."""
    inputs, output = [np.dtype(d) for d in input_dtypes], np.dtype(output_dtype)
    if not all([_known(d) for d in (*inputs, output)]):
        return False
    if name in ("cast", "where"):
        return True
    if name == "nextafter" and _float16 in inputs:
        return False  # float32 has other numbers beside one
    inputs = [_computed_in(d) for d in inputs]
    if name == "positive_bits":
        return inputs[0].kind == "f" and output.kind == "i"
    if name == "divide":
        return output.kind == "f"
    return _function(name, inputs) is not None


def _known(dtype):
    known = dtype.kind in "biuf" and dtype.itemsize <= 8 or is_bfloat16(dtype)
    return dtype.isnative and known


def _computed_in(dtype):
    """The dtype in which a function of a dtype is computed."""
    return _float32 if dtype == _float16 else dtype


def _function(name, dtypes):
    if name == "kept_bits":
        return integers.kept_bits if dtypes[0].kind + dtypes[1].kind == "fi" else None
    if name in _COMPARISONS and not _mixed(dtypes):
        return lambda x, y: integers.compared(_COMPARISONS[name], x, y)
    if len(set(dtypes)) > 1:
        return None
    if dtypes[0] == np.float32 and name in _FLOAT32:
        return _FLOAT32[name]
    return _TABLES.get(dtypes[0].kind, {}).get(name)


def _mixed(dtypes):
    """True if dtypes differ in another way than int64 and uint64 do."""
    return len(set(dtypes)) > 1 and {d.str[1:] for d in dtypes} != {"i8", "u8"}


def _true(x):
    return x.writer.const(True, bool)


def _false(x):
    return x.writer.const(False, bool)


def _same(x):
    return x


def _intrinsic(name):
    return lambda *args: args[0].writer.intrinsic(name, *args)


_COMPARISONS = {
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "not_equal": "ne",
    "equal": "eq",
}
_LOGICAL = {
    "logical_and": arithmetic.logical_and,
    "logical_or": arithmetic.logical_or,
    "logical_xor": arithmetic.logical_xor,
    "logical_not": arithmetic.logical_not,
}
_ARITHMETIC = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "negative": lambda x: -x,
    "positive": _same,
    "conjugate": _same,
    "square": lambda x: x * x,
}
_BITWISE = {
    "bitwise_and": lambda x, y: x & y,
    "bitwise_or": lambda x, y: x | y,
    "bitwise_xor": lambda x, y: x ^ y,
    "invert": lambda x: ~x,
}
_WHOLE = {  # of numbers that are whole and finite
    "floor": _same,
    "ceil": _same,
    "trunc": _same,
    "isfinite": _true,
    "isinf": _false,
    "isnan": _false,
}
_FLOATS = {
    **_LOGICAL,
    **_ARITHMETIC,
    "divide": lambda x, y: x / y,
    "reciprocal": lambda x: 1.0 / x,
    "absolute": floats.magnitude,
    "fabs": floats.magnitude,
    "sign": arithmetic.sign,
    "heaviside": arithmetic.heaviside,
    "rint": _intrinsic("rint"),
    "floor": _intrinsic("floor"),
    "ceil": _intrinsic("ceil"),
    "trunc": _intrinsic("trunc"),
    "maximum": arithmetic.maximum,
    "minimum": arithmetic.minimum,
    "fmax": arithmetic.fmax,
    "fmin": arithmetic.fmin,
    "isfinite": arithmetic.isfinite,
    "isinf": arithmetic.isinf,
    "isnan": floats.is_nan,
    "signbit": arithmetic.signbit,
    "copysign": _intrinsic("copysign"),
    "nextafter": arithmetic.nextafter,
    "sqrt": _intrinsic("sqrt"),
    "hypot": arithmetic.hypot,
    "exp": exponential.exp,
    "exp2": exponential.exp2,
    "expm1": exponential.expm1,
    "sinh": exponential.sinh,
    "cosh": exponential.cosh,
    "tanh": exponential.tanh,
    "log": logarithms.log,
    "log2": logarithms.log2,
    "log10": logarithms.log10,
    "log1p": logarithms.log1p,
    "logaddexp": logarithms.logaddexp,
    "arcsinh": logarithms.arcsinh,
    "arccosh": logarithms.arccosh,
    "arctanh": logarithms.arctanh,
    "power": powers.power,
    "float_power": powers.power,
    "cbrt": powers.cbrt,
    "sin": trigonometry.sin,
    "cos": trigonometry.cos,
    "tan": trigonometry.tan,
    "arcsin": trigonometry.arcsin,
    "arccos": trigonometry.arccos,
    "arctan": trigonometry.arctan,
    "arctan2": trigonometry.arctan2,
}
_FLOAT32 = {
    "fmod": powers.fmod,
    "remainder": powers.remainder,
    "floor_divide": powers.floor_divide,
}
_INTEGERS = {
    **_LOGICAL,
    **_ARITHMETIC,
    **_BITWISE,
    **_WHOLE,
    "absolute": integers.absolute,
    "sign": integers.sign,
    "maximum": integers.maximum,
    "minimum": integers.minimum,
    "fmax": integers.maximum,
    "fmin": integers.minimum,
    "floor_divide": integers.floor_divide,
    "remainder": integers.remainder,
    "fmod": integers.fmod,
    "reciprocal": integers.reciprocal,
    "left_shift": integers.left_shift,
    "right_shift": integers.right_shift,
}
_BOOLS = {
    **_LOGICAL,
    **_BITWISE,
    **_WHOLE,
    "add": lambda x, y: x | y,
    "multiply": lambda x, y: x & y,
    "absolute": _same,
    "maximum": lambda x, y: x | y,
    "fmax": lambda x, y: x | y,
    "minimum": lambda x, y: x & y,
    "fmin": lambda x, y: x & y,
}
_TABLES = {"f": _FLOATS, "i": _INTEGERS, "u": _INTEGERS, "b": _BOOLS}
