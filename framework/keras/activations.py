"""`keras.activations`: the activations of `tapewright.layers`."""

from tapewright.layers import activations
from tapewright.layers.activations import *

__all__ = []
__all__ += activations.__all__
