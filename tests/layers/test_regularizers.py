"""Regularizers: values, gradients, names."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.layers import regularizers


@pytest.mark.parametrize(
    "regularizer, value, gradient",
    [
        (regularizers.L1(0.5), 2.0, [0.5, -0.5]),
        (regularizers.L2(0.5), 5.0, [1.0, -3.0]),
        (regularizers.L1L2(0.5, 0.5), 7.0, [1.5, -3.5]),
    ],
)
def test_values_and_gradients(regularizer, value, gradient):
    w = tw.Variable([1.0, -3.0])
    with tw.GradientTape() as tape:
        penalty = regularizer(w)
    assert float(penalty) == value
    np.testing.assert_allclose(tape.gradient(penalty, w), gradient)


@pytest.mark.parametrize(
    "name, config",
    [
        ("l1", {"l1": 0.01}),
        ("L2", {"l2": 0.01}),
        ("l1_l2", {"l1": 0.0, "l2": 0.0}),
        ("L1L2", {"l1": 0.0, "l2": 0.0}),
    ],
)
def test_names_stand_for_keras_defaults(name, config):
    assert regularizers.get(name).get_config() == config


def test_a_subclass_is_known_by_name():
    class Largest(regularizers.Regularizer):
        def __call__(self, x):
            return tw.reduce_max(x)

    assert type(regularizers.get("Largest")) is Largest


@pytest.mark.parametrize("factor", [-1.0, float("nan"), float("inf"), "x"])
def test_factors_must_be_numbers_from_zero_on(factor):
    with pytest.raises(ValueError, match="L1: l1 must be"):
        regularizers.L1(factor)


def test_without_factors_there_is_no_penalty():
    assert float(regularizers.L1L2()([1.0, np.inf])) == 0.0


@pytest.mark.parametrize("mode, cosine", [("rows", 3 / 5), ("columns", 3 / 13**0.5)])
def test_an_orthogonal_regularizer_takes_the_mean_size_of_cosines(mode, cosine):
    matrix = np.array([[0.0, 2.0], [4.0, 3.0]])
    found = regularizers.OrthogonalRegularizer(0.5, mode)(matrix)
    np.testing.assert_allclose(found, 0.5 * cosine, rtol=1e-6)


def test_an_orthogonal_regularizer_needs_a_matrix_and_a_known_mode():
    with pytest.raises(ValueError, match="mode .*got 'x'"):
        regularizers.OrthogonalRegularizer(mode="x")
    with pytest.raises(ValueError, match=r"weight .*got \(2,\)"):
        regularizers.OrthogonalRegularizer()([1.0, 2.0])


def test_none_stands_for_the_default_factor():
    assert regularizers.L1(None).l1 == regularizers.L2(None).l2 == 0.01


def test_regularizers_come_back_from_what_keras_writes():
    config = {
        "module": "keras.regularizers",
        "class_name": "L2",
        "config": {"l2": 0.5},
        "registered_name": None,
    }
    found = regularizers.deserialize(config)
    assert regularizers.serialize(found) == config
    assert regularizers.get("orthogonal_regularizer").mode == "rows"
