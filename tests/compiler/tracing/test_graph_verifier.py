"""The verifier of graphs: mistakes put into graphs, and into passes, are found."""

import functools
from unittest import mock

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler import pipeline
from tapewright.compiler.tracing.graph import Node, Read, ReadAgain, Value, Write
from tapewright.compiler.tracing.graph_verifier import (
    verify_effects,
    verify_graph,
)
from tapewright.compiler.tracing.tracer import Tracer
from tapewright.core.settings import config

from ..changed_passes import change_passes

X = np.array([[1.5, 2.0, 3.0], [-2.0, 0.5, 7.0]], np.float32)


def graph_of(function, *arrays):
    """A graph, not verified yet, whose list of nodes is its own, to be spoilt."""
    tensors = [tw.constant(a) for a in arrays or [X]]
    with mock.patch.object(config, "_verify", False):
        graph = tw.function(function).get_concrete_function(*tensors).graph
    return graph.replaced(list(graph.nodes), list(graph.outputs))


def chain(x):
    return tw.exp(tw.sin(x)) + 1.0


def counter():
    """A step that reads, assigns, prints, reads again and assigns again."""
    v = tw.Variable(tw.zeros([2, 3]))

    def step(x):
        y = x + v
        v.assign(y)
        tw.print("step", y)
        tw.py_function(lambda: None, [], [])
        v.assign_add(y)
        return y

    return step


def assert_found(graph, match):
    with pytest.raises(tw.errors.VerificationError, match=match):
        verify_graph(graph, "a pass")


# ------------------------------------------------------------------------- one graph


@pytest.mark.parametrize("function", [chain, counter()])
def test_a_graph_as_it_is_traced_is_right(function):
    graph = graph_of(function)
    verify_graph(graph, "tracing")
    verify_effects(graph, pipeline.optimize(graph), "all passes")


def test_a_value_used_before_it_is_made_is_found():
    graph = graph_of(chain)
    graph.nodes.reverse()
    assert_found(graph, "before it is made")


def test_a_value_made_twice_is_found():
    graph = graph_of(chain)
    graph.nodes.append(graph.nodes[-1])
    assert_found(graph, "makes .* again")


def test_an_output_that_no_node_makes_is_found():
    graph = graph_of(chain)
    graph.outputs = [Value((2, 3), np.dtype("f4"))]
    assert_found(graph, "is not made")


def test_an_array_among_the_inputs_is_found():
    graph = graph_of(chain)
    add = graph.nodes[-1]
    add.inputs = (add.inputs[0], X)
    assert_found(graph, "an input of ndarray")


@pytest.mark.parametrize("spec", [((3, 2), "f4"), ((2, 3), "f8"), ((2, 3, 1), "f4")])
def test_an_output_of_another_spec_than_the_op_infers_is_found(spec):
    graph = graph_of(chain)
    out = graph.nodes[0].outputs[0]
    out.shape, out.dtype = spec[0], np.dtype(spec[1])
    assert_found(graph, "sin")


def test_inputs_that_the_op_refuses_are_found():
    graph = graph_of(lambda x, y: x @ y, X, X.T)
    product = graph.nodes[0]
    product.inputs = (product.inputs[0], product.inputs[0])
    assert_found(graph, "matmul")


def test_outputs_that_the_op_has_not_are_found():
    graph = graph_of(chain)
    graph.nodes[0].outputs += (Value((2, 3), np.dtype("f4")),)
    assert_found(graph, "2 outputs")


def test_a_value_that_does_not_fit_its_variable_is_found():
    graph = graph_of(counter())
    (store, *_) = [n for n in graph.nodes if type(n) is Write]
    store.inputs = (tw.zeros([3]),)
    assert_found(graph, "the variable .* does not fit")


def test_a_read_of_another_dtype_than_its_variable_has_is_found():
    graph = graph_of(counter())
    (read, *_) = [n for n in graph.nodes if type(n) is Read]
    twin = Value((2, 3), np.dtype("f8"), read)
    for node in graph.nodes:
        node.inputs = tuple([twin if x in read.outputs else x for x in node.inputs])
    read.outputs = (twin,)
    assert_found(graph, "the variable .* does not fit")


def test_an_alias_of_another_dtype_is_found():
    v = tw.Variable(X)

    def f(x):
        v.assign(x)
        return v * 2.0

    graph = graph_of(f)
    (alias,) = [n for n in graph.nodes if type(n) is ReadAgain]
    alias.inputs = (tw.zeros([2, 3], "float64"),)
    assert_found(graph, "read_again")


def test_a_region_that_takes_what_its_node_was_not_given_is_found():
    def f(x):
        return tw.cond(tw.reduce_sum(x) > 0, lambda: x * 2.0, lambda: x)

    graph = graph_of(f)
    (node,) = [n for n in graph.nodes if n.regions]
    region = node.regions[0]
    region.captures = {Value((), np.dtype("f4")): tw.constant(1.0)}
    assert_found(graph, "captures")


