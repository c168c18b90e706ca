"""Arguments of the calls in a model as JSON, in the forms of Keras.

Beside the values of JSON there are slices, ``...``, arrays and the tensors of the model,
each a dict ``{"class_name": "__slice__", "config": {...}}``. Functions and objects are not
read.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tapewright.core.dtypes import DType
from tapewright.core.nest import is_nested
from tapewright.core.tensor import Tensor
from tapewright.serialization.literals import (
    decode_literal,
    encode_array,
    encode_literal,
    is_literal,
)
from tapewright.serialization.load_errors import load_error

__all__ = [
    "argument_config",
    "argument_from_config",
    "is_place",
    "tensor_config",
    "tensor_place",
]


def argument_config(value: Any, tensor: Callable[[Any], dict] | None) -> Any:
    """Return the config of an argument; of a symbolic tensor ``tensor(value)``.

    Raises: ``TypeError`` for what no config can hold, ``ValueError`` for large arrays.

    >>> argument_config((2, ...), None)
    [2, {'class_name': '__ellipsis__', 'config': {}}]
    """
    if hasattr(value, "_keras_history"):
        return tensor(value)
    if is_nested(value):
        if isinstance(value, dict):
            return {k: argument_config(v, tensor) for k, v in value.items()}
        return [argument_config(item, tensor) for item in value]
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, (float, np.ndarray, np.generic, Tensor)):
        return _number_config(value)
    if isinstance(value, (DType, np.dtype)):
        return value.name
    if isinstance(value, type) and issubclass(value, np.generic):
        return np.dtype(value).name
    if hasattr(value, "as_list"):  # a shape
        return value.as_list()
    form = encode_literal(value)
    if form is None:
        raise TypeError(
            f"A config cannot hold {type(value).__name__}: {value!r}. Calls in a model may "
            "take tensors, arrays, numbers, strings, None, slices and nests of these"
        )
    return form


def _number_config(value):
    if isinstance(value, Tensor):
        value = value.numpy()
    array = np.asarray(value, np.float32 if type(value) is float else None)
    if array.ndim == 0 and array.dtype.name in ("float32", "int32", "bool"):
        if math.isfinite(array):  # a number of Python's means the same
            return array.item()
    return encode_array(array)


def tensor_config(tensor: Any, history: Iterable) -> dict:
    """Return the config of a symbolic tensor; ``history``: its layer, call and output."""
    config = {
        "shape": list(tensor.shape),
        "dtype": tensor.dtype.name,
        "keras_history": list(history),
    }
    return {"class_name": "__keras_tensor__", "config": config}


def tensor_place(place: list) -> dict:
    """Return the config of a tensor of which only the place is known."""
    return {"class_name": "__keras_tensor__", "config": {"keras_history": place}}


def is_place(value: object) -> bool:
    """Return whether ``value`` is ``[layer, number of its call, number of the output]``."""
    return (
        isinstance(value, (list, tuple))
        and len(value) >= 3
        and isinstance(value[0], str)
        and type(value[1]) is int
        and type(value[2]) is int
    )


def argument_from_config(form: Any, tensor: Callable[[Any], Any] | None) -> Any:
    """Return the argument that `argument_config`, or Keras, described.

    ``tensor(config)`` returns the tensor for the config of a ``__keras_tensor__``.

    Raises: ``ValueError``, or `SavingError` from a file, for any other kind of object.
    """
    if isinstance(form, list):
        return [argument_from_config(each, tensor) for each in form]
    if not isinstance(form, dict):
        return form
    if is_literal(form):
        return decode_literal(form)
    kind = form.get("class_name")
    if kind == "__keras_tensor__" and tensor is not None:
        return tensor(form.get("config"))
    if kind == "__tuple__" and isinstance(form.get("items"), list):
        return tuple([argument_from_config(each, tensor) for each in form["items"]])
    if kind is not None and "config" in form:
        raise load_error(
            f"an argument of a call is of the unknown kind {str(kind)[:80]!r}"
        )
    return {key: argument_from_config(each, tensor) for key, each in form.items()}
