"""A program with loop nests as machine code, and the rest as calls of NumPy."""

import copy

import numpy as np

from ...loops.accesses import layout_of
from ...program.array_instructions import View
from ..numpy.executable import Executable
from ..numpy.source import PerInstance, SourceWriter
from .in_place import CommitCall
from .output_memory import LEAST, new_array
from .segments import ARENA, FIRST_ERROR, NativeSegment, code_of, compiled_segments

__all__ = ["NativeExecutable"]


class NativeExecutable(Executable):
    """Like `Executable`, with machine code for as many instructions as possible."""

    target, unit = "native", "instruction"

    def __init__(self, program, name="replay"):
        self.together, self._one_by_one = True, None
        self.in_place = program.in_place
        super().__init__(program, name)

    def one_by_one(self):
        if self._one_by_one is None:
            twin = copy.copy(self)
            twin.together, twin.in_place = False, {}  # a commit is one call
            twin.make_source()
            self._one_by_one = twin
        return self._one_by_one

    def calls(self):
        return self._calls

    def write(self, assignment):
        how = self.together, self.in_place
        writer = _Writer(assignment, self.name, NativeExecutable, *how)
        written = writer.written()
        self.segments, self._calls = writer.segments, writer.calls
        self.calls_numpy = len(self._calls) > len(self.segments)
        self.regions = writer.regions
        compiled_segments(writer.segments, self.name)
        return written


class _Writer(SourceWriter):
    """Collects native instructions, and writes one call for each consecutive run.

    ``calls`` has the instructions of each call. Unless ``together``, each has one.
    """

    def __init__(self, assignment, name, compile_program, together, in_place):
        super().__init__(assignment, name, compile_program)
        self.together, self.calls = together, []
        self.in_place = in_place  # see `overwrite_variables`
        self.segments, self.segment, self.pending = [], None, []
        self.views = self.views_of_python()
        last = self.assignment.last_read
        for i, instruction in enumerate(self.program.instructions):
            if code_of(instruction) is not None:
                for a in instruction.operands:  # it reads the arrays that they are of
                    base = layout_of(a).base
                    last[base] = max(i, last.get(base, i))

    def views_of_python(self):
        """The views that NumPy or the caller reads: machine code does not need them."""
        needed = set(self.program.outputs)
        for each in reversed(self.program.instructions):
            native = code_of(each) is not None
            if not native and (type(each) is not View or each.outputs[0] in needed):
                needed.update(each.operands)
        return needed

    def write_first_steps(self):
        """Write a step of all nests that overwrite variables."""
        if not self.in_place:
            return [], ()
        size = self.assignment.arena_size
        segment = NativeSegment("in_place", size, self.program.limits)
        pairs = {}
        for outputs in self.in_place.values():
            pairs.update(outputs)
        segment.overwrites = {out: old for out, (_, old) in pairs.items()}
        for nest in self.in_place:
            self.allocate(nest, [out for out in nest.outputs if out not in pairs])
            segment.append(nest)
        self.segments.append(segment)
        self.calls.append(segment.instructions)
        olds = {old: store.variable for store, old in pairs.values()}
        args = ["None" if a in olds else self.argument(a) for a in segment.arrays]
        call = self.source.bind("in_place_", CommitCall.of(segment, olds))
        tag = segment.instructions[0]
        self.source.emit(f"first = {call}({', '.join(args)})", tag)
        return ["first"], {store for store, _ in pairs.values()}

    def write(self, i, instruction):
        if instruction in self.in_place:
            return
        if code_of(instruction) is not None:
            self.add(i, instruction)
            return
        if type(instruction) is View and instruction.outputs[0] not in self.views:
            return
        if instruction.has_effect or not instruction.is_free:
            self.flush()
            self.calls.append([instruction])
        super().write(i, instruction)

    def add(self, i, instruction):
        if not self.together:
            self.flush()
        if self.segment is None:
            name, size = f"segment_{len(self.segments)}", self.assignment.arena_size
            self.segment = NativeSegment(name, size, self.program.limits)
            self.segments.append(self.segment)
            self.calls.append(self.segment.instructions)
        self.allocate(instruction, instruction.outputs)
        self.segment.append(instruction)
        self.clear(self.ending.pop(i, ()), instruction)

    def allocate(self, instruction, outputs):
        """Write the creation of outputs that are new arrays."""
        for out in outputs:
            if self.own_memory(out) is None:
                empty = new_array if out.nbytes >= LEAST else np.empty
                empty, dtype = (
                    self.function_name(empty),
                    self.source.bind("k", out.dtype),
                )
                self.source.emit(
                    f"{self.register(out)} = {empty}({out.shape}, {dtype})", instruction
                )

    def flush(self):
        """Write the call of the native instructions collected so far."""
        segment, self.segment = self.segment, None
        if segment is None:
            return
        args = ", ".join([self.argument(key) for key in segment.arrays])
        call = self.source.bind("native_", PerInstance(lambda *_: segment.function))
        again = self.source.bind("again_", PerInstance(lambda *_: segment.again))
        tag = segment.instructions[0]
        self.source.emit(f"error = {call}({args})", tag)
        with self.source.block("if error is not None:", tag):
            self.source.emit(f"if error is True: error = {again}({args})", tag)
            for number, each in enumerate(segment.fallible, FIRST_ERROR):
                fail = self.source.bind("fail_", _Failure(each))
                bases = self.listed(_bases(each))
                self.source.emit(f"if error == {number}: {fail}({bases})", each)
        self.clear(self.pending, tag)
        self.pending = []

    def clear(self, registers, tag):
        """Release arrays, unless machine code is still to be called with them."""
        if self.segment is not None:
            self.pending += registers
        else:
            super().clear(registers, tag)

    def argument(self, key):
        """Return the name of an array that a segment is called with."""
        if key == ARENA:
            return self.source.bind("arena_", PerInstance(_arena_of))
        if key.is_constant:
            return self.source.bind("c", np.asarray(key.source, order="C"))
        return self.name_of(key)


class _Failure:
    """Runs an instruction in NumPy after machine code has failed on it, for its exception."""

    def __init__(self, kernel):
        self.kernel = kernel

    def __call__(self, *bases):
        held = dict(zip(_bases(self.kernel), bases))

        def array(buffer):
            if buffer not in held:
                held[buffer] = buffer.instruction.apply(
                    array(buffer.instruction.viewed)
                )
            return held[buffer]

        replaced = self.kernel.replaced
        replaced.function(*map(array, self.kernel.reads), **replaced.keywords)
        raise RuntimeError(
            f"machine code rejected operands that NumPy accepts: {replaced!r}"
        )


def _bases(kernel):
    return list(dict.fromkeys([a.base for a in kernel.reads]))


def _arena_of(instance, scope):
    return instance.whole_arena()
