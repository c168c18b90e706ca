"""`tw.experimental`: the namespace of `tw.experimental.numpy`."""

import sys
from typing import TYPE_CHECKING

from tapewright.core.names.lazy_import import import_lazily

if TYPE_CHECKING:
    from . import tnp as numpy

__all__ = ["numpy"]

__path__: list[str] = []  # a package, below which `numpy` is imported
import_lazily(sys.modules[__name__], numpy="tapewright.api.tnp")
