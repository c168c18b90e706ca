"""`tw.math.special`: Bessel functions and integrals, as ``tf.math.special``."""

from tapewright.ops.math.bessel import *
from tapewright.ops.math.integrals import *
