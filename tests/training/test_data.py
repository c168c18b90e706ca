"""`to_categorical`."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.training.data import to_categorical


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
    with pytest.raises(ValueError, match="num_classes must be given"):
        to_categorical([])


@pytest.mark.parametrize("labels, wrong", [([0, 5], 5), ([-1, 2], -1)])
def test_labels_out_of_range_are_refused(labels, wrong):
    with pytest.raises(ValueError, match=f"from 0 to 2, got {wrong}"):
        to_categorical(labels, 3)
