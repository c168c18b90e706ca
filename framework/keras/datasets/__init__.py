"""`keras.datasets`: the modules of `tapewright.datasets`."""

import sys
from typing import TYPE_CHECKING

from tapewright.core.lazy_import import import_lazily

if TYPE_CHECKING:
    from tapewright.datasets import (
        boston_housing,
        california_housing,
        cifar10,
        cifar100,
        digits,
        fashion_mnist,
        imdb,
        mnist,
        reuters,
    )

__all__ = [
    "boston_housing",
    "california_housing",
    "cifar10",
    "cifar100",
    "digits",
    "fashion_mnist",
    "imdb",
    "mnist",
    "reuters",
]

import_lazily(
    sys.modules[__name__], **{name: f"tapewright.datasets.{name}" for name in __all__}
)
