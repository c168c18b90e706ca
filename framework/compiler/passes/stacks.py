"""Rewrite a graph with pairs of values stacked, as `shared_weights` finds them."""

import numpy as np

from tapewright.core.tensor import new_tensor
from tapewright.ops.array import joining
from tapewright.ops.array.indexing import getitem_p

from ..tracing.graph import is_value
from .rewriting import GraphRewriter, shaped

__all__ = ["Pair", "Sum", "Writer"]

CONCAT, GETITEM = joining.concat_p.primitive, getitem_p.primitive


class Pair:
    """Two values, the second below the first: a copy of both, or an op on pairs.

    ``inputs``: for each input of ``node`` a `Pair`, or the input that both sides share.
    """

    __slots__ = ("values", "node", "inputs", "stack")

    def __init__(self, values, node=None, inputs=()):
        self.values, self.node, self.inputs = values, node, inputs
        self.stack = None  # the value of the new graph, once it is made


class Sum:
    """The sum of two products, or sums, over rows: a single one over the rows of both."""

    __slots__ = ("node", "inputs")

    def __init__(self, node, inputs):
        self.node, self.inputs = node, inputs  # the first of the two terms; pairs


class Writer(GraphRewriter):
    """Writes the new graph: each node or pair after its dependencies."""

    def __init__(self, stacker):
        super().__init__(stacker.graph)
        self.pairs, self.partner = stacker.pairs, stacker.partner
        self.sums, self.done, self.busy = stacker.sums, set(), set()

    def written(self):
        """Return the new graph; the old one if pairs depend on each other in a cycle."""
        terms = {x.node for node in self.sums for x in node.inputs}
        waiting = []  # pairs that come before the next effect
        try:
            for node in self.graph.nodes:
                pairs = [self.partner[v] for v in node.outputs if v in self.partner]
                waiting += pairs
                if node.is_effect:
                    while waiting:
                        self.demand(waiting.pop())
                if not pairs and node not in terms:
                    self.demand(node)
            for pair in waiting:
                self.demand(pair)
        except _Cycle:
            return self.graph
        return self.result()

    def demand(self, unit):
        """Write a node or a pair, after its dependencies."""
        waiting = [unit]
        while waiting:
            unit = waiting[-1]
            needed = [] if unit in self.done else self.needs(unit)
            if not needed:
                if unit not in self.done:
                    self.write(unit)
                    self.done.add(unit)
                waiting.pop()
            elif unit in self.busy:
                raise _Cycle
            else:
                self.busy.add(unit)
                waiting += needed

    def needs(self, unit):
        """Return the nodes and pairs that must be written before a node or a pair."""
        if type(unit) is Pair:
            inputs = unit.values if unit.node is None else unit.inputs
        else:
            inputs = self.sums.get(unit, unit).inputs
        units = [x if type(x) is Pair else self.unit(x) for x in inputs]
        return [u for u in units if u is not None and u not in self.done]

    def unit(self, x):
        """Return the pair or node that produces a value; None for inputs and constants."""
        if not is_value(x):
            return None
        return self.partner[x] if x in self.partner else x.node

    def write(self, unit):
        if type(unit) is Pair:
            self.write_pair(unit)
        elif unit in self.sums:
            found, out = self.sums[unit], unit.outputs[0]
            spec = out.shape, out.dtype
            self.replace(out, self.joint(found.node, found.inputs, spec, unit.line))
        else:
            self.keep(unit)

    def joint(self, node, inputs, spec, line):
        """Return the op of a node on stacks."""
        inputs = [x.stack if type(x) is Pair else self.current(x) for x in inputs]
        return self.make(node.op, inputs, node.attributes, line, spec)

    def write_pair(self, pair):
        """Write the stack of two values; if an op produces it, each value is a slice of it."""
        first, second = [shaped(v) for v in pair.values]
        rows, total = first.shape[0], first.shape[0] + second.shape[0]
        spec = (total, *first.shape[1:]), first.dtype
        if pair.node is None:
            pair.stack = self.copy([self.current(v) for v in pair.values], spec)
            return
        line = pair.node.line
        pair.stack = self.joint(pair.node, pair.inputs, spec, line)
        for value, part in zip(pair.values, ([0, rows, None], [rows, total, None])):
            spec = value.shape, value.dtype
            index = {"index": (part,)}
            self.replace(value, self.make(GETITEM, [pair.stack], index, line, spec))

    def copy(self, values, spec):
        if not any(map(is_value, values)):
            return new_tensor(np.concatenate([x.array for x in values]))
        line = next((x.node.line for x in values if is_value(x) and x.node), None)
        return self.make(CONCAT, values, {"axis": 0}, line, spec)


class _Cycle(Exception):
    """Two pairs depend on each other."""
