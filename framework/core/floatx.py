"""`floatx`: the default dtype of layers, optimizers, metrics and the data of `fit`.

These import nothing of each other, so that the setting stands below all of them.
"""

from __future__ import annotations

from .dtypes import DType, as_dtype, float32
from .typing import DTypeLike

__all__ = ["default_float", "floatx", "set_floatx"]

_default = float32


def default_float() -> DType:
    """The default dtype."""
    return _default


def floatx() -> str:
    """Return the name of the default dtype, "float32" unless `set_floatx` was called."""
    return _default.name


def set_floatx(value: DTypeLike) -> None:
    """Set the default dtype of new layers and data, a floating one.

    Tensors made of Python numbers stay float32, as in TensorFlow.

    Raises: ``ValueError`` for another dtype.

    >>> set_floatx("float64")
    >>> floatx()
    'float64'
    >>> set_floatx("float32")
    """
    global _default
    names = ("float16", "bfloat16", "float32", "float64")
    if value not in names:
        raise ValueError(f"set_floatx: value must be one of {names}, got {value!r}")
    _default = as_dtype(value)
