"""`tw.data`: data sets as chains of transformations, under the names of ``tf.data``."""

from .dataset import *
from .files import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
