"""A program with loop nests as machine code, and the rest as calls of NumPy."""

import numpy as np

from ...loops.accesses import layout_of
from ..numpy.source import PerInstance
from ..segmented_executable import SegmentedExecutable, SegmentWriter
from .in_place import CommitCall
from .jit.output_memory import LEAST, new_array
from .segments import ARENA, FIRST_ERROR, NativeSegment, code_of, compiled_segments


class NativeExecutable(SegmentedExecutable):
    """Like `Executable`, with machine code for as many instructions as possible."""

    target = "native"

    @property
    def in_place(self):
        """The nests that overwrite variables: see `overwrite_variables`."""
        return self.program.in_place if self.together else {}  # a commit is one call

    def write(self, assignment):
        written = self.write_with(_Writer(self, assignment))
        self.calls_numpy = len(self._calls) > len(self.segments)
        compiled_segments(self.segments, self.name)
        return written


class _Writer(SegmentWriter):
    def __init__(self, executable, assignment):
        super().__init__(executable, assignment)
        self.in_place = executable.in_place
        last = self.assignment.last_read
        for i, instruction in enumerate(self.program.instructions):
            if self.has_code(instruction):
                for a in instruction.operands:  # it reads the arrays that they are of
                    base = layout_of(a).base
                    last[base] = max(i, last.get(base, i))

    def has_code(self, instruction):
        return code_of(instruction) is not None

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
        if instruction not in self.in_place:
            super().write(i, instruction)

    def write_between(self, i, instruction):
        if instruction.has_effect or not instruction.is_free:
            self.flush()
            self.calls.append([instruction])
        super().write_between(i, instruction)

    def new_segment(self, number):
        size = self.assignment.arena_size
        return NativeSegment(f"segment_{number}", size, self.program.limits)

    def append(self, i, instruction):
        self.allocate(instruction, instruction.outputs)
        self.segment.append(instruction)

    def allocate(self, instruction, outputs):
        """Write the creation of outputs that are new arrays."""
        for out in outputs:
            if self.own_memory(out) is None:
                function = new_array if out.nbytes >= LEAST else np.empty
                empty = self.function_name(function)
                array = f"{empty}({out.shape}, {self.source.bind('k', out.dtype)})"
                self.source.emit(f"{self.register(out)} = {array}", instruction)

    def write_segment(self, segment, before):
        args = ", ".join([self.argument(key) for key in segment.arrays])
        call = self.source.bind("native_", PerInstance(lambda *_: segment.function))
        again = self.source.bind(
            "again_", PerInstance(lambda *_: segment.run_with_copies)
        )
        tag = segment.instructions[0]
        self.source.emit(f"error = {call}({args})", tag)
        with self.source.block("if error is not None:", tag):
            self.source.emit(f"if error is True: error = {again}({args})", tag)
            for number, each in enumerate(segment.fallible, FIRST_ERROR):
                fail = self.source.bind("fail_", _Failure(each))
                bases = self.listed(_bases(each))
                self.source.emit(f"if error == {number}: {fail}({bases})", each)

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
