"""Verify thread nests: values exist before they are read, and outputs are complete.

Every access lies inside of its array; every scalar is computed before it is used; sums
are combined by all threads of a block before they are read; exactly one thread writes
each entry of an output, once; partial sums are all written, and all read.
"""

import math

from .statements import Compute, Load, Scalar, Store
from .thread_statements import Begin, Combine, Fold, Guard, Members

__all__ = ["verify_thread_nest"]

WARP, MOST_THREADS = 32, 1024


def verify_thread_nest(nest, fail):
    """Verify a `ThreadNest`; call ``fail`` with a description of each error."""
    _check_geometry(nest.geometry, fail)
    _check_parts(nest, fail)
    _Checker(nest, fail).run()


def _check_geometry(geometry, fail):
    team, lanes, is_row, blocks = geometry
    if min(team, lanes, blocks) < 1 or team * lanes > MOST_THREADS:
        fail(f"{lanes} teams of {team} threads are not a valid block")
    if is_row:  # shuffles are between the threads of a team, in whole warps
        is_power = team & (team - 1) == 0
        if not is_power or team * lanes % WARP:
            fail(f"{lanes} rows of {team} threads do not fit warps")


def _check_parts(nest, fail):
    axes = [*nest.teams, *nest.members]
    if len({*axes}) != len(axes):
        fail("an axis belongs both to teams and to members")
    if nest.parts is None:
        return
    parts, extent = nest.parts.extent, nest.extent
    if nest.parts not in nest.teams:
        fail("the axis of parts is not a team axis")
    if not nest.chunk * (parts - 1) < extent <= nest.chunk * parts:
        fail(f"{parts} parts of {nest.chunk} do not make {extent} entries")


