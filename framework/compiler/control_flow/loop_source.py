"""Source of the function that runs a `LoopNode` on arrays.

A step is one call of an instance of the body and little else, so that a loop of many
small steps costs what its ops cost.
"""

from functools import partial

import numpy as np

from tapewright.core.hardware.devices import current_module
from tapewright.core.op_definition.emitter import Source

from ..tracing.handles import HANDLE, list_items, list_value, sum_of_lists
from .row_updates import add_rows


def loop_function(node, executables, owned=(), sparse=()):
    """Make a function of arrays that returns the tuple of the node's outputs.

    ``executables`` belong to the body, and to the test if there is one. For ``owned``
    and ``sparse``, see `row_updates.writing_body`.
    """
    named = dict(zip(("body", "test"), executables))
    return _LoopSource(node, owned, sparse).function(named)


class _LoopSource:
    """The source of ``loop(n0, c0, x0, k0)``: a letter for each group.

    Sums are ``s0``, stacks ``y0``.
    """

    def __init__(self, node, owned, sparse):
        self.node, self.owned, self.sparse = node, owned, sparse
        self.xp = current_module()  # of the arrays
        self.source, region = Source("<executable of a loop>"), node.regions[0]
        operands = node.grouped(node.OPERANDS, node.inputs)
        self.count, self.carried, self.sliced, self.constants = [
            _names(letter, part) for letter, part in zip("ncxk", operands)
        ]
        rows = node.grouped(node.GROUPS[0][0], region.inputs)[1]
        self.rows = list(zip(self.sliced, operands[2], rows))
        self.read = [
            name
            for name, x in zip(self.sliced + self.constants, operands[2] + operands[3])
            if getattr(x, "array", x).dtype != HANDLE
        ]
        _, terms, stacked = node.grouped(node.GROUPS[0][1], region.outputs)
        self.sums = list(zip(_names("s", terms), terms))
        self.stacks = [
            (y, v, self.is_list(v)) for y, v in zip(_names("y", stacked), stacked)
        ]

    def is_list(self, value):
        """Return whether a stack of such rows is a list value because its size is unknown."""
        return self.node.capacity is None or value.dtype == HANDLE

    def function(self, executables):
        """Write and compile the source; ``executables`` holds the regions' by name."""
        source, operands = self.source, self.carried + self.sliced + self.constants
        with source.function("loop", self.count + operands):
            rows = self.open_rows()
            self.put_in_order()
            self.make_totals()
            bound = {name: source.bind("exe", x) for name, x in executables.items()}
            for name, executable in bound.items():
                source.emit(f"{name} = {executable}.acquire()")
            with source.block("try:"), source.block(self.head()):
                self.step(rows)
            with source.block("except Exception as error:"):
                for executable in bound.values():
                    source.emit(f"error = {executable}.annotated(error)")
                source.emit("raise error from None")
            with source.block("finally:"):
                for name, executable in bound.items():
                    source.emit(f"{executable}.release({name})")
            self.give_results()
        return source.compiled()["loop"]

    def open_rows(self):
        """Open list values; return the expressions for the rows of a step."""
        rows = []
        for x, whole, row in self.rows:
            is_list = getattr(whole, "array", whole).dtype == HANDLE
            if is_list:
                function = self.source.bind("list_items", list_items)
                dtype = self.source.bind("dtype", row.dtype)
                self.source.emit(f"{x} = {function}({x}, {row.shape}, {dtype})")
            # With an ellipsis it is an array of rank 0, no number.
            rows.append(f"{x}[i]" if is_list or row.shape else f"{x}[i, ...]")
        return rows

    def put_in_order(self):
        """Copy arrays that are not in C order: native code would do so in each step."""
        function = self.source.bind("in_order", _in_order)
        for name in self.read:
            self.source.emit(f"{name} = {function}({name})")

    def make_totals(self):
        """Set the number of steps; allocate sums, stacks and copies of written arrays."""
        node, source = self.node, self.source
        numpy = source.bind("numpy", self.xp)
        if node.counted:
            source.emit("n = int(n0)")
        elif not node.tested:
            source.emit("n = len(x0)" if node.length is None else f"n = {node.length}")
        for s, value in self.sums:
            dtype, module = source.bind("dtype", value.dtype), numpy
            if value.dtype == HANDLE:
                module = source.bind("numpy", np)
            source.emit(f"{s} = {module}.zeros({value.shape}, {dtype})")
        # A loop with a count may stop before the end.
        make = f"{numpy}.empty" if node.length is not None else f"{numpy}.zeros"
        for y, value, is_list in self.stacks:
            if is_list:
                source.emit(f"{y} = []" if node.tested else f"{y} = [None] * n")
            else:
                dtype, shape = source.bind("dtype", value.dtype), value.shape
                source.emit(f"{y} = {make}({(node.capacity, *shape)}, {dtype})")
        for i in self.owned:
            source.emit(f"c{i} = {numpy}.array(c{i}, order='C')")
        if node.tested:
            source.emit("i = 0")

    def head(self):
        """Return the head of the loop."""
        node = self.node
        if not node.tested:
            return f"for i in {'range(n - 1, -1, -1)' if node.reverse else 'range(n)'}:"
        limit = "" if node.maximum is None else f"i < {node.maximum} and "
        return f"while {limit}test({', '.join(self.carried + self.constants)})[0]:"

    def step(self, rows):
        """Write one call of the body, and the updates of sums and stacks."""
        node, source = self.node, self.source
        terms = [f"new_{s}, at_{s}" if i in self.sparse else f"new_{s}"
                 for i, (s, _) in enumerate(self.sums)]  # fmt: skip
        names = [*self.carried, *terms, *[f"new_{y}" for y, _, _ in self.stacks]]
        call = f"body({', '.join(self.carried + rows + self.constants)})"
        source.emit(f"{', '.join(names)}, = {call}" if names else call)
        for i, (s, value) in enumerate(self.sums):
            if i in self.sparse:
                source.emit(
                    f"{source.bind('add_rows', add_rows)}({s}, new_{s}, at_{s})"
                )
            else:
                add = sum_of_lists if value.dtype == HANDLE else self.xp.add
                source.emit(f"{source.bind('add', add)}({s}, new_{s}, {s})")
        for y, _, is_list in self.stacks:
            grows = node.tested and is_list
            source.emit(f"{y}.append(new_{y})" if grows else f"{y}[i] = new_{y}")
        if node.tested:
            source.emit("i += 1")

    def give_results(self):
        """Write the return statement."""
        results = [*self.carried, *[s for s, _ in self.sums]]
        if self.node.tested:
            count = partial(self.xp.asarray, dtype=np.int32)
            results.append(f"{self.source.bind('int32', count)}(i)")
        for y, _, is_list in self.stacks:
            results.append(
                f"{self.source.bind('list_value', list_value)}({y})" if is_list else y
            )
        self.source.emit(f"return ({''.join([f'{name}, ' for name in results])})")


def _in_order(x):
    return np.asarray(x, order="C") if isinstance(x, np.ndarray) else x


def _names(letter, values):
    return [f"{letter}{i}" for i in range(len(values))]
