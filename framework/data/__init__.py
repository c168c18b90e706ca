"""Data on their way in: data sets as chains of transformations, in ``tf.data``'s names."""

from .dataset import *
