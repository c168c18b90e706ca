"""Place a group in several `LoopNest`, one for each pass over its reduced axes.

A single nest splits its outer axes into blocks. Where these are a few channels, as for
batch normalization of images, a few blocks would read columns from memory, pass after
pass. Here each pass has blocks of whole rows, which store partial sums; the computation
between two passes is a separate small nest.
"""

from ..program.program import Buffer
from .loop_nest import LoopNest
from .loop_scheduling import PARTS, LoopSchedule, schedule_loops
from .nest import arrays_of
from .statements import Access, Axis, Load, Loop, Span, Store, along, size_of

CHANNELS = 1 << 10  # the most, each with a sum in every block


def nests_of(group, stored, layouts=None):
    """Return the nests of a group, see `schedule_loops`."""
    limits = group.limits
    if group.reduced and not layouts:
        if size_of(group.reduced) >= limits.staged_rows:
            stages = _Stages(group, stored, {}, limits.strips[0])
            if stages.are_possible():
                return stages.nests()
    return [schedule_loops(group, stored, layouts)]


class _Stages(LoopSchedule):
    def are_possible(self):
        """Return whether all values belong to the rows, or to one outer axis of channels."""
        if self.outer != [self.lanes] or self.groups is not None:
            return False
        channels, every = {self.lanes}, {self.lanes, *self.reduced}
        computed = [node for node in self.values if node.access is None]
        return self.lanes.extent <= CHANNELS and all(
            [
                node.axes in (channels, every) and node.summed in (None, self.reduced)
                for node in computed
            ]
        )

    def nests(self):
        """Return the nests, in order."""
        self.lane_width, nests = self.lanes.extent, []
        for level in self.levels():
            self.locals = []
            nest = self.small_nest(level) if level % 2 else self.pass_nest(level)
            nests += [] if nest is None else [nest]
        return nests

    def small_nest(self, level):
        """Return the nest for the code between two passes; None if there are only sums."""
        self.grid, body = (), self.between(level)
        if not arrays_of(body, Store):
            return None
        return self.nest_of(level, Axis("block", 1), body, [], self.lanes.extent)

    def pass_nest(self, level):
        """Return the nest of a pass, whose blocks store partial sums."""
        first, *rest = self.passed
        row = size_of(rest) * self.lanes.extent * self.work_of_entry()
        sums = self.sums_of(level)
        # Blocks without sums have nothing to add up.
        most = PARTS if sums else 4 * PARTS
        self.width = max(self.limits.block_work // row, -(-first.extent // most))
        self.grid = ((first, self.width),)
        blocks = Axis("block", -(-first.extent // self.width))
        body, finish = self.one_pass(level), []
        for node in sums:
            own = self.memory[node]
            store = self.stores.pop(node.buffer, None) or self.keep_between(node)
            self.memory[node] = store
            self.add_parts(node, (self.lanes,), own, store, blocks, body, finish)
        return self.nest_of(level, blocks, body, finish, self.width * row)

    def nest_of(self, level, blocks, body, finish, work):
        """Return the nest of these statements."""
        both = [*body, *finish]
        outputs = [a for a in arrays_of(both, Store) if not a.is_scratch]
        operands = [a for a in arrays_of(both, Load) if a not in outputs]
        steps = [
            each
            for each in self.group.members
            if self.level_of_work(self.nodes[each.outputs[0]]) == level
        ]
        return LoopNest(
            steps, operands, outputs, blocks, self.grid, body, finish, self.locals, work
        )

    # --- other than in one nest

    def keep_between(self, node):
        """Return memory of the program, as another nest reads the value."""
        return Access(Buffer((self.lanes.extent,), node.dtype), 0, ((self.lanes, 1),))

    def keep_for_later(self, *_):
        """Keep nothing: there are too many rows."""

    def along_passed(self, body):
        """Put loops over the reduced axes around a body: a strip of the first one."""
        first, *rest = self.passed
        return [Loop(first, Span.STRIP, self.width, along(rest, body))]

    def along_lanes(self, body):
        """Put a loop over all channels around a body."""
        return along([self.lanes], body)
