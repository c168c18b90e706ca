"""`ThreadNest`: one instruction that computes several others by many threads.

A block of threads consists of *teams*. A team has one index of the outer axes at a
time, and its threads, the *members*, share the indices of the reduced axes: each adds
up its own, and then the team combines the partial results of its members. A map has
teams of one thread.

Indices past the end of the outer axes are clamped to the last one, and store nothing.
So all threads of a block reach every barrier together.
"""

import math

from ..program.instruction import Instruction, Memory
from .statements import Load, Store
from .thread_statements import thread_statements
from .thread_verifier import verify_thread_nest

__all__ = ["ThreadNest", "made_nest"]


class ThreadNest(Instruction):
    """Several instructions, ``steps``, computed by teams of threads.

    ``teams`` are the axes of which each team has one index at a time, the last one
    changing fastest; ``members`` the axes that the threads of a team share. With
    ``parts``, the first of the teams' axes, a team has a part of the members' indices:
    ``chunk`` of them. ``limits``: the `Limits` of the program.
    """

    __slots__ = tuple("steps teams members parts chunk geometry body limits".split())
    memory, is_pure, is_free = Memory.ASSIGNED, True, False
    has_effect = may_alias = False

    def __init__(
        self, steps, operands, outputs, teams, members, geometry, body, limits,
        parts=None,
    ):  # fmt: skip
        super().__init__(operands, steps[-1].node)
        self.steps, self.outputs = tuple(steps), tuple(outputs)
        self.teams, self.members = tuple(teams), tuple(members)
        self.geometry, self.body, self.parts = geometry, body, parts
        self.limits = limits
        self.chunk = -(-self.extent // (1 if parts is None else parts.extent))
        for out in outputs:
            out.instruction = self

    @property
    def count(self):
        """The number of indices of the teams' axes."""
        return math.prod([a.extent for a in self.teams])

    @property
    def extent(self):
        """The number of indices of the members' axes."""
        return math.prod([a.extent for a in self.members])

    @property
    def name(self):
        names = [step.name for step in self.steps]
        return f"threads_of_{'_'.join(names[:3] + ['...'] * (len(names) > 3))}"

    def substitute(self, stands_for):
        raise NotImplementedError("the operands of a thread nest cannot be replaced")

    @property
    def in_place_operands(self):
        return self.operands

    def statements(self):
        """Return the statements in order, each with the statements around it."""
        return thread_statements(self.body)

    def is_done_with(self, operand, out):
        """Return whether every entry of an operand is read before ``out`` overwrites it.

        That is: the same thread reads and writes it, at the same indices.
        """
        if operand.dtype != out.dtype:
            return False
        where, is_written = set(), False
        for _, each in self.statements():
            access = getattr(each, "access", None)
            if access is None or access.array not in (operand, out):
                continue
            if access.array is operand and is_written:
                return False
            is_written = is_written or type(each) is Store
            if not self._is_of_one_thread(access):
                return False
            where.add((access.offset, frozenset(access.strides)))
        return is_written and len(where) == 1

    def _is_of_one_thread(self, access):
        """Return whether only one thread accesses an entry."""
        axes = {axis for axis, stride in access.strides if stride}
        needed = {*self.teams, *(self.members if self.geometry.team > 1 else ())}
        return {a for a in needed if a.extent > 1} <= axes

    def verify(self, place_of, fail):
        """Check the nest, and that no output overwrites values that are read later."""
        verify_thread_nest(self, fail)
        places = {a: place_of(a) for a in (*self.operands, *self.outputs)}
        for out in self.outputs:
            for operand in self.reads:
                a, b = places[operand], places[out]
                if a[0] == b[0] and a[1] < b[2] and b[1] < a[2]:
                    if a != b or not self.is_done_with(operand, out):
                        fail(f"{out} overwrites {operand}, which is still in use")


def made_nest(steps, teams, members, geometry, body, *how):
    """Return the nest of these statements, with the arrays that they load and store."""
    outputs = _arrays_of(body, Store)
    operands = [a for a in _arrays_of(body, Load) if a not in outputs]
    return ThreadNest(steps, operands, outputs, teams, members, geometry, body, *how)


def _arrays_of(body, kind):
    """Return the arrays accessed by statements of one kind, `Load` or `Store`, in order."""
    found = [e.access.array for _, e in thread_statements(body) if type(e) is kind]
    return list(dict.fromkeys(found))
