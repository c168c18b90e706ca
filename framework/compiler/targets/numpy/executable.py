"""A program that runs in NumPy: its Python source, and instances with separate memory."""

import functools

import numpy as np

from tapewright.core.hardware.devices import is_out_of_memory, memory_error
from tapewright.core.settings import config
from tapewright.core.settings.ufunc_settings import SMALL_BUFFER, ignoring_float_errors
from tapewright.core.state.commit import restoring
from tapewright.core.tensor import TensorSpec
from tapewright.core.variable import writing

from ...program.arena import ALIGNMENT
from ...program.buffer_assignment import BufferAssignment
from ...program.instructions.call_instructions import StoreVariable, Update
from ...program.passes.atomicity import written_variables
from ...program.verifier import verify_memory
from ...tracing.graph import is_value
from .source import PerInstance, SourceWriter


class Executable:
    """A program with its memory assigned, as Python source.

    It runs in instances, which own memory and serve one thread at a time: functions of
    the input arrays that return a tuple of the output arrays. `acquire` returns an idle
    one, or creates one, and `release` gives it back; `run` does both. ``lines`` has the
    instruction of each line of ``source``, ``memory`` the names of buffers in the
    memory of an instance.
    """

    target, unit = "numpy", "array call"  # what it is for, and runs one after the other
    calls_numpy = True
    xp = np  # the module of its arrays

    def __init__(self, program, name="replay"):
        self.program, self.name = program, name
        if program.commits_once and self.xp is np:  # a stable sort: they come last
            program.instructions.sort(
                key=lambda each: type(each) in (StoreVariable, Update)
            )
        self.assignment = BufferAssignment(program)
        self.make_source()
        self.idle = []

    def make_source(self):
        """Write and compile the source."""
        source, self.memory = self.write(self.assignment)
        self.source, self.bound, self.lines = source.text, source.bound, source.tags
        self.filename = source.filename
        self.code = compile(self.source, self.filename, "exec")

    def write(self, assignment):
        """Return the source, and the names of buffers in the memory of an instance."""
        return SourceWriter(assignment, self.name, type(self)).written()

    @property
    def arena_size(self):
        """The bytes that all buffers in the arena need."""
        return self.assignment.arena_size

    def one_by_one(self):
        """Return an executable of the same program with one call per instruction."""
        return self

    def calls(self):
        """Return lists of the instructions that one call computes, in order."""
        return [[each] for each in self.program.instructions]

    # --- running

    def run(self, arrays, *options):
        """Return the output arrays for a list of input arrays; ``options``: see `acquire`.

        An instance that has raised is not used again: an all-reduce that it started may
        still read its memory.
        """
        try:
            instance = self.acquire(*options)
            outputs = instance(*arrays)
        except Exception as error:
            raise self.annotated(error) from None
        self.release(instance)
        return outputs

    def acquire(self):
        """Take an instance that no thread uses."""
        try:
            return self.idle.pop()
        except IndexError:
            return self.instance()

    def release(self, instance):
        """Give back an instance that `acquire` has returned."""
        self.idle.append(instance)

    def instance(self, replacing=None):
        """Create a replay function with separate memory.

        ``replacing`` maps instructions with effects to functions that replace them.
        """
        return self.replay_in(self.new_memory(replacing or {}))

    def replay_in(self, instance):
        """Create a replay function with the memory of ``instance``."""
        scope = {}
        for name, value in self.bound.items():
            if type(value) is PerInstance:
                value = value.make(instance, scope)
            scope[name] = value
        verified = config.functions_are_verified()
        if verified:
            arrays = self.fixed_memory(instance, scope)
            verify_memory(self.program, arrays, instance.updates)
        exec(self.code, scope)
        # Taken out of its globals, so that there is no cycle of references.
        run = scope.pop(self.source[4 : self.source.index("(")])
        if verified:
            run = _poisoning(run, instance.arena)
        run = self.atomic(run, instance)
        if self.program.aliases_inputs:  # a region: the replay around it does the rest
            return run
        run = _in_transaction(run, self.program)
        return ignoring_float_errors(run, SMALL_BUFFER) if self.calls_numpy else run

    def atomic(self, run, instance):
        """Make ``run`` leave all variables unchanged if it does not complete."""
        if self.program.commits_once:
            return run
        written = written_variables(self.program.graph)
        return functools.partial(restoring, written, run)

    def fixed_memory(self, instance, scope):
        """Return the arrays of buffers that are the same in each replay of an instance."""
        return {buffer: scope[name] for buffer, name in self.memory.items()}

    def new_memory(self, replacing):
        """Return the memory of another instance."""
        return Instance(self.assignment, replacing)

    # --- errors

    def annotated(self, error):
        """Return an exception of a replay as eager mode raises it, with the user's line."""
        instruction = self.failed_instruction(error)
        if instruction is None:
            if is_out_of_memory(error):  # of the arrays of an instance
                return memory_error(f"the function {self.name!r}", error)
            return error
        return explained(error, instruction.node, self.name)

    def failed_instruction(self, error):
        """Return the instruction that has raised an exception, or None."""
        import traceback  # two milliseconds that only a mistake should cost

        for frame, line in traceback.walk_tb(error.__traceback__):
            if frame.f_code.co_filename == self.filename:
                known = line <= len(self.lines)
                instruction = self.lines[line - 1] if known else None
                if instruction is not None:
                    return instruction
        return None


def explained(error, node, function):
    """Return an exception of a node as its op explains it, with function and user's line."""
    if node.op is not None:
        given = [x if is_value(x) else x.array for x in node.inputs]
        specs = [TensorSpec(x.shape, x.dtype) for x in given]
        error = node.op.explain_kernel(error, specs)
    error.add_note(f"in the op {node.name} of the function {function!r}, {node.line}")
    return error


class Instance:
    """The memory of one instance, and the updates that have separate memory.

    Its arrays belong to the module ``xp``, which aligns its own allocations.
    """

    def __init__(self, assignment, replacing, xp=np):
        self.size = assignment.arena_size
        self.arena = xp.empty(self.size + ALIGNMENT, np.uint8)
        self.start = -self.arena.ctypes.data % ALIGNMENT if xp is np else 0
        self._slots, self._replacing = assignment.slots, replacing
        with_slots = {instruction for instruction, _ in self._slots.values()}
        self.updates = {each: each.update.with_own_memory() for each in with_slots}

    def whole_arena(self):
        """Return the memory of all buffers in the arena, from its first aligned address on."""
        return self.arena[self.start : self.start + self.size]

    def array(self, buffer):
        """Return the memory of a buffer."""
        if buffer in self._slots:
            instruction, number = self._slots[buffer]
            return self.updates[instruction].gradient_memory[number]
        start = buffer.offset + self.start
        part = self.arena[start : start + buffer.nbytes]
        return part.view(buffer.dtype).reshape(buffer.shape)

    def replacement(self, instruction):
        """Return the function that replaces an instruction's own, or None."""
        return self._replacing.get(instruction) or self.updates.get(instruction)


def _in_transaction(run, program):
    """Make ``run`` hold the locks of the variables that it writes."""
    written = [v for each in program.instructions for v in each.variables_written]
    if not written:
        return run
    locks = writing(written)

    return functools.partial(locks.run, run)


def _poisoning(run, arena):
    """Make ``run`` fill its memory with NaN at the end, so that escaped buffers show."""

    def poisoning(*arrays):
        outputs = run(*arrays)
        arena.fill(0xFF)
        return outputs

    return poisoning
