"""`tw.sets`: the sets that TensorFlow gives for dense and sparse rows, and what it refuses."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.test import case, check_op

ROWS, VALUES = np.array([0, 0, 2]), np.array([5, 5, 1])
CASES = [
    case("set_size", ROWS, VALUES, shape=[3], unmapped=("rows", "values"),
         expect=lambda *_: np.array([1, 0, 1], np.int32)),
    case("set_operation", ROWS, VALUES, np.array([2, 1]), np.array([1, 7]),
         kind="union", shape=[3],
         unmapped=("rows_a", "values_a", "rows_b", "values_b"),
         expect=lambda *_: (np.array([[0, 0], [1, 0], [2, 0]]), np.array([5, 7, 1]),
                            np.array([3, 1]))),
]  # fmt: skip

A = [[2, 3, 5, 7], [7, 9, 0, 0]]
B = [[4, 5, 6], [9, 10, 0]]
SPARSE_A, SPARSE_B = tw.sparse.from_dense(A), tw.sparse.from_dense(B)


def entries(sparse):
    """The sets of the rows, which must lie at the front, and the dense shape."""
    rows = [[] for _ in range(sparse.shape[0])]
    for (row, place), value in zip(sparse.indices.numpy(), sparse.values.numpy()):
        assert place == len(rows[row])
        rows[row].append(value)
    return rows, tuple(sparse.shape)


@pytest.mark.parametrize("c", CASES, ids=str)
def test_op(c):
    check_op(c)


@pytest.mark.parametrize("operation, a, b, rows", [
    (tw.sets.intersection, A, B, [[5], [0, 9]]),
    (tw.sets.intersection, A, SPARSE_B, [[5], [9]]),
    (tw.sets.intersection, [[3, 1, 3, 2]], [[2, 3]], [[2, 3]]),
    (tw.sets.union, A, B, [[2, 3, 4, 5, 6, 7], [0, 7, 9, 10]]),
    (tw.sets.union, SPARSE_A, SPARSE_B, [[2, 3, 4, 5, 6, 7], [7, 9, 10]]),
    (tw.sets.union, [["b", "a"]], [["c", "a"]], [[b"a", b"b", b"c"]]),
    (tw.sets.difference, A, B, [[2, 3, 7], [7]]),
    (tw.sets.difference, A, SPARSE_B, [[2, 3, 7], [0, 7]]),
    (tw.sets.difference, [[1]], [[1]], [[]]),
])  # fmt: skip
def test_rows_are_sets(operation, a, b, rows):
    found, shape = entries(operation(a, b))
    assert found == rows and shape == (len(rows), max(map(len, rows)))


def test_a_difference_can_be_that_of_b():
    assert entries(tw.sets.difference(SPARSE_A, B, aminusb=False))[0] == [
        [4, 6],
        [0, 10],
    ]


def test_rows_are_counted_along_all_leading_axes_and_inside_of_functions():
    found = tw.function(tw.sets.intersection)(np.array([A]), np.array([B]))
    assert found.indices.numpy().tolist() == [[0, 0, 0], [0, 1, 0], [0, 1, 1]]
    assert found.values.numpy().tolist() == [5, 0, 9] and found.shape == (1, 2, 2)
    empty = tw.sets.union(tw.zeros([0, 3], "int32"), tw.zeros([0, 2], "int32"))
    assert empty.shape == (0, 0) and empty.indices.shape == (0, 2)


def test_the_sizes_of_sets_can_be_traced():
    sparse = tw.SparseTensor([[0, 0], [0, 1], [2, 0]], [3, 3, 1], [3, 2])
    for size in tw.sets.size, tw.function(tw.sets.size):
        assert size(sparse).numpy().tolist() == [1, 0, 1]
        assert size(SPARSE_A).numpy().tolist() == [4, 2]


@pytest.mark.parametrize("call, message", [
    (lambda: tw.sets.union([1], [2]), "union: a must have 2 axes or more"),
    (lambda: tw.sets.union(A, B[:1]), r"same sizes .*\(2,\) and \(1,\)"),
    (lambda: tw.sets.union(A, tw.cast(B, "int64")), "union: the dtypes must be the same"),
    (lambda: tw.sets.difference(A, [[1.0]], aminusb=False), "b must be integers or str"),
    (lambda: tw.sets.size(A), "size: a must be a SparseTensor"),
    (lambda: tw.sets.size(tw.SparseTensor([[1, 0], [0, 0]], [1, 2], [2, 2])),
     "out of order; tw.sparse.reorder"),
])  # fmt: skip
def test_what_makes_no_sets_is_named(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
