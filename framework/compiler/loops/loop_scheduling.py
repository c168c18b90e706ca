"""Place a group in loops, as a `LoopNest`: its strips, blocks and local arrays.

A value that a later pass needs is recomputed if that is cheap, read back if it was
stored, and otherwise kept in a `Local`.

The innermost loop is the one along which most arrays are contiguous. If it is an outer
axis (a sum over the rows of a matrix), the nest processes a strip of it at a time: its
entries are *lanes*, and a local array has the values of the outer axes for each of
them. Sums over short groups of neighbours, side by side, are first computed per lane
and then added up within each group.
"""

import functools
import itertools
import math

from ..program.program import Buffer, Kind
from .loop_nest import LoopNest
from .schedule import EXPENSIVE, Schedule, Scope, cost_of
from .statements import (
    Access,
    Accumulate,
    Axis,
    Load,
    Local,
    Loop,
    Reset,
    Scalar,
    Span,
    Store,
    along,
    size_of,
)
from .value_graph import ValueGraph

SHORT = 16  # entries of rows that fill no vector
PARTS = 16  # the most blocks that each have their part of many sums, to be added up
STACK = 1 << 19  # bytes of local arrays, which a block has on the stack of its thread


def schedule_loops(group, stored, layouts=None, blocks=None):
    """Return the `LoopNest` of a group; ``stored`` are values that others read.

    ``layouts`` has the `Layout` of the stored values that are not in C order.
    ``blocks`` is the number of blocks, each with an equal range of the outermost axes;
    by default it is chosen so that threads share them. Returns None if there are no
    such ranges.
    """
    for strip in group.limits.strips:
        schedule = LoopSchedule(group, stored, layouts or {}, strip)
        if blocks is not None and not schedule.cut(blocks):
            return None
        nest = schedule.nest()
        if sum([local.size * local.dtype.itemsize for local in nest.locals]) <= STACK:
            break
    nest.in_blocks = functools.partial(schedule_loops, group, stored, layouts)
    return nest


