"""Keras' promotion of dtypes, which the functions of `keras.ops` share.

Operands of several dtypes meet in the smallest that holds both, where a Python number
brings its kind along and no size, and an integer meets a float in the float's dtype.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable

import numpy as np

from tapewright.core.dtypes import (
    as_dtype,
    complex64,
    complex128,
    float32,
    float64,
    int32,
    uint32,
)
from tapewright.core.floatx import default_float
from tapewright.core.symbolic_dim import is_symbolic
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import P, R, TensorLike
from tapewright.ops.array.conversion import cast

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


def common_dtype(*kinds):
    """The dtype in which values of these kinds meet: dtypes, and types of Python numbers.

    >>> from tapewright import dtypes
    >>> common_dtype(dtypes.int32, float), common_dtype(dtypes.int64, dtypes.float16)
    (tf.float32, tf.float16)
    """
    return _common_dtype(default_float(), *kinds)


_WEAK = (int, float, complex)  # types of Python numbers: they bring no size along


@functools.lru_cache(maxsize=1024)
def _common_dtype(default, *kinds):
    weak, strong = set(), []
    for kind in kinds:  # compared by identity: float32 == float, as in TensorFlow
        if any([kind is each for each in _WEAK]):
            weak.add(kind)
        else:
            strong.append(as_dtype(kind))
    if complex in weak or any([d.is_complex for d in strong]):
        wide = complex128 in strong or float64 in strong
        return complex128 if wide else complex64
    floats = {d for d in strong if d.is_floating}
    if floats:
        size = max([d.size for d in floats])
        widest = [d for d in floats if d.size == size]
        return (
            widest[0] if len(widest) == 1 else float32
        )  # neither half holds the other
    if float in weak:
        return default
    whole = [d for d in strong if d.is_integer]
    if not whole:
        return int32 if int in weak else as_dtype(bool)
    dtype = as_dtype(np.result_type(*whole))
    return default if dtype.is_floating else dtype  # uint64 beside a signed one


def result_type(*dtypes):
    """The name of the dtype in which these meet; see `common_dtype`.

    >>> result_type("uint8", "int8"), result_type("bool", int)
    ('int16', 'int32')
    """
    return common_dtype(*[d or default_float() for d in dtypes or (None,)]).name


def kind_of(x):
    """The dtype of a value, or the type of a Python number, for `common_dtype`."""
    if type(x) in _WEAK:
        return type(x)
    return int if is_symbolic(x) else convert_to_tensor(x).dtype


def promote(*values: TensorLike, at_least: type | None = None) -> list[Tensor]:
    """The values as tensors of their common dtype; ``at_least=float``: of a floating one."""
    values = [
        x if type(x) in _WEAK or is_symbolic(x) else convert_to_tensor(x)
        for x in values
    ]
    kinds = [kind_of(x) for x in values]
    dtype = common_dtype(*kinds, *([] if at_least is None else [at_least]))
    return [
        cast(x, dtype) if isinstance(x, Tensor) else convert_to_tensor(x, dtype)
        for x in values
    ]


def to_floating(x: TensorLike) -> Tensor:
    """``x`` as a tensor; integers and booleans as `floatx`."""
    x = convert_to_tensor(x)
    return x if x.dtype.is_differentiable else cast(x, default_float())


def to_numbers(x: TensorLike) -> Tensor:
    """``x`` as a tensor, booleans as int32."""
    x = convert_to_tensor(x)
    return cast(x, int32) if x.dtype.is_bool else x


def keep_dtype(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: integers in the first tensor become float64, and integers again after.

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
    """``x`` as a tensor of booleans: numbers other than 0 are true."""
    x = convert_to_tensor(x)
    return x if x.dtype.is_bool else cast(x, "bool")


def to_accumulator(x: TensorLike) -> Tensor:
    """``x`` as a tensor of a dtype for sums: integers have at least 32 bits."""
    x = to_numbers(x)
    if x.dtype.is_integer and x.dtype.size < 4:
        return cast(x, uint32 if x.dtype.is_unsigned else int32)
    return x
