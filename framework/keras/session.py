"""The state of a Keras session, and functions that inspect tensors and dtypes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapewright.core.dtypes import as_dtype
from tapewright.core.names.naming import count_name, reset_name_counts
from tapewright.core.settings.floatx import floatx
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
    """Reset the counters of default names, and the dtype policy of new layers.

    Args:
        free_memory: Ignored.

    Example:
        >>> from tapewright.layers import Dense
        >>> keras.utils.clear_session()
        >>> Dense(1).name, Dense(1).name
        ('dense', 'dense_1')
    """
    reset_name_counts()
    set_dtype_policy(None)


def get_uid(prefix: str = "") -> int:
    """Return the number of calls with this prefix since `clear_session`.

    Default names of layers count as well: after a layer "dense" the result for "dense"
    is 2.

    Args:
        prefix: Any string.

    Example:
        >>> keras.utils.clear_session()
        >>> keras.backend.get_uid("block"), keras.backend.get_uid("block")
        (1, 2)
    """
    return count_name(prefix) + 1


def is_keras_tensor(x: object) -> bool:
    """Return whether an object is a `KerasTensor`; see `Input`.

    Args:
        x: Any object.
    """
    return isinstance(x, KerasTensor)


def standardize_dtype(dtype: DTypeLike | None) -> str:
    """Return the name of a dtype.

    Args:
        dtype: Dtype of any kind, its name, or None for `floatx`.

    Raises:
        ValueError: If ``dtype`` is not a dtype.

    Example:
        >>> import numpy as np
        >>> standardize_dtype = keras.utils.standardize_dtype
        >>> standardize_dtype(np.int64), standardize_dtype(float), standardize_dtype(None)
        ('int64', 'float32', 'float32')
    """
    if dtype is None:
        return floatx()
    try:
        return as_dtype(dtype).name
    except TypeError:
        raise ValueError(f"standardize_dtype: unknown dtype {dtype!r}") from None


def is_float_dtype(dtype: DTypeLike | None) -> bool:
    """Return whether a dtype is floating.

    Args:
        dtype: Dtype of any kind, its name, or None for `floatx`.
    """
    return as_dtype(standardize_dtype(dtype)).is_floating


def is_int_dtype(dtype: DTypeLike | None) -> bool:
    """Return whether a dtype is an integer dtype, signed or unsigned.

    Args:
        dtype: Dtype of any kind, its name, or None for `floatx`.
    """
    return as_dtype(standardize_dtype(dtype)).is_integer


def result_type(*dtypes: DTypeLike | None) -> str:
    """Return the name of the dtype to which `keras.ops` promotes values of these dtypes.

    Args:
        *dtypes: Dtypes; ``int`` and ``float`` mean Python numbers, None means `floatx`.

    Example:
        >>> keras.backend.result_type("int32", "float16")
        'float16'
        >>> keras.backend.result_type("bool", int)
        'int32'
    """
    from .ops.promotion import result_type  # not before its first use

    return result_type(*dtypes)
