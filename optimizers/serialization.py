"""Optimizers by name and config: `get`, `serialize`, `deserialize`."""

from __future__ import annotations

from typing import Any

from tapewright.serialization import object_config, registry

from .base.optimizer import Optimizer

__all__ = ["deserialize", "get", "serialize"]


def get(identifier: Any) -> Any:
    """Return the optimizer of a name (``"adam"``) or config.

    Args:
        identifier: Name, config, or an optimizer or None, which is returned unchanged.

    Raises:
        ValueError: If the name is unknown, or ``identifier`` has another type.

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
    """Return the ``{"class_name", "config"}`` dict of an optimizer.

    Args:
        optimizer: Optimizer to serialize.
    """
    return object_config.serialize(optimizer)


def deserialize(config: Any, custom_objects: dict[str, Any] | None = None) -> Optimizer:
    """Return the optimizer of a config from `serialize`.

    Args:
        config: Dict from `serialize`.
        custom_objects: Dict ``{name: class or function}``, searched before the
            registered objects.

    Raises:
        ValueError: If the class is unknown, or ``config`` is not a config.

    Example:
        >>> config = keras.optimizers.serialize(keras.optimizers.SGD(momentum=0.5))
        >>> keras.optimizers.deserialize(config).momentum
        0.5
    """
    with registry.custom_object_scope(custom_objects):
        return object_config.deserialize("optimizer", config)
