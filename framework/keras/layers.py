"""`keras.layers`: the parts of networks, each with its config, weights and call."""

import tapewright.layers as layers
from tapewright.layers import *

__all__ = []
__all__ += layers.__all__
