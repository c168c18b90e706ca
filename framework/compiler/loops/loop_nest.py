"""`LoopNest`: one instruction that computes several others in loops over their axes.

The outermost loops are split into blocks that may run in parallel. Their number depends
on sizes alone, and each block stores its partial sums separately; `finish` adds them
up. So the result does not depend on the number of threads.
"""

from .index_splitting import reads_before_writes
from .nest import Nest
from .statements import Span, accesses_in
from .verifier import verify_loop_nest


class LoopNest(Nest):
    """Several instructions, ``steps``, computed in one loop nest.

    ``body`` are the statements of one block, ``blocks`` is the axis of blocks, and
    ``finish`` are the statements that run after all blocks. A block has one strip of
    each axis of ``grid``, pairs of an axis and a width, the last of which changes
    fastest from block to block. ``locals`` are its local arrays. ``in_blocks(n)``
    schedules the steps again in ``n`` blocks, or returns None.
    """

    __slots__ = ("blocks", "grid", "finish", "locals", "work", "in_blocks")
    kind = "loops"

    def __init__(
        self, steps, operands, outputs, blocks, grid, body, finish, locals, work
    ):
        super().__init__(steps, operands, outputs, body)
        self.blocks, self.grid, self.finish = blocks, grid, finish
        self.locals, self.work = locals, work  # work: of one block, in operations
        self.in_blocks = None

    def accesses(self):
        return accesses_in((*self.body, *self.finish))

    def indices_at(self, path):
        return tuple([loop.axis for loop in path if loop.span is not Span.STRIPS])

    def is_done_with(self, operand, out):
        late = [access.array for _, access in accesses_in(self.finish)]
        if operand in late:
            return False
        is_done = super().is_done_with(operand, out)
        return is_done or reads_before_writes(self.body, operand, out)

    def verify_statements(self, fail):
        verify_loop_nest(self, fail)
