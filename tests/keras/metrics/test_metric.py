"""`Metric`: its state, calls, tapes, traces, dtypes."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import layers, metrics

from .own_metric import CountNegatives


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


def test_a_variable_that_is_not_of_keras_is_not_reset():
    metric = CountNegatives()
    metric.seen = tw.Variable(3.0)
    metric.peak = tw.keras.Variable(3.0, name="peak")
    metric.reset_state()
    assert [v.name for v in metric.variables] == ["total", "peak"]
    assert (float(metric.seen), float(metric.peak)) == (3.0, 0.0)


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
        assert not tape._tw_tape.records
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


def test_lists_arrays_and_tensors_are_the_same_to_a_metric():
    expected = None
    for convert in (list, np.array, tw.constant):
        metric = metrics.BinaryAccuracy()
        metric.update_state(
            convert([0, 1, 1]), convert([0.1, 0.9, 0.4]), convert([1.0, 2.0, 3.0])
        )
        expected = metric.result().numpy() if expected is None else expected
        assert metric.result().numpy() == expected == 0.5


def test_methods_that_a_subclass_must_define_say_so():
    with pytest.raises(NotImplementedError, match="Metric must define update_state"):
        metrics.Metric().update_state()
    with pytest.raises(NotImplementedError, match="Metric must define result"):
        metrics.Metric().result()


def test_an_unknown_aggregation_of_a_variable_is_refused():
    metric = tw.metrics.Sum()
    with pytest.raises(ValueError, match="aggregation .*only_first_replica.*got 'max'"):
        metric.add_variable((), "zeros", aggregation="max")
    assert metric.add_variable((), "zeros", aggregation=None).aggregation == "none"


def test_an_update_that_replaces_a_variable_by_a_tensor_is_refused():
    class Updates(metrics.Metric):
        def __init__(self, name="updates"):
            super().__init__(name=name)
            self.count = self.add_variable((), "zeros", name="count")

        def update_state(self, y_true, y_pred, sample_weight=None):
            self.count = self.count + 1

        def result(self):
            return self.count

    with pytest.raises(
        TypeError, match="Updates.update_state replaced .*self.count.as"
    ):
        Updates().update_state(1.0, 2.0)
    model = tw.keras.Sequential([tw.keras.Input((2,)), layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[Updates()])
    with pytest.raises(TypeError, match="Updates.update_state replaced"):
        model.fit(np.ones((4, 2)), np.ones((4, 1)), verbose=0)


MANY = 2.0**24  # float32 has no odd numbers beyond it
ONES = np.ones((4, 2), np.float32)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda: metrics.Sum(),
        lambda: metrics.Mean(),
        lambda: metrics.MeanSquaredError(),
        lambda: metrics.RootMeanSquaredError(),
        lambda: metrics.BinaryAccuracy(),
        lambda: metrics.CategoricalAccuracy(),
        lambda: metrics.TruePositives(),
        lambda: metrics.FalseNegatives(thresholds=[0.2, 0.5]),
        lambda: metrics.Precision(),
        lambda: metrics.Recall(top_k=1),
        lambda: metrics.AUC(),
        lambda: metrics.AUC(multi_label=True),
        lambda: metrics.SensitivityAtSpecificity(0.5),
        lambda: metrics.FBetaScore(average="micro", threshold=0.5),
        lambda: metrics.F1Score(),
        lambda: metrics.MeanIoU(2),
        lambda: metrics.MeanIoU(2, dtype="float32"),
        lambda: metrics.R2Score(),
    ],
)
def test_metrics_count_beyond_16_million(make, traced):
    metric = make()
    args = (ONES,) if type(metric) in (metrics.Sum, metrics.Mean) else (ONES, ONES)
    if isinstance(metric, metrics.FalseNegatives):
        args = (ONES, ONES * 0)
    metric.update_state(*args)
    once = [v.numpy() for v in metric.variables]
    for variable in metric.variables:
        variable.assign(np.full(variable.shape, MANY))
    update = tw.function(metric.update_state) if traced else metric.update_state
    for _ in range(3):
        update(*args)
    for variable, value in zip(metric.variables, once):
        np.testing.assert_array_equal(variable.numpy(), MANY + 3 * value)
    assert metric.result().dtype == "float32"


def test_the_loss_of_an_epoch_beyond_16_million_examples_is_a_mean_of_all():
    mean = metrics.Mean()
    mean.update_state([1.0], sample_weight=[2.0**24])
    update = tw.function(mean.update_state)
    for _ in range(64):
        update(np.full(2**17 + 1, 3.0, np.float32))
    counts = 2**24, 64 * (2**17 + 1)
    expected = (counts[0] + 3 * counts[1]) / sum(counts)
    assert mean.count.numpy() == sum(counts)
    assert mean.result().numpy() == np.float32(expected)


def test_the_counts_of_one_batch_go_beyond_16_million():
    ones, weight = np.ones(4, np.float32), np.array([2.0**24, 1, 1, 1], np.float32)
    auc = metrics.AUC(num_thresholds=4)
    auc.update_state(ones, ones, weight)
    assert auc.true_positives.numpy()[0] == 2**24 + 3
    positives = metrics.TruePositives()
    positives.update_state(ones, ones, weight)
    assert positives.accumulator.numpy() == [2**24 + 3]
    iou = metrics.IoU(2, [1], dtype="float32")
    iou.update_state(ones, ones, weight)
    assert iou.total_cm.numpy()[1, 1] == 2**24 + 3


def test_a_checkpoint_with_sums_in_float32_can_be_restored(tmp_path):
    class Older(tw.Module):
        def __init__(self):
            self.total = tw.Variable(np.float32(6.0), name="total")
            self.count = tw.Variable(np.float32(4.0), name="count")

    path = str(tmp_path / "older.h5")
    tw.train.Checkpoint(mean=Older()).write(path)
    mean = metrics.Mean()
    tw.train.Checkpoint(mean=mean).read(path).assert_consumed()
    assert mean.result().numpy() == 1.5
