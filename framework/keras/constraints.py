"""`keras.constraints`: constraints on weights, applied after each update."""

import tapewright.layers.constraints as constraints
from tapewright.layers.constraints import *

__all__ = []
__all__ += constraints.__all__
