"""`keras.preprocessing`: images, series and sequences as data for models."""

from ..utils.dataset_utils import timeseries_dataset_from_array
from . import image, sequence

__all__ = ["image", "sequence", "timeseries_dataset_from_array"]
