"""The functions that a `Map` may name, as C expressions.

They match NumPy: NaN propagates, zeros keep their signs, integers wrap around, and
out-of-range conversions are as on x86. float16 is computed as float, and rounded after
each function; bfloat16 is only moved and converted. `PRELUDE` has functions that need
more than an expression.
"""

import numpy as np

from tapewright.core.dtypes import is_bfloat16, kind_of

from ...program.instructions.array_instructions import BoundedRead, Copy, Map, Reduce
from .kernel import c_type


def register_type(dtype):
    """Return the C type of a dtype in a register."""
    if dtype.kind == "b":
        return "int"
    is_half = dtype.str[1:] == "f2" or is_bfloat16(dtype)
    return "float" if is_half else c_type(dtype)


def scalar_function(name, args, dtypes, output):
    """Return the expression of a function by name; see `is_supported`.

    ``args`` are C names and literals; ``dtypes`` the dtypes of NumPy's loop; ``output``
    the dtype of the result.
    """
    if name == "cast":
        return _cast(args[0], dtypes[0], output)
    if name == "where":
        return f"{args[0]} ? {args[1]} : {args[2]}"
    if name == "positive_bits":
        return f"{args[0]} > 0 ? -1 : 0"
    if name == "kept_bits":
        to, back = _BITS[dtypes[0].itemsize]
        return f"{back}({to}({args[0]}) & {args[1]})"
    if name in _COMPARISONS:
        return _compared(_COMPARISONS[name], args, dtypes)
    if name == "divide" or name == "reciprocal" and dtypes[0].kind in "iu":
        wide = output if output.kind == "f" else np.dtype(np.float64)
        args = [f"({_cast(x, d, wide)})" for x, d in zip(args, dtypes)]
        quotient = " / ".join(args if name == "divide" else ["1.0", *args])
        return (
            _rounded(quotient, wide)
            if wide == output
            else _cast(quotient, wide, output)
        )
    return _from_table(name, args, dtypes[0], output)


def is_supported(name, dtypes, output):
    """Return whether `scalar_function` supports a function of these dtypes."""
    if not all([_is_known(d) for d in (*dtypes, output)]):
        return False
    if name in ("cast", "where"):
        return True
    if name == "positive_bits":
        return dtypes[0].kind == "f" and output.kind == "i"
    if name == "kept_bits":
        return dtypes[0].itemsize in _BITS and dtypes[0].kind + dtypes[1].kind == "fi"
    if name in _COMPARISONS:
        kinds = {d.str[1:] for d in dtypes}
        return len(kinds) == 1 or kinds == {"i8", "u8"}
    if name == "divide":
        return output.kind == "f"
    return len(set(dtypes)) == 1 and name in _TABLES.get(dtypes[0].kind, ())


def is_loop(instruction):
    """Return whether a thread nest can compute a map, reduction or copy."""
    return missing(instruction) is None


def missing(instruction):
    """Return the name of the unsupported part of a map, reduction or copy, or None."""
    (out,) = instruction.outputs
    dtypes = [a.dtype for a in instruction.operands]
    for d in (*dtypes, out.dtype):
        if not _is_known(d):
            return d.name
    if type(instruction) is Reduce:
        name, dtype = instruction.ufunc.__name__, out.dtype
        known = name in ("add", "multiply", "maximum", "minimum")
        known = known and is_supported(name, [dtype, dtype], dtype)
        return None if known else f"{name}.reduce"
    if isinstance(instruction, Map):
        dtypes = instruction.scalar_dtypes
        if is_supported(instruction.scalar, dtypes, out.dtype):
            return None
        return f"{instruction.scalar} of {', '.join([d.name for d in dtypes])}"
    return None if type(instruction) in (Copy, BoundedRead) else instruction.name


def literal(value, dtype):
    """Return a C constant for a number."""
    dtype, value = np.dtype(dtype), np.asarray(value, dtype)
    if kind_of(dtype) == "f":
        return _literal_of_float(value, dtype)
    number = int(value)
    if dtype.itemsize < 4 or dtype.kind == "b":
        return str(number) if number >= 0 else f"({number})"
    suffix = "u" * (dtype.kind == "u") + "ll" * (dtype.itemsize == 8)
    if dtype.kind == "i" and number == np.iinfo(dtype).min:
        return f"({number + 1}{suffix} - 1)"
    return f"{number}{suffix}" if number >= 0 else f"({number}{suffix})"


