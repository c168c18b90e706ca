"""Steps of optimizers as machine code: one pass over the arrays of a variable.

The code serves arrays of any length, which is counted in blocks, so that it is compiled
once for each rule and dtype.
"""

from ...loops.fusion import form_loops
from ...loops.loop_nest import LoopNest
from . import engine, entry, runtime
from .executable import is_loop
from .llvm_writer import POINTER, Writer
from .loop_writer import write_nest

__all__ = ["compiled_update"]

# The length for which loops are scheduled: any other is right as well.
TYPICAL = 1 << 24


def compiled_update(rule, dtype, decays, scaled):
    """Return ``update(gradient, variable, *slots, *numbers)``, or None if there is no code.

    The arguments are the inputs of `BlockRule.program`, arrays of one axis and numbers in
    arrays of none. It returns True, and does nothing, if they are not as expected.
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
    places = {a: i for i, a in enumerate(inputs)}
    places.update({out: places[a] for a, out in made})
    return _compiled(nest, inputs, places, {places[out] for _, out in made})


def _compiled(nest, inputs, places, written):
    writer, count = Writer(), len(inputs)
    (axis,) = {loop.axis for loop in nest.body if hasattr(loop, "axis")}
    write_nest(writer, nest, "update.block", places, open_axis=axis, extent_at=count)
    with writer.function("update", entry.PARAMETERS, POINTER, "nounwind") as given:
        constants, args, number = given
        right = entry.check_count(writer, number, count)
        entry.refuse_unless(writer, constants, right)
        context = writer.alloca(POINTER, count + 1)
        size = None
        for n, buffer in enumerate(inputs):
            array = entry.argument(writer, args, n)
            shape = (None,) if buffer.shape else ()
            right = entry.check_array(
                writer, constants, array, shape, buffer.dtype, n in written
            )
            entry.refuse_unless(writer, constants, right)
            if n == 0:
                size = entry.array_size(writer, array, 0)
            elif buffer.shape:
                right = entry.array_size(writer, array, 0) == size
                entry.refuse_unless(writer, constants, right)
            address = entry.array_data(writer, array)
            writer.store(address, writer.at(context, n, POINTER))
        writer.store(size, writer.at(context, count, POINTER))
        width = nest.body[-1].width
        blocks = writer.binary("div", size + (width - 1), width)
        state = entry.release_gil(writer)
        writer.call("tw_parallel", [writer.symbol("update.block"), context, blocks])
        entry.retake_gil(writer, state)
        writer.ret(entry.none(writer, constants))
    symbols = {**runtime.symbols(), **entry.symbols()}
    library = engine.compiled(writer.text(), "update", symbols)
    return entry.builtin(library, "update")
