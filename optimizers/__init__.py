"""Optimizers under Keras' names; `get` finds one by name."""

from . import (
    adadelta,
    adagrad,
    adam,
    adamax,
    ftrl,
    lamb,
    lion,
    loss_scale,
    nadam,
    optimizer,
    rmsprop,
    schedules,
    serialization,
    sgd,
)
from .adadelta import *
from .adagrad import *
from .adam import *
from .adamax import *
from .ftrl import *
from .lamb import *
from .lion import *
from .loss_scale import *
from .nadam import *
from .optimizer import *
from .rmsprop import *
from .serialization import *
from .sgd import *

__all__ = ["schedules"]
__all__ += adadelta.__all__
__all__ += adagrad.__all__
__all__ += adam.__all__
__all__ += adamax.__all__
__all__ += ftrl.__all__
__all__ += lamb.__all__
__all__ += lion.__all__
__all__ += loss_scale.__all__
__all__ += nadam.__all__
__all__ += optimizer.__all__
__all__ += rmsprop.__all__
__all__ += serialization.__all__
__all__ += sgd.__all__
__all__.sort()
