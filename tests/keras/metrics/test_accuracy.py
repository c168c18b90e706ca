"""Accuracies: labels of every kind and shape."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import metrics


def test_labels_of_a_byte_may_stand_beside_many_classes():
    y_pred = tw.one_hot([258, 7], 300)
    assert metrics.sparse_categorical_accuracy(
        np.array([2, 7], np.uint8), y_pred
    ).numpy().tolist() == [0, 1]


def test_float_labels_are_compared_as_they_are():
    y_pred = tw.one_hot([1, 2], 3)
    found = metrics.sparse_categorical_accuracy([1.0, 1.5], y_pred)
    assert found.numpy().tolist() == [1, 0]


def test_one_hot_labels_with_an_axis_too_many_keep_it():
    y_true, y_pred = tw.one_hot([[1], [2]], 3), tw.one_hot([1, 1], 3)
    assert metrics.categorical_accuracy(y_true, y_pred).numpy().tolist() == [[1], [0]]


def test_binary_accuracy_takes_logical_labels():
    found = metrics.binary_accuracy([True, False], [0.7, 0.6])
    assert found.numpy().tolist() == [1, 0]


@pytest.mark.parametrize("k", [0, "a"])
def test_the_best_k_must_be_some(k):
    for kind in (
        metrics.TopKCategoricalAccuracy,
        metrics.SparseTopKCategoricalAccuracy,
    ):
        with pytest.raises(ValueError, match=f"k .*got {k!r}"):
            kind(k=k)


@pytest.mark.parametrize(
    ("labels", "predictions", "expected"),
    [  # of Keras 3.15
        ([[0], [0]], [[[0.9, 0.1, 0.0], [0.8, 0.15, 0.05]]], 1.0),
        ([[0], [1]], [[[0.9, 0.1, 0.0], [0.2, 0.75, 0.05]]], 0.5),
        ([[0], [1]], [[[0.9, 0.1], [0.2, 0.8]], [[0.1, 0.9], [0.2, 0.8]]], 0.75),
        ([1], [[0.9, 0.1], [0.2, 0.8]], 0.5),
    ],
)
def test_labels_with_sizes_of_1_broadcast_against_the_predictions(
    labels, predictions, expected
):
    assert metrics.SparseCategoricalAccuracy()(labels, predictions) == expected


def test_one_hot_labels_are_no_class_numbers():
    hot = np.eye(3, dtype="float32")
    for y_true, y_pred in ((hot, hot), ([[0, 1]], hot[:2]), ([0, 1], hot[None, :2])):
        with pytest.raises(tw.errors.ShapeError, match="class .*y_true"):
            metrics.SparseCategoricalAccuracy()(y_true, y_pred)
