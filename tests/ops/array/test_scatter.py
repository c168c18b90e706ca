"""Putting entries where numbers say: the op table, what comes twice, what does not fit."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.hardware import devices
from tapewright.core.primitive import get_primitive
from tapewright.ops.array.scatter import put_row
from tapewright.test import (
    case,
    check_op,
    complexes,
    floats,
    integers,
)

DTypeError = tw.errors.DTypeError
ShapeError = tw.errors.ShapeError


def at(function, tensor, indices, updates):
    result = np.array(tensor)
    function.at(result, tuple(np.moveaxis(indices, -1, 0)), updates)
    return result


def put(matrix, indices, rows):
    result = np.array(matrix)
    for i, row in zip(indices, rows):
        result[i] = row
    return result


def cleared(matrix, indices):
    return put(matrix, indices, np.zeros((len(indices), matrix.shape[1])))


TWICE = np.array([[0, 1], [2, 0], [0, 1]])
ROWS = np.array([2, 0, 2])

CASES = [
    case("put_rows", floats(4, 2), ROWS, floats(3, 2), expect=put),
    case("put_rows", floats(4, 2), np.zeros((0,), np.int64), floats(0, 2),
         expect=lambda x, i, r: x),
    case("put_rows", complexes(3, 1), np.array([1]), complexes(1, 1), expect=put),
    case("clear_rows", floats(4, 2), ROWS, expect=cleared),
    case("put_row", floats(4, 2), np.array(2), floats(2),
         expect=lambda x, i, r: put(x, i[None], r[None])),
    case("put_row", floats(4, 2, 3), np.array(0), floats(2, 3),
         expect=lambda x, i, r: put(x, i[None], r[None])),
    case("clear_row", floats(4, 2), np.array(3),
         expect=lambda x, i: cleared(x, i[None])),
    case("is_last", ROWS, count=4, expect=lambda i: np.array([[False], [True], [True]])),
    case("max_rows", floats(4, 2), ROWS, floats(3, 2),
         expect=lambda x, i, r: at(np.maximum, x, i[:, None], r)),
    case("min_rows", floats(4, 2), ROWS, floats(3, 2),
         expect=lambda x, i, r: at(np.minimum, x, i[:, None], r)),
    case("max_rows", integers(3, 1), np.array([1]), integers(1, 1), label="integers",
         expect=lambda x, i, r: at(np.maximum, x, i[:, None], r)),
    # composed of these
    case(tw.scatter_nd, np.array([[1], [3], [1]]), floats(3, 2), shape=[4, 2],
         expect=lambda i, u: at(np.add, np.zeros((4, 2)), i, u)),
    case(tw.scatter_nd, TWICE, floats(3), shape=[3, 2],
         expect=lambda i, u: at(np.add, np.zeros((3, 2)), i, u)),
    case(tw.scatter_nd, np.array([2]), floats(), shape=[4],
         expect=lambda i, u: np.array([0, 0, u, 0])),
    case(tw.scatter_nd, np.zeros((0, 1), np.int32), floats(0, 2), shape=[3, 2],
         expect=lambda i, u: np.zeros((3, 2))),
    case(tw.tensor_scatter_nd_add, floats(3, 2), TWICE, floats(3),
         expect=lambda x, i, u: at(np.add, x, i, u)),
    case(tw.tensor_scatter_nd_sub, floats(3, 2), TWICE, floats(3),
         expect=lambda x, i, u: at(np.subtract, x, i, u)),
    case(tw.tensor_scatter_nd_update, floats(3, 2), TWICE, floats(3),
         expect=lambda x, i, u: np.array([[x[0, 0], u[2]], x[1], [u[1], x[2, 1]]])),
    case(tw.tensor_scatter_nd_max, floats(3, 2), TWICE, floats(3),
         expect=lambda x, i, u: at(np.maximum, x, i, u)),
    case(tw.tensor_scatter_nd_min, floats(3, 2, 2), np.array([[[1]], [[0]]]),
         floats(2, 1, 2, 2), expect=lambda x, i, u: at(np.minimum, x, i, u)),
    case(tw.dynamic_partition, floats(4, 2), np.array([1, 0, 1, 1]), num_partitions=3,
         expect=lambda x, p: (x[[1]], x[[0, 2, 3]], x[:0])),
    case(tw.dynamic_partition, floats(2, 2, 3), np.array([[1, 0], [1, 1]]), num_partitions=2,
         expect=lambda x, p: (x[p == 0], x[p == 1])),
    case(lambda x, y: tw.dynamic_stitch([[0, 2], [[3], [0]]], [x, y]), floats(2, 2),
         floats(2, 1, 2), label="stitch",
         expect=lambda x, y: np.stack([y[1, 0], np.zeros(2), x[1], y[0, 0]])),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


def gradients(op, tensor, indices, updates):
    tensor, updates = tw.constant(tensor), tw.constant(updates)
    with tw.GradientTape() as tape:
        tape.watch([tensor, updates])
        y = op(tensor, indices, updates)
    return [g.numpy().tolist() for g in tape.gradient(y, [tensor, updates])]


def test_of_several_updates_the_last_gets_the_gradient():
    to_tensor, to_updates = gradients(
        tw.tensor_scatter_nd_update, [1.0, 2.0], [[0], [0]], [3.0, 4.0]
    )
    assert (to_tensor, to_updates) == ([0, 1], [0, 1])


def test_ties_of_a_scattered_maximum_share_the_gradient():
    # recorded from TensorFlow
    to_tensor, to_updates = gradients(
        tw.tensor_scatter_nd_max, [1.0, 2.0, 3.0], [[0], [0], [1], [2]], [4, 4, 2, 1.0]
    )
    assert (to_tensor, to_updates) == ([0, 0.5, 1], [0.5, 0.5, 0.5, 0])


def test_what_is_cleared_may_be_infinite():
    _, to_updates = gradients(
        tw.tensor_scatter_nd_update, [np.inf, 2.0], [[0]], [np.nan]
    )
    assert to_updates == [1.0]


def test_a_stitched_partition_is_the_original():
    x, which = tw.constant([5.0, 6.0, 7.0, 8.0]), [1, 0, 1, 0]
    places = tw.dynamic_partition(tw.range(4), which, 2)
    parts = tw.dynamic_partition(x, which, 2)
    assert tw.dynamic_stitch(places, parts).numpy().tolist() == [5, 6, 7, 8]


X = [1.0, 2.0, 3.0]
MISFITS = [
    (lambda: tw.scatter_nd([[0]], [[1.0]], [3]), ShapeError, r"shape \(1,\)"),
    (lambda: tw.scatter_nd([[0, 0]], [1.0], [3]), ShapeError, "at most 1"),
    (lambda: tw.scatter_nd(0, 1.0, [3]), ShapeError, "last axis of indices"),
    (lambda: tw.scatter_nd([[0.0]], [1.0], [3]), DTypeError, "indices .*integers"),
    (lambda: tw.tensor_scatter_nd_update(X, [[0]], [1.0, 2.0]), ShapeError, "updates"),
    (lambda: tw.tensor_scatter_nd_add(X, [[0]], tw.constant([1])), DTypeError, "dtypes"),
    (lambda: tw.dynamic_partition(X, [0, 0], 1), ShapeError, "partitions"),
    (lambda: tw.dynamic_stitch([[0], [1]], [[1.0]]), ValueError, "indices and data.*2.*1"),
    (lambda: tw.dynamic_stitch([[0], [1]], [[1.0], [[1.0]]]), ShapeError, "data must"),
    (lambda: tw.dynamic_stitch([[-1]], [[1.0]]), ValueError, "negative"),
]  # fmt: skip


@pytest.mark.parametrize("call, error, message", MISFITS)
def test_what_does_not_fit_is_explained(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_coordinates_out_of_range_are_an_error_on_the_cpu():
    with devices.device("CPU"):
        with pytest.raises(IndexError, match="scatter_nd: .* from 0 to 2 .* got 3"):
            tw.scatter_nd([[3]], [1.0], [3])
        with pytest.raises(IndexError, match="tensor_scatter_nd_max: .* got -1"):
            tw.tensor_scatter_nd_max(X, [[-1]], [1.0])
        with pytest.raises(ValueError, match="partitions .*0.*1.*got 2"):
            tw.dynamic_partition(X, [0, 2, 1], 2)


@pytest.mark.parametrize("index", [-1, 4])
def test_a_row_that_is_not_there_is_refused(index):
    for name, row in (("put_row", [np.zeros(2)]), ("clear_row", [])):
        op = get_primitive(name)
        with pytest.raises(IndexError, match=f"must be from 0 to 3, got {index}"):
            op.general([np.zeros((4, 2)), np.array(index), *row], {})


def test_a_row_may_be_one_string():
    found = put_row(tw.constant([b"a", b"b"]), 1, tw.constant(b"c"))
    assert repr(found.numpy().tolist()) == "[b'a', b'c']"
