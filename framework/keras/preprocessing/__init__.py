"""`keras.preprocessing`: series and sequences as data for models."""

from ..utils.dataset_utils import timeseries_dataset_from_array
from . import sequence

__all__ = ["sequence", "timeseries_dataset_from_array"]
