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
        (regularizers.L1L2(), 0.0, [0.0, 0.0]),
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
