"""Recurrent layers as machine code: a loop over the steps of a sequence.

The kernel of the op is traced for one step (`step_tracer`), whose program becomes loop nests
and products like any other. They find the rows of the sequences in a table of addresses,
which the loop sets before each step; so they write straight into the arrays of all steps.
"""

import math
from typing import NamedTuple

import numpy as np

from ...loops.accesses import Layout, layout_of
from ...loops.fusion import form_loops
from ...loops.loop_nest import LoopNest
from ...loops.statements import statements_in
from ...program.array_functions import copy_into
from ...program.array_instructions import Copy, View
from ...program.buffer_assignment import BufferAssignment
from ...program.instruction import Instruction
from ...program.program import Buffer, Kind
from ...program.step_tracer import Memory, Region, trace_steps
from . import segments
from .kernel import Arguments, NativeKernel
from .llvm_writer import POINTER

__all__ = ["RECURRENT", "StepLoop"]

RECURRENT = [
    f"{cell}_{part}"
    for cell in ("lstm", "gru", "simple_rnn")
    for part in ("steps", "vjp", "jvp")
]


class Join(NativeKernel):
    """Makes one array of parts that lie in its memory already."""

    __slots__ = ()
    work = 0

    @classmethod
    def accepts(cls, instruction):
        """Return False: it replaces no instruction, but is put behind a `StepLoop`."""
        return False

    def write(self, writer, name, arguments):
        """Append nothing: all entries are where they belong."""


class Slot(NamedTuple):
    """An address in the table: an array, or its row ``t + ahead`` in step ``t``.

    ``array`` is the number of an operand or, from -1 down, of an output; ``offset`` is in
    bytes, ``ahead`` None for an address that is the same in all steps.
    """

    array: int
    offset: int = 0
    ahead: int | None = None


