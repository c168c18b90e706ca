"""`tw.image`: images as tensors, and as files in strings, as ``tf.image``."""

from tapewright.io.images import *
from tapewright.ops.image.processing import *
