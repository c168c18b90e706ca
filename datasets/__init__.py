"""`tw.datasets`: data sets as NumPy arrays; each module has a ``load_data``.

``digits`` are drawn on the spot and need no network; ``mnist`` and ``fashion_mnist``
are read from disk or downloaded once. Leans on NumPy and the standard library.
"""

from . import digits, fashion_mnist, mnist

__all__ = ["digits", "fashion_mnist", "mnist"]
