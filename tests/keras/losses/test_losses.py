"""Losses: values and gradients of Keras, reductions, masks, weights, refusals."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import losses
from tapewright.autodiff.testing import check_gradients
from tapewright.core.errors import ShapeError

from ...rounding import assert_as_eager

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


def masked(y_pred, mask):
    y_pred = tw.constant(y_pred)
    y_pred._keras_mask = tw.constant(mask)
    return y_pred


def test_a_mean_divides_by_the_number_of_entries_that_the_mask_leaves():
    y_pred = masked([[1.0], [2.0], [3.0]], [True, False, True])
    assert float(losses.MeanSquaredError()(np.zeros((3, 1)), y_pred)) == (1 + 9) / 2
    weights = [4.0, 1.0, 2.0]
    value = losses.MeanSquaredError()(np.zeros((3, 1)), y_pred, weights)
    assert float(value) == (4 * 1 + 2 * 9) / 2
    loss = losses.MeanSquaredError("mean_with_sample_weight")
    weights = [4.0, 1.0, 12.0]
    assert float(loss(np.zeros((3, 1)), y_pred, weights)) == (4 * 1 + 12 * 9) / (4 + 12)


def test_a_mask_of_examples_counts_for_all_their_losses():
    y_pred = masked([[[1.0], [2.0]], [[3.0], [4.0]]], [True, False])
    assert float(losses.MeanSquaredError()(np.zeros((2, 2, 1)), y_pred)) == (1 + 4) / 2


def test_a_batch_that_is_masked_out_costs_nothing():
    y_pred = masked([[1.0], [2.0]], [False, False])
    for reduction in ("mean", "sum", "mean_with_sample_weight"):
        loss = losses.MeanSquaredError(reduction)
        assert float(loss(np.zeros((2, 1)), y_pred)) == 0.0


def test_the_mask_of_the_predictions_meets_that_of_ignored_labels():
    # log(2) each for the labels 0 and 1 that neither leaves out: the first alone
    y_pred = masked([[0.0, 0.0]] * 3, [True, True, False])
    loss = losses.SparseCategoricalCrossentropy(True, 1, "none")
    value = loss([0, 1, 0], y_pred).numpy()
    np.testing.assert_allclose(value, [np.log(2), 0, 0], rtol=1e-6)
    loss = losses.SparseCategoricalCrossentropy(True, 1)
    assert float(loss([0, 1, 0], y_pred)) == pytest.approx(np.log(2))


def test_a_weight_for_each_example_holds_for_all_its_steps():
    y_true, y_pred = np.zeros((2, 3, 1)), np.ones((2, 3, 1))
    loss = losses.MeanSquaredError("none")
    value = loss(y_true, y_pred, sample_weight=[2.0, 0.5])
    assert value.numpy().tolist() == [[2.0] * 3, [0.5] * 3]


def test_one_loss_for_all_takes_any_weights():
    loss = losses.Dice()
    plain = float(loss(ONE_HOT, PROBABILITIES))
    value = float(loss(ONE_HOT, PROBABILITIES, sample_weight=WEIGHTS))
    assert value == pytest.approx(plain * np.mean(WEIGHTS))


@pytest.mark.parametrize("shape", [(3,), (2, 3), (1, 2, 3)])
def test_weights_that_do_not_fit_the_losses_are_refused(shape):
    with pytest.raises(ShapeError, match="mean_squared_error: sample_weight must be"):
        losses.MeanSquaredError()(ONE_HOT, LOGITS, sample_weight=np.ones(shape))


def test_a_mask_that_does_not_fit_the_losses_is_refused():
    y_pred = masked(np.zeros((2, 3, 1)), np.ones((2, 3), bool))
    with pytest.raises(ShapeError, match="mask must be"):
        losses.MeanSquaredError()(np.zeros((2, 3)), y_pred)


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


@pytest.mark.parametrize("name", [n for n in losses.__all__ if n[0].isupper()])
def test_losses_compute_in_floatx_or_the_dtype_asked_for(name):
    if name in ("Loss", "LossFunctionWrapper"):
        return
    y_true, y_pred = SMOOTH[name]
    loss = getattr(losses, name)
    assert loss().dtype == "float32"
    assert loss()(y_true, y_pred).dtype == "float32"  # though y_pred is float64
    assert loss(dtype="float64")(y_true, y_pred).dtype == "float64"


def test_the_functions_keep_the_dtype_of_the_predictions():
    y_true, y_pred = np.zeros((2, 3)), np.ones((2, 3))
    assert losses.mean_squared_error(y_true, y_pred).dtype == "float64"
    assert losses.MeanSquaredError()([[0.0]], [[1]]).dtype == "float32"


def test_floatx_is_read_when_a_loss_is_made(floatx64):
    assert losses.MeanSquaredError()([[0.0]], [[1.0]]).dtype == "float64"


@pytest.fixture
def floatx64():
    tw.keras.backend.set_floatx("float64")
    yield
    tw.keras.backend.set_floatx("float32")


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


@pytest.mark.parametrize("name", ["Huber", "Poisson", "Hinge", "Dice", "LogCosh"])
def test_shapes_that_do_not_fit_are_told_by_the_names_of_the_arguments(name):
    with pytest.raises(
        ShapeError, match=r"y_true: shape \(2,\).*y_pred: shape \(2, 3\)"
    ):
        getattr(losses, name)()([0.0, 1.0], LOGITS)


def test_labels_are_not_spread_over_predictions_by_accident():
    # (3,) against (3, 3) would broadcast
    with pytest.raises(ShapeError, match="mean_squared_error: the shapes must be the"):
        losses.MeanSquaredError()(np.zeros(3), np.zeros((3, 3)))


def test_one_hot_labels_for_integer_ones_are_refused():
    with pytest.raises(ShapeError, match="one-hot labels go to categorical_crossentr"):
        losses.SparseCategoricalCrossentropy()(ONE_HOT, PROBABILITIES)


@pytest.mark.parametrize("name", ["ctc", "categorical_generalized_cross_entropy"])
def test_other_losses_refuse_labels_out_of_range(name, device):
    if device != "cpu":
        pytest.skip("elsewhere the check would have to wait for the device")
    y_pred = np.full((1, 2, 3), 1 / 3, "float32")
    arguments = {"q": 0.5} if name != "ctc" else {}
    with pytest.raises(IndexError, match="must be from 0 to 2"):
        getattr(losses, name)([[1, 3]], y_pred, **arguments)


def test_one_class_is_warned_of():
    with pytest.warns(SyntaxWarning, match="use binary_crossentropy"):
        losses.categorical_crossentropy([[1.0]], [[0.5]])


def test_half_precision_is_computed_in_single():
    half = tw.constant(LOGITS, dtype="float16")
    assert losses.MeanSquaredError()(half, half).dtype == "float32"
    assert losses.MeanSquaredError(dtype="float16")(half, half).dtype == "float16"


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


def test_a_vector_of_length_zero_has_no_direction_and_a_finite_gradient():
    p = tw.Variable([[0.0, 0.0], [0.0, 2.0]])
    with tw.GradientTape() as tape:
        value = losses.CosineSimilarity(reduction="none")([[1.0, 0.0]] * 2, p)
    assert value.numpy().tolist() == [0.0, 0.0]
    assert np.isfinite(tape.gradient(value, p)).all()


def test_a_sequence_with_too_few_steps_has_a_large_loss_and_a_finite_gradient():
    p = tw.Variable(np.zeros((1, 2, 3), np.float32))
    with tw.GradientTape() as tape:
        value = losses.CTC()([[1, 1]], p)  # which needs a blank in between
    assert 9e4 < float(value) < 1.1e5
    assert np.isfinite(tape.gradient(value, p)).all()


SPELLINGS = ((np.arange(24).reshape(2, 4, 3) - 12) / 100).astype("float32")


@pytest.mark.parametrize(
    ("labels", "expected"),
    [  # of Keras 3.15 on JAX
        ([[1, 2, 1, 0], [1, 2, 0, 2]], [2.4429314, 2.4543598]),
        ([[1, 2], [0, 2]], [1.6844572, 2.131997]),
        ([[0, 0], [2, 0]], [4.434582, 2.0917964]),
        ([[1, 1, 1, 1], [2, 2, 2, 0]], [100000.96, 100000.86]),
    ],
)
def test_a_label_may_be_the_class_of_the_blank(labels, expected):
    value = losses.CTC(reduction="none")(labels, SPELLINGS)
    np.testing.assert_allclose(value, expected, rtol=2e-6)
    traced = tw.function(losses.ctc)(tw.constant(labels), tw.constant(SPELLINGS))
    assert_as_eager(traced, value)


@pytest.mark.parametrize("labels", [[[1, 2, 0, 2]], [[0, 1, 0, 0]], [[0, 0, 0, 0]]])
def test_derivatives_of_ctc_with_blanks_among_the_labels(labels):
    point = tw.constant(np.random.default_rng(3).normal(size=(1, 5, 3)))
    check_gradients(lambda p: losses.ctc(labels, p), [point], order=2)


def test_ctc_adds_up_all_ways_to_spell_the_labels():
    p = np.array([[0.2, 0.5, 0.3], [0.1, 0.6, 0.3], [0.4, 0.1, 0.5]])
    log_p = np.log(p).astype("float32")[None]
    # over three steps: 12 is spelt 112, 122, 012, 102, 120
    paths = [(1, 1, 2), (1, 2, 2), (0, 1, 2), (1, 0, 2), (1, 2, 0)]
    expected = -np.log(sum(np.prod(p[range(3), path]) for path in paths))
    assert float(losses.CTC()([[1, 2]], log_p)) == pytest.approx(expected, rel=1e-6)


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
    with pytest.raises(ValueError, match="from_logits must be True"):
        losses.CategoricalCrossentropy(assume_normalized=True)


def test_a_weighted_loss_that_is_a_number_is_its_own_mean():
    for reduction in ("sum", "mean", "mean_with_sample_weight", "none"):
        loss = losses.MeanSquaredError(reduction=reduction)
        assert float(loss([0.0, 2.0], [1.0, 1.0], sample_weight=0.25)) == 0.25
