"""Splits of ragged tensors, and the order of sparse ones: the op table, and the corners."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.test import case, check_op

SPLITS, IDS = np.array([0, 2, 2, 3]), np.array([0, 0, 2])
CASES = [
    case("checked_splits", SPLITS, count=3, unmapped=("splits",), expect=lambda x: x),
    case("checked_rowids", IDS, count=3, unmapped=("ids",), expect=lambda x: x),
    case("checked_equal", IDS, IDS, message="differ", unmapped=("x", "y"),
         expect=lambda x, y: x),
    case("increasing", np.array([0, 3, 4]), who="to_dense", unmapped=("x",),
         expect=lambda x: x),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


def test_a_ragged_tensor_is_made_by_its_functions_alone():
    with pytest.raises(ValueError, match="from_row_splits"):
        tw.RaggedTensor([1, 2], [0, 2])
    with pytest.raises(ValueError, match="ragged_rank"):
        tw.RaggedTensorSpec()


def test_row_starts_and_limits_keep_their_dtype():
    for make, rows in [
        (tw.RaggedTensor.from_row_starts, [0, 2]),
        (tw.RaggedTensor.from_row_limits, [2, 3]),
    ]:
        for dtype in (tw.int32, tw.int64):
            ragged = make([1, 2, 3], tw.constant(rows, dtype))
            assert ragged.to_list() == [[1, 2], [3]]
            assert ragged.row_splits.dtype == dtype


def test_checks_of_rows_run_in_each_call_of_a_traced_function():
    @tw.function
    def rows(splits):
        return tw.RaggedTensor.from_row_splits([1, 2, 3], splits)

    assert rows(tw.constant([0, 1, 3])).to_list() == [[1], [2, 3]]
    with pytest.raises(ValueError, match="row_splits must increase"):
        rows(tw.constant([0, 4, 3]))

    @tw.function
    def total(x, y):
        return x + y

    x, y = tw.ragged.constant([[1], [2, 3]]), tw.ragged.constant([[1, 2], [3]])
    assert total(x, x).to_list() == [[2], [4, 6]]
    with pytest.raises(ValueError, match="same lengths"):
        total(x, y)


def test_ranges_reach_over_the_whole_of_their_dtype():
    rows = tw.ragged.range([-2_000_000_000], [2_000_000_000], [1_500_000_000])
    assert rows.dtype == tw.int32
    assert rows.to_list() == [[-2_000_000_000, -500_000_000, 1_000_000_000]]


def test_rows_are_printed_as_tensorflow_prints_them():
    assert str(tw.ragged.constant([[1.0, 2.0], []]) / 3.0) == (
        "<tf.RaggedTensor [[0.33333334, 0.6666667], []]>"
    )
    assert str(tw.strings.split(["a b", "c"])) == (
        "<tf.RaggedTensor [[b'a', b'b'], [b'c']]>"
    )
    assert str(tw.ragged.range([4, 30])) == (
        "<tf.RaggedTensor [[0, 1, 2, 3],\n"
        " [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,\n"
        "  21, 22, 23, 24, 25, 26, 27, 28, 29]                                      ]>"
    )
    assert "2, ..., 1997, 1998" in str(tw.ragged.range([2000]))
    assert str(tw.RaggedTensor.from_row_splits(tw.zeros([0, 3]), [0, 0, 0])) == (
        "<tf.RaggedTensor [[], []]>"
    )


def test_numpy_gives_objects_or_one_array():
    array = tw.ragged.constant([[1, 2], [3]]).numpy()
    assert array.dtype == object and array[0].tolist() == [1, 2]
    assert tw.ragged.constant([[1, 2], [3, 4]]).numpy().tolist() == [[1, 2], [3, 4]]
    nested = tw.ragged.constant([[[1], [2, 3]], [[4], [5]]]).numpy()
    assert nested.shape == (2, 2) and nested[0, 1].tolist() == [2, 3]
    words = tw.strings.split(["a b", "c d"]).numpy()
    assert words.tolist() == [[b"a", b"b"], [b"c", b"d"]]


def test_rows_of_characters_are_ragged():
    """As TensorFlow gives them."""
    found = tw.strings.unicode_decode(["aé", "", "z"], "UTF-8")
    assert found.to_list() == [[97, 233], [], [122]] and found.dtype == tw.int32


def test_a_layer_looks_up_ragged_rows():
    table = tw.keras.layers.Embedding(3, 2, embeddings_initializer="ones")
    assert table(tw.ragged.constant([[1, 2], [0]])).shape.as_list() == [2, None, 2]


def test_an_ellipsis_stands_for_the_axes_between():
    rows = tw.ragged.constant([[1, 2], [], [3, 4, 5]])
    assert rows[..., :1].to_list() == rows[:, :1].to_list() == [[1], [], [3]]
    assert rows[1:, ...].to_list() == rows[1:].to_list()
    nested = tw.ragged.constant([[[1, 2], []], [[3]]])
    assert nested[..., 1:].to_list() == nested[:, :, 1:].to_list() == [[[2], []], [[]]]
    for key in ((..., ...), (0, 0, 0, ...)):
        with pytest.raises(IndexError, match=r"one \.\.\. and 2 indices"):
            rows[key]


def test_composite_tensors_are_no_tensors_whatever_their_rows():
    """NumPy would take equal rows one by one, apart from tapes."""
    even = tw.ragged.constant([[1.0, 2.0], [3.0, 4.0]])
    sparse = tw.sparse.eye(2)
    for call in (tw.convert_to_tensor, tw.sort, tw.Variable, np.asarray):
        with pytest.raises(TypeError, match="RaggedTensor.*to_tensor"):
            call(even)
        with pytest.raises(TypeError, match="SparseTensor.*to_dense"):
            call(sparse)
    with pytest.raises(TypeError, match="RaggedTensor.*to_tensor"):
        tw.convert_to_tensor([even, even])
    with pytest.raises(TypeError, match="cholesky.*SparseTensor.*to_dense"):
        tw.linalg.cholesky(sparse)


def test_a_tensor_of_rows_has_a_size_for_each_axis():
    rows = tw.ragged.constant([[1, 2], [3]])
    assert rows.to_tensor(shape=(None, 3)).shape == (2, 3)
    for shape in ([3], [None, 3, 1]):
        with pytest.raises(ValueError, match="must have 2 sizes"):
            rows.to_tensor(shape=shape)


def test_rows_are_arrays_too():
    rows = tw.ragged.constant([np.array([1, 2]), np.array([], int), [3]])
    assert rows.to_list() == [[1, 2], [], [3]]
    assert tw.ragged.constant(np.zeros((0, 2))).shape == (0, None)
    with pytest.raises(ValueError, match="nested evenly"):
        tw.ragged.constant([np.array([1, 2]), 3])
    with pytest.raises(ValueError, match="ragged_rank must be from 0 to 1"):
        tw.ragged.constant([np.array([1, 2])], ragged_rank=2)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: tw.ragged.constant([[1], [[2]]]), "nested evenly"),
        (lambda: tw.ragged.constant([[1], 2], ragged_rank=1), "nested evenly"),
        (lambda: tw.ragged.constant([[[1], [2, 3]]], ragged_rank=1), "within 1 ragged axes"),
        (lambda: tw.ragged.constant([[[1, 2]]], inner_shape=(3,)), r"shape \(2,\), not"),
        (lambda: tw.ragged.range([1], dtype=None, limits=["a"]), "float32 or float64"),
        (lambda: tw.ragged.range([1, 2], [3, 4, 5]), "vectors of one size"),
        (lambda: tw.ragged.range([[1, 2]]), "vectors of one size"),
        (lambda: tw.ragged.stack([[1]], axis=1), "axis must be 0, got 1"),
        (lambda: tw.ragged.stack([]), "values must not be empty"),
        (lambda: tw.ragged.stack([[1], [[2]]]), r"shapes \[\(1,\), \(1, 1\)\]"),
        (lambda: tw.ragged.stack([1, 2]), "the same rank, 1 or more"),
        (lambda: tw.ragged.boolean_mask([[1]], [[1]]), "rows of booleans"),
        (lambda: tw.ragged.boolean_mask([1], [True]), "two axes or more"),
        (lambda: tw.ragged.row_splits_to_segment_ids([]), "must not be empty"),
        (lambda: tw.ragged.stack_dynamic_partitions([1, 2], [0], 2), "one for each row"),
    ],
)  # fmt: skip
def test_rows_that_do_not_fit_are_refused(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_entries_have_the_inner_shape():
    rows = tw.ragged.constant([[[1, 2]], []], inner_shape=(2,))
    assert rows.shape == (2, None, 2) and rows.to_list() == [[[1, 2]], []]
    empty = tw.ragged.constant([[], []], ragged_rank=1, inner_shape=(3,))
    assert empty.shape == (2, None, 3)


def test_matrices_are_stacked_as_rows_of_rows():
    stacked = tw.ragged.stack([np.array([[1, 2]]), np.array([[3, 4], [5, 6]])])
    assert stacked.to_list() == [[[1, 2]], [[3, 4], [5, 6]]]
    assert tw.ragged.map_flat_values(tw.square, [2]).numpy() == [4]