def _literal_of_float(value, dtype):
    if dtype.itemsize == 2:
        value, dtype = value.astype(np.float32), np.dtype(np.float32)
    if not np.isfinite(value):
        wide = value.view(f"i{dtype.itemsize}")
        _, back = _BITS[dtype.itemsize]
        return f"{back}({literal(wide, wide.dtype)})"
    suffix = "f" if dtype.itemsize == 4 else ""
    text = f"{float(value)!r}{suffix}"
    return f"({text})" if text.startswith("-") else text


def _is_known(dtype):
    known = dtype.kind in "biu" or dtype.str[1:] in ("f2", "f4", "f8")
    return dtype.isnative and (known or is_bfloat16(dtype))


# ----------------------------------------------------------------------- conversions

_BITS = {
    4: ("__float_as_int", "__int_as_float"),
    8: ("__double_as_longlong", "__longlong_as_double"),
}
_INTEGER_OF = {
    "i8": "long_of_{}",
    "u4": "unsigned_of_{}",
    "u8": "unsigned_long_of_{}",
}


def _cast(x, dtype, output):
    if dtype == output:
        return x
    if output.kind == "b":
        return f"{x} != 0"
    if is_bfloat16(output):
        return f"bfloat16_rounded((float){x})"
    if output.kind == "f":
        if output.itemsize > 2:
            return f"({register_type(output)}){x}"
        is_double = dtype.str[1:] == "f8"
        return f"half_rounded_double({x})" if is_double else f"half_rounded((float){x})"
    if kind_of(dtype) == "f":
        function = _INTEGER_OF.get(output.str[1:], "int_of_{}")
        x = f"{function.format(register_type(dtype))}({x})"
    return f"({register_type(output)}){x}"


def _rounded(x, dtype):
    """Round the result of float16 arithmetic to float16."""
    return f"half_rounded({x})" if dtype.str[1:] == "f2" else x


def _compared(sign, args, dtypes):
    x, y = args
    if dtypes[0] == dtypes[1]:
        return f"{x} {sign} {y}"
    if dtypes[0].kind == "u":
        mirrored = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
        return _compared(mirrored.get(sign, sign), args[::-1], dtypes[::-1])
    unsigned = f"(unsigned long long){x} {sign} {y}"
    below = sign in ("<", "<=", "!=")
    return f"{x} < 0 || {unsigned}" if below else f"{x} >= 0 && {unsigned}"


# ---------------------------------------------------------------------------- tables


def _from_table(name, args, dtype, output):
    expression = _TABLES[dtype.kind][name]
    if dtype.str[1:] == "f2" and name == "nextafter":
        expression = "nextafter_half({0}, {1})"
    size = max(4, dtype.itemsize)
    text = expression.format(
        *args,
        T=register_type(dtype),
        F="" if dtype.itemsize == 8 else "f",
        U=c_type(np.dtype(f"u{size}")),
        V="" if dtype.kind in "fb" else c_type(np.dtype(f"u{dtype.itemsize}")),
        W=8 * dtype.itemsize,
        N="int" if size == 4 else "long",
    )
    if dtype.kind == "f" and output.kind == "f" and name not in _EXACT:
        return _rounded(text, dtype)
    return text