class StepLoop(NativeKernel):
    """``trace.program`` for each step; ``places`` are the numbers of buffers in the table."""

    __slots__ = ("trace", "places", "slots", "filled", "codes")

    @classmethod
    def accepts(cls, instruction):
        dtypes = {a.dtype.char for a in instruction.operands} - {"?"}
        sizes = [a.size for a in (*instruction.operands, *instruction.outputs)]
        return len(dtypes) == 1 and dtypes <= {"f", "d"} and all(sizes)

    @classmethod
    def of(cls, program, instruction, is_loop):
        trace = trace_steps(program, instruction)
        if trace is None:
            return None
        layouts = _join_in_place(trace)
        form_loops(trace.program, is_loop, layouts=layouts)
        codes = [segments.code_of(each) for each in _instructions(trace)]
        if any([code is None or code.can_fail for code in codes]):
            return None
        if not _is_safe(trace):
            return None
        return cls(program, instruction, trace, layouts, codes)

    def __init__(self, program, replaced, trace, layouts, codes):
        Instruction.__init__(self, (), replaced.node)
        self.replaced, self.trace, self.codes = replaced, trace, codes
        arena = BufferAssignment(trace.program).arena_size
        arrays = {}  # buffers of the program around it -> the number of the operand

        def operand(buffer):
            return arrays.setdefault(buffer, len(arrays))

        def holder(memory):
            if memory in trace.results:
                return -1 - trace.results.index(memory)
            return operand(memory.initial)

        room = Buffer((max(arena, 1),), np.dtype(np.uint8), Kind.SCRATCH)
        self.places, self.slots = {}, {}
        for each in _instructions(trace):
            for buffer in (*each.operands, *each.outputs):
                base = layout_of(buffer).base
                held = trace.inputs.get(base) or trace.outputs.get(base)
                if base in layouts and base not in trace.outputs:
                    base, held = layouts[base].base, None  # of a join
                if type(held) is Region:
                    slot = Slot(holder(held.memory), 0, held.ahead)
                elif held is not None:
                    slot = Slot(operand(held))
                elif base.offset is not None:
                    slot = Slot(operand(room), base.offset)
                elif base.is_constant:
                    slot = Slot(operand(program.constant(base.source)))
                else:
                    slot = Slot(operand(base.source))
                place = self.slots.setdefault(slot, len(self.slots))
                self.places[layout_of(buffer).base] = place
        self.filled = [  # the number of an output, and what is put into it at first
            (i, row, operand(value))
            for i, memory in enumerate(trace.results)
            for row, value in _initial(memory)
            if value is not None
        ]
        zeros = [memory for memory in trace.results if type(memory.initial) is int]
        self.filled += [(trace.results.index(m), None, None) for m in zeros]
        self.operands = tuple(arrays)

    @property
    def calls_blas(self):
        return any([code.calls_blas for code in self.codes])

    @property
    def work(self):
        return self.trace.steps * sum([code.work for code in self.codes])

    def define(self, writer, name, places):
        for number, code in enumerate(self.codes):
            code.define(writer, f"{name}.{number}", self.places)

    def write(self, writer, name, arguments):
        self.write_initial(writer, arguments)
        context = writer.alloca(POINTER, max(len(self.slots), 1))
        for slot, place in self.slots.items():
            if slot.ahead is None:
                address = writer.at(
                    arguments[self.array(slot.array)], slot.offset, np.uint8
                )
                writer.store(address, writer.at(context, place, POINTER))
        inner, steps = Arguments(writer, context, self.places), self.trace.steps
        with writer.loop(0, steps) as t:
            t = writer.index(steps - 1) - t if self.trace.backwards else t
            for slot, place in self.slots.items():
                if slot.ahead is not None:
                    array = self.array(slot.array)
                    start = (t + slot.ahead) * math.prod(array.shape[1:])
                    address = writer.at(arguments[array], start, array.dtype)
                    writer.store(address, writer.at(context, place, POINTER))
            for number, code in enumerate(self.codes):
                code.write(writer, f"{name}.{number}", inner)

    def array(self, number):
        return self.operands[number] if number >= 0 else self.outputs[-1 - number]

    def write_initial(self, writer, arguments):
        """Write what is in the outputs before the first step."""
        for output, row, number in self.filled:
            out = self.outputs[output]
            size, target = out.size, arguments[out]
            if row is not None:
                size = math.prod(out.shape[1:])
                target = writer.at(target, row * size, out.dtype)
            source = None if number is None else arguments[self.operands[number]]
            with writer.loop(0, size) as i:
                x = writer.const(0, out.dtype)
                if source is not None:
                    x = writer.load(writer.at(source, i, out.dtype), out.dtype)
                writer.store(x, writer.at(target, i, out.dtype))


def _instructions(trace):
    return [each for each in trace.program.instructions if type(each) is not View]


def _initial(memory):
    """Pairs of a row, None for all, and the buffer that is copied there."""
    if type(memory.initial) is Memory:
        yield None, memory.initial.initial
    for row, value in memory.rows.items():
        yield row, value.buffer


def _join_in_place(trace):
    """Replace concatenations by parts that are stored in the memory of the whole.

    Returns the layouts of these parts, and of those that lie in regions.
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
        join = Join(each)
        join.operands, join.outputs = tuple(parts), (whole,)
        whole.instruction, whole.kind = join, Kind.INPUT
        whole.source = Buffer(whole.shape, whole.dtype, Kind.SCRATCH)
        program.instructions.append(join)
    for out, region in trace.outputs.items():
        width = region.memory.shape[-1]
        if out.shape[-1] != width:
            layouts[out] = Layout(out, region.start, (width, 1))
    return layouts


def _is_safe(trace):
    """Return whether what a region held is read before the region is written.

    In one nest that must be so for each entry.
    """
    instructions = _instructions(trace)
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
                    if type(other) is not LoopNest:
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
    """Return whether a nest reads other columns of a row than those of a region."""
    size = region.memory.shape[-1]
    for _, each in statements_in((*nest.body, *nest.finish)):
        access = getattr(each, "access", None)
        if access is None or access.array is not operand:
            continue
        along = [(a.extent - 1) * s for a, s in access.strides if 0 <= s < size]
        first = access.offset % size
        if len(along) < len(access.strides) - 1 or first + sum(along) >= size:
            return False
        if first < region.start + width and region.start <= first + sum(along):
            return False
    return True
