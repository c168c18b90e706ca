"""`tw.autodiff`: forward mode, Hessian-vector products, and raveling nests of tensors."""

import sys
from typing import TYPE_CHECKING

from tapewright.core.names.lazy_import import import_lazily

if TYPE_CHECKING:  # loaded at their first use
    from .forward import ForwardAccumulator, hvp, jvp, ravel

__all__ = [
    "ForwardAccumulator",
    "hvp",
    "jvp",
    "ravel",
]

import_lazily(
    sys.modules[__name__],
    **{name: f"tapewright.autodiff.forward:{name}" for name in __all__},
)

del TYPE_CHECKING, import_lazily, sys  # no public names
