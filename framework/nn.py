"""`tw.nn`: the names of TensorFlow's ``tf.nn``, defined in the op families."""

from types import SimpleNamespace

from .ops.activation import *
from .ops.attention import *
from .ops.bias import *
from .ops.convolution import *
from .ops.cross_entropy import *
from .ops.dropout import *
from .ops.dropout import stateless_dropout
from .ops.gather import embedding_lookup
from .ops.linalg import affine
from .ops.moments import *
from .ops.normalization import *
from .ops.pooling import *
from .ops.shape import depth_to_space, space_to_depth
from .ops.sorting import in_top_k, top_k

experimental = SimpleNamespace(stateless_dropout=stateless_dropout)
