"""Group the instructions of a program that one nest of loops can compute.

The values of a group are functions of its axes. With no reduction, each depends on all of
them, or on none. With reductions, over the axes ``reduced``, a value may also depend on all
the others: softmax, whose maximum and sum depend on the row, is a group, and so is batch
normalization, whose moments depend on the channel. A sum over all entries is made in a
group as well, but read by others only, as its blocks run at the same time.
"""

import heapq
import itertools
import math

from ..program.array_instructions import Copy, Map, Reduce, View
from ..program.atomicity import may_fail
from ..program.call_instructions import Load
from .accesses import relabeled
from .statements import Axis

__all__ = ["Group", "grouped", "root_of"]

MOST = 400  # instructions of a group: the time of compilation grows with them
SUMS = 4096  # sums to which every block may add
SMALL = 4096  # entries whose sum may be read in the same nest, which then is one block


class Group:
    """Instructions on common axes, and what must run before them.

    ``axes_of``: for each value a tuple with the axis of each dimension, None where there
    is one entry; ``inner``: the same for the operand of each reduction.
    """

    def __init__(self, number):
        self.number = number
        self.members, self.axes_of, self.inner = [], {}, {}
        self.axes, self.reduced = (), None
        self.totals = set()  # values that others alone may read
        self.spread = frozenset()  # axes of sums to which every block adds
        self.is_nest = False
        self.before, self.depends = (
            0,
            set(),
        )  # bits of all units that run before; direct ones

    @property
    def outer(self):
        """The axes that are not reduced."""
        reduced = self.reduced or ()
        return tuple([a for a in self.axes if a not in reduced])

    def allows(self, axes, every, reduced):
        """Return whether values may depend on these axes."""
        axes = frozenset(axes) - {None}
        if not axes or axes == frozenset(every):
            return True
        return reduced is not None and axes == frozenset(every) - reduced

    def allows_all(self, every, reduced):
        kinds = [axes for v, axes in self.axes_of.items() if v not in self.totals]
        return all([self.allows(axes, every, reduced) for axes in kinds])

    def allows_reduction(self, every, reduced):
        """Return whether ``reduced`` can be the axes that passes run over."""
        rest = set(every) - reduced - self.spread
        return (
            self.reduced is None
            and self.allows_all(every, reduced)
            and bool(rest or not self.spread)
        )

    def allows_sums(self, axes):
        """Return whether each block can add to sums along these axes: there must be another
        axis that blocks are cut from."""
        spread = self.spread | axes
        size = math.prod([a.extent for a in axes])
        return size <= SUMS and bool(set(self.axes) - (self.reduced or set()) - spread)


def grouped(program, is_supported, fused=True):
    """Return the units of a program in an order to run them: groups and instructions.

    ``is_supported(instruction)`` tells whether a target computes a map or reduction;
    ``fused``: False makes a group of each.
    """
    return _Grouping(program, is_supported, MOST if fused else 1).units()


