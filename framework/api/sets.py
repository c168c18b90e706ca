"""`tw.sets`: operations on rows as sets, as ``tf.sets``."""

from tapewright.ops.sparse.sets import difference, intersection, size, union

__all__ = ["difference", "intersection", "size", "union"]
