"""Conversions of arguments that `keras.ops` functions share; see `ops/promotion.py`."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

from tapewright.core.dtypes import float64, int32, uint32
from tapewright.core.settings.floatx import default_float
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import P, R, TensorLike
from tapewright.ops.array.conversion import cast
from tapewright.ops.promotion import common_dtype, kind_of, promote

__all__ = [
    "common_dtype",
    "keep_dtype",
    "kind_of",
    "promote",
    "result_type",
    "to_accumulator",
    "to_bool",
    "to_floating",
    "to_numbers",
]


def result_type(*dtypes):
    """Return the name of the common dtype; see `common_dtype`.

    Example:
        >>> from tapewright.keras.ops.promotion import result_type
        >>> result_type("uint8", "int8"), result_type("bool", int)
        ('int16', 'int32')
    """
    return common_dtype(*[d or default_float() for d in dtypes or (None,)]).name


def to_floating(x: TensorLike) -> Tensor:
    """Return ``x`` as a tensor; integers and booleans are cast to `floatx`."""
    x = convert_to_tensor(x)
    return x if x.dtype.is_differentiable else cast(x, default_float())


def to_numbers(x: TensorLike) -> Tensor:
    """Return ``x`` as a tensor; booleans are cast to int32."""
    x = convert_to_tensor(x)
    return cast(x, int32) if x.dtype.is_bool else x


def keep_dtype(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: cast integers in the first tensor to float64, and the result back.

    For functions that move, compare or add entries, exactly up to ``2 ** 53``.
    """

    name = next(iter(inspect.signature(function).parameters))

    @functools.wraps(function)
    def entry(*args, **kwargs):
        x, args = (args[0], args[1:]) if args else (kwargs.pop(name), ())
        x = convert_to_tensor(x)
        if x.dtype.is_differentiable:
            return function(x, *args, **kwargs)
        return cast(function(cast(x, float64), *args, **kwargs), x.dtype)

    return entry


def to_bool(x: TensorLike) -> Tensor:
    """Return ``x`` as a boolean tensor; numbers other than 0 are true."""
    x = convert_to_tensor(x)
    return x if x.dtype.is_bool else cast(x, "bool")


def to_accumulator(x: TensorLike) -> Tensor:
    """Return ``x`` as a tensor of a dtype for sums: integers have at least 32 bits."""
    x = to_numbers(x)
    if x.dtype.is_integer and x.dtype.size < 4:
        return cast(x, uint32 if x.dtype.is_unsigned else int32)
    return x
