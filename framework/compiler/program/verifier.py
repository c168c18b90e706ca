"""Verify programs: each instruction reads the values that it names.

The checker tracks, instruction by instruction, the value that each piece of memory
holds. A buffer names the value that was written when it was computed; a read is valid
if its memory still holds that value. `verify_program` gives every buffer separate
memory, and so finds reads after an in-place change. `verify_memory` uses the addresses
of the buffers of an instance, and so finds memory that is reused too early. Both find
memory that escapes: an output, or the value of a variable, in memory that a later
replay or the outer program overwrites.

Collectives run in the order that all processes of a job share. The operands of an
all-reduce that overlaps with the program are read once more where it is awaited.

Instructions declare their `Memory`, donations, and the operands that variables keep.
Bodies of loops and branches are separate programs, verified when they are created.
"""

import numpy as np
from numpy.lib.array_utils import byte_bounds

from tapewright.core.errors import VerificationError

from .instructions.all_reduce_instructions import StartAllReduce, WaitAllReduce
from .instructions.instruction import Memory
from .program import Kind


def verify_program(program, after):
    """Check a program; ``after`` names the pass that has run.

    Raises:
        VerificationError: If an instruction reads a wrong value, or memory escapes.
    """
    _Checker(program, {}, f"after {after}", overwrites=program.overwrites).run()


def verify_memory(program, arrays, updates):
    """Check a program with the memory of one instance.

    ``arrays`` maps each buffer in the instance's own memory to its array, the same in
    every replay; ``updates`` maps instructions to their `VariableUpdate`.

    Raises:
        VerificationError: If memory is reused too early, or escapes.
    """
    _Checker(program, arrays, "with its memory assigned", updates).run()


class _Memory:
    """The value held by each piece of memory: disjoint intervals of address spaces."""

    def __init__(self):
        self.spaces = {}  # space -> [(start, stop, value)]

    def write(self, location, value):
        space, start, stop = location
        parts, rest = self.spaces.get(space, ()), []
        if len(parts) == 1 and start <= parts[0][0] and parts[0][1] <= stop:
            parts = ()  # nearly always: the whole of it
        for a, b, old in parts:
            if b <= start or stop <= a:
                rest.append((a, b, old))
                continue
            if a < start:
                rest.append((a, start, old))
            if stop < b:
                rest.append((stop, b, old))
        if start < stop:
            rest.append((start, stop, value))
        self.spaces[space] = rest

    def holds(self, location, value):
        space, start, stop = location
        parts = self.spaces.get(space, ())
        if len(parts) == 1:  # nearly always
            ((a, b, v),) = parts
            if v is value and a <= start and stop <= b:
                return True
        inside = [(a, b) for a, b, v in parts if v == value and a < stop and start < b]
        return sum([min(b, stop) - max(a, start) for a, b in inside]) == stop - start


def _bounds(array):
    """Return the start and end addresses of an array; GPU arrays are contiguous."""
    if not array.size:
        return 0, 0
    if isinstance(array, np.ndarray):
        return byte_bounds(array)
    return array.data.ptr, array.data.ptr + array.nbytes


def _overlap(a, b):
    return a[0] == b[0] and a[1] < b[2] and b[1] < a[2]


