"""`tw.data`: input pipelines, chains of transformations named as in ``tf.data``."""

import sys
from typing import TYPE_CHECKING

from tapewright.core.names.lazy_import import import_lazily

from . import dataset as _dataset
from .dataset import *

if TYPE_CHECKING:
    from . import experimental as experimental
    from .file_datasets import FixedLengthRecordDataset as FixedLengthRecordDataset
    from .file_datasets import TextLineDataset as TextLineDataset
    from .file_datasets import TFRecordDataset as TFRecordDataset

__all__ = [
    *_dataset.__all__,
    "FixedLengthRecordDataset",
    "TFRecordDataset",
    "TextLineDataset",
    "experimental",
]
__all__.sort()

import_lazily(
    sys.modules[__name__],
    experimental="tapewright.data.experimental",
    FixedLengthRecordDataset="tapewright.data.file_datasets:FixedLengthRecordDataset",
    TFRecordDataset="tapewright.data.file_datasets:TFRecordDataset",
    TextLineDataset="tapewright.data.file_datasets:TextLineDataset",
)
