"""`keras.saving`: saved models and weights, serialized objects, registered names."""

import sys
from typing import TYPE_CHECKING

from tapewright.core.names.lazy_import import import_lazily
from tapewright.serialization.registry import (
    CustomObjectScope,
    custom_object_scope,
    get_custom_objects,
    get_registered_name,
    get_registered_object,
    register_keras_serializable,
)

from .files.keras_objects import deserialize_keras_object, serialize_keras_object

if TYPE_CHECKING:
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

import_lazily(  # files are imported when one is read or written
    sys.modules[__name__],
    KerasFileEditor="tapewright.keras.files.file_editor:KerasFileEditor",
    load_model="tapewright.keras.files.save_and_load:load_model",
    load_weights="tapewright.keras.files.save_and_load:load_weights",
    save_model="tapewright.keras.files.save_and_load:save_model",
    save_weights="tapewright.keras.files.save_and_load:save_weights",
)
