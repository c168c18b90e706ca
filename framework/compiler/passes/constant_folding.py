"""A pass that evaluates nodes with constant inputs at compile time."""

import numpy as np

from tapewright.core.shapes.symbolic_shape import has_symbolic_shape
from tapewright.core.tensor import new_tensor

from ..tracing.graph import is_value
from .rewriting import is_op, is_static, rewrite

# A folded constant may be so many times larger than what it is computed from, ...
GROWTH = 4
# ... or have so many bytes, whatever it is from.
SMALL = 1 << 16


def constant_folding(graph):
    """Evaluate ops with constant inputs, unless the results are large."""
    return rewrite(graph, _folded)


def _folded(rewriter, node, inputs):
    """Return the outputs of a node as constants, or None."""
    if not is_op(node) or not inputs or any(map(is_value, inputs)):
        return None
    if not all([isinstance(x.array, np.ndarray) for x in inputs]):
        return None
    if has_symbolic_shape(node.attributes) or not all(
        [is_static(v) for v in node.outputs]
    ):
        return None
    limit = max(SMALL, GROWTH * sum([x.array.nbytes for x in inputs]))
    if sum([v.nbytes for v in node.outputs]) > limit:
        return None
    uniform = node.op.elementwise and all([_is_uniform(x.array) for x in inputs])
    if uniform:
        inputs = [new_tensor(x.array.flat[:1].reshape(())) for x in inputs]
    try:
        with np.errstate(all="ignore"):
            outputs = node.op.run(inputs, node.attributes)
    except Exception:
        if not node.op.raises_on_values(*[x.array.dtype for x in inputs]):
            raise
        return None  # the replay raises it, and names the user's line
    outputs = outputs if type(outputs) is tuple else (outputs,)
    arrays = [np.asarray(x.array) for x in outputs]
    if uniform:
        arrays = [np.broadcast_to(a, v.shape) for a, v in zip(arrays, node.outputs)]
    return [new_tensor(a) for a in arrays]


def _is_uniform(array):
    """Return whether an array is one broadcast number, which is computed once."""
    return array.size > 0 and not any(array.strides)
