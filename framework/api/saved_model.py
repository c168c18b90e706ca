"""`tw.saved_model`: a `Module` with its functions in a file, as in ``tf.saved_model``."""

from tapewright.formats.saved_model.module_file import (
    LoadOptions,
    SaveOptions,
    contains_saved_model,
    load,
    save,
)

__all__ = ["LoadOptions", "SaveOptions", "contains_saved_model", "load", "save"]
