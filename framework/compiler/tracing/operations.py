"""A graph in TensorFlow's form: operations and tensors with names.

An operation is a node, an input, a variable or a constant of the graph. Its name is the
name that symbolic tensors print, ``matmul_0``; its type is TensorFlow's if TensorFlow
has the op (``MatMul``), and otherwise the op's name here (``MultiplyAdd``).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from tapewright.core.dtypes import DType, as_dtype, resource
from tapewright.core.shapes.symbolic_shape import static_shapes
from tapewright.core.shapes.tensor_shape import TensorShape
from tapewright.core.tensor import Tensor

if TYPE_CHECKING:
    from .graph import Graph

TYPES = {  # of nodes without an op
    "read": "ReadVariableOp",
    "read_again": "ReadVariableOp",
    "store": "AssignVariableOp",
    "cond": "If",
    "switch_case": "Case",
    "for": "While",
    "while_loop": "While",
}


class GraphTensor:
    """An output of an operation: ``name`` ("matmul_0:0"), ``shape``, ``dtype``, ``op``."""

    def __init__(self, op: Operation, index: int, shape: Any, dtype: Any):
        self.op, self.value_index = op, index
        self.shape: TensorShape = TensorShape(static_shapes(shape))
        self.dtype: DType = as_dtype(dtype)

    @property
    def name(self) -> str:
        return f"{self.op.name}:{self.value_index}"

    @property
    def graph(self) -> Graph:
        return self.op.graph

    def get_shape(self) -> TensorShape:
        """Return ``shape``."""
        return self.shape

    def consumers(self) -> list[Operation]:
        """Return the operations that use it as an input."""
        return [op for op in self.graph.get_operations() if self in op.inputs]

    def __repr__(self):
        return f"<tf.Tensor {self.name!r} shape={self.shape} dtype={self.dtype.name}>"


class Operation:
    """A node of a graph, an input, a variable or a constant.

    ``name``, ``type``, ``inputs`` and ``outputs`` (tuples of `GraphTensor`) are as in
    TensorFlow.
    """

    device = ""

    def __init__(self, graph, name, type_, inputs=(), attributes=None):
        self.graph: Graph = graph
        self.name: str = name
        self.type: str = type_
        self.inputs: tuple[GraphTensor, ...] = tuple(inputs)
        self.outputs: tuple[GraphTensor, ...] = ()
        self._attributes = attributes or {}

    @property
    def node_def(self) -> NodeDef:
        """Name, type and names of the inputs."""
        inputs = [x.name.removesuffix(":0") for x in self.inputs]
        return NodeDef(self.name, self.type, inputs, dict(self._attributes))

    def values(self) -> tuple[GraphTensor, ...]:
        """Return ``outputs``."""
        return self.outputs

    def get_attr(self, name: str) -> Any:
        """Return an attribute: an argument of the op that is not a tensor.

        Raises:
            ValueError: If there is no attribute of that name.
        """
        if name not in self._attributes:
            raise ValueError(
                f"Operation {self.name!r} has no attribute {name!r}; it has "
                f"{sorted(self._attributes)}"
            )
        return self._attributes[name]

    def __repr__(self):
        return f"<tf.Operation {self.name!r} type={self.type}>"


class NodeDef(NamedTuple):
    """An operation in plain values."""

    name: str
    op: str
    input: list[str]
    attr: dict[str, Any]


class FunctionDef(NamedTuple):
    """A branch or body that a node of control flow runs."""

    name: str
    node_def: list[NodeDef]


class FunctionLibrary(NamedTuple):
    """The branches and bodies of a graph."""

    function: list[FunctionDef]


class GraphDef(NamedTuple):
    """The operations of a graph in plain values."""

    node: list[NodeDef]
    library: FunctionLibrary


class GraphOperations:
    """The part of `Graph` that presents it in TensorFlow's form."""

    _operations = None  # of a graph that is finished

    def get_operations(self) -> list[Operation]:
        """Return the operations in the order in which they run."""
        if self._operations is None:
            operations = _View(self).operations
            if not self.finished:
                return operations
            self._operations = operations
        return list(self._operations)

    def get_operation_by_name(self, name: str) -> Operation:
        """Return the operation with a name, such as "matmul_0".

        Raises:
            KeyError: If there is no such operation.
            ValueError: If this is the name of a tensor.
        """
        if ":" in name:
            raise ValueError(f"{name!r} is the name of a tensor, not of an operation")
        for op in self.get_operations():
            if op.name == name:
                return op
        names = [op.name for op in self.get_operations()]
        raise KeyError(
            f"the graph {self.name!r} has no operation {name!r}; it has {names}"
        )

    def get_tensor_by_name(self, name: str) -> GraphTensor:
        """Return the output of an operation, such as "matmul_0:0".

        Raises:
            KeyError: If there is no such tensor.
            ValueError: If the name has no output number.
        """
        op_name, colon, index = name.rpartition(":")
        if not (colon and index.isdecimal()):
            raise ValueError(
                f"{name!r} must be the name of an operation and the number of its output, "
                f"such as '{name}:0'"
            )
        outputs = self.get_operation_by_name(op_name).outputs
        if int(index) >= len(outputs):
            raise KeyError(
                f"the operation {op_name!r} has {len(outputs)} outputs, not {name!r}"
            )
        return outputs[int(index)]

    def as_graph_def(self) -> GraphDef:
        """Return the operations as plain values, including branches and loop bodies."""
        functions = [
            FunctionDef(region.name, region.as_graph_def().node)
            for region in self._regions()
        ]
        nodes = [op.node_def for op in self.get_operations()]
        return GraphDef(nodes, FunctionLibrary(functions))

    def _regions(self):
        """Yield the graphs that nodes run, at any depth."""
        for node in self.nodes:
            for region in node.regions:
                yield region
                yield from region._regions()


