"""Optimizers under Keras' names; `get` finds one by name."""

from . import (
    adagrad,
    adam,
    ftrl,
    lion,
    loss_scale,
    optimizer,
    schedules,
    serialization,
    sgd,
)
from .adagrad import *
from .adam import *
from .ftrl import *
from .lion import *
from .loss_scale import *
from .optimizer import *
from .serialization import *
from .sgd import *

__all__ = ["schedules"]
__all__ += adagrad.__all__
__all__ += adam.__all__
__all__ += ftrl.__all__
__all__ += lion.__all__
__all__ += loss_scale.__all__
__all__ += optimizer.__all__
__all__ += serialization.__all__
__all__ += sgd.__all__
__all__.sort()
