"""Recurrent layers as machine code: a loop over the steps of a sequence.

The kernel of the op is traced for one step (`step_tracer`), whose program becomes loop
nests and products like any other. They find the rows of the sequences in a table of
addresses, which the loop updates before each step; so they write directly into the
arrays of all steps.

The batch is split into chunks. A thread takes one through all steps, as examples are
independent: so threads wait for each other once, not several times per step.
"""

import math
from typing import NamedTuple

import numpy as np

from ....loops.accesses import layout_of
from ....loops.fusion import form_loops, sums_for_products
from ....loops.recurrent_steps import (
    accepts_recurrent,
    initial_rows,
    is_safe,
    join_in_place,
    step_instructions,
)
from ....program.buffer_assignment import BufferAssignment
from ....program.instructions.instruction import Instruction
from ....program.lowering.step_tracer import Region, trace_steps
from ....program.program import Buffer, Kind
from .. import segments
from ..llvm_writer import POINTER
from ..loop_support import is_loop
from ..products.step_products import StepProduct
from .kernel import Arguments, NativeKernel, call_blocks, copied_context

FEWEST, MOST = 4, 32  # examples of a chunk
# Examples in all steps, from which on a copy of the kernel is worth its time.
LEAST = 32
ALIGNMENT = 128  # bytes: memory of chunks is on lines of their own


class Join(NativeKernel):
    """An array whose parts are already stored in its memory."""

    __slots__ = ()
    work = 0

    @classmethod
    def accepts(cls, instruction):
        """Return False: it replaces no instruction, but is placed behind a `StepLoop`."""
        return False

    def write(self, writer, name, arguments):
        """Append nothing: all entries are already in place."""


class Slot(NamedTuple):
    """An address in the table: an array, or its row ``t + ahead`` in step ``t``.

    ``array`` is the number of an operand or, from -1 down, of an output; ``offset`` is
    in bytes; ``ahead`` is None for an address that is the same in all steps. Addresses
    of successive chunks are ``chunk`` bytes apart.
    """

    array: int
    offset: int = 0
    ahead: int | None = None
    chunk: int = 0


