"""`keras.activations`: activation functions, by object or by name."""

import tapewright.layers.activations as activations
from tapewright.layers.activations import *

__all__ = []
__all__ += activations.__all__
