"""Literals: config values that JSON cannot represent, such as arrays and slices.

The forms follow Keras: ``{"class_name": "__numpy__", "config": {...}}``, ...
"""

import math
from typing import Any

import numpy as np

from tapewright.core.dtypes import DType, as_dtype, kind_of

from .load_errors import load_error

_MAX_ENTRIES = 10_000_000  # of an array in a config
_NAMES = ("__numpy__", "__tensor__", "__slice__", "__ellipsis__", "__bytes__")


def encode_literal(value: Any) -> dict | None:
    """Return the form of a value, or None if it needs no special form.

    Example:
        >>> from tapewright.serialization.literals import encode_literal
        >>> encode_literal(slice(0, 2))
        {'class_name': '__slice__', 'config': {'start': 0, 'stop': 2, 'step': None}}
    """
    if isinstance(value, slice):
        parts = {name: _index(getattr(value, name)) for name in _SLICE}
        return {"class_name": "__slice__", "config": parts}
    if value is Ellipsis:
        return {"class_name": "__ellipsis__", "config": {}}
    if isinstance(value, bytes):
        return {"class_name": "__bytes__", "config": {"value": value.decode("utf-8")}}
    if isinstance(value, np.ndarray) and value.ndim:
        return encode_array(value)
    if hasattr(value, "numpy") and isinstance(getattr(value, "dtype", None), DType):
        return {"class_name": "__tensor__", "config": _array_config(value.numpy())}
    return None


_SLICE = ("start", "stop", "step")


def _index(value):
    return value.__index__() if hasattr(value, "__index__") else value


def encode_array(array: Any) -> dict:
    """Return the form of an array of any rank.

    Example:
        >>> import numpy as np
        >>> from tapewright.serialization.literals import encode_array
        >>> encode_array(np.float32([1, np.inf]))["config"]
        {'value': [1.0, 'inf'], 'dtype': 'float32'}
    """
    return {"class_name": "__numpy__", "config": _array_config(array)}


def _array_config(array):
    array = np.asarray(array)
    if kind_of(array.dtype) not in "fiub":
        raise TypeError(f"A config cannot hold an array of dtype {array.dtype}")
    if array.size > _MAX_ENTRIES:
        raise ValueError(
            f"A config cannot hold an array of {array.size} numbers, at most "
            f"{_MAX_ENTRIES}; keep a large array as a weight of a layer"
        )
    values = array.tolist()
    if kind_of(array.dtype) == "f" and not np.isfinite(array).all():
        values = _as_words(values)  # JSON has no infinities
    return {"value": values, "dtype": array.dtype.name}


def _as_words(values):
    if isinstance(values, list):
        return [_as_words(each) for each in values]
    return values if math.isfinite(values) else str(values)


_WORDS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def _from_words(values):
    if isinstance(values, list):
        return [_from_words(each) for each in values]
    return _WORDS.get(values, values) if isinstance(values, str) else values


def is_literal(value: object) -> bool:
    """Return whether ``value`` has one of these forms."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("class_name"), str)
        and value["class_name"] in _NAMES
    )


def decode_literal(value: dict) -> Any:
    """Return the value of a form, with NumPy arrays for tensors; may raise ``ValueError``."""
    name, config = value["class_name"], value.get("config")
    if name == "__ellipsis__":  # without config in Keras 2
        return Ellipsis
    if not isinstance(config, dict):
        raise load_error(f"{name}: its config must be a dict, got {str(config)[:80]}")
    if name == "__bytes__":
        text = config.get("value")
        if not isinstance(text, str):
            raise load_error(f"__bytes__: value must be a string, got {str(text)[:80]}")
        return text.encode("utf-8")
    if name == "__slice__":
        return slice(*[_slice_part(config.get(part)) for part in _SLICE])
    return _read_array(name, config)


def _slice_part(part):
    if part is None or type(part) is int:
        return part
    raise load_error(
        f"__slice__: start, stop and step must be integers, got {str(part)[:80]}"
    )


def _read_array(name, config):
    values, dtype = config.get("value"), config.get("dtype")
    shape, ahead = [], values
    while isinstance(ahead, list):
        shape.append(len(ahead))
        ahead = ahead[0] if ahead else None
    if math.prod(shape) > _MAX_ENTRIES:
        raise load_error(f"{name}: more than {_MAX_ENTRIES} entries, shape {shape}")
    try:
        dtype = as_dtype(dtype)
        array = np.asarray(values)
        if array.dtype.kind == "U":
            array = np.asarray(_from_words(values))
        if array.size and kind_of(array.dtype) not in "fiub":
            raise ValueError("its entries are not numbers")
        return array.astype(dtype.dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise load_error(
            f"{name}: cannot be an array of {str(dtype)[:40]}: {error}"
        ) from None
