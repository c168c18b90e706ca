"""`tw.linalg`: the names of TensorFlow's ``tf.linalg``, defined in the op families."""

from .ops.contraction import *
from .ops.decompositions import *
from .ops.diagonal import *
from .ops.linalg import *
from .ops.linear_systems import *
from .ops.matrix_functions import *
from .ops.normalization import l2_normalize
from .ops.reduction import global_norm
