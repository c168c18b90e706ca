"""`keras.optimizers.schedules`: learning rate schedules."""

from tapewright.optimizers.schedules import *
from tapewright.optimizers.schedules import __all__ as __all__
