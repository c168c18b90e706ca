"""`keras.preprocessing.text`: texts as sequences of numbers."""

from ..legacy.preprocessing import text as _text
from ..legacy.preprocessing.text import *

__all__ = []
__all__ += _text.__all__
