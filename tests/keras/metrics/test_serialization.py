"""Metrics by name, by shapes of labels, and from configs."""

import pytest

import tapewright as tw
from tapewright import metrics
from tapewright.keras.metrics.serialization import resolve

from .own_metric import CountNegatives


@pytest.mark.parametrize(
    "identifier, cls",
    [
        ("mse", metrics.MeanSquaredError),
        ("MSE", metrics.MeanSquaredError),
        ("mae", metrics.MeanAbsoluteError),
        ("MAPE", metrics.MeanAbsolutePercentageError),
        ("msle", metrics.MeanSquaredLogarithmicError),
        ("BCE", metrics.BinaryCrossentropy),
        ("AUC", metrics.AUC),
        ("auc", metrics.AUC),
        ("top_k_categorical_accuracy", metrics.TopKCategoricalAccuracy),
        ("sparse_categorical_crossentropy", metrics.SparseCategoricalCrossentropy),
        ("accuracy", metrics.serialization.accuracy.Accuracy),
        (metrics.Recall, metrics.Recall),
    ],
)
def test_get_knows_the_names_of_keras(identifier, cls):
    assert type(metrics.get(identifier)) is cls


def test_get_hands_on_what_is_a_metric_already():
    metric, function = metrics.Mean(), metrics.binary_accuracy
    assert metrics.get(metric) is metric
    assert metrics.get(function) is function
    assert metrics.get(None) is None


def test_an_unknown_name_is_answered_with_near_ones():
    with pytest.raises(ValueError, match="metric 'acuracy'.*mean 'accuracy'"):
        metrics.get("acuracy")


def test_what_is_no_metric_is_refused():
    with pytest.raises(TypeError, match="metric: must be a name.*got 3"):
        metrics.get(3)


@pytest.mark.parametrize("name", ["accuracy", "acc", "Accuracy"])
@pytest.mark.parametrize(
    "true, pred, cls",
    [
        ([8, 1], [8, 1], metrics.BinaryAccuracy),
        ([8], [8, 1], metrics.BinaryAccuracy),
        ([8], [8, 4], metrics.SparseCategoricalAccuracy),
        ([8, 1], [8, 4], metrics.SparseCategoricalAccuracy),
        ([8, 6], [8, 6, 4], metrics.SparseCategoricalAccuracy),
        ([8, 4], [8, 4], metrics.CategoricalAccuracy),
    ],
)
def test_accuracy_is_of_the_kind_that_the_shapes_show(name, true, pred, cls):
    metric = resolve(name, tw.zeros(true), tw.zeros(pred))
    assert type(metric) is cls
    assert metric.name == name


def test_crossentropy_is_of_the_kind_that_the_shapes_show():
    metric = resolve("ce", tw.zeros([8]), tw.zeros([8, 4]))
    assert type(metric) is metrics.SparseCategoricalCrossentropy


def test_resolve_names_a_metric_as_it_was_asked_for():
    shapes = tw.zeros([8, 2]), tw.zeros([8, 2])
    assert resolve("mse", *shapes).name == "mse"
    assert resolve(metrics.Mean(name="m"), *shapes).name == "m"
    loss = tw.losses.MeanSquaredError(name="squares")
    assert resolve(loss, *shapes).name == "squares"


def test_resolve_makes_the_mean_of_a_function():
    def largest_error(y_true, y_pred):
        return tw.reduce_max(tw.abs(y_true - y_pred), axis=-1)

    y_true, y_pred = tw.zeros([2, 2]), tw.constant([[1.0, 3.0], [0.0, 2.0]])
    metric = resolve(largest_error, y_true, y_pred)
    assert metric.name == "largest_error"
    assert metric(y_true, y_pred).numpy() == 2.5


def test_resolve_refuses_none():
    with pytest.raises(ValueError, match="got None"):
        resolve(None, tw.zeros([1]), tw.zeros([1]))


def test_a_config_makes_a_metric_of_a_users_own():
    config = metrics.serialize(CountNegatives(name="n", scale=2.0))
    assert config["config"] == {"name": "n", "dtype": "float32", "scale": 2.0}
    scope = {"CountNegatives": CountNegatives}
    assert metrics.deserialize(config, custom_objects=scope).scale == 2