class LoopSchedule(Schedule):
    """The order of the loops of a group, and the statements of its `nest`.

    ``lanes`` is the outer axis of which a strip is processed at a time, or None;
    ``groups`` is the same if sums over groups of lanes follow. ``totals`` are the sums
    of which each block computes a part, and ``spread`` the axes along which they have
    entries. ``grid`` has the axes that blocks are cut from, with the width of their
    strips.
    """

    def __init__(self, group, stored, layouts, strip):
        graph = ValueGraph(group, stored, layouts)
        least = group.limits.strip
        self.groups, self.group_size = graph.join_groups(least, strip)
        # Without reductions there is one pass over everything.
        super().__init__(graph, graph.reduced or frozenset(graph.outer))
        self.stored, self.operands, self.strip = stored, graph.operands, strip
        self.locals, self.numbers, self.grid = [], itertools.count(1), ()
        summed = None, self.reduced
        totals = [n for n in self.nodes.values() if n.summed not in summed]
        self.totals = [n for n in totals if n.buffer in self.stores]
        self.spread = frozenset().union(*[n.axes for n in totals])
        self.choose_order()

    def cost_to_read(self, node, level):
        """Return the cost of reading a value: 1 if it is kept between two passes."""
        return 1 if node.level % 2 else node.cost

    # --- order of the axes

    def choose_order(self):
        """Order the axes, and choose the innermost one and the lanes."""
        every = [*self.outer, *self.passed]
        # Blocks are cut from the first axis: never from one along which each adds to all
        # sums.
        self.outer.sort(key=lambda axis: (axis in self.spread, -self.stride(axis)))
        self.passed.sort(key=self.stride, reverse=True)
        innermost = self.innermost(every)
        self.lanes = self.lanes_along(innermost)
        if self.lanes is not None:
            self.outer.remove(self.lanes)
            is_first = not set(self.outer) - self.spread
            self.outer.insert(0 if is_first else len(self.outer), self.lanes)
        elif innermost in self.passed:
            _move_last(self.passed, innermost)
        elif not self.reduced and self.outer:
            is_cut = self.spread and innermost is self.outer[0]
            if not is_cut:  # into blocks: there may be no other axis for them
                _move_last(self.outer, innermost)

    def innermost(self, axes):
        """Return the axis along which vectors lie; None if there are no axes."""
        best = max(axes, key=self.contiguity, default=None)
        if best in self.reduced and best.extent < SHORT:
            free = [a for a in self.outer if a not in self.spread]
            long = [a for a in free if a.extent >= self.limits.strip]
            return max(long, key=self.contiguity, default=best)  # rows side by side
        return best

    def lanes_along(self, innermost):
        """Return the outer axis whose entries are lanes, or None."""
        if self.groups is not None:
            return self.groups
        is_outer = self.reduced and innermost in self.outer
        return innermost if is_outer and innermost not in self.spread else None

    # --- blocks

    def cut(self, blocks):
        """Split the outermost axes into this many equal ranges; return success."""
        grid = []
        for axis in self.outer:
            strips = math.gcd(blocks, axis.extent)
            if blocks == 1 or axis is self.lanes or axis in self.spread:
                break
            if strips not in (blocks, axis.extent):
                return False
            grid.append((axis, axis.extent // strips))
            blocks //= strips
        self.grid = tuple(grid)
        return blocks == 1

    def make_blocks(self):
        """Split the outermost loops into blocks."""
        extent, each = size_of(self.passed), self.work_of_entry()
        if not self.grid and self.outer:
            self.grid = ((self.outer[0], self.width_of_blocks(extent, each)),)
        work = size_of(self.outer) * extent * each
        self.block_count = math.prod([-(-a.extent // width) for a, width in self.grid])
        self.block_work = -(-work // self.block_count)
        if self.groups is not None:
            self.lane_width = self.lanes.extent
        elif self.lanes is not None:
            most = min(self.most_lanes(extent), self.lanes.extent)
            self.lane_width = dict(self.grid).get(self.lanes, most)

    def work_of_entry(self):
        """Return about how many operations the values of one entry need.

        Of the loads of joined arrays, each entry is within the bounds of one.
        """
        every = [n for n in self.values if n.function != "select"]
        every = [n for n in every if n.access is None or not n.access.bounds]
        return max(1, sum([cost_of(node.function) for node in every]))

    def width_of_blocks(self, extent, each):
        """Return the width of strips of the outermost axis worth running in parallel."""
        first, *others = self.outer
        least, work = self.limits.strip, self.limits.block_work
        width = max(1, work // max(1, size_of(others) * extent * each))
        if first is self.lanes or (not self.reduced and not others):
            width = -(-width // least) * least  # whole vectors
        if first is self.lanes:
            width = min(width, self.most_lanes(extent))
        if any([node.axes for node in self.totals]):
            width = max(width, -(-first.extent // PARTS))
        return first.extent if first is self.groups else min(width, first.extent)

    def most_lanes(self, extent):
        """Return the maximal lanes of a strip whose passes have ``extent`` entries each."""
        least, room = self.limits.strip, self.limits.local_entries // max(1, extent)
        return min(self.strip, max(least, room // least * least))

    # --- the nest

    def nest(self):
        """Return the `LoopNest`."""
        self.make_blocks()
        blocks = Axis("block", self.block_count)
        prologue, after, finish, scratch = [], [], [], []
        for node in self.totals:
            scratch.append(self.add_up(node, blocks, prologue, after, finish))
        body = prologue + self.wrap_outer(self.outer_body()) + after
        self.store_ownerless(finish)
        return LoopNest(
            self.group.members,
            [*self.operands, *scratch],
            self.stored,
            blocks,
            self.grid,
            body,
            finish,
            self.locals,
            self.block_work,
        )

    def store_ownerless(self, finish):
        """Store the numbers that no block owns; they use no local arrays of blocks."""
        self.memory = {}
        scope = Scope(self, finish)
        for node in self.nodes.values():
            if self.is_ownerless(node):
                finish.append(Store(self.stores[node.buffer], scope.value(node)))

    def is_ownerless(self, node):
        """Return whether a stored value is one number, while blocks have outer axes."""
        is_stored = node.buffer in self.stores and node.summed is None
        return bool(is_stored and self.outer and not node.axes)

    def add_up(self, node, blocks, prologue, after, finish):
        """Write how each block computes its partial sum, and how these are added up.

        Returns the memory of the partial sums.
        """
        store = self.stores[node.buffer]
        axes = sorted(node.axes, key=store.stride, reverse=True)
        self.memory[node] = own = self.keep(node, axes)
        prologue += along(axes, [Reset(own, node.function)])
        return self.add_parts(node, axes, own, store, blocks, after, finish)

    def add_parts(self, node, axes, own, store, blocks, after, finish):
        """Write how each block stores its partial sum, and how these are added up."""
        size = size_of(axes)
        parts = Buffer((blocks.extent, size), node.dtype, Kind.SCRATCH)
        part_of_block = Access(parts, 0, ((blocks, size), *own.strides))
        sum_ = self.keep(node, axes)
        value, part, result = [Scalar(self.name(node), node.dtype) for _ in range(3)]
        after += along(axes, [Load(value, own), Store(part_of_block, value)])
        finish += along(axes, [Reset(sum_, node.function)])
        add = [Load(part, part_of_block), Accumulate(sum_, node.function, part)]
        finish += along([blocks, *axes], add)
        finish += along(axes, [Load(result, sum_), Store(store, result)])
        return parts

    def wrap_outer(self, inner):
        """Put the loops over the outer axes around a body."""
        body, widths = inner, dict(self.grid)
        for axis in reversed(self.outer):
            if axis is self.lanes:
                if axis is not self.groups and axis not in widths:
                    body = [Loop(axis, Span.STRIPS, self.lane_width, body)]
            elif axis in widths:
                body = [Loop(axis, Span.STRIP, widths[axis], body)]
            else:
                body = along([axis], body)
        return body

    def outer_body(self):
        """Return the statements for one index, or one strip, of the outer axes."""
        body = []
        for level in self.levels():
            body += self.between(level) if level % 2 else self.one_pass(level)
        return body

    def between(self, level):
        """Return the statements for the values of the outer axes between two passes."""
        body = []
        scope = Scope(self, body)
        for node in self.nodes.values():
            if node.level != level:
                continue
            if node in self.totals:
                body.append(self.accumulate(node, scope))
                continue
            is_stored = node.buffer in self.stores and not self.is_ownerless(node)
            is_read = self.is_read_later(node)
            if not is_stored and not is_read:
                continue
            value = scope.value(node)
            if is_stored:
                body.append(Store(self.stores[node.buffer], value))
            if is_read and node.summed is None:
                self.memory[node] = self.keep_between(node)
                body.append(Store(self.memory[node], value))
        return self.along_lanes(body) if body else []

    def one_pass(self, level):
        """Return the statements of a pass: its sums, and the values that it stores."""
        sums, stored, body, inside = self.sums_of(level), self.stored_in(level), [], []
        for node in sums:
            self.memory[node] = self.keep(node, self.lane_axes)
            body += self.along_lanes([Reset(self.memory[node], node.function)])
        scope = Scope(self, inside)
        totals = [n for n in self.totals if self.level_of_work(n) == level]
        for node in totals + sums:
            inside.append(self.accumulate(node, scope))
        for node in stored:
            inside.append(Store(self.stores[node.buffer], scope.value(node)))
        if level != self.passes[-1]:
            self.keep_for_later(scope, level)
        self.memory.update({node: self.stores[node.buffer] for node in stored})
        body += self.along_passed(self.along_lanes(inside))
        if self.groups is not None:
            body += [self.within_groups(node) for node in sums]
        return body

    def accumulate(self, node, scope):
        """Return the statement that adds the terms of a sum."""
        value = scope.value(node.args[0])
        return Accumulate(self.memory[node], node.function, value)

    def within_groups(self, node):
        """Add up a sum within each group of lanes, and broadcast it to the group."""
        size, names = self.group_size, self.group.names
        group = Axis(next(names), self.groups.extent // size)
        member = Axis(next(names), size)
        each = self.memory[node]._replace(strides=((group, size), (member, 1)))
        sum_ = self.keep(node, ())
        part, result = [Scalar(self.name(node), node.dtype) for _ in range(2)]
        add = [Load(part, each), Accumulate(sum_, node.function, part)]
        body = [Reset(sum_, node.function), *along([member], add)]
        body += [Load(result, sum_), *along([member], [Store(each, result)])]
        return Loop(group, Span.WHOLE, 0, body)

    # --- loops inside of those over the outer axes

    @property
    def lane_axes(self):
        """The axis of the lanes, if there are lanes."""
        return () if self.lanes is None else (self.lanes,)

    def along_passed(self, body):
        """Put loops over the reduced axes around a body."""
        return along(self.passed, body)

    def along_lanes(self, body):
        """Put a loop over the lanes around a body, if there are lanes."""
        if self.lanes is None:
            return body
        if self.lanes is self.groups:
            return along([self.lanes], body)
        return [Loop(self.lanes, Span.STRIP, self.lane_width, body)]

    # --- local arrays

    def keep_between(self, node):
        """Return an array for a value computed between two passes."""
        return self.keep(node, self.lane_axes)

    def keep_for_later(self, scope, level):
        """Keep values of this pass that later ones read and that are expensive to compute."""
        axes = (*self.passed, *self.lane_axes)
        if self.entries_of(axes) <= self.limits.local_entries:
            for node in self.expensive_after(level, scope.known):
                self.memory[node] = self.keep(node, axes)
                scope.body.append(Store(self.memory[node], scope.known[node]))

    def expensive_after(self, level, known):
        """Return the expensive values that passes after a level would compute again.

        ``known`` has the values that the pass of this level has computed.
        """
        waiting, seen, expensive = [*self.computed_after(level)][::-1], set(), []
        while waiting:
            node = waiting.pop()
            if node.level % 2 or node in seen:
                continue
            seen.add(node)
            is_stored = node.buffer in self.stores
            if node in known if is_stored else node in self.memory:
                continue  # later passes read it back
            is_here = node in known and not is_stored and node.function is not None
            if is_here and node.cost >= EXPENSIVE:
                expensive.append(node)
            else:
                waiting += node.inputs[::-1]
        return expensive

    def computed_after(self, level):
        """Yield the values that later passes store, and the terms of their sums."""
        for node in self.nodes.values():
            if node.summed is None and node.buffer not in self.stores:
                continue
            work = self.level_of_work(node)
            if work > level and work % 2 == 0:
                yield from [node] if node.summed is None else node.inputs

    def keep(self, node, axes):
        """Return a local array for the values of a node along these axes."""
        local = Local(self.name(node), node.dtype, self.entries_of(axes))
        self.locals.append(local)
        pairs = [(a, self.entries_of(axes[i + 1 :])) for i, a in enumerate(axes)]
        return Access(local, 0, tuple(pairs))

    def entries_of(self, axes):
        """Return the entries of a local array: for axes, of which lanes are a strip."""
        sizes = [self.lane_width if a is self.lanes else a.extent for a in axes]
        return math.prod(sizes)

    def name(self, node, access=None):
        """Return a name for the value of a node: the name of the op, and a number."""
        maker = None if node.buffer is None else node.buffer.instruction
        stem = "value" if maker is None else maker.node.name
        return f"{stem}.{next(self.numbers)}"


def _move_last(axes, axis):
    axes.remove(axis)
    axes.append(axis)
