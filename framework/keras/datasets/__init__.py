"""`keras.datasets`: the modules of `tapewright.datasets`."""

from tapewright.core.lazy_import import alias_modules
from tapewright.datasets import digits, fashion_mnist, mnist

__all__ = ["digits", "fashion_mnist", "mnist"]

alias_modules(__name__, **{name: f"tapewright.datasets.{name}" for name in __all__})
