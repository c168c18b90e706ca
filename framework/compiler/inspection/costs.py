"""The cost of one instruction of a program: operations, and bytes moved.

These are estimates from shapes alone, for the tables of `pretty` and of `profiler`. The
cost of a kernel is the trait ``cost`` of its op; NumPy functions are counted here.
"""

import numpy as np

from tapewright.core.op_definition.costs import (
    Cost,
    op_cost,
    per_input,
    size_of,
    total_bytes,
)
from tapewright.core.primitive import Primitive
from tapewright.ops.linalg.matmul import matmul_cost

from ..program.instructions.instruction import Memory
from ..program.instructions.scalar_functions import cast
from ..program.lowering.array_functions import copy_into

NOTHING = Cost(0, 0, 0)

# By name, as those of NumPy and of CuPy are the same.
_TRANSCENDENTALS = {
    function.__name__
    for function in (
        np.exp, np.exp2, np.expm1, np.log, np.log1p, np.log2, np.log10, np.sqrt, np.cbrt,
        np.sin, np.cos, np.tan, np.sinh, np.cosh, np.tanh, np.arcsin, np.arccos, np.arctan,
        np.arctan2, np.arcsinh, np.arccosh, np.arctanh, np.power, np.float_power,
        np.logaddexp, np.hypot,
    )
}  # fmt: skip
_PRODUCTS = {np.matmul.__name__, np.dot.__name__}
_MOVES = {cast.__name__, copy_into.__name__}


def instruction_cost(instruction) -> Cost:
    """The cost of one instruction of a program."""
    if instruction.is_free:
        return NOTHING
    inputs, outputs = instruction.operands, instruction.outputs
    nbytes = total_bytes(inputs) + total_bytes(outputs)
    if instruction.has_effect:
        written = [variable._array for variable in instruction.variables_written]
        return Cost(0, 0, nbytes + 2 * total_bytes(written))
    if instruction.steps:  # what they hand on to each other stays in the cache
        parts = [instruction_cost(step) for step in instruction.steps]
        return Cost(
            sum(c.flops for c in parts), sum(c.transcendentals for c in parts), nbytes
        )
    return Cost(*_operations(instruction, inputs, outputs), nbytes)


def _operations(instruction, inputs, outputs):
    """The flops and transcendentals of an op's kernel, or of a function of arrays."""
    op, name = instruction.node.op, instruction.name
    if instruction.memory is Memory.ALLOCATED:
        is_op = isinstance(op, Primitive)
        return (
            op_cost(op, inputs, outputs, instruction.keywords)[:2] if is_op else (0, 0)
        )
    if name in _MOVES:
        return 0, 0
    if name in _PRODUCTS:
        return matmul_cost(inputs, outputs), 0
    if name == "reduce":
        return per_input(1)(inputs, outputs)
    if name in _TRANSCENDENTALS:
        return 0, size_of(outputs[0])
    if instruction.broadcasts:
        return size_of(outputs[0]), 0
    if isinstance(op, Primitive):  # lowered to something else than its kernel
        given = [getattr(x, "array", x) for x in instruction.node.inputs]
        return op_cost(
            op, given, instruction.node.outputs, instruction.node.attributes
        )[:2]
    return 0, 0


def instruction_name(instruction):
    """Return the op that an instruction is from, or the names of fused ops."""
    steps = instruction.steps or (instruction,)
    names = list(dict.fromkeys(step.op_name for step in steps))
    return "+".join(names[:3]) + ("+..." if len(names) > 3 else "")
