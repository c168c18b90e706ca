"""The order in which a plan changes variables: after all that may fail, where it can."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import registry
from tapewright.graph.planning.ordering import (
    FALLIBLE,
    WHOLE_NUMBERS,
    may_fail,
    safely_ordered,
)

X = tw.constant(np.array([[2.0, 1.0], [1.0, 3.0]]))


def graph_of(step):
    return tw.function(step).get_concrete_function(X).graph


def names(nodes):
    return [node.name for node in nodes]


@pytest.mark.parametrize("name", sorted(FALLIBLE | WHOLE_NUMBERS))
def test_an_op_that_may_fail_exists(name):
    assert registry.find("op", name).name == name


def test_a_step_in_which_nothing_may_fail_stays_as_it_is():
    w, rule = tw.Variable(X), tw.optimizers.SGD(0.1)

    def step(x):
        rule.apply_gradients([(x, w)])
        return tw.exp(x) + w

    graph = graph_of(step)
    assert safely_ordered(graph) == (graph.nodes, ([], []))


def test_what_may_fail_goes_before_an_update_with_all_that_it_needs():
    w, rule = tw.Variable(X), tw.optimizers.SGD(0.1)

    def step(x):
        rule.apply_gradients([(x, w)])
        return tw.linalg.cholesky(x * 2.0), tw.exp(x)

    nodes, kept = safely_ordered(graph_of(step))
    assert names(nodes) == ["multiply", "cholesky", "apply_gradients", "exp"]
    assert kept == ([], [])


def test_what_needs_the_update_stays_behind_it_and_the_variables_are_kept():
    w, other, rule = tw.Variable(X), tw.Variable(1.0), tw.optimizers.SGD(0.1)

    def step(x):
        rule.apply_gradients([(x, w)])
        other.assign(3.0)
        return tw.linalg.cholesky(w * 2.0)

    nodes, (in_place, others) = safely_ordered(graph_of(step))
    assert names(nodes)[:2] == ["apply_gradients", "read"]
    assert {id(v) for v in in_place} == {id(w), id(rule.iterations)} and others == []


def test_variables_stored_before_a_late_failure_are_kept_too():
    w, rule = tw.Variable(X), tw.optimizers.SGD(0.1)

    def step(x):
        w.assign_add(x)
        rule.apply_gradients([(x, w)])
        other = tw.linalg.cholesky(w)
        w.assign(other)
        rule.apply_gradients([(x, w)])
        return other

    _, (in_place, others) = safely_ordered(graph_of(step))
    assert id(w) in {id(v) for v in in_place} and others == []


def test_whole_numbers_alone_have_powers_that_fail():
    nodes = graph_of(
        lambda x: (tw.pow(x, x), tw.pow(*[tw.cast(x, tw.int32)] * 2))
    ).nodes
    powers = [node for node in nodes if node.name == "power"]
    assert [may_fail(node) for node in powers] == [False, True]
