"""Optimizer steps as machine code: one pass over the arrays of a variable.

The code handles arrays of any length, counted in blocks, so that it is compiled once
for each rule and dtype.
"""

import numpy as np

from ....loops.fusion import form_loops
from ....loops.loop_nest import LoopNest
from ..jit import engine, runtime, trampoline
from ..llvm_writer import POINTER, Writer
from ..loop_support import is_loop
from ..loop_writer import write_nest

# The length for which loops are scheduled: any other is right as well.
TYPICAL = 1 << 24


def compiled_update(rule, dtype, decays, scaled):
    """Return ``update(gradient, variable, *slots, *numbers)``, or None if there is no code.

    The arguments are the inputs of `BlockRule.program`: arrays of rank 1, and numbers
    as arrays of rank 0. It returns True, and does nothing, if they are not as expected.
    """
    program = rule.program((TYPICAL,), dtype, decays, scaled)
    if program is None:
        return None
    inputs, outputs = list(program.inputs), list(program.outputs)
    arrays = inputs[1 : 2 + rule.slots]  # changed in place
    form_loops(program, is_loop)
    made = [(a, out) for a, out in zip(arrays, outputs) if a is not out]
    if len(program.instructions) != 1 or type(program.instructions[0]) is not LoopNest:
        return None
    (nest,) = program.instructions
    if not all([nest.is_done_with(a, out) for a, out in made]) or nest.finish:
        return None
    index_of = {a: i for i, a in enumerate(inputs)}
    index_of.update({out: index_of[a] for a, out in made})
    return _compiled(nest, inputs, index_of, {index_of[out] for _, out in made})


def _compiled(nest, inputs, index_of, written):
    writer, count = Writer(), len(inputs)
    (axis,) = {loop.axis for loop in nest.body if hasattr(loop, "axis")}
    write_nest(writer, nest, "update.block", index_of, open_axis=axis, extent_at=count)
    with writer.function("update", [("context", POINTER)], np.int64) as (context,):
        size = writer.load(writer.at(context, count, np.int64), np.int64)
        width = nest.body[-1].width
        blocks = writer.binary("div", size + (width - 1), width)
        runtime.parallel(writer, "update.block", context, blocks)
        writer.ret(writer.index(0))
    library = engine.compiled(writer.text(), "update", runtime.symbols())
    arguments = [
        trampoline.Expected(
            (trampoline.ANY_SIZE,) if buffer.shape else (), buffer.dtype, n in written
        )
        for n, buffer in enumerate(inputs)
    ]
    addresses = [(n, 0) for n in range(count)]
    return trampoline.function(
        "update", library, ["update"], arguments, addresses, long=True
    )
