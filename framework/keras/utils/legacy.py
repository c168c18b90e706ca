"""`keras.utils.legacy`: configs of Keras 2, a class name and the constructor arguments."""

from ..legacy import serialization as _serialization
from ..legacy.serialization import *

__all__ = []
__all__ += _serialization.__all__
