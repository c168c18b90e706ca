"""`keras.layers`: the names of `tapewright.layers`."""

from tapewright import layers
from tapewright.layers import *

__all__ = []
__all__ += layers.__all__
