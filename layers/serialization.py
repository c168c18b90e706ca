"""`serialize` and `deserialize`: a layer as its class's name and config, and back."""

from tapewright.serialization import registry

__all__ = ["deserialize", "serialize"]


def serialize(layer):
    """``{"class_name", "config"}`` of a layer; its weights are not in there.

    >>> from tapewright.layers import Dense
    >>> serialize(Dense(2))["class_name"]
    'Dense'
    """
    return registry.serialize(layer)


def deserialize(config, custom_objects=None):
    """A new layer from what `serialize` gave; one that is a layer already, as it is.

    ``custom_objects``: names and classes to look among first.

    Raises: ``ValueError`` that lists the known names; ``TypeError`` for what is no config.
    """
    with registry.custom_object_scope(custom_objects or {}):
        return registry.resolve("layer", config)
