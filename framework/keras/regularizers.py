"""`keras.regularizers`: the regularizers of `tapewright.layers`."""

from tapewright.layers import regularizers
from tapewright.layers.regularizers import *

__all__ = []
__all__ += regularizers.__all__
