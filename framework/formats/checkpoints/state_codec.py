"""States of objects as JSON: numbers, strings, lists, tuples, dicts, and separate arrays.

Numbers are restored exactly, including infinities and NaN, which JSON lacks; tuples are
restored as tuples, and keys of dicts with their types.
"""

import math
from typing import Any

import numpy as np

from tapewright.core.dtypes import kind_of
from tapewright.core.errors import SavingError
from tapewright.core.hardware import devices
from tapewright.core.tensor import is_tensor

__all__ = ["decode_state", "encode_state"]

MAX_DEPTH = 40


def encode_state(value: Any, arrays: list, where: str = "state") -> Any:
    """Return ``value`` as JSON; append its arrays to ``arrays``.

    Raises:
        TypeError: If a value cannot be saved; it names the place.

    Example:
        >>> import numpy as np
        >>> from tapewright.formats.checkpoints.state_codec import encode_state
        >>> encode_state({"best": np.float32(1), 3: (None, float("inf"))}, arrays := [])
        {'dict': [['best', {'scalar': 0}], [3, {'tuple': [None, {'float': 'inf'}]}]]}
        >>> arrays
        [array(1., dtype=float32)]
    """
    if where.count("[") > MAX_DEPTH:
        raise TypeError(f"{where.partition('[')[0]} is nested deeper than {MAX_DEPTH}")
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if type(value) in (list, tuple):
        items = [encode_state(v, arrays, f"{where}[{i}]") for i, v in enumerate(value)]
        return items if type(value) is list else {"tuple": items}
    if isinstance(value, dict):
        pairs = [
            [_key(k, where), encode_state(v, arrays, f"{where}[{k!r}]")]
            for k, v in value.items()
        ]
        return {"dict": pairs}
    tag = "array"
    if is_tensor(value):
        value = devices.to_numpy(value.array)
    elif hasattr(value, "__tensor__"):
        value = value.numpy()
    elif isinstance(value, np.generic):
        tag = "scalar"
    elif devices.is_array(value):
        value = devices.to_numpy(value)
    array = np.asarray(value) if isinstance(value, (np.ndarray, np.generic)) else None
    if array is None or kind_of(array.dtype) not in "fiubc":
        type_name = (
            type(value).__name__ if array is None else f"an array of {array.dtype}"
        )
        raise TypeError(
            f"{where} cannot be saved: it is {type_name}; a state consists of numbers, "
            "strings, lists, tuples, dicts and arrays of numbers"
        )
    arrays.append(array)
    return {tag: len(arrays) - 1}


def _key(key, where):
    if type(key) in (str, int, bool) or key is None:
        return key
    raise TypeError(
        f"{where} cannot be saved: {key!r} cannot be the key of a dict; "
        "use a string, integer, bool or None"
    )


def decode_state(value: Any, arrays: list, path: str, where: str) -> Any:
    """Decode the result of `encode_state`; raise `SavingError` for other JSON."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is list:
        return [decode_state(v, arrays, path, where) for v in value]
    if type(value) is dict and len(value) == 1:
        ((tag, inner),) = value.items()
        if tag == "float" and inner in ("inf", "-inf", "nan"):
            return float(inner)
        if tag == "tuple" and type(inner) is list:
            return tuple([decode_state(v, arrays, path, where) for v in inner])
        if tag == "dict" and type(inner) is list and all(map(_is_pair, inner)):
            return {k: decode_state(v, arrays, path, where) for k, v in inner}
        if type(inner) is int and 0 <= inner < len(arrays):
            if tag == "array":
                return arrays[inner]
            if tag == "scalar" and arrays[inner].shape == ():
                return arrays[inner][()]
    raise SavingError(path, f"a state is invalid: {value!r:.80}", where)


def _is_pair(pair):
    return (
        type(pair) is list
        and len(pair) == 2
        and (pair[0] is None or type(pair[0]) in (str, int, bool))
    )
