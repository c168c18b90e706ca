"""Kernels written down as calls: the same results, and what cannot be written down."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.program.lowering import (
    Array,
    NotRecorded,
    Program,
    Recorded,
    Writer,
    lower,
)
from tapewright.core.primitive import get_primitive


class Empty:
    inputs = captures = ()


@pytest.fixture
def writer():
    return Writer(Program(Empty()), None)


def recorded(writer, *shape, dtype=np.float32):
    return Recorded(Array(shape, np.dtype(dtype), origin="input"), writer)


def forms(graph):
    return [call.form for call in lower(graph).calls]


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
def test_a_kernel_runs_on_arrays_without_values(writer, name, shapes):
    op = get_primitive(name)
    inputs = [recorded(writer, *shape) for shape in shapes]
    result = op.kernel(np, *inputs, **op.defaults)
    values = [np.ones(shape, np.float32) for shape in shapes]
    expected = op.kernel(np, *values, **op.defaults)
    assert (result.shape, result.dtype) == (expected.shape, expected.dtype)


def test_a_kernel_that_writes_in_place_is_followed(writer):
    x = recorded(writer, 3)
    y = np.multiply(x, 2.0)
    first = y.array
    y += 1.0
    assert y.array is not first
    assert [c.name for c in writer.program.calls] == ["multiply", "add"]


def test_an_input_is_never_written_to(writer):
    x = recorded(writer, 3)
    with pytest.raises(NotRecorded):
        x += 1.0


def test_what_was_seen_through_a_view_is_not_written_to(writer):
    y = recorded(writer, 2, 3) * 2.0
    y.reshape(6)
    with pytest.raises(NotRecorded):
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
def test_what_is_not_known_here_is_refused(writer, asks):
    with pytest.raises(NotRecorded):
        asks(recorded(writer, 2, 3))


def test_an_array_of_ones_own_never_takes_recorded_values(writer):
    own = np.zeros((2, 3), np.float32)
    with pytest.raises(NotRecorded):
        own[...] = recorded(writer, 2, 3)


def test_a_number_beside_an_array_takes_its_dtype(writer):
    (recorded(writer, 3) * 2.0)  # noqa: B018
    number = writer.program.calls[0].args[1]
    assert (number.payload, number.dtype) == (2.0, np.float32)


def test_an_integer_divided_becomes_a_float(writer):
    assert (recorded(writer, 3, dtype=np.int32) / 2).dtype == np.float64


def test_equal_small_constants_are_one(writer):
    program = writer.program
    assert program.constant(np.asarray(1.5)) is program.constant(np.asarray(1.5))
    assert program.constant(np.asarray(1.5)) is not program.constant(np.asarray(2.5))


def test_zero_and_minus_zero_are_two_constants(writer):
    program = writer.program
    assert program.constant(np.asarray(0.0)) is not program.constant(np.asarray(-0.0))


def test_an_op_of_several_calls_is_taken_apart():
    assert "kernel" not in forms(graph_of(tw.nn.softmax, X))


def test_an_op_that_asks_for_values_is_called_as_it_is():
    assert forms(graph_of(tw.linalg.cholesky, tw.eye(3))) == ["kernel"]


def test_a_view_names_the_array_that_owns_its_memory():
    graph = graph_of(lambda x: tw.transpose(x * 2.0), X)
    product, turned = lower(graph).calls
    assert turned.form == "view"
    assert turned.outputs[0].root is product.outputs[0]
