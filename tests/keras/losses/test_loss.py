"""`Loss`: reductions, weights, masks, dtypes, and losses of a user's own."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import losses

LOGITS = [[2.0, -1.0, 0.5], [0.1, 0.2, -0.3]]
PROBABILITIES = [[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]]
ONE_HOT = [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
WEIGHTS = [3.0, 0.5]


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


def test_a_mask_that_does_not_fit_the_losses_is_refused():
    y_pred = masked(np.zeros((2, 3, 1)), np.ones((2, 3), bool))
    with pytest.raises(tw.errors.ShapeError, match="mask must be"):
        losses.MeanSquaredError()(np.zeros((2, 3)), y_pred)


def test_an_unknown_reduction_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="Huber: reduction .*sum_over.*got 'average'"):
        losses.Huber(reduction="average")


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


def test_half_precision_is_computed_in_single():
    half = tw.constant(LOGITS, dtype="float16")
    assert losses.MeanSquaredError()(half, half).dtype == "float32"
    assert losses.MeanSquaredError(dtype="float16")(half, half).dtype == "float16"


def test_a_weighted_loss_that_is_a_number_is_its_own_mean():
    for reduction in ("sum", "mean", "mean_with_sample_weight", "none"):
        loss = losses.MeanSquaredError(reduction=reduction)
        assert float(loss([0.0, 2.0], [1.0, 1.0], sample_weight=0.25)) == 0.25


def test_a_wrapped_function_keeps_its_arguments():
    loss = losses.LossFunctionWrapper(losses.huber, delta=2.0)
    assert loss.get_config()["delta"] == 2.0
    twin = losses.LossFunctionWrapper.from_config(loss.get_config())
    assert float(twin([[0.0]], [[5.0]])) == float(losses.Huber(2.0)([[0.0]], [[5.0]]))


def test_a_loss_of_ones_own():
    class Largest(losses.Loss):
        def call(self, y_true, y_pred):
            return tw.reduce_max(abs(y_true - y_pred), -1)

    assert float(Largest()(tw.zeros([2, 2]), [[1.0, 2.0], [3.0, 4.0]])) == 3.0
    assert type(losses.get("Largest")) is Largest


def test_a_class_of_a_function_passes_its_arguments_on_by_name():
    def power(y_true, y_pred, other=0.0, exponent=1.0):
        return tw.pow(y_pred - y_true, exponent) + other

    power.integer_labels = True

    class Power(losses.Loss, function=power):
        def __init__(self, exponent=2.0, reduction="sum", name="power", dtype=None):
            super().__init__(name, reduction, dtype)
            self.exponent = exponent

    class Named(Power):
        def __init__(self, unused, **kwargs):
            super().__init__(**kwargs)
            self.unused = unused

    assert Power.integer_labels
    assert float(Power(3.0)([1.0, 2.0], [3.0, 3.0])) == 9.0
    loss = Named("a")
    assert float(loss([1.0, 2.0], [3.0, 3.0])) == 5.0
    loss.exponent = 4.0
    assert float(loss([1.0, 2.0], [3.0, 3.0])) == 17.0


def test_a_loss_without_call_is_refused():
    class Empty(losses.Loss):
        pass

    with pytest.raises(NotImplementedError, match="Empty must define call"):
        Empty()([1.0], [2.0])


def test_a_loss_of_ones_own_sees_labels_in_the_dtype_of_the_predictions():
    class Own(losses.Loss):
        def call(self, y_true, y_pred):
            assert y_true.dtype == y_pred.dtype == "float32"
            return tw.reduce_mean(y_true * y_pred, -1)

    assert float(Own()([[1], [3]], [[2.0], [2.0]])) == 4.0


def test_a_loss_of_ones_own_may_take_nests():
    class Both(losses.Loss):
        def call(self, y_true, y_pred):
            first = y_true["a"] - y_pred["a"]
            return tw.reduce_sum(first, -1) + y_pred["b"] * y_true["b"]

    y_true = {"a": np.ones((2, 3), int), "b": np.array([2, 4])}
    y_pred = {"a": tw.zeros([2, 3]), "b": tw.constant([1.0, 1.0])}
    assert float(Both()(y_true, y_pred)) == 3.0 + 3.0


def test_a_forgotten_super_init_is_named():
    class Forgetful(losses.Loss):
        def __init__(self):
            self.width = 1.0

    with pytest.raises(RuntimeError, match=r"Forgetful: .*super\(\).__init__\(\)"):
        Forgetful()([0.0], [1.0])
