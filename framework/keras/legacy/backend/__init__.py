"""`keras.backend`: settings, the session, and functions that older programs call.

`arrays` and `networks` have the functions of `tf.keras.backend`. New code uses `keras.ops`
and `keras.config`.
"""

from tapewright.core.names.name_scopes import name_scope
from tapewright.core.tensor import is_tensor

from ... import session
from ...config import (
    backend,
    epsilon,
    floatx,
    image_data_format,
    set_epsilon,
    set_floatx,
    set_image_data_format,
)
from ...session import *
from . import arrays, networks
from .arrays import *
from .networks import *

__all__ = [
    "backend",
    "epsilon",
    "floatx",
    "image_data_format",
    "is_tensor",
    "name_scope",
    "set_epsilon",
    "set_floatx",
    "set_image_data_format",
]
__all__ += session.__all__
__all__ += arrays.__all__
__all__ += networks.__all__
__all__.sort()
