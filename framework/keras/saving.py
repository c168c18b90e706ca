"""`keras.saving`: saved models and weights, serialized objects, registered names."""

from tapewright.core.names.lazy_import import lazy_imports as _lazy_imports
from tapewright.serialization.registry import (
    CustomObjectScope,
    custom_object_scope,
    get_custom_objects,
    get_registered_name,
    get_registered_object,
    register_keras_serializable,
)

from .files.keras_objects import deserialize_keras_object, serialize_keras_object

with _lazy_imports(globals()):  # until a file is read or written
    from .files.file_editor import KerasFileEditor
    from .files.save_and_load import load_model, load_weights, save_model, save_weights

__all__ = [
    "CustomObjectScope",
    "KerasFileEditor",
    "custom_object_scope",
    "deserialize_keras_object",
    "get_custom_objects",
    "get_registered_name",
    "get_registered_object",
    "load_model",
    "load_weights",
    "register_keras_serializable",
    "save_model",
    "save_weights",
    "serialize_keras_object",
]
