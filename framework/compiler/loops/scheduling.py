"""Schedule a group as a `LoopNest`: loop order, and values kept between loops.

For each index of the outer axes the nest makes *passes* over the reduced axes. A pass
computes reductions whose operands do not depend on each other's results; values that
depend on the outer axes alone are computed between two passes. A value that a later
pass needs is recomputed if that is cheap, read back if it was stored, and otherwise
kept in a `Local`.

The innermost loop is the one along which most arrays are contiguous. If it is an outer
axis (a sum over the rows of a matrix), the nest processes a strip of it at a time, and
keeps the values of the outer axes for all entries of the strip. Sums over short groups
of neighbours, side by side, are first computed per lane and then added up within each
group.
"""

import functools
import itertools
import math

import numpy as np

from ..program.program import Buffer, Kind
from .accesses import contiguous_entries, longest_stride
from .loop_nest import LoopNest
from .statements import (
    Access,
    Accumulate,
    Axis,
    Compute,
    Load,
    Local,
    Loop,
    Reset,
    Scalar,
    Span,
    Store,
)
from .value_graph import Value, ValueGraph

__all__ = ["Schedule", "scheduled"]

# Functions that cost as much as a load, in units of which others take `DEAR`.
CHEAP = frozenset(
    """add subtract multiply negative positive maximum minimum fmax fmin absolute square
    greater greater_equal less less_equal equal not_equal logical_and logical_or logical_not
    logical_xor bitwise_and bitwise_or bitwise_xor invert positive_bits kept_bits cast copy
    where isnan isfinite isinf signbit copysign sign conjugate fabs rint floor ceil
    trunc""".split()
)
DEAR = 8
SHORT = 16  # entries of rows that fill no vector
PARTS = 16  # the most blocks that each have their part of many sums
STACK = 1 << 19  # bytes of local arrays


def scheduled(group, stored, layouts=None, blocks=None):
    """Return the `LoopNest` of a group; ``stored`` are values that others read.

    ``layouts`` has the `Layout` of the stored values that are not in C order.
    ``blocks`` is the number of blocks, each with an equal range of the outermost axes;
    by default it is chosen so that threads share them. Returns None if there are no
    such ranges.
    """
    for strip in group.limits.strips:
        schedule = Schedule(group, stored, layouts or {}, strip)
        if blocks is not None and not schedule.cut(blocks):
            return None
        nest = schedule.nest()
        if sum([local.size * local.dtype.itemsize for local in nest.locals]) <= STACK:
            break
    nest.in_blocks = functools.partial(scheduled, group, stored, layouts)
    return nest


