"""Python's builtin functions that also accept traced tensors."""

import builtins

from tapewright.core.tensor import convert_to_tensor, is_tensor
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import range as tensor_range
from tapewright.ops.array.joining import stack
from tapewright.ops.math.reduction import (
    reduce_all,
    reduce_any,
    reduce_max,
    reduce_min,
    reduce_sum,
)

from .conditions import is_traced


def replacement_of(function):
    """Return the function that converted code calls instead of a builtin function."""
    return next((new for old, new in _REPLACEMENTS if old is function), function)


def _int(x=0, *base):
    return _to_number(x, "int32") if is_traced(x) and not base else int(x, *base)


def _float(x=0.0):
    return _to_number(x, "float32") if is_traced(x) else float(x)


def _to_number(x, dtype):
    """Convert to a dtype, or to its 64-bit version, which loses nothing of a wide tensor."""
    x = convert_to_tensor(x)
    wide = dtype.replace("32", "64")
    return cast(x, wide if x.dtype.name in ("int64", "float64") else dtype)


def _bool(x=False):
    return cast(x, "bool") if is_traced(x) else bool(x)


def _range(*limits):
    return tensor_range(*limits) if any(map(is_traced, limits)) else range(*limits)


def _all(values):
    return reduce_all(_as_row(values)) if _hold_traced(values) else all(values)


def _any(values):
    return reduce_any(_as_row(values)) if _hold_traced(values) else any(values)


def _sum(values, start=0):
    return reduce_sum(values, 0) + start if is_traced(values) else sum(values, start)


def _max(*values, **options):
    return _extreme(max, reduce_max, values, options)


def _min(*values, **options):
    return _extreme(min, reduce_min, values, options)


def _extreme(function, reduction, values, options):
    whole = values[0] if len(values) == 1 else values
    if options or not _hold_traced(whole):
        return function(*values, **options)
    return reduction(_as_row(whole), 0)


def _as_row(values):
    return values if is_tensor(values) else stack(list(values))


def _hold_traced(values):
    if is_tensor(values):
        return is_traced(values)
    return isinstance(values, (list, tuple)) and any(map(is_traced, values))


_REPLACEMENTS = [
    (getattr(builtins, function.__name__[1:]), function)
    for function in (_int, _float, _bool, _range, _all, _any, _sum, _max, _min)
]
