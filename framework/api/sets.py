"""`tw.sets`: rows as sets, under the names of ``tf.sets``."""

from tapewright.ops.sparse.sets import difference, intersection, size, union

__all__ = ["difference", "intersection", "size", "union"]
