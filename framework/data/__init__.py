"""`tw.data`: input pipelines, chains of transformations named as in ``tf.data``."""

from tapewright.core.names.lazy_import import lazy_imports as _lazy_imports

from . import dataset as _dataset
from .dataset import *

with _lazy_imports(globals()):
    from . import experimental
    from .file_datasets import (
        FixedLengthRecordDataset,
        TextLineDataset,
        TFRecordDataset,
    )

__all__ = [
    *_dataset.__all__,
    "FixedLengthRecordDataset",
    "TFRecordDataset",
    "TextLineDataset",
    "experimental",
]
__all__.sort()
