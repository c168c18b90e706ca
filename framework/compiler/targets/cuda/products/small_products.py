"""A pass that turns small matrix products into sums, which thread nests compute.

A call of cuBLASLt takes 5 to 8 microseconds, however few entries there are: the tiles
of its kernels are large. A nest for 128x128 by 128x10 takes 2, including the bias.
"""

import math

import numpy as np

from ....program.instructions.array_instructions import Contract
from ....program.lowering.array_functions import NotTraceable
from ....program.lowering.array_tracer import ArrayTracer, LoopBuilder
from ....program.passes.program_rewriter import ProgramRewriter
from ..scalar_functions import is_loop

MOST = 1 << 19  # multiplications


def small_products(program):
    """Replace small products of two matrices by multiplications and sums."""
    rewriter, instructions = ProgramRewriter(program), program.instructions
    for each in list(instructions):
        if not _is_small(each):
            continue
        count = len(instructions)
        try:
            out = _sums(LoopBuilder(program, each.node), *each.operands)
        except NotTraceable:
            out = None
        made = instructions[count:]
        del instructions[count:]
        if out is not None and all([m.is_free or is_loop(m) for m in made]):
            rewriter.replace(each.outputs[0], out)
            rewriter.put(each, made)
    rewriter.apply()


def _is_small(instruction):
    """Return whether an instruction is a product of two matrices with few entries."""
    if type(instruction) is not Contract or instruction.keywords:
        return False
    if instruction.function not in (np.dot, np.matmul):
        return False
    a, b = instruction.operands
    if len(a.shape) != 2 or len(b.shape) != 2 or a.dtype.char not in "fd":
        return False
    return 0 < math.prod((*a.shape, b.shape[1])) <= MOST


def _sums(builder, a, b):
    """``sum(a[:, :, None] * b, axis=1)`` as traced; return its buffer."""
    x, y = ArrayTracer(a, builder), ArrayTracer(b, builder)
    m, k = a.shape
    return builder.reduce(
        np.add, x.reshape(m, k, 1) * y.reshape(1, *b.shape), 1, None, None, False
    ).buffer
