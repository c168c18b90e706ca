"""Partition the instructions of a program into groups, one loop nest each, and order them.

Each map or reduction joins the group of one of its operands if it can; then the groups
of its other operands are merged into that one, if nothing has to run between them.
"""

import heapq
import itertools

from tapewright.core.dtypes import is_narrow
from tapewright.core.errors import InternalError

from ..program.instructions.array_instructions import (
    BoundedRead,
    Copy,
    Map,
    Reduce,
    View,
)
from ..program.instructions.call_instructions import LoadVariable
from ..program.passes.atomicity import may_fail
from .group import Group, root_of
from .schedule import cost_of

# Code size of a group, in single instructions. LLVM's time grows with its square: a chain
# of 1,000 tanh took 54 s with 400 in a loop, and takes 0.6 s with 25. Arrays between them
# stay in the cache.
MOST = 200
NUMBER = 16  # code size of a number that is computed once: two powers


class Unit:
    """A group or a single other instruction, and the units that must run before it."""

    def __init__(self, number, group=None):
        self.number, self.group = number, group
        self.members = [] if group is None else group.members
        self.code_size = 0
        # The units that must run before: those known directly, and bits of all of them.
        self.depends = set()
        self.before = 0
        self.dependents = set()  # the units that have this one in `depends`


def form_groups(program, is_supported, most=MOST, has_totals=True):
    """Return the units of a program in execution order: groups and instructions.

    ``is_supported(instruction)`` returns whether a target computes a map or reduction;
    ``most`` is the maximal code size of a group, 1 for one instruction each;
    ``has_totals``: see `Group`.
    """
    return _Grouping(program, is_supported, most, has_totals).units()


