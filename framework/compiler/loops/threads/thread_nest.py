"""`ThreadNest`: one instruction that computes several others by many threads.

A block of threads consists of *teams*. A team has one index of the outer axes at a
time, and its threads, the *members*, share the indices of the reduced axes: each adds
up its own, and then the team combines the partial results of its members. A map has
teams of one thread.

Indices past the end of the outer axes are clamped to the last one, and store nothing.
So all threads of a block reach every barrier together.
"""

from ..nest import Nest, arrays_of
from ..statements import Load, Store, accesses_in, size_of
from ..verifier import verify_thread_nest


class ThreadNest(Nest):
    """Several instructions, ``steps``, computed by teams of threads.

    ``teams`` are the axes of which each team has one index at a time, the last one
    changing fastest; ``members`` the axes that the threads of a team share. With
    ``parts``, the first of the teams' axes, a team has a part of the members' indices:
    ``chunk`` of them. ``limits``: the `Limits` of the program.
    """

    __slots__ = ("teams", "members", "parts", "chunk", "geometry", "limits")
    kind = "threads"

    def __init__(self, steps, teams, members, geometry, body, limits, parts=None):
        outputs = arrays_of(body, Store)
        operands = [a for a in arrays_of(body, Load) if a not in outputs]
        super().__init__(steps, operands, outputs, body)
        self.teams, self.members = tuple(teams), tuple(members)
        self.geometry, self.limits, self.parts = geometry, limits, parts
        self.chunk = -(-self.extent // (1 if parts is None else parts.extent))

    @property
    def count(self):
        """The number of indices of the teams' axes."""
        return size_of(self.teams)

    @property
    def extent(self):
        """The number of indices of the members' axes."""
        return size_of(self.members)

    def indices_at(self, path):
        """Return no axes: one thread reads and writes an entry, see `is_done_with`."""
        return ()

    def is_done_with(self, operand, out):
        if operand.dtype != out.dtype:
            return False
        accesses = [access for _, access in accesses_in(self.body)]
        both = [a for a in accesses if a.array in (operand, out)]
        of_one = all([self._is_of_one_thread(access) for access in both])
        return of_one and super().is_done_with(operand, out)

    def _is_of_one_thread(self, access):
        """Return whether only one thread accesses an entry."""
        needed = {*self.teams, *(self.members if self.geometry.team > 1 else ())}
        return {a for a in needed if a.extent > 1} <= {*access.axes}

    def verify_statements(self, fail):
        verify_thread_nest(self, fail)