def test_a_mistake_inside_of_a_region_is_found():
    def f(x):
        return tw.cond(tw.reduce_sum(x) > 0, lambda: x * 2.0 + 1.0, lambda: x)

    graph = graph_of(f)
    (node,) = [n for n in graph.nodes if n.regions]
    node.regions[0].nodes.reverse()
    assert_found(graph, "before it is made")


def loop_of(function):
    """The graph of a while loop that carries a matrix, and its node."""

    def f(x):
        start = tw.cast(x[0, 0], "int32")
        return tw.while_loop(lambda i, y: i < 10, function, [start, x])

    graph = graph_of(f)
    (node,) = [n for n in graph.nodes if n.regions]
    return graph, node


def test_operands_that_do_not_fit_a_region_are_found():
    graph, node = loop_of(lambda i, y: [i + 1, y * 2.0])
    *first, last = node.inputs
    node.inputs = (*first, tw.zeros([3, 2]))
    assert_found(graph, "while.* carried 1 is")
    node.inputs = (*first, last, last)
    assert_found(graph, "longer")


def test_a_region_that_yields_another_dtype_than_it_carries_is_found():
    graph, node = loop_of(lambda i, y: [i + 1, y * 2.0])
    body = node.regions[0]
    body.outputs = [body.outputs[0], tw.zeros([2, 3], "float64")]
    assert_found(graph, "while.* carried 1 is")


def test_nodes_that_lead_nowhere_may_use_what_is_gone():
    graph = graph_of(chain)
    sine = graph.nodes[0]
    graph.nodes.append(Node(sine.op, (Value((2, 3), np.dtype("f4")),), {}))
    verify_graph(graph, "a pass")


# --------------------------------------------------------------------------- effects


def changed(graph, change):
    nodes = list(graph.nodes)
    change(nodes)
    return graph.replaced(nodes)


def swap_effects(nodes):
    i, j = [k for k, n in enumerate(nodes) if n.is_effect and type(n) is not Write]
    nodes[i], nodes[j] = nodes[j], nodes[i]


def lose_an_effect(nodes):
    nodes.remove(next(n for n in nodes if n.name == "print"))


def double_an_effect(nodes):
    nodes.append(next(n for n in nodes if n.name == "print"))


def lose_the_last_store(nodes):
    nodes.remove([n for n in nodes if type(n) is Write][-1])


def read_later(nodes):
    first = next(n for n in nodes if type(n) is Read)
    nodes.remove(first)
    nodes.append(first)


@pytest.mark.parametrize(
    "change",
    [swap_effects, lose_an_effect, double_an_effect, lose_the_last_store, read_later],
)
def test_a_pass_that_spoils_effects_is_found(change):
    graph = graph_of(counter())
    with pytest.raises(tw.errors.VerificationError, match="after a pass"):
        verify_effects(graph, changed(graph, change), "a pass")


def test_stores_that_change_nothing_may_go():
    v = tw.Variable(X)

    def f(x):
        v.assign(v * 1.0)
        return x

    graph = graph_of(f)
    smaller = pipeline.optimize(graph)
    assert not [n for n in smaller.nodes if type(n) is Write]


# ------------------------------------------------------------------- where it is asked


def wrong(name, mistake):
    """A function of passes: the same ones, of which one makes a mistake."""

    def with_mistake(each):
        @functools.wraps(each)
        def spoiling(graph):
            return mistake(each(graph))

        return spoiling if each.__name__ == name else each

    return lambda passes: [with_mistake(each) for each in passes]


def widened(graph):
    """The graph with a wrong dtype in the middle."""
    nodes = list(graph.nodes)
    sine = nodes[0]
    twin = Node(sine.op, sine.inputs, sine.attributes, sine.line)
    twin.make_outputs([(v.shape, np.dtype("f8")) for v in sine.outputs])
    nodes[0] = twin
    for i, node in enumerate(nodes[1:], 1):
        inputs = [twin.outputs[0] if x is sine.outputs[0] else x for x in node.inputs]
        other = Node(node.op, tuple(inputs), node.attributes, node.line)
        other.outputs = node.outputs
        nodes[i] = other
    return graph.replaced(nodes)


def test_a_mistake_of_a_pass_is_found_when_a_function_is_compiled(monkeypatch):
    passes = wrong("constant_folding", widened)
    change_passes(monkeypatch, graph=passes)
    with pytest.raises(tw.errors.VerificationError, match="constant_folding: .*sin"):
        tw.function(chain)(tw.constant(X))


def test_a_mistake_of_the_tracer_is_found_when_a_function_is_traced(monkeypatch):
    right = Tracer.append

    def forgetful(self, node, outputs, many):
        made = right(self, node, outputs, many)
        if node.name == "sin":
            self.graph.nodes.pop()
        return made

    monkeypatch.setattr(Tracer, "append", forgetful)
    with pytest.raises(
        tw.errors.VerificationError, match="tracing: .*exp.*before it is made"
    ):
        tw.function(chain)(tw.constant(X))


def test_nothing_is_verified_where_it_was_not_asked_for(monkeypatch):
    monkeypatch.setattr(config, "_verify", False)
    passes = wrong("constant_folding", widened)
    change_passes(monkeypatch, graph=passes)
    assert pipeline.optimize(graph_of(chain)).nodes
