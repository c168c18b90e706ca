"""A graph of an ONNX file as a function: its nodes are called one after another.

Everything that the file may hold but tapewright cannot run is found when the graph is
made, and collected in `Refusals`. Ops that ONNX defines by other ops (`EXPANDED`) are
expanded when they are called, as their bodies depend on the inputs.
"""

from __future__ import annotations

import inspect
from collections import ChainMap

from tapewright.core.dtypes import as_dtype
from tapewright.core.shapes.symbolic_dim import is_symbolic
from tapewright.core.tensor import TensorSpec, convert_to_tensor
from tapewright.ops.array.conversion import identity

from . import EXPANDED, LIMITS, translation

# In the order of ONNX' DataType, from 1 on.
_NAMES = """
    float32 uint8 int8 uint16 int16 int32 int64 string bool float16 float64 uint32 uint64
    complex64 complex128 bfloat16
""".split()
# Attributes that name a dtype.
_DTYPES = "dtype", "output_dtype", "to"
# Kind of an attribute -> the field with the value.
_FIELDS = {1: "f", 2: "i", 3: "s", 4: "t", 5: "g", 6: "floats", 7: "ints", 8: "strings"}


class Refusals:
    """Descriptions of parts of a file that cannot run, with their number and first place."""

    def __init__(self):
        self.locations = {}  # description -> names of nodes and values

    def add(self, what, where):
        self.locations.setdefault(what, []).append(where)

    def __str__(self):
        return "; ".join(
            [
                f"{what} ({len(at)}, first at {at[0]!r})"
                for what, at in self.locations.items()
            ]
        )


def dtype_of(number):
    """Return the dtype of a number of ONNX' DataType, or None if tapewright lacks it."""
    return as_dtype(_NAMES[number - 1]) if 1 <= number <= len(_NAMES) else None


def spec_of(value, refusals):
    """Return the `TensorSpec` of an input or output; None if it is not a tensor."""
    kind, tensor = value.type.WhichOneof("value"), value.type.tensor_type
    dtype = dtype_of(tensor.elem_type) if kind == "tensor_type" else None
    if dtype is None:
        what = f"{kind} {tensor.elem_type}" if kind == "tensor_type" else kind
        refusals.add(f"values of the type {what}", value.name)
        return None
    if not tensor.HasField("shape"):
        return TensorSpec(None, dtype, name=value.name)
    sizes = [d.dim_value if d.WhichOneof("value") == "dim_value" else None
             for d in tensor.shape.dim]  # fmt: skip
    return TensorSpec(sizes, dtype, name=value.name)


class Context:
    """The package onnx, the arrays of a file and its refusals, for all of its graphs."""

    def __init__(self, onnx, tensors, refusals):
        self.onnx, self.tensors, self.refusals = onnx, tensors, refusals


class Graph:
    """The nodes of a graph in order, with their translations.

    Calling it with a scope (a mapping from names to tensors) and inputs runs the nodes and
    returns the outputs, a tuple.
    """

    def __init__(self, inputs, outputs, nodes, constants, opset, context):
        self.inputs, self.outputs = inputs, outputs
        self.constants = constants
        self.steps = [_Step(node, opset, context) for node in nodes]

    @classmethod
    def of(cls, proto, opset, context):
        """Return the graph of a ``GraphProto``; initializers take the place of inputs."""
        if proto.sparse_initializer:
            context.refusals.add("sparse initializers", proto.name)
        constants = {t.name: context.tensors.array(t) for t in proto.initializer}
        inputs = [value.name for value in proto.input if value.name not in constants]
        outputs = [value.name for value in proto.output]
        return cls(inputs, outputs, proto.node, constants, opset, context)

    def __call__(self, scope, *inputs):
        scope.update({n: convert_to_tensor(x) for n, x in self.constants.items()})
        scope.update(zip(self.inputs, inputs, strict=True))
        for step in self.steps:
            step.run(scope)
        return tuple([scope[name] if name else None for name in self.outputs])

    def behind_the_first_output(self):
        """Find the names and steps on which the first output of a loop body depends.

        A state depends on what the next state is computed from.
        """
        names, before = {self.outputs[0]}, 0
        carried = dict(zip(self.inputs[2:], self.outputs[1:]))
        while len(names) > before:
            before = len(names)
            names |= {carried[n] for n in names if n in carried}
            for step in reversed(self.steps):
                if not names.isdisjoint(step.outputs):
                    names.update(filter(None, step.inputs))
        return names, [s for s in self.steps if not names.isdisjoint(s.outputs)]


