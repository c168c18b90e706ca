"""Numbers that a translation needs while a graph is traced: shapes, axes, indices.

Exporters compute shapes with ops: ``Shape``, ``Gather``, ``Concat``, ``Reshape``. In a
trace for all sizes such a tensor consists of formulas (see `core.shapes.symbolic_dim`).
Where it does not, the trace is one for the sizes of each call; and where the values of
other tensors are needed, the function runs eagerly.
"""

import numpy as np

from tapewright.compiler.tracing.tracer import Tracer
from tapewright.core.interpreters import active_interpreters
from tapewright.core.shapes.symbolic_dim import NeedsSize, NeedsValue, is_symbolic
from tapewright.core.shapes.symbolic_operand import TracedOperand
from tapewright.core.shapes.symbolic_shape import has_symbolic_shape
from tapewright.core.tensor import convert_to_tensor
from tapewright.ops.array.sizes import size_tensor


def known(x):
    """Return the value of a tensor as an array of numbers and formulas, or None."""
    if isinstance(x, TracedOperand):
        return x.known_sizes()
    return np.asarray(x.numpy())


def formulas(*tensors):
    """Return arrays of numbers and formulas if all tensors are known and some hold formulas.

    Otherwise return None: ops on tensors with values compute with these.
    """
    traced = [known(x) for x in tensors if isinstance(x, TracedOperand)]
    if not traced or any([entries is None for entries in traced]):
        return None
    return [known(x) for x in tensors]


def numbers(x):
    """Return the value of a tensor, as a list of numbers and formulas, or one of them.

    An attribute, which takes the place of the tensor in old opsets, is returned as it is.

    Raises:
        NeedsSize: If only a trace for the sizes of a call can know it.
        NeedsValue: If no trace can.
    """
    if x is None or isinstance(x, (int, float, list, tuple)):
        return x
    array = known(x)
    if array is None:
        kind = NeedsSize if _is_for_all_sizes() else NeedsValue
        raise kind("the ONNX graph computes a shape, an axis or an index from values")
    return array.tolist()


def number(x, default=None):
    """Return the value of a tensor of one entry; ``default`` for None."""
    value = default if x is None else numbers(x)
    while isinstance(value, list):
        (value,) = value
    return value


def _is_for_all_sizes():
    tracers = [each for each in active_interpreters() if isinstance(each, Tracer)]
    inputs = [value for tracer in tracers for value in tracer.graph.inputs]
    return has_symbolic_shape([value.shape for value in inputs])


def dims(x):
    """Return the shape as a tuple of ints and formulas."""
    return tuple(x.shape)


def sized(values, dtype="int64"):
    """Return numbers and formulas as a tensor."""
    values = np.asarray(values, object)
    if any([is_symbolic(n) for n in values.flat]):
        return size_tensor(tuple(values.tolist()) if values.ndim else values[()], dtype)
    return convert_to_tensor(values.astype(np.dtype(dtype)))


def axes_of(axes, rank):
    """Return axes, a tensor or numbers, counted from the front."""
    axes = numbers(axes)
    axes = [axes] if isinstance(axes, int) else axes
    wrong = [axis for axis in axes if not -rank <= axis < rank]
    if wrong:
        raise ValueError(f"axes must be from {-rank} to {rank - 1}, got {wrong}")
    return [axis % rank for axis in axes]
