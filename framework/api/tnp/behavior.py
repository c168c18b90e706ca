"""`experimental_enable_numpy_behavior`: NumPy's methods and dtypes for tensors, on demand."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tapewright.core.argument_validation import one_of
from tapewright.core.operators import Operators
from tapewright.core.tensor import Tensor
from tapewright.core.variable import Variable
from tapewright.ops.array.conversion import cast

from .arrays import flatten, ravel, reshape, size, transpose
from .elementwise import around, clip
from .products import matmul
from .promotion import prefer_float32 as _prefer_float32
from .promotion import promote
from .reductions import amax, amin, mean

__all__ = ["experimental_enable_numpy_behavior"]


def experimental_enable_numpy_behavior(
    prefer_float32: bool = False, dtype_conversion_mode: str = "legacy"
) -> None:
    """Give tensors some of NumPy's methods, and operators its promotion of dtypes.

    They are TensorFlow's methods: ``T``, ``astype``, ``clip``, ``data``, ``flatten``,
    ``max``, ``mean``, ``min``, ``ravel``, ``reshape``, ``size``, ``tolist`` and
    ``transpose``. Operands of an operator meet in `result_type`; a scalar of NumPy counts as
    a Python number. It holds for the whole process, and cannot be undone: from then on
    ``np.mean(tensor)`` and its like are tensors, too.

    Args:
        prefer_float32: Python's floats and complex numbers are float32 and complex64 in
            the functions of this module, in place of float64 and complex128.
        dtype_conversion_mode: "legacy", or "off" for the methods alone.

    Raises:
        ValueError: For another mode: "safe" and "all" need tensors of weak dtypes,
            which are not here.
    """
    who = "experimental_enable_numpy_behavior"
    one_of(who, "dtype_conversion_mode", dtype_conversion_mode, ["legacy", "off"])
    _prefer_float32(prefer_float32)
    for name, value in _METHODS.items():
        setattr(Tensor, name, value)
    if dtype_conversion_mode == "legacy":
        _promote_operands()


def _reshape(self: Tensor, *newshape: Any, order: str = "C") -> Tensor:
    """`reshape` to sizes, one argument each or all in a list."""
    alone = len(newshape) == 1 and not isinstance(newshape[0], int)
    return reshape(self, newshape[0] if alone else newshape, order)


def _tolist(self: Tensor) -> Any:
    """The entries as Python numbers, in lists."""
    return self.numpy().tolist()


_METHODS: dict[str, Any] = {
    "T": property(lambda self: transpose(self)),
    "__round__": around,
    "astype": cast,
    "clip": clip,
    "data": property(lambda self: self),
    "flatten": flatten,
    "max": amax,
    "mean": mean,
    "min": amin,
    "ravel": ravel,
    "reshape": _reshape,
    "size": property(lambda self: size(self)),
    "tolist": _tolist,
    "transpose": transpose,
}

# ------------------------------------------------------------------------- operators

_BINARY = "add sub mul truediv floordiv mod pow matmul and or xor".split()
_COMPARE = "lt le gt ge eq ne".split()


@functools.cache  # once for all
def _promote_operands() -> None:
    for name in [*_BINARY, *[f"r{name}" for name in _BINARY], *_COMPARE]:
        of_tensors = _MATMUL.get(name) or vars(Operators)[f"__{name}__"]
        for cls in (Operators, Variable):
            method = vars(cls).get(f"__{name}__")
            if method is not None:
                fits = _of_keras if name in _MATMUL else _fits
                setattr(cls, f"__{name}__", _promoting(method, fits, of_tensors))


def _promoting(method, fits, of_tensors):
    """An operator whose operands are cast to the dtype where they meet."""

    @functools.wraps(method)
    def promoted(self, other):
        if fits(self, other):
            return method(self, other)
        if isinstance(other, np.generic):
            other = other.item()
        return of_tensors(*promote(self, other))

    return promoted


_MATMUL = {"matmul": matmul, "rmatmul": lambda x, y: matmul(y, x)}  # also of vectors


def _of_keras(self, other):
    """Return whether one is a variable of Keras, which has Keras' promotion."""
    return any([getattr(x, "_path", None) is not None for x in (self, other)])


_ARRAYS = Tensor, Variable, np.ndarray, list, tuple


def _fits(self, other):
    """Return whether the operator takes ``other`` as it is."""
    dtype = self.dtype
    if isinstance(other, np.generic):
        other = other.item()
    if isinstance(other, (int, float, complex)):
        if isinstance(other, bool):
            return dtype.is_bool
        if dtype.is_complex or isinstance(other, int):
            return not dtype.is_bool
        return dtype.is_floating and isinstance(other, float)
    if not isinstance(other, _ARRAYS) or dtype.name == "string":
        return True
    return _of_keras(self, other) or getattr(other, "dtype", None) == dtype
