"""`keras.models`: graphs and stacks of layers with `fit`, and their files."""

from tapewright.core.names.lazy_import import lazy_imports as _lazy_imports

from .cloning import clone_model
from .function import Function as Function
from .model import Model, model_from_json
from .sequential import Sequential

with _lazy_imports(globals()):  # until a file is read or written
    from ..files.save_and_load import load_model, save_model

__all__ = [
    "Model",
    "Sequential",
    "clone_model",
    "load_model",
    "model_from_json",
    "save_model",
]
