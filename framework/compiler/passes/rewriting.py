"""`GraphRewriter`: a new list of nodes made in one walk over a graph, which stays as it is.

Each pass that changes nodes uses one. Nodes whose inputs stay are taken over as they are;
others are made again, so that nothing that holds the graph as it was sees a change.
"""

import copy

from tapewright.core.tensor import TensorSpec

from ..tracing.graph import Node, Value, is_value

__all__ = [
    "GraphRewriter",
    "is_op",
    "is_static",
    "maker",
    "plain",
    "rewrite",
    "same_attributes",
    "same_shape",
    "shaped",
]


class GraphRewriter:
    """The nodes of a graph that is to be, and what stands for the values of the old one."""

    def __init__(self, graph):
        self.graph, self.nodes, self.stands_for = graph, [], {}

    def now(self, x):
        """Return what stands for an input: a value of the new graph, or a constant."""
        return self.stands_for.get(x, x) if is_value(x) else x

    def inputs(self, node):
        """The inputs of a node as they are now; the same tuple if none has changed."""
        stands_for = self.stands_for
        for x in node.inputs:
            if type(x) is Value and x in stands_for:
                return tuple([self.now(x) for x in node.inputs])
        return node.inputs

    def keep(self, node, inputs=None):
        """Takes a node of the old graph over; ``inputs``: as they are now."""
        inputs = self.inputs(node) if inputs is None else inputs
        self.nodes.append(node if inputs is node.inputs else self.again(node, inputs))

    def again(self, node, inputs):
        """The node with other inputs; its outputs stand for those that it had."""
        if type(node) is Node:
            twin = Node(node.op, inputs, node.attributes, node.line)
        else:
            twin = copy.copy(node)
            twin.inputs = inputs
        twin.outputs = tuple(
            [Value(v.shape, v.dtype, twin, v.name) for v in node.outputs]
        )
        self.stands_for.update(zip(node.outputs, twin.outputs))
        return twin

    def make(self, op, inputs, attributes, line, spec=None):
        """Adds a node with one output, which is returned; ``spec``: shape and dtype."""
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
        """From here on ``other``, a value of the new graph or a constant, stands for it."""
        self.stands_for[value] = other

    def result(self):
        """The new graph; the old one if nothing is different."""
        nodes, graph = self.nodes, self.graph
        if not self.stands_for and len(nodes) == len(graph.nodes):
            return graph
        return graph.replaced(nodes, [self.now(x) for x in graph.outputs])


def rewrite(graph, rule):
    """Return a graph in which ``rule(rewriter, node, inputs)`` has replaced nodes.

    It gives None for a node that stays, else what stands for the node's outputs from
    there on, one by one, None for one that nobody uses. ``inputs`` are those of the node
    as they are by then.
    """
    rewriter = GraphRewriter(graph)
    for node in graph.nodes:
        inputs = rewriter.inputs(node)
        found = rule(rewriter, node, inputs)
        if found is None:
            rewriter.keep(node, inputs)
            continue
        for value, other in zip(node.outputs, found):
            if other is not None:
                rewriter.replace(value, other)
    return rewriter.result()


def is_op(node):
    """Return whether a node is a plain op, the same whenever and how often it runs."""
    return type(node) is Node and node.op is not None


def shaped(x):
    """Return the object with an input's shape and dtype: the value, or the array."""
    return x if is_value(x) else x.array


def maker(x, primitive):
    """The node that gives ``x``, if it is one of ``primitive``; else None."""
    node = x.node if is_value(x) else None
    return node if node is not None and node.op is primitive else None


def is_static(x):
    """Return whether a shape is known: with formulas it is no plain tuple."""
    return type(x.shape) is tuple


def same_shape(a, b):
    """Return whether two values or arrays surely have the same shape."""
    return is_static(a) and is_static(b) and a.shape == b.shape


def same_attributes(a, b):
    """Return whether two nodes surely have the same attributes."""
    if not a.attributes and not b.attributes:
        return True
    known = plain(a.attributes)
    return known is not None and known == plain(b.attributes)


def plain(value):
    """A hashable twin of an attribute, in which 1, 1.0 and True differ; None: unknown."""
    kind = type(value)
    if kind in (int, bool, str) or value is None:
        return kind, value
    if kind is float:
        return kind, value.hex()
    if kind is dict:
        parts = [(k, plain(x)) for k, x in value.items()]
        return None if any([x is None for _, x in parts]) else tuple(parts)
    if kind in (tuple, list):
        parts = [plain(x) for x in value]
        return None if None in parts else (kind, *parts)
    return None
