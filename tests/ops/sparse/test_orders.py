"""Derivatives of sparse and ragged ops to the third order, against differences."""

import numpy as np
import pytest

import tapewright as tw

PLACES, SIZES = [[0, 1], [1, 0], [1, 2], [2, 2]], [3, 3]
V = np.array([0.3, -0.7, 1.1, 0.4])
D = np.array([[0.5, -0.2], [0.1, 0.9], [-0.4, 0.3]])


def sparse(values):
    return tw.SparseTensor(PLACES, values, SIZES)


def rows(values):
    return tw.RaggedTensor.from_row_lengths(values, [1, 0, 3])


def fill(values, default):
    return tw.sparse.fill_empty_rows(sparse(values), default)[0].values


def ids():
    return tw.SparseTensor([[0, 0], [0, 1], [2, 0], [2, 1]], [2, 0, 1, 1], [3, 2])


FUNCTIONS = {
    "to_dense": (lambda v, d: tw.sparse.to_dense(sparse(v), d), V, 0.2),
    "matmul": (lambda v, d: tw.sparse.sparse_dense_matmul(sparse(v), d), V, D),
    "adjoint": (lambda v, d: tw.sparse.sparse_dense_matmul(d, sparse(v), True), V, D),
    "softmax": (lambda v: tw.sparse.softmax(sparse(v)).values, V),
    "reduce_sum": (lambda v: tw.sparse.reduce_sum(sparse(v * v), 1), V),
    "reduce_max": (lambda v: tw.sparse.reduce_max(sparse(v * v * v), 0), V),
    "add": (lambda v, w: tw.sparse.add(sparse(v), sparse(w * v)).values, V, V + 1),
    "add dense": (lambda v: tw.sparse.add(sparse(v * v), np.ones(SIZES)), V),
    "scaled": (lambda v, d: (sparse(v) / d * d).values, V, D[:, :1] + 2),
    "fill_empty_rows": (fill, V, 0.2),
    "transposed": (lambda v: tw.sparse.transpose(sparse(v * v)).values, V),
    "weighted rows": (
        lambda d, w: tw.nn.safe_embedding_lookup_sparse(
            d, ids(), ids().with_values(w), "sqrtn"
        ),
        D,
        V**2 + 0.5,
    ),
    "rows": (lambda d: tw.nn.embedding_lookup_sparse(d * d, ids(), None), D),
    "ragged sum": (lambda v: tw.reduce_sum(rows(v * v), 1), V),
    "ragged mean": (lambda v: tw.reduce_mean(rows(v * v), 0), V),
    "ragged product": (lambda v: tw.reduce_prod(rows(v), 1), V),
    "ragged rows": (lambda v, d: (rows(v) * d).flat_values, V, D[:, :1]),
    "ragged padded": (lambda v, d: (rows(v * v) * rows(v)).to_tensor(d), V, 0.3),
    "ragged parts": (lambda v: rows(v * v)[:, ::-1].flat_values, V),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_order_agrees_with_differences(name):
    function, *inputs = FUNCTIONS[name]
    tw.test.check_gradients(function, [np.asarray(x, np.float64) for x in inputs])
