"""Distances between sequences; the numbers are TensorFlow's."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.test import case, check_op

CASES = [
    case("edit_distance", np.array([[0, 0], [0, 1], [1, 0]]), np.array([1, 2, 3]),
         np.array([[0, 0]]), np.array([1]), shape=[2], normalize=False,
         unmapped=("hypothesis_indices", "hypothesis", "truth_indices", "truth"),
         expect=lambda *_: np.ones(2, "f")),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_op(c):
    check_op(c)


A = tw.sparse.from_dense([[1, 2, 3, 0], [4, 5, 0, 0], [0, 0, 0, 0]])
B = tw.sparse.from_dense([[1, 3, 0, 0, 0], [0] * 5, [0] * 5, [7, 7, 0, 0, 0]])
WORDS = (
    tw.SparseTensor([[0, 0, 0], [1, 0, 0]], ["a", "b"], (2, 1, 1)),
    tw.SparseTensor(
        [[0, 1, 0], [1, 0, 0], [1, 0, 1], [1, 1, 0]], ["a", "b", "c", "a"], (2, 2, 2)
    ),
)


def test_distances_are_those_of_tensorflow():
    distances = tw.edit_distance(A, B)
    assert distances.dtype == tw.float32
    assert distances.numpy().tolist() == [0.5, np.inf, 0.0, 1.0]
    for pair in ((A, B), (B, A)):
        assert tw.edit_distance(*pair, normalize=False).numpy().tolist() == [1, 2, 0, 2]
    assert tw.edit_distance(*WORDS).numpy().tolist() == [[np.inf, 1.0], [0.5, 1.0]]
    assert tw.edit_distance(*WORDS, normalize=False).numpy().tolist() == [
        [1, 1],
        [1, 1],
    ]


def test_distances_in_functions():
    both = tw.function(lambda: (tw.edit_distance(A, B), tw.edit_distance(*WORDS)))
    for found, expected in zip(
        both(), (tw.edit_distance(A, B), tw.edit_distance(*WORDS))
    ):
        np.testing.assert_array_equal(found, expected)
    called = tw.function(tw.edit_distance, jit_compile=True)
    np.testing.assert_array_equal(called(A, B), tw.edit_distance(A, B))


def test_what_does_not_fit_is_refused():
    with pytest.raises(TypeError, match="the dtypes must be the same"):
        tw.edit_distance(A, tw.cast(B, "int64"))
    with pytest.raises(tw.errors.ShapeError, match="one rank, 2 or more"):
        tw.edit_distance(A, WORDS[1].with_values([1, 2, 3, 4]))
    with pytest.raises(TypeError, match="truth must be a SparseTensor"):
        tw.edit_distance(A, [[1]])
