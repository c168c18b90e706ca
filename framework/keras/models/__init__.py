"""`keras.models`: graphs and stacks of layers with `fit`, and their files."""

import sys
from typing import TYPE_CHECKING

from tapewright.core.names.lazy_import import import_lazily

from .cloning import clone_model
from .function import Function as Function
from .model import Model, model_from_json
from .sequential import Sequential

if TYPE_CHECKING:
    from ..files.save_and_load import load_model, save_model

__all__ = [
    "Model",
    "Sequential",
    "clone_model",
    "load_model",
    "model_from_json",
    "save_model",
]

import_lazily(  # files are imported when one is read or written
    sys.modules[__name__],
    load_model="tapewright.keras.files.save_and_load:load_model",
    save_model="tapewright.keras.files.save_and_load:save_model",
)
