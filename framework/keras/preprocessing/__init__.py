"""`keras.preprocessing`: images, series and sequences as data for models."""

import sys
from typing import TYPE_CHECKING

from tapewright.core.lazy_import import import_lazily

from ..utils.dataset_utils import timeseries_dataset_from_array
from . import sequence

if TYPE_CHECKING:
    from . import image as image

__all__ = ["image", "sequence", "timeseries_dataset_from_array"]

import_lazily(sys.modules[__name__], image="tapewright.keras.preprocessing.image")
