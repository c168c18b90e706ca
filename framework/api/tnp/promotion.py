"""NumPy's promotion of dtypes, which the functions of `tw.experimental.numpy` share.

Operands are cast to their ``np.result_type``. A Python number, also inside a list, has
a kind but no size in a promotion; alone it is an int64, a float64 or a complex128.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np

from tapewright.core.dtypes import DType, as_dtype, float64
from tapewright.core.shapes.symbolic_dim import is_symbolic
from tapewright.core.tensor import Tensor, convert_to_tensor, is_tensor
from tapewright.core.typing import DTypeLike, TensorLike
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.joining import stack

_FLOAT32 = {float: np.dtype(np.float32), complex: np.dtype(np.complex64)}
_preferred: dict[type, Any] = {}  # type of a Python number -> its dtype, if it has one


def prefer_float32(preferred: bool) -> None:
    """Set whether Python floats are float32, and complex numbers complex64, from now on."""
    _preferred.clear()
    if preferred:
        _preferred.update(_FLOAT32)


def result_type(*arrays_and_dtypes: Any) -> DType:
    """Return the dtype to which values and dtypes are promoted: their ``np.result_type``.

    Args:
        *arrays_and_dtypes: Tensors, numbers and dtypes.

    Example:
        >>> tw.experimental.numpy.result_type(tw.ones([2]), 1.5)
        tf.float32
        >>> tw.experimental.numpy.result_type(tw.int32, tw.float32)
        tf.float64
        >>> tw.experimental.numpy.result_type(3)
        tf.int64
    """
    return _meet(*[_kind(x) for x in _leaves(arrays_and_dtypes)])


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Return whether a dtype belongs to a kind of NumPy dtypes: ``np.issubdtype``.

    Args:
        arg1: Dtype or its name.
        arg2: Kind such as ``np.floating``, or a dtype.

    Example:
        >>> import numpy as np
        >>> tw.experimental.numpy.issubdtype(tw.float32, np.floating)
        True
        >>> tw.experimental.numpy.issubdtype("int8", np.floating)
        False
    """
    first, second = (x.dtype if isinstance(x, DType) else x for x in (arg1, arg2))
    return np.issubdtype(first, second)


# Types of Python numbers -> what stands for them in a key, and in `np.result_type`.
_WEAK = {int: "int", float: "float", complex: "complex"}
_NUMBERS = {"int": 0, "float": 0.0, "complex": 0j}


@functools.lru_cache(maxsize=1024)
def _meet(*kinds):
    values = [_NUMBERS.get(x, x) if type(x) is str else x for x in kinds]
    return as_dtype(np.result_type(*values or [float]))


def _kind(x):
    """Return the dtype of a value, or the name of a kind of Python numbers."""
    kind = type(x)
    if kind in _preferred:
        return _preferred[kind]
    if kind is int and x >= 2**63:
        return np.dtype(np.uint64)
    if kind in _WEAK:
        return _WEAK[kind]
    if is_symbolic(x):
        return "int"
    if isinstance(x, (DType, np.ndarray, np.generic)):
        return x.dtype
    if isinstance(x, (str, type, np.dtype)):
        return as_dtype(x).dtype if x == "bfloat16" else np.dtype(x)
    return np.dtype(bool) if kind is bool else convert_to_tensor(x).dtype.dtype


def _leaves(values) -> Iterator[Any]:
    for x in values:
        if isinstance(x, (list, tuple)):
            yield from _leaves(x)
        else:
            yield x


def default_float() -> DType:
    """Return the dtype of a Python float: float64, unless float32 is preferred.

    Example:
        >>> from tapewright.api.tnp.promotion import default_float
        >>> default_float()
        tf.float64
    """
    return result_type(0.0)


def promote_types(type1: DTypeLike, type2: DTypeLike) -> np.dtype[Any]:
    """Return the smallest NumPy dtype to which both dtypes can be cast safely.

    Args:
        type1: First dtype.
        type2: Second dtype.

    Example:
        >>> tw.experimental.numpy.promote_types("int32", "float32")
        dtype('float64')
    """
    return np.promote_types(result_type(type1).dtype, result_type(type2).dtype)


def finfo(dtype: DTypeLike) -> Any:
    """Return the limits of a floating dtype: ``np.finfo``.

    Args:
        dtype: Dtype or its name.

    Example:
        >>> int(tw.experimental.numpy.finfo("float32").bits)
        32
    """
    return np.finfo(result_type(dtype).dtype)


def asarray(a: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Convert a value to a tensor.

    Python numbers, also in lists, are int64, float64 and complex128.

    Args:
        a: Array, number or nested list; a tensor is returned unchanged if it has the
            dtype.
        dtype: Dtype of the tensor; None infers it.

    Example:
        >>> tw.experimental.numpy.asarray([1.0, 2.0]).dtype
        tf.float64
        >>> tw.experimental.numpy.asarray([1, 2], "float32").dtype
        tf.float32
    """
    dtype = None if dtype is None else result_type(dtype)
    if type(a) is Tensor:
        return a if dtype is None or a.dtype is dtype else cast(a, dtype)
    if isinstance(a, (list, tuple)):
        return _from_list(a, dtype)
    if type(a) in _WEAK or type(a) is bool or is_symbolic(a):
        dtype = dtype or result_type(a)
        if not is_symbolic(a):
            a = np.asarray(a)
    value = convert_to_tensor(a)
    return value if dtype is None or value.dtype is dtype else cast(value, dtype)


def _from_list(a, dtype):
    leaves = list(_leaves(a))
    if any([isinstance(x, (str, bytes)) for x in leaves]):
        return convert_to_tensor(a, dtype)
    dtype = dtype or result_type(*leaves)
    if any([is_tensor(x) or is_symbolic(x) for x in leaves]):
        return stack([asarray(x, dtype) for x in a])
    return cast(convert_to_tensor(np.asarray(a)), dtype)


# --------------------------------------------------- arguments, as the functions take them


def arrays(*values: TensorLike) -> list[Tensor]:
    """Convert the values to tensors without promoting their dtypes."""
    return [asarray(x) for x in values]


def bools(*values: TensorLike) -> list[Tensor]:
    """Convert the values to tensors of booleans: numbers other than 0 are true."""
    return [asarray(x, "bool") for x in values]


def floats(*values: TensorLike) -> list[Tensor]:
    """Convert the values to tensors, with integers and booleans as float64."""
    return [
        x if x.dtype.is_differentiable else cast(x, float64) for x in arrays(*values)
    ]


def promote(*values: TensorLike) -> list[Tensor]:
    """Convert the values to tensors of a common dtype."""
    dtype = result_type(*values)
    return [asarray(x, dtype) for x in values]


def promote_floats(*values: TensorLike) -> list[Tensor]:
    """Convert the values to tensors of a common dtype, float64 for integers and booleans."""
    return floats(*promote(*values))
