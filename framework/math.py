"""`tw.math`: the names of TensorFlow's ``tf.math``, defined in the op families."""

from .ops.activation import (
    log_sigmoid,
    log_softmax,
    sigmoid,
    softmax,
    softplus,
    softsign,
)
from .ops.comparison import *
from .ops.conversion import *
from .ops.counting import *
from .ops.cross_entropy import *
from .ops.elementwise import *
from .ops.indexing import argmax, argmin
from .ops.moments import zero_fraction
from .ops.normalization import l2_normalize
from .ops.reduction import *
from .ops.scan import *
from .ops.segment import *
from .ops.sorting import *
from .ops.special import *
from .ops.trigonometry import *
