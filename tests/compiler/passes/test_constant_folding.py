"""Ops on constants are computed when a function is compiled."""

import numpy as np

import tapewright as tw
from tapewright.compiler.passes.constant_folding import constant_folding
from tapewright.compiler.passes.rewriting import GraphRewriter
from tapewright.compiler.tracing.graph import is_value

from .graphs import X, Y, assert_same, graph_of, names


def with_constant_input(function, array, *arrays):
    """A graph whose first input is a constant, as rules leave it behind."""
    graph = graph_of(function, array, *arrays)
    value, constant = graph.inputs[0], tw.constant(array)
    rewriter = GraphRewriter(graph)
    rewriter.replace(value, constant)
    for node in graph.nodes:
        rewriter.keep(node)
    result = rewriter.result()
    result.inputs = graph.inputs[1:]
    return result


def test_ops_on_constants_alone_are_computed_when_compiled():
    graph = with_constant_input(lambda c, x: x * tw.exp(tw.tanh(c)), Y, X)
    changed = constant_folding(graph)
    assert names(changed) == ["multiply"]
    assert_same(graph, changed, [X])


def test_a_large_result_is_not_kept_as_a_constant():
    graph = with_constant_input(
        lambda c, x: tw.tile(c, [999, 99]) + x, Y[:1, :1], X[:1, :1]
    )
    changed = constant_folding(graph)
    assert (
        max([x.array.size for n in changed.nodes for x in n.inputs if not is_value(x)])
        == 1
    )


def test_an_op_that_fails_is_left_to_the_replay():
    index, ones = np.array([1], np.int32), np.ones((1, 1), np.int32)
    graph = with_constant_input(lambda c, x: x + tw.unravel_index(c, [3]), index, ones)
    bad = [x if is_value(x) else tw.constant([7]) for x in graph.nodes[0].inputs]
    graph.nodes[0].inputs = tuple(bad)
    assert names(constant_folding(graph)) == names(graph)


def test_an_op_on_broadcast_numbers_is_folded_to_a_broadcast_number(numpy_target):
    def f(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            loss = 0.25 * tw.reduce_sum(tw.square(x))
        return tape.gradient(loss, x)

    x = tw.constant(np.linspace(-1.0, 1.0, 30000))
    traced = tw.function(f)
    np.testing.assert_array_equal(traced(x).numpy(), 0.5 * x.numpy())
    program = traced.get_concrete_function(x).executable.program
    (product,) = program.instructions
    assert product.scalar == "multiply"
    assert () in [a.shape for a in product.operands]
