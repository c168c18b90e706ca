"""`tw.signal`: Fourier and cosine transforms, frames and windows, as ``tf.signal``."""

from tapewright.ops.signal.fft import *
from tapewright.ops.signal.fftnd import *
from tapewright.ops.signal.mdct import *
from tapewright.ops.signal.mel import *
from tapewright.ops.signal.window_functions import *
