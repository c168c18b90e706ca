"""Costs of ops by count: floating point operations, and bytes read and written.

Estimates from the shapes alone, for the tables of `pretty` and of `profiler`: sums,
products and comparisons count as one each, functions like ``exp`` are counted apart. What
only moves data, and what is not known here, has bytes and no operations.
"""

import math
from typing import NamedTuple

from ..program.instruction import Memory

__all__ = ["Cost", "instruction_cost", "instruction_name", "op_cost"]


class Cost(NamedTuple):
    """Counts of one call: ``flops``, ``transcendentals`` (``exp``, ``sin``, ...), bytes."""

    flops: int
    transcendentals: int
    nbytes: int

    def __add__(self, other):
        return Cost(*[a + b for a, b in zip(self, other, strict=True)])


NOTHING = Cost(0, 0, 0)

# For each entry of the output: operations, and functions like exp.
_PER_OUTPUT = dict.fromkeys(
    """exp exp2 expm1 log log1p log2 log10 sqrt cbrt sin cos tan sinh cosh tanh arcsin
    arccos arctan arctan2 arcsinh arccosh arctanh asin acos atan atan2 asinh acosh atanh
    power float_power logaddexp erf erfc erfinv erfcinv lgamma digamma ndtri hypot angle
    polygamma zeta log_or_zero norm_sqrt polygamma_of_order""".split(),
    (0, 1),
)
_PER_OUTPUT |= {
    "adjust_contrast": (3, 0),
    "cast": (0, 0),
    "clip_by_norm": (3, 0),
    "clip_by_value": (2, 0),
    "elu": (1, 1),
    "exp_square": (2, 1),
    "gelu": (3, 1),
    "gelu_by_tanh": (7, 1),
    "gelu_by_tanh_slope": (14, 1),
    "gelu_slope": (5, 2),
    "identity": (0, 0),
    "leaky_relu": (2, 0),
    "log_softmax": (4, 1),
    "multiply_add": (2, 0),
    "rsqrt": (1, 1),
    "sigmoid": (2, 1),
    "sigmoid_cross_entropy_with_logits": (4, 2),
    "softmax": (4, 1),
    "softmax_excess": (5, 1),
    "softplus": (2, 2),
    "softsign": (2, 0),
    "squared_difference": (2, 0),
    "standardize_grad": (6, 0),
    "stop_gradient": (0, 0),
    "tanh_grad": (3, 0),
    "xdivy": (1, 0),
    "xlog1py": (1, 1),
    "xlogy": (1, 1),
}

# For each entry of the largest input.
_PER_INPUT = dict.fromkeys(
    """reduce_sum reduce_mean reduce_max reduce_min reduce_prod reduce_any reduce_all
    count_nonzero sum_to_shape argmax argmin cumsum cumprod unsorted_segment_sum
    unsorted_segment_max unsorted_segment_min unsorted_segment_prod scatter_rows bincount
    add_reduce maximum_reduce minimum_reduce multiply_reduce fold spread_to_maxima
    pick_at_maxima spread_means""".split(),
    (1, 0),
)
_PER_INPUT |= {
    "cumulative_logsumexp": (3, 2),
    "global_norm": (2, 0),
    "l2_loss": (2, 0),
    "linear_scan": (2, 0),
    "moments": (4, 0),
    "reduce_logsumexp": (3, 1),
    "softmax_cross_entropy_with_logits": (5, 1),
    "sparse_softmax_cross_entropy_with_logits": (3, 1),
    "standardize": (6, 0),
}


# Calls that only move data, whatever op they are from.
_MOVES = {"cast", "copy_into", "copyto"}


def _size(x):
    return math.prod(x.shape)


def _matmul(inputs, outputs, attributes):
    a = inputs[0].shape
    inner = a[-2 if attributes.get("transpose_a") and len(a) > 1 else -1] if a else 1
    return 2 * _size(outputs[0]) * inner


def _affine(inputs, outputs, attributes):
    return _matmul(inputs, outputs, {}) + _size(outputs[0])


def _einsum(inputs, outputs, attributes):
    """Of one or two factors; more of them are multiplied in an order not known here."""
    equation = attributes.get("equation", "").replace(" ", "")
    terms = equation.partition("->")[0].split(",")
    if len(inputs) > 2 or "." in equation or len(terms) != len(inputs):
        return 0
    sizes = {}
    for term, x in zip(terms, inputs, strict=True):
        sizes.update(zip(term, x.shape, strict=True))
    return len(inputs) * math.prod(sizes.values())


def _convolution(inputs, outputs, attributes):
    return 2 * _size(outputs[0]) * math.prod(inputs[1].shape[:-1])


def _convolution_input_gradient(inputs, outputs, attributes):
    return 2 * _size(inputs[0]) * math.prod(inputs[1].shape[:-1])


def _convolution_filter_gradient(inputs, outputs, attributes):
    return 2 * _size(inputs[1]) * math.prod(outputs[0].shape[:-1])


def _pooling(inputs, outputs, attributes):
    return _size(outputs[0]) * attributes.get("size", 1)


