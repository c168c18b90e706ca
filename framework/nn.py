"""`tw.nn`: the names of TensorFlow's ``tf.nn``, defined in the op families."""

from .ops.activation import *
from .ops.cross_entropy import *
from .ops.linalg import affine
from .ops.normalization import *
