"""`tw.data`: data sets as chains of transformations, under the names of ``tf.data``."""

from .dataset import *
