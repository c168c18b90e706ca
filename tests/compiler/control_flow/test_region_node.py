"""Nodes with regions: ports, narrowing, and the checks of what regions take and yield."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.control_flow.region_node import RegionNode
from tapewright.compiler.tracing.graph import Value

X = tw.TensorSpec([2, 3])


def node_of(function, *specs):
    """The first node with regions in the trace of a function."""
    graph = tw.function(function).get_concrete_function(*specs).graph
    return next(node for node in graph.nodes if isinstance(node, RegionNode))


def looped(x):
    """Three carried values: the second is used, the third alone depends on the fourth."""
    return tw.while_loop(
        lambda i, a, b, c: i < tw.cast(tw.reduce_sum(x), "int32"),
        lambda i, a, b, c: (i + 1, a * 2.0, b + c, c * x),
        (0, x, x, x),
    )


def chosen(x):
    return tw.cond(tw.reduce_sum(x) > 0, lambda: (x * 2.0, x), lambda: (x, tw.sin(x)))


def scanned(x):
    return tw.scan(lambda a, row: a * row, tw.tile(x, [4, 1]), tw.ones([3]))


def test_ports_name_what_the_node_and_its_regions_share():
    node = node_of(looped, X)
    body, test = node.region_ports()
    carried = [("carried", i) for i in range(4)]
    assert node.result_ports == [*carried, ("steps", 0)]
    assert [port for port in body[0] if port in body[1]] == carried
    assert list(test[1]) == [("condition", 0)]


def kept(node, *used):
    narrow, results, operands = node.narrowed(
        [i in used for i in range(len(node.outputs))]
    )
    ports = node.operand_ports
    return narrow, results, [ports[i] for i in operands if ports[i][0] != "constant"]


def test_a_loop_carries_what_later_steps_and_its_test_need():
    node = node_of(looped, X)
    narrow, results, operands = kept(node, 1)
    assert results == [0, 1, 4]  # the counter, for the test; the number of steps
    assert operands == [("carried", 0), ("carried", 1)]
    assert len(narrow.outputs) == 3 and narrow.carried == 2
    assert kept(node, 2)[2] == [("carried", 0), ("carried", 2), ("carried", 3)]
    assert node.narrowed([True] * 5) is None


def test_a_branch_takes_what_one_of_its_regions_needs():
    narrow, results, operands = node_of(chosen, X).narrowed([False, True])
    assert (results, operands) == ([1], [0, 1])
    assert all(len(region.outputs) == 1 for region in narrow.regions)


@pytest.mark.parametrize("function", [looped, chosen, scanned])
def test_regions_that_fit_are_accepted(function):
    node_of(function, X).check_regions()


def other(value):
    return Value((7,), np.dtype(np.float64))


@pytest.mark.parametrize("function", [looped, chosen, scanned])
@pytest.mark.parametrize(
    "change", ["operand", "argument", "yield", "missing", "result"]
)
def test_what_does_not_fit_is_refused(function, change):
    node = node_of(function, X)
    region = node.regions[-1] if change == "argument" else node.regions[0]
    if change == "operand":
        node.inputs = (*node.inputs[:-1], other(node.inputs[-1]))
    elif change == "argument":
        region.inputs[0] = other(region.inputs[0])
    elif change == "yield":
        region.outputs[0] = other(region.outputs[0])
    elif change == "missing":
        region.inputs.pop()
    else:
        node.outputs = (*map(other, node.outputs),)
    with pytest.raises(ValueError, match=node.name):
        node.check_regions()
