"""Large products in eager mode: right for all layouts, with the bits of traced ones."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import tapewright as tw  # noqa: E402
from tapewright.compiler.targets.native import availability  # noqa: E402
from tapewright.compiler.targets.native.products.eager_products import product  # noqa: E402
from tapewright.core.hardware import openblas  # noqa: E402
from tapewright.core.settings import config

if availability.availability() is not None:
    pytest.skip(availability.availability(), allow_module_level=True)

SIZES = [(128, 300, 128), (70, 9000, 3), (1, 600, 700), (700, 600, 1), (9, 1, 40000)]
LAYOUTS = {
    "rows": lambda x: x,
    "columns": np.asfortranarray,
    "every row of a wider matrix": lambda x: np.repeat(x, 2, 1)[:, : x.shape[1]],
    "every second column": lambda x: np.repeat(x, 2, 1)[:, ::2],
    "every second row": lambda x: np.repeat(x, 2, 0)[::2],
    "backwards": lambda x: x[::-1].copy()[::-1],
    "one row repeated": lambda x: np.broadcast_to(x[:1], x.shape),
}
READABLE = ["rows", "columns", "every row of a wider matrix", "every second row"]


@pytest.fixture(autouse=True)
def native():
    with config.use_target("native"):
        yield


def integers(*shape, dtype=np.float32):
    """Small integers, whose products are exact in every order."""
    random = np.random.default_rng(sum(shape))
    return random.integers(-4, 5, shape).astype(dtype)


def numbers(*shape, dtype=np.float32):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_of_all_sizes_are_right(dtype, sizes):
    m, k, n = sizes
    a, b = integers(m, k, dtype=dtype), integers(k, n, dtype=dtype)
    for left in (a, np.asfortranarray(a)):
        for right in (b, np.asfortranarray(b)):
            found = product(left, right)
            assert (found.dtype, found.flags.c_contiguous) == (a.dtype, True)
            np.testing.assert_array_equal(found, np.einsum("mk,kn->mn", a, b))


@pytest.mark.parametrize("second", LAYOUTS)
@pytest.mark.parametrize("first", LAYOUTS)
def test_every_layout_is_multiplied_as_it_is_or_left_to_numpy(first, second):
    a, b = LAYOUTS[first](integers(130, 70)), LAYOUTS[second](integers(70, 60))
    found = product(a, b)
    assert (found is not None) == (first in READABLE and second in READABLE)
    wanted = np.einsum("mk,kn->mn", a, b)
    np.testing.assert_array_equal(tw.matmul(a, b), wanted)
    if found is not None:
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (numbers(80, 90), numbers(80, 90)),
        (numbers(80, 90), numbers(90, 80, dtype=np.float64)),
        (numbers(80, 90).astype(np.complex64), numbers(90, 80).astype(np.complex64)),
        (numbers(80, 90).astype(">f4"), numbers(90, 80).astype(">f4")),
        (np.ones((80, 0), np.float32), np.ones((0, 80), np.float32)),
    ],
    ids=["sizes", "dtypes", "complex", "byte order", "empty"],
)
def test_what_is_no_product_of_real_matrices_is_refused(a, b):
    assert product(a, b) is None


@pytest.mark.parametrize("rows", [9, 200])
def test_a_matrix_times_its_own_transpose_stays_symmetric(rows):
    x = numbers(rows, 1 << 13)
    gram = tw.matmul(x, x, transpose_b=True).numpy()
    np.testing.assert_array_equal(gram, gram.T)


@pytest.mark.parametrize("transposes", [(0, 0), (1, 0), (0, 1), (1, 1)], ids=str)
def test_eager_and_traced_products_have_the_same_bits(transposes):
    first, second = map(bool, transposes)
    a = numbers(*((784, 128) if first else (128, 784)))
    b = numbers(*((96, 784) if second else (784, 96)))
    traced = tw.function(lambda a, b: tw.matmul(a, b, first, second))
    np.testing.assert_array_equal(traced(a, b), tw.matmul(a, b, first, second))


def test_a_batch_of_rows_is_one_product_as_in_a_traced_function():
    x, kernel = numbers(6, 50, 64), numbers(64, 96)
    for op in (lambda x: tw.matmul(x, kernel), tw.keras.layers.Dense(96)):
        np.testing.assert_array_equal(tw.function(op)(x), op(tw.constant(x)))
    wanted = np.einsum("btk,kn->btn", x.astype(np.float64), kernel)
    np.testing.assert_allclose(tw.matmul(x, kernel), wanted, atol=1e-4)
    turned = np.swapaxes(numbers(6, 64, 50), -1, -2)  # its rows are no matrix in memory
    wanted = np.einsum("btk,kn->btn", turned.astype(np.float64), kernel)
    np.testing.assert_allclose(tw.matmul(turned, kernel), wanted, atol=1e-4)


def test_bits_do_not_depend_on_the_threads():
    a, b = numbers(300, 500), numbers(500, 260)
    found = []
    for count in (1, 2, 4):
        config.set_threads(count)
        found.append(tw.matmul(a, b).numpy())
    config.set_threads(None)
    for each in found[1:]:
        np.testing.assert_array_equal(each, found[0])


def test_several_python_threads_multiply_at_once():
    a, b = integers(200, 300), integers(300, 150)
    wanted, right = np.einsum("mk,kn->mn", a, b), []

    def multiply():
        right.append(all([np.array_equal(product(a, b), wanted) for _ in range(50)]))

    threads = [threading.Thread(target=multiply) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == [True] * 4


def test_numpy_keeps_its_own_threads():
    before = openblas.threads()
    product(numbers(300, 500), numbers(500, 260))
    assert openblas.threads() == before


def test_the_numpy_target_calls_numpy():
    a, b = numbers(300, 500), numbers(500, 260)
    with config.use_target("numpy"):
        assert config.target_product() is None
        np.testing.assert_array_equal(tw.matmul(a, b), np.dot(a, b))


def test_small_products_load_no_compiler():
    script = """
import sys
import tapewright as tw
tw.matmul(tw.ones((60, 60)), tw.ones((60, 60)))
assert "llvmlite" not in sys.modules
tw.matmul(tw.ones((90, 90)), tw.ones((90, 90)))
assert "llvmlite" in sys.modules
"""
    environment = {**os.environ, "TAPEWRIGHT_TARGET": "native"}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)


@pytest.mark.parametrize("dtype", ["complex64", "float32"])
def test_a_lone_entry_of_zero_keeps_nan(dtype):
    a = np.ones((2, 150000, 1), dtype)
    a[0, 3] = np.nan
    zeros = tw.zeros((4, 4), dtype)
    with tw.config.use_target("native"):
        for lone in (zeros[:1, :1], zeros[::2, ::2][:1, :1]):
            found = tw.matmul(tw.constant(a), lone).numpy()
            assert np.isnan(found).sum() == 1 and np.isnan(found[0, 3, 0])
