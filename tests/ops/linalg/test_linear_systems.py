"""Linear systems and inverses: the op table, singular matrices, shapes that do not fit."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.hardware import blas
from tapewright.test import case, check_op, complexes, floats

pytestmark = pytest.mark.gpu_first

REGULAR = np.array([[2.0, 0.3, -0.5], [0.4, 1.7, 0.2], [-0.1, 0.6, 2.4]])
TWO = np.stack([REGULAR, REGULAR.T + 0.1])
COMPLEX = REGULAR + 0.4j * REGULAR[::-1]
FACTOR = np.tril(COMPLEX)
DEPENDENT = np.outer([1.0, -0.5, 2.0], [0.7, 1.3])


def lower_solved(matrix, rhs):
    return np.linalg.solve(np.tril(matrix), rhs)


def upper_solved(matrix, rhs):
    return np.linalg.solve(np.triu(matrix), rhs)


def pinv(x):
    return np.linalg.pinv(x, rcond=1e-10)


def of_rank_one(x, y):
    """The pseudo-inverse of a matrix whose rank no change of x and y alters."""
    return tw.linalg.pinv(tw.einsum("i,j->ij", x, y), rcond=1e-6)


CASES = [
    case("solve", REGULAR, floats(3, 2), expect=np.linalg.solve),
    case("solve", TWO, floats(2, 3, 1), expect=np.linalg.solve),
    case("solve", REGULAR, floats(2, 3, 2), expect=np.linalg.solve),
    case("solve", TWO, floats(3, 1), expect=np.linalg.solve),
    case("solve", COMPLEX, complexes(3, 2), expect=np.linalg.solve),
    case("solve", floats(0, 3, 3), floats(0, 3, 2), expect=np.linalg.solve),
    case("solve", floats(0, 0), floats(0, 2), expect=np.linalg.solve),
    case("inv", REGULAR, expect=np.linalg.inv),
    case("inv", TWO, expect=np.linalg.inv),
    case("inv", COMPLEX, expect=np.linalg.inv),
    case("inv", floats(0, 3, 3), expect=np.linalg.inv),
    case("pinv", floats(3, 2), rcond=1e-10, expect=pinv),
    case("pinv", floats(2, 3), rcond=1e-10, expect=pinv),
    case("pinv", TWO, rcond=1e-10, expect=pinv),
    case("pinv", complexes(3, 2), rcond=1e-10, expect=pinv),
    case("pinv", floats(0, 3, 2), rcond=1e-10, expect=lambda x: np.zeros((0, 2, 3))),
    case("pinv", DEPENDENT, rcond=1e-5, order=0, label="rank 1",
         expect=lambda x: x.T / np.sum(x * x)),
    case("triangular_solve", REGULAR, floats(3, 2), expect=lower_solved),
    case("triangular_solve", REGULAR, floats(3, 2), lower=False, expect=upper_solved),
    case("triangular_solve", TWO, floats(2, 3, 1), expect=lower_solved),
    case("triangular_solve", REGULAR, floats(2, 3, 2), expect=lower_solved),
    case("triangular_solve", TWO, floats(3, 1), lower=False, expect=upper_solved),
    case("triangular_solve", COMPLEX, complexes(3, 2), expect=lower_solved),
    case("triangular_solve", floats(0, 3, 3), floats(0, 3, 2), expect=lower_solved),
    # composed of these
    case(tw.linalg.solve, COMPLEX, complexes(3, 1), adjoint=True,
         expect=lambda a, b: np.linalg.solve(a.conj().T, b)),
    case(tw.linalg.inv, COMPLEX, adjoint=True, expect=lambda a: np.linalg.inv(a.conj().T)),
    case(tw.linalg.triangular_solve, COMPLEX, complexes(3, 2), adjoint=True,
         expect=lambda a, b: np.linalg.solve(np.tril(a).conj().T, b)),
    case(tw.linalg.triangular_solve, COMPLEX, complexes(3, 2), lower=False, adjoint=True,
         expect=lambda a, b: np.linalg.solve(np.triu(a).conj().T, b)),
    case(tw.linalg.cholesky_solve, FACTOR, complexes(3, 2),
         expect=lambda a, b: np.linalg.solve(np.tril(a) @ np.tril(a).conj().T, b)),
    case(tw.linalg.pinv, floats(3, 2), expect=np.linalg.pinv),
    case(of_rank_one, floats(3), floats(2), label="",
         expect=lambda x, y: np.outer(y, x) / np.sum(x * x) / np.sum(y * y)),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


@pytest.fixture(params=["by BLAS", "by NumPy"])
def calls(request):
    blas.set_blas_calls(request.param == "by BLAS")
    yield
    blas.set_blas_calls(True)


@pytest.mark.parametrize("lower", [True, False])
def test_substitution_goes_block_by_block(lower, calls):
    rng = np.random.default_rng(0)
    count = 201
    matrix = rng.normal(size=(2, count, count)) / count + 2 * np.eye(count)
    rhs = rng.normal(size=(2, count, 3))
    x = tw.linalg.triangular_solve(matrix, rhs, lower=lower).numpy()
    half = np.tril(matrix) if lower else np.triu(matrix)
    np.testing.assert_allclose(half @ x, rhs, atol=1e-12)


def spoiled(dtype, value=np.nan):
    """Three well-conditioned matrices, the second with ``value`` at one place."""
    batch = np.random.default_rng(5).normal(size=(3, 4, 4)) + 4 * np.eye(4)
    batch[1, 2, 1] = value
    return batch.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
@pytest.mark.parametrize(
    "op",
    [
        tw.linalg.inv,
        tw.linalg.det,
        tw.linalg.slogdet,
        tw.linalg.pinv,
        tw.linalg.expm,
        tw.linalg.svd,
        tw.linalg.eigvalsh,
        lambda x: tw.linalg.eigh(x)[0],
        lambda x: tw.linalg.svd(x, compute_uv=False),
        lambda x: tw.linalg.solve(x, tw.ones_like(x)),
        lambda x: tw.linalg.norm(x, 2, axis=[-2, -1]),
    ],
)
def test_a_matrix_with_nan_gives_nan_and_the_others_of_a_batch_do_not(op, dtype):
    x = tw.constant(spoiled(dtype))
    for f in (op, tw.function(op)):
        outputs = f(x)
        for out in outputs if isinstance(outputs, (list, tuple)) else [outputs]:
            found = np.isnan(out.numpy()).reshape(3, -1)
            assert found[1].all() and not found[[0, 2]].any()
        outputs = f(x[1])
        for out in outputs if isinstance(outputs, (list, tuple)) else [outputs]:
            assert np.isnan(out.numpy()).all()


def test_singular_values_of_infinities_are_nan_and_no_zeros():
    x = tw.constant(spoiled("float32", np.inf))
    assert np.isnan(tw.linalg.svd(x, compute_uv=False).numpy()[1]).all()
    assert np.isnan(tw.linalg.pinv(x).numpy()[1]).all()
    assert tw.linalg.matrix_rank(x).numpy().tolist() == [4, 0, 4]


@pytest.mark.parametrize("lower", [True, False])
def test_a_nan_in_a_triangle_spoils_what_is_solved_after_it(lower):
    n, at = 5, 2
    matrix = np.tril(np.ones((n, n))) if lower else np.triu(np.ones((n, n)))
    matrix[at, at] = np.nan
    matrix[(0, n - 1) if lower else (n - 1, 0)] = np.nan  # in the half not read
    out = tw.linalg.triangular_solve(matrix, np.ones((n, 2)), lower=lower).numpy()
    after = slice(at, None) if lower else slice(None, at + 1)
    before = slice(None, at) if lower else slice(at + 1, None)
    assert np.isnan(out[after]).all()
    whole = np.where(np.isnan(matrix), 1, matrix)
    whole = np.tril(whole) if lower else np.triu(whole)
    np.testing.assert_allclose(
        out[before], np.linalg.solve(whole, np.ones((n, 2)))[before]
    )


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize("count", [4, 90])
def test_a_nan_anywhere_spoils_the_same_rows_by_blas(lower, value, count, calls):
    rng = np.random.default_rng(0)
    for _ in range(10):
        matrix = np.eye(count) + np.ones((count, count)) / count
        row, column = sorted(rng.integers(0, count, 2))[:: -1 if lower else 1]
        matrix[row, column] = np.nan
        out = tw.linalg.triangular_solve(
            matrix, np.full((count, 2), value), lower=lower
        )
        rows = np.arange(count)
        after = rows >= row if lower else rows <= row
        np.testing.assert_array_equal(np.isnan(out.numpy()), np.stack([after] * 2, 1))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_a_triangle_may_have_a_diagonal_whose_inverse_overflows(dtype, calls):
    tiny = np.finfo(dtype).tiny / 8
    matrix = np.array([[tiny, 0], [1, 1]], dtype)
    x = tw.linalg.triangular_solve(matrix, np.array([[tiny], [3]], dtype))
    np.testing.assert_allclose(x.numpy(), [[1], [2]])


def test_the_other_half_of_a_triangular_matrix_is_not_read():
    x = tw.linalg.triangular_solve([[2.0, np.nan], [0.0, 1.0]], [[2.0], [3.0]])
    assert x.numpy().tolist() == [[1.0], [3.0]]


SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]], np.float32)


@pytest.mark.parametrize("f, name", [
    (lambda: tw.linalg.inv(SINGULAR), "inv"),
    (lambda: tw.linalg.inv(tw.stack([tw.eye(2), SINGULAR])), "inv"),
    (lambda: tw.linalg.solve(SINGULAR, tw.eye(2)), "solve"),
    (lambda: tw.linalg.triangular_solve(tw.zeros((2, 2)), tw.eye(2)), "triangular_solve"),
], ids=["inv", "a batch", "solve", "triangular_solve"])  # fmt: skip
def test_a_singular_matrix_is_an_error_that_names_the_op(f, name, device):
    if device == "cupy":
        pytest.skip("a GPU does not look")
    with pytest.raises(ValueError, match=f"^{name}: the .*matrix is not invertible"):
        f()


@pytest.mark.parametrize("op", [tw.linalg.solve, tw.linalg.triangular_solve])
def test_shapes_that_do_not_fit_are_named(op):
    with pytest.raises(tw.errors.ShapeError, match="matrix .*square"):
        op(tw.zeros((2, 3)), tw.zeros((2, 1)))
    with pytest.raises(tw.errors.ShapeError, match="matrix and rhs.*number of rows"):
        op(tw.eye(2), tw.zeros((3, 1)))
    with pytest.raises(tw.errors.ShapeError, match="rhs .*axes"):
        op(tw.eye(2), tw.zeros((2,)))
    with pytest.raises(tw.errors.ShapeError, match="do not broadcast"):
        op(tw.eye(2, batch_shape=[2]), tw.zeros((3, 2, 1)))


def test_integers_are_refused():
    with pytest.raises(tw.errors.DTypeError, match="floating"):
        tw.linalg.inv([[1, 0], [0, 1]])
    with pytest.raises(tw.errors.DTypeError, match="floating"):
        tw.linalg.pinv([[1, 0], [0, 1]])


def test_a_pseudo_inverse_of_zeros_is_zero():
    assert tw.linalg.pinv(tw.zeros((2, 3))).numpy().tolist() == [[0, 0]] * 3


def test_the_threshold_of_a_pseudo_inverse_is_relative():
    x = tw.linalg.pinv([[100.0, 0.0], [0.0, 1.0]], rcond=0.1)
    np.testing.assert_allclose(x.numpy(), [[0.01, 0.0], [0.0, 0.0]])
