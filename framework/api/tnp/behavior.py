"""`experimental_enable_numpy_behavior`: NumPy's methods and promotion for tensors."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from tapewright.core.messages.argument_validation import one_of
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
    """Add NumPy's methods to tensors, and its promotion of dtypes to their operators.

    The methods are ``T``, ``astype``, ``clip``, ``data``, ``flatten``, ``max``,
    ``mean``, ``min``, ``ravel``, ``reshape``, ``size``, ``tolist`` and ``transpose``.
    Operands of an operator are cast to `result_type`; a NumPy scalar counts as a Python
    number. The change applies to the whole process and cannot be undone;
    ``np.mean(tensor)`` and similar functions return tensors from then on.

    Args:
        prefer_float32: If True, Python floats and complex numbers are float32 and
            complex64 in the functions of this module, instead of float64 and
            complex128.
        dtype_conversion_mode: "legacy", or "off" for the methods alone.

    Raises:
        ValueError: If the mode is unknown. "safe" and "all" are not supported, since
            they need tensors of weak dtypes.
    """
    who = "experimental_enable_numpy_behavior"
    one_of(who, "dtype_conversion_mode", dtype_conversion_mode, ["legacy", "off"])
    _prefer_float32(prefer_float32)
    for name, value in _METHODS.items():
        setattr(Tensor, name, value)
    if dtype_conversion_mode == "legacy":
        _promote_operands()


def _reshape(self: Tensor, *newshape: Any, order: str = "C") -> Tensor:
    """Reshape to sizes, given as one argument each or in a list."""
    alone = len(newshape) == 1 and not isinstance(newshape[0], int)
    return reshape(self, newshape[0] if alone else newshape, order)


def _tolist(self: Tensor) -> Any:
    """Return the entries as Python numbers, in lists."""
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
    """Return an operator whose operands are cast to a common dtype."""

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
    """Return whether an operand is a Keras variable, which has Keras' promotion."""
    return any([getattr(x, "_path", None) is not None for x in (self, other)])


_ARRAYS = Tensor, Variable, np.ndarray, list, tuple


def _fits(self, other):
    """Return whether the operator accepts ``other`` without a cast."""
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