class _Step:
    """A node: the function that it calls, and the names of its operands and results."""

    def __init__(self, node, opset, context):
        self.op, self.inputs, self.outputs = node.op_type, node.input, node.output
        self.name = node.name or next(filter(None, node.output), "")
        self.attributes, self.graphs, self.function = {}, {}, None
        if node.domain not in ("", "ai.onnx"):
            context.refusals.add(f"the op {node.domain}::{self.op}", self.name)
            return
        if node.op_type in EXPANDED:
            self.function = _Expanded(node, opset, context)
            return
        self.function = translation(node.op_type, opset)
        if self.function is None:
            context.refusals.add(f"the op {self.op}", self.name)
            return
        for each in node.attribute:
            self._read(each, opset, context)
        parameters = inspect.signature(self.function).parameters
        if "output_count" in parameters:
            used = [i + 1 for i, name in enumerate(node.output) if name]
            self.attributes["output_count"] = max(used, default=1)
        self._check(context.refusals)

    def _read(self, attribute, opset, context):
        name, kind = attribute.name, attribute.type
        if kind not in _FIELDS:
            context.refusals.add(f"{self.op} with the attribute {name}", self.name)
            return
        value = getattr(attribute, _FIELDS[kind])
        if kind == 5:
            self.graphs[name] = Graph.of(value, opset, context)
            return
        if kind == 4:
            value = context.tensors.array(value)
        elif kind in (3, 8):
            value = value.decode() if kind == 3 else [text.decode() for text in value]
        elif kind in (6, 7):
            value = list(value)
        if name in _DTYPES and kind == 2:
            number, value = value, dtype_of(value)
            if value is None and number:
                context.refusals.add(f"{self.op} with {name}={number}", self.name)
        self.attributes[name] = value

    def _check(self, refusals):
        """Refuse attributes that the translation lacks or cannot run."""
        try:
            inspect.signature(self.function).bind(
                *[None] * len(self.inputs), **self.attributes, **self.graphs
            )
        except TypeError as error:
            refusals.add(f"{self.op}: {error}", self.name)
            return
        limit = LIMITS.get(self.op)
        reason = limit and limit(self.attributes, self)
        if reason:
            refusals.add(f"{self.op} with {reason}", self.name)

    def run(self, scope):
        operands = [scope[name] if name else None for name in self.inputs]
        bodies = {n: _Body(graph, scope) for n, graph in self.graphs.items()}
        try:
            results = self.function(*operands, **self.attributes, **bodies)
        except Exception as error:
            error.add_note(f"in the node {self.name!r} ({self.op}) of the ONNX graph")
            raise
        if not isinstance(results, (tuple, list)):
            results = (results,)
        scope.update({n: x for n, x in zip(self.outputs, results) if n})


class _Body:
    """A graph that sees the values around it: a function of its inputs."""

    def __init__(self, graph, scope):
        self.graph, self.scope = graph, scope

    def __call__(self, *inputs):
        outputs = self.graph(ChainMap({}, self.scope), *inputs)
        return tuple([identity(x) for x in outputs])


class _Expanded:
    """An op that ONNX defines by other ops, for given types and ranks of its inputs."""

    def __init__(self, node, opset, context):
        self.node, self.opset, self.context = node, opset, context
        self.graphs = {}  # types of inputs -> graph

    def __call__(self, *inputs):
        types = [self._type(x) for x in inputs]
        key = tuple(types)
        if key not in self.graphs:
            self.graphs[key] = self._graph(types)
        graph = self.graphs[key]
        absent = [None] * (len(graph.inputs) - len(inputs))
        return graph({}, *inputs, *absent)

    def _type(self, x):
        """Return the serialized ``TypeProto`` of an operand, with open sizes left out."""
        if x is None:
            return b""
        sizes = [None if is_symbolic(n) else n for n in tuple(x.shape)]
        number = _NAMES.index(x.dtype.name) + 1
        return self.context.onnx.helper.make_tensor_type_proto(
            number, sizes
        ).SerializeToString()

    def _graph(self, types):
        onnx, node = self.context.onnx, self.node
        schema = onnx.defs.get_schema(node.op_type, self.opset, "")
        versions = schema.context_dependent_function_opset_versions
        body, asked = onnx.FunctionProto(), [v for v in versions if v <= self.opset]
        if asked:
            text = schema.get_context_dependent_function_with_opset_version(
                max(asked), node.SerializeToString(), types
            )
        else:
            versions = [v for v in schema.function_opset_versions if v <= self.opset]
            text = schema.get_function_with_opset_version(max(versions))
        body.ParseFromString(text)
        version = max([o.version for o in body.opset_import if o.domain == ""] or [0])
        given = {a.name: a for a in body.attribute_proto}
        given.update({a.name: a for a in node.attribute})
        given = {**_defaults(schema), **given}
        nodes = [_with_attributes(onnx, each, given) for each in body.node]
        inputs = list(body.input)
        outputs = [name if used else "" for name, used in zip(body.output, node.output)]
        graph = Graph(inputs, outputs, nodes, {}, version, self.context)
        if self.context.refusals.locations:
            raise NotImplementedError(f"{node.op_type} needs {self.context.refusals}")
        return graph


def _defaults(schema):
    """Return the attributes that a schema has defaults for."""
    return {name: a.default_value for name, a in schema.attributes.items()
            if a.default_value.type}  # fmt: skip


def _with_attributes(onnx, node, given):
    """Return a node of a function body with attribute references resolved."""
    resolved = onnx.NodeProto()
    resolved.CopyFrom(node)
    del resolved.attribute[:]
    for each in node.attribute:
        if each.ref_attr_name:
            if each.ref_attr_name in given:
                added = resolved.attribute.add()
                added.CopyFrom(given[each.ref_attr_name])
                added.name = each.name
            continue
        added = resolved.attribute.add()
        added.CopyFrom(each)
        for i, inner in enumerate(each.g.node):
            added.g.node[i].CopyFrom(_with_attributes(onnx, inner, given))
    return resolved
