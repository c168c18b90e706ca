"""`keras.backend`: the state of a session, and the settings of `keras.config`."""

from tapewright.core.naming import reset_name_counts
from tapewright.core.tensor import is_tensor
from tapewright.layers.base.symbolic_tensor import KerasTensor

from .config import epsilon, floatx, image_data_format, set_floatx

__all__ = [
    "clear_session",
    "epsilon",
    "floatx",
    "image_data_format",
    "is_keras_tensor",
    "is_tensor",
    "set_floatx",
]


def clear_session(free_memory: bool = True) -> None:
    """Count default names from the beginning again; nothing else is held anywhere."""
    reset_name_counts()


def is_keras_tensor(x: object) -> bool:
    """Return whether ``x`` is symbolic, see `Input`."""
    return isinstance(x, KerasTensor)
