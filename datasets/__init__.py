"""`tw.datasets`: data sets as NumPy arrays; each module has a ``load_data``.

``digits`` are generated and need no network; the other data sets are read from disk or
downloaded once, and verified. Code in their files is never run. Uses NumPy and the
standard library.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import (
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


def __getattr__(name):  # a data set is imported at its first use
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return list(__all__)
