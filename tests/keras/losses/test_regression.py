"""Errors of numbers: their formulas, and where they have no slope."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import losses


def test_a_vector_of_length_zero_has_no_direction_and_a_finite_gradient():
    p = tw.Variable([[0.0, 0.0], [0.0, 2.0]])
    with tw.GradientTape() as tape:
        value = losses.CosineSimilarity(reduction="none")([[1.0, 0.0]] * 2, p)
    assert value.numpy().tolist() == [0.0, 0.0]
    assert np.isfinite(tape.gradient(value, p)).all()


Y_TRUE = np.array([[0.5, -2.0, 3.0], [1.0, 0.25, -4.0]])
Y_PRED = np.array([[1.5, -2.5, 0.0], [1.0, 0.75, 4.0]])
ERROR = Y_PRED - Y_TRUE
FORMULAS = {
    "mean_squared_error": ERROR**2,
    "mean_absolute_error": abs(ERROR),
    "mean_absolute_percentage_error": 100 * abs(ERROR / Y_TRUE),
    "mean_squared_logarithmic_error": (
        np.log1p(np.maximum(Y_PRED, 1e-7)) - np.log1p(np.maximum(Y_TRUE, 1e-7))
    )
    ** 2,
    "huber": np.where(abs(ERROR) <= 1, ERROR**2 / 2, abs(ERROR) - 0.5),
    "log_cosh": np.log(np.cosh(ERROR)),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_a_loss_is_the_mean_of_its_formula_over_the_last_axis(name):
    found = getattr(losses, name)(Y_TRUE, Y_PRED)
    np.testing.assert_allclose(found, FORMULAS[name].mean(-1), rtol=1e-6)


def test_huber_is_linear_beyond_delta():
    found = losses.huber([[0.0, 0.0]], [[0.5, 4.0]], delta=2.0)
    np.testing.assert_allclose(found, [(0.5**2 / 2 + 2 * 4 - 2**2 / 2) / 2])


def test_log_cosh_of_a_large_error_is_finite():
    np.testing.assert_allclose(
        losses.log_cosh([[0.0]], [[1000.0]]), [1000 - np.log(2)], rtol=1e-6
    )


def test_cosine_similarity_is_least_for_one_direction():
    same, opposite, orthogonal = [2.0, 0.0], [-3.0, 0.0], [0.0, 5.0]
    found = losses.cosine_similarity([[1.0, 0.0]] * 3, [same, opposite, orthogonal])
    np.testing.assert_allclose(found, [-1.0, 1.0, 0.0], atol=1e-6)
    along = losses.cosine_similarity([[1.0], [0.0]], [[2.0], [0.0]], axis=0)
    np.testing.assert_allclose(along, [-1.0])


def test_percentages_of_a_truth_of_zero_are_finite():
    found = losses.mean_absolute_percentage_error([[0.0]], [[1.0]])
    np.testing.assert_allclose(found, [100 / 1e-7], rtol=1e-5)


@pytest.mark.parametrize("loss", [losses.huber, losses.log_cosh])
@pytest.mark.parametrize(
    "error, slope, curvature", [(0.0, 0, 1), (np.inf, 1, 0), (-np.inf, -1, 0)]
)
def test_smooth_losses_have_their_derivatives_at_zero_and_at_infinity(
    loss, error, slope, curvature
):
    x = tw.constant([error], "float64")
    with tw.GradientTape() as outer:
        outer.watch(x)
        with tw.GradientTape() as tape:
            tape.watch(x)
            value = loss(tw.zeros_like(x), x)
        first = tape.gradient(value, x)
    assert value.numpy() == abs(error)
    assert first.numpy() == slope and outer.gradient(first, x).numpy() == curvature
