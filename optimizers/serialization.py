"""Optimizers by name and config: `get`, `serialize`, `deserialize`."""

from __future__ import annotations

from typing import Any

from tapewright.serialization import object_config, registry

from .optimizer import Optimizer

__all__ = ["deserialize", "get", "serialize"]


def get(identifier: Any) -> Any:
    """Return the optimizer of a name (``"adam"``) or config; an optimizer or None as it is.

    Raises: ``ValueError`` for an unknown name, or another type.

    Example:
        >>> keras.optimizers.get("sgd").get_config()["momentum"]
        0.0
    """
    if identifier is None or isinstance(identifier, Optimizer):
        return identifier
    if isinstance(identifier, str):
        return deserialize({"class_name": identifier, "config": {}})
    if isinstance(identifier, dict):
        return deserialize(identifier)
    raise ValueError(
        "Could not interpret optimizer identifier: it must be a name, a config or an "
        f"Optimizer, got {identifier!r}"
    )


def serialize(optimizer: Any) -> dict[str, Any]:
    """Return ``{"class_name", "config"}`` of an optimizer."""
    return object_config.serialize(optimizer)


def deserialize(config: Any, custom_objects: dict[str, Any] | None = None) -> Optimizer:
    """Return the optimizer of a config from `serialize`.

    Args: ``custom_objects``: ``{name: class or function}``, looked up before those that
    are registered.

    Raises: ``ValueError`` for an unknown class, or a value that is no config.

    Example:
        >>> keras.optimizers.deserialize(keras.optimizers.serialize(keras.optimizers.get("sgd"))).get_config()["momentum"]
        0.0
    """
    with registry.custom_object_scope(custom_objects):
        return object_config.deserialize("optimizer", config)
