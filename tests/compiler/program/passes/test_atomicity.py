"""The order in which an executable changes variables: after all that may fail, where it can."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.program.passes.atomicity import fallible_first, may_fail
from tapewright.core.primitive import get_primitive

X = tw.constant(np.array([[2.0, 1.0], [1.0, 3.0]]))


def graph_of(step):
    return tw.function(step).get_concrete_function(X).graph


def names(nodes):
    return [node.name for node in nodes]


def test_a_step_in_which_nothing_may_fail_stays_as_it_is():
    w, rule = tw.Variable(X), tw.optimizers.SGD(0.1)

    def step(x):
        rule.apply_gradients([(x, w)])
        return tw.exp(x) + w

    graph = graph_of(step)
    assert fallible_first(graph) == (graph.nodes, False)


def test_what_may_fail_goes_before_an_update_with_all_that_it_needs():
    w, rule = tw.Variable(X), tw.optimizers.SGD(0.1)

    def step(x):
        rule.apply_gradients([(x, w)])
        return tw.linalg.cholesky(x * 2.0), tw.exp(x)

    nodes, fails_late = fallible_first(graph_of(step))
    assert names(nodes) == ["multiply", "cholesky", "apply_gradients", "exp"]
    assert not fails_late


def test_what_needs_the_update_stays_behind_it_and_fails_late():
    w, other, rule = tw.Variable(X), tw.Variable(1.0), tw.optimizers.SGD(0.1)

    def step(x):
        rule.apply_gradients([(x, w)])
        other.assign(3.0)
        return tw.linalg.cholesky(w * 2.0)

    nodes, fails_late = fallible_first(graph_of(step))
    assert names(nodes)[:2] == ["apply_gradients", "read"]
    assert fails_late


def test_a_commit_that_may_fail_itself_fails_late():
    w, rule = tw.Variable(X), tw.optimizers.SGD(0.1)

    def step(x):
        def update():
            rule.apply_gradients([(tw.linalg.cholesky(x), w)])

        tw.cond(x[0, 0] > 0, update, lambda: None)

    assert fallible_first(graph_of(step))[1]


def test_whole_numbers_alone_have_powers_that_fail():
    nodes = graph_of(
        lambda x: (tw.pow(x, x), tw.pow(*[tw.cast(x, tw.int32)] * 2))
    ).nodes
    powers = [node for node in nodes if node.name == "power"]
    assert [may_fail(node) for node in powers] == [False, True]


def dividing(name):
    return lambda n: get_primitive(name).entry([7, 7], n)


# For each an op of whole numbers, and which of them it refuses.
REFUSING = {
    "floordiv": (dividing("floordiv"), [0, 1]),
    "floormod": (dividing("floormod"), [0, 1]),
    "truncatediv": (dividing("truncatediv"), [0, 1]),
    "truncatemod": (dividing("truncatemod"), [1, 0]),
    "power": (dividing("power"), [-1, 1]),
    "put_row": (
        lambda n: get_primitive("put_row").entry(tw.ones((3, 2)), n[0], tw.ones(2)),
        [3, 0],
    ),
    "clear_row": (
        lambda n: get_primitive("clear_row").entry(tw.ones((3, 2)), n[0]),
        [3, 0],
    ),
    "unravel_index": (lambda n: tw.unravel_index(n, (2, 3)), [6, 0]),
    "gather": (lambda n: tw.gather(tw.ones((3, 2)), n), [3, 0]),
    "is_last": (lambda n: get_primitive("is_last").entry(n, 3), [3, 0]),
}


@pytest.mark.parametrize("place", ["behind", "behind, of the variable", "in a branch"])
@pytest.mark.parametrize("name", sorted(REFUSING))
def test_a_call_that_fails_changes_no_variable(name, place):
    op, refused = REFUSING[name]
    w, rule = tw.Variable([1.0, 1.0]), tw.optimizers.Adam(0.1)
    other = tw.Variable(1.0)

    @tw.function
    def step(n):
        other.assign_add(1.0)
        rule.apply_gradients([(tw.ones(2), w)])
        if place == "behind":
            return op(n)
        if place == "in a branch":
            return tw.cond(n[0] > -9, lambda: op(n), lambda: op(n))
        return op(n + tw.cast(w * 0.0, "int32"))

    step(tw.constant([1, 1], "int32"))
    before = [v.numpy() for v in (w, other, rule.iterations)]
    with pytest.raises((ValueError, IndexError)):
        step(tw.constant(refused, "int32"))
    for variable, value in zip((w, other, rule.iterations), before):
        np.testing.assert_array_equal(variable, value)
