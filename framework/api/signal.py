"""`tw.signal`: the names of TensorFlow's ``tf.signal``, defined in the op families."""

from tapewright.ops.signal.fft import *
from tapewright.ops.signal.window_functions import *
