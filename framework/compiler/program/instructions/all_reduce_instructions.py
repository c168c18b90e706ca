"""Reductions over all processes: synchronous, or started early and awaited later."""

import numpy as np

from tapewright.core.communication.job import communicator

from ..program import Buffer
from .call_instructions import Opaque


class AllReduce(Opaque):
    """The operands reduced over all processes, in one message, for the given ``nodes``.

    The host takes part in it: a target that captures a CUDA graph ends the graph before
    it, and begins another one after it.
    """

    __slots__ = ("nodes",)
    may_alias = False
    is_tuple = True

    def __init__(self, operands, node, keywords, nodes=None):
        super().__init__(all_reduced, operands, node, keywords, new_memory=True)
        self.nodes = nodes or (node,)

    @property
    def collectives(self):
        return self.nodes


class StartAllReduce(AllReduce):
    """An all-reduce that overlaps with the program; its output is a pending handle.

    The operands must not change before the `WaitAllReduce`, which reads them, too.
    """

    __slots__ = ()
    is_tuple = False

    def __init__(self, operands, node, keywords, nodes):
        super().__init__(operands, node, keywords, nodes)
        self.function = started
        self.outputs = (Buffer((), np.dtype(object), instruction=self),)

    @property
    def op_name(self):
        return f"{self.node.name} (start)"


class WaitAllReduce(Opaque):
    """The results of a `StartAllReduce`, which produces the first operand."""

    __slots__ = ()
    may_alias, collectives = False, ()
    is_tuple = is_barrier = True

    def __init__(self, start, outputs):
        (pending,) = start.outputs
        operands = (pending, *start.operands)
        super().__init__(finished, operands, start.node, new_memory=True)
        self.outputs = outputs
        for out in outputs:
            out.instruction = self

    @property
    def start(self):
        return self.operands[0].instruction

    @property
    def op_name(self):
        return f"{self.node.name} (wait)"


def all_reduced(*arrays, reduction, compression):
    """Return the sums or means of arrays over all processes."""
    return communicator().all_reduce(arrays, reduction, compression)


def started(*arrays, reduction, compression):
    """Start the same reduction; return a handle for `finished`."""
    return communicator().start_all_reduce(arrays, reduction, compression)


def finished(pending, *arrays):
    """Return the results of a reduction that was started."""
    return pending.wait()
