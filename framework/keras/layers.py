"""`keras.layers`: layers of neural networks, with their configs, weights and calls."""

import tapewright.layers as layers
from tapewright.layers import *

__all__ = []
__all__ += layers.__all__
