"""Verify nests: values exist before they are read, and outputs are complete.

Every access lies inside of its array; every scalar is computed before it is used, in
the same loops; sums begin at their identity element; each entry of an output is written
once. On threads, moreover, sums are combined by all threads of a block before they are
read; exactly one thread writes each entry of an output; partial sums are all written,
and all read.
"""

from .statements import (
    Accumulate,
    Compute,
    Load,
    Local,
    Reset,
    Select,
    Span,
    Store,
    accesses_in,
    scalars_read,
)
from .threads.thread_statements import Begin, Combine, Fold, Guard, Members

WARP, MOST_THREADS = 32, 1024  # of every GPU that CUDA supports


def verify_loop_nest(nest, fail):
    """Verify a `LoopNest`; call ``fail`` with a description of each error."""
    _LoopChecker(nest, fail).run()


def verify_thread_nest(nest, fail):
    """Verify a `ThreadNest`; call ``fail`` with a description of each error."""
    _ThreadChecker(nest, fail).run()


class _Checker:
    """One traversal of the statements of a nest.

    ``sums``: the function by which each sum is added up, from its beginning on;
    ``written``: the access to each output, and the statements around the store.
    """

    def __init__(self, nest, fail):
        self.nest, self.fail = nest, fail
        self.sums, self.written = {}, {}

    def body(self, body, path, known):
        """Check statements; ``known``: the scalars computed before them."""
        for each in body:
            if hasattr(each, "body"):
                self.enter(each, path, known)
                continue
            for scalar in scalars_read(each):
                if scalar not in known:
                    self.fail(f"{scalar} is used before it is computed, in {each}")
            if hasattr(each, "access"):
                self.within_bounds(each, self.extents(each.access, path))
            self.statement(each, path, known)
            if type(each) in (Load, Compute, Select):
                known.add(each.out)

    def within_bounds(self, each, extents):
        """Check that an access lies inside of its array, for these numbers of indices."""
        access = each.access
        if not self.has_indices(each, [*access.axes, *dict(access.bounds)], extents):
            return
        for axis, indices in access.bounds:
            if not indices or indices[0] < 0 or indices[-1] >= axis.extent:
                self.fail(f"{each} is for indices that {axis} does not have")
        low, high = access.range(extents)
        if low < 0 or high >= access.array.size:
            self.fail(
                f"{each} accesses entries {low} to {high}, out of bounds of {access.array}"
            )

    def has_indices(self, each, axes, extents):
        """Check that a statement has an index of each of these axes; return success."""
        missing = [axis for axis in axes if axis not in extents]
        if missing:
            self.fail(f"{each} needs an index for {missing[0]}")
        return not missing

    def accumulate(self, each, sum_):
        """Check that a sum was begun by the function that adds it up."""
        if self.sums.get(sum_) != each.ufunc:
            self.fail(f"{each} accumulates into a sum that was not begun")

    def write(self, each, path):
        """Check that a store writes each entry of an output once."""
        array = each.access.array
        if array in self.written:
            self.fail(f"{array} is written twice")
        self.written[array] = each.access, path
        if not each.access.is_whole:
            self.fail(f"{each} skips entries, or writes some twice")

    def written_for(self, each, axes):
        """Check that a store is not repeated along axes that its array lacks."""
        if [a for a in axes if a.extent > 1 and a not in each.access.axes]:
            self.fail(f"{each} writes one entry several times")

    def end(self):
        """Check that all outputs are written."""
        for out in self.nest.outputs:
            if out not in self.written:
                self.fail(f"{out} is never written")


