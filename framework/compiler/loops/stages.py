"""Schedule a group as several `LoopNest`, one for each pass over its reduced axes.

A single nest splits its outer axes into blocks. Where these are a few channels, as for
batch normalization of images, a few blocks would read columns from memory, pass after
pass. Here each pass has blocks of whole rows, which store partial sums; the computation
between two passes is a separate small nest.
"""

import math

from ..program.program import Buffer
from .loop_nest import LoopNest
from .scheduling import PARTS, Schedule, scheduled
from .statements import (
    Access,
    Axis,
    Load,
    Local,
    Loop,
    Span,
    Store,
    statements_in,
)

__all__ = ["nests_of"]

CHANNELS = 1 << 10  # the most, each with a sum in every block


def nests_of(group, stored, layouts=None):
    """Return the nests of a group, see `scheduled`."""
    limits = group.limits
    if group.reduced and not layouts:
        if math.prod([a.extent for a in group.reduced]) >= limits.staged_rows:
            stages = _Stages(group, stored, {}, limits.strips[0])
            if stages.are_possible():
                return stages.nests()
    return [scheduled(group, stored, layouts)]


class _Stages(Schedule):
    def are_possible(self):
        """Return whether all values belong to the rows, or to one outer axis of channels."""
        if self.outer != [self.lanes] or self.groups is not None:
            return False
        channels, every = {self.lanes}, {self.lanes, *self.reduced}
        return self.lanes.extent <= CHANNELS and all(
            [
                node.axes in (channels, every) and node.summed in (None, self.reduced)
                for node in self.walk()
            ]
        )

    def nests(self):
        self.kept, self.accumulators, self.filled = {}, {}, set()
        self.lane_width, found = self.lanes.extent, []
        for time in self.times():
            self.locals = []
            found.append(self.small_nest(time) if time % 2 else self.pass_nest(time))
        return [nest for nest in found if nest is not None]

    def small_nest(self, time):
        """Return the nest for the code between two passes; None if there are only sums."""
        self.grid, body = (), []
        self.between(body, time, (self.lanes,), ())
        if not any([type(each) is Store for _, each in statements_in(body)]):
            return None
        return self.made(time, Axis("block", 1), body, [], self.lanes.extent)

    def pass_nest(self, time):
        first, *rest = [a.extent for a in self.passed]
        row = math.prod(rest) * self.lanes.extent * self.work_of_entry()
        reductions = self.reductions_of(time)
        most = PARTS if reductions else 4 * PARTS
        self.width = max(self.limits.block_work // row, -(-first // most))
        self.grid = ((self.passed[0], self.width),)
        blocks = Axis("block", -(-first // self.width))
        body, finish = [], []
        self.one_pass(body, time, (self.lanes,), ())
        for node in reductions:
            own = self.accumulators[id(node)]
            sums = self.stores.pop(node.buffer, None) or self.keep_between(node, own)
            self.accumulators[id(node)] = sums
            self.add_parts(node, (self.lanes,), own, sums, blocks, body, finish)
        return self.made(time, blocks, body, finish, self.width * row)

    def made(self, time, blocks, body, finish, work):
        """Return the nest of these statements."""
        accesses = [
            (type(each), each.access.array)
            for _, each in statements_in([*body, *finish])
            if type(each) in (Load, Store) and type(each.access.array) is not Local
        ]
        outputs = dict.fromkeys([a for kind, a in accesses if kind is Store])
        outputs = [a for a in outputs if not a.is_scratch]
        operands = dict.fromkeys([a for kind, a in accesses if kind is Load])
        operands = [a for a in operands if a not in outputs]
        steps = [each for each in self.group.members if self.stage_of(each) == time]
        return LoopNest(
            steps, operands, outputs, blocks, self.grid, body, finish, self.locals, work
        )

    def stage_of(self, instruction):
        """Return the time of the nest that computes an instruction."""
        node = self.nodes[instruction.outputs[0]]
        if node.summed is not None:
            return node.time - 1
        return node.time if node.time % 2 else self.pass_of(node.time)

    # --- other than in one nest

    def keep_between(self, node, lanes):
        """Return memory of the program, as another nest reads the value."""
        return Access(Buffer((self.lanes.extent,), node.dtype), 0, ((self.lanes, 1),))

    def keep_for_later(self, *_):
        """Keep nothing: there are too many rows."""

    def along_passed(self, body):
        first, *rest = self.passed
        for axis in reversed(rest):
            body = [Loop(axis, Span.WHOLE, 0, body)]
        return [Loop(first, Span.STRIP, self.width, body)]

    def along_lanes(self, body):
        return [Loop(self.lanes, Span.WHOLE, 0, body)]
