"""`keras.backend`: the state of a session, and the settings of `keras.config`."""

from tapewright.core.naming import reset_name_counts
from tapewright.core.tensor import is_tensor
from tapewright.layers.base.symbolic_tensor import KerasTensor
from tapewright.layers.dtype_policies import set_dtype_policy

from .config import (
    backend,
    epsilon,
    floatx,
    image_data_format,
    set_epsilon,
    set_floatx,
    set_image_data_format,
)

__all__ = [
    "backend",
    "clear_session",
    "epsilon",
    "floatx",
    "image_data_format",
    "is_keras_tensor",
    "is_tensor",
    "set_epsilon",
    "set_floatx",
    "set_image_data_format",
]


def clear_session(free_memory: bool = True) -> None:
    """Restart the counts of default names, and unset the dtype policy of new layers.

    >>> from tapewright.layers import Dense
    >>> clear_session()
    >>> Dense(1).name, Dense(1).name
    ('dense', 'dense_1')
    """
    reset_name_counts()
    set_dtype_policy(None)


def is_keras_tensor(x: object) -> bool:
    """Return whether ``x`` is a `KerasTensor`, see `Input`."""
    return isinstance(x, KerasTensor)
