"""`keras.backend`: settings, the session, and functions that older programs call."""

from .legacy import backend as _backend
from .legacy.backend import *

__all__ = []
__all__ += _backend.__all__
