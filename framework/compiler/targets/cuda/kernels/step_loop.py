"""Recurrent layers on a GPU: the steps of a sequence, one after the other in one graph.

The kernel of the op is traced for one step (`step_tracer`), whose program becomes
thread nests and products like any other. Their launches are repeated for each step at
the addresses of its rows: they read and write the arrays of all steps in place. So the
functions are compiled once, however long a sequence is.
"""

import math
from typing import NamedTuple

from tapewright.core.settings.config import graph_pass_is_on

from ....loops.accesses import layout_of
from ....loops.fusion import form_loops, sums_for_products
from ....loops.recurrent_steps import (
    accepts_recurrent,
    initial_rows,
    is_safe,
    join_in_place,
    step_instructions,
)
from ....loops.threads.thread_scheduling import thread_nests
from ....program.buffer_assignment import BufferAssignment
from ....program.instructions.array_instructions import Contract
from ....program.instructions.instruction import Instruction
from ....program.instructions.kernel import bits_of
from ....program.lowering.step_tracer import Region, trace_steps
from ....program.program import Buffer, Kind
from ..kernel import CudaKernel, Launch
from ..products.product import Multiply, ProductKernel, zeros
from ..scalar_functions import is_loop
from ..steps import is_on_device, steps_of
from .entries import each_entry, index_type, launch

MOST = 400  # the code size of a group, see `form_groups`
_BYTE = bits_of("u1")


class Join(CudaKernel):
    """An array whose parts are already stored in its memory."""

    __slots__ = ()

    @classmethod
    def accepts(cls, instruction):
        """Return False: it only replaces instructions in a `StepLoop`."""
        return False

    def steps_on(self, addresses):
        """Return no steps: all entries are already in place."""
        return []


class Slot(NamedTuple):
    """The address of an array, or of its row ``t + ahead`` in step ``t``.

    ``array`` is the number of an operand or, from -1 down, of an output; ``offset`` is
    in bytes, ``ahead`` None for an address that is the same in all steps.
    """

    array: int
    offset: int = 0
    ahead: int | None = None


class StepLoop(CudaKernel):
    """``trace.program`` for each step; ``slots`` are the addresses of its buffers.

    ``filled``: an output, the row of it (None: all), and the operand that is copied there
    before the first step (None: zeros).
    """

    __slots__ = ("trace", "slots", "filled")
    accepts = staticmethod(accepts_recurrent)

    @classmethod
    def of(cls, program, instruction):
        trace = trace_steps(program, instruction, instruction.operands[0].shape[1])
        if trace is None:
            return None
        _use_products(trace.program)
        layouts = join_in_place(trace, Join)
        fused = graph_pass_is_on("loop_fusion")
        sums_for_products(trace.program)
        form_loops(
            *(trace.program, is_loop, fused),
            layouts=layouts,
            schedule=thread_nests,
            most=MOST,
            has_totals=False,
        )
        known = [is_on_device(each) for each in step_instructions(trace)]
        if not all(known) or not is_safe(trace):
            return None
        return cls(program, instruction, trace, layouts)

    def __init__(self, program, replaced, trace, layouts):
        Instruction.__init__(self, (), replaced.node)
        self.replaced, self.trace, self.slots = replaced, trace, {}
        size = max(BufferAssignment(trace.program).arena_size, 1)
        room = Buffer((size,), _BYTE, Kind.SCRATCH)
        arrays = {}  # buffers of the program around it -> the number of the operand

        def operand(buffer):
            return arrays.setdefault(buffer, len(arrays))

        def slot_of(base):
            held = trace.inputs.get(base) or trace.outputs.get(base)
            if base in layouts and base not in trace.outputs:
                base, held = layouts[base].base, None  # of a join
            if type(held) is Region and held.memory in trace.results:
                return Slot(-1 - trace.results.index(held.memory), 0, held.ahead)
            if type(held) is Region:
                return Slot(operand(held.memory.initial), 0, held.ahead)
            if held is not None:
                return Slot(operand(held))
            if base.offset is not None:
                return Slot(operand(room), base.offset)
            if base.is_constant:
                return Slot(operand(program.constant(base.source)))
            return Slot(operand(base.source))

        for each in step_instructions(trace):
            for buffer in (*each.operands, *each.outputs):
                base = layout_of(buffer).base
                self.slots[base] = slot_of(base)
        memories = list(enumerate(trace.results))
        self.filled = [(i, None, None) for i, m in memories if type(m.initial) is int]
        self.filled += [
            (i, row, operand(value))
            for i, memory in memories
            for row, value in initial_rows(memory)
            if value is not None
        ]
        self.operands = tuple(arrays)

    def steps_on(self, addresses):
        """Return the steps of one time step, repeated at the addresses of each."""
        all_steps = [self._fill(addresses, *each) for each in self.filled]
        numbers, count = _Numbers(self.slots), self.trace.steps
        steps = [s for e in step_instructions(self.trace) for s in steps_of(e, numbers)]
        for t in reversed(range(count)) if self.trace.backwards else range(count):
            table = [self._position(addresses, key, t) for key in numbers.found]
            all_steps += [_moved(step, table) for step in steps]
        return all_steps

    def _fill(self, addresses, output, row, source):
        """Return the launch that writes the initial value of an output."""
        out, bits = self.outputs[output], bits_of(self.outputs[output].dtype)
        if source is None:
            return zeros(addresses, out)
        count = out.size if row is None else math.prod(out.shape[1:])
        start = 0 if row is None else row % out.shape[0] * count
        code = f"  {each_entry(index_type(out), 'i', count)} out[{start} + i] = x[i];\n"
        reads = {"x": (self.operands[source], bits)}
        return launch(addresses, code, count, reads, {"out": (out, bits)})

    def _position(self, addresses, key, t):
        """Return the position of a slot's address, or of a key, in step ``t``."""
        if type(key) is str:
            return addresses[key]
        array = self.operands[key.array] if key.array >= 0 else None
        array = self.outputs[-1 - key.array] if array is None else array
        row = math.prod(array.shape[1:]) * (0 if key.ahead is None else t + key.ahead)
        entries = layout_of(array).offset + row
        return addresses.at(array, entries * array.dtype.itemsize + key.offset)


class _Numbers:
    """Assigns a number to each slot, and to each key of an address."""

    def __init__(self, slots):
        self.slots, self.found = slots, {}

    def __getitem__(self, buffer):
        key = buffer if type(buffer) is str else self.slots[layout_of(buffer).base]
        return self.found.setdefault(key, len(self.found))


def _moved(step, table):
    """Return a step at other addresses: ``table`` maps each of its addresses."""
    if type(step) is Launch:
        parameters = [p._replace(position=table[p.position]) for p in step.parameters]
        return step._replace(parameters=tuple(parameters))
    if type(step) is not Multiply:
        raise TypeError(f"steps of a recurrent layer cannot contain {step!r}")
    operands = [o and (table[o[0]], o[1]) for o in step.operands]
    return step._replace(operands=tuple(operands), workspace=table[step.workspace])


def _use_products(program):
    """Replace products by kernels, which compute into the same buffers."""
    instructions, program.instructions = program.instructions, []
    for each in instructions:
        if type(each) is Contract and ProductKernel.accepts(each):
            kernel = ProductKernel.of(program, each)
            kernel.outputs = each.outputs
            for out in kernel.outputs:
                out.instruction = kernel
            each = kernel
        program.instructions.append(each)
