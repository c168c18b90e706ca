"""`GraphRewriter`: a copy of a graph, made in one traversal, in which nodes are replaced.

Nodes whose inputs are unchanged are shared with the old graph; others are copied, so
the old graph does not change.
"""

import copy

from tapewright.core.tensor import TensorSpec

from ..tracing.graph import Node, Value, is_value


class GraphRewriter:
    """The nodes of the new graph, and the replacements for values of the old one."""

    def __init__(self, graph):
        self.graph, self.nodes, self.replacements = graph, [], {}

    def current(self, x):
        """Return an input in the new graph: a value or a constant."""
        return self.replacements.get(x, x) if is_value(x) else x

    def inputs(self, node):
        """Return the inputs of a node in the new graph; the same tuple if unchanged."""
        replacements = self.replacements
        for x in node.inputs:
            if type(x) is Value and x in replacements:
                return tuple([self.current(x) for x in node.inputs])
        return node.inputs

    def keep(self, node, inputs=None):
        """Add a node of the old graph; ``inputs`` are its inputs in the new graph."""
        inputs = self.inputs(node) if inputs is None else inputs
        self.nodes.append(node if inputs is node.inputs else self.copied(node, inputs))

    def copied(self, node, inputs):
        """Copy a node with other inputs; its outputs replace the original outputs."""
        if type(node) is Node:
            twin = Node(node.op, inputs, node.attributes, node.line)
        else:
            twin = copy.copy(node)
            twin.inputs = inputs
        twin.outputs = tuple(
            [Value(v.shape, v.dtype, twin, v.name) for v in node.outputs]
        )
        self.replacements.update(zip(node.outputs, twin.outputs))
        return twin

    def make(self, op, inputs, attributes, line, spec=None):
        """Add a node with one output, and return the output; ``spec``: shape and dtype."""
        node = Node(op, tuple(inputs), {**op.defaults, **attributes}, line)
        if spec is None:
            specs = [TensorSpec(shaped(x).shape, shaped(x).dtype) for x in inputs]
            inferred = op.infer_rule(*specs, **node.attributes)
            spec = tuple(inferred.shape), inferred.dtype.dtype
        (value,) = node.make_outputs([spec])
        value.name = f"{op.name}_new{len(self.nodes)}"
        self.nodes.append(node)
        return value

    def replace(self, value, other):
        """Replace a value by ``other``, a value of the new graph or a constant."""
        self.replacements[value] = other

    def result(self):
        """Return the new graph, or the old one if nothing has changed."""
        nodes, graph = self.nodes, self.graph
        if not self.replacements and len(nodes) == len(graph.nodes):
            return graph
        return graph.replaced(nodes, [self.current(x) for x in graph.outputs])


def rewrite(graph, rule):
    """Return a graph in which ``rule(rewriter, node, inputs)`` has replaced nodes.

    The rule returns None to keep a node, else the replacements of its outputs, None for
    an unused one. ``inputs`` are the inputs of the node in the new graph.
    """
    rewriter = GraphRewriter(graph)
    for node in graph.nodes:
        inputs = rewriter.inputs(node)
        replacements = rule(rewriter, node, inputs)
        if replacements is None:
            rewriter.keep(node, inputs)
            continue
        for value, other in zip(node.outputs, replacements):
            if other is not None:
                rewriter.replace(value, other)
    return rewriter.result()


def is_op(node):
    """Return whether a node is a plain op, called only for its results."""
    return type(node) is Node and node.op is not None and not node.op.collective


def shaped(x):
    """Return the object that carries an input's shape and dtype: the value, or the array."""
    return x if is_value(x) else x.array


def producer(x, primitive):
    """Return the node that produces ``x`` if its op is ``primitive``; else None."""
    node = x.node if is_value(x) else None
    return node if node is not None and node.op is primitive else None


def is_static(x):
    """Return whether a shape is known: a symbolic shape is not a plain tuple."""
    return type(x.shape) is tuple


def same_shape(a, b):
    """Return whether two values or arrays are known to have the same shape."""
    return is_static(a) and is_static(b) and a.shape == b.shape


def hashable(value):
    """Return a hashable form of an attribute that distinguishes 1, 1.0 and True, or None."""
    kind = type(value)
    if kind in (int, bool, str) or value is None:
        return kind, value
    if kind is float:
        return kind, value.hex()
    if kind is dict:
        parts = [(k, hashable(x)) for k, x in value.items()]
        return None if any([x is None for _, x in parts]) else tuple(parts)
    if kind in (tuple, list):
        parts = [hashable(x) for x in value]
        return None if None in parts else (kind, *parts)
    return None


def users_of(graph):
    """Map each value to the nodes that use it, and None if it is an output."""
    users = {}
    for node in graph.nodes:
        for x in set(filter(is_value, node.inputs)):
            users.setdefault(x, []).append(node)
    for x in filter(is_value, graph.outputs):
        users.setdefault(x, []).append(None)
    return users
