"""`to_categorical`, `normalize` and `pad_sequences`."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.keras.utils import (
    normalize,
    pad_sequences,
    to_categorical,
)


@pytest.mark.parametrize("shape", [(4,), (4, 1), (2, 2), (2, 2, 1)])
def test_labels_become_rows_behind_their_shape(shape):
    labels = np.array([3, 0, 2, 1], "uint8").reshape(shape)
    rows = to_categorical(labels, 5)
    without = shape[:-1] if shape[-1] == 1 else shape
    np.testing.assert_array_equal(rows, np.eye(5)[labels].reshape(*without, 5))
    assert type(rows) is np.ndarray and rows.dtype == np.float64  # as Keras gives them


def test_a_scalar_and_a_single_label():
    assert to_categorical(1).tolist() == [0.0, 1.0]
    assert to_categorical([1]).tolist() == [[0.0, 1.0]]


def test_tensors_are_taken_too():
    assert to_categorical(tw.constant([1, 0])).tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_no_labels_give_no_rows():
    assert to_categorical([], 3).shape == (0, 3)
    with pytest.raises(ValueError, match="num_classes"):
        to_categorical([])


@pytest.mark.parametrize("labels, wrong", [([0, 5], 5), ([-1, 2], -1)])
def test_labels_out_of_range_are_refused(labels, wrong):
    with pytest.raises(ValueError, match=f"from 0 to 2, got {wrong}"):
        to_categorical(labels, 3)


def test_a_negative_label_is_refused_without_a_number_of_classes():
    with pytest.raises(ValueError, match="labels must be 0 or more, got -1"):
        to_categorical([-1])


# --- normalize


def test_vectors_are_divided_by_their_norm_and_zeros_stay():
    x = np.array([[3.0, 4.0], [0.0, 0.0]])
    assert normalize(x).tolist() == [[0.6, 0.8], [0.0, 0.0]]
    assert normalize(x, order=1)[0].tolist() == [3 / 7, 4 / 7]
    assert normalize(x, axis=0).tolist() == [[1.0, 1.0], [0.0, 0.0]]
    assert normalize(x, axis=None)[0].tolist() == [0.6, 0.8]
    assert normalize(tw.constant(x)).numpy().tolist() == [[0.6, 0.8], [0.0, 0.0]]


# --- pad_sequences


@pytest.mark.parametrize(
    "options, expected",
    [
        ({}, [[0, 0, 1], [0, 2, 3], [4, 5, 6]]),
        ({"maxlen": 2}, [[0, 1], [2, 3], [5, 6]]),
        ({"maxlen": 2, "truncating": "post"}, [[0, 1], [2, 3], [4, 5]]),
        ({"padding": "post", "value": 9}, [[1, 9, 9], [2, 3, 9], [4, 5, 6]]),
        ({"maxlen": 0}, [[], [], []]),
    ],
)
def test_sequences_are_padded_and_cut_as_told(options, expected):
    rows = pad_sequences([[1], [2, 3], [4, 5, 6]], **options)
    assert rows.tolist() == expected and rows.dtype == np.int32


def test_items_of_sequences_may_be_arrays():
    rows = pad_sequences([np.ones((2, 3)), np.ones((1, 3))], dtype="float32")
    assert rows.shape == (2, 2, 3) and rows[1, 0].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "arguments, words",
    [
        (([[1]], 2, "int32", "before"), "padding"),
        (([1, 2],), "sequences .*list"),
        (([[1]], 2, "int32", "pre", "pre", "x"), "dtype=object"),
        (([[[1, 2]], [[1]]],), "sequence 1"),
    ],
)
def test_what_cannot_be_padded_is_named(arguments, words):
    with pytest.raises(ValueError, match=words):
        pad_sequences(*arguments)
