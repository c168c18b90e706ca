"""`keras.activations`: the activations of `tapewright.layers`."""

import tapewright.layers.activations as activations
from tapewright.layers.activations import *

__all__ = []
__all__ += activations.__all__
