"""`keras.layers`: the names of `tapewright.layers`."""

import tapewright.layers as layers
from tapewright.layers import *

__all__ = []
__all__ += layers.__all__
