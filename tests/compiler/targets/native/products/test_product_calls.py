"""Products of machine code: all layouts that views give, in one call each."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.compiler.targets.native.products.contractions import ContractionKernel
from tapewright.compiler.targets.native.products.product_calls import is_product

pytest.importorskip("llvmlite")

SHAPES = [
    ((5, 7), (7, 3)), ((2, 5, 7), (7, 3)), ((2, 3, 5, 7), (2, 3, 7, 4)),
    ((2, 1, 5, 7), (3, 7, 4)), ((3, 5, 7), (1, 7, 2)), ((2, 5, 1), (2, 1, 4)),
    ((2, 1, 7), (2, 7, 1)), ((200, 130), (130, 90)), ((4, 64, 32), (4, 32, 64)),
    ((3, 1, 1), (3, 1, 1)), ((300, 40), (40, 1)), ((1, 40), (40, 300)),
]  # fmt: skip


@pytest.fixture(autouse=True)
def native():
    with tw.config.use_target("native"):
        yield


def turned(x, way):
    return np.ascontiguousarray(np.swapaxes(x, -1, -2)) if way else x


def products_of(function, *arrays):
    """The result of a traced function, and the products that became machine code."""
    traced = tw.function(function)
    result = traced(*arrays).numpy()
    program = traced.get_concrete_function(*arrays).executable.program
    kinds = is_product, lambda each: type(each) is ContractionKernel
    found = [each for each in program.instructions if any([is_(each) for is_ in kinds])]
    return result, found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("ways", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_products_of_stacks_of_matrices(shapes, ways, dtype):
    rng = np.random.default_rng(0)
    a, b = [rng.integers(-8, 9, shape).astype(dtype) for shape in shapes]
    x, y = [tw.constant(turned(each, way)) for each, way in zip((a, b), ways)]

    def product(x, y):
        return tw.matmul(x, y, transpose_a=bool(ways[0]), transpose_b=bool(ways[1]))

    found, products = products_of(product, x, y)
    assert len(products) == 1
    np.testing.assert_array_equal(found, np.matmul(a, b))  # whole numbers: exact


@pytest.mark.parametrize("shapes", [((7,), (7, 3)), ((5, 7), (7,))])
def test_products_with_vectors(shapes):
    rng = np.random.default_rng(0)
    a, b = [rng.integers(-8, 9, shape).astype(np.float32) for shape in shapes]
    found, _ = products_of(
        lambda x, y: tw.tensordot(x, y, 1), *map(tw.constant, (a, b))
    )
    np.testing.assert_array_equal(found, a @ b)


def test_products_of_slices_read_them_where_they_lie():
    rng = np.random.default_rng(0)
    a = rng.integers(-8, 9, (2, 6, 40)).astype(np.float32)
    b = np.eye(10, dtype=np.float32)
    found, products = products_of(
        lambda x, y: tw.matmul(x[:, 1:4, 10:20], y), tw.constant(a), tw.constant(b)
    )
    assert len(products) == 1
    np.testing.assert_array_equal(found, a[:, 1:4, 10:20])


def test_nan_and_infinity_spread_as_in_eager_mode():
    a = np.array([[np.nan, 1, 0], [np.inf, 0, 1], [0, 0, 0]], np.float32)
    b = np.array([[0, 1, 2], [1, np.inf, 1], [1, 1, 1]], np.float32)
    found, _ = products_of(tw.matmul, tw.constant(a), tw.constant(b))
    with np.errstate(all="ignore"):  # OpenBLAS' code for some CPUs divides by zero
        np.testing.assert_array_equal(found, np.matmul(a, b))
