"""`keras.regularizers`: penalties on weights and outputs."""

import tapewright.layers.regularizers as regularizers
from tapewright.layers.regularizers import *

__all__ = []
__all__ += regularizers.__all__
