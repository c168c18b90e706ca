"""A program cut into segments of generated code, with calls from Python between them."""

import copy
from abc import ABC, abstractmethod

from ..program.instructions.array_instructions import View
from .numpy.executable import Executable
from .numpy.source import SourceWriter


class SegmentedExecutable(Executable):
    """An `Executable` whose consecutive instructions with generated code are one call."""

    unit, together = "instruction", True
    _one_by_one = None

    def one_by_one(self):
        if self._one_by_one is None:
            twin = copy.copy(self)
            twin.together, twin.idle = False, type(self.idle)()
            twin.make_source()
            self._one_by_one = twin
        return self._one_by_one

    def calls(self):
        return self._calls

    def write_with(self, writer):
        """Write the source, and keep what a `SegmentWriter` has collected."""
        written = writer.written()
        self.segments, self._calls = writer.segments, writer.calls
        self.regions = writer.regions
        return written


class SegmentWriter(SourceWriter, ABC):
    """Collects instructions into segments, and writes one call per segment.

    ``calls`` has the instructions of each call. Unless the executable runs them
    ``together``, each has one.
    """

    def __init__(self, executable, assignment):
        super().__init__(assignment, executable.name, type(executable))
        self.executable, self.together = executable, executable.together
        self.calls, self.segments = [], []
        self.segment, self.pending = None, []  # registers to clear behind its call
        self.needed = self.needed_by_python()

    @abstractmethod
    def has_code(self, instruction):
        """Return whether an instruction runs in segments."""

    @abstractmethod
    def new_segment(self, number):
        """Return an empty segment."""

    @abstractmethod
    def append(self, i, instruction):
        """Append an instruction to the current segment."""

    @abstractmethod
    def write_segment(self, segment, before):
        """Write the call of a segment; ``before`` as for `flush`."""

    def needed_by_python(self):
        """The buffers that Python reads, or that are returned."""
        needed = set(self.program.outputs)
        for each in reversed(self.program.instructions):
            is_read = type(each) is not View or each.outputs[0] in needed
            if is_read and not self.has_code(each):
                needed.update(each.operands)
        return needed

    def write(self, i, instruction):
        if self.has_code(instruction):
            segment = self.segment
            if not (self.together and segment and segment.takes(instruction)):
                self.flush()
                self.segment = self.new_segment(len(self.segments))
                self.segments.append(self.segment)
                self.calls.append(self.segment.instructions)
            self.append(i, instruction)
            self.clear(self.ending.pop(i, ()), instruction)
        elif type(instruction) is not View or instruction.outputs[0] in self.needed:
            self.write_between(i, instruction)

    def write_between(self, i, instruction):
        """Write an instruction that Python runs."""
        super().write(i, instruction)

    def flush(self, before=None):
        """Write the call of the current segment, ``before`` an instruction run by Python."""
        segment, self.segment = self.segment, None
        if segment is not None:
            self.write_segment(segment, before)
            pending, self.pending = self.pending, []
            self.clear(pending, segment.instructions[0])

    def clear(self, registers, tag):
        """Release arrays, unless a segment is still to be called with them."""
        if self.segment is None:
            super().clear(registers, tag)
        else:
            self.pending += registers
