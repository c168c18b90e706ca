"""Passes over blocks, by NumPy and by BLAS; when averages take the place of variables."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.hardware import blas
from tapewright.optimizers import SGD
from tapewright.optimizers.base import arithmetic

from ..steps import run, variable


@pytest.fixture(params=["called", "by hand"], autouse=True)
def way(request, monkeypatch):
    monkeypatch.setattr(arithmetic, "WORTH", 0)
    blas.set_blas_calls(request.param == "called")
    yield
    blas.set_blas_calls(True)


def arrays(dtype):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 1000)).astype(dtype)
    return x, y, np.empty_like(x)


@pytest.mark.parametrize("dtype, tolerance", [("float32", 2e-6), ("float64", 1e-14)])
@pytest.mark.parametrize("part", [0.001, 0.1, 0.7])
def test_a_mean_takes_a_part_of_what_is_new(dtype, tolerance, part):
    x, mean, scratch = arrays(dtype)
    expected = mean.astype("f8") + part * (x.astype("f8") - mean)
    arithmetic.approach(np, mean, x, np.asarray(part, dtype), scratch)
    np.testing.assert_allclose(mean, expected, atol=tolerance)


@pytest.mark.parametrize("part", [0.001, 0.1])
def test_the_mean_of_a_constant_stays_that_constant(part):
    x = np.full(1000, 0.3, np.float32)
    mean, scratch = x.copy(), np.empty_like(x)
    for _ in range(5000):
        arithmetic.approach(np, mean, x, np.asarray(part, np.float32), scratch)
    np.testing.assert_allclose(mean, x, rtol=3e-6)


def test_what_is_new_may_lie_in_the_scratch():
    x, mean, _ = arrays("float32")
    expected = mean + 0.25 * (x - mean)
    arithmetic.approach(np, mean, x, np.asarray(0.25, np.float32), x)
    np.testing.assert_allclose(mean, expected, atol=2e-7)


@pytest.mark.parametrize("dtype, tolerance", [("float32", 2e-7), ("float64", 1e-15)])
def test_a_multiple_is_subtracted(dtype, tolerance):
    x, y, scratch = arrays(dtype)
    expected = y.astype("f8") - 0.1 * x.astype("f8")
    kept = x.copy()
    arithmetic.subtract_scaled(np, y, x, np.asarray(0.1, dtype), scratch)
    np.testing.assert_allclose(y, expected, atol=2 * tolerance)
    np.testing.assert_array_equal(x, kept)


def test_other_dtypes_are_left_to_numpy():
    x, y, scratch = arrays("float16")
    expected = y - np.float16(0.5) * x
    arithmetic.subtract_scaled(np, y, x, np.asarray(0.5, np.float16), scratch)
    np.testing.assert_array_equal(y, expected)


def test_the_first_average_is_the_variable_and_the_next_ones_follow():
    v = variable(1.0)
    optimizer = SGD(1.0, use_ema=True, ema_momentum=0.75)
    run(optimizer, [v], [[1.0]])  # v = 0
    average = optimizer.variables[2]
    assert average.path == "sgd/v_average" and average.numpy() == 0.0
    run(optimizer, [v], [[-4.0]])  # v = 4
    assert average.numpy() == 1.0 and v.numpy() == 4.0


def test_averages_of_variables_without_a_gradient_move_too():
    a, b = variable(1.0), variable(2.0)
    optimizer = SGD(1.0, use_ema=True)
    optimizer.build([a, b])
    optimizer.apply([tw.constant([1.0])], [a])
    assert optimizer.variables[3].numpy() == 2.0


def test_at_the_end_variables_become_their_averages():
    v = variable(1.0)
    optimizer = SGD(1.0, use_ema=True, ema_momentum=0.5)
    run(optimizer, [v], [[1.0]], [[-4.0]])
    optimizer.finalize_variable_values([v])
    assert v.numpy() == 2.0
    run(optimizer, [v], [[0.0]])  # and training can go on
    assert (v.numpy(), optimizer.variables[2].numpy()) == (2.0, 2.0)
    with pytest.raises(ValueError, match="'w' has no average"):
        optimizer.finalize_variable_values([variable(1.0, name="w")])


def test_without_averages_the_end_changes_nothing():
    v = variable(1.0)
    SGD().finalize_variable_values([v])
    assert v.numpy() == 1.0


@pytest.mark.parametrize("traced", [False, True])
def test_variables_are_overwritten_every_so_many_steps(traced):
    v = variable(0.0)
    optimizer = SGD(1.0, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=2)
    seen = []
    for _ in range(4):
        run(optimizer, [v], [[-8.0]], traced=traced)
        seen.append(float(v.numpy()[0]))
    # variable and average: 8, 8; 16, 12 and so 12; 20, 16; 28, 22 and so 22
    assert seen == [8.0, 12.0, 20.0, 22.0]


def test_a_variable_to_be_overwritten_by_its_gradient_is_refused():
    v = variable(1.0, name="scale")
    v.overwrite_with_gradient = True
    with pytest.raises(ValueError, match="'scale' .*overwrite_with_gradient"):
        SGD().apply([tw.ones(1)], [v])
