"""Losses: values and gradients of Keras, reductions, weights, names."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import losses

LOGITS = [[2.0, -1.0, 0.5], [0.1, 0.2, -0.3]]
PROBABILITIES = [[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]]
ONE_HOT = [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
LABELS = [0, 2]
WEIGHTS = [3.0, 0.5]

# Recorded from Keras 3.15 with TensorFlow:
#   p = tf.constant(y_pred)
#   with tf.GradientTape() as tape:
#       tape.watch(p)
#       value = loss(np.array(y_true), p, sample_weight=weights)
#   tape.gradient(value, p)
# fmt: off
EXPECTED = [
    (losses.SparseCategoricalCrossentropy(from_logits=True), LABELS, LOGITS, None,
     0.83106947, [[-0.1072015, 0.01955629, 0.0876452], [0.1801483, 0.1990947, -0.379243]]),
    (losses.SparseCategoricalCrossentropy(), LABELS, PROBABILITIES, None,
     0.63648283, [[-0.2142857, 0.5, 0.5], [0.5, 0.5, -0.75]]),
    (losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=2), LABELS, LOGITS,
     None, 0.24131133, [[-0.214403, 0.03911257, 0.1752904], [0.0, 0.0, 0.0]]),
    (losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1), ONE_HOT, LOGITS,
     None, 0.89106953, [[-0.07386816, 0.002889618, 0.07097853],
                        [0.1634817, 0.182428, -0.3459097]]),
    (losses.CategoricalCrossentropy(), ONE_HOT, PROBABILITIES, None,
     0.63648283, [[-0.2142857, 0.5, 0.5], [0.5, 0.5, -0.75]]),
    (losses.BinaryCrossentropy(from_logits=True, label_smoothing=0.1), ONE_HOT, LOGITS, None,
     0.65102625, [[-0.01153381, 0.03649024, 0.09540989],
                  [0.07916319, 0.08330566, -0.08740708]]),
    (losses.BinaryCrossentropy(), ONE_HOT, PROBABILITIES, None,
     0.38580328, [[-0.2380953, 0.2083333, 0.1851852], [0.2380953, 0.2380953, -0.4166667]]),
    (losses.MeanSquaredError(), ONE_HOT, LOGITS, None,
     0.66499996, [[0.3333333, -0.3333333, 0.1666667], [0.03333334, 0.06666667, -0.4333333]]),
    (losses.MeanAbsoluteError(), ONE_HOT, LOGITS, None,
     0.68333328, [[0.1666667, -0.1666667, 0.1666667], [0.1666667, 0.1666667, -0.1666667]]),
    (losses.Huber(delta=0.5), ONE_HOT, LOGITS, None,
     0.23749998, [[0.08333334, -0.08333334, 0.08333334],
                  [0.01666667, 0.03333334, -0.08333334]]),
    (losses.MeanSquaredError(), ONE_HOT, LOGITS, WEIGHTS,
     1.27, [[1.0, -1.0, 0.5], [0.01666667, 0.03333334, -0.2166667]]),
    (losses.MeanSquaredError("sum"), ONE_HOT, LOGITS, WEIGHTS,
     2.54, [[2.0, -2.0, 1.0], [0.03333334, 0.06666667, -0.4333333]]),
    (losses.MeanSquaredError("mean_with_sample_weight"), ONE_HOT, LOGITS, WEIGHTS,
     0.72571427, [[0.5714286, -0.5714286, 0.2857143], [0.00952381, 0.01904762, -0.1238095]]),
    (losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=2), LABELS, LOGITS,
     WEIGHTS, 0.72393399, [[-0.6432089, 0.1173377, 0.5258712], [0.0, 0.0, 0.0]]),
]
# fmt: on


@pytest.mark.parametrize("loss, y_true, y_pred, weights, value, gradient", EXPECTED)
def test_values_and_gradients_are_those_of_keras(
    loss, y_true, y_pred, weights, value, gradient
):
    p = tw.constant(y_pred)
    with tw.GradientTape() as tape:
        tape.watch(p)
        result = loss(np.array(y_true), p, sample_weight=weights)
    assert result.shape == () and float(result) == pytest.approx(value, rel=1e-5)
    np.testing.assert_allclose(tape.gradient(result, p), gradient, rtol=1e-4, atol=1e-6)


# Recorded likewise: the clipping at 1e-7, in single precision.
@pytest.mark.parametrize(
    "loss, y_true, value",
    [
        (losses.BinaryCrossentropy(), [[0.0, 1.0]], 16.03024),
        (losses.CategoricalCrossentropy(), [[0.0, 1.0]], 16.118095),
        (losses.SparseCategoricalCrossentropy(), [1], 16.118095),
    ],
)
def test_certain_and_wrong_probabilities_cost_what_they_do_in_keras(
    loss, y_true, value
):
    assert float(loss(y_true, [[1.0, 0.0]])) == pytest.approx(value, rel=1e-5)


# ----------------------------------------------------------------------- reductions


@pytest.mark.parametrize(
    "reduction, expected",
    [
        ("sum_over_batch_size", 3.0),
        ("mean", 3.0),
        ("mean_with_sample_weight", 3.0),
        ("sum", 6.0),
        ("none", [1.0, 5.0]),
        (None, [1.0, 5.0]),
    ],
)
def test_reductions(reduction, expected):
    loss = losses.MeanSquaredError(reduction=reduction)
    value = loss([[0.0, 0.0], [0.0, 0.0]], [[1.0, 1.0], [1.0, 3.0]])
    assert value.numpy().tolist() == expected


@pytest.mark.parametrize("shape", [(2,), (2, 1)])
def test_weights_multiply_the_losses_of_their_examples(shape):
    loss = losses.MeanSquaredError(reduction="sum")
    weights = np.reshape([2.0, 0.5], shape)
    value = loss([[0.0], [0.0]], [[1.0], [2.0]], sample_weight=weights)
    assert float(value) == 2.0 * 1.0 + 0.5 * 4.0


def test_an_empty_batch_costs_nothing():
    assert float(losses.MeanSquaredError()(np.zeros((0, 2)), np.zeros((0, 2)))) == 0.0


def test_a_batch_of_ignored_labels_costs_nothing():
    loss = losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1)
    logits = tw.Variable([[1.0, 2.0]])
    with tw.GradientTape() as tape:
        value = loss([-1], logits)
    assert float(value) == 0.0
    assert tape.gradient(value, logits).numpy().tolist() == [[0.0, 0.0]]


def test_an_unknown_reduction_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="Huber: reduction must be one of sum_over"):
        losses.Huber(reduction="average")


# ---------------------------------------------------------------- shapes and dtypes


def test_a_last_axis_of_size_one_too_many_is_no_matter():
    assert losses.mean_squared_error([1.0, 3.0], [[1.0], [1.0]]).numpy().tolist() == [
        0,
        4,
    ]
    labels = np.array([[0], [1]])
    value = losses.sparse_categorical_crossentropy(labels, LOGITS, from_logits=True)
    assert value.shape == (2,)


def test_labels_may_be_floats_and_of_any_integer_type():
    expected = losses.sparse_categorical_crossentropy([0, 2], PROBABILITIES).numpy()
    for dtype in ("uint8", "int64", "float32"):
        labels = np.array(LABELS, dtype)
        value = losses.sparse_categorical_crossentropy(labels, PROBABILITIES)
        np.testing.assert_array_equal(value, expected)


def test_the_class_axis_may_be_another():
    pixels = np.random.normal(size=(2, 4, 3)).astype("float32")
    labels = np.random.randint(0, 4, (2, 3))
    expected = losses.sparse_categorical_crossentropy(
        labels, pixels.transpose(0, 2, 1), from_logits=True
    )
    value = losses.sparse_categorical_crossentropy(
        labels, pixels, from_logits=True, axis=1
    )
    np.testing.assert_allclose(value, expected)
    hot = np.eye(4, dtype="float32")[labels].transpose(0, 2, 1)
    value = losses.categorical_crossentropy(hot, pixels, from_logits=True, axis=1)
    np.testing.assert_allclose(value, expected, rtol=1e-5)


def test_the_dtype_is_that_of_the_predictions_or_the_one_asked_for():
    y_true, y_pred = np.zeros((2, 3)), np.ones((2, 3))
    assert losses.MeanSquaredError()(y_true, y_pred).dtype == "float64"
    assert losses.MeanSquaredError(dtype="float32")(y_true, y_pred).dtype == "float32"
    assert losses.MeanSquaredError()([[0.0]], [[1]]).dtype == "float32"


def test_labels_out_of_range_are_refused(device):
    if device != "cpu":
        pytest.skip("elsewhere the check would have to wait for the device")
    with pytest.raises(ValueError, match="labels must be from 0 to 2, got 3"):
        losses.sparse_categorical_crossentropy([0, 3], LOGITS, from_logits=True)


def test_integer_labels_for_one_hot_ones_are_refused():
    with pytest.raises(
        ValueError, match="labels go to sparse_categorical_crossentropy"
    ):
        losses.CategoricalCrossentropy()(LABELS, PROBABILITIES)


def test_arguments_out_of_range_are_refused():
    with pytest.raises(ValueError, match="label_smoothing must be from 0 to 1, got 2"):
        losses.CategoricalCrossentropy(label_smoothing=2)
    with pytest.raises(ValueError, match="delta must be positive, got 0"):
        losses.huber([0.0], [0.0], delta=0)


# --------------------------------------------------------------------- second order


def test_second_derivatives_of_the_sparse_loss():
    # d2 loss / dz2 = diag(p) - p p^T for one example
    z = tw.Variable([[0.3, -0.2, 0.9]])
    loss = losses.SparseCategoricalCrossentropy(from_logits=True)
    with tw.GradientTape() as outer:
        with tw.GradientTape() as tape:
            value = loss([1], z)
        g = tape.gradient(value, z)
    p = np.exp(z.numpy()[0]) / np.exp(z.numpy()[0]).sum()
    hessian = outer.jacobian(g, z).numpy()[0, :, 0]
    np.testing.assert_allclose(hessian, np.diag(p) - np.outer(p, p), atol=1e-6)


# ---------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    "name, function",
    [
        ("mse", losses.mean_squared_error),
        ("mae", losses.mean_absolute_error),
        ("mean_squared_error", losses.mean_squared_error),
        ("binary_crossentropy", losses.binary_crossentropy),
        ("sparse_categorical_crossentropy", losses.sparse_categorical_crossentropy),
    ],
)
def test_names_of_functions(name, function):
    assert losses.get(name) is function


def test_names_of_classes_configs_and_callables():
    assert type(losses.get("MeanSquaredError")) is losses.MeanSquaredError
    loss = losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=3)
    twin = losses.get(losses.serialize(loss))
    assert twin.get_config() == loss.get_config()
    assert losses.get(max) is max and losses.get(None) is None
    assert losses.serialize(losses.huber) == "huber"


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="Unknown loss 'cosine'; known are .*huber"):
        losses.get("cosine")


def test_default_names_are_those_of_keras():
    assert losses.MeanSquaredError().name == "mean_squared_error"
    assert losses.Huber().name == "huber_loss"
    name = "sparse_categorical_crossentropy"
    assert losses.SparseCategoricalCrossentropy().name == name


def test_a_loss_of_ones_own():
    class Largest(losses.Loss):
        def call(self, y_true, y_pred):
            return tw.reduce_max(abs(y_true - y_pred), -1)

    assert float(Largest()(tw.zeros([2, 2]), [[1.0, 2.0], [3.0, 4.0]])) == 3.0
    assert type(losses.get("Largest")) is Largest


def test_the_third_argument_of_the_sparse_crossentropy_is_the_reduction():
    assert losses.SparseCategoricalCrossentropy(True, None, "sum").reduction == "sum"