class _Checker:
    """One traversal of a program.

    ``fixed``: the arrays of buffers in the instance's own memory; ``updates``: the
    updates of this instance, which have memory for gradients.
    """

    def __init__(self, program, fixed, when, updates=(), overwrites=False):
        self.program, self.fixed, self.when = program, fixed, when
        self.updates, self.overwrites = dict(updates), overwrites
        self.loaded = {}  # id of a variable -> the buffers with values of it
        self.memory, self.locations = _Memory(), {}
        self.values = {}  # buffer -> the value that it names
        self.backing = {}  # base -> buffers whose memory may be its own, with their values
        self.stored = {}  # id of a variable -> the buffer that it was last bound to
        self.instruction = None

    def run(self):
        for buffer in self.program.inputs:
            self.make(buffer)
        _check_order(self)
        _check_collectives(self)
        for instruction in self.program.instructions:
            self.instruction = instruction
            self.step(instruction)
        self.instruction = None
        for buffer in self.stored.values():  # must not have changed since
            self.read(buffer)
        for buffer in self.program.outputs:
            self.read(buffer)
            self.require_lasting(buffer, "returned", may_be_input=True)

    def fail(self, what):
        name, line, at = self.program.graph.name, "", ""
        if self.instruction is not None:
            node = self.instruction.node
            at = f" at {self.instruction!r} of {node!r}"
            line = f" ({node.line})" if node.line else ""
        raise VerificationError(f"'{name}' {self.when}{at}{line}: {what}")

    # --- memory

    def location(self, buffer):
        """Return ``(space, start, stop)`` of the memory of a buffer or a view's base."""
        base = buffer.base
        location = self.locations.get(base)
        if location is None:
            array = self.fixed.get(base)
            if array is None:
                location = base, 0, base.nbytes
            else:
                location = ("instance", *_bounds(array))
            self.locations[base] = location
        return location

    def make(self, buffer, value=None):
        """Write a new value, named by a buffer, to the buffer's memory."""
        self.values[buffer] = value = object() if value is None else value
        self.memory.write(self.location(buffer), value)

    def read(self, buffer):
        value = self.values.get(buffer)
        if value is None:
            if buffer.is_constant:
                return
            self.fail(f"{buffer} is read before it is computed")
        if not self.memory.holds(self.location(buffer), value):
            self.fail(f"{buffer} is read, but its memory already holds another value")
        for other, value in self.backing.get(buffer.base, ()):
            if not self.memory.holds(self.location(other), value):
                self.fail(
                    f"{buffer} may be a view of {other}, whose memory was changed"
                )

    # --- instructions

    def step(self, instruction):
        scratch = instruction.scratch
        for buffer in scratch:
            self.memory.write(self.location(buffer), object())
        for buffer in instruction.reads:
            self.read(buffer)
        instruction.verify(self.location, self.fail)
        for buffer in instruction.kept:
            use, may_be_input = "kept by a variable", not self.program.aliases_inputs
            self.require_lasting(buffer, use, may_be_input)
            for variable in instruction.variables_written:
                self.stored[id(variable)] = buffer
        self.write_gradients(instruction)
        self.write_variables(instruction)
        _STEPS[instruction.memory](self, instruction)
        for buffer in scratch:
            self.require_apart(
                self.location(buffer), instruction.outputs, "scratch memory"
            )

    def write_gradients(self, instruction):
        """Overwrite an update's memory for gradients."""
        update = self.updates.get(instruction)
        for array in () if update is None else update.gradient_memory:
            if array is not None and array.size:
                self.memory.write(("instance", *_bounds(array)), object())

    def write_variables(self, instruction):
        """Overwrite the loaded values of the variables that change in place.

        Variables in host memory get new arrays.
        """
        for variable in instruction.variables_overwritten if self.overwrites else ():
            for buffer in self.loaded.get(id(variable), ()):
                if buffer.kind is not Kind.HOST:
                    self.memory.write(self.location(buffer), object())

    def step_assigned(self, instruction):
        """Write outputs to separate memory, or in place of an operand last used here."""
        reads = () if instruction.copies_overlaps else instruction.reads
        for out in instruction.outputs:
            if out.is_view:
                self.fail(f"{out} must have separate memory")
            self.require_apart_from_operands(instruction, reads, out)
        for out in instruction.outputs:
            self.make(out)

    def step_shared(self, instruction):
        (out,), viewed = instruction.outputs, instruction.viewed
        if out.base is not viewed.base:
            self.fail(f"{out} is a view of {viewed}, and must share its base")
        if not out.is_constant:
            self.values[out] = self.values[viewed]

    def step_allocated(self, instruction):
        donated, backing = instruction.donated, []
        if donated is not None:  # its value is gone from here on
            self.require_owned(donated)
            changed = object()
            self.memory.write(self.location(donated), changed)
        for buffer in instruction.reads if instruction.may_alias else ():
            # Values of the host are copied.
            if not buffer.is_constant and buffer.kind is not Kind.HOST:
                value = changed if buffer is donated else self.values[buffer]
                backing += [(buffer, value), *self.backing.get(buffer.base, ())]
        for out in instruction.outputs:
            self.make(out)
            self.backing[out] = backing

    def step_new(self, instruction):
        for out in instruction.outputs:
            self.make(out)

    def step_variable(self, instruction):
        self.step_new(instruction)
        for variable in instruction.variables_read:
            self.loaded.setdefault(id(variable), []).extend(instruction.outputs)

    # --- what must hold

    def require_apart(self, location, buffers, what):
        for buffer in buffers:
            if _overlap(location, self.location(buffer)):
                self.fail(f"{buffer} shares the memory of {what}")

    def require_apart_from_operands(self, instruction, reads, out):
        """Require that an output shares memory only with operands that it may overwrite."""
        location = self.location(out)
        for buffer in reads:
            if not _overlap(location, self.location(buffer)):
                continue
            same = self.location(buffer) == location and buffer.shape == out.shape
            if not same or buffer not in instruction.in_place_operands:
                self.fail(f"{out} overwrites {buffer}, which is still in use")

    def require_owned(self, buffer):
        """Require that the program may write to the memory of a buffer."""
        base = buffer.base
        owned = [self.program.inputs[i] for i in self.program.donated_inputs]
        made = (
            base.instruction is not None and base.instruction.memory is Memory.ASSIGNED
        )
        if not made and base not in owned:
            self.fail(f"{buffer} is changed, but the program does not own its memory")

    def require_lasting(self, buffer, use, may_be_input):
        """Require that a buffer that outlives the replay is not in memory that is reused."""
        behind = [a.base for a, _ in self.backing.get(buffer.base, ())]
        for base in (buffer.base, *behind):
            if base in self.fixed:
                self.fail(
                    f"{buffer} is {use}, but its memory belongs to the executable"
                )
            if base.kind is Kind.INPUT and not may_be_input:
                self.fail(
                    f"{buffer} is {use}, but its memory is only lent to this program"
                )


