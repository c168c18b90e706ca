"""`tw.strings`: text as ops, entry by entry, as ``tf.strings``."""

from tapewright.ops.strings.characters import *
from tapewright.ops.strings.joins import *
from tapewright.ops.strings.numbers import *
from tapewright.ops.strings.regex import *
from tapewright.ops.strings.splitting import *
