"""Constraints: values by hand, names, and their place in updates."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.layers import constraints
from tapewright.optimizers import SGD, Adam

# Columns of the norms 5, 0.5 and 0.
W = np.array([[3.0, 0.3, 0.0], [4.0, 0.4, 0.0]], np.float32)


@pytest.mark.parametrize(
    "constraint, expected",
    [
        (constraints.MaxNorm(1.0), [[0.6, 0.3, 0], [0.8, 0.4, 0]]),
        (constraints.MaxNorm(1.0, axis=None), W / np.sqrt(25.25)),
        (constraints.UnitNorm(), [[0.6, 0.6, 0], [0.8, 0.8, 0]]),
        (constraints.UnitNorm(axis=[0, 1]), W / np.sqrt(25.25)),
        (constraints.MinMaxNorm(1.0, 2.0), [[1.2, 0.6, 0], [1.6, 0.8, 0]]),
        (constraints.MinMaxNorm(1.0, 2.0, 0.5), [[2.1, 0.45, 0], [2.8, 0.6, 0]]),
        (constraints.Constraint(), W),
    ],
    ids=repr,
)
def test_values(constraint, expected):
    np.testing.assert_allclose(constraint(W), expected, rtol=1e-6)
    np.testing.assert_allclose(constraint(tw.Variable(W)), expected, rtol=1e-6)


def test_what_is_below_zero_is_raised_to_it():
    assert constraints.NonNeg()([-1.0, 2.0]).numpy().tolist() == [0.0, 2.0]


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_the_dtype_stays(dtype):
    for name in ("max_norm", "non_neg", "unit_norm", "min_max_norm"):
        assert constraints.get(name)(W.astype(dtype)).dtype == dtype


@pytest.mark.parametrize(
    "name, config",
    [
        ("max_norm", {"max_value": 2, "axis": 0}),
        ("MaxNorm", {"max_value": 2, "axis": 0}),
        ("unit_norm", {"axis": 0}),
        (
            "min_max_norm",
            {"min_value": 0.0, "max_value": 1.0, "rate": 1.0, "axis": 0},
        ),
        ("non_neg", {}),
    ],
)
def test_names_stand_for_keras_defaults(name, config):
    found = constraints.get(name)
    assert found.get_config() == config
    twin = constraints.deserialize(constraints.serialize(found))
    assert type(twin) is type(found) and twin.get_config() == config


def test_functions_and_none_are_constraints_too():
    assert constraints.get(tw.nn.relu) is tw.nn.relu
    assert constraints.get(None) is None
    with pytest.raises(ValueError, match="constraint 'max'.*Max"):
        constraints.get("max")


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("rule", [SGD, Adam])
def test_an_update_ends_with_the_constraint(rule, traced):
    kernel, bias = tw.Variable(W), tw.Variable([0.5, -0.5])
    kernel.constraint = constraints.MaxNorm(1.0)
    bias.constraint = constraints.NonNeg()
    optimizer, grads = rule(0.25), [tw.constant(W), tw.constant([1.0, -1.0])]

    def step(a, b):
        optimizer.apply([a, b], [kernel, bias])

    step = tw.function(step) if traced else step
    for _ in range(3):
        step(*grads)
        assert np.linalg.norm(kernel.numpy(), axis=0).max() <= 1.000001
        assert (bias.numpy() >= 0).all()


def test_a_traced_constraint_is_the_eager_one_to_the_bit():
    found = []
    for traced in (False, True):
        kernel = tw.Variable(W)
        kernel.constraint = constraints.MinMaxNorm(0.5, 2.0, 0.9)
        optimizer = Adam(0.1)

        def step(g, optimizer=optimizer, kernel=kernel):
            optimizer.apply([g], [kernel])

        step = tw.function(step) if traced else step
        for _ in range(4):
            step(tw.constant(W))
        found.append(kernel.numpy())
    assert np.array_equal(*found)


def test_a_constraint_is_not_seen_by_a_tape():
    kernel = tw.Variable(W)
    kernel.constraint = constraints.MaxNorm(1.0)
    optimizer = SGD(0.1)
    with tw.GradientTape() as tape:
        loss = tw.reduce_sum(kernel * kernel)
        optimizer.apply([tw.constant(W)], [kernel])
    np.testing.assert_allclose(tape.gradient(loss, kernel), 2 * W)


def test_a_value_that_a_constraint_keeps_does_not_change():
    kept, kernel = [], tw.Variable(W)

    def keeping(w):
        kept.append((tw.convert_to_tensor(w), tw.convert_to_tensor(w).numpy()))
        return w * 0.5

    kernel.constraint = keeping
    optimizer = SGD(0.1)
    for _ in range(3):
        optimizer.apply([tw.constant(W)], [kernel])
    for tensor, values in kept:
        assert np.array_equal(tensor.numpy(), values)
