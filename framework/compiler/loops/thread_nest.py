"""`ThreadNest`: one instruction that computes several others by many threads.

A block of threads consists of *teams*. A team has one index of the outer axes at a time, and
its threads, the *members*, share the indices of the reduced axes: each adds up its own, and
then the team combines what its members have. A map has teams of one thread.

An index of the outer axes past the last one stands for the last one, and stores nothing. So
all threads of a block are in the same place at each barrier.
"""

import math

from ..program.instruction import Instruction, Memory
from .statements import Load, Store
from .thread_statements import thread_statements
from .thread_verifier import verify_thread_nest

__all__ = ["ThreadNest", "made_nest"]


class ThreadNest(Instruction):
    """``steps``, computed at once.

    ``teams`` are the axes of which each team has one index at a time, the last one changing
    fastest; ``members`` those that the threads of a team share. With ``parts``, the first
    of the teams' axes, a team has a part of the members' indices: ``chunk`` of them.
    ``limits``: those of the program.
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
        raise NotImplementedError("the operands of a nest stay as they are")

    @property
    def in_place_operands(self):
        return self.operands

    def statements(self):
        """The statements, in order, each with what is around it."""
        return thread_statements(self.body)

    def is_done_with(self, operand, out):
        """Return whether each entry of an operand is read before that of ``out``, which has
        the same place, is written: by the same thread, at the same indices."""
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
        """Return whether an entry that is accessed belongs to one thread."""
        axes = {axis for axis, stride in access.strides if stride}
        needed = {*self.teams, *(self.members if self.geometry.team > 1 else ())}
        return {a for a in needed if a.extent > 1} <= axes

    def verify(self, place_of, fail):
        """Check the nest, and that no output lies in the place of what is still read."""
        verify_thread_nest(self, fail)
        places = {a: place_of(a) for a in (*self.operands, *self.outputs)}
        for out in self.outputs:
            for operand in self.reads:
                a, b = places[operand], places[out]
                if a[0] == b[0] and a[1] < b[2] and b[1] < a[2]:
                    if a != b or not self.is_done_with(operand, out):
                        fail(
                            f"{out} is written over {operand}, which is still being read"
                        )


def made_nest(steps, teams, members, geometry, body, *how):
    """The nest of these statements, with what they load and store."""
    outputs = _arrays_of(body, Store)
    operands = [a for a in _arrays_of(body, Load) if a not in outputs]
    return ThreadNest(steps, operands, outputs, teams, members, geometry, body, *how)


def _arrays_of(body, kind):
    """The arrays that the statements of a kind, `Load` or `Store`, access, in order."""
    found = [e.access.array for _, e in thread_statements(body) if type(e) is kind]
    return list(dict.fromkeys(found))
