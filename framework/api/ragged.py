"""`tw.ragged`: tensors with rows of different lengths, as in ``tf.ragged``."""

from tapewright.ops.ragged.construction import *
