"""`tw.data`: input pipelines, chains of transformations named as in ``tf.data``."""

import sys
from typing import TYPE_CHECKING

from tapewright.core.lazy_import import import_lazily

from . import dataset as _dataset
from .dataset import *

if TYPE_CHECKING:
    from . import experimental as experimental
    from .files import FixedLengthRecordDataset as FixedLengthRecordDataset
    from .files import TextLineDataset as TextLineDataset
    from .files import TFRecordDataset as TFRecordDataset

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
    FixedLengthRecordDataset="tapewright.data.files:FixedLengthRecordDataset",
    TFRecordDataset="tapewright.data.files:TFRecordDataset",
    TextLineDataset="tapewright.data.files:TextLineDataset",
)
