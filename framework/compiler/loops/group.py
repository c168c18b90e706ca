"""`Group`: instructions that one loop nest can compute, and the axes of their values.

The values of a group are functions of its axes. Without reductions, each value depends
on all axes, or on none. With reductions, over the axes ``reduced``, a value may also
depend on just the other axes: softmax, whose maximum and sum depend on the row, is a
group, and so is batch normalization, whose moments depend on the channel. Other sums
are *totals*: each block of the nest computes a partial sum, and only instructions
outside the group read the total.
"""

import functools
import math

from ..program.instructions.array_instructions import (
    BoundedRead,
    Index,
    Map,
    Reduce,
    View,
)
from .accesses import relabeled
from .statements import Axis

SHORT = 64  # entries: some vectors
SUMS = 4096  # entries of all totals of a group, which each block has on its stack


class Group:
    """Instructions that one loop nest can compute, in program order, with their axes.

    ``members`` are the instructions. ``axes_of`` maps each value to a tuple with the
    axis of each dimension, None where it is constant; ``inner`` has the same for the
    operand of each reduction. ``reduced`` are the axes of the reductions whose results
    the group itself reads, or None; ``spread`` the axes along which totals have
    entries. ``names`` yields names for axes. Without ``has_totals``, as for threads,
    which compute values one by one, there are no totals, and a value may depend on any
    subset of the axes. ``limits``: the `Limits` of the program.
    """

    def __init__(self, names, limits, has_totals=True):
        self.names, self.limits, self.has_totals = names, limits, has_totals
        self.members, self.axes_of, self.inner = [], {}, {}
        self.axes, self.reduced = (), None
        self.totals, self.spread = set(), frozenset()

    @property
    def outer(self):
        """The axes that are not reduced."""
        return tuple([a for a in self.axes if a not in (self.reduced or ())])

    # --- adding instructions

    def start(self, instruction, is_read_back):
        """Add the first instruction."""
        (out,) = instruction.outputs
        is_sum = type(instruction) is Reduce
        shape = instruction.operands[0].shape if is_sum else out.shape
        axes = tuple([None if n == 1 else self._axis(n) for n in shape])
        self.axes = tuple([a for a in axes if a is not None])
        if is_sum:
            self._reduce(instruction, axes, is_read_back)
        else:
            self.axes_of[out] = axes
        self.members.append(instruction)

    def join(self, instruction, own, is_read_back):
        """Add an instruction that reads values of the group; return success.

        ``own`` are its operands that the group computes. ``is_read_back(reduction)``
        returns whether values as large as its operand depend on its result.
        """
        known = {a: self.axes_in(a) for a in own}
        if None in known.values() or self._reads_own_value(instruction):
            return False
        if not _may_share_loops([*self.members, instruction]):
            return False
        if type(instruction) is Reduce:
            (axes,) = known.values()
            joined = self._reduce(instruction, axes, is_read_back)
        else:
            joined = self._map(instruction, known)
        if joined:
            self.members.append(instruction)
        return joined

    def _reads_own_value(self, instruction):
        """Return whether a bounded read needs a value of the group as an array."""
        is_bounded = type(instruction) is BoundedRead
        return is_bounded and root_of(instruction.operands[0]) in self.axes_of

    def add_total(self, reduction, is_read_back):
        """Add a sum of an array that a map of the group reads whole; return success.

        Nothing else changes for the group: it sums over its reduced axes, or computes
        totals.
        """
        (operand,) = reduction.operands
        if is_read_back(reduction) or not self.totals and self.reduced is None:
            return False
        if not _may_share_loops([*self.members, reduction]):
            return False
        for each in self.members:
            if isinstance(each, Map) and operand in each.operands:
                (out,) = each.outputs
                axes = self.axes_of[out]
                summed, own = _axes_of_sum(axes, reduction.axes)
                if out.shape != operand.shape or own != frozenset(self.axes):
                    continue
                if summed != self.reduced and not (own - summed) <= self.spread:
                    continue
                if self._reduce(reduction, axes, is_read_back):
                    self.members.append(reduction)
                    return True
        return False

    def _map(self, instruction, known):
        (out,) = instruction.outputs
        axes = _aligned(out.shape, [(a.shape, axes) for a, axes in known.items()])
        if axes is None:
            return False
        new = []
        for i, n in enumerate(out.shape):
            if n == 1 or axes[i] is not None:
                continue
            fitting = [a for a in self.reduced or () if a.extent == n and a not in axes]
            axes[i] = min(fitting, key=lambda a: a.name) if fitting else self._axis(n)
            new += [] if fitting else [axes[i]]
        if new:  # what is there belongs to the outer axes, and is read along new ones
            every = (*self.axes, *new)
            reduced = frozenset(new) if self.axes and self.has_totals else None
            if self.reduced is not None or self.totals:
                return False
            if not self._allow(self.axes_of.values(), every, reduced):
                return False
            self.axes, self.reduced = every, reduced
        if not self._allow([axes], self.axes, self.reduced):
            return False
        self.axes_of[out] = tuple(axes)
        return True

    def _reduce(self, instruction, axes, is_read_back):
        """Add a reduction of a value with these axes."""
        (out,), gone = instruction.outputs, instruction.axes
        shape = instruction.operands[0].shape
        if any([axis is None and n != 1 for axis, n in zip(axes, shape)]):
            return False
        summed, own = _axes_of_sum(axes, gone)
        if summed and not (own == frozenset(self.axes) and summed == self.reduced):
            size = math.prod([a.extent for a in own])
            is_large = summed == own and size > self.limits.small_sum
            if is_read_back(instruction) and not is_large:
                done = self._set_reduced(own, summed) or self._add_total(
                    out, own, summed
                )
            else:
                done = self._add_total(out, own, summed) or self._set_reduced(
                    own, summed
                )
            if not done:
                return False
        self.inner[instruction] = axes
        kept = [None if i in gone else a for i, a in enumerate(axes)]
        if not instruction.keepdims:
            kept = [a for i, a in enumerate(axes) if i not in gone]
        self.axes_of[out] = tuple(kept)
        return True

    def _set_reduced(self, own, summed):
        """Make these the axes that passes reduce over, if none are set and it is possible."""
        rest = frozenset(self.axes) - summed - self.spread
        if own != frozenset(self.axes) or self.reduced is not None:
            return False
        if not self._allow(self._read_here(), self.axes, summed):
            return False
        if self.spread and not rest:
            return False
        self.reduced = summed
        return True

    def _add_total(self, out, own, summed):
        """Let each block compute a partial sum, if there is an axis to split into blocks."""
        if not self.has_totals:
            return False
        kept = own - summed
        if kept:
            size = math.prod([a.extent for a in kept])
            size += sum([v.size for v in self.totals])
            rest = frozenset(self.axes) - (self.reduced or frozenset())
            if own != frozenset(self.axes) or size > SUMS:
                return False
            if not rest - self.spread - kept:
                return False
        self.totals.add(out)
        self.spread |= kept
        return True

    def _axis(self, n):
        return Axis(next(self.names), n)

    # --- axes of values

    def axes_in(self, buffer):
        """Return the axes of the dimensions of a buffer, None if the group can't read it."""
        root = root_of(buffer)
        if root not in self.axes_of or root in self.totals:
            return None
        views = []
        while buffer is not root:
            views.append(buffer.instruction)
            buffer = buffer.instruction.viewed
        axes = self.axes_of[root]
        for view in reversed(views):
            axes = relabeled(view, axes)
            if axes is None:
                return None
        return axes

    def _read_here(self):
        return [axes for v, axes in self.axes_of.items() if v not in self.totals]

    def _allow(self, kinds, every, reduced):
        """Return whether values may depend on each of these sets of axes."""
        if not self.has_totals:
            return True
        every = frozenset(every)
        allowed = {frozenset(), every}
        if reduced is not None:
            allowed.add(every - reduced)
        return {frozenset(axes) - {None} for axes in kinds} <= allowed

    # --- two groups as one

    def merge(self, other, instruction):
        """Return a group with the members of both, or None if they cannot be merged.

        ``instruction``, a member of this group, reads values of the other one: it
        determines how the axes of the two correspond.
        """
        renamed = self._renamed(other, instruction)
        if renamed is None:
            return None

        def moved(axes):
            return tuple([None if a is None else renamed[a] for a in axes])

        both = Group(self.names, self.limits, self.has_totals)
        extra = [a for a in other.axes if renamed[a] is a]
        both.axes = (*self.axes, *extra)
        others = None if other.reduced is None else frozenset(moved(other.reduced))
        if None not in (self.reduced, others) and self.reduced != others:
            return None
        both.reduced = self.reduced if others is None else others
        if extra and self.axes and both.reduced is None and self.has_totals:
            both.reduced = frozenset(extra)
        both.axes_of = self.axes_of | {v: moved(x) for v, x in other.axes_of.items()}
        both.inner = self.inner | {i: moved(x) for i, x in other.inner.items()}
        both.totals = self.totals | other.totals
        both.spread = self.spread | frozenset(moved(other.spread))
        both.members = [*self.members, *other.members]
        return both if both._is_sound() else None

    def _renamed(self, other, instruction):
        """Map each axis of another group to an axis of this one, or to itself."""
        (out,) = instruction.outputs
        own, renamed = self.axes_of[out], {}
        for a in instruction.operands:
            if root_of(a) not in other.axes_of:
                continue
            axes = other.axes_in(a)
            if axes is None or type(instruction) is Reduce:
                return None
            for axis, target in zip(axes, own[len(own) - len(axes) :]):
                if axis is None:
                    continue
                if target is None or renamed.setdefault(axis, target) is not target:
                    return None
        taken = set(renamed.values())
        if len(taken) != len(renamed):
            return None
        for axis in other.axes:
            if axis in renamed:
                continue
            candidates = self.axes if self.reduced is None else self.reduced
            fitting = [
                a
                for a in self.axes
                if a in candidates and a.extent == axis.extent and a not in taken
            ]
            summed = other.reduced is not None and axis in other.reduced
            renamed[axis] = fitting[0] if summed and fitting else axis
            taken.add(renamed[axis])
        return renamed

    def _is_sound(self):
        """Return whether this group satisfies all invariants of a group."""
        every, reduced = frozenset(self.axes), self.reduced or frozenset()
        if not self._allow(self._read_here(), every, self.reduced):
            return False
        if not _may_share_loops(self.members):
            return False
        if self.spread and not every - reduced - self.spread:
            return False
        if sum([v.size for v in self.totals]) > SUMS:
            return False
        for each in self.members:
            if self._reads_own_value(each):
                return False
            known = {}
            for a in each.operands:
                if root_of(a) in self.axes_of:
                    known[a] = self.axes_in(a)
                    if known[a] is None:
                        return False
            is_sum = type(each) is Reduce
            if is_sum and not self._sums_soundly(each, every):
                return False
            shape = each.operands[0].shape if is_sum else each.outputs[0].shape
            own = self.inner[each] if is_sum else self.axes_of[each.outputs[0]]
            axes = _aligned(shape, [(a.shape, axes) for a, axes in known.items()])
            if axes is None:
                return False
            if any([f not in (None, a) for f, a in zip(axes, own)]):
                return False
        return True

    def _sums_soundly(self, reduce, every):
        (out,) = reduce.outputs
        summed, own = _axes_of_sum(self.inner[reduce], reduce.axes)
        if out in self.totals:
            return summed == own or own == every
        return not summed or (own == every and summed == self.reduced)


