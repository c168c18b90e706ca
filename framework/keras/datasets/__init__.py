"""`keras.datasets`: the modules of `tapewright.datasets`."""

import sys
from typing import TYPE_CHECKING

from tapewright import datasets as _datasets
from tapewright.core.names.lazy_import import import_lazily
from tapewright.core.settings.floatx import image_data_format
from tapewright.datasets import cifar as _cifar

if TYPE_CHECKING:
    from tapewright.datasets import *

__all__ = _datasets.__all__

import_lazily(
    sys.modules[__name__], **{name: f"tapewright.datasets.{name}" for name in __all__}
)
_cifar.image_data_format = image_data_format