def _add_n(inputs, outputs, attributes):
    return (len(inputs) - 1) * _size(outputs[0])


def _fourier(inputs, outputs, attributes):
    x = max(inputs[0], outputs[0], key=_size)
    axes = attributes.get("axes", (-1,))
    return sum(int(5 * _size(x) * math.log2(max(x.shape[a], 1))) for a in axes)


def _cubic(factor):
    """Factorizations: so many times n ** 3 for each matrix, and 2 n ** 2 by column."""

    def count(inputs, outputs, attributes):
        shape = inputs[0].shape
        cubes = factor * math.prod(shape[:-1]) * min(shape[-2:]) * shape[-1]
        columns = 2 * _size(inputs[1]) * shape[-1] if len(inputs) > 1 else 0
        return int(cubes) + columns

    return count


_FORMULAS = {
    "add_n": _add_n,
    "affine": _affine,
    "cholesky": _cubic(1 / 3),
    "convolution": _convolution,
    "convolution_filter_gradient": _convolution_filter_gradient,
    "convolution_input_gradient": _convolution_input_gradient,
    "det": _cubic(2 / 3),
    "dot": _matmul,
    "einsum": _einsum,
    "fft": _fourier,
    "inv": _cubic(2),
    "irfft": _fourier,
    "matmul": _matmul,
    "qr": _cubic(2),
    "rfft": _fourier,
    "slogdet": _cubic(2 / 3),
    "solve": _cubic(2 / 3),
    "triangular_solve": _cubic(0),
    "window_max": _pooling,
    "window_mean": _pooling,
}


def op_cost(name, inputs, outputs, attributes=None, elementwise=False) -> Cost:
    """The cost of an op by name, on anything with ``shape``, ``size`` and ``dtype``.

    ``elementwise``: an op that is not in the table then counts one for each entry.

    >>> import numpy as np
    >>> a, b = np.zeros((4, 8)), np.zeros((8, 3))
    >>> op_cost("matmul", [a, b], [a @ b])
    Cost(flops=192, transcendentals=0, nbytes=544)
    """
    try:
        flops, transcendentals = _operations(
            name, inputs, outputs, attributes or {}, elementwise
        )
    except (IndexError, ValueError, TypeError, AttributeError):  # not of a usual form
        flops, transcendentals = 0, 0
    return Cost(flops, transcendentals, _bytes(inputs) + _bytes(outputs))


def _operations(name, inputs, outputs, attributes, elementwise):
    if name in _FORMULAS:
        return _FORMULAS[name](inputs, outputs, attributes), 0
    if name in _PER_INPUT:
        each, size = _PER_INPUT[name], max(map(_size, inputs))
    else:
        each = _PER_OUTPUT.get(name, (1, 0) if elementwise else (0, 0))
        size = _size(outputs[0])
    return each[0] * size, each[1] * size


def _bytes(arrays):
    """The bytes of arrays; a view with repeated entries has those of its memory."""
    total, seen = 0, set()
    for x in arrays:
        if id(x) not in seen and hasattr(x, "nbytes"):
            seen.add(id(x))
            base = getattr(x, "base", None)
            total += x.nbytes if base is None else min(x.nbytes, base.nbytes)
    return total


def instruction_cost(instruction) -> Cost:
    """The cost of one instruction of a program."""
    if instruction.is_free:
        return NOTHING
    inputs, outputs = instruction.operands, instruction.outputs
    nbytes = _bytes(inputs) + _bytes(outputs)
    if instruction.has_effect:
        written = [variable._array for variable in instruction.variables_written]
        return Cost(0, 0, nbytes + 2 * _bytes(written))
    if instruction.steps:  # what they hand on to each other stays in the cache
        parts = [instruction_cost(step) for step in instruction.steps]
        return Cost(
            sum(c.flops for c in parts), sum(c.transcendentals for c in parts), nbytes
        )
    node = instruction.node
    if instruction.memory is Memory.OWN:
        elementwise = _is_entrywise(node.op)
        return op_cost(node.name, inputs, outputs, instruction.keywords, elementwise)
    name, elementwise = instruction.name, instruction.broadcasts
    if name == "reduce":
        name = f"{instruction.ufunc.__name__}_reduce"
    if not (elementwise or _is_known(name)) and _is_known(node.name):
        whole = _node_cost(node)  # a kernel in another guise
        return Cost(whole.flops, whole.transcendentals, nbytes)
    return op_cost(name, inputs, outputs, {}, elementwise)


def _is_known(name):
    return (
        name in _FORMULAS or name in _PER_INPUT or name in _PER_OUTPUT or name in _MOVES
    )


def _node_cost(node):
    inputs = [getattr(x, "array", x) for x in node.inputs]
    return op_cost(node.name, inputs, node.outputs, node.attributes)


def instruction_name(instruction):
    """The op that an instruction is from; of several that were fused, their names."""
    steps = instruction.steps or (instruction,)
    names = list(dict.fromkeys(step.node.name for step in steps))
    return "+".join(names[:3]) + ("+..." if len(names) > 3 else "")


def _is_entrywise(op):
    return bool(getattr(op, "elementwise", False))
