"""`LoopNest`: one instruction that computes several others in loops over their axes.

The outermost loops are split into blocks that may run in parallel. Their number depends
on sizes alone, and each block stores its partial sums separately; `finish` adds them
up. So the result does not depend on the number of threads.
"""

from ..program.instruction import Instruction, Memory
from .statements import Local, Span, statements_in
from .verifier import verify_nest

__all__ = ["LoopNest", "accesses_in"]


class LoopNest(Instruction):
    """Several instructions, ``steps``, computed in one loop nest.

    ``body`` are the statements of one block, ``blocks`` is the axis of blocks, and
    ``finish`` are the statements that run after all blocks. A block has one strip of
    each axis of ``grid``, pairs of an axis and a width, the last of which changes
    fastest from block to block. ``locals`` are its local arrays. ``in_blocks(n)``
    schedules the steps again in ``n`` blocks, or returns None.
    """

    __slots__ = (
        "steps", "blocks", "grid", "body", "finish", "locals", "work", "in_blocks",
    )  # fmt: skip
    memory, is_pure, is_free = Memory.ASSIGNED, True, False
    has_effect = may_alias = False

    def __init__(
        self, steps, operands, outputs, blocks, grid, body, finish, locals, work
    ):
        super().__init__(operands, steps[-1].node)
        self.steps, self.outputs = tuple(steps), tuple(outputs)
        self.blocks, self.grid, self.body, self.finish = blocks, grid, body, finish
        self.locals, self.work = locals, work  # work: of one block, in operations
        self.in_blocks = None
        for out in outputs:
            out.instruction = self

    @property
    def name(self):
        names = [step.name for step in self.steps]
        return f"loops_of_{'_'.join(names[:3] + ['...'] * (len(names) > 3))}"

    def substitute(self, stands_for):
        raise NotImplementedError("the operands of a loop nest cannot be replaced")

    @property
    def in_place_operands(self):
        return self.operands

    def statements(self):
        """The statements, in order, each with the loops around it."""
        return statements_in((*self.body, *self.finish))

    def is_done_with(self, operand, out):
        """Return whether every entry of an operand is read before ``out`` overwrites it.

        That is: at the same indices of the same axes, the reads come before the writes.
        """
        if operand in [a for _, _, a in accesses_in(self.finish)]:
            return False
        where, written = set(), False
        for path, access, array in accesses_in(self.body):
            if array is operand and written:
                return False
            if array in (operand, out):
                axes = tuple([id(a) for a in _axes(path)])
                where.add((axes, access.offset, frozenset(access.strides)))
            written = written or array is out
        return written and len(where) == 1

    def verify(self, place_of, fail):
        """Check the loops, and that no output overwrites values that are read later."""
        verify_nest(self, fail)
        places = {a: place_of(a) for a in (*self.operands, *self.outputs)}
        for out in self.outputs:
            for operand in self.reads:
                a, b = places[operand], places[out]
                if a[0] == b[0] and a[1] < b[2] and b[1] < a[2]:
                    if a != b or not self.is_done_with(operand, out):
                        fail(f"{out} overwrites {operand}, which is still in use")


def accesses_in(body):
    """Yield ``(path, access, array)`` of each access to memory outside the nest, in order."""
    for path, each in statements_in(body):
        access = getattr(each, "access", None)
        if access is not None and type(access.array) is not Local:
            yield path, access, access.array


def _axes(path):
    return [loop.axis for loop in path if loop.span is not Span.STRIPS]
