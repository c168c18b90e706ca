"""Defaults of Keras: the dtype, the order of axes, the small number of divisions.

Layers, ops, losses, optimizers, metrics and the data of `fit` read them, and import nothing
of each other: the settings stand below all of them.
"""

from __future__ import annotations

import math

from .dtypes import DType, as_dtype, float32
from .typing import DTypeLike

__all__ = [
    "default_float",
    "epsilon",
    "floatx",
    "image_data_format",
    "set_epsilon",
    "set_floatx",
    "set_image_data_format",
]

_default = float32
_epsilon = 1e-7
_data_format = "channels_last"


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

    Example:
        >>> keras.config.set_floatx("float64")
        >>> keras.config.floatx()
        'float64'
        >>> keras.config.set_floatx("float32")
    """
    global _default
    names = ("float16", "bfloat16", "float32", "float64")
    if value not in names:
        raise ValueError(f"set_floatx: value must be one of {names}, got {value!r}")
    _default = as_dtype(value)


def epsilon() -> float:
    """Return the number that losses, metrics and constraints keep from 0: 1e-7 by default.

    They clip probabilities to ``[epsilon, 1 - epsilon]`` and add it to divisors.
    """
    return _epsilon


def set_epsilon(value: float) -> None:
    """Set the number of `epsilon`, for what is computed or traced from now on.

    Raises: ``ValueError`` unless it is a positive number.

    Example:
        >>> keras.config.set_epsilon(1e-5)
        >>> keras.config.epsilon()
        1e-05
        >>> keras.config.set_epsilon(1e-7)
    """
    global _epsilon
    number = float(value)
    if not 0 < number < math.inf:
        raise ValueError(f"set_epsilon: value must be a positive number, got {value!r}")
    _epsilon = number


def image_data_format() -> str:
    """Return the order of axes for ``data_format=None``, "channels_last" by default."""
    return _data_format


def set_image_data_format(data_format: str) -> None:
    """Set the order of axes of new layers and of ops that are given none.

    Args: ``data_format``: "channels_last", as in ``[batch, height, width, channels]``, or
    "channels_first". Layers keep the one that they were made with, in files, too.

    Raises: ``ValueError`` for another string.

    Example:
        >>> keras.config.set_image_data_format("channels_first")
        >>> keras.config.image_data_format()
        'channels_first'
        >>> keras.config.set_image_data_format("channels_last")
    """
    global _data_format
    known = ("channels_first", "channels_last")
    name = str(data_format).lower()
    if name not in known:
        raise ValueError(
            f"set_image_data_format: data_format must be one of {known}, got "
            f"{data_format!r}"
        )
    _data_format = name
