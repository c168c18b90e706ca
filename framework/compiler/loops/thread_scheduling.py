"""Schedule a group as `ThreadNest`s: the work of each thread, and its kernel.

As in a loop nest, *passes* run over the reduced axes, and values that depend on the
outer axes alone are computed between two passes. All members of a team compute the
latter, and the first one stores it. A value that a later pass needs is read back if it
was stored, and otherwise recomputed.

If most arrays are contiguous along a reduced axis, neighbouring threads lie along it,
else along an outer one. Where the outer axes are too few for a GPU, each pass is a
separate nest. Its teams store partial sums in memory, and a small nest adds them up.
"""

import math

import numpy as np

from ..program.program import Buffer
from .accesses import contiguous_entries, longest_stride, row_major
from .scheduling import CHEAP, DEAR
from .statements import Access, Axis, Compute, Load, Scalar, Store
from .thread_geometry import columns, parts_of, rows
from .thread_nest import made_nest
from .thread_statements import Begin, Combine, Fold, Guard, Members
from .value_graph import ValueGraph

__all__ = ["thread_nests"]

AGAIN = 2 * DEAR  # the cost of values that each thread may compute for itself
NEIGHBOURS = 32  # outer indices from which on neighbouring threads lie along them


def thread_nests(group, stored, layouts=None):
    """Return the nests of a group without totals; ``stored`` are values that others read."""
    return _Schedule(group, stored, layouts or {}).nests()


