"""Optimizers under the names of Keras; `get` looks one up by name."""

from . import (
    adafactor,
    adagrad,
    adam,
    ftrl,
    lion,
    loss_scale,
    multi,
    muon,
    schedule_free,
    schedules,
    serialization,
    sgd,
)
from .adafactor import *
from .adagrad import *
from .adam import *
from .base import optimizer
from .base.optimizer import *
from .ftrl import *
from .lion import *
from .loss_scale import *
from .multi import *
from .muon import *
from .schedule_free import *
from .serialization import *
from .sgd import *

__all__ = ["schedules"]
__all__ += adafactor.__all__
__all__ += adagrad.__all__
__all__ += adam.__all__
__all__ += ftrl.__all__
__all__ += lion.__all__
__all__ += loss_scale.__all__
__all__ += multi.__all__
__all__ += muon.__all__
__all__ += optimizer.__all__
__all__ += schedule_free.__all__
__all__ += serialization.__all__
__all__ += sgd.__all__
__all__.sort()