class Schedule:
    """The order of the loops of a group, and the statements of its `nest`."""

    def __init__(self, group, stored, layouts, strip):
        self.group, self.stored, self.strip = group, stored, strip
        self.limits = group.limits
        graph = ValueGraph(group, stored, layouts)
        self.nodes, self.loads, self.operands = graph.nodes, graph.loads, graph.operands
        self.groups, self.group_size = graph.join_groups(self.limits.strip, strip)
        self.reduced, self.outer = graph.reduced, graph.outer
        self.stores, self.walk = graph.stores, graph.walk
        self.locals, self.numbers = [], itertools.count(1)
        self.grid = ()  # axes that blocks are cut from, and the width of their strips
        self.choose_order(graph.passed)
        self.assign_times()

    def choose_order(self, passed):
        """Order the axes, and choose the innermost one."""
        accesses = [node.access for node in self.loads.values()] + [
            *self.stores.values()
        ]
        whole = [*self.outer, *passed]

        def weight(axis):
            return contiguous_entries(accesses, axis), axis.extent

        def span(axis):
            return longest_stride(accesses, axis)

        self.spread = spread = frozenset().union(
            *[
                n.axes
                for n in self.nodes.values()
                if n.summed not in (None, self.reduced)
            ]
        )  # axes of sums to which every block adds: blocks are cut from another
        self.outer.sort(key=lambda axis: (axis in spread, -span(axis)))
        self.passed = sorted(passed, key=span, reverse=True)
        self.vector = max(whole, key=weight, default=None)
        least = self.limits.strip
        long = [a for a in self.outer if a not in spread and a.extent >= least]
        if self.vector in self.reduced and self.vector.extent < SHORT and long:
            self.vector = max(long, key=weight)  # many short rows, side by side
        if not self.reduced:  # one pass over everything
            first = self.outer[:1]
            if (
                self.outer
                and self.outer[-1] is not self.vector
                and (not spread or first != [self.vector])
            ):
                self.outer.remove(self.vector)
                self.outer.append(self.vector)
        self.lanes = self.vector if self.reduced and self.vector in self.outer else None
        if self.lanes in spread:
            self.lanes = None
        if self.groups is not None:
            self.vector = self.lanes = self.groups
        if self.lanes is None and self.passed and self.vector in self.reduced:
            self.passed.remove(self.vector)
            self.passed.append(self.vector)
        if self.lanes is not None:
            self.outer.remove(self.lanes)
            # Blocks are never cut from an axis along which each adds to all sums.
            is_first = not set(self.outer) - spread
            self.outer.insert(0 if is_first else len(self.outer), self.lanes)

    # --- the passes

    def assign_times(self):
        """Number the passes: passes have even times, the code between them odd times.

        A value has the time of the first pass in which it can be computed; -1 is before
        the first pass.
        """
        passes = set()
        for node in [*self.loads.values(), *self.walk()]:
            times = [arg.time for arg in node.args if type(arg) is Value]
            dear = 1 if node.function is None or node.function in CHEAP else DEAR
            node.cost = dear + sum([_cost_to_read(a) for a in node.args])
            if node.summed is not None:
                node.cost = 1
                (arg,) = node.args
                time = arg.time if type(arg) is Value else -1
                if node.summed == self.reduced and self.reduced:
                    node.time = _even(time) + 1  # known after the pass
                    passes.add(node.time - 1)
                else:
                    node.time = time  # a sum over all entries: nobody reads it here
                continue
            latest = max(times, default=-1)
            inside = (
                bool(node.axes & self.reduced) or not self.reduced and bool(node.axes)
            )
            node.time = _even(latest) if inside else _odd(latest)
        evens = [n.time for n in self.nodes.values() if n.time % 2 == 0]
        if evens and max(evens) > max(passes, default=-1):
            passes.add(max(evens))
        self.passes = sorted(passes)

    def pass_of(self, time):
        """Return the first pass at or after an even time."""
        return next(t for t in self.passes if t >= time)

    # --- statements

    def nest(self):
        group = self.group
        self.kept = {}  # node -> Local, for those made before and read later
        self.accumulators = {}
        self.at_end = []
        self.filled = set()  # nodes whose stored value may be read back
        totals = [
            n
            for n in self.nodes.values()
            if n.summed not in (None, self.reduced) and n.buffer in self.stores
        ]
        self.spread_sums = any([node.axes for node in totals])
        extent = math.prod([a.extent for a in self.passed])
        self.make_blocks(extent, self.work_of_entry())
        prologue, after, finish, scratch = [], [], [], []
        blocks = Axis("block", self.block_count)
        for node in totals:
            scratch.append(self.add_up(node, blocks, prologue, after, finish))
        body = prologue + self.wrapped(self.outer_body(totals)) + after
        self.kept = {}
        scope = _Scope(self, finish, (), {})
        for node in self.at_end:
            finish.append(Store(self.stores[node.buffer], scope.value(node)))
        operands = [*self.operands, *scratch]
        nest = LoopNest(
            group.members,
            operands,
            self.stored,
            blocks,
            self.grid,
            body,
            finish,
            self.locals,
            self.block_work,
        )
        return nest

    def work_of_entry(self):
        """Return about how many operations the values of one entry need."""
        every = [*self.walk(), *self.loads.values()]
        is_cheap = [n.function is None or n.function in CHEAP for n in every]
        return sum([1 if cheap else DEAR for cheap in is_cheap])

    def add_up(self, node, blocks, prologue, after, finish):
        """Write how each block computes its partial sum, and how these are added up.

        Returns the memory of the partial sums.
        """
        axes = sorted(
            node.axes, key=lambda a: -dict(self.stores[node.buffer].strides)[a]
        )
        own = self.keep(node, axes)
        self.accumulators[id(node)] = own
        prologue += _along(axes, [Reset(own, node.function)])
        store = self.stores[node.buffer]
        return self.add_parts(node, axes, own, store, blocks, after, finish)

    def add_parts(self, node, axes, own, store, blocks, after, finish):
        """Write how each block stores its partial sum, and how these are added up."""
        size = math.prod([a.extent for a in axes])
        parts = Buffer((blocks.extent, size), node.dtype, Kind.SCRATCH)
        place = Access(parts, 0, ((blocks, size), *own.strides))
        sum_ = self.keep(node, axes)
        value, part, result = [Scalar(self.name(node), node.dtype) for _ in range(3)]
        after += _along(axes, [Load(value, own), Store(place, value)])
        finish += _along(axes, [Reset(sum_, node.function)])
        add = [Load(part, place), Accumulate(sum_, node.function, part)]
        finish.append(Loop(blocks, Span.WHOLE, 0, _along(axes, add)))
        finish += _along(axes, [Load(result, sum_), Store(store, result)])
        return parts

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

    def make_blocks(self, extent, each):
        """Split the outermost loops into blocks."""
        if not self.grid and self.outer:
            self.grid = ((self.outer[0], self.width_of_blocks(extent, each)),)
        strips = [-(-axis.extent // width) for axis, width in self.grid]
        work = math.prod([a.extent for a in self.outer]) * extent * each
        self.block_count = math.prod(strips)
        self.block_work = -(-work // self.block_count)
        if self.lanes is not None:
            most = min(self.most_lanes(extent), self.lanes.extent)
            self.lane_width = dict(self.grid).get(self.lanes, most)
        if self.groups is not None:
            self.lane_width = self.lanes.extent

    def width_of_blocks(self, extent, each):
        """Return the width of strips of the outermost axis worth running in parallel."""
        first, *others = self.outer
        rest = math.prod([a.extent for a in others]) * extent
        least, work = self.limits.strip, self.limits.block_work
        width = max(1, work // max(1, rest * each))
        if first is self.lanes or (not self.reduced and not others):
            width = -(-width // least) * least
        if first is self.lanes:
            width = min(width, self.most_lanes(extent))
        if self.spread_sums:
            width = max(width, -(-first.extent // PARTS))
        return first.extent if first is self.groups else min(width, first.extent)

    def most_lanes(self, extent):
        """Return the maximal lanes of a strip whose passes have ``extent`` entries each."""
        least, room = self.limits.strip, self.limits.local_entries // max(1, extent)
        return min(self.strip, max(least, room // least * least))

    def wrapped(self, inner):
        """Put the loops over the outer axes around a body."""
        body, widths = inner, dict(self.grid)
        for axis in reversed(self.outer):
            if axis is self.lanes:
                if axis is not self.groups and axis not in widths:
                    body = [Loop(axis, Span.STRIPS, self.lane_width, body)]
            elif axis in widths:
                body = [Loop(axis, Span.STRIP, widths[axis], body)]
            else:
                body = [Loop(axis, Span.WHOLE, 0, body)]
        return body

    def outer_body(self, totals):
        """Return the statements for one index, or one strip, of the outer axes."""
        body = []
        lanes = () if self.lanes is None else (self.lanes,)
        for time in self.times():
            if time % 2:
                self.between(body, time, lanes, totals)
            else:
                self.one_pass(body, time, lanes, totals)
        return body

    def times(self):
        found = set(self.passes)
        for node in self.nodes.values():
            if node.time % 2:
                found.add(node.time)
        return sorted(found)

    def between(self, body, time, lanes, totals):
        """Compute the values of the outer axes between two passes."""
        found = []
        scope = _Scope(self, found, lanes, {})
        mine = set(totals)
        for node in self.nodes.values():
            if node.time != time:
                continue
            if node in mine:
                value = scope.value(node.args[0])
                found.append(
                    Accumulate(self.accumulators[id(node)], node.function, value)
                )
                continue
            stored = node.buffer in self.stores
            if (
                stored and not node.axes and self.outer
            ):  # one number, which no block owns
                self.at_end.append(node)
                stored = False
            needed = self.read_later(node, time)
            if stored or needed:
                value = scope.value(node)
                if stored:
                    found.append(Store(self.stores[node.buffer], value))
                if needed and node.summed is None:
                    if id(node) not in self.kept:
                        self.kept[id(node)] = self.keep_between(node, lanes)
                    found.append(Store(self.kept[id(node)], value))
        if found:
            body += self.along_lanes(found)

    def keep_between(self, node, lanes):
        """Return an array for a value computed between two passes."""
        return self.keep(node, lanes)

    def read_later(self, node, time):
        """Return whether a value of the outer axes is read at another time."""
        for other in self.walk():
            if other.time != time and any([arg is node for arg in other.args]):
                return True
            if other.summed is not None and any([arg is node for arg in other.args]):
                return True
        return False

    def one_pass(self, body, time, lanes, totals):
        reductions = self.reductions_of(time)
        sums = [n for n in totals if n.time % 2 == 0 and self.pass_of(n.time) == time]
        first = self.passes.index(time)
        before = self.passes[first - 1] if first else -1
        stores = [
            n
            for n in self.nodes.values()
            if n.summed is None
            and n.time % 2 == 0
            and before < n.time <= time
            and n.buffer in self.stores
        ]
        for node in reductions:
            local = self.local(node, self.lane_width if lanes else 1)
            access = Access(local, 0, tuple([(a, 1) for a in lanes]))
            self.accumulators[id(node)] = access
            body += self.along_lanes([Reset(access, node.function)])
        inside = []
        scope = _Scope(self, inside, (*self.passed, *lanes), {}, time)
        later = [t for t in self.passes if t > time]
        for node in sums + reductions:
            value = scope.value(node.args[0])
            inside.append(Accumulate(self.accumulators[id(node)], node.function, value))
        for node in stores:
            inside.append(Store(self.stores[node.buffer], scope.value(node)))
        if later:
            self.keep_for_later(scope, inside, time, later, lanes)
        for node in stores:
            self.filled.add(id(node))
        body += self.along_passed(self.along_lanes(inside))
        if self.groups is not None:
            for node in reductions:
                body.append(self.within_groups(node))

    def reductions_of(self, time):
        """Return the reductions that a pass computes for later code."""
        found = [n for n in self.nodes.values() if n.summed and n.time == time + 1]
        return [n for n in found if n.summed == self.reduced]

    def along_passed(self, body):
        """Put loops over the reduced axes around a body."""
        return _along(self.passed, body)

    def along_lanes(self, body):
        """Put a loop over the lanes around a body, if there are lanes."""
        if self.lanes is None:
            return body
        if self.lanes is self.groups:
            return [Loop(self.lanes, Span.WHOLE, 0, body)]
        return [Loop(self.lanes, Span.STRIP, self.lane_width, body)]

    def within_groups(self, node):
        """Add up a sum within each group of lanes, and broadcast it to the group."""
        size, names = self.group_size, self.group.names
        group = Axis(next(names), self.groups.extent // size)
        member = Axis(next(names), size)
        lanes = self.accumulators[id(node)]
        each = lanes._replace(strides=((group, size), (member, 1)))
        sum_ = Access(self.local(node, 1), 0, ())
        part, result = [Scalar(self.name(node), node.dtype) for _ in range(2)]
        add = [Load(part, each), Accumulate(sum_, node.function, part)]
        body = [Reset(sum_, node.function), *_along([member], add)]
        body += [Load(result, sum_), *_along([member], [Store(each, result)])]
        return Loop(group, Span.WHOLE, 0, body)

    def keep_for_later(self, scope, inside, time, later, lanes):
        """Keep values of this pass that later ones read and that are expensive to compute."""
        extent = math.prod([a.extent for a in self.passed])
        room = extent * (self.lane_width if lanes else 1)
        has_room = room <= self.limits.local_entries
        wanted = []
        needed = set()

        def visit(node):
            if type(node) is not Value or id(node) in needed:
                return
            if node.summed is not None or node.time % 2:
                return
            needed.add(id(node))
            computed = id(node) in scope.known
            if (
                node.function is not None
                and computed
                and node.buffer not in self.stores
            ):
                if node.cost >= DEAR and has_room and id(node) not in self.kept:
                    wanted.append(node)
                    return
            if id(node) in self.kept or node.buffer in self.stores and computed:
                return
            for arg in node.args:
                visit(arg)

        for node in self.nodes.values():
            made = (
                self.pass_of(node.time)
                if node.time % 2 == 0 and node.summed is None
                else None
            )
            if (
                node.summed is not None
                and node.summed == self.reduced
                and node.time - 1 > time
            ):
                visit(node.args[0])
            elif made is not None and made > time and node.buffer in self.stores:
                visit(node)
            elif (
                node.summed is not None
                and node.summed != self.reduced
                and node.time % 2 == 0
            ):
                if self.pass_of(node.time) > time:
                    visit(node.args[0])
        for node in wanted:
            self.kept[id(node)] = access = self.keep(node, (*self.passed, *lanes))
            inside.append(Store(access, scope.known[id(node)]))

    def keep(self, node, axes):
        """Return a local array for the values of a node along these axes."""
        pairs, size = [], 1
        for axis in reversed(axes):
            pairs.append((axis, size))
            size *= self.lane_width if axis is self.lanes else axis.extent
        return Access(self.local(node, size), 0, tuple(pairs[::-1]))

    def local(self, node, size):
        found = Local(self.name(node), np.dtype(node.dtype), size)
        self.locals.append(found)
        return found

    def name(self, node):
        """Return a name for the value of a node: the name of the op, and a number."""
        made = None if node.buffer is None else node.buffer.instruction
        stem = "value" if made is None else made.node.name
        return f"{stem}.{next(self.numbers)}"


def _along(axes, body):
    """Put loops over whole axes around a body."""
    for axis in reversed(axes):
        body = [Loop(axis, Span.WHOLE, 0, body)]
    return body


class _Scope:
    """Appends the statements that compute values, each once."""

    def __init__(self, schedule, body, axes, known, time=None):
        self.schedule, self.body, self.axes, self.known = schedule, body, axes, known
        self.time = time

    def value(self, node):
        if type(node) is Scalar:
            return node
        stack = [node]
        while stack:  # graphs are deep: no recursion
            current = stack[-1]
            if id(current) in self.known:
                stack.pop()
                continue
            pending = (
                []
                if self.given(current) is not None
                else [
                    a
                    for a in current.args
                    if type(a) is Value and id(a) not in self.known
                ]
            )
            if pending:
                stack += pending
                continue
            stack.pop()
            self.known[id(current)] = self.computed(current)
        return self.known[id(node)]

    def given(self, node):
        """Return the access that holds the value of a node, or None."""
        schedule = self.schedule
        if node.access is not None:
            return node.access
        if node.summed is not None:
            return schedule.accumulators[id(node)]
        if id(node) in schedule.kept:
            return schedule.kept[id(node)]
        if id(node) in schedule.filled:
            return schedule.stores[node.buffer]
        return None

    def computed(self, node):
        schedule = self.schedule
        access = self.given(node)
        out = Scalar(schedule.name(node), node.dtype)
        if access is not None:
            self.body.append(Load(out, access))
            return out
        args = tuple([a if type(a) is Scalar else self.known[id(a)] for a in node.args])
        if node.function == "copy":
            return args[0]
        self.body.append(Compute(out, node.function, args))
        return out


def _cost_to_read(arg):
    """Return the cost of an argument in a pass: values between passes are kept."""
    if type(arg) is not Value:
        return 0
    return 1 if arg.time % 2 else arg.cost


def _even(time):
    """Return the first pass not before a time."""
    return time if time % 2 == 0 else time + 1


def _odd(time):
    return time if time % 2 else time + 1