class _View:
    """Build the operations of a graph."""

    def __init__(self, graph):
        self.graph, self.operations = graph, []
        self.tensors = {}  # value -> tensor
        self.taken = set()
        self.handles = {}  # id of a variable -> tensor
        for value in (*graph.inputs, *graph.captures):
            op = self.add(value.name or "input", "Placeholder")
            self.finish(op, [value])
        for node in graph.nodes:
            self.add_node(node)

    def add(self, name, type_, inputs=(), attributes=None):
        unique, count = name, 0
        while unique in self.taken:
            count += 1
            unique = f"{name}_{count}"
        self.taken.add(unique)
        return Operation(self.graph, unique, type_, inputs, attributes)

    def finish(self, op, values):
        outputs = [GraphTensor(op, i, v.shape, v.dtype) for i, v in enumerate(values)]
        op.outputs = tuple(outputs)
        self.tensors.update(zip(values, outputs))
        self.operations.append(op)

    def add_node(self, node):
        variables = {id(v): v for v in (*node.reads, *node.writes)}.values()
        inputs = [self.handle(v) for v in variables]
        inputs += [self.tensor(x) for x in node.inputs]
        named = [value.name for value in node.outputs if value.name]
        name = named[0] if named else node.name
        op = self.add(name, _type_of(node), inputs, node.attributes)
        self.finish(op, node.outputs)

    def tensor(self, x):
        """The tensor of a value, or of a constant."""
        if not isinstance(x, Tensor):
            return self.tensors[x]
        op = self.add("Const", "Const", attributes={"value": x})
        return self.source(op, x.shape, x.dtype)

    def handle(self, variable):
        """Return the tensor that represents a variable."""
        if id(variable) not in self.handles:
            op = self.add(f"{variable.path}/resource", "Placeholder")
            self.handles[id(variable)] = self.source(op, (), resource)
        return self.handles[id(variable)]

    def source(self, op, shape, dtype):
        op.outputs = (GraphTensor(op, 0, shape, dtype),)
        self.operations.append(op)
        return op.outputs[0]


def _type_of(node):
    if node.op is not None:
        return node.op.type_name
    words = re.split(r"\W+|_", node.name)
    return TYPES.get(node.name) or "".join([word.title() for word in words])
