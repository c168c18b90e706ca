"""`keras.datasets`: the modules of `tapewright.datasets`."""

from tapewright.core.lazy_import import alias_modules
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

alias_modules(__name__, **{name: f"tapewright.datasets.{name}" for name in __all__})
