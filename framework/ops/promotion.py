"""Keras' dtype promotion, for `keras.ops` and the operators of Keras variables.

Operands of different dtypes are promoted to the smallest dtype that holds both. A
Python number brings its kind but no size, and an integer with a float results in the
float's dtype.
"""

from __future__ import annotations

import functools

import numpy as np

from tapewright.core.dtypes import (
    as_dtype,
    complex64,
    complex128,
    float32,
    float64,
    int32,
)
from tapewright.core.settings.floatx import default_float
from tapewright.core.shapes.symbolic_dim import is_symbolic
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import TensorLike

from .array.conversion import cast


def common_dtype(*kinds):
    """Return the dtype to which dtypes and types of Python numbers are promoted.

    Example:
        >>> from tapewright.ops.promotion import common_dtype
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
        # Neither half holds the other.
        return widest[0] if len(widest) == 1 else float32
    if float in weak:
        return default
    whole = [d for d in strong if d.is_integer]
    if not whole:
        return int32 if int in weak else as_dtype(bool)
    dtype = as_dtype(np.result_type(*whole))
    return default if dtype.is_floating else dtype  # uint64 beside a signed one


def kind_of(x):
    """Return the dtype of a value, or the type of a Python number, for `common_dtype`."""
    if type(x) in _WEAK:
        return type(x)
    return int if is_symbolic(x) else convert_to_tensor(x).dtype


def promote(*values: TensorLike, at_least: type | None = None) -> list[Tensor]:
    """Convert values to their common dtype, or to a floating one with ``at_least=float``."""
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
