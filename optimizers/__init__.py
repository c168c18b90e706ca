"""Optimizers under Keras' names; `get` finds one by name."""

from . import schedules
from .adadelta import *
from .adagrad import *
from .adam import *
from .adamax import *
from .finding import *
from .ftrl import *
from .lamb import *
from .lion import *
from .loss_scale import *
from .nadam import *
from .optimizer import *
from .rmsprop import *
from .sgd import *