class _Schedule:
    """Values with their times, and the nests that compute them.

    ``memory``: the `Access` of values that an earlier nest has stored, and ``readers``:
    the values that read one, by id of the node; ``done``: the buffers whose values are
    already computed by a nest.
    """

    def __init__(self, group, stored, layouts):
        self.group, self.limits = group, group.limits
        graph = ValueGraph(group, stored, layouts)
        self.nodes, self.loads, self.stores = graph.nodes, graph.loads, graph.stores
        self.values = [*self.loads.values(), *graph.walk()]
        self.memory, self.done, self.readers = {}, set(), {}
        for node in self.values:
            for a in node.inputs:
                self.readers.setdefault(id(a), []).append(node)
        self.assign_times()
        self.choose_order(graph.outer, graph.passed)

    # --- times and order

    def assign_times(self):
        """Number the passes: passes have even times, the code between them odd times.

        A value has the first time at which it can be computed; -1 is before all passes.
        """
        reduced = frozenset().union(*[n.summed or () for n in self.values])
        if not reduced:  # no pass: each index of all axes for itself
            reduced = None
        self.reduced, passes = reduced, set()
        for node in self.values:
            latest = max([a.time for a in node.inputs], default=-1)
            is_inside = reduced is not None and bool(node.axes & reduced)
            if node.summed is not None:
                passes.add(latest + latest % 2)
                node.time = latest + latest % 2 + 1
            else:
                node.time = latest + (latest % 2 != (not is_inside))
            own = 1 if node.function is None or node.function in CHEAP else DEAR
            node.cost = own + sum([a.cost for a in node.inputs if a.time == node.time])
        inside = [n.time for n in self.values if n.time % 2 == 0]
        if inside and max(inside) > max(passes):
            passes.add(max(inside))
        self.passes = sorted(passes)

    def choose_order(self, outer, passed):
        """Order the axes: last comes the one along which most arrays are contiguous."""
        loads = [node.access for node in self.loads.values()]
        accesses = [*loads, *self.stores.values()]

        def weight(axis):
            return contiguous_entries(accesses, axis), axis.extent

        every = [*outer, *passed]
        self.fastest = max(every, key=weight, default=None)

        def ordered(axes):
            return sorted(
                axes, key=lambda a: (a is self.fastest, -longest_stride(accesses, a))
            )

        self.every = ordered(every)
        self.outer = self.every if self.reduced is None else ordered(outer)
        self.passed = [] if self.reduced is None else ordered(passed)

    # --- nests

    def nests(self):
        """Return one nest for all, or one per pass where the outer axes are too few.

        The nests of expensive values come first.
        """
        return [*self.of_dear_values(), *self.main_nests()]

    def main_nests(self):
        """Return the nests of all other values."""
        if self.reduced is None:
            return [self.last_pass(-1)]
        count, extent = _size(self.outer), _size(self.passed)
        shape = rows if self.fastest in self.reduced else columns
        geometry = shape(count, extent, self.limits)
        parts = parts_of(geometry, extent)
        if parts > 1:
            return self.stages(geometry, parts)
        nest = _Nest(self, self.outer, self.passed)
        between = [n.time for n in self.values if n.time % 2]
        for time in sorted({*self.passes, *between}):
            nest.between(time) if time % 2 else nest.one_pass(time)
        return [nest.made(geometry)]

    def of_dear_values(self):
        """Yield nests of expensive values that many threads would otherwise recompute."""
        found = {}
        for node in self.values:
            if node.time <= 0 and node.cost > AGAIN and self.is_read_along_more(node):
                found.setdefault(node.axes, []).append(node)
        for axes in sorted(found, key=len):
            nest = _Nest(self, [a for a in self.every if a in axes], ())
            for node in found[axes]:
                nest.keep_value(node)
            yield nest.made(rows(_size(nest.teams), 1, self.limits))

    def is_read_along_more(self, node):
        """Return whether values on more axes, not shared by a team, depend on a value."""
        if node.time < 0 and self.reduced is not None or node.access is not None:
            return False
        return any([r.axes > node.axes for r in self.readers.get(id(node), ())])

    def stages(self, geometry, parts):
        """Return a nest for each pass, and one that adds up its partial sums."""
        found = []
        for time in self.passes:
            if not self.sums_of(time):
                found.append(self.last_pass(time))
                continue
            axis = Axis("part", parts)
            nest = _Nest(self, [axis, *self.outer], self.passed, axis)
            if time == self.passes[0]:
                nest.between(-1)
                nest.keep(-1, AGAIN)
            accesses = nest.one_pass(time, axis)
            blocks = -(-_size(nest.teams) // geometry.lanes)
            found.append(nest.made(geometry._replace(blocks=blocks)))
            found.append(self.adding(time, axis, accesses))
        return found

    def adding(self, time, parts, accesses):
        """Return the nest that adds up partial sums, and computes values that follow."""
        nest = _Nest(self, self.outer, [parts])
        nest.add_parts(accesses)
        nest.between(time + 1)
        nest.keep(time + 1)
        shape = columns if _size(self.outer) >= NEIGHBOURS else rows
        return nest.made(shape(_size(self.outer), parts.extent, self.limits))

    def last_pass(self, time):
        """Return the nest of a pass without sums: a map over all axes.

        A group without sums has only time -1.
        """
        nest = _Nest(self, self.every, ())
        for node in self.stored_in(time) if time >= 0 else self.nodes.values():
            if node.buffer in self.stores:
                nest.store(node)
        return nest.made(rows(_size(self.every), 1, self.limits))

    # --- values

    def sums_of(self, time):
        """Return the sums that a pass computes."""
        return [n for n in self.values if n.summed is not None and n.time == time + 1]

    def stored_in(self, time):
        """Return the values that a pass stores: those computed since the previous pass."""
        before = max([t for t in self.passes if t < time], default=-1)
        return [
            n
            for n in self.nodes.values()
            if n.time % 2 == 0 and before < n.time <= time and n.buffer in self.stores
        ]

    def is_read_after(self, node, time):
        """Return whether a computation later than ``time`` reads a value."""
        return any([_time_of(r) > time for r in self.readers.get(id(node), ())])


class _Nest:
    """The statements of a nest, as they are written.

    ``known``: the scalars of values that all members have; ``inner``: the same for each
    index of a pass, and the statements.
    """

    def __init__(self, schedule, teams, members, parts=None):
        self.schedule, self.teams, self.members = schedule, teams, members
        self.parts, self.body, self.known, self.inner = parts, [], {}, None
        self.filled, self.computed_here = {}, set()  # filled: stored in this nest

    def made(self, geometry):
        schedule, members = self.schedule, self.schedule.group.members
        schedule.memory.update(self.filled)
        own = [m for m in members if m.outputs[0] in self.computed_here - schedule.done]
        schedule.done |= self.computed_here
        return made_nest(
            own or members[-1:],
            self.teams,
            self.members,
            geometry,
            self.body,
            schedule.limits,
            self.parts,
        )

    # --- passes

    def between(self, time):
        """Store the values between two passes, or before the first one."""
        for node in self.schedule.nodes.values():
            if node.time == time and node.buffer in self.schedule.stores:
                self.store(node)

    def keep(self, time, least=0):
        """Store values of this time that later nests read, unless they are cheap."""
        for node in self.schedule.values:
            if node.time == time and node.cost > least and node.access is None:
                if self.schedule.is_read_after(node, time):
                    self.keep_value(node)

    def keep_value(self, node):
        if id(node) not in self.schedule.memory:
            access = self.memory(node)
            self.put(access, self.value(node))
            self.schedule.memory[id(node)] = access

    def memory(self, node):
        """Return memory of the program for a value."""
        axes = [a for a in self.schedule.every if a in node.axes]
        shape = tuple([a.extent for a in axes])
        strides = tuple(zip(axes, row_major(shape)))
        return Access(Buffer(shape, np.dtype(node.dtype)), 0, strides)

    def one_pass(self, time, parts=None):
        """Run over the members' axes: store values, and accumulate sums.

        With ``parts``, store the sums there; return the accesses by sum.
        """
        sums = self.schedule.sums_of(time)
        totals = self.begun(sums)
        self.inner = [], {}
        for node, total in totals.items():
            value = self.converted(self.value(node.args[0]), total.dtype)
            self.inner[0].append(Fold(total, node.function, value))
        stored = self.schedule.stored_in(time)
        for node in stored:
            self.store(node)
        statements, _ = self.inner
        self.inner = None
        self.body.append(Members(statements))
        self.filled.update({id(n): self.schedule.stores[n.buffer] for n in stored})
        self.combine(totals)
        return {
            node: self.store_part(node, totals[node], parts) for node in sums if parts
        }

    def begun(self, sums):
        """Return the scalars in which sums are accumulated."""
        totals = {node: Scalar("sum", _wide(node)) for node in sums}
        for node, total in totals.items():
            self.body.append(Begin(total, node.function))
            self.computed_here.add(node.buffer)
        return totals

    def combine(self, totals):
        if totals:
            pairs = [(total, node.function) for node, total in totals.items()]
            self.body.append(Combine(tuple(pairs)))
        for node, total in totals.items():
            self.known[id(node)] = self.converted(total, node.dtype)

    def store_part(self, node, total, parts):
        """Store a partial sum; return where all of them are."""
        outer = [a for a in self.schedule.outer if a in node.axes]
        is_last = _size(self.schedule.outer) < NEIGHBOURS
        axes = [*outer, parts] if is_last else [parts, *outer]
        shape = tuple([a.extent for a in axes])
        access = Access(
            Buffer(shape, total.dtype), 0, tuple(zip(axes, row_major(shape)))
        )
        self.put(access, total)
        return access

    def add_parts(self, accesses):
        totals, statements = self.begun(accesses), []
        for node, total in totals.items():
            part = Scalar("part", total.dtype)
            statements.append(Load(part, accesses[node]))
            statements.append(Fold(total, node.function, part))
        self.body.append(Members(statements))
        self.combine(totals)

    # --- statements

    def store(self, node):
        """Store a value where the program expects it."""
        access = self.schedule.stores[node.buffer]
        self.put(access, self.value(node))
        if self.inner is None:
            self.schedule.memory[id(node)] = access

    def put(self, access, value):
        """Store a scalar, by one thread for each entry."""
        here = list(self.teams)
        if self.inner is not None:  # whose indices the parts share
            here = [a for a in here if a is not self.parts] + list(self.members)
        own = {axis for axis, _ in access.strides}
        zeros = tuple([a for a in here if a.extent > 1 and a not in own])
        body, is_first = self.statements, self.inner is None
        last = body[-1] if body else None
        if type(last) is not Guard or last[:2] != (is_first, zeros):
            body.append(Guard(is_first, zeros, []))
        body[-1].body.append(Store(access, value))

    @property
    def statements(self):
        return self.body if self.inner is None else self.inner[0]

    def converted(self, value, dtype):
        """Convert a scalar to another dtype."""
        if value.dtype == dtype:
            return value
        out = Scalar("cast", dtype)
        self.statements.append(Compute(out, "cast", (value,)))
        return out

    def value(self, node):
        """Return the scalar of a value; the statements it needs are appended, each once."""
        if type(node) is Scalar:
            return node
        stack = [node]
        while stack:  # graphs are deep: no recursion
            current = stack[-1]
            known = self.known_beside(current)
            pending = [] if self.given(current) else current.inputs
            pending = [a for a in pending if id(a) not in self.known_beside(a)]
            if id(current) in known or not pending:
                stack.pop()
                if id(current) not in known:
                    known[id(current)] = self.computed(current)
            else:
                stack += pending
        return self.known_beside(node)[id(node)]

    def is_inner(self, node):
        return self.inner is not None and not node.axes.isdisjoint(self.members)

    def known_beside(self, node):
        return self.inner[1] if self.is_inner(node) else self.known

    def given(self, node):
        """Return the access that holds a value, if it is in memory."""
        found = node.access or self.filled.get(id(node))
        return found or self.schedule.memory.get(id(node))

    def computed(self, node):
        """Append the statement for a value whose arguments are known."""
        body = self.inner[0] if self.is_inner(node) else self.body
        access = self.given(node)
        if access is not None:
            out = Scalar("load", np.dtype(node.dtype))
            body.append(Load(out, access))
            return out
        self.computed_here.add(node.buffer)
        args = [
            a if type(a) is Scalar else self.known_beside(a)[id(a)] for a in node.args
        ]
        if node.function == "copy":
            return args[0]
        out = Scalar(node.function, np.dtype(node.dtype))
        body.append(Compute(out, node.function, tuple(args)))
        return out


def _wide(node):
    """Return the accumulator dtype of a sum: a float16 sum is rounded once, at the end."""
    is_half = node.dtype.str[1:] == "f2" and node.function == "add"
    return np.dtype(np.float32 if is_half else node.dtype)


def _time_of(node):
    """Return the time at which a value is computed: a sum in the pass before its result."""
    return node.time - (node.summed is not None)


def _size(axes):
    return math.prod([a.extent for a in axes])
