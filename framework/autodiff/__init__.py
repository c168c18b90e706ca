"""`tw.autodiff`: forward mode, Hessian-vector products, and raveling nests of tensors."""

from tapewright.core.names.lazy_import import lazy_imports as _lazy_imports

with _lazy_imports(globals()):
    from .forward import ForwardAccumulator, hvp, jvp, ravel

__all__ = ["ForwardAccumulator", "hvp", "jvp", "ravel"]
