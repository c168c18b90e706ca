"""A program made to run by NumPy: its source, and instances with memory of their own."""

import numpy as np

from tapewright.core import config
from tapewright.core.tensor import TensorSpec
from tapewright.core.variable import writing

from ...program.arena import ALIGNMENT
from ...program.buffer_assignment import BufferAssignment
from ...program.scheduling import restoring_on_failure
from ...program.verifier import verify_memory
from ...tracing.graph import is_value
from .source import PerInstance, write

__all__ = ["Plan"]


class Plan:
    """A program with its memory assigned, and written out as Python source.

    ``instance()`` gives a function of the input arrays that returns a tuple of the output
    arrays. It owns its memory: use each by one thread at a time. ``source`` is its text,
    ``lines`` has the instruction that each line of it is from, ``memory`` the names of
    buffers there that lie in memory of the instance.
    """

    def __init__(self, program, name="replay"):
        self.program, self.name = program, name
        self.assignment = BufferAssignment(program)
        written, self.memory = write(self.assignment, name)
        self.source, self.bound, self.lines = written.text, written.bound, written.tags
        self.code = compile(self.source, written.filename, "exec")

    @property
    def arena_size(self):
        """The bytes that all buffers in the arena need."""
        return self.assignment.arena_size

    # --- making it run

    def instance(self, replacing=None):
        """A replay function with memory of its own.

        ``replacing`` maps instructions with effects to functions that take their place.
        """
        instance, scope = _Instance(self.assignment, replacing or {}), {}
        for name, value in self.bound.items():
            if type(value) is PerInstance:
                value = value.make(instance, scope)
            scope[name] = value
        if config.plans_are_verified():
            arrays = {buffer: scope[name] for buffer, name in self.memory.items()}
            verify_memory(self.program, arrays, instance.updates)
        exec(self.code, scope)
        run = scope[self.source[4 : self.source.index("(")]]
        if config.plans_are_verified():
            run = _spoiling(run, instance.arena)
        run = restoring_on_failure(run, *self.program.restored)
        return (
            run if self.program.aliases_inputs else _in_transaction(run, self.program)
        )

    def explained(self, error):
        """An exception in a replay as eager mode has it, with a note of the user's line."""
        instruction = self.blame(error)
        if instruction is None:
            return error
        node = instruction.node
        if node.op is not None:
            given = [x if is_value(x) else x.array for x in node.inputs]
            specs = [TensorSpec(x.shape, x.dtype) for x in given]
            error = node.op.explain_kernel(error, specs)
        error.add_note(f"in the op {node.name}, {node.line}")
        return error

    def blame(self, error):
        """The instruction in which an exception was raised, or None."""
        import traceback  # two milliseconds that only a mistake should cost

        for frame, line in traceback.walk_tb(error.__traceback__):
            if frame.f_code.co_filename == f"<plan of {self.name}>":
                found = self.lines[line - 1] if line <= len(self.lines) else None
                if found is not None:
                    return found
        return None


class _Instance:
    """The memory of one instance, and the updates that have memory of their own."""

    def __init__(self, assignment, replacing):
        self.arena = np.empty(assignment.arena_size + ALIGNMENT, np.uint8)
        self._start = -self.arena.ctypes.data % ALIGNMENT
        self._slots, self._replacing = assignment.slots, replacing
        with_slots = {instruction for instruction, _ in self._slots.values()}
        self.updates = {each: each.update.with_own_memory() for each in with_slots}

    def array(self, buffer):
        """The memory of a buffer."""
        if buffer in self._slots:
            instruction, number = self._slots[buffer]
            return self.updates[instruction].gradient_memory[number]
        start = buffer.offset + self._start
        part = self.arena[start : start + buffer.nbytes]
        return part.view(buffer.dtype).reshape(buffer.shape)

    def function(self, instruction):
        """The function to call for an instruction with effects."""
        own = self._replacing.get(instruction) or self.updates.get(instruction)
        return own or instruction.function


def _in_transaction(run, program):
    """``run`` that no other thread interrupts in between its reads and writes."""
    written = [v for each in program.instructions for v in each.variables_written]
    if not written:
        return run
    locks = writing(written)

    def transaction(*arrays):
        with locks:
            return run(*arrays)

    return transaction


def _spoiling(run, block):
    """``run`` that leaves no value in its memory: what escaped turns into NaN."""

    def spoiling(*arrays):
        try:
            return run(*arrays)
        finally:
            block.fill(0xFF)

    return spoiling
