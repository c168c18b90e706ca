"""`keras.preprocessing`: prepare images, texts, time series and sequences for models."""

from tapewright.core.names.lazy_import import lazy_imports as _lazy_imports

from ..utils.dataset_utils import timeseries_dataset_from_array
from . import sequence

with _lazy_imports(globals()):
    from ..utils.directory_datasets import (
        image_dataset_from_directory,
        text_dataset_from_directory,
    )
    from . import image, text

__all__ = [
    "image",
    "image_dataset_from_directory",
    "sequence",
    "text",
    "text_dataset_from_directory",
    "timeseries_dataset_from_array",
]