class _LoopChecker(_Checker):
    """``filled``: the local arrays that hold something.

    ``spans``: the width of strips for which a local array has entries of an axis, None
    for the whole axis; ``outside``: the axes with an index outside of all loops.
    """

    def run(self):
        nest, self.spans = self.nest, {}
        self.check_grid()
        self.part(nest.body, (nest.blocks,))
        self.part(nest.finish, ())
        self.end()

    def part(self, body, outside):
        """Check the statements of one block, or those after all blocks."""
        self.outside, self.filled, self.sums = outside, set(), {}
        self.body(body, (), set())

    def check_grid(self):
        """Check that the strips of the blocks cover their axes."""
        grid, strips = self.nest.grid, 1
        for axis, width in grid:
            strips *= -(-axis.extent // width)
        if strips != self.nest.blocks.extent or len({*grid}) != len(dict(grid)):
            self.fail(f"{self.nest.blocks} blocks do not match the strips of {grid}")

    def enter(self, loop, loops, known):
        axis = loop.axis
        if axis in [each.axis for each in loops if each.span is not Span.STRIPS]:
            self.fail(f"the loop over {axis} is nested in itself")
        if loop.span is Span.STRIP:
            strips = [e for e in loops if e.span is Span.STRIPS and e.axis is axis]
            width = strips[0].width if strips else dict(self.nest.grid).get(axis)
            if width != loop.width:
                self.fail(
                    f"strips of {loop.width} of {axis}, which has strips of {width}"
                )
        self.body(loop.body, (*loops, loop), {*known})

    def extents(self, access, loops):
        """Map each axis with a known index to its extent; a strip's width in local arrays."""
        extents = {axis: axis.extent for axis in self.outside}
        for loop in loops:
            extents[loop.axis] = loop.axis.extent
            if type(access.array) is Local and loop.span is Span.STRIP:
                extents[loop.axis] = min(loop.width, loop.axis.extent)
        return extents

    def statement(self, each, loops, known):
        if type(each) is Select:
            self.has_indices(each, dict(each.bounds), [e.axis for e in loops])
        if type(each) in (Compute, Select):
            return
        array = each.access.array
        if type(array) is Local:
            self.spans_of_local(each, loops)
            self.in_local(each, array)
        elif type(each) is Store and array in self.nest.outputs:
            self.output(each, loops)
        elif array in self.nest.outputs and array not in self.written:
            self.fail(f"{each} reads an output before it is written")

    def spans_of_local(self, each, loops):
        """Check that a local array has entries for strips of an axis, or for all of it."""
        for axis in each.access.axes:
            widths = [e.width for e in loops if e.axis is axis and e.span is Span.STRIP]
            width = widths[0] if widths else None
            if self.spans.setdefault((each.access.array, axis), width) != width:
                self.fail(f"{each} reads entries of {axis} that were not stored")

    def in_local(self, each, array):
        """Check that a local array holds something before it is read."""
        if type(each) is Reset:
            self.sums[array] = each.ufunc
        if type(each) is Accumulate:
            self.accumulate(each, array)
        if type(each) is Load and array not in self.filled:
            self.fail(f"{each} reads an entry that was not stored")
        if type(each) in (Store, Accumulate):
            self.filled.add(array)

    def output(self, each, loops):
        """Check that all blocks together write each entry of an output once."""
        self.write(each, loops)
        cut = {axis for axis, width in self.nest.grid if width < axis.extent}
        if self.outside and cut - {e.axis for e in loops if e.span is Span.STRIP}:
            self.fail(f"{each} is repeated in every block")
        self.written_for(each, [e.axis for e in loops if e.span is not Span.STRIPS])


class _ThreadChecker(_Checker):
    """``axes``: the axes that a scalar depends on; ``added``: the sums with terms."""

    def run(self):
        self.axes, self.added = {}, set()
        self.check_geometry()
        self.check_parts()
        self.body(self.nest.body, (), set())
        self.end()
        for sum_ in self.sums:
            self.fail(f"{sum_} is never combined")

    def check_geometry(self):
        team, lanes, is_row, blocks = self.nest.geometry
        if min(team, lanes, blocks) < 1 or team * lanes > MOST_THREADS:
            self.fail(f"{lanes} teams of {team} threads are not a valid block")
        if is_row:  # shuffles are between the threads of a team, in whole warps
            is_power = team & (team - 1) == 0
            if not is_power or team * lanes % WARP:
                self.fail(f"{lanes} rows of {team} threads do not fit warps")

    def check_parts(self):
        nest, axes = self.nest, [*self.nest.teams, *self.nest.members]
        if len({*axes}) != len(axes):
            self.fail("an axis belongs both to teams and to members")
        if nest.parts is None:
            return
        parts, extent = nest.parts.extent, nest.extent
        if nest.parts not in nest.teams:
            self.fail("the axis of parts is not a team axis")
        if not nest.chunk * (parts - 1) < extent <= nest.chunk * parts:
            self.fail(f"{parts} parts of {nest.chunk} do not make {extent} entries")

    # --- what threads do apart from each other

    def enter(self, each, path, known):
        if type(each) is Members:
            if path:
                self.fail("the loop over members is inside of a branch or another loop")
            known = {*known}
        elif [e for e in each.body if type(e) is not Store]:
            self.fail("only some threads compute a value that all of them need")
        self.body(each.body, (*path, each), known)

    def extents(self, access, path):
        """Map each axis with a known index to its extent; members have one inside a pass."""
        inner = self.nest.members if _is_inner(path) else ()
        return {axis: axis.extent for axis in (*self.nest.teams, *inner)}

    def statement(self, each, path, known):
        _CHECKS[type(each)](self, each, path, known)

    # --- numbers

    def begin(self, each, path, known):
        if path:
            self.fail(f"{each} is repeated inside of a loop")
        self.sums[each.out] = each.ufunc

    def fold(self, each, path, known):
        self.accumulate(each, each.out)
        if [type(p) for p in path] != [Members]:
            self.fail(f"{each} does not run for each index of the members")
        self.added.add(each.out)
        self.depend(each.out, [each.value, each.out])

    def combine(self, each, path, known):
        if path:
            self.fail("not all threads of a block reach a barrier")
        for sum_, ufunc in each.sums:
            if self.sums.pop(sum_, None) != ufunc or sum_ not in self.added:
                self.fail(f"{sum_} is combined, but not accumulated by {ufunc}")
            known.add(sum_)
            added = self.axes.get(sum_, frozenset()) - {*self.nest.members}
            self.axes[sum_] = added | {self.nest.parts}

    def compute(self, each, path, known):
        self.depend(each.out, each.args)

    def select(self, each, path, known):
        bounded = dict(each.bounds)
        inner = self.nest.members if _is_inner(path) else ()
        self.has_indices(each, bounded, (*self.nest.teams, *inner))
        self.depend(each.out, each.args)
        self.axes[each.out] |= {*bounded}

    def depend(self, out, scalars):
        """Record that a scalar depends on the axes of others."""
        axes = [self.axes.get(scalar, frozenset()) for scalar in scalars]
        self.axes[out] = frozenset().union(*axes)

    # --- memory

    def load(self, each, path, known):
        access = each.access
        self.axes[each.out] = frozenset([*access.axes, *dict(access.bounds)])
        if access.array in self.nest.outputs:
            self.load_back(each, path)
        elif _is_of_parts(access.array) and not access.is_whole:
            self.fail(f"{each} skips parts of {access.array}")

    def load_back(self, each, path):
        """Check that the thread that reads an entry of an output has written it."""
        access, is_alone = each.access, self.nest.geometry.team == 1
        store, around = self.written.get(access.array, (None, ()))
        if store != access:
            self.fail(f"{each} reads an entry that was not written")
        elif not is_alone and not (_is_inner(around) and path):
            self.fail(f"{each} reads an entry that another thread has written")

    def store(self, each, path, known):
        access = each.access
        if access.array not in self.nest.outputs:
            self.fail(f"{access.array} is not an output")
        self.write(each, path)
        guards = [p for p in path if type(p) is Guard]
        if len(guards) != 1:
            self.fail(f"{each} runs for indices out of range")
            return
        self.by_one_thread(each, guards[0], _is_inner(path))
        others = self.axes.get(each.value, frozenset()) - {*access.axes, None}
        if [axis for axis in others if axis.extent > 1]:
            self.fail(f"{each} stores one entry for all indices along {others}")

    def by_one_thread(self, each, guard, is_inner):
        """Check that each entry is written by exactly one thread."""
        nest, axes = self.nest, {*self.nest.teams}
        if is_inner:  # each part has other indices of the members
            axes = axes - {nest.parts} | {*nest.members}
            if nest.parts in guard.zeros:
                self.fail(f"{each} skips all parts but the first")
        self.written_for(each, axes - {*guard.zeros})
        if not {*each.access.axes}.isdisjoint(guard.zeros):
            self.fail(f"{each} skips all indices but the first")
        if nest.geometry.team > 1 and guard.is_first == is_inner:
            who = "the first member" if is_inner else "all members"
            self.fail(f"{each} is executed by {who} of a team")


_CHECKS = {
    Begin: _ThreadChecker.begin,
    Fold: _ThreadChecker.fold,
    Combine: _ThreadChecker.combine,
    Load: _ThreadChecker.load,
    Compute: _ThreadChecker.compute,
    Select: _ThreadChecker.select,
    Store: _ThreadChecker.store,
}


def _is_inner(path):
    """Return whether statements run for each index of the members."""
    return any([type(each) is Members for each in path])


def _is_of_parts(array):
    """Return whether an array holds the partial sums of the teams of another nest."""
    parts = getattr(array.instruction, "parts", None)
    if parts is None:
        return False
    accesses = [access for _, access in accesses_in(array.instruction.body)]
    return any([a.array is array and parts in a.axes for a in accesses])