class _Checker:
    """One traversal of the statements.

    ``sums``: the state of each sum; ``axes``: the axes that a scalar depends on;
    ``written``: the access to each output, and whether it was for each index of the
    members.
    """

    def __init__(self, nest, fail):
        self.nest, self.fail = nest, fail
        self.sums, self.axes, self.written = {}, {}, {}

    def run(self):
        self.body(self.nest.body, (), set())
        for out in self.nest.outputs:
            if out not in self.written:
                self.fail(f"{out} is never written")
        for sum_, state in self.sums.items():
            if state != "combined":
                self.fail(f"{sum_} is never combined")

    def body(self, body, path, known):
        for each in body:
            if type(each) is Members:
                self.members(each, path, known)
            elif type(each) is Guard:
                self.guard(each, path, known)
            else:
                _CHECKS[type(each)](self, each, path, known)

    # --- what threads do apart from each other

    def members(self, each, path, known):
        if path:
            self.fail("the loop over members is inside of a branch or another loop")
        self.body(each.body, (*path, each), set(known))

    def guard(self, each, path, known):
        if [e for e in each.body if type(e) is not Store]:
            self.fail("only some threads compute a value that all of them need")
        self.body(each.body, (*path, each), known)

    def combine(self, each, path, known):
        if path:
            self.fail("not all threads of a block reach a barrier")
        for sum_, ufunc in each.sums:
            if self.sums.get(sum_) != f"added by {ufunc}":
                self.fail(f"{sum_} is combined, but not accumulated by {ufunc}")
            self.sums[sum_] = "combined"
            known.add(sum_)
            added = self.axes.get(sum_, frozenset()) - {*self.nest.members}
            self.axes[sum_] = added | {self.nest.parts}

    # --- numbers

    def begin(self, each, path, known):
        if path:
            self.fail(f"{each} is repeated inside of a loop")
        self.sums[each.out] = f"begun by {each.ufunc}"

    def fold(self, each, path, known):
        self.use([each.value], known)
        begun = [f"begun by {each.ufunc}", f"added by {each.ufunc}"]
        if self.sums.get(each.out) not in begun:
            self.fail(f"{each} accumulates into a sum that was not begun")
        if [type(p) for p in path] != [Members]:
            self.fail(f"{each} does not run for each index of the members")
        self.sums[each.out] = f"added by {each.ufunc}"
        self.depend(each.out, [each.value, each.out])

    def compute(self, each, path, known):
        self.use(each.args, known)
        known.add(each.out)
        self.depend(each.out, each.args)

    def depend(self, out, scalars):
        """Record that a scalar depends on the axes of others."""
        axes = [self.axes.get(scalar, frozenset()) for scalar in scalars]
        self.axes[out] = frozenset().union(*axes)

    def use(self, scalars: list[Scalar], known):
        for scalar in scalars:
            if scalar.value is None and scalar not in known:
                self.fail(f"{scalar} is used before all threads have computed it")

    # --- memory

    def load(self, each, path, known):
        access, nest = each.access, self.nest
        self.within_bounds(each, path)
        known.add(each.out)
        self.axes[each.out] = frozenset([axis for axis, s in access.strides if s])
        if access.array in nest.outputs:
            self.load_back(each, path)
        elif _is_of_parts(access.array) and not _is_whole(access):
            self.fail(f"{each} skips parts of {access.array}")

    def load_back(self, each, path):
        """Check that the thread that reads an entry of an output has written it."""
        access, is_alone = each.access, self.nest.geometry.team == 1
        store, was_inner = self.written.get(access.array, (None, False))
        if store is None or store != access:
            self.fail(f"{each} reads an entry that was not written")
        elif not is_alone and not (was_inner and path):
            self.fail(f"{each} reads an entry that another thread has written")

    def store(self, each, path, known):
        access, nest = each.access, self.nest
        self.use([each.value], known)
        self.within_bounds(each, path)
        if access.array not in nest.outputs or access.array in self.written:
            self.fail(f"{access.array} is not an output, or is written twice")
        is_inner = any([type(p) is Members for p in path])
        self.written[access.array] = access, is_inner
        if not _is_whole(access):
            self.fail(f"{each} skips entries, or writes some twice")
        guards = [p for p in path if type(p) is Guard]
        if len(guards) != 1:
            self.fail(f"{each} runs for indices out of range")
            return
        self.by_one_thread(each, guards[0], is_inner)
        others = self.axes.get(each.value, frozenset()) - {
            axis for axis, _ in access.strides
        }
        if [axis for axis in others if axis is not None and axis.extent > 1]:
            self.fail(f"{each} stores one entry for all indices along {others}")

    def by_one_thread(self, each, guard, is_inner):
        """Check that each entry is written by exactly one thread."""
        nest, own = self.nest, {axis for axis, _ in each.access.strides}
        axes = {*nest.teams}
        if is_inner:  # each part has other indices of the members
            axes = axes - {nest.parts} | {*nest.members}
            if nest.parts in guard.zeros:
                self.fail(f"{each} skips all parts but the first")
        if not {a for a in axes - own if a.extent > 1} <= {*guard.zeros}:
            self.fail(f"{each} writes one entry several times")
        if not own.isdisjoint(guard.zeros):
            self.fail(f"{each} skips all indices but the first")
        if nest.geometry.team > 1 and guard.is_first == is_inner:
            who = "the first member" if is_inner else "all members"
            self.fail(f"{each} is executed by {who} of a team")

    def within_bounds(self, each, path):
        access, low = each.access, each.access.offset
        axes = {*self.nest.teams}
        if any([type(p) is Members for p in path]):
            axes |= {*self.nest.members}
        high = low
        for axis, stride in access.strides:
            if axis not in axes:
                self.fail(f"{each} needs an index for {axis}")
            low += min(0, stride * (axis.extent - 1))
            high += max(0, stride * (axis.extent - 1))
        if low < 0 or high >= access.array.size:
            self.fail(
                f"{each} accesses entries {low} to {high}, out of bounds of {access.array}"
            )


_CHECKS = {
    Begin: _Checker.begin,
    Fold: _Checker.fold,
    Combine: _Checker.combine,
    Load: _Checker.load,
    Compute: _Checker.compute,
    Store: _Checker.store,
}


def _is_whole(access):
    """Return whether an access covers each entry of its array once."""
    size = 1
    for axis, stride in sorted(access.strides, key=lambda pair: pair[1]):
        if axis.extent > 1 and stride != size:
            return False
        size *= axis.extent
    return access.offset == 0 and size == math.prod(access.array.shape)


def _is_of_parts(array):
    """Return whether an array holds the partial sums of the teams of another nest."""
    parts = getattr(array.instruction, "parts", None)
    if parts is None:
        return False
    stores = [
        e.access
        for guard in array.instruction.body
        if type(guard) is Guard
        for e in guard.body
    ]
    return any([s.array is array and parts in dict(s.strides) for s in stores])
