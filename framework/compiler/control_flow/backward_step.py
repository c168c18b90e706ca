"""One step of a loop's gradient: what goes into it, and what comes back."""

from tapewright.ops.array.creation import zeros

from ..tracing.tracer import SymbolicTensor
from .records import pulled_back
from .regions import spec_of

__all__ = ["BackwardStep"]


class BackwardStep:
    """One step back: the body of the gradient's loop, and what is what in it."""

    def __init__(self, node, pure, wanted):
        self.node, self.pure, self.wanted = node, pure, wanted
        own = node.carried - len(node.variables)
        # What a variable stands for is where a path starts, in each step anew.
        self.propagated = [i for i in range(own) if pure.inputs[i].dtype.kind in "fc"]
        stop = node.carried + node.sliced
        self.summed = [i for i in wanted if i >= stop or own <= i < node.carried]
        self.stacked = [i for i in wanted if node.carried <= i < stop]

    def places(self, of_sums, of_rows, given, rows):
        """Notes which cotangents there are, and how many slices of each kind."""
        self.sums = [i for i, c in enumerate(of_sums) if c is not None]
        self.rows = [i for i, c in enumerate(of_rows) if c is not None]
        self.given = given

    def body(self, state, slices, constants):
        node, pure = self.node, self.pure
        stop = node.carried + node.sliced
        further = slices[stop : stop + self.given]
        of_rows = slices[stop + self.given :][: len(self.rows)]
        after = slices[stop + self.given + len(self.rows) :]
        size = len(pure.inputs) - stop - self.given
        inputs = [*slices[:stop], *constants[:size], *further]
        cotangents = [None] * len(pure.outputs)
        for i, c in zip(self.propagated, state):
            cotangents[i] = c
        for i, c in zip(self.sums, constants[size:]):
            cotangents[node.carried + i] = c
        for i, c in zip(self.rows, of_rows):
            cotangents[node.carried + node.summed + i] = c
        numbers = list(dict.fromkeys([*self.propagated, *self.summed, *self.stacked]))
        found, outputs = pulled_back(
            pure, inputs, numbers, cotangents, node.of_variables
        )
        found = dict(zip(numbers, found))
        for i, known in zip(self.propagated, after):
            _put_in_place(known, outputs[i])
        state = [
            zeros(*spec_of(inputs[i])) if found[i] is None else found[i]
            for i in self.propagated
        ]
        return state, [found[i] for i in self.summed], [found[i] for i in self.stacked]

    def collected(self, last, sums, stacks):
        """The gradients in the order of the inputs that are wanted."""
        found = dict(zip(self.propagated, last))
        found |= dict(zip(self.summed, sums))
        found |= dict(zip(self.stacked, stacks))
        return [found[i] for i in self.wanted]


def _put_in_place(known, tensor):
    """Lets the nodes of the trace use a value that is known for one computed again.

    What leads to that one then need not be computed, if nothing else uses it.
    """
    if type(tensor) is not SymbolicTensor or tensor.tracer is not known.tracer:
        return
    old, new = tensor.symbol, known.symbol
    for node in known.tracer.graph.nodes:
        if any([x is old for x in node.inputs]):
            node.inputs = tuple([new if x is old else x for x in node.inputs])
