"""`tw.bitwise`: the names of TensorFlow's ``tf.bitwise``, defined in the op families."""

from tapewright.ops.math.comparison import (
    bitwise_and as bitwise_and,
    bitwise_or as bitwise_or,
    bitwise_xor as bitwise_xor,
    invert as invert,
    left_shift as left_shift,
    right_shift as right_shift,
)
