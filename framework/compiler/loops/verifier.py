"""Verify loop nests: values exist before they are read, and outputs are complete.

Every access lies inside of its array; every scalar is computed before it is used, in
the same loops; sums begin at their identity element; each entry of an output is written
once.
"""

from .statements import Accumulate, Compute, Load, Local, Loop, Reset, Span, Store

__all__ = ["verify_nest"]


def verify_nest(nest, fail):
    """Verify a `LoopNest`; call ``fail`` with a description of each error."""
    _Checker(nest, fail).run()


class _Checker:
    def __init__(self, nest, fail):
        self.nest, self.fail = nest, fail
        self.written = {}  # output -> loops around the statement that writes it
        self.filled = set()  # local arrays that hold something
        self.begun = set()  # those that were reset
        self.spans = {}  # (local array, axis) -> the width of strips, None for the whole axis

    def run(self):
        nest = self.nest
        self.check_grid()
        self.body(nest.body, (), {nest.blocks: nest.blocks.extent}, set())
        self.filled, self.begun = set(), set()
        self.body(nest.finish, (), {}, set())
        for out in nest.outputs:
            if out not in self.written:
                self.fail(f"{out} is never written")

    def check_grid(self):
        """Check that the strips of the blocks cover their axes."""
        grid, strips = self.nest.grid, 1
        for axis, width in grid:
            strips *= -(-axis.extent // width)
        if strips != self.nest.blocks.extent or len({*grid}) != len(dict(grid)):
            self.fail(f"{self.nest.blocks} blocks do not match the strips of {grid}")

    def body(self, body, loops, extents, known):
        """Check statements; ``extents``: the maximal index of each axis."""
        known = set(known)
        for each in body:
            if type(each) is Loop:
                self.loop(each, loops, extents, known)
                continue
            for scalar in _used(each):
                if scalar.value is None and scalar not in known:
                    self.fail(f"{scalar} is used before it is computed, in {each}")
            access = getattr(each, "access", None)
            if access is not None:
                self.access(each, access, loops, extents)
            if type(each) in (Load, Compute):
                known.add(each.out)

    def loop(self, loop, loops, extents, known):
        axis, outer = (
            loop.axis,
            [each.axis for each in loops if each.span is not Span.STRIPS],
        )
        if axis in outer:
            self.fail(f"the loop over {axis} is nested in itself")
        if loop.span is Span.STRIP:
            strips = [e for e in loops if e.span is Span.STRIPS and e.axis is axis]
            width = strips[0].width if strips else dict(self.nest.grid).get(axis)
            if width != loop.width:
                self.fail(
                    f"strips of {loop.width} of {axis}, which has strips of {width}"
                )
        self.body(loop.body, (*loops, loop), {**extents, axis: axis.extent}, known)

    def access(self, each, access, loops, extents):
        array, local = access.array, type(access.array) is Local
        low = high = access.offset
        for axis, stride in access.strides:
            if axis not in extents:
                self.fail(f"{each} needs an index for {axis}")
                return
            extent = extents[axis]
            if local:
                extent = min(
                    [e.width for e in loops if e.axis is axis and e.span is Span.STRIP]
                    + [extent]
                )
            low, high = (
                low + min(0, stride * (extent - 1)),
                high + max(0, stride * (extent - 1)),
            )
        if low < 0 or high >= array.size:
            self.fail(
                f"{each} accesses entries {low} to {high}, out of bounds of {array}"
            )
        if local:
            self.spans_of_local(each, access, loops)
            self.in_local(each, array)
        elif type(each) is Store and array in self.nest.outputs:
            self.output(each, access, loops, extents)
        elif array in self.nest.outputs and array not in self.written:
            self.fail(f"{each} reads an output before it is written")

    def spans_of_local(self, each, access, loops):
        """Check that a local array has entries for strips of an axis, or for all of it."""
        for axis, _ in access.strides:
            widths = [e.width for e in loops if e.axis is axis and e.span is Span.STRIP]
            width = widths[0] if widths else None
            if self.spans.setdefault((access.array, axis), width) != width:
                self.fail(f"{each} reads entries of {axis} that were not stored")

    def in_local(self, each, array):
        if type(each) is Reset:
            self.begun.add(array)
        if type(each) is Accumulate and array not in self.begun:
            self.fail(f"{each} accumulates into an entry that was not reset")
        if type(each) is Load and array not in self.filled:
            self.fail(f"{each} reads an entry that was not stored")
        if type(each) in (Store, Accumulate):
            self.filled.add(array)

    def output(self, each, access, loops, extents):
        """Check that a store writes each entry of its array once."""
        array = access.array
        if array in self.written:
            self.fail(f"{array} is written twice")
        self.written[array] = loops
        axes = {loop.axis for loop in loops if loop.span is not Span.STRIPS}
        if self.nest.blocks in extents:
            cut = {axis for axis, width in self.nest.grid if width < axis.extent}
            if cut - axes:
                self.fail(f"{each} is repeated in every block")
        if {a for a in axes if a.extent > 1} - {a for a, _ in access.strides}:
            self.fail(f"{each} writes one entry several times")
        size = 1
        for axis, stride in sorted(access.strides, key=lambda pair: pair[1]):
            if axis.extent == 1:
                continue
            if stride != size:
                self.fail(f"{each} skips entries, or writes some twice")
            size *= axis.extent
        if access.offset or size != array.size:
            self.fail(f"{each} writes {size} entries from {access.offset} on")


def _used(each):
    if type(each) is Compute:
        return each.args
    return (each.value,) if type(each) in (Store, Accumulate) else ()
