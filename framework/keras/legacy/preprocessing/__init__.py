"""`keras.preprocessing`: prepare images, texts, time series and sequences for models."""

import sys
from typing import TYPE_CHECKING

from tapewright.core.names.lazy_import import import_lazily

from ...utils.dataset_utils import timeseries_dataset_from_array
from . import sequence

if TYPE_CHECKING:
    from ...utils.directory_datasets import (
        image_dataset_from_directory,
        text_dataset_from_directory,
    )
    from . import image as image
    from . import text as text

__all__ = [
    "image",
    "image_dataset_from_directory",
    "sequence",
    "text",
    "text_dataset_from_directory",
    "timeseries_dataset_from_array",
]

DIRECTORIES = "tapewright.keras.utils.directory_datasets"

import_lazily(
    sys.modules[__name__],
    image=f"{__name__}.image",
    text=f"{__name__}.text",
    image_dataset_from_directory=f"{DIRECTORIES}:image_dataset_from_directory",
    text_dataset_from_directory=f"{DIRECTORIES}:text_dataset_from_directory",
)
