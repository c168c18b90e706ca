"""Algebraic rules: what each makes of an expression, and what it must leave alone.

`test_rewrites` tries every rule on special values.
"""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.passes.algebra import algebra
from tapewright.compiler.tracing.graph import is_value

from .graphs import X, Y, after, graph_of, names


def simplified(function, *arrays):
    """Names of the ops that are left of a function."""
    return names(after(algebra, function, *arrays))


GONE = {
    "x * 1": lambda x: x * 1.0,
    "1 * x": lambda x: 1.0 * x,
    "ones * x": lambda x: tw.ones([2, 3]) * x,
    "a row of ones * x": lambda x: tw.ones([3]) * x,
    "x / 1": lambda x: x / 1.0,
    "x - 0": lambda x: x - 0.0,
    "x + -0": lambda x: x + (-0.0),
    "-(-x)": lambda x: tw.negative(-x),
    "identity": lambda x: tw.identity(x),
    "stop_gradient": lambda x: tw.stop_gradient(x),
    "reshape to its shape": lambda x: tw.reshape(x, [2, 3]),
    "reshape and back": lambda x: tw.reshape(tw.reshape(x, [6]), [2, 3]),
    "expand and squeeze": lambda x: tw.squeeze(tw.expand_dims(x, 1), 1),
    "transpose twice": lambda x: tw.transpose(tw.transpose(x)),
    "transpose by nothing": lambda x: tw.transpose(x, [0, 1]),
    "transpose from both ends": lambda x: tw.transpose(tw.transpose(x, [1, 0]), [-1, -2]),
    "cast and back": lambda x: tw.cast(tw.cast(x, "float64"), "float32"),
    "broadcast to its shape": lambda x: tw.broadcast_to(x, [2, 3]),
    "concat of one": lambda x: tw.concat([x], 0),
    "where true": lambda x: tw.where(tw.constant([[True]]), x, tw.zeros([2, 3])),
    "where false": lambda x: tw.where(tw.fill([2, 3], False), tw.zeros([2, 3]), x),
    "several at once": lambda x: -(tw.identity(-(x * 1.0)) / 1.0) - 0.0,
}  # fmt: skip


@pytest.mark.parametrize("name", GONE)
def test_what_changes_nothing_goes(name):
    assert simplified(GONE[name], X) == []


KEPT = {
    "x + 0 makes 0.0 of -0.0": lambda x: x + 0.0,
    "x - -0 too": lambda x: x - (-0.0),
    "0 + x too": lambda x: 0.0 + x,
    "x * 2": lambda x: x * 2.0,
    "x / 3": lambda x: x / 3.0,
    "x * 1 that makes it larger": lambda x: x * tw.ones([4, 2, 3]),
    "cast to a narrower dtype and back": lambda x: tw.cast(tw.cast(x, "float16"), "float32"),
    "cast to int and back": lambda x: tw.cast(tw.cast(x, "int32"), "float32"),
    "almost ones": lambda x: x * tw.constant([[1.0, 1.0, 1.0], [1.0, 2.0, 1.0]]),
    "where that broadcasts": lambda x: tw.where(tw.constant(True), x[0], x),
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_what_changes_a_bit_stays(name):
    array = Y if "int" in name else X
    before = names(graph_of(KEPT[name], array))
    assert simplified(KEPT[name], array) == before


def test_whole_numbers_plus_zero_stay_themselves():
    assert simplified(lambda n: n + 0, np.array([1, -2], np.int32)) == []


def test_a_quotient_of_whole_numbers_by_one_is_a_float_and_stays():
    assert simplified(lambda n: n / 1, np.array([1, -2], np.int32)) == ["divide"]


@pytest.mark.parametrize("divisor", [128.0, 0.25, -2.0, 2.0**-126])
def test_a_quotient_by_a_power_of_two_becomes_a_product(divisor):
    assert simplified(lambda x: x / divisor, Y) == ["multiply"]


@pytest.mark.parametrize("divisor", [3.0, 0.0, 1e30, 2.0**127, 2.0**-140, np.inf])
def test_a_quotient_by_anything_else_stays(divisor):
    assert simplified(lambda x: x / tw.constant(divisor, "float32"), Y) == ["divide"]


SHORTER = {
    "x + (-y)": (lambda x, y: x + (-y), ["subtract"]),
    "(-x) + y": (lambda x, y: (-x) + y, ["subtract"]),
    "x - (-y)": (lambda x, y: x - (-y), ["add"]),
    "(-x) * (-y)": (lambda x, y: (-x) * (-y), ["multiply"]),
    "(-x) / (-y)": (lambda x, y: (-x) / (-y), ["divide"]),
    "(-x) * 3": (lambda x, y: (-x) * 3.0, ["multiply"]),
    "(-x) / 3": (lambda x, y: (-x) / 3.0, ["divide"]),
    "3 / (-x)": (lambda x, y: 3.0 / (-x), ["divide"]),
    "three reshapes": (
        lambda x, y: tw.reshape(tw.expand_dims(tw.reshape(x, [3, 2]), 0), [6]),
        ["reshape"],
    ),
    "two broadcasts": (
        lambda x, y: tw.broadcast_to(tw.broadcast_to(x[0], [2, 3]), [4, 2, 3]),
        ["getitem", "broadcast_to"],
    ),
    "x + broadcast": (
        lambda x, y: x + tw.broadcast_to(tw.reduce_sum(y), [2, 3]),
        ["reduce_sum", "add"],
    ),
    "product of transposed": (
        lambda x, y: tw.transpose(x) @ y,
        ["matmul"],
    ),
    "product with transposed": (
        lambda x, y: x @ tw.transpose(y, [1, 0]),
        ["matmul"],
    ),
}


@pytest.mark.parametrize("name", SHORTER)
def test_two_ops_become_one(name):
    function, expected = SHORTER[name]
    assert simplified(function, X, Y) == expected


def test_transposes_inside_of_a_product_cancel_its_flags():
    def f(x, y):
        return tw.matmul(tw.transpose(x), y, transpose_a=True, transpose_b=True)

    graph = after(algebra, f, X, Y)
    assert names(graph) == ["matmul"]
    assert graph.nodes[0].attributes == {"transpose_a": False, "transpose_b": True}


def test_stacks_of_matrices_take_over_a_swap_of_the_last_two_axes_only():
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

    def swapped(x):
        return tw.transpose(x, [0, 2, 1]) @ x

    def turned(x):
        return tw.transpose(x, [1, 0, 2]) @ tw.transpose(x, [1, 2, 0])

    assert simplified(swapped, x) == ["matmul"]
    assert simplified(turned, x) == ["transpose", "transpose", "matmul"]


def test_a_constant_of_one_number_becomes_that_number():
    graph = after(algebra, lambda x: x * tw.fill([2, 3], 0.5), X)
    constant = next(x for x in graph.nodes[0].inputs if not is_value(x))
    assert constant.array.shape == ()


def test_the_seed_of_a_mean_does_not_multiply_entry_by_entry():
    def f(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            mean = tw.reduce_mean(tw.exp(x))
        return tape.gradient(mean, x)

    graph = after(algebra, f, Y)
    constants = [x for n in graph.nodes for x in n.inputs if not is_value(x)]
    assert [c.array.shape for c in constants] == [()]
