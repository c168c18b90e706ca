"""`keras.utils.legacy`: configs of Keras 2, a class name and the constructor arguments.

Libraries for Keras, such as KerasTuner, use them for their objects.
"""

from __future__ import annotations

import inspect
from typing import Any

from tapewright.serialization import registry

from ..saving import deserialize_keras_object as _from_config

__all__ = ["deserialize_keras_object", "serialize_keras_object"]


def serialize_keras_object(instance: Any) -> Any:
    """Return ``{"class_name": ..., "config": ...}`` of an object, or a function's name.

    Objects in the config are serialized as well.

    Args:
        instance: Object with ``get_config``, function, or None, which is returned
            unchanged.

    Raises:
        ValueError: If the object has neither ``get_config`` nor a name.

    Example:
        >>> keras.utils.legacy.serialize_keras_object(keras.regularizers.L2(0.5))
        {'class_name': 'L2', 'config': {'l2': 0.5}}
    """
    if instance is None:
        return None
    if hasattr(instance, "get_config"):
        config = {
            key: serialize_keras_object(value)
            if hasattr(value, "get_config") and not isinstance(value, type)
            else value
            for key, value in instance.get_config().items()
        }
        name = registry.get_registered_name(type(instance))
        return {"class_name": name, "config": config}
    if hasattr(instance, "__name__"):
        return registry.get_registered_name(instance)
    raise ValueError(
        "serialize_keras_object: instance must have get_config or a name, got "
        f"{instance!r}"
    )


def deserialize_keras_object(
    identifier: Any,
    module_objects: dict[str, Any] | None = None,
    custom_objects: dict[str, Any] | None = None,
    printable_module_name: str = "object",
) -> Any:
    """Return the object of a config, or of a name: a function, or an instance of a class.

    Args:
        identifier: Config, or name; None and functions are returned unchanged.
        module_objects: Dict ``{name: class or function}``, searched last.
        custom_objects: Dict ``{name: class or function}``, searched before the
            registered objects.
        printable_module_name: Kind of object, for errors.

    Raises:
        ValueError: If the name is unknown, or ``identifier`` has another type.

    Example:
        >>> config = {"class_name": "L2", "config": {"l2": 0.5}}
        >>> known = {"L2": keras.regularizers.L2}
        >>> keras.utils.legacy.deserialize_keras_object(config, known).l2
        0.5
    """
    if identifier is None or inspect.isfunction(identifier):
        return identifier
    if isinstance(identifier, dict):
        return _from_config(identifier, custom_objects, module_objects=module_objects)
    if not isinstance(identifier, str):
        raise ValueError(
            "deserialize_keras_object: identifier must be a config or name of a "
            f"{printable_module_name}, got {identifier!r}"
        )
    known = (custom_objects or {}).get(identifier)
    if known is None:
        known = registry.get_registered_object(identifier, None, module_objects)
    if known is None:
        raise ValueError(
            f"deserialize_keras_object: unknown {printable_module_name} {identifier!r}; "
            "register it, or pass custom_objects"
        )
    return known() if isinstance(known, type) else known