def _may_share_loops(members):
    """Return whether instructions are fast in the same loops, which bounds may split.

    Loops over a few channels that are joined fill no vectors: there, what follows runs
    over the whole array in loops of its own.
    """
    reads = [each for each in members if type(each) is BoundedRead]
    nodes = {id(each.node) for each in members} if reads else ()
    return len(nodes) < 2 or all(map(has_long_parts, reads))


def has_long_parts(read):
    """Return whether the loops that are split at the bounds of a read fill vectors."""
    (source, _), (out,) = read.operands, read.outputs
    return _shortest_part(read.keywords["index"], source.shape, out.shape) >= SHORT


@functools.lru_cache(1 << 10)
def _shortest_part(index, source, shape):
    """Return the least number of neighbours in memory that have the same bounds.

    ``index`` and ``shape`` are those of a `BoundedRead` of an array of shape ``source``.
    """
    behind = 1
    for own, size, n in zip(index[::-1], source[::-1], shape[::-1], strict=True):
        indices, _, _ = Index(*own).positions(size, n)
        parts = indices.start, len(indices), n - (indices.stop if indices else 0)
        if len(indices) < n:
            least = min([part for part in parts if part > 0], default=n)
            return behind * (1 if indices.step > 1 else least)
        behind *= n
    return behind


def _axes_of_sum(axes, gone):
    """Return the axes that a reduction sums over, and all axes of its operand."""
    return frozenset([axes[i] for i in gone]) - {None}, frozenset(axes) - {None}


def _aligned(shape, operands):
    """Return the axes of a result, given shapes and axes of operands that broadcast.

    A dimension that no operand names is None; the result is None if operands conflict.
    """
    axes_found = [None] * len(shape)
    for own, axes in operands:
        lead = len(shape) - len(own)
        for i, axis in enumerate(axes, lead):
            if axis is None:
                continue
            if axes_found[i] not in (None, axis):
                return None
            axes_found[i] = axis
    named = [a for a in axes_found if a is not None]
    return axes_found if len(set(named)) == len(named) else None


def root_of(buffer):
    """Return the base buffer of a chain of views."""
    while type(buffer.instruction) is View:
        buffer = buffer.instruction.viewed
    return buffer
