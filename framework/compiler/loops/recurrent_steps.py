"""Steps of recurrent layers, for the targets that compile them: see `step_tracer`.

They write parts of rows in place, and a row is read before it is written.
"""

from ..program.instructions.array_instructions import Copy, View
from ..program.lowering.array_functions import copy_into
from ..program.lowering.step_tracer import Region, StepMemory
from ..program.program import Buffer, Kind
from .accesses import Layout, layout_of
from .loop_nest import LoopNest
from .threads.thread_nest import ThreadNest

RECURRENT = [
    f"{cell}_{part}"
    for cell in ("lstm", "gru", "simple_rnn")
    for part in ("steps", "vjp", "jvp")
]


def accepts_recurrent(instruction):
    """Return whether steps of these operands can be compiled."""
    dtypes = {a.dtype.char for a in instruction.operands} - {"?"}
    sizes = [a.size for a in (*instruction.operands, *instruction.outputs)]
    return len(dtypes) == 1 and dtypes <= {"f", "d"} and all(sizes)


def step_instructions(trace):
    """Return the instructions of a step, without views."""
    return [each for each in trace.program.instructions if type(each) is not View]


def initial_rows(memory):
    """Yield pairs of a row, None for all rows, and the buffer that is copied there."""
    if type(memory.initial) is StepMemory:
        yield None, memory.initial.initial
    yield from memory.rows.items()


def join_in_place(trace, join_class, chunks=None):
    """Replace concatenations by parts that are stored directly in the whole array.

    A kernel ``join_class`` represents the whole, in as many ``chunks`` as the batch
    has. Returns the layouts of these parts, and of the values stored in regions.
    """
    program, layouts = trace.program, {}
    instructions, program.instructions = program.instructions, []
    for each in instructions:
        if type(each) is not Copy or each.axis is None:
            program.instructions.append(each)
            continue
        (whole,), parts, start = each.outputs, [], 0
        for operand in each.operands:
            copy = Copy(copy_into, (operand,), each.node)
            (part,) = program.append(copy, (operand.shape, operand.dtype))
            layouts[part] = Layout(whole, start, (whole.shape[-1], 1))
            start += operand.shape[-1]
            part.kind = Kind.INPUT
            parts.append(part)
        join = join_class(each, program.limits)
        join.operands, join.outputs = tuple(parts), (whole,)
        whole.instruction, whole.kind = join, Kind.INPUT
        shape = whole.shape if chunks is None else (chunks, *whole.shape)
        whole.source = Buffer(shape, whole.dtype, Kind.SCRATCH)
        program.instructions.append(join)
    for out, region in trace.outputs.items():
        width = region.memory.shape[-1]
        if out.shape[-1] != width:
            layouts[out] = Layout(out, region.start, (width, 1))
    return layouts


def is_safe(trace):
    """Return whether the old value of a region is read before the region is written.

    Within one nest, this must hold for each entry.
    """
    instructions = step_instructions(trace)
    for i, each in enumerate(instructions):
        for out in each.outputs:
            region = trace.outputs.get(out)
            if region is None:
                continue
            for j, other in enumerate(instructions[i:], i):
                for a in other.operands:
                    held = trace.inputs.get(layout_of(a).base)
                    if not _same_row(held, region):
                        continue
                    if type(other) not in (LoopNest, ThreadNest):
                        return False
                    if _is_apart(other, a, region, out.shape[-1]):
                        continue
                    if j > i or not each.is_done_with(a, out):
                        return False
    return True


def _same_row(held, region):
    return type(held) is Region and (
        (held.memory, held.ahead) == (region.memory, region.ahead)
    )


def _is_apart(nest, operand, region, width):
    """Return whether a nest reads other columns of a row than a region has."""
    size = region.memory.shape[-1]
    for _, access in nest.accesses():
        if access.array is not operand:
            continue
        along = [(a.extent - 1) * s for a, s in access.strides if 0 <= s < size]
        first = access.offset % size
        if len(along) < len(access.strides) - 1 or first + sum(along) >= size:
            return False
        if first < region.start + width and region.start <= first + sum(along):
            return False
    return True
