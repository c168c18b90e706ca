"""Defaults of Keras: the dtype, the order of axes, the fuzz factor epsilon.

Layers, ops, losses, optimizers, metrics and `fit` read these settings without importing
each other.
"""

from __future__ import annotations

import math

from ..dtypes import DType, as_dtype, float32
from ..typing import DTypeLike

_default = float32
_epsilon = 1e-7
_data_format = "channels_last"


def default_float() -> DType:
    """Return the default floating dtype."""
    return _default


def floatx() -> str:
    """Return the name of the default dtype: "float32", or as set by `set_floatx`.

    Example:
        >>> keras.config.floatx()
        'float32'
    """
    return _default.name


def set_floatx(value: DTypeLike) -> None:
    """Set the default floating dtype of new layers and data.

    Tensors created from Python numbers remain float32, as in TensorFlow.

    Args:
        value: Floating dtype, such as "float64".

    Raises:
        ValueError: If it is not a floating dtype.

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
    """Return the fuzz factor of losses, metrics and constraints, by default 1e-7.

    They clip probabilities to ``[epsilon, 1 - epsilon]`` and add it to divisors.

    Example:
        >>> keras.config.epsilon()
        1e-07
    """
    return _epsilon


def set_epsilon(value: float) -> None:
    """Set the fuzz factor returned by `epsilon`.

    It applies to functions that are computed or traced from now on.

    Args:
        value: Positive number.

    Raises:
        ValueError: If ``value`` is not a positive number.

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
    """Return the default ``data_format``, the order of axes: initially "channels_last".

    Example:
        >>> keras.config.image_data_format()
        'channels_last'
    """
    return _data_format


def set_image_data_format(data_format: str) -> None:
    """Set the default ``data_format`` of new layers and ops.

    Layers keep the format that they were created with, also in saved files.

    Args:
        data_format: "channels_last", as in ``[batch, height, width, channels]``, or
            "channels_first".

    Raises:
        ValueError: If ``data_format`` is another string.

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
