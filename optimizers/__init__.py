"""Optimizers under Keras' names; `get` finds one by name."""

from .adam import *
from .optimizer import *
from .sgd import *
