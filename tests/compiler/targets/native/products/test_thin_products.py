"""Products of thin matrices as contractions: right in all layouts, and only where faster.

Entries are small whole numbers, so that sums are exact in any order.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tapewright as tw
from tapewright import config
from tapewright.compiler.targets.native.jit import engine
from tapewright.compiler.targets.native.products import thin_products
from tapewright.compiler.targets.native.products.contractions import ContractionKernel

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.usefixtures("few_passes")

MANY = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


REGISTERS = [(64, 32), (32, 16), (16, 32)]  # AVX-512, AVX2, Arm's


@pytest.fixture(autouse=True)
def native():
    with config.use_target("native"):
        yield
    config.set_threads(None)


@pytest.fixture
def every(monkeypatch):
    """Let all products be thin that the code can compute."""

    def is_thin(product, dtype, limits):
        return not (product.batch or product.a.base.is_constant)

    monkeypatch.setattr(thin_products, "is_thin", is_thin)


def whole(shape, dtype="float32"):
    return np.random.default_rng(len(shape)).integers(-4, 5, shape).astype(dtype)


def kernels(op, *arrays):
    """The executable of a function, and the contractions that it has."""
    made = tw.function(op).get_concrete_function(*map(tw.constant, arrays)).executable
    found = [i for i in made.program.instructions if type(i) is ContractionKernel]
    return made, found


def check(op, *arrays, count=1):
    made, found = kernels(op, *arrays)
    wanted = np.asarray(op(*[x.astype("float64") for x in arrays]))
    for threads in (1, 2, 3):
        config.set_threads(threads)
        np.testing.assert_array_equal(made.run(list(arrays))[0], wanted)
    assert len(found) == count


@MANY
@given(
    st.integers(2, 40),
    *[st.integers(1, 20)] * 3,
    *[st.booleans()] * 2,
    st.sampled_from(["float32", "float64"]),
)
def test_a_batch_of_small_products_is_one_contraction(
    count, m, n, k, first, second, dtype
):
    a = whole((count, k, m) if first else (count, m, k), dtype)
    b = whole((count, n, k) if second else (count, k, n), dtype)
    made, found = kernels(lambda a, b: tw.matmul(a, b, first, second), a, b)
    left = np.swapaxes(a, 1, 2) if first else a
    right = np.swapaxes(b, 1, 2) if second else b
    for threads in (1, 3):
        config.set_threads(threads)
        np.testing.assert_array_equal(made.run([a, b])[0], left.astype(float) @ right)
    assert len(found) == 1


@pytest.mark.parametrize(
    "op",
    [
        lambda a, b: tw.matmul(a[1:], b[1:]),
        lambda a, b: tw.matmul(a[:, :, :2], b[:, :2]),
        lambda a, b: tw.matmul(a[::2], b[::2]),
        lambda a, b: tw.matmul(a, b[0]),
        lambda a, b: tw.matmul(a, b[0], True),
        lambda a, b: tw.matmul(a[:3, None], b[None, :3]),
        lambda a, b: tw.matmul(tw.transpose(a, (1, 0, 2)), tw.transpose(b, (1, 2, 0))),
        lambda a, b: tw.matmul(tw.ones_like(a), b),
        lambda a, b: tw.matmul(
            tw.reshape(a, (2, 2, 4, 4)), tw.reshape(b, (2, 2, 4, 4))
        ),
    ],
)
def test_batches_in_other_layouts_are_right(op):
    a, b = whole((4, 4, 4)), whole((4, 4, 4)) + 1
    made, _ = kernels(op, a, b)
    wanted = op(tw.constant(a, "float64"), tw.constant(b, "float64")).numpy()
    np.testing.assert_array_equal(made.run([a, b])[0], wanted)


SIZES = st.sampled_from([1, 2, 3, 5, 16, 17, 33, 64, 96, 130])


@MANY
@given(SIZES, SIZES, SIZES, st.sampled_from([(0, 0), (0, 1), (1, 0)]),
       st.sampled_from(["float32", "float64"]))  # fmt: skip
def test_all_sizes_and_layouts(every, m, n, k, transposes, dtype):
    first, second = map(bool, transposes)
    a = whole((k, m) if first else (m, k), dtype)
    b = whole((n, k) if second else (k, n), dtype)
    made, found = kernels(lambda a, b: tw.matmul(a, b, first, second), a, b)
    wanted = (a.T if first else a).astype(float) @ (b.T if second else b)
    np.testing.assert_array_equal(made.run([a, b])[0], wanted)
    length = k if first else m
    if 1 not in (m, n, k) and length in (2, 16, 33, 64, 96):
        assert found


LARGE = {
    "few rows": (5, 512, 700, 0, 0),
    "one row": (1, 300, 900, 0, 0),
    "few columns": (1920, 1200, 3, 0, 0),
    "short sums": (16384, 16, 3, 0, 0),
    "of a transposed kernel": (1920, 1200, 3, 0, 1),
    "a gradient": (400, 1984, 3, 1, 0),
}


@pytest.mark.parametrize("registers", REGISTERS, ids=str)
@pytest.mark.parametrize("case", LARGE.values(), ids=list(LARGE))
def test_sizes_that_are_faster_here(case, registers, monkeypatch):
    monkeypatch.setattr(engine, "vector_registers", lambda: registers)
    m, k, n, first, second = case
    a, b = whole((k, m) if first else (m, k)), whole((n, k) if second else (k, n))
    turned = lambda x, is_turned: x.T if is_turned else x  # noqa: E731
    made, found = kernels(lambda a, b: tw.matmul(a, b, bool(first), bool(second)), a, b)
    wanted = turned(a, first).astype(float) @ turned(b, second)
    for threads in (1, 2, 3):
        config.set_threads(threads)
        np.testing.assert_array_equal(made.run([a, b])[0], wanted)
    assert len(found) == 1


OTHERS = {
    "many rows": (100, 64, 64, 0, 0),
    "a kernel that lies transposed": (5, 512, 700, 0, 1),
    "few columns and little work": (64, 64, 3, 0, 0),
    "a vector": (1920, 1200, 1, 0, 0),
    "rows that clash": (1920, 2048, 3, 0, 0),
    "both transposed": (1920, 1200, 3, 1, 1),
    "a prime number of rows": (4999, 500, 3, 0, 0),
}


@pytest.mark.parametrize("case", OTHERS.values(), ids=list(OTHERS))
def test_sizes_that_are_left_to_products(case):
    m, k, n, first, second = case
    a, b = whole((k, m) if first else (m, k)), whole((n, k) if second else (k, n))
    _, found = kernels(lambda a, b: tw.matmul(a, b, bool(first), bool(second)), a, b)
    assert not found


def test_parts_of_arrays_and_stacks_are_left_to_products(every):
    a, b = whole((8, 40)), whole((30, 50))
    check(lambda a, b: a[:, 3:33] @ b, a, b, count=0)
    check(lambda a, b: a[:, :30] @ b, a, b, count=0)
    check(lambda a, b: a[2:, 10:] @ b, a, b, count=0)
    check(lambda a, b: a @ b, whole((3, 16, 40)), whole((3, 40, 20)), count=0)


def test_reshaped_arrays_are_read_where_they_lie(every):
    check(lambda a, b: a @ b, whole((4, 8, 40)), whole((40, 20)))
    made, found = kernels(
        lambda a, b: tw.reshape(a, (16, 30)) @ tw.reshape(b, (30, 4)),
        whole((8, 60)),
        whole((60, 2)),
    )
    assert len(found) == 1
    a, b = whole((8, 60)), whole((60, 2))
    wanted = a.reshape(16, 30).astype(float) @ b.reshape(30, 4)
    np.testing.assert_array_equal(made.run([a, b])[0], wanted)


def test_few_rows_have_the_bits_of_eager_products_and_of_other_batches():
    rng = np.random.default_rng(0)
    x, kernel = rng.normal(size=(130, 700)), rng.normal(size=(700, 300))
    x, kernel = x.astype("float32"), kernel.astype("float32")
    dense = tw.function(lambda x, w: tw.matmul(x, w))
    of_many = dense(x, kernel)
    for rows in (4, 7, 48):
        found = dense(x[:rows], kernel)
        assert kernels(lambda x, w: tw.matmul(x, w), x[:rows], kernel)[1]
        np.testing.assert_array_equal(found, tw.matmul(x[:rows], kernel))
        np.testing.assert_array_equal(found, of_many[:rows])


@pytest.mark.parametrize("special", [np.nan, np.inf])
def test_what_is_not_finite_stays_in_its_row(special):
    x, kernel = whole((5, 512)), whole((512, 700)) + 9
    x[2, 511] = special
    found = kernels(lambda x, w: tw.matmul(x, w), x, kernel)[0].run([x, kernel])[0]
    reached = np.zeros(found.shape, bool)
    reached[2] = True
    np.testing.assert_array_equal(~np.isfinite(found), reached)
