"""`keras.regularizers`: the regularizers of `tapewright.layers`."""

import tapewright.layers.regularizers as regularizers
from tapewright.layers.regularizers import *

__all__ = []
__all__ += regularizers.__all__
