"""`tw.signal`: Fourier and cosine transforms, frames and windows, as ``tf.signal``."""

from tapewright.ops.signal.fft import *
from tapewright.ops.signal.window_functions import *
