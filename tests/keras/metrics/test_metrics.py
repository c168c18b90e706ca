"""Metrics: state, names, configs, weights, and what they refuse."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import layers, metrics
from tapewright.core.errors import ShapeError
from tapewright.serialization.registry import custom_object_scope


class CountNegatives(metrics.Metric):
    """How many values are below zero."""

    def __init__(self, name=None, dtype=None, scale=1.0):
        super().__init__(dtype, name)
        self.scale = scale
        self.total = self.add_weight(name="total")

    def update_state(self, values, sample_weight=None):
        below = tw.cast(tw.less(values, 0.0), "float32")
        self.total.assign_add(self.scale * tw.reduce_sum(below))

    def result(self):
        return self.total.read()


# ---------------------------------------------------------------------------- state


def test_a_call_gives_the_result_of_all_batches_so_far():
    metric = metrics.Mean()
    assert metric([1.0, 3.0]).numpy() == 2
    assert metric([8.0]).numpy() == 4


def test_reset_state_forgets_all_batches():
    metric = metrics.Mean()
    metric.update_state([5.0, 7.0])
    metric.reset_state()
    assert metric.result().numpy() == 0
    assert metric([3.0]).numpy() == 3


def test_a_metric_of_a_users_own_counts_and_resets():
    metric = CountNegatives(scale=2.0)
    metric.update_state(tw.constant([1.0, -1.0, -2.0]))
    assert metric.result().numpy() == 4
    metric.reset_state()
    assert metric.result().numpy() == 0


def test_variables_are_not_trainable_and_named_after_the_metric():
    metric = metrics.Mean(name="loss")
    assert [v.path for v in metric.variables] == ["loss/total", "loss/count"]
    assert metric.trainable_variables == ()


def test_variables_of_metrics_inside_follow_ones_own():
    class Both(CountNegatives):
        def __init__(self):
            super().__init__("both")
            self.inside = [metrics.Mean(name="a"), metrics.Sum(name="b")]

    paths = [v.path for v in Both().variables]
    assert paths == ["both/total", "a/total", "a/count", "b/total"]


def test_a_layer_does_not_count_the_state_of_its_metrics_as_weights():
    layer = layers.Dense(2)
    layer.seen = metrics.Mean()
    layer(tw.ones([1, 3]))
    assert len(layer.weights) == 2


def test_default_names_are_those_of_the_class_made_unique():
    first, second = metrics.Recall(), metrics.Recall()
    stem, _, number = second.name.rpartition("_")
    assert first.name.startswith("recall")
    assert stem == "recall" and number.isdigit()


def test_a_forgotten_call_of_super_is_told():
    class Forgetful(metrics.Metric):
        def __init__(self):
            self.total = self.add_weight(name="total")

    with pytest.raises(RuntimeError, match="Forgetful: __init__ must call super"):
        Forgetful()


def test_the_dtype_is_that_of_sums_and_result():
    metric = metrics.Mean(dtype="float64")
    assert metric.dtype == "float64"
    assert metric([0.1, 0.2]).dtype == tw.float64
    assert all(v.dtype == tw.float64 for v in metric.variables)


def test_a_failing_update_leaves_the_state_alone():
    metric = metrics.MeanSquaredError()
    metric.update_state([[1.0], [2.0]], [[0.0], [0.0]])
    with pytest.raises(ValueError, match="sample_weight"):
        metric.update_state([[1.0], [2.0]], [[0.0], [0.0]], sample_weight=[1.0, 2, 3])
    assert metric.result().numpy() == 2.5
    assert metric.variables[1].numpy() == 2


# -------------------------------------------------------------------- tapes and traces

Y_TRUE = [[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
Y_PRED = [[0.2, 0.7], [0.4, 0.1], [0.9, 0.8]]
EVERY = [
    metrics.Mean,
    metrics.MeanSquaredError,
    metrics.RootMeanSquaredError,
    metrics.CategoricalAccuracy,
    metrics.AUC,
    metrics.Precision,
    metrics.F1Score,
    metrics.R2Score,
    metrics.BinaryIoU,
]


def updates(metric, y_pred):
    if type(metric) is metrics.Mean:
        return metric.update_state(y_pred)
    return metric.update_state(Y_TRUE, y_pred)


@pytest.mark.parametrize("kind", EVERY)
def test_an_update_is_recorded_by_no_tape(kind):
    metric, y_pred = kind(), tw.constant(Y_PRED)
    with tw.GradientTape() as tape:
        tape.watch(y_pred)
        updates(metric, y_pred)
        assert not tape._tape.records
        loss = tw.reduce_sum(y_pred * y_pred)
    np.testing.assert_allclose(tape.gradient(loss, y_pred), 2 * np.array(Y_PRED), 1e-6)


def test_a_traced_step_updates_metrics_beside_its_gradient():
    variable, metric = tw.Variable([1.0, 2.0]), metrics.Mean()

    @tw.function
    def step(x):
        with tw.GradientTape() as tape:
            loss = tw.reduce_sum(variable * x)
            metric.update_state(loss)
        return tape.gradient(loss, variable), metric.result()

    for x, mean in (([1.0, 1.0], 3.0), ([3.0, 1.0], 4.0)):
        gradient, result = step(tw.constant(x))
        assert gradient.numpy().tolist() == x
        assert result.numpy() == mean


def test_one_trace_serves_all_batch_sizes():
    traces, metric = [], metrics.SparseCategoricalAccuracy()

    @tw.function(
        input_signature=[
            tw.TensorSpec([None], tw.int32),
            tw.TensorSpec([None, 3], tw.float32),
        ]
    )
    def step(y_true, y_pred):
        traces.append(1)
        metric.update_state(y_true, y_pred)

    for size in (2, 5, 9):
        step(tw.zeros([size], tw.int32), tw.one_hot([0] * (size - 1) + [1], 3))
    assert len(traces) == 1
    assert metric.result().numpy() == np.float32(13 / 16)


def test_variables_may_be_made_in_the_first_traced_update():
    metric = metrics.F1Score(average="micro", threshold=0.5)
    step = tw.function(lambda y_true, y_pred: metric.update_state(y_true, y_pred))
    for _ in range(2):
        step(tw.constant(Y_TRUE), tw.constant(Y_PRED))
    # 3 hits, 1 miss, no false alarm in each
    np.testing.assert_allclose(metric.result(), 6 / 7, 1e-6)
    assert metric.true_positives.numpy() == 6


# -------------------------------------------------------------------- values by hand


def test_the_mean_of_a_number_takes_a_weight():
    metric = metrics.Mean()
    metric.update_state(4.0, sample_weight=3.0)
    metric.update_state(8.0)
    assert metric.result().numpy() == 5


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


def test_the_area_is_the_chance_that_a_positive_is_above_a_negative():
    random = np.random.default_rng(0)
    y_true = random.integers(0, 2, 200)
    y_pred = random.integers(1, 50, 200) / 50 + 0.001
    pairs = y_pred[y_true == 1][:, None] - y_pred[y_true == 0]
    chance = (pairs > 0).mean() + (pairs == 0).mean() / 2
    thresholds = (np.arange(1, 50) / 50).tolist()
    metric = metrics.AUC(thresholds=thresholds)
    np.testing.assert_allclose(metric(y_true, y_pred), chance, 1e-6)


def test_predictions_that_are_no_numbers_are_never_positive():
    for thresholds in (0.5, [0.2, 0.5, 0.7], [0.1, 0.2]):
        metric = metrics.TruePositives(thresholds)
        metric.update_state([1, 1], [np.nan, 0.9])
        assert np.all(metric.result().numpy() == 1)


def test_thresholds_keep_their_order():
    metric = metrics.TruePositives([0.9, 0.1, 0.5])
    metric.update_state([1, 1, 1], [0.3, 0.7, 0.95])
    assert metric.result().numpy().tolist() == [1, 3, 2]


def test_the_last_class_may_be_counted_from_the_end():
    first, second = metrics.Recall(class_id=-1), metrics.Recall(class_id=2)
    y_true, y_pred = [[0, 1, 1], [1, 0, 1]], [[0.1, 0.2, 0.3], [0.2, 0.8, 0.9]]
    assert first(y_true, y_pred).numpy() == second(y_true, y_pred).numpy() == 0.5


def test_lists_arrays_and_tensors_are_the_same_to_a_metric():
    expected = None
    for convert in (list, np.array, tw.constant):
        metric = metrics.BinaryAccuracy()
        metric.update_state(
            convert([0, 1, 1]), convert([0.1, 0.9, 0.4]), convert([1.0, 2.0, 3.0])
        )
        expected = metric.result().numpy() if expected is None else expected
        assert metric.result().numpy() == expected == 0.5


def test_weights_that_an_iou_of_integers_cannot_keep_are_told():
    metric = metrics.MeanIoU(2)
    with pytest.warns(UserWarning, match="MeanIoU: sample_weight is cast"):
        metric.update_state([0, 1], [0, 1], np.array([0.5, 0.5]))


def test_a_score_without_samples_to_spare_is_not_adjusted():
    metric = metrics.R2Score(num_regressors=5)
    metric.update_state([[1.0], [2.0]], [[1.0], [3.0]])
    with pytest.warns(UserWarning, match="R2Score: 5 regressors"):
        assert metric.result().numpy() == -1


# ---------------------------------------------------------------------------- names


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
    with pytest.raises(ValueError, match="Unknown metric 'acuracy'.*mean 'Accuracy'"):
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
    metric = metrics.resolve(name, tw.zeros(true), tw.zeros(pred))
    assert type(metric) is cls
    assert metric.name == name


def test_crossentropy_is_of_the_kind_that_the_shapes_show():
    metric = metrics.resolve("ce", tw.zeros([8]), tw.zeros([8, 4]))
    assert type(metric) is metrics.SparseCategoricalCrossentropy


def test_resolve_names_a_metric_as_it_was_asked_for():
    shapes = tw.zeros([8, 2]), tw.zeros([8, 2])
    assert metrics.resolve("mse", *shapes).name == "mse"
    assert metrics.resolve(metrics.Mean(name="m"), *shapes).name == "m"
    loss = tw.losses.MeanSquaredError(name="squares")
    assert metrics.resolve(loss, *shapes).name == "squares"


def test_resolve_makes_the_mean_of_a_function():
    def largest_error(y_true, y_pred):
        return tw.reduce_max(tw.abs(y_true - y_pred), axis=-1)

    y_true, y_pred = tw.zeros([2, 2]), tw.constant([[1.0, 3.0], [0.0, 2.0]])
    metric = metrics.resolve(largest_error, y_true, y_pred)
    assert metric.name == "largest_error"
    assert metric(y_true, y_pred).numpy() == 2.5


def test_resolve_refuses_none():
    with pytest.raises(ValueError, match="got None"):
        metrics.resolve(None, tw.zeros([1]), tw.zeros([1]))


# -------------------------------------------------------------------------- configs


def test_a_config_makes_a_metric_of_a_users_own():
    config = metrics.serialize(CountNegatives(name="n", scale=2.0))
    assert config["config"] == {"name": "n", "dtype": "float32", "scale": 2.0}
    scope = {"CountNegatives": CountNegatives}
    assert metrics.deserialize(config, custom_objects=scope).scale == 2


def test_a_mean_of_a_function_is_made_again_from_its_config():
    function = tw.losses.huber
    config = metrics.MeanMetricWrapper(function, name="h", delta=2.0).get_config()
    assert config.pop("fn")["config"] == "huber"
    assert config == {"name": "h", "dtype": "float32", "delta": 2.0}
    config["fn"] = "huber"  # Keras has had both forms
    again = metrics.MeanMetricWrapper.from_config(config)
    assert again.fn is function
    assert again([[0.0]], [[1.0]]).numpy() == 0.5


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


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: metrics.Precision(1.5), "Precision: thresholds must be from 0 to 1"),
        (lambda: metrics.TruePositives([0.1, -1]), "thresholds must be from 0 to 1"),
        (lambda: metrics.PrecisionAtRecall(2.0), "recall must be from 0 to 1, got 2.0"),
        (lambda: metrics.RecallAtPrecision(0.5, 0), "num_thresholds must be positive"),
        (lambda: metrics.AUC(num_thresholds=1), "num_thresholds must be more than 1"),
        (lambda: metrics.AUC(curve="RCO"), "curve must be one of .*'RCO'"),
        (lambda: metrics.AUC(summation_method="x"), "summation_method must be one of"),
        (lambda: metrics.AUC(num_labels=2), "num_labels is for multi_label=True"),
        (lambda: metrics.FBetaScore("all"), "average must be one of"),
        (lambda: metrics.FBetaScore(beta=-1.0), "beta must be a positive float"),
        (lambda: metrics.F1Score(threshold=1.5), "F1Score: threshold must be"),
        (lambda: metrics.MeanIoU(10**9), "MeanIoU: num_classes must be at most"),
        (lambda: metrics.IoU(2, [2]), "IoU: target_class_ids must be from 0 to 1"),
        (lambda: metrics.R2Score("mean"), "class_aggregation must be one of"),
        (lambda: metrics.R2Score(num_regressors=-1), "num_regressors must not be"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "make, y_true, y_pred, message",
    [
        (metrics.SparseCategoricalAccuracy, [4, 2], [4, 3], "one class of y_true"),
        (metrics.CategoricalAccuracy, [4, 2, 3], [4, 3], "one class of y_true"),
        (metrics.BinaryAccuracy, [4, 3], [4, 2], "y_true and y_pred must be the same"),
        (metrics.BinaryAccuracy, [3], [3, 3], "y_true and y_pred must be the same"),
        (metrics.RootMeanSquaredError, [3], [3, 3], "RootMeanSquaredError: the shapes"),
        (metrics.PearsonCorrelation, [4, 3], [4, 2], "pearson_correlation: the shapes"),
        (metrics.Precision, [4, 3], [4, 2], "Precision: y_true and y_pred must"),
        (metrics.F1Score, [4], [4, 2], "F1Score: y_true and y_pred must be"),
        (metrics.R2Score, [4, 1, 1], [4, 1, 1], "R2Score: y_true and y_pred must be"),
        (lambda: metrics.MeanIoU(2), [4], [5], "as many labels as predictions"),
        (lambda: metrics.AUC(multi_label=True), [4], [4], "must be .batch, labels"),
        (lambda: metrics.Recall(top_k=3), [4, 2], [4, 2], "top_k must be at most"),
        (lambda: metrics.Recall(class_id=2), [4, 2], [4, 2], "with class_id=2, y_pred"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(make, y_true, y_pred, message):
    with pytest.raises(ValueError, match=message):
        make().update_state(tw.zeros(y_true), tw.zeros(y_pred))


def test_methods_that_a_subclass_must_define_say_so():
    with pytest.raises(NotImplementedError, match="Metric must define update_state"):
        metrics.Metric().update_state()
    with pytest.raises(NotImplementedError, match="Metric must define result"):
        metrics.Metric().result()


@pytest.mark.parametrize("k", [0, "a"])
def test_the_best_k_must_be_some(k):
    for kind in (
        metrics.TopKCategoricalAccuracy,
        metrics.SparseTopKCategoricalAccuracy,
    ):
        with pytest.raises(ValueError, match=f"k must be 1 or more, got {k!r}"):
            kind(k=k)


@pytest.mark.parametrize("make", [metrics.F1Score, metrics.R2Score])
def test_labels_of_another_shape_are_refused_after_the_first_batch_too(make):
    metric, scores = make(), np.eye(3, dtype=np.float32)
    metric.update_state(scores, scores)
    before = metric.result().numpy()
    for labels in (scores[:1], scores[:, :1]):
        with pytest.raises(ValueError, match="must be .batch, .* both"):
            metric.update_state(labels, scores)
    np.testing.assert_array_equal(metric.result().numpy(), before)


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
        with pytest.raises(ShapeError, match="one class of y_true"):
            metrics.SparseCategoricalAccuracy()(y_true, y_pred)
