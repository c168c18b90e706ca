"""`tw.datasets`: data sets as NumPy arrays; each module has a ``load_data``.

``digits`` are drawn on the spot and need no network; the others are read from disk or
downloaded once, and verified. No code is ever run from their files. Leans on NumPy and
the standard library.
"""

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
