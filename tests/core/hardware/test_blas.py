"""Products that add: every layout against NumPy, with and without the calls of BLAS."""

import subprocess
import sys

import numpy as np
import pytest

import tapewright as tw
from tapewright import config
from tapewright.core.hardware import blas


@pytest.fixture(params=["called", "by hand"], autouse=True)
def way(request):
    blas.set_blas_calls(request.param == "called")
    yield request.param
    blas.set_blas_calls(True)


def matrix(rows, columns, dtype, layout, seed=0):
    """Whole numbers, whose products are exact in any order."""
    numbers = np.random.default_rng(seed).integers(-8, 9, (rows, columns))
    if layout == "plain":
        return numbers.astype(dtype)
    if layout == "transposed":
        return np.ascontiguousarray(numbers.T).astype(dtype).T
    wide = np.zeros((2 * rows, columns + 5), dtype)  # "rows": every other one, cut off
    wide[::2, 2 : columns + 2] = numbers
    if layout == "rows":
        return wide[::2, 2 : columns + 2]
    return np.repeat(wide, 2, axis=1)[::2, 4 : 2 * columns + 4 : 2]  # "apart"


LAYOUTS = ["plain", "transposed", "rows", "apart"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("left", LAYOUTS)
@pytest.mark.parametrize("right", LAYOUTS)
@pytest.mark.parametrize("target", ["plain", "rows"])
def test_gemm_adds_a_product_in_any_layout(dtype, left, right, target):
    a, b = matrix(5, 7, dtype, left), matrix(7, 3, dtype, right, 1)
    out = matrix(5, 3, dtype, target, 2)
    expected = 2 * (a @ b) - 3 * out
    assert blas.gemm(a, b, out, alpha=2.0, beta=-3.0) is out
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("target", LAYOUTS)
def test_gemm_without_beta_overwrites_whatever_was_there(target):
    a, b = matrix(4, 6, "float32", "plain"), matrix(6, 2, "float32", "plain", 1)
    out = matrix(4, 2, "float32", target)
    out[...] = np.nan
    np.testing.assert_array_equal(blas.gemm(a, b, out), a @ b)
    out[...] = np.nan
    np.testing.assert_array_equal(blas.gemm(a, b, out, alpha=2.0), 2 * (a @ b))


@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (1, 5, 1), (3, 1, 4), (1, 4, 6), (6, 4, 1)]
)
def test_gemm_takes_single_rows_and_columns(shape):
    m, k, n = shape
    for left in LAYOUTS:
        a, b = matrix(m, k, "float32", left), matrix(k, n, "float32", left, 1)
        out = matrix(m, n, "float32", "rows", 2)
        expected = a @ b + out
        np.testing.assert_array_equal(blas.gemm(a, b, out, beta=1.0), expected)


@pytest.mark.parametrize("dtype", ["float16", "complex64", "int64"])
def test_gemm_leaves_other_dtypes_to_numpy(dtype):
    a, b = matrix(3, 4, dtype, "plain"), matrix(4, 2, dtype, "plain", 1)
    out = matrix(3, 2, dtype, "plain", 2)
    expected = a @ b + out
    np.testing.assert_array_equal(blas.gemm(a, b, out, beta=1), expected)


def test_gemm_of_nothing_adds_nothing():
    out = np.ones((2, 3), np.float32)
    blas.gemm(np.ones((2, 0), np.float32), np.ones((0, 3), np.float32), out, beta=1.0)
    np.testing.assert_array_equal(out, 1)


def test_gemm_refuses_shapes_that_do_not_fit():
    a, out = np.ones((2, 3), np.float32), np.ones((2, 2), np.float32)
    with pytest.raises(ValueError):
        blas.gemm(a, a, out, beta=1.0)
    with pytest.raises(ValueError):
        blas.gemm(a, a.T, np.ones((3, 3), np.float32), beta=1.0)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "complex64"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_axpby_adds_two_multiples(dtype, layout):
    x, y = matrix(4, 3, dtype, layout), matrix(4, 3, dtype, layout, 1)
    expected = 2 * x - 3 * y
    assert blas.axpby(2.0, x, -3.0, y) is y
    np.testing.assert_array_equal(y, expected)


def test_sums_of_multiples_refuse_other_shapes():
    with pytest.raises(ValueError, match="the same shape"):
        blas.axpby(1.0, np.ones(2), 1.0, np.ones(3))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("count", [1, 5, 70])
def test_a_triangular_system_is_solved_in_any_layout(dtype, layout, lower, count, way):
    x = matrix(count, 3, dtype, layout, 1)
    a = matrix(count, count, dtype, layout)
    a[np.diag_indices(count)] = 100
    half = np.tril(a) if lower else np.triu(a)
    rhs = half @ x
    before = rhs.copy()
    found = blas.trsm(a, rhs, lower)
    np.testing.assert_array_equal(rhs, before)
    if way == "by hand" or config.report()["blas"]["core"] is None:
        assert found is None
    else:
        np.testing.assert_allclose(found, x, rtol=1e-4, atol=1e-4)


def test_triangular_systems_of_other_dtypes_are_left_to_others():
    assert (
        blas.trsm(np.eye(2, dtype="complex64"), np.ones((2, 1), "complex64"), True)
        is None
    )
    assert blas.trsm(np.eye(2), np.ones((2, 1), "float32"), True) is None


def test_the_report_says_how_products_are_called(way):
    known = config.report()["blas"]["core"] is not None
    wanted = "directly" if known else "not used"
    note = config.report()["blas"]["calls"]
    assert note.startswith("switched off" if way == "by hand" else wanted)


def test_the_environment_switches_the_calls_off(monkeypatch):
    code = "from tapewright import config; print(config.report()['blas']['calls'])"
    monkeypatch.setenv("TAPEWRIGHT_BLAS_CALLS", "0")
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "off: TAPEWRIGHT_BLAS_CALLS=0\n"


def test_a_sum_of_squares_keeps_its_digits_over_many_entries():
    x = np.full(1 << 22, 0.1, np.float32)
    wanted = x.size * float(x[0]) ** 2
    v = tw.Variable(x)
    found = [
        blas.sum_of_squares(np, x),
        tw.nn.l2_loss(x) * 2.0,
        tw.linalg.global_norm([x]) ** 2,
        tw.function(lambda x: tw.reduce_sum(tw.square(x)))(tw.constant(x)),
        tw.norm(tw.function(tw.clip_by_norm)(v, 1e9)) ** 2,
    ]
    np.testing.assert_allclose([float(n) for n in found], wanted, rtol=1e-6)
    clipped = tw.clip_by_norm(x, 1.0)
    np.testing.assert_allclose(clipped[0], 0.1 / wanted**0.5, rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.complex64])
@pytest.mark.parametrize("size", [0, 1, 1023, 1024, 1025, 5000])
def test_a_sum_of_squares_is_of_all_entries(size, dtype):
    x = (np.arange(size) % 3 - 1).astype(dtype)
    x = x * (1 + 1j) if dtype is np.complex64 else x
    wanted = np.sum(np.abs(x.astype(np.complex128)) ** 2)
    np.testing.assert_allclose(blas.sum_of_squares(np, x), wanted, rtol=1e-3)
