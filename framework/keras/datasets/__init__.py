"""`keras.datasets`: the modules of `tapewright.datasets`."""

import sys
from typing import TYPE_CHECKING

from tapewright import datasets as _datasets
from tapewright.core.lazy_import import import_lazily

if TYPE_CHECKING:
    from tapewright.datasets import *

__all__ = _datasets.__all__

import_lazily(
    sys.modules[__name__], **{name: f"tapewright.datasets.{name}" for name in __all__}
)
