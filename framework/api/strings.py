"""`tw.strings`: element-wise operations on text, as ``tf.strings``."""

from tapewright.ops.strings.characters import *
from tapewright.ops.strings.joins import *
from tapewright.ops.strings.numbers import *
from tapewright.ops.strings.regex import *
from tapewright.ops.strings.splitting import *
