"""`keras.initializers`: the initializers of `tapewright.layers`."""

from tapewright.layers import initializers
from tapewright.layers.initializers import *

__all__ = []
__all__ += initializers.__all__