_STEPS = {
    Memory.ASSIGNED: _Checker.step_assigned,
    Memory.SHARED: _Checker.step_shared,
    Memory.ALLOCATED: _Checker.step_allocated,
    Memory.VARIABLE: _Checker.step_variable,
    Memory.NONE: _Checker.step_new,
}


# ------------------------------------------------------------------------- variables


def _check_order(checker):
    """Check that each read of a variable comes after the same writes as in the graph."""
    program = checker.program
    touching = [i.node for i in program.instructions if i.touches_variables]
    wanted, actual = _last_writers(program.graph.nodes), _last_writers(touching)
    for node, writers in actual.items():
        if writers != wanted.get(node):
            checker.fail(
                f"{node!r} ({node.line}) comes after other writes of its variables"
            )


# ----------------------------------------------------------------------- collectives


def _check_collectives(checker):
    """Check that collectives are called once, in the order common to all processes.

    An all-reduce that is started must be awaited once, while its operands are intact.
    """
    program, pending = checker.program, {}
    actual = [node for each in program.instructions for node in each.collectives]
    if actual != program.collectives:
        lines = [
            [node.line for node in nodes] for nodes in (actual, program.collectives)
        ]
        checker.fail(f"collectives run in the order {lines[0]}, not {lines[1]}")
    for instruction in program.instructions:
        checker.instruction = instruction
        if type(instruction) is StartAllReduce:
            pending[instruction.outputs[0]] = instruction
        elif type(instruction) is WaitAllReduce:
            token, *operands = instruction.operands
            start = pending.pop(token, None)
            if start is None or list(start.operands) != operands:
                checker.fail("it does not wait for an all-reduce that was started")
            if len(instruction.outputs) != len(operands):
                checker.fail("it needs one result for each operand of the all-reduce")
    for checker.instruction in pending.values():
        checker.fail("nothing waits for this all-reduce")
    checker.instruction = None


def _last_writers(nodes):
    """Map each node that accesses variables to the last writer of each of them."""
    seen, last = {}, {}
    for node in nodes:
        if node.reads or node.is_effect:
            touched = {id(v) for v in (*node.reads, *node.writes)}
            seen[node] = {name: last[name] for name in touched if name in last}
            last.update(dict.fromkeys([id(v) for v in node.writes], node))
    return seen
