"""The state of a session of Keras, and questions about tensors and dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapewright.core.dtypes import as_dtype
from tapewright.core.floatx import floatx
from tapewright.core.naming import count_name, reset_name_counts
from tapewright.layers.base.symbolic_tensor import KerasTensor
from tapewright.layers.dtype_policies import set_dtype_policy

if TYPE_CHECKING:
    from tapewright.core.typing import DTypeLike

__all__ = [
    "clear_session",
    "get_uid",
    "is_float_dtype",
    "is_int_dtype",
    "is_keras_tensor",
    "result_type",
    "standardize_dtype",
]


def clear_session(free_memory: bool = True) -> None:
    """Restart the counts of default names, and unset the dtype policy of new layers.

    Example:
        >>> from tapewright.layers import Dense
        >>> keras.utils.clear_session()
        >>> Dense(1).name, Dense(1).name
        ('dense', 'dense_1')
    """
    reset_name_counts()
    set_dtype_policy(None)


def get_uid(prefix: str = "") -> int:
    """Return how often this was called for ``prefix``, since `clear_session`.

    Default names of layers count with it: after a layer "dense" it is 2 for "dense".

    Example:
        >>> keras.utils.clear_session()
        >>> keras.backend.get_uid("block"), keras.backend.get_uid("block")
        (1, 2)
    """
    return count_name(prefix) + 1


def is_keras_tensor(x: object) -> bool:
    """Return whether ``x`` is a `KerasTensor`, see `Input`."""
    return isinstance(x, KerasTensor)


def standardize_dtype(dtype: DTypeLike | None) -> str:
    """Return the name of a dtype; None is `floatx`.

    Raises: ``ValueError`` for anything else.

    Example:
        >>> import numpy as np
        >>> keras.utils.standardize_dtype(np.int64), keras.utils.standardize_dtype(float), keras.utils.standardize_dtype(None)
        ('int64', 'float32', 'float32')
    """
    if dtype is None:
        return floatx()
    try:
        return as_dtype(dtype).name
    except TypeError:
        raise ValueError(f"standardize_dtype: unknown dtype {dtype!r}") from None


def is_float_dtype(dtype: DTypeLike | None) -> bool:
    """Return whether a dtype is a floating one."""
    return as_dtype(standardize_dtype(dtype)).is_floating


def is_int_dtype(dtype: DTypeLike | None) -> bool:
    """Return whether a dtype is an integer one, signed or not."""
    return as_dtype(standardize_dtype(dtype)).is_integer


def result_type(*dtypes: DTypeLike | None) -> str:
    """Return the name of the dtype in which `keras.ops` meets values of these dtypes.

    ``int`` and ``float`` stand for Python numbers, None for `floatx`.

    Example:
        >>> keras.backend.result_type("int32", "float16"), keras.backend.result_type("bool", int)
        ('float16', 'int32')
    """
    from ..ops.promotion import result_type  # not before its first use

    return result_type(*dtypes)
