"""Dead nodes and dead stores: what goes, and what stays."""

import tapewright as tw
from tapewright.compiler.passes.algebra import algebra
from tapewright.compiler.passes.dead_code import dead_nodes, dead_stores
from tapewright.compiler.pipeline import optimize
from tapewright.compiler.tracing.graph import Read, Write

from .graphs import X, after, graph_of, names


def test_nodes_that_lead_to_no_output_go():
    def f(x):
        tw.exp(tw.tanh(x))
        return x * 2.0

    assert names(after(dead_nodes, f, X)) == ["multiply"]


def test_reads_of_variables_that_nobody_needs_go():
    v = tw.Variable([1.0, 2.0, 3.0])

    def f(x):
        tw.square(v)
        return x + x

    assert names(after(dead_nodes, f, X)) == ["add"]


def test_an_assignment_is_kept_with_what_it_needs():
    v = tw.Variable(X)

    def f(x):
        v.assign(tw.tanh(x))
        return x

    assert names(after(dead_nodes, f, X)) == ["tanh", "store"]


def test_a_graph_without_dead_nodes_is_returned_as_it_is():
    graph = graph_of(lambda x: tw.exp(x), X)
    assert dead_nodes(graph) is graph


def test_a_variable_assigned_its_own_value_is_not_stored():
    v = tw.Variable(X)

    def f(x):
        v.assign(v.read())
        return x * v

    graph = algebra(graph_of(f, X))
    assert "store" in names(graph)
    assert names(dead_stores(graph)) == ["read", "multiply"]


def test_no_store_of_the_own_value_is_left_by_all_passes():
    v = tw.Variable(X)

    def f(x):
        v.assign(v.read())
        return x * v

    assert names(optimize(graph_of(f, X))) == ["read", "multiply"]


def test_of_two_stores_without_a_look_between_them_the_second_is_kept():
    v = tw.Variable(X)

    def f(x):
        v.assign(x)
        return tw.exp(x)

    graph = graph_of(f, X)
    *nodes, store = graph.nodes
    first = Write(v, graph.inputs[0])
    last = Write(v, nodes[0].outputs[0])
    twice = graph.replaced([*nodes, first, last])
    assert dead_stores(twice).nodes == [*nodes, last]


def test_a_store_is_kept_where_the_variable_is_read_before_the_next():
    v = tw.Variable(X)
    graph = graph_of(lambda x: tw.exp(x), X)
    first, read = Write(v, graph.inputs[0]), Read(v)
    last = Write(v, graph.nodes[0].outputs[0])
    nodes = [graph.nodes[0], first, read, last]
    assert dead_stores(graph.replaced(nodes)).nodes == nodes
