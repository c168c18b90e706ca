"""`keras.initializers`: initial values of weights."""

import tapewright.layers.initializers as initializers
from tapewright.layers.initializers import *

__all__ = []
__all__ += initializers.__all__
