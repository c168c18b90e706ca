"""Objects as Keras configs and back: the functions of ``keras.saving``.

Layers, optimizers, losses and so on are ``{"module", "class_name", "config",
"registered_name"}`` dicts; functions are serialized by name; arrays, slices and
symbolic tensors are special dicts. Arguments of the calls in a model are such values,
but not objects. A config may refer to the names in `registry`: nothing is imported, and
no code is run.
"""

import math
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

import numpy as np

from tapewright.core.dtypes import DType
from tapewright.core.nest import is_nested
from tapewright.core.shapes.symbolic_dim import is_symbolic
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.serialization import registry
from tapewright.serialization.literals import (
    decode_literal,
    encode_array,
    encode_literal,
    is_literal,
)
from tapewright.serialization.load_errors import (
    load_error,
    load_errors,
    trusting_configs,
)
from tapewright.serialization.object_config import (
    deserialize,
    function_of,
    plain,
    serialize,
)
from tapewright.serialization.registry import custom_object_scope
from tapewright.serialization.shared_layers import (
    numbering_shared,
    reading_shared,
)

from .class_names import family_of

_PLAIN = (str, int, float, bool)


def serialize_keras_object(obj: Any) -> Any:
    """Return the config of an object, in Keras' form.

    The config of an object with ``get_config`` includes how it is built and compiled.
    Functions are serialized by name, custom functions by their registered name. Lists
    and dicts may contain all of these, arrays, tensors and slices.

    Args:
        obj: Object, function, array, tensor, or list or dict of these.

    Raises:
        ValueError: If ``obj`` contains a lambda: code is never saved.
        TypeError: If an object has no config.

    Example:
        >>> config = keras.saving.serialize_keras_object([keras.regularizers.L2(0.5), 3])
        >>> config[0]["module"], config[0]["class_name"], config[0]["config"], config[1]
        ('keras.regularizers', 'L2', {'l2': 0.5}, 3)
    """
    if obj is None or isinstance(obj, _PLAIN):
        return obj
    if isinstance(obj, (list, tuple)):
        return [serialize_keras_object(each) for each in obj]
    if isinstance(obj, dict):
        return {key: serialize_keras_object(each) for key, each in obj.items()}
    if hasattr(obj, "_keras_history"):
        operation, node, index = obj._keras_history
        return tensor_config(obj, [operation.name, node, index])
    literal = encode_literal(obj)
    if literal is not None:
        return literal
    if hasattr(obj, "get_config") and not isinstance(obj, type):
        return numbering_shared(lambda: serialize(obj, build=True, compiled=True))
    if callable(obj) and not isinstance(obj, type) and hasattr(obj, "__name__"):
        return serialize(obj)
    return plain(obj)


def deserialize_keras_object(
    config: Any,
    custom_objects: dict[str, Any] | None = None,
    safe_mode: bool = True,
    *,
    module_objects: dict[str, Any] | None = None,
    kind: str | None = None,
) -> Any:
    """Return the object, or nested objects, of a config from `serialize_keras_object`.

    Args:
        config: Config, or list or dict of configs.
        custom_objects: Dict ``{name: class or function}``, searched before the
            registered objects.
        safe_mode: If False, the config may name files, such as the vocabulary of a
            `StringLookup`. Code in a config is never run.
        module_objects: Dict ``{name: class or function}``, searched after
            ``custom_objects``.
        kind: Family ("layer", "loss", ...) of objects without a module.

    Raises:
        ValueError: If a class or function is unknown, the config contains code or the
            path of a file, or its class rejects it.

    Example:
        >>> config = {"module": "keras.losses", "class_name": "Huber", "config": {"delta": 2.0}}
        >>> keras.saving.deserialize_keras_object(config).delta
        2.0
    """
    with (
        nullcontext() if safe_mode else trusting_configs(),
        custom_object_scope(module_objects),
        custom_object_scope(custom_objects),
        reading_shared(),
        load_errors("the config"),
    ):
        return _object_of(config, kind)


def _object_of(config, family):
    if isinstance(config, str):
        known = registry.get_registered_object(config)
        return config if known is None else known
    if isinstance(config, (list, tuple)):
        return [_object_of(each, family) for each in config]
    if not isinstance(config, dict):
        return config
    if not {"class_name", "config"} <= set(config):
        return {key: _object_of(each, family) for key, each in config.items()}
    name = config["class_name"]
    if is_literal(config):
        value = decode_literal(config)
        return convert_to_tensor(value) if name == "__tensor__" else value
    if name == "__lambda__":
        raise load_error(
            "the config contains Python code, which is never run, regardless of "
            "safe_mode; pass the function in custom_objects, or use "
            "register_keras_serializable"
        )
    if name == "function":
        return function_of(family or "function", config["config"])
    return deserialize(family_of(config, family), config, build=True)


# ------------------------------------------------------------------- arguments of calls


def argument_config(value: Any, tensor: Callable[[Any], dict] | None) -> Any:
    """Return the config of an argument; for symbolic tensors, ``tensor(value)``.

    Raises:
        TypeError: If no config can represent the value.
        ValueError: If an array is too large.

    Example:
        >>> from tapewright.keras.files.keras_objects import argument_config
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
    if is_symbolic(value):  # an unknown size
        return None
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
    literal = encode_literal(value)
    if literal is None:
        raise TypeError(
            f"A config cannot hold {type(value).__name__}: {value!r}. Calls in a "
            "model accept tensors, arrays, numbers, strings, None, slices and nests "
            "of these"
        )
    return literal


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


def history_config(history: list) -> dict:
    """Return the config of a tensor with only its history."""
    return {"class_name": "__keras_tensor__", "config": {"keras_history": history}}


def is_history(value: object) -> bool:
    """Return whether ``value`` is ``[layer, number of its call, number of the output]``."""
    return (
        isinstance(value, (list, tuple))
        and len(value) >= 3
        and isinstance(value[0], str)
        and type(value[1]) is int
        and type(value[2]) is int
    )


def argument_from_config(config: Any, tensor: Callable[[Any], Any] | None) -> Any:
    """Return the argument of a config from `argument_config` or Keras.

    ``tensor(config)`` returns the tensor for the config of a ``__keras_tensor__``.

    Raises:
        ValueError: If the config represents any other object; from a file,
            ``SavingError``.
    """
    if isinstance(config, list):
        return [argument_from_config(each, tensor) for each in config]
    if not isinstance(config, dict):
        return config
    if is_literal(config):
        return decode_literal(config)
    name = config.get("class_name")
    if name == "__keras_tensor__" and tensor is not None:
        return tensor(config.get("config"))
    if name == "__tuple__" and isinstance(config.get("items"), list):
        return tuple([argument_from_config(each, tensor) for each in config["items"]])
    if name is not None and "config" in config:
        raise load_error(
            f"an argument of a call has the unknown class {str(name)[:80]!r}"
        )
    return {key: argument_from_config(each, tensor) for key, each in config.items()}
