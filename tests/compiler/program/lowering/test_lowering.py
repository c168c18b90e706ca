"""Kernels written down as calls: the same results, and what cannot be written down."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.program.instructions.array_instructions import Map, View
from tapewright.compiler.program.instructions.call_instructions import (
    Opaque,
    RegionCall,
)
from tapewright.compiler.program.lowering.array_functions import NotTraceable
from tapewright.compiler.program.lowering.array_tracer import ArrayTracer, Builder
from tapewright.compiler.program.lowering.lowering import lower
from tapewright.compiler.program.program import Buffer, Kind, Program
from tapewright.core.primitive import get_primitive


class Empty:
    inputs = captures = ()


@pytest.fixture
def builder():
    return Builder(Program(Empty()), None)


def traced(builder, *shape, dtype=np.float32):
    return ArrayTracer(Buffer(shape, np.dtype(dtype), Kind.INPUT), builder)


def classes(graph):
    return [type(each) for each in lower(graph).instructions]


def graph_of(function, *args):
    return tw.function(function).get_concrete_function(*args).graph


X = tw.constant([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])


@pytest.mark.parametrize(
    "name, shapes",
    [
        ("add", [(2, 3), (3,)]),
        ("tanh", [(4,)]),
        ("matmul", [(2, 3), (3, 4)]),
        ("relu", [(2, 3)]),
        ("sigmoid", [(5,)]),
        ("softplus", [(5,)]),
        ("softmax", [(8, 3)]),
        ("reduce_sum", [(2, 3)]),
        ("reduce_max", [(2, 3)]),
    ],
)
def test_a_kernel_runs_on_arrays_without_values(builder, name, shapes):
    op = get_primitive(name)
    inputs = [traced(builder, *shape) for shape in shapes]
    result = op.kernel(np, *inputs, **op.defaults)
    values = [np.ones(shape, np.float32) for shape in shapes]
    expected = op.kernel(np, *values, **op.defaults)
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)


def test_a_kernel_that_writes_in_place_is_followed(builder):
    x = traced(builder, 3)
    y = np.multiply(x, 2.0)
    first = y.buffer
    y += 1.0
    assert y.buffer is not first
    assert [each.name for each in builder.program.instructions] == ["multiply", "add"]


def test_an_input_is_never_written_to(builder):
    x = traced(builder, 3)
    with pytest.raises(NotTraceable):
        x += 1.0


def test_what_was_seen_through_a_view_is_not_written_to(builder):
    y = traced(builder, 2, 3) * 2.0
    y.reshape(6)
    with pytest.raises(NotTraceable):
        y += 1.0


@pytest.mark.parametrize(
    "asks",
    [
        bool,
        float,
        np.asarray,
        lambda x: x[0, 0],
        lambda x: x[np.array([True, False])],
        lambda x: np.linalg.inv(x),
        lambda x: x.strides,
        lambda x: np.zeros((2, 3)).__iadd__(x),
        lambda x: np.add(x, x, out=np.zeros((2, 3), np.float32)),
        lambda x: np.add(x, x, where=[True, True, False]),
        lambda x: np.add.accumulate(x),
        lambda x: np.add(x, x, dtype=np.float64),
    ],
)
def test_what_is_not_known_here_is_refused(builder, asks):
    with pytest.raises(NotTraceable):
        asks(traced(builder, 2, 3))


def test_an_array_of_ones_own_never_takes_recorded_values(builder):
    own = np.zeros((2, 3), np.float32)
    with pytest.raises(NotTraceable):
        own[...] = traced(builder, 2, 3)


def test_a_number_beside_an_array_takes_its_dtype(builder):
    (traced(builder, 3) * 2.0)  # noqa: B018
    number = builder.program.instructions[0].operands[1]
    assert (number.source, number.dtype) == (2.0, np.float32)


def test_an_integer_divided_becomes_a_float(builder):
    assert (traced(builder, 3, dtype=np.int32) / 2).dtype == np.float64


def test_equal_small_constants_are_one(builder):
    program = builder.program
    assert program.constant(np.asarray(1.5)) is program.constant(np.asarray(1.5))
    assert program.constant(np.asarray(1.5)) is not program.constant(np.asarray(2.5))


def test_zero_and_minus_zero_are_two_constants(builder):
    program = builder.program
    assert program.constant(np.asarray(0.0)) is not program.constant(np.asarray(-0.0))


def test_an_op_of_several_calls_is_taken_apart():
    assert Opaque not in classes(graph_of(tw.nn.softmax, X))


def test_an_op_that_asks_for_values_is_called_as_it_is():
    assert classes(graph_of(tw.linalg.cholesky, tw.eye(3))) == [Opaque]


def test_a_view_names_the_array_that_owns_its_memory():
    graph = graph_of(lambda x: tw.transpose(x * 2.0), X)
    product, turned = lower(graph).instructions
    assert type(turned) is View
    assert turned.outputs[0].base is product.outputs[0]


def branches(x):
    return tw.cond(tw.reduce_sum(x) > 0.0, lambda: tw.tanh(x), lambda: x * 2.0)


def steps(x):
    return tw.while_loop(lambda y: tw.norm(y) < 9.0, lambda y: (y * 2.0,), (x,))


def printing(x):
    return tw.cond(x[0, 0] > 0.0, lambda: tw.print(x) or x, lambda: x * 2.0)


@pytest.mark.parametrize(
    "graph, effect",
    [
        (graph_of(branches, X), False),
        (graph_of(steps, X), False),
        (graph_of(printing, X), True),
    ],
    ids=["cond", "while_loop", "print"],
)
def test_a_program_holds_those_of_its_regions(graph, effect):
    (call,) = [c for c in lower(graph).instructions if type(c) is RegionCall]
    assert [len(program.inputs) for program in call.programs] == [
        len(region.inputs) for region in call.node.regions
    ]
    assert any([program.instructions for program in call.programs])
    assert call.has_effect is effect


@pytest.mark.parametrize("updates", ["first", "second", "neither"])
def test_a_branch_declares_the_variables_that_it_updates_in_place(updates):
    """Replays lock these, and free the registers that hold their arrays."""
    variable, optimizer = tw.Variable([1.0, 2.0]), tw.optimizers.SGD(0.5)

    def update():
        optimizer.apply_gradients([(tw.ones([2]), variable)])
        return 1.0

    branches = [
        update if updates == name else lambda: 2.0 for name in ("first", "second")
    ]
    graph = graph_of(lambda x: tw.cond(x > 0.0, *branches), tw.constant(1.0))
    calls = [c for c in lower(graph).instructions if type(c) is RegionCall]
    written = {id(v) for c in calls for v in c.variables_written}
    assert written == {id(v) for c in calls for v in c.variables_overwritten}
    assert (id(variable) in written) is (updates != "neither")


DIVISIONS = [tw.floordiv, tw.math.floormod, tw.truncatediv, tw.truncatemod]


@pytest.mark.parametrize("divide", DIVISIONS, ids=lambda op: op.__name__)
@pytest.mark.parametrize("divisor", [3, -4, [1, -2, 3, 7, -7, 100]], ids=str)
def test_integers_are_divided_by_constants_in_loops(divide, divisor):
    x, y = tw.constant([-9, -1, 0, 1, 8, 2**31 - 1]), tw.constant(divisor)
    graph = tw.function(lambda x: divide(x, y)).get_concrete_function(x).graph
    program = lower(graph, in_loops=True)
    assert {type(e) for e in program.instructions} <= {Map, View}
    pytest.importorskip("llvmlite")
    with tw.config.use_target("native"):
        np.testing.assert_array_equal(tw.function(divide)(x, y), divide(x, y))


@pytest.mark.parametrize("divide", DIVISIONS, ids=lambda op: op.__name__)
def test_divisions_that_may_raise_are_calls(divide):
    x = tw.constant([1, 2])
    for y in (tw.constant([1, 0]), None):
        f = divide if y is None else lambda x, _, y=y: divide(x, y)
        graph = tw.function(f).get_concrete_function(x, x).graph
        assert Opaque in {type(e) for e in lower(graph, in_loops=True).instructions}