class StepLoop(NativeKernel):
    """``trace.program`` for each step; ``index_of`` are the numbers of buffers in the table."""

    __slots__ = ("trace", "chunks", "index_of", "slots", "filled", "codes", "packed")
    accepts = staticmethod(accepts_recurrent)

    @classmethod
    def of(cls, program, instruction):
        steps, batch, _ = instruction.operands[0].shape
        is_packed = steps * batch >= LEAST
        chunks = _chunks(batch, program.limits.threads) if is_packed else 1
        trace = trace_steps(program, instruction, batch // chunks)
        if trace is None:
            return None
        layouts = join_in_place(trace, Join, chunks)
        sums_for_products(trace.program)
        form_loops(trace.program, is_loop, layouts=layouts)
        codes = [
            is_packed and _packed_product(trace, each, chunks) or segments.code_of(each)
            for each in step_instructions(trace)
        ]
        if any([code is None or code.can_fail for code in codes]):
            return None
        if not is_safe(trace):
            return None
        return cls(program, instruction, trace, chunks, layouts, codes)

    def __init__(self, program, replaced, trace, chunks, layouts, codes):
        Instruction.__init__(self, (), replaced.node)
        self.replaced, self.trace, self.chunks = replaced, trace, chunks
        self.codes, arena = codes, BufferAssignment(trace.program).arena_size
        arena = -(-max(arena, 1) // ALIGNMENT) * ALIGNMENT
        arrays = {}  # buffers of the program around it -> the number of the operand

        def operand(buffer):
            return arrays.setdefault(buffer, len(arrays))

        def holder(memory):
            if memory in trace.results:
                return -1 - trace.results.index(memory)
            return operand(memory.initial)

        def chunk(memory):
            return math.prod(memory.shape[1:]) * memory.dtype.itemsize

        def slot_of(base):
            held = trace.inputs.get(base) or trace.outputs.get(base)
            if base in layouts and base not in trace.outputs:
                base, held = layouts[base].base, None  # of a join
            if type(held) is Region:
                return Slot(holder(held.memory), 0, held.ahead, chunk(held.memory))
            if held is not None:
                return Slot(operand(held))
            if base.offset is not None:
                return Slot(operand(room), base.offset, None, arena)
            if base.is_constant:
                return Slot(operand(program.constant(base.source)))
            size = math.prod(base.shape) * base.dtype.itemsize
            return Slot(operand(base.source), 0, None, size)

        room = Buffer((arena * chunks,), np.dtype(np.uint8), Kind.SCRATCH)
        self.index_of, self.slots = {}, {}
        for each in step_instructions(trace):
            for buffer in (*each.operands, *each.outputs):
                base = layout_of(buffer).base
                self.index_of[base] = self.number_of(slot_of(base))
        self.packed = self.find_packed(operand, slot_of)
        self.filled = [  # the number of an output, and what is put into it at first
            (i, row, operand(value))
            for i, memory in enumerate(trace.results)
            for row, value in initial_rows(memory)
            if value is not None
        ]
        zeros = [memory for memory in trace.results if type(memory.initial) is int]
        self.filled += [(trace.results.index(m), None, None) for m in zeros]
        self.operands = tuple(arrays)

    def number_of(self, slot):
        """The number of an address in the table."""
        return self.slots.setdefault(slot, len(self.slots))

    def find_packed(self, operand, slot_of):
        """``[(product, the operand that is packed, the memory for the copy)]``."""
        packed = []
        for code in self.codes:
            if type(code) is StepProduct:
                copy = Buffer((code.size,), code.dtype, Kind.SCRATCH)
                code.packed = self.number_of(Slot(operand(copy)))
                packed.append((code, slot_of(code.product.b.base).array, copy))
        return packed

    @property
    def calls_blas(self):
        return any([code.calls_blas for code in self.codes])

    @property
    def packed_bytes(self):
        return max([code.packed_bytes for code in self.codes], default=0)

    @property
    def work(self):
        each = sum([code.work for code in self.codes])
        return self.trace.steps * self.chunks * each

    def define(self, writer, name, index_of):
        for number, code in enumerate(self.codes):
            code.define(writer, f"{name}.{number}", self.index_of)
        parameters = [("context", POINTER), ("number", np.int64)]
        for i, (code, array, copy) in enumerate(self.packed):
            with code.function(writer, f"{name}.pack_{i}", parameters) as given:
                arguments = Arguments(writer, given[0], index_of)
                source = arguments[self.operands[array]]
                code.pack(writer, source, arguments[copy], given[1])
                writer.ret()
        with writer.function(name, parameters, None, "nounwind") as (
            context,
            number,
        ):
            self.write_chunk(writer, name, Arguments(writer, context, index_of), number)
            writer.ret()

    def write(self, writer, name, arguments):
        context = arguments.context
        for i, (code, _, _) in enumerate(self.packed):
            pack, work = f"{name}.pack_{i}", 4 * code.size
            call_blocks(writer, pack, context, code.panels, work)
        call_blocks(writer, name, context, self.chunks, self.work)

    def write_chunk(self, writer, name, arguments, number):
        """Append all steps of a chunk of the batch."""
        self.write_initial(writer, arguments, number)
        context = copied_context(writer, arguments.context, (), max(len(self.slots), 1))
        for slot, index in self.slots.items():
            if slot.ahead is None:
                start = number * slot.chunk + slot.offset
                address = arguments[self.array(slot.array)]
                address = writer.at(address, start, np.uint8)
                writer.store(address, writer.at(context, index, POINTER))
        inner, steps = Arguments(writer, context, self.index_of), self.trace.steps
        with writer.loop(0, steps) as t:
            t = writer.index(steps - 1) - t if self.trace.backwards else t
            for slot, index in self.slots.items():
                if slot.ahead is not None:
                    array = self.array(slot.array)
                    start = (t + slot.ahead) * math.prod(array.shape[1:])
                    address = writer.at(arguments[array], start, array.dtype)
                    address = writer.at(address, number * slot.chunk, np.uint8)
                    writer.store(address, writer.at(context, index, POINTER))
            for i, code in enumerate(self.codes):
                code.write(writer, f"{name}.{i}", inner)

    def array(self, number):
        return self.operands[number] if number >= 0 else self.outputs[-1 - number]

    def write_initial(self, writer, arguments, number):
        """Write the initial values in the outputs of a chunk, before the first step."""
        for output, row, source in self.filled:
            out = self.outputs[output]
            width = math.prod(out.shape[1:])
            size = width // self.chunks
            rows = (0, out.shape[0]) if row is None else (row, row + 1)
            with writer.loop(*rows) as t, writer.loop(0, size) as i:
                x = writer.const(0, out.dtype)
                position = number * size + i
                if source is not None:
                    array = arguments[self.operands[source]]
                    entry = position + t * width if row is None else position
                    x = writer.load(writer.at(array, entry, out.dtype), out.dtype)
                target = writer.at(arguments[out], position + t * width, out.dtype)
                writer.store(x, target)


def _chunks(batch, threads):
    """Return the number of chunks of a batch, all with the same number of examples.

    It is 1 if a batch has no such parts; then threads share the work of a step.
    """
    counts = [n for n in range(1, batch // FEWEST + 1) if batch % n == 0]
    wanted = max(threads, -(-batch // MOST))
    enough = [n for n in counts if n >= wanted]
    return [1, *counts, *enough[:1]][-1]


def _packed_product(trace, instruction, chunks):
    """Return the `StepProduct` of an instruction, if one matrix is the same in all steps."""
    if not StepProduct.accepts(instruction):
        return None
    code = StepProduct(instruction, is_shared=chunks == 1)
    held = trace.inputs.get(code.product.b.base)
    return None if held is None or type(held) is Region else code
