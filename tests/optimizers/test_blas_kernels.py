"""The steps of updates: the same by NumPy and by BLAS, to the last places."""

import numpy as np
import pytest

from tapewright.core import blas
from tapewright.optimizers import blas_kernels


@pytest.fixture(params=["called", "by hand"], autouse=True)
def way(request, monkeypatch):
    monkeypatch.setattr(blas_kernels, "WORTH", 0)
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
    blas_kernels.approach(np, mean, x, np.asarray(part, dtype), scratch)
    np.testing.assert_allclose(mean, expected, atol=tolerance)


@pytest.mark.parametrize("part", [0.001, 0.1])
def test_the_mean_of_a_constant_stays_that_constant(part):
    x = np.full(1000, 0.3, np.float32)
    mean, scratch = x.copy(), np.empty_like(x)
    for _ in range(5000):
        blas_kernels.approach(np, mean, x, np.asarray(part, np.float32), scratch)
    np.testing.assert_allclose(mean, x, rtol=3e-6)


def test_what_is_new_may_lie_in_the_scratch():
    x, mean, _ = arrays("float32")
    expected = mean + 0.25 * (x - mean)
    blas_kernels.approach(np, mean, x, np.asarray(0.25, np.float32), x)
    np.testing.assert_allclose(mean, expected, atol=2e-7)


@pytest.mark.parametrize("dtype, tolerance", [("float32", 2e-7), ("float64", 1e-15)])
def test_a_multiple_is_subtracted(dtype, tolerance):
    x, y, scratch = arrays(dtype)
    expected = y.astype("f8") - 0.1 * x.astype("f8")
    kept = x.copy()
    blas_kernels.subtract_scaled(np, y, x, np.asarray(0.1, dtype), scratch)
    np.testing.assert_allclose(y, expected, atol=2 * tolerance)
    np.testing.assert_array_equal(x, kept)


def test_other_dtypes_are_left_to_numpy():
    x, y, scratch = arrays("float16")
    expected = y - np.float16(0.5) * x
    blas_kernels.subtract_scaled(np, y, x, np.asarray(0.5, np.float16), scratch)
    np.testing.assert_array_equal(y, expected)
