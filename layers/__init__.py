"""Layers: configuration and weights around the ops, under Keras' names."""

from . import activations, initializers, regularizers
from .core import *
from .layer import *
from .normalization import *