class _Grouping:
    def __init__(self, program, is_supported, most):
        self.program, self.is_supported, self.most = program, is_supported, most
        self.groups, self.unit_of = [], {}  # unit_of: buffer -> the unit that makes it
        self.names = map("i{}".format, itertools.count())
        self.effects = []  # units whose order among variables matters, so far
        self.loads = []
        self.fallible = []  # units that may raise, which must come before effects
        self.readers = {}  # id of a variable -> units that read its array
        self.loaded = {}  # buffer -> ids of variables
        self.readers_of = {}  # buffer -> instructions
        for each in program.instructions:
            for a in each.operands:
                self.readers_of.setdefault(a, []).append(each)

    def units(self):
        for instruction in self.program.instructions:
            if type(instruction) is View:
                continue  # seen from its readers
            if self._is_loop(instruction):
                self.place(instruction)
            else:
                self.alone(instruction)
        return self.ordered()

    def _is_loop(self, instruction):
        (out, *others) = instruction.outputs or (None,)
        if out is None or others or not out.size:
            return False
        if type(instruction) is Copy and (instruction.axis is not None):
            return False
        if not isinstance(instruction, (Map, Reduce, Copy)):
            return False
        return all([a.size for a in instruction.operands]) and self.is_supported(
            instruction
        )

    # --- what runs before what

    def producer(self, buffer):
        """The unit that makes a buffer, or of which it is a view; None: it is given."""
        return self.unit_of.get(root_of(buffer))

    def new_unit(self):
        unit = Group(len(self.groups))
        self.groups.append(unit)
        return unit

    def require(self, unit, others):
        """Let other units run before one."""
        new = 0
        for other in others:
            if other is not None and other is not unit and other not in unit.depends:
                unit.depends.add(other)
                new |= other.before | 1 << other.number
        if new & ~unit.before:
            unit.before |= new
            bit = 1 << unit.number
            for each in self.groups:
                if each.before & bit:
                    each.before |= new

    def alone(self, instruction):
        """Make a unit of one instruction that is no loop."""
        unit = self.new_unit()
        unit.members.append(instruction)
        self.require(unit, map(self.producer, instruction.operands))
        if type(instruction) is Load:
            (out,) = instruction.outputs
            self.loaded[out] = id(instruction.variable)
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
        self.note_readers(unit, instruction)
        for out in instruction.outputs:
            self.unit_of[out] = unit

    def note_readers(self, unit, instruction):
        for a in instruction.operands:
            variable = self.loaded.get(a.base)
            if variable is not None:
                self.readers.setdefault(variable, set()).add(unit)

    def may_join(self, instruction, unit):
        """Return whether a unit may wait for the other operands of an instruction."""
        bit = 1 << unit.number
        makers = {self.producer(a) for a in instruction.operands} - {None, unit}
        return not any([maker.before & bit for maker in makers])

    # --- groups

    def place(self, instruction):
        """Add an instruction to the group of an operand, or make a new one of it."""
        made = [self.producer(a) for a in instruction.operands]
        near = sorted(
            {u for u in made if u is not None and u.is_nest}, key=lambda u: -u.number
        )
        for unit in near:
            if self.join(instruction, unit):
                break
        else:
            unit = self.new_unit()
            unit.is_nest = True
            self.start(instruction, unit)
        self.added(instruction, unit)
        for other in near:
            if (
                other is not unit
                and other.is_nest
                and len(unit.members) + len(other.members) < self.most
            ):
                unit = self.merge(instruction, unit, other)

    def added(self, instruction, unit):
        unit.members.append(instruction)
        (out,) = instruction.outputs
        self.unit_of[out] = unit
        self.require(unit, map(self.producer, instruction.operands))
        self.note_readers(unit, instruction)

    def axis(self, n):
        return Axis(next(self.names), n)

    def start(self, instruction, unit):
        """Make a group of one instruction."""
        (out,) = instruction.outputs
        shape = (
            instruction.operands[0].shape if type(instruction) is Reduce else out.shape
        )
        axes = tuple([None if n == 1 else self.axis(n) for n in shape])
        unit.axes = tuple([a for a in axes if a is not None])
        if type(instruction) is Reduce:
            self.reduce(instruction, unit, axes)
        else:
            unit.axes_of[out] = axes

    def reduce(self, instruction, unit, axes):
        """Add a reduction of a value with these axes; return whether it could be."""
        (out,), gone = instruction.outputs, instruction.axes
        summed = frozenset([axes[i] for i in gone]) - {None}
        own = frozenset(axes) - {None}
        shape = instruction.operands[0].shape
        if any([axes[i] is None and shape[i] != 1 for i in range(len(shape))]):
            return False
        every, size = frozenset(unit.axes), math.prod([a.extent for a in own])
        if summed and not (own == every and summed == unit.reduced):
            open_ended = self.is_read_back(instruction)
            if own == every and unit.reduced is None and open_ended:
                if summed == every and size > SMALL:
                    unit.totals.add(out)
                elif unit.allows_reduction(unit.axes, summed):
                    unit.reduced = summed
                else:
                    return False
            elif summed == own:
                unit.totals.add(out)
            elif own == every and unit.allows_sums(own - summed):
                unit.totals.add(out)
                unit.spread |= own - summed
            elif own == every and unit.allows_reduction(unit.axes, summed):
                unit.reduced = summed
            else:
                return False
        unit.inner[instruction] = axes
        if instruction.keepdims:
            unit.axes_of[out] = tuple(
                [None if i in gone else a for i, a in enumerate(axes)]
            )
        else:
            unit.axes_of[out] = tuple([a for i, a in enumerate(axes) if i not in gone])
        return True

    def is_read_back(self, reduction):
        """Return whether entries of the size of its operand depend on a reduction."""
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

    def axes_in(self, unit, buffer):
        """The axes of the dimensions of a buffer, if a unit makes it and they are known."""
        root = root_of(buffer)
        if root not in unit.axes_of or root in unit.totals:
            return None
        views = []
        while buffer is not root:
            views.append(buffer.instruction)
            buffer = buffer.instruction.viewed
        axes = unit.axes_of[root]
        for view in reversed(views):
            axes = relabeled(view, axes)
            if axes is None:
                return None
        return axes

    def join(self, instruction, unit):
        """Add an instruction to a group if that computes its operands; return if it did."""
        if len(unit.members) >= self.most or not self.may_join(instruction, unit):
            return False
        known = {}
        for a in instruction.operands:
            if self.producer(a) is unit:
                known[a] = self.axes_in(unit, a)
                if known[a] is None:
                    return False
        if type(instruction) is Reduce:
            return self.reduce(instruction, unit, known[instruction.operands[0]])
        (out,) = instruction.outputs
        axes = aligned(out.shape, [(a.shape, axes) for a, axes in known.items()])
        if axes is None:
            return False
        free = [i for i, n in enumerate(out.shape) if n != 1 and axes[i] is None]
        new = []
        for i in free:
            reduced = [a for a in unit.reduced or () if a.extent == out.shape[i]]
            reduced = [a for a in reduced if a not in axes]
            if reduced and unit.reduced:
                axes[i] = min(reduced, key=lambda a: a.name)
            else:
                axes[i] = self.axis(out.shape[i])
                new.append(axes[i])
        if new:
            every = (*unit.axes, *new)
            if unit.reduced is not None:
                return False
            reduced = None if not unit.axes else frozenset(new)
            if unit.totals or not unit.allows_all(every, reduced):
                return False  # sums are over all axes
            unit.axes, unit.reduced = every, reduced
        if not unit.allows(axes, unit.axes, unit.reduced):
            return False
        unit.axes_of[out] = tuple(axes)
        return True

    def merge(self, instruction, unit, other):
        """Make one group of two whose values an instruction reads, if that is possible."""
        between = (1 << unit.number) | (1 << other.number)
        for each in self.groups:  # nothing may run between them
            if each in (unit, other) or not each.members:
                continue
            if (each.before & between) and (
                unit.before >> each.number & 1 or other.before >> each.number & 1
            ):
                return unit
        renamed = self.renamed(instruction, unit, other)
        if renamed is None:
            return unit
        # What is read of one by the other is read within the group.
        extra = [a for a in other.axes if renamed[a] is a]
        every = (*unit.axes, *extra)
        mapped = (
            None
            if other.reduced is None
            else frozenset([renamed[a] for a in other.reduced])
        )
        if unit.reduced is not None and mapped is not None and unit.reduced != mapped:
            return unit
        reduced = unit.reduced if mapped is None else mapped
        if extra and unit.axes and reduced is None:
            reduced = frozenset(extra)
        values = {**other.axes_of}
        new_axes = {
            v: tuple([None if a is None else renamed[a] for a in axes])
            for v, axes in values.items()
        }
        totals = unit.totals | other.totals
        spread = unit.spread | frozenset([renamed[a] for a in other.spread])
        if spread and not set(every) - (reduced or set()) - spread:
            return unit
        for value, axes in (*new_axes.items(), *unit.axes_of.items()):
            if value not in totals and not unit.allows(axes, every, reduced):
                return unit
        inner = {
            i: tuple([None if a is None else renamed[a] for a in axes])
            for i, axes in other.inner.items()
        }
        for i, axes in (*inner.items(), *unit.inner.items()):
            (out,) = i.outputs
            summed = frozenset([axes[n] for n in i.axes]) - {None}
            own = frozenset(axes) - {None}
            if out in unit.totals or out in other.totals:
                if summed != own and own != frozenset(every):
                    return unit
            elif summed and not (own == frozenset(every) and summed == reduced):
                return unit
        # A value of one that the other reads must not be a sum over all entries.
        for each in (*unit.members, *other.members):
            for a in each.operands:
                if root_of(a) in totals:
                    return unit
                if self.producer(a) in (unit, other) and not self._readable(
                    a, new_axes, unit
                ):
                    return unit
        if not self.consistent(unit, other, new_axes):
            return unit
        unit.axes, unit.reduced = every, reduced
        unit.axes_of.update(new_axes)
        unit.inner.update(inner)
        unit.totals, unit.spread = totals, spread
        order = {each: n for n, each in enumerate(self.program.instructions)}
        unit.members = sorted([*unit.members, *other.members], key=order.__getitem__)
        for out in other.axes_of:
            self.unit_of[out] = unit
        self.require(unit, other.depends - {unit})
        unit.depends.discard(other)
        for each in self.groups:
            if other in each.depends:
                each.depends.discard(other)
                if each is not unit:
                    self.require(each, [unit])
        for readers in self.readers.values():
            if other in readers:
                readers.discard(other)
                readers.add(unit)
        other.members, other.is_nest, other.depends = [], False, set()
        return unit

    def _readable(self, buffer, new_axes, unit):
        root = root_of(buffer)
        axes = new_axes.get(root) or unit.axes_of.get(root)
        return axes is not None

    def consistent(self, unit, other, new_axes):
        """Return whether all that is read within the group is read on the same axes."""
        all_axes = {**unit.axes_of, **new_axes}

        class Both:
            axes_of, totals = all_axes, set()

        for each in (*unit.members, *other.members):
            (out,) = each.outputs
            own = all_axes[out]
            if type(each) is Reduce:
                continue
            for a in each.operands:
                if root_of(a) not in all_axes:
                    continue
                axes = self.axes_in(Both, a)
                if axes is None:
                    return False
                found = aligned(out.shape, [(a.shape, axes)])
                if found is None:
                    return False
                if any([f is not None and f is not o for f, o in zip(found, own)]):
                    return False
        for each in (*unit.members, *other.members):
            if type(each) is Reduce and root_of(each.operands[0]) in all_axes:
                axes = self.axes_in(Both, each.operands[0])
                if axes is None:
                    return False
        return True

    def renamed(self, instruction, unit, other):
        """Axes of ``unit`` for those of ``other``, by what an instruction reads of both."""
        (out,) = instruction.outputs
        if type(instruction) is Reduce:
            return None
        own, renamed = unit.axes_of[out], {}
        for a in instruction.operands:
            if self.producer(a) is not other:
                continue
            axes = self.axes_in(other, a)
            if axes is None:
                return None
            lead = len(out.shape) - len(axes)
            for i, axis in enumerate(axes):
                if axis is None:
                    continue
                target = own[lead + i]
                if target is None or renamed.setdefault(axis, target) is not target:
                    return None
        taken = set(renamed.values())
        if len(taken) != len(renamed):
            return None
        for axis in other.axes:
            if axis in renamed:
                continue
            fitting = [
                a
                for a in unit.axes
                if a.extent == axis.extent
                and a not in taken
                and (unit.reduced is None or a in unit.reduced)
                and other.reduced is not None
                and axis in other.reduced
            ]
            renamed[axis] = fitting[0] if fitting else axis
            taken.add(renamed[axis])
        return renamed

    # --- the order

    def ordered(self):
        """The units, each behind those that it needs; those of one kind side by side."""
        units = [u for u in self.groups if u.members]
        position = {each: n for n, each in enumerate(self.program.instructions)}
        first = {u: min([position[i] for i in u.members]) for u in units}
        waiting = {u: len(u.depends) for u in units}
        after = {}
        for u in units:
            for other in u.depends:
                after.setdefault(other, []).append(u)
        heap = [(first[u], u.number, u) for u in units if not waiting[u]]
        heapq.heapify(heap)
        done = []
        while heap:
            _, _, unit = heapq.heappop(heap)
            done.append(unit)
            for other in after.get(unit, ()):
                waiting[other] -= 1
                if not waiting[other]:
                    heapq.heappush(heap, (first[other], other.number, other))
        if len(done) != len(units):
            raise AssertionError("units wait for each other")
        return done


def aligned(shape, operands):
    """The axes of a result of this shape, given shape and axes of operands that broadcast.

    None for a dimension that no operand names; no result if they contradict each other.
    """
    found = [None] * len(shape)
    for own, axes in operands:
        lead = len(shape) - len(own)
        for i, axis in enumerate(axes):
            if axis is None:
                continue
            if found[lead + i] not in (None, axis):
                return None
            found[lead + i] = axis
    named = [a for a in found if a is not None]
    return found if len(set(named)) == len(named) else None


def root_of(buffer):
    """The buffer that is no view, of which a buffer is a view."""
    while type(buffer.instruction) is View:
        buffer = buffer.instruction.viewed
    return buffer
