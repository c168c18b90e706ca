"""`UpdateKernel`: an optimizer step on flat arrays, as a part of a graph.

The arithmetic of the step is a separate program, whose nests overwrite their operands
in place. The `DeviceUpdate` provides the addresses of the flat arrays and the
coefficients of a step, such as the learning rate, each time.
"""

import numpy as np

from tapewright.core.settings import config

from ....loops.accesses import in_order
from ....program.buffer_assignment import BufferAssignment
from ....program.instructions.array_instructions import Copy, View
from ....program.instructions.call_instructions import Update
from ....program.instructions.variable_update import Rule
from ....program.lowering.array_functions import NotTraceable, copy_into
from ....program.lowering.array_tracer import ArrayTracer, LoopBuilder
from ....program.passes.pass_manager import run_passes
from ....program.program import Buffer, Kind, Program
from ....program.verifier import verify_program
from ....tracing.graph import Graph, Node
from ..addresses import Root
from ..steps import is_on_device, steps_of
from .stores import copy_steps, start_in_memory, start_of


class UpdateKernel(Update):
    """An `Update` by steps on a device; ``step`` is the `DeviceUpdate`.

    ``flats`` lists the roots of the flat arrays, ``numbers`` the roots of the
    coefficients with their dtypes, group by group.
    """

    __slots__ = ("step", "program", "flats", "numbers", "_roots", "_copied")
    gradient_slots = ()

    @classmethod
    def of(cls, program, instruction, passes):
        """Return the kernel for an `Update`, or None; ``passes`` form its kernels."""
        step = instruction.update.on_device()
        if step is None:
            return None
        node = instruction.node
        operands = [in_order(program, a, node) for a in instruction.operands]
        kernel = cls(instruction.update, operands, node)
        kernel.step = step
        is_traced = kernel._trace(program.limits)
        return kernel if is_traced and kernel._form(passes) else None

    # --- the program of the step

    def _trace(self, limits):
        """Trace the arithmetic; return success."""
        self.program = program = Program(Graph("update"), limits=limits)
        builder = LoopBuilder(program, Node(Rule, (), {}))

        def array(shape, dtype):
            buffer = Buffer(tuple(shape), np.dtype(dtype), Kind.INPUT)
            return ArrayTracer(buffer, builder, is_new=True)

        gradients = [array(a.shape, a.dtype) for a in self.operands]
        groups = [
            (
                [array((group.size,), group.dtype) for _ in range(group.flats)],
                [array((), group.dtype) for _ in range(group.count)],
            )
            for group in self.step.groups
        ]
        inputs = [x.buffer for x in gradients]
        self._name_roots(groups)
        try:
            made = self.step.trace(
                np, gradients, groups, lambda x: array(x.shape, x.dtype)
            )
        except NotTraceable:
            return False
        program.inputs = [*inputs, *self._roots]
        results = [x.buffer for arrays in made for x in arrays]
        program.outputs = self._of_their_own(results, builder.node)
        return True

    def _of_their_own(self, results, node):
        """Return the results, with copies of those that share memory with something else."""
        own = []
        for flat, out in zip(self._flat_buffers(), results, strict=True):
            if out is not flat and (
                out.is_view or out.instruction is None or out in own
            ):
                copy = Copy(copy_into, (out,), node)
                (out,) = self.program.append(copy, (out.shape, out.dtype))
            own.append(out)
        return own

    def _flat_buffers(self):
        return [x for x, root in self._roots.items() if root.kind == "flat"]

    def _name_roots(self, groups):
        """Assign each flat array and coefficient the root of its memory."""
        self._roots, self.flats, self.numbers = {}, [], []
        for g, (flats, numbers) in enumerate(groups):
            for i, x in enumerate(flats):
                self.flats.append(Root("flat", (g, i)))
                self._roots[x.buffer] = self.flats[-1]
            for i, x in enumerate(numbers):
                root = self._roots[x.buffer] = Root("number", (g, i))
                self.numbers.append((root, x.dtype))

    def _form(self, passes):
        """Compile the program, and assign a position to each of its results."""
        program = self.program
        run_passes(program, passes)
        results = dict(zip(self._flat_buffers(), program.outputs, strict=True))
        if not all(map(is_on_device, _working(program))):
            return False
        changed = {a: out for a, out in results.items() if a is not out}
        in_place = [a for a, out in changed.items() if self._may_overwrite(a, out)]
        self._roots |= {changed[a]: self._roots[a] for a in in_place}
        self._copied = [(out, a) for a, out in changed.items() if a not in in_place]
        for array in in_place:
            changed[array].kind = Kind.VARIABLE
        if config.functions_are_verified():
            verify_program(program, "all passes")
        program.outputs = []
        arena = BufferAssignment(program).arena_size
        spaces = [Buffer((arena,), np.dtype(np.uint8), Kind.SCRATCH)]
        spaces += [
            Buffer(out.shape, out.dtype, Kind.SCRATCH) for out, _ in self._copied
        ]
        self.operands = (*self.operands, *spaces)
        return True

    def _may_overwrite(self, array, out):
        """Return whether a result may overwrite the array that it replaces."""
        maker, instructions = out.instruction, self.program.instructions
        if maker not in instructions or not out.same_spec(array):
            return False
        at, seen = instructions.index(maker), [a.base for a in maker.operands]
        if seen.count(array) > maker.operands.count(array):
            return False  # it reads a view, whose entries may lie elsewhere
        later = [a.base for each in instructions[at + 1 :] for a in each.operands]
        done = array not in seen or maker.is_done_with(array, out)
        return done and array not in later

    # --- its steps

    def steps_on(self, addresses):
        """Return the steps of the program, and copies of results to their final arrays."""
        gradients = [a for a in self.operands if not a.is_scratch]
        arena, *spaces = self.scratch
        outer = dict(zip(self.program.inputs, gradients))
        outer |= zip([out for out, _ in self._copied], spaces)

        def root_of(base):
            if base in self._roots:
                return self._roots[base], 0
            if base in outer:
                root, start = addresses.locate(outer[base])
                return root, start + start_in_memory(outer[base])
            if base.is_constant:
                return Root("constant", base), 0
            root, start = addresses.locate(arena)
            return root, start + base.offset

        inner = addresses.nested(root_of)
        steps = [s for each in _working(self.program) for s in steps_of(each, inner)]
        pairs = [(start_of(inner, out), inner[a], out) for out, a in self._copied]
        return steps + copy_steps(pairs)


def _working(program):
    return [each for each in program.instructions if type(each) is not View]
