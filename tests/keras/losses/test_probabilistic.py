"""Cross-entropies: clipped probabilities, labels of all kinds, second derivatives."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import losses

LOGITS = [[2.0, -1.0, 0.5], [0.1, 0.2, -0.3]]
PROBABILITIES = [[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]]
ONE_HOT = [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
LABELS = [0, 2]


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


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(
    "loss, activation, y_true, value, gradient",
    [
        (losses.CategoricalCrossentropy(), "softmax", [[0, 0, 1]], 40, [1, 0, -1]),
        (losses.SparseCategoricalCrossentropy(), "softmax", [2], 40, [1, 0, -1]),
        (
            losses.BinaryCrossentropy(),
            "sigmoid",
            [[0, 0, 1]],
            13.564382,
            [0.3333, 0.1667, -0.3333],
        ),
        (
            losses.BinaryFocalCrossentropy(),
            "sigmoid",
            [[0, 0, 1]],
            13.391095,
            [0.3333, 0.0994, -0.3333],
        ),
    ],
)
def test_an_activation_that_is_certain_and_wrong_learns(
    loss, activation, y_true, value, gradient, traced
):
    layer = tw.keras.layers.Activation(activation)

    def slope(x):
        with tw.GradientTape() as tape:
            tape.watch(x)
            found = loss(y_true, layer(x))
        return found, tape.gradient(found, x)

    found = (tw.function(slope) if traced else slope)(tw.constant([[20.0, 0.0, -20.0]]))
    assert float(found[0]) == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(found[1][0], gradient, atol=1e-4)


def test_probabilities_along_another_axis_or_of_another_kind_are_taken_as_they_are():
    x = tw.constant([[20.0, 0.0], [0.0, -20.0]])
    for y_pred in (tw.nn.softmax(x, 0), tw.sigmoid(x), tw.identity(tw.nn.softmax(x))):
        value = losses.categorical_crossentropy([[0.0, 1.0], [0.0, 1.0]], y_pred)
        expected = losses.categorical_crossentropy(
            [[0.0, 1.0], [0.0, 1.0]], y_pred.numpy()
        )
        np.testing.assert_array_equal(value, expected)


def test_probabilities_that_are_watched_have_a_gradient():
    p = tw.nn.softmax(tw.constant([[1.0, 2.0]]))
    with tw.GradientTape() as tape:
        tape.watch(p)
        loss = losses.sparse_categorical_crossentropy([0], p)
    np.testing.assert_allclose(tape.gradient(loss, p), [[-2.718282, 1.0]], rtol=1e-5)


def test_probabilities_given_as_logits_are_warned_of():
    x = tw.constant([[2.0, 0.0, -1.0]])
    with pytest.warns(UserWarning, match="output of a softmax"):
        value = losses.sparse_categorical_crossentropy([2], tw.nn.softmax(x), True)
    assert float(value[0]) == pytest.approx(3.169846)


def test_a_batch_of_ignored_labels_costs_nothing():
    loss = losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-1)
    logits = tw.Variable([[1.0, 2.0]])
    with tw.GradientTape() as tape:
        value = loss([-1], logits)
    assert float(value) == 0.0
    assert tape.gradient(value, logits).numpy().tolist() == [[0.0, 0.0]]


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


def test_labels_out_of_range_are_refused(device):
    if device != "cpu":
        pytest.skip("elsewhere the check would have to wait for the device")
    with pytest.raises(ValueError, match="labels .*got 3"):
        losses.sparse_categorical_crossentropy([0, 3], LOGITS, from_logits=True)


def test_integer_labels_for_one_hot_ones_are_refused():
    with pytest.raises(ValueError, match="sparse_categorical_crossentropy"):
        losses.CategoricalCrossentropy()(LABELS, PROBABILITIES)


def test_one_hot_labels_for_integer_ones_are_refused():
    with pytest.raises(tw.errors.ShapeError, match="categorical_crossentr"):
        losses.SparseCategoricalCrossentropy()(ONE_HOT, PROBABILITIES)


def test_one_class_is_warned_of():
    with pytest.warns(SyntaxWarning, match="binary_crossentropy"):
        losses.categorical_crossentropy([[1.0]], [[0.5]])


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


def test_labels_that_do_not_sum_to_1_may_be_taken_as_tensorflow_takes_them():
    labels, logits = np.array([[1.0, 0.0, 1.0]], "f4"), tw.Variable([[0.5, -1.0, 2.0]])
    p = np.exp(logits.numpy()) / np.exp(logits.numpy()).sum()
    values = []
    for assume, expected in ((False, 2 * p - labels), (True, p - labels)):
        loss = losses.CategoricalCrossentropy(True, assume_normalized=assume)
        assert ("assume_normalized" in loss.get_config()) == assume
        with tw.GradientTape() as tape:
            value = losses.deserialize(losses.serialize(loss))(labels, logits)
        np.testing.assert_allclose(tape.gradient(value, logits), expected, atol=1e-6)
        values.append(float(value))
    assert values[0] == values[1]
    with pytest.raises(ValueError, match="assume_normalized.*from_logits.*True"):
        losses.CategoricalCrossentropy(assume_normalized=True)
