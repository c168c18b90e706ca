"""All losses in one table: values and gradients of Keras, derivatives, dtypes."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import losses
from tapewright.test import check_gradients

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


CLASSES = [n for n in losses.__all__ if isinstance(getattr(losses, n), type)]


@pytest.mark.parametrize("name", CLASSES)
def test_losses_compute_in_floatx_or_the_dtype_asked_for(name):
    if name in ("Loss", "LossFunctionWrapper", "Reduction"):
        return
    y_true, y_pred = SMOOTH[name]
    loss = getattr(losses, name)
    assert loss().dtype == "float32"
    assert loss()(y_true, y_pred).dtype == "float32"  # though y_pred is float64
    assert loss(dtype="float64")(y_true, y_pred).dtype == "float64"


@pytest.mark.parametrize("name", ["ctc", "categorical_generalized_cross_entropy"])
def test_other_losses_refuse_labels_out_of_range(name, device):
    if device != "cpu":
        pytest.skip("elsewhere the check would have to wait for the device")
    y_pred = np.full((1, 2, 3), 1 / 3, "float32")
    arguments = {"q": 0.5} if name != "ctc" else {}
    with pytest.raises(IndexError, match="indices .*0.*2.*got 3"):
        getattr(losses, name)([[1, 3]], y_pred, **arguments)


def test_arguments_out_of_range_are_refused():
    for loss in (losses.mean_squared_error, losses.sparse_categorical_crossentropy):
        with pytest.raises(ValueError, match=f"{loss.__name__}: y_pred .*one axis"):
            loss(1, 2.0)
    with pytest.raises(ValueError, match="label_smoothing .*got 2"):
        losses.CategoricalCrossentropy(label_smoothing=2)
    with pytest.raises(ValueError, match="delta .*got 0"):
        losses.huber([0.0], [0.0], delta=0)


RNG = np.random.default_rng(2)
SHARES = RNG.dirichlet(np.ones(3), (2, 2))
NUMBERS = RNG.normal(size=(2, 2, 3))
BITS = RNG.integers(0, 2, (2, 2, 3))
HOT = np.eye(3)[RNG.integers(0, 3, (2, 2))]
VECTORS = RNG.normal(size=(4, 3))
VECTORS /= np.linalg.norm(VECTORS, axis=1, keepdims=True)
SMOOTH = {
    "MeanSquaredError": (NUMBERS, NUMBERS[::-1]),
    "MeanAbsoluteError": (NUMBERS, NUMBERS[::-1]),
    "MeanAbsolutePercentageError": (NUMBERS, NUMBERS[::-1]),
    "MeanSquaredLogarithmicError": (abs(NUMBERS), abs(NUMBERS[::-1])),
    "Huber": (NUMBERS, 2 * NUMBERS[::-1]),
    "LogCosh": (NUMBERS, NUMBERS[::-1]),
    "CosineSimilarity": (NUMBERS, NUMBERS[::-1]),
    "Poisson": (BITS, SHARES),
    "KLDivergence": (SHARES, SHARES[::-1]),
    "BinaryCrossentropy": (BITS, SHARES),
    "BinaryFocalCrossentropy": (BITS, SHARES),
    "CategoricalCrossentropy": (HOT, SHARES),
    "CategoricalFocalCrossentropy": (HOT, SHARES),
    "CategoricalGeneralizedCrossEntropy": (HOT.argmax(-1), SHARES),
    "SparseCategoricalCrossentropy": (HOT.argmax(-1), SHARES),
    "Hinge": (BITS, NUMBERS),
    "SquaredHinge": (BITS, NUMBERS),
    "CategoricalHinge": (HOT, NUMBERS),
    "Dice": (BITS, SHARES),
    "Tversky": (BITS, SHARES),
    "Circle": (np.array([0, 1, 0, 1]), VECTORS),
    "CTC": (np.array([[1, 2], [2, 0]]), RNG.normal(size=(2, 3, 3))),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_are_those_of_differences(name):
    y_true, y_pred = SMOOTH[name]
    arguments = {"gamma": 3.0} if name == "Circle" else {}
    loss = getattr(losses, name)(dtype="float64", **arguments)
    point = tw.constant(np.ascontiguousarray(y_pred), dtype="float64")
    check_gradients(lambda p: loss(y_true, p), [point], order=2)