class _Grouping:
    def __init__(self, program, is_supported, most, has_totals):
        self.program, self.is_supported, self.most = program, is_supported, most
        self.has_totals = has_totals
        self.all_units = []
        self.unit_of = {}  # buffer -> the unit that computes it
        self.names = map("i{}".format, itertools.count())
        self.effects = []  # units whose order among variables matters, so far
        self.loads, self.collectives = [], []
        self.deferred = {}  # output -> cast that no unit computes yet
        self.fallible = []  # units that may raise, which must come before effects
        self.readers = {}  # id of a variable -> units that read its array
        self.loaded = {}  # buffer -> ids of variables
        self.position = {each: n for n, each in enumerate(program.instructions)}
        self.readers_of = program.readers()

    def units(self):
        for instruction in self.program.instructions:
            if type(instruction) is View:
                continue  # seen from its readers
            if not self._is_loop(instruction):
                self.alone(instruction)
            elif self._widens(instruction):
                self.deferred[instruction.outputs[0]] = instruction
            else:
                self.add(instruction)
        for instruction in self.deferred.values():
            self.add(instruction)
        return self.ordered()

    # --- half precision made wider

    def _widens(self, instruction):
        """Return whether a cast widens values of a group: it is deferred until it is read.

        It is then computed in the group that reads it, and only 16 bits are kept until
        then.
        """
        (source, *_) = instruction.operands
        unit = self.producer(source)
        is_cast = isinstance(instruction, Map) and instruction.scalar == "cast"
        widens = is_cast and is_narrow(source.dtype)
        return widens and unit is not None and unit.group is not None

    def add_deferred_casts(self, reader):
        """Add the deferred casts whose values are now read."""
        for a in reader.operands:
            cast = self.deferred.pop(root_of(a), None)
            if cast is not None:
                self.add(cast, self._is_read_late(cast, reader))

    def _is_read_late(self, cast, reader):
        """Return whether a reader of a cast has to wait for more than the cast's group."""
        unit = self.producer(cast.operands[0])
        if not self._is_loop(reader):
            after = self.all_units[unit.number + 1 :]
            later = [u.members[0] for u in after if u.members]
            return any(
                [not self._is_loop(m) and type(m) is not LoadVariable for m in later]
            )
        roots = [root_of(a) for a in reader.operands]
        casts = self.deferred
        sources = [casts[a].operands[0] if a in casts else a for a in roots]
        producers = {self.producer(a) for a in sources} - {None, unit}
        return any([each.before >> unit.number & 1 for each in producers])

    def _is_loop(self, instruction):
        (out, *others) = instruction.outputs or (None,)
        if out is None or others or not out.size:
            return False
        if type(instruction) is Copy and instruction.axis is not None:
            return False
        if not isinstance(instruction, (Map, Reduce, Copy, BoundedRead)):
            return False
        is_full = all([a.size for a in instruction.operands])
        return is_full and self.is_supported(instruction)

    # --- what runs before what

    def producer(self, buffer):
        """Return the unit that computes a buffer or its base; None for an input."""
        return self.unit_of.get(root_of(buffer))

    def new_unit(self, group=None):
        unit = Unit(len(self.all_units), group)
        self.all_units.append(unit)
        return unit

    def require(self, unit, others):
        """Let other units run before one."""
        new = 0
        for other in others:
            if other is not None and other is not unit and other not in unit.depends:
                unit.depends.add(other)
                other.dependents.add(unit)
                new |= other.before | 1 << other.number
        waiting = [unit]
        while waiting:
            each = waiting.pop()
            if new & ~each.before:
                each.before |= new
                waiting += each.dependents

    def alone(self, instruction):
        """Make a unit of one instruction that loops cannot compute."""
        self.add_deferred_casts(instruction)
        unit = self.new_unit()
        unit.members.append(instruction)
        self.require(unit, map(self.producer, instruction.operands))
        self.keep_order(unit, instruction)
        held = self.note_readers(unit, instruction)
        for out in instruction.outputs:
            self.unit_of[out] = unit
            if instruction.may_alias:
                self.loaded[out] = held

    def keep_order(self, unit, instruction):
        """Keep the order of accesses to variables, of errors before effects, of collectives."""
        if type(instruction) is LoadVariable:
            (out,) = instruction.outputs
            self.loaded[out] = {id(instruction.variable)}
            self.require(unit, self.effects[-1:])
            self.loads.append(unit)
        elif instruction.touches_variables:
            self.require(unit, [*self.effects[-1:], *self.loads, *self.fallible])
            for variable in instruction.variables_overwritten:
                self.require(unit, self.readers.get(id(variable), ()))
            self.effects.append(unit)
            self.loads, self.fallible = [], []
        elif may_fail(instruction.node):
            self.fallible.append(unit)
        if instruction.collectives:  # their order is that of all processes
            self.require(unit, self.collectives[-1:])
            self.collectives.append(unit)

    def note_readers(self, unit, instruction):
        """Note that a unit may read the arrays of variables; return their ids."""
        bases = [a.base for a in instruction.operands]
        held = {v for base in bases for v in self.loaded.get(base, ())}
        for variable in held:
            self.readers.setdefault(variable, set()).add(unit)
        return held

    def may_join(self, instruction, unit):
        """Return whether a unit may wait for the other operands of an instruction."""
        producers = {self.producer(a) for a in instruction.operands} - {None, unit}
        return not any([each.before >> unit.number & 1 for each in producers])

    # --- groups

    def add(self, instruction, apart=False):
        """Add an instruction to the group of an operand or, if ``apart``, to a new one."""
        self.add_deferred_casts(instruction)
        producers = {self.producer(a) for a in instruction.operands} - {None}
        near = [] if apart else [u for u in producers if u.group]
        # The last one first: what depends on a unit keeps instructions out of it.
        near.sort(key=lambda u: -u.number)
        unit = next((u for u in near if self.join(instruction, u)), None)
        if unit is None and type(instruction) is Reduce and not near:
            unit = self.beside(instruction)
        if unit is None:
            group = Group(self.names, self.program.limits, self.has_totals)
            group.start(instruction, self.is_read_back)
            unit = self.new_unit(group)
        unit.code_size += _code_size(instruction)
        (out,) = instruction.outputs
        self.unit_of[out] = unit
        self.require(unit, producers)
        self.note_readers(unit, instruction)
        for other in near:
            if other is not unit:
                self.merge(instruction, unit, other)

    def join(self, instruction, unit):
        """Add an instruction to a group that computes some of its operands, if possible."""
        if unit.code_size + _code_size(instruction) > self.most:
            return False
        if self.is_costly_number(unit, instruction):
            return False
        if not self.may_join(instruction, unit):
            return False
        own = [a for a in instruction.operands if self.producer(a) is unit]
        return unit.group.join(instruction, own, self.is_read_back)

    def beside(self, reduction):
        """Let a unit with a reduction join one that reads the same array, if possible."""
        (operand,) = reduction.operands
        readers = [r for r in self.readers_of[operand] if isinstance(r, Map)]
        units = {self.unit_of.get(r.outputs[0]) for r in readers} - {None}
        for unit in sorted([u for u in units if u.group], key=lambda u: u.number):
            is_small = unit.code_size + _code_size(reduction) <= self.most
            if is_small and self.may_join(reduction, unit):
                if unit.group.add_total(reduction, self.is_read_back):
                    return unit
        return None

    def is_read_back(self, reduction):
        """Return whether values as large as its operand depend on a reduction."""
        size = reduction.operands[0].size
        waiting, seen = list(reduction.outputs), set()
        while waiting:
            for reader in self.readers_of.get(waiting.pop(), ()):
                if reader in seen or not isinstance(reader, (Map, View, Reduce, Copy)):
                    continue
                seen.add(reader)
                (out,) = reader.outputs
                if type(reader) is Map and out.size >= size:
                    return True
                waiting.append(out)
        return False

    def merge(self, instruction, unit, other):
        """Merge two units whose values an instruction reads, if possible."""
        if unit.code_size + other.code_size > self.most:
            return
        if self.is_costly_number(other, instruction):
            return
        if self.runs_between(unit, other):
            return
        both = unit.group.merge(other.group, instruction)
        if both is None:
            return
        both.members.sort(key=self.position.__getitem__)
        unit.group, unit.members = both, both.members
        unit.code_size += other.code_size
        for out in other.group.axes_of:
            self.unit_of[out] = unit
        other.group, other.members, other.code_size = None, [], 0
        self.require(unit, other.depends)
        for each in other.depends:
            each.dependents.discard(other)
        for each in other.dependents:
            each.depends.discard(other)
            self.require(each, [unit])
        other.depends, other.dependents = set(), set()
        for readers in self.readers.values():
            if other in readers:
                readers.discard(other)
                readers.add(unit)

    def is_costly_number(self, unit, instruction):
        """Return whether each block of an instruction would compute a number again.

        It takes as long as hundreds of entries: the powers in the coefficients of Adam.
        Elsewhere Python computes them.
        """
        limits, (out,) = self.program.limits, instruction.outputs
        if not limits.is_standalone or out.size < limits.strips[0]:
            return False
        numbers = [a.size == 1 for member in unit.members for a in member.outputs]
        return unit.code_size >= NUMBER and all(numbers)

    def runs_between(self, unit, other):
        """Return whether something must run after one of two units and before the other."""
        before = unit.before | other.before
        after = (unit.dependents | other.dependents) - {unit, other}
        return any([before >> each.number & 1 for each in after])

    # --- the order

    def ordered(self):
        """Return the units in topological order, otherwise in the order of the program."""
        units = [u for u in self.all_units if u.members]
        first = {u: min([self.position[i] for i in u.members]) for u in units}
        waiting = {u: len(u.depends) for u in units}
        heap = [(first[u], u.number, u) for u in units if not waiting[u]]
        heapq.heapify(heap)
        done = []
        while heap:
            _, _, unit = heapq.heappop(heap)
            done.append(unit)
            for other in unit.dependents:
                waiting[other] -= 1
                if not waiting[other]:
                    heapq.heappush(heap, (first[other], other.number, other))
        if len(done) != len(units):
            raise InternalError("units depend on each other in a cycle")
        return done


def _code_size(instruction):
    """Return the approximate code size of an instruction."""
    return cost_of(instruction.scalar) if isinstance(instruction, Map) else 1
