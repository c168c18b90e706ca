"""`tw.bitwise`: the names of TensorFlow's ``tf.bitwise``, defined in the op families."""

from tapewright.ops.math.comparison import (
    bitwise_and,
    bitwise_or,
    bitwise_xor,
    invert,
    left_shift,
    right_shift,
)
