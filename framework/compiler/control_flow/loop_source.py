"""The function that runs a `Loop` on arrays, its steps written as source.

A step is one call of the body's replay function and little else, so that a loop of many
small steps costs what its ops cost.
"""

import numpy as np

from tapewright.core.emitter import Source

from ..tracing.handles import boxed, opened
from .row_updates import add_rows

__all__ = ["loop_function"]


def loop_function(node, replays, owned=(), sparse=()):
    """A function of arrays that returns the tuple of the node's outputs.

    ``owned``, ``sparse``: see `in_place.writing_body`.
    """
    steps = _Steps(node, owned, sparse).function()

    def loop(*arrays):
        instances = [replay.borrow() for replay in replays]
        try:
            return steps(*instances, *arrays)
        except Exception as error:
            for replay in replays:
                error = replay.plan.explained(error)
            raise error from None
        finally:
            for replay, instance in zip(replays, instances):
                replay.free.append(instance)

    return loop


class _Steps:
    """The source of ``loop(body, n, c0, x0, k0)``: one letter for each group."""

    def __init__(self, node, owned, sparse):
        self.node, self.owned, self.sparse = node, owned, sparse
        self.source = Source("<loop>")
        self.np = self.source.bind("np", np)
        operands = node.grouped(node.OPERANDS, node.inputs)
        _, self.sliced_operands, _ = operands[1:]
        self.count, self.carried, self.sliced, self.constants = [
            _names(letter, part) for letter, part in zip("ncxk", operands)
        ]
        region = node.regions[0]
        _, self.rows, _ = node.grouped(node.GROUPS[0][0], region.inputs)
        _, self.terms, self.stacked = node.grouped(node.GROUPS[0][1], region.outputs)
        self.sums, self.stacks = _names("s", self.terms), _names("y", self.stacked)

    def function(self):
        """The source, compiled."""
        functions = ["body", "test"] if self.node.tested else ["body"]
        groups = self.count + self.carried + self.sliced + self.constants
        with self.source.function("loop", [*functions, *groups]):
            rows = self.opened_rows()
            self.make_totals()
            with self.source.block(self.head()):
                self.step(rows)
            results = self.carried + self.sums
            if self.node.tested:
                results.append(f"{self.source.bind('int32', np.int32)}(i)")
            for y, value in zip(self.stacks, self.stacked):
                boxes = self.in_box(value)
                results.append(
                    f"{self.source.bind('boxed', boxed)}({y})" if boxes else y
                )
            self.source.emit(f"return {_tuple(results)}")
        return self.source.compiled()["loop"]

    def opened_rows(self):
        """Takes lists out of their boxes. Returns: the expressions for the row of a step."""
        expressions = []
        for x, value, given in zip(self.sliced, self.rows, self.sliced_operands):
            boxes = getattr(given, "array", given).dtype == object
            if boxes:
                dtype = self.source.bind("dtype", value.dtype)
                opening = (
                    f"{self.source.bind('opened', opened)}({x}, {value.shape}, {dtype})"
                )
                self.source.emit(f"{x} = {opening}")
            # With an ellipsis it is an array of rank 0, no number.
            expressions.append(f"{x}[i]" if boxes or value.shape else f"{x}[i, ...]")
        return expressions

    def head(self):
        """Sets the number of steps. Returns: the head of the loop."""
        node, emit = self.node, self.source.emit
        if node.tested:
            emit("i = 0")
            limit = "" if node.maximum is None else f"i < {node.maximum} and "
            return f"while {limit}test({', '.join(self.carried + self.constants)})[0]:"
        return f"for i in {'range(n - 1, -1, -1)' if node.reverse else 'range(n)'}:"

    def make_totals(self):
        """Makes sums and stacks, and copies of what the body writes to."""
        node, source = self.node, self.source
        if node.counted:
            source.emit("n = int(n0)")
        elif not node.tested:
            source.emit("n = len(x0)" if node.length is None else f"n = {node.length}")
        for s, value in zip(self.sums, self.terms):
            dtype = source.bind("dtype", value.dtype)
            source.emit(f"{s} = {self.np}.zeros({value.shape}, {dtype})")
        for y, value in zip(self.stacks, self.stacked):
            if self.in_box(value):
                source.emit(f"{y} = []" if node.tested else f"{y} = [None] * n")
                continue
            dtype = source.bind("dtype", value.dtype)  # one with a test may stop early
            make = "empty" if node.length is not None else "zeros"
            shape = (node.capacity, *value.shape)
            source.emit(f"{y} = {self.np}.{make}({shape}, {dtype})")
        for i in self.owned:
            source.emit(f"c{i} = {self.np}.array(c{i}, order='C')")

    def step(self, rows):
        """One call of the body, and what is done with all that it gives."""
        node, source = self.node, self.source
        terms = [f"new_{s}, at_{s}" if i in self.sparse else f"new_{s}"
                 for i, s in enumerate(self.sums)]  # fmt: skip
        given = [*self.carried, *terms, *[f"new_{y}" for y in self.stacks]]
        call = f"body({', '.join([*self.carried, *rows, *self.constants])})"
        source.emit(f"{', '.join(given)}, = {call}" if given else call)
        for i, s in enumerate(self.sums):
            if i in self.sparse:
                source.emit(
                    f"{source.bind('add_rows', add_rows)}({s}, new_{s}, at_{s})"
                )
            else:
                source.emit(f"{source.bind('add', np.add)}({s}, new_{s}, {s})")
        for y, value in zip(self.stacks, self.stacked):
            grows = node.tested and self.in_box(value)
            source.emit(f"{y}.append(new_{y})" if grows else f"{y}[i] = new_{y}")
        if node.tested:
            source.emit("i += 1")

    def in_box(self, value):
        """Whether the rows of a stack are a list, as their number or size is not known."""
        return self.node.capacity is None or value.dtype == object


def _names(letter, values):
    return [f"{letter}{i}" for i in range(len(values))]


def _tuple(names):
    return f"({''.join([f'{name}, ' for name in names])})"
