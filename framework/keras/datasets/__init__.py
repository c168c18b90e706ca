"""`keras.datasets`: the modules of `tapewright.datasets`."""

from typing import TYPE_CHECKING

from tapewright import datasets as _datasets
from tapewright.core.names.lazy_import import (
    import_at_first_use as _import_at_first_use,
)
from tapewright.core.settings.floatx import image_data_format
from tapewright.datasets import cifar as _cifar

if TYPE_CHECKING:
    from tapewright.datasets import *

__all__ = _datasets.__all__

_import_at_first_use(globals(), {name: (_datasets.__name__, name) for name in __all__})
_cifar.image_data_format = image_data_format
