"""Place a group on threads, as `ThreadNest`s: the work of each thread, and its kernel.

All members of a team compute the values between two passes, and the first one stores
them. A value that a later pass needs is read back if it was stored, and otherwise
recomputed.

If most arrays are contiguous along a reduced axis, neighbouring threads lie along it,
else along an outer one. Where the outer axes are too few for a GPU, each pass is a
separate nest. Its teams store partial sums in memory, and a small nest adds them up.
"""

import numpy as np

from ...program.program import Buffer
from ..accesses import row_major
from ..schedule import EXPENSIVE, Schedule, Scope
from ..statements import Access, Axis, Compute, Load, Scalar, Store, size_of
from ..value_graph import ValueGraph
from .thread_geometry import columns, parts_of, rows
from .thread_nest import ThreadNest
from .thread_statements import Begin, Combine, Fold, Guard, Members

AGAIN = 2 * EXPENSIVE  # the cost of values that each thread may compute for itself
NEIGHBOURS = 32  # outer indices from which on a whole warp lies along them


def thread_nests(group, stored, layouts=None):
    """Return the nests of a group without totals; ``stored`` are values that others read."""
    return _ThreadSchedule(group, stored, layouts or {}).nests()


class _ThreadSchedule(Schedule):
    """The nests that compute the values of a group.

    ``done``: the buffers whose values are already computed by a nest.
    """

    def __init__(self, group, stored, layouts):
        graph = ValueGraph(group, stored, layouts)
        super().__init__(graph, graph.reduced)
        self.done = set()
        self.choose_order()

    def cost_to_read(self, node, level):
        """Return the cost of reading a value: 0 if another level has already computed it."""
        return node.cost if node.level == level else 0

    def choose_order(self):
        """Order the axes: last comes the one along which most arrays are contiguous."""
        every = [*self.outer, *self.passed]
        self.fastest = max(every, key=self.contiguity, default=None)
        for axes in (every, self.outer, self.passed):
            axes.sort(key=lambda axis: (axis is self.fastest, -self.stride(axis)))
        self.every = every

    # --- nests

    def nests(self):
        """Return one nest for all, or one per pass where the outer axes are too few.

        The nests of expensive values come first.
        """
        return [*self.of_expensive_values(), *self.main_nests()]

    def main_nests(self):
        """Return the nests of all other values."""
        if not self.reduced:
            return [self.map_nest(self.nodes.values())]
        count, extent = size_of(self.outer), size_of(self.passed)
        shape = rows if self.fastest in self.reduced else columns
        geometry = shape(count, extent, self.limits)
        parts = parts_of(geometry, extent)
        if parts > 1:
            return self.stages(geometry, parts)
        nest = _Nest(self, self.outer, self.passed)
        for level in self.levels():
            nest.between(level) if level % 2 else nest.one_pass(level)
        return [nest.build(geometry)]

    def of_expensive_values(self):
        """Yield nests of expensive values that many threads would otherwise recompute."""
        by_axes = {}
        for node in self.values:
            if node.level <= 0 and node.cost > AGAIN and self.is_read_along_more(node):
                by_axes.setdefault(node.axes, []).append(node)
        for axes in sorted(by_axes, key=len):  # those of more axes read the others
            nest = _Nest(self, [a for a in self.every if a in axes], ())
            for node in by_axes[axes]:
                nest.keep_value(node)
            yield nest.build(rows(size_of(nest.teams), 1, self.limits))

    def is_read_along_more(self, node):
        """Return whether values on more axes, not shared by a team, depend on a value."""
        if node.level < 0 and self.reduced or node.access is not None:
            return False
        return any([r.axes > node.axes for r in self.readers.get(node, ())])

    def stages(self, geometry, parts):
        """Return a nest for each pass, and one that adds up its partial sums."""
        nests = []
        for level in self.passes:
            if not self.sums_of(level):
                nests.append(self.map_nest(self.stored_in(level)))
                continue
            axis = Axis("part", parts)
            nest = _Nest(self, [axis, *self.outer], self.passed, axis)
            if level == self.passes[0]:
                nest.between(-1)
                nest.keep(-1, AGAIN)
            accesses = nest.one_pass(level)
            blocks = -(-size_of(nest.teams) // geometry.lanes)
            nests.append(nest.build(geometry._replace(blocks=blocks)))
            nests.append(self.adding_nest(level, axis, accesses))
        return nests

    def adding_nest(self, level, parts, accesses):
        """Return the nest that adds up partial sums, and computes values that follow."""
        nest = _Nest(self, self.outer, [parts])
        nest.add_parts(accesses)
        nest.between(level + 1)
        nest.keep(level + 1)
        shape = columns if size_of(self.outer) >= NEIGHBOURS else rows
        return nest.build(shape(size_of(self.outer), parts.extent, self.limits))

    def map_nest(self, nodes):
        """Return the nest of a pass without sums, or of a group without: over all axes."""
        nest = _Nest(self, self.every, ())
        for node in nodes:
            if node.buffer in self.stores:
                nest.store(node)
        return nest.build(rows(size_of(self.every), 1, self.limits))


class _Nest(Scope):
    """The statements of a nest, as they are written.

    ``known``: the scalars of values that all members have; ``inner``: the statements
    for each index of a pass, and the scalars there.
    """

    def __init__(self, schedule, teams, members, parts=None):
        super().__init__(schedule, [])
        self.teams, self.members, self.parts = teams, members, parts
        self.inner, self.computed_here = None, set()

    def build(self, geometry):
        """Return the `ThreadNest`."""
        schedule, members = self.schedule, self.schedule.group.members
        own = [m for m in members if m.outputs[0] in self.computed_here - schedule.done]
        schedule.done |= self.computed_here
        return ThreadNest(
            own or members[-1:],
            self.teams,
            self.members,
            geometry,
            self.body,
            schedule.limits,
            self.parts,
        )

    # --- passes

    def between(self, level):
        """Store the values between two passes, or before the first one."""
        for node in self.schedule.nodes.values():
            if node.level == level and node.buffer in self.schedule.stores:
                self.store(node)

    def keep(self, level, least=0):
        """Store values of this level that later nests read, unless they are cheap."""
        for node in self.schedule.values:
            if node.level == level and node.cost > least and node.access is None:
                if self.schedule.is_read_later(node):
                    self.keep_value(node)

    def keep_value(self, node):
        """Store a value in memory of the program, unless it is stored."""
        if node not in self.schedule.memory:
            axes = [a for a in self.schedule.every if a in node.axes]
            access = _new_memory(axes, node.dtype)
            self.put(access, self.value(node))
            self.schedule.memory[node] = access

    def one_pass(self, level):
        """Run over the members' axes: store values, and accumulate sums.

        In a nest of parts, store the sums of each part; return the accesses by sum.
        """
        sums, stored = self.schedule.sums_of(level), self.schedule.stored_in(level)
        totals = self.begin_sums(sums)
        self.inner = [], {}
        for node, total in totals.items():
            value = self.convert(self.value(node.args[0]), total.dtype)
            self.inner[0].append(Fold(total, node.function, value))
        for node in stored:
            self.store(node)
        statements, _ = self.inner
        self.inner = None
        self.body.append(Members(statements))
        for node in stored:
            self.schedule.memory[node] = self.schedule.stores[node.buffer]
        self.combine(totals)
        if self.parts is None:
            return {}
        return {node: self.store_part(node, totals[node]) for node in sums}

    def begin_sums(self, sums):
        """Begin sums; return the scalars in which they are accumulated."""
        totals = {node: Scalar("sum", _wide(node)) for node in sums}
        for node, total in totals.items():
            self.body.append(Begin(total, node.function))
            self.computed_here.add(node.buffer)
        return totals

    def combine(self, totals):
        """Combine the sums of all members."""
        if totals:
            pairs = [(total, node.function) for node, total in totals.items()]
            self.body.append(Combine(tuple(pairs)))
        for node, total in totals.items():
            self.known[node] = self.convert(total, node.dtype)

    def store_part(self, node, total):
        """Store a partial sum; return where all of them are."""
        outer = [a for a in self.schedule.outer if a in node.axes]
        # The nest that adds them up reads them along the axis of its neighbouring threads.
        is_last = size_of(self.schedule.outer) < NEIGHBOURS
        axes = [*outer, self.parts] if is_last else [self.parts, *outer]
        access = _new_memory(axes, total.dtype)
        self.put(access, total)
        return access

    def add_parts(self, accesses):
        """Add up partial sums that an earlier nest has stored."""
        totals, statements = self.begin_sums(accesses), []
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
            self.schedule.memory[node] = access

    def put(self, access, value):
        """Store a scalar, by one thread for each entry."""
        here = list(self.teams)
        if self.inner is not None:  # whose indices the parts share
            here = [a for a in here if a is not self.parts] + list(self.members)
        zeros = tuple([a for a in here if a.extent > 1 and a not in access.axes])
        body, is_first = self.statements, self.inner is None
        last = body[-1] if body else None
        if type(last) is not Guard or last[:2] != (is_first, zeros):
            body.append(Guard(is_first, zeros, []))
        body[-1].body.append(Store(access, value))

    @property
    def statements(self):
        """The statements that are written now."""
        return self.body if self.inner is None else self.inner[0]

    def convert(self, value, dtype):
        """Convert a scalar to another dtype."""
        if value.dtype == dtype:
            return value
        out = Scalar("cast", dtype)
        self.statements.append(Compute(out, "cast", (value,)))
        return out

    def beside(self, node):
        """Return the body that computes a value: a pass, if it depends on members' axes."""
        if self.inner is not None and not node.axes.isdisjoint(self.members):
            return self.inner
        return self.body, self.known

    def compute(self, node, access, body):
        """Append the statement for a value, and note that this nest computes it."""
        if access is None:
            self.computed_here.add(node.buffer)
        return super().compute(node, access, body)


def _new_memory(axes, dtype):
    """Return new memory of the program, in the order of these axes."""
    shape = tuple([a.extent for a in axes])
    return Access(Buffer(shape, dtype), 0, tuple(zip(axes, row_major(shape))))


def _wide(node):
    """Return the accumulator dtype of a sum: a float16 sum is rounded once, at the end."""
    is_half = node.dtype.str[1:] == "f2" and node.function == "add"
    return np.dtype(np.float32 if is_half else node.dtype)
