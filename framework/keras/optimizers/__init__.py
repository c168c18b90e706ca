"""`keras.optimizers`: optimizers, which update the variables of models."""

import tapewright.optimizers as optimizers
from tapewright.optimizers import *

from . import schedules as schedules

__all__ = []
__all__ += optimizers.__all__
