"""`Nest`: one instruction that computes several others, statement by statement."""

from abc import ABC, abstractmethod

from ..program.instructions.instruction import Instruction, Memory
from .statements import Local, accesses_in, statements_in


class Nest(Instruction, ABC):
    """Several instructions, ``steps``, computed at once by the statements of ``body``."""

    __slots__ = ("steps", "body")
    memory, is_pure, is_free = Memory.ASSIGNED, True, False
    has_effect = may_alias = False
    kind = "nest"  # what it consists of, for its name

    def __init__(self, steps, operands, outputs, body):
        super().__init__(operands, steps[-1].node)
        self.steps, self.outputs, self.body = tuple(steps), tuple(outputs), body
        for out in outputs:
            out.instruction = self

    @property
    def name(self):
        names = [step.name for step in self.steps]
        return f"{self.kind}_of_{'_'.join(names[:3] + ['...'] * (len(names) > 3))}"

    def substitute(self, stands_for):
        raise NotImplementedError("the operands of a nest cannot be replaced")

    @property
    def in_place_operands(self):
        return self.operands

    def accesses(self):
        """Return all accesses to memory outside the nest, as `accesses_in` yields them."""
        return accesses_in(self.body)

    @abstractmethod
    def indices_at(self, path):
        """Return the axes whose indices a statement has inside the loops ``path``."""

    def is_done_with(self, operand, out):
        """Return whether every entry of an operand is read before ``out`` overwrites it.

        That is: at the same indices of the same axes, the reads come before the writes.
        """
        where, is_written = set(), False
        for path, access in accesses_in(self.body):
            if access.array is operand and is_written:
                return False
            if access.array in (operand, out):
                entry = access.offset, frozenset(access.strides), access.bounds
                where.add((self.indices_at(path), *entry))
            is_written = is_written or access.array is out
        return is_written and len(where) == 1

    @abstractmethod
    def verify_statements(self, fail):
        """Call ``fail`` with a description of each error in the statements."""

    def verify(self, location_of, fail):
        """Check the statements, and that no output overwrites values read later."""
        self.verify_statements(fail)
        locations = {a: location_of(a) for a in (*self.operands, *self.outputs)}
        for out in self.outputs:
            for operand in self.reads:
                a, b = locations[operand], locations[out]
                if a[0] == b[0] and a[1] < b[2] and b[1] < a[2]:
                    if a != b or not self.is_done_with(operand, out):
                        fail(f"{out} overwrites {operand}, which is still in use")


def arrays_of(body, kind):
    """Return the arrays of the program that all `Load`s or `Store`s access, in order."""
    arrays = [
        each.access.array for _, each in statements_in(body) if type(each) is kind
    ]
    return list(dict.fromkeys([a for a in arrays if type(a) is not Local]))
