"""Picking entries by number: the op table, sparse gradients, indices out of range."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.autodiff.batching import BatchInterpreter
from tapewright.core.hardware import devices
from tapewright.core.interpreters import use_interpreters
from tapewright.test import (
    booleans,
    case,
    check_op,
    complexes,
    floats,
    integers,
)

DTypeError = tw.errors.DTypeError
ShapeError = tw.errors.ShapeError


def added(g, indices, shape, axis):
    full = np.zeros(shape)
    np.add.at(full, (slice(None),) * axis + (indices,), g)
    return full


BATCHED = np.array([[[0, 1], [2, 2]], [[1, 0], [0, 3]]])

CASES = [
    case("gather", floats(4, 2), np.array([2, 0, 2]), expect=lambda x, i: x[i]),
    case("gather", floats(2, 4), np.array([[1, 3], [1, 0]]), axis=1,
         expect=lambda x, i: x[:, i]),
    case("gather", floats(2, 4), np.array(3), axis=-1, expect=lambda x, i: x[:, i],
         label="scalar"),
    case("gather", floats(3, 2), np.zeros((0,), np.int64), expect=lambda x, i: x[i]),
    case("gather", complexes(3), np.array([2, 2]), expect=lambda x, i: x[i]),
    case("gather", floats(3), np.array([2, 0], np.uint8), expect=lambda x, i: x[i],
         label="unsigned"),
    case("gather", integers(3), np.array([2, 0]), expect=lambda x, i: x[i], label="integers"),
    case("scatter_rows", floats(3, 2), np.array([2, 0, 2]), shape=(4, 2),
         expect=lambda g, i: added(g, i, (4, 2), 0)),
    case("scatter_rows", floats(3, 2), np.array([2, 0, 3]), shape=(4, 2), label="distinct",
         expect=lambda g, i: added(g, i, (4, 2), 0)),
    case("scatter_rows", floats(2), np.array([5, 5]), shape=(30,), label="few of many",
         expect=lambda g, i: added(g, i, (30,), 0)),
    case("scatter_rows", floats(2, 2, 2), np.array([[1, 3], [1, 0]]), shape=(2, 4), axis=1,
         expect=lambda g, i: added(g, i, (2, 4), 1)),
    case("scatter_rows", floats(2), np.array(3), shape=(2, 4), axis=-1,
         expect=lambda g, i: added(g, i, (2, 4), 1), label="scalar"),
    case("scatter_rows", floats(0, 2), np.zeros((0,), np.int64), shape=(3, 2),
         expect=lambda g, i: np.zeros((3, 2)), label="none"),
    case("scatter_rows", complexes(2), np.array([1, 1]), shape=(3,),
         expect=lambda g, i: np.array([0, g.sum(), 0])),
    case("scatter_rows", np.array([-5, 3, 7]), np.array([1, 1, 0]), shape=(2,),
         expect=lambda g, i: np.array([7, -2]), label="integers"),
    case("flat_index", np.array([[1, 2], [0, 1]]), dims=(4, 3),
         expect=lambda i: np.array([5, 1])),
    case("flat_index", np.array([[-1, 2], [0, -3]]), dims=(4, 3), wrap=True,
         expect=lambda i: np.array([11, 0])),
    case("flat_index", np.array([[[1], [2]], [[0], [1]]]), dims=(3,), batch=(2,),
         expect=lambda i: np.array([[1, 2], [3, 4]])),
    case("flat_index", np.zeros((2, 0), np.int32), dims=(), expect=lambda i: np.array([0, 0])),
    case("flatnonzero", booleans(3, 2), expect=np.flatnonzero, unmapped=()),
    # composed of these
    case(tw.gather, floats(2, 4), np.array([[1, 3, 3], [1, 0, 2]]), batch_dims=1,
         expect=lambda x, i: np.take_along_axis(x, i, 1), label="batch_dims=1"),
    case(tw.gather, floats(2, 3, 4), np.array([[1, 3], [0, 2]]), batch_dims=1, axis=2,
         expect=lambda x, i: np.stack([x[0][:, i[0]], x[1][:, i[1]]]),
         label="batch_dims=1, axis=2"),
    case(tw.gather, floats(2, 2, 4, 2), BATCHED, batch_dims=-1,
         expect=lambda x, i: np.take_along_axis(x, i[..., None], 2), label="batch_dims=-1"),
    case(tw.gather_nd, floats(3, 2, 2), np.array([[[0, 1], [2, 0]], [[0, 1], [1, 1]]]),
         expect=lambda x, i: x[i[..., 0], i[..., 1]]),
    case(tw.gather_nd, floats(3, 2), np.array([[2], [0]]), expect=lambda x, i: x[[2, 0]]),
    case(tw.gather_nd, floats(3, 2), np.array([1, 0]), expect=lambda x, i: x[1, 0]),
    case(tw.gather_nd, floats(2), np.zeros((3, 0), np.int32),
         expect=lambda x, i: np.stack([x, x, x]), label="no coordinates"),
    case(tw.gather_nd, floats(2, 3, 2), np.array([[[2]], [[0]]]), batch_dims=1,
         expect=lambda x, i: np.stack([x[0][[2]], x[1][[0]]])),
    case(tw.boolean_mask, floats(2, 3), np.array([[True, False, True], [False, True, True]]),
         expect=lambda x, m: x[m]),
    case(tw.boolean_mask, floats(2, 3), np.array([True, False, True]), axis=-1,
         expect=lambda x, m: x[:, m]),
    case(tw.boolean_mask, floats(2), np.array([False, False]), expect=lambda x, m: x[m],
         label="nothing"),
    case(tw.repeat, floats(2, 3), repeats=2, axis=1, expect=lambda x: np.repeat(x, 2, 1)),
    case(tw.repeat, floats(2, 2), repeats=3, expect=lambda x: np.repeat(x, 3)),
    case(tw.repeat, floats(3, 2), repeats=[2, 0, 1], axis=0,
         expect=lambda x: np.repeat(x, [2, 0, 1], 0)),
    case(tw.repeat, floats(2, 2), repeats=[1, 0, 2, 3], label="each of four",
         expect=lambda x: np.repeat(x, [1, 0, 2, 3])),
    case(tw.reverse_sequence, floats(2, 3, 2), np.array([2, 3]), seq_axis=1,
         expect=lambda x, n: np.stack([x[0, [1, 0, 2]], x[1, ::-1]])),
    case(tw.reverse_sequence, floats(3, 2), np.array([0, 3]), seq_axis=0, batch_axis=1,
         expect=lambda x, n: np.stack([x[:, 0], x[::-1, 1]], 1)),
    case(tw.nn.embedding_lookup, floats(4, 2), np.array([[1, 1], [3, 0]]),
         expect=lambda x, i: x[i]),
    case(tw.nn.embedding_lookup, floats(4, 2), np.array([1, 3]), max_norm=0.5,
         expect=lambda x, i: x[i] * np.minimum(
             1, 0.5 / np.linalg.norm(x[i], axis=1, keepdims=True))),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


def test_the_gradient_of_gather_is_sparse():
    x = tw.constant(np.zeros((4, 2), np.float32))
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.gather(x, [2, 0, 2])
    g = tape.gradient(y, x)
    assert isinstance(g, tw.IndexedSlices)
    assert g.indices.numpy().tolist() == [2, 0, 2] and g.values.shape == (3, 2)
    assert tw.convert_to_tensor(g).numpy().tolist() == [[1, 1], [0, 0], [2, 2], [0, 0]]


def test_the_gradient_of_an_embedding_is_sparse():
    table = tw.Variable(np.ones((4, 2), np.float32))
    with tw.GradientTape() as tape:
        y = tw.reduce_sum(tw.nn.embedding_lookup(table, [[3, 3]]) ** 2)
    g = tape.gradient(y, table)
    assert isinstance(g, tw.IndexedSlices)
    assert g.values.numpy().tolist() == [[2, 2], [2, 2]]
    assert g.indices.numpy().tolist() == [3, 3]


def test_an_embedding_may_come_in_parts():
    parts = [tw.constant([[1.0], [2.0]]), tw.constant([[3.0]])]
    assert tw.nn.embedding_lookup(parts, [2, 0]).numpy().tolist() == [[3], [1]]


def test_the_gradient_of_a_mask_is_dense():
    x = tw.constant([1.0, 2.0, 3.0])
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = tw.boolean_mask(x, [True, False, True]) ** 2
    assert tape.gradient(y, x).numpy().tolist() == [2, 0, 6]


def test_two_sparse_gradients_stay_sparse_and_one_with_a_dense_one_is_dense():
    x = tw.constant([1.0, 2.0, 3.0])
    with tw.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = tw.reduce_sum(tw.gather(x, [0, 0])) + tw.reduce_sum(tw.gather(x, [2]))
        z = y + tw.reduce_sum(x * x)
    assert isinstance(tape.gradient(y, x), tw.IndexedSlices)
    assert tw.convert_to_tensor(tape.gradient(y, x)).numpy().tolist() == [2, 0, 1]
    assert tape.gradient(z, x).numpy().tolist() == [4, 4, 7]


X = [1.0, 2.0, 3.0]
OUT_OF_RANGE = [
    (lambda: tw.gather(X, [0, 3]), "gather: .* from 0 to 2, got 3"),
    (lambda: tw.gather(X, [-1]), "gather: .* from 0 to 2, got -1"),
    (lambda: tw.gather([X], [[3]], batch_dims=1), "gather: .* from 0 to 2 .* got 3"),
    (lambda: tw.gather_nd([X], [[1, 0]]), "gather_nd: .* from 0 to 0 .* axis 0 .* got 1"),
    (lambda: tw.gather_nd([X], [[0, -1]]), "gather_nd: .* axis 1 .* got -1"),
    (lambda: tw.nn.embedding_lookup([X], [1]), "indices .*0.*got 1"),
]  # fmt: skip


@pytest.mark.parametrize("call, message", OUT_OF_RANGE)
def test_an_index_out_of_range_is_an_error_on_the_cpu(call, message):
    with devices.device("CPU"), pytest.raises(IndexError, match=message):
        call()


MISFITS = [
    (lambda: tw.boolean_mask([1.0, 2.0], [True, False, True]), ShapeError, "boolean_mask"),
    (lambda: tw.boolean_mask([1.0, 2.0], [1, 0]), ShapeError, "mask .*boolean"),
    (lambda: tw.gather(X, [0.5]), DTypeError, "gather: indices must be integers"),
    (lambda: tw.gather(X, [True]), DTypeError, "gather: indices must be integers"),
    (lambda: tw.gather(X, [0], axis=1), ValueError, "axis .*-1.*0.*got 1"),
    (lambda: tw.gather([X], [[0], [0]], batch_dims=1), ShapeError, "batch_dims=1"),
    (lambda: tw.gather([X], [[0]], axis=0, batch_dims=1), ShapeError, "not be one of them"),
    (lambda: tw.gather([X], [0], batch_dims=3), ValueError, "batch_dims .*-1.*got 3"),
    (lambda: tw.gather_nd(X, [[0, 0]]), ShapeError, "at most 1"),
    (lambda: tw.gather_nd(X, 0), ShapeError, "last axis of indices"),
    (lambda: tw.gather_nd([X], [[0], [0]], batch_dims=1), ShapeError, "batch_dims=1"),
    (lambda: tw.repeat(X, [1, 2]), ShapeError, "repeats .*3.*got 2"),
    (lambda: tw.repeat(X, -1), ValueError, r"repeats .*got \(-1,\)"),
    (lambda: tw.reverse_sequence([X], [1, 1], 1), ShapeError, "seq_lengths"),
    (lambda: tw.reverse_sequence([X], [1]), ValueError, "seq_axis"),
]  # fmt: skip


@pytest.mark.parametrize("call, error, message", MISFITS)
def test_what_does_not_fit_is_explained(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_slices_out_of_range_do_not_become_dense():
    with devices.device("CPU"):
        slices = tw.IndexedSlices(tw.constant([[1.0]]), tw.constant([2]), (2, 1))
        with pytest.raises(IndexError, match="indices .*0.*1.*got 2"):
            tw.convert_to_tensor(slices)


def test_what_picks_by_several_axes_is_dense_and_by_the_first_sparse():
    x = tw.constant([X, X])
    with tw.GradientTape(persistent=True) as tape:
        tape.watch(x)
        points, rows = tw.gather_nd(x, [[0, 2]]), tw.gather_nd(x, [[1]])
    assert tape.gradient(points, x).numpy().tolist() == [[0, 0, 1], [0, 0, 0]]
    assert isinstance(tape.gradient(rows, x), tw.IndexedSlices)


def test_indices_may_be_mapped():
    x, batcher = tw.constant(np.arange(12.0).reshape(3, 4)), BatchInterpreter()
    with use_interpreters((batcher,)):
        one = batcher.map(tw.constant([2, -3]))
        column = batcher.map(tw.constant([1, 3]))
        rows, entries = x[one], x[one, column]
    assert batcher.densify_all(rows).numpy().tolist() == [[8, 9, 10, 11], [0, 1, 2, 3]]
    assert batcher.densify_all(entries).numpy().tolist() == [9, 3]


@pytest.mark.parametrize("wrap", [lambda f: f, tw.function], ids=["eager", "traced"])
def test_sparse_gradients_by_int32_and_int64_add_up(wrap):
    v = tw.Variable([1.0, 2.0, 3.0])

    def step(i, j):
        with tw.GradientTape() as tape:
            y = tw.reduce_sum(tw.gather(v, i) * 2.0) + tw.reduce_sum(tw.gather(v, j))
        return tw.convert_to_tensor(tape.gradient(y, v))

    indices = tw.constant([0, 1]), tw.constant([1, 2], dtype=tw.int64)
    np.testing.assert_array_equal(wrap(step)(*indices), [2.0, 3.0, 1.0])


@pytest.mark.parametrize("traced", [False, True])
def test_rows_of_one_of_several_outputs_have_a_gradient(traced):
    def gradient(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            first, second = tw.split(x, 2)
            y = tw.gather(first, [1, 1]) * tw.gather(second, [0, 1])
        return tape.gradient(y, x)

    gradient = tw.function(gradient) if traced else gradient
    found = gradient(tw.constant([[1.0], [2.0], [3.0], [4.0]]))
    assert found.numpy().ravel().tolist() == [0.0, 7.0, 2.0, 2.0]
