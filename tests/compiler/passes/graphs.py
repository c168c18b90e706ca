"""Graphs of functions before and after a pass, held against each other."""

import numpy as np

import tapewright as tw
from tapewright.compiler.passes.dead_code import dead_nodes
from tapewright.compiler.tracing.interpret import interpret

X = np.array([[1.5, -0.0, 3.0], [-2.0, 0.0, np.inf]], np.float32)
Y = np.array([[-0.0, 4.0, 0.1], [7.0, -1e-40, 1.0]], np.float32)


def graph_of(function, *arrays):
    """The graph of a function as it was traced."""
    tensors = [tw.constant(a) for a in arrays]
    return tw.function(function).get_concrete_function(*tensors).graph


def names(graph):
    return [node.name for node in graph.nodes]


def after(pass_, function, *arrays):
    """The graph of a function after one pass, and without what is dead."""
    graph = graph_of(function, *arrays)
    changed = pass_(graph)
    changed.check()
    assert_same(graph, changed, arrays)
    return dead_nodes(changed)


def outputs_of(graph, arrays):
    with np.errstate(all="ignore"):
        return [x.numpy() for x in interpret(graph, [tw.constant(a) for a in arrays])]


def assert_same(graph, other, arrays):
    """Both give the same bits; the sign of a NaN is not looked at."""
    expected, found = outputs_of(graph, arrays), outputs_of(other, arrays)
    assert len(expected) == len(found)
    for a, b in zip(expected, found, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_array_equal(a, b)
        if a.dtype.kind == "f":
            signed = ~np.isnan(a)
            np.testing.assert_array_equal(np.signbit(a)[signed], np.signbit(b)[signed])
