"""`keras.optimizers`: the names of `tapewright.optimizers`."""

import tapewright.optimizers as optimizers
from tapewright.optimizers import *

from . import schedules as schedules

__all__ = []
__all__ += optimizers.__all__
