"""Shapes of labels, predictions, weights and masks."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import losses, metrics

LOGITS = [[2.0, -1.0, 0.5], [0.1, 0.2, -0.3]]
ONE_HOT = [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]


@pytest.mark.parametrize("shape", [(3,), (2, 3), (1, 2, 3)])
def test_weights_that_do_not_fit_the_losses_are_refused(shape):
    with pytest.raises(
        tw.errors.ShapeError, match="mean_squared_error: sample_weight must be"
    ):
        losses.MeanSquaredError()(ONE_HOT, LOGITS, sample_weight=np.ones(shape))


def test_a_last_axis_of_size_one_too_many_is_no_matter():
    assert losses.mean_squared_error([1.0, 3.0], [[1.0], [1.0]]).numpy().tolist() == [
        0,
        4,
    ]
    labels = np.array([[0], [1]])
    value = losses.sparse_categorical_crossentropy(labels, LOGITS, from_logits=True)
    assert value.shape == (2,)


@pytest.mark.parametrize("name", ["Huber", "Poisson", "Hinge", "Dice", "LogCosh"])
def test_shapes_that_do_not_fit_are_told_by_the_names_of_the_arguments(name):
    with pytest.raises(
        tw.errors.ShapeError, match=r"y_true: shape \(2,\).*y_pred: shape \(2, 3\)"
    ):
        getattr(losses, name)()([0.0, 1.0], LOGITS)


def test_labels_are_not_spread_over_predictions_by_accident():
    # (3,) against (3, 3) would broadcast
    with pytest.raises(
        tw.errors.ShapeError, match="mean_squared_error: the shapes of y_true"
    ):
        losses.MeanSquaredError()(np.zeros(3), np.zeros((3, 3)))


def test_python_numbers_keep_the_precision_of_double_losses_and_metrics():
    loss = losses.MeanAbsoluteError(dtype="float64")
    assert float(loss([0.0], [0.1])) == 0.1
    mean = metrics.Mean(dtype="float64")
    assert float(mean([0.1], sample_weight=[0.3])) == pytest.approx(0.1, rel=1e-15)


def test_a_list_of_tensors_is_packed_for_losses_and_metrics():
    labels = [tw.constant(1.0), tw.constant(3.0)]
    predictions = [tw.constant(2.0), tw.constant(2.0)]
    assert float(losses.MeanSquaredError()(labels, predictions)) == 1.0
    assert float(metrics.MeanSquaredError()(labels, predictions)) == 1.0


@pytest.mark.parametrize("make", [losses.MeanSquaredError, metrics.MeanSquaredError])
def test_labels_that_are_no_numbers_are_refused(make):
    with pytest.raises(TypeError, match="cannot cast strings to float32"):
        make()(["a"], [1.0])
    with pytest.raises(TypeError, match="Cannot convert dict to a tensor"):
        make()({"a": [1.0]}, [1.0])
