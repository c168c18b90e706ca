"""`tw.saved_model`: save a `Module` with its functions, as in ``tf.saved_model``."""

from tapewright.formats.saved_model.module_file import (
    SERVING,
    LoadOptions,
    SaveOptions,
    contains_saved_model,
    load,
    save,
)
from tapewright.formats.saved_model.signature_functions import (
    DEFAULT_SERVING_SIGNATURE_DEF_KEY,
)

__all__ = [
    "DEFAULT_SERVING_SIGNATURE_DEF_KEY",
    "LoadOptions",
    "SERVING",
    "SaveOptions",
    "contains_saved_model",
    "load",
    "save",
]