_COMPARISONS = {
    "greater": ">",
    "greater_equal": ">=",
    "less": "<",
    "less_equal": "<=",
    "not_equal": "!=",
    "equal": "==",
}
_LOGICAL = {
    "logical_and": "{0} != 0 && {1} != 0",
    "logical_or": "{0} != 0 || {1} != 0",
    "logical_xor": "({0} != 0) != ({1} != 0)",
    "logical_not": "{0} == 0",
}
# Functions of floats that C calls by NumPy's name, or by another.
_CALLS = {
    name: name
    for name in """rint floor ceil trunc copysign nextafter sqrt hypot exp exp2 expm1 sinh
    cosh tanh log log2 log10 log1p cbrt sin cos tan fmod""".split()
} | {
    "absolute": "fabs",
    "fabs": "fabs",
    "power": "pow",
    "float_power": "pow",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
}
_BINARY = "copysign nextafter hypot fmod power float_power arctan2".split()
_FLOATS = {
    **_LOGICAL,
    **{
        name: f"{c}{{F}}({{0}}, {{1}})" if name in _BINARY else f"{c}{{F}}({{0}})"
        for name, c in _CALLS.items()
    },
    "add": "{0} + {1}",
    "subtract": "{0} - {1}",
    "multiply": "{0} * {1}",
    "negative": "-{0}",
    "positive": "{0}",
    "conjugate": "{0}",
    "square": "{0} * {0}",
    "reciprocal": "1 / {0}",
    "sign": "{0} > 0 ? 1 : {0} < 0 ? -1 : {0} == 0 ? 0 : {0}",
    # Of equal numbers, zeros of both signs among them, NumPy's vector code returns the
    # second.
    "maximum": "{0} > {1} || {0} != {0} ? {0} : {1}",
    "minimum": "{0} < {1} || {0} != {0} ? {0} : {1}",
    "fmax": "{0} > {1} || {1} != {1} ? {0} : {1}",
    "fmin": "{0} < {1} || {1} != {1} ? {0} : {1}",
    "isnan": "{0} != {0}",
    "isinf": "isinf({0}) != 0",
    "isfinite": "isfinite({0}) != 0",
    "signbit": "copysign{F}(({T})1, {0}) < 0",
    "heaviside": "heaviside_{T}({0}, {1})",
    "logaddexp": "logaddexp_{T}({0}, {1})",
    "remainder": "remainder_{T}({0}, {1})",
    "floor_divide": "floor_divide_{T}({0}, {1})",
}
_EXACT = frozenset(  # functions that give numbers of float16 for such numbers
    """negative positive conjugate absolute fabs sign heaviside rint floor ceil trunc
    maximum minimum fmax fmin copysign nextafter""".split()
)
_BITWISE = {
    "bitwise_and": "{0} & {1}",
    "bitwise_or": "{0} | {1}",
    "bitwise_xor": "{0} ^ {1}",
}
_WHOLE = {  # numbers that are whole and finite
    **{name: "{0}" for name in ("floor", "ceil", "trunc", "positive", "conjugate")},
    "isfinite": "1",
    "isinf": "0",
    "isnan": "0",
}
_UNSIGNED = {
    **_LOGICAL,
    **_BITWISE,
    **_WHOLE,
    "add": "({T})(({U}){0} + ({U}){1})",
    "subtract": "({T})(({U}){0} - ({U}){1})",
    "multiply": "({T})(({U}){0} * ({U}){1})",
    "square": "({T})(({U}){0} * ({U}){0})",
    "negative": "({T})(0 - ({U}){0})",
    "invert": "({T})~{0}",
    "absolute": "{0}",
    "sign": "{0} != 0",
    "maximum": "{0} > {1} ? {0} : {1}",
    "minimum": "{0} < {1} ? {0} : {1}",
    "fmax": "{0} > {1} ? {0} : {1}",
    "fmin": "{0} < {1} ? {0} : {1}",
    "floor_divide": "{1} == 0 ? 0 : {0} / {1}",
    "remainder": "{1} == 0 ? 0 : {0} % {1}",
    "fmod": "{1} == 0 ? 0 : {0} % {1}",
    "reciprocal": "",
    "left_shift": "({V}){1} < {W} ? ({T})(({U}){0} << ({V}){1}) : 0",
    "right_shift": "{1} < {W} ? {0} >> {1} : 0",
}
_SIGNED = _UNSIGNED | {
    "absolute": "{0} < 0 ? ({T})(0 - ({U}){0}) : {0}",
    "sign": "({0} > 0) - ({0} < 0)",
    "floor_divide": "({T})floor_divide_{N}({0}, {1})",
    "remainder": "({T})remainder_{N}({0}, {1})",
    "fmod": "({T})fmod_{N}({0}, {1})",
    "right_shift": "{0} >> (({V}){1} < {W} ? ({V}){1} : {W} - 1)",
}
_BOOLS = {
    **_LOGICAL,
    **_BITWISE,
    **_WHOLE,
    "invert": "!{0}",
    "add": "{0} | {1}",
    "multiply": "{0} & {1}",
    "absolute": "{0}",
    "maximum": "{0} | {1}",
    "fmax": "{0} | {1}",
    "minimum": "{0} & {1}",
    "fmin": "{0} & {1}",
}
_TABLES = {"f": _FLOATS, "i": _SIGNED, "u": _UNSIGNED, "b": _BOOLS}
