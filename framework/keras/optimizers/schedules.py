"""`keras.optimizers.schedules`: learning rates that follow the number of steps."""

from tapewright.optimizers import schedules
from tapewright.optimizers.schedules import *

__all__ = []
__all__ += schedules.__all__
