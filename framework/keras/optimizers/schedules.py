"""`keras.optimizers.schedules`: learning rates that follow the number of steps."""

from tapewright.optimizers.schedules import *
from tapewright.optimizers.schedules import __all__ as __all__
