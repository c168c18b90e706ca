"""Means: weights, masks, empty batches, functions of a user's own."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import metrics
from tapewright.keras.utils import custom_object_scope


def test_the_mean_of_a_number_takes_a_weight():
    metric = metrics.Mean()
    metric.update_state(4.0, sample_weight=3.0)
    metric.update_state(8.0)
    assert metric.result().numpy() == 5


def test_a_mean_of_a_function_wants_one():
    with pytest.raises(TypeError, match="MeanMetricWrapper: fn .*function.*got 3"):
        metrics.MeanMetricWrapper(3)


def test_samples_count_once_whatever_their_size():
    metric = metrics.Mean()
    metric.update_state([[1.0, 3.0], [5.0, 7.0]])
    assert metric.count.numpy() == 2
    assert metric.result().numpy() == 4


def test_an_empty_batch_changes_nothing():
    metric = metrics.MeanSquaredError()
    metric.update_state([[1.0]], [[3.0]])
    metric.update_state(np.zeros((0, 1)), np.zeros((0, 1)))
    assert metric.result().numpy() == 4


def test_weights_of_samples_meet_masks_of_steps():
    y_pred = tw.constant([[[1.0], [2.0]], [[3.0], [4.0]]])
    y_pred._keras_mask = tw.constant([[True, False], [True, True]])
    metric = metrics.MeanAbsoluteError()
    metric.update_state(tw.zeros_like(y_pred), y_pred, sample_weight=[2.0, 1.0])
    # (2 * 1 + 1 * 3 + 1 * 4) / (2 + 1 + 1)
    assert metric.result().numpy() == 2.25


def test_a_mean_of_a_function_is_made_again_from_its_config():
    function = tw.losses.huber
    config = metrics.MeanMetricWrapper(function, name="h", delta=2.0).get_config()
    assert config.pop("fn")["config"] == "huber"
    assert config == {"name": "h", "dtype": "float32", "delta": 2.0}
    config["fn"] = "huber"  # Keras has had both forms
    again = metrics.MeanMetricWrapper.from_config(config)
    assert again.fn is function
    assert again([[0.0]], [[1.0]]).numpy() == 0.5


def test_a_subclass_of_a_mean_has_a_constructor_of_its_own():
    class Strict(metrics.BinaryAccuracy):
        def __init__(self, margin=0.25, name="strict", dtype=None):
            super().__init__(name, dtype, threshold=0.5 + margin)
            self.margin = margin

    metric = Strict(0.2)
    assert metric([[1], [1]], [[0.6], [0.8]]).numpy() == 0.5
    assert metric.get_config() == {"margin": 0.2, "name": "strict", "dtype": "float32"}
    assert isinstance(metric, metrics.MeanMetricWrapper)
    assert metric.fn is metrics.binary_accuracy


def test_more_is_better_for_means_of_functions_that_are_no_losses():
    directions = {
        name: getattr(metrics, name)()._direction
        for name in ("BinaryAccuracy", "CosineSimilarity", "Hinge", "MeanSquaredError")
    }
    assert [*directions.values()] == ["up", "up", "down", "down"]


def test_the_function_of_a_config_may_be_a_users_own():
    def halves(y_true, y_pred):
        return (y_true - y_pred) / 2

    config = metrics.serialize(metrics.MeanMetricWrapper(halves))
    with custom_object_scope({"halves": halves}):
        assert metrics.deserialize(config).fn is halves


def test_the_function_of_a_config_may_be_written_as_keras_does():
    config = {
        "name": "h",
        "fn": {"module": "builtins", "class_name": "function", "config": "huber"},
    }
    assert metrics.MeanMetricWrapper.from_config(config).fn is tw.losses.huber
