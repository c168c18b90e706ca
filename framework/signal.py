"""`tw.signal`: the names of TensorFlow's ``tf.signal``, defined in the op families."""

from .ops.fft import *
from .ops.windows import *
