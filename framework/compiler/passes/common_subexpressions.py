"""A pass that merges nodes of the same op on the same inputs."""

import numpy as np

from tapewright.core.dtypes import kind_of

from ..tracing.graph import is_value
from .rewriting import hashable, is_op, rewrite

# Constants up to so many bytes are the same if their bytes are.
COMPARED = 4096


def common_subexpressions(graph):
    """Keep one of several nodes that apply the same op to the same inputs."""
    known, keys = {}, {}

    def merged(rewriter, node, inputs):
        key = _key(node, inputs, keys) if is_op(node) else None
        first = node if key is None else known.setdefault(key, node)
        return None if first is node else [rewriter.current(v) for v in first.outputs]

    return rewrite(graph, merged)


def _key(node, inputs, keys):
    """Return a key that equal nodes share, or None for a node that must not be merged."""
    attributes = hashable(node.attributes) if node.attributes else ()
    if attributes is None:
        return None
    own = [x if is_value(x) else _constant_key(x, keys) for x in inputs]
    if node.op.commutative and kind_of(node.outputs[0].dtype) in "biuf":
        own = [frozenset(own)]
    return (node.op, *own, attributes)


def _constant_key(x, keys):
    """Return a key of a constant: the bytes of a small one, the identity of a large one."""
    key = keys.get(id(x))
    if key is None:
        array = x.array
        key = id(array)
        if isinstance(array, np.ndarray) and array.nbytes <= COMPARED:
            if kind_of(array.dtype) in "biufc":
                key = array.dtype.str, array.shape, array.tobytes()
        keys[id(x)] = key
    return key
