"""`keras.constraints`: the constraints of `tapewright.layers`."""

from tapewright.layers import constraints
from tapewright.layers.constraints import *

__all__ = []
__all__ += constraints.__all__
