"""`tw.experimental`: the namespace of `tw.experimental.numpy`."""

from tapewright.core.names.lazy_import import lazy_imports as _lazy_imports

__all__ = ["numpy"]

__path__: list[str] = []  # a package, below which `numpy` is imported
with _lazy_imports(globals()):
    from . import tnp as numpy
