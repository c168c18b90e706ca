"""`keras.preprocessing.sequence`: sequences of numbers, padded, sampled and in windows."""

from ..legacy.preprocessing import sequence as _sequence
from ..legacy.preprocessing.sequence import *

__all__ = []
__all__ += _sequence.__all__
