"""Graphs of traced functions as bytes, in the format of TensorFlow's ``GraphDef``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tapewright.compiler.tracing.graph import Read, Write, is_value, spec_of
from tapewright.core.dtypes import as_dtype
from tapewright.core.shapes.symbolic_shape import static_shapes
from tapewright.io.tensor_protos import NUMBERS
from tapewright.storage.records.wire import put_bytes, put_int

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tapewright.compiler.tracing.graph import Graph

OPS = {Read: "ReadVariableOp", Write: "AssignVariableOp"}
RESOURCE = 20  # of types.proto, also for dtypes that it lacks


def run_metadata(graphs: Iterable[Graph]) -> bytes:
    """Return the ``RunMetadata`` that holds the graphs of functions.

    TensorBoard shows the graph before its optimization.
    """
    return b"".join([put_bytes(4, put_bytes(2, graph_def(graph))) for graph in graphs])


def graph_def(graph: Graph) -> bytes:
    """Return the ``GraphDef`` of a graph; its regions are scopes named after their node."""
    writer = _Writer()
    writer.add_graph(graph, "")
    return b"".join([put_bytes(1, node) for node in writer.nodes])


class _Writer:
    """The nodes of a ``GraphDef``, each with a unique name."""

    def __init__(self):
        self.nodes = []
        self.names = set()
        self.sources = {}  # value -> the text that names it as an input

    def add_graph(self, graph, scope):
        for i, value in enumerate(graph.inputs):
            self._add_input("_Arg", value, scope, f"input_{i}")
        for i, value in enumerate(graph.captures):
            self._add_input("Placeholder", value, scope, f"capture_{i}")
        for i, node in enumerate(graph.nodes):
            self._add_node(node, scope, i)
        for i, x in enumerate(graph.outputs):
            name = self._unique(f"{scope}output_{i}")
            self._add(name, "_Retval", [self._source(x, f"{name}/value")], [x])

    def _add_input(self, op, value, scope, default):
        name = self._unique(scope + (value.name or default))
        self.sources[value] = name
        self._add(name, op, [], [value])

    def _add_node(self, node, scope, number):
        default = node.outputs[0].name if node.outputs else None
        name = self._unique(scope + (default or f"{node.name}_{number}"))
        inputs = [
            self._source(x, f"{name}/input_{i}") for i, x in enumerate(node.inputs)
        ]
        for i, value in enumerate(node.outputs):
            self.sources[value] = f"{name}:{i}" if i else name
        self._add(name, _op_name(node), inputs, node.outputs or node.inputs[:1])
        for i, region in enumerate(node.regions):
            self.add_graph(region, f"{name}/region_{i}/")

    def _source(self, x, name):
        """Name a value as an input; a constant gets a separate node."""
        if is_value(x):
            return self.sources[x]
        name = self._unique(name)
        self._add(name, "Const", [], [x])
        return name

    def _unique(self, name):
        wanted, count = name, 0
        while name in self.names:
            count += 1
            name = f"{wanted}_{count}"
        self.names.add(name)
        return name

    def _add(self, name, op, inputs, typed):
        """Add a node with the dtype of the first of ``typed`` and the shapes of all."""
        specs = [spec_of(x) for x in typed]
        attributes = {"_output_shapes": put_bytes(1, b"".join(map(_shape, specs)))}
        if specs:
            attributes["T"] = put_int(6, _type(specs[0][1]))
        texts = [put_bytes(3, source.encode()) for source in inputs]
        entries = [
            put_bytes(5, put_bytes(1, key.encode()) + put_bytes(2, value))
            for key, value in attributes.items()
        ]
        head = put_bytes(1, name.encode()) + put_bytes(2, op.encode())
        self.nodes.append(b"".join([head, *texts, *entries]))


def _op_name(node):
    if node.op is not None:
        return node.op.type_name
    given = "".join([part.capitalize() for part in node.name.split("_")])
    return OPS.get(type(node), given)


def _shape(spec):
    """Return an entry of a list of shapes; unknown sizes are -1."""
    sizes = [-1 if n is None else n for n in static_shapes(spec[0])]
    return put_bytes(7, b"".join([put_bytes(2, put_int(1, n)) for n in sizes]))


def _type(dtype):
    return NUMBERS.get(as_dtype(dtype).name, RESOURCE)
