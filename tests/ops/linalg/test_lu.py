"""The LU decomposition, roots and logarithms of matrices, matrices with few diagonals."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.test import case, check_op, complexes, floats

linalg = tw.linalg
BASE = np.array([[0.2, 1.3, -0.5], [2.4, 1.7, 0.2], [-0.1, 0.6, 2.9]])
BOTH = np.stack([BASE, BASE[::-1] + np.eye(3)])
COMPLEX = BASE + 0.4j * BASE[::-1]
POSITIVE = np.array([[4.0, 0.3, -0.5], [0.4, 5.0, 0.2], [-0.1, 0.6, 2.9]])
ROTATED = POSITIVE + 0.4j * BASE


def lu(matrices):
    """By Doolittle's method with the largest pivot of each column."""
    packed, rows = matrices.copy(), np.zeros(matrices.shape[:-1], np.int32)
    for index in np.ndindex(matrices.shape[:-2]):
        a, p = packed[index], np.arange(matrices.shape[-1])
        for j in range(len(a)):
            k = j + np.argmax(np.abs(a[j:, j]))
            a[[j, k]], p[[j, k]] = a[[k, j]], p[[k, j]]
            a[j + 1 :, j] /= a[j, j]
            a[j + 1 :, j + 1 :] -= np.outer(a[j + 1 :, j], a[j, j + 1 :])
        rows[index] = p
    return packed, rows


def by_eigenvalues(f):
    def of(x):
        e, v = np.linalg.eig(x)
        found = (v * f(e)[..., None, :]) @ np.linalg.inv(v)
        return found if np.iscomplexobj(x) else found.real

    return of


def lu_inverse(x):
    return linalg.lu_matrix_inverse(*linalg.lu(x))


def lu_restored(x):
    return linalg.lu_reconstruct(*linalg.lu(x))


def lu_solved(x, rhs):
    return linalg.lu_solve(*linalg.lu(x), rhs)


def tridiagonal(diagonals):
    upper, main, lower = np.moveaxis(diagonals, -2, 0)
    n = main.shape[-1]
    full = main[..., None] * np.eye(n)
    full = full + upper[..., :, None] * np.eye(n, k=1)
    return full + lower[..., :, None] * np.eye(n, k=-1)


def triangle(bands):
    return bands[0][:, None] * np.eye(3) + bands[1][:, None] * np.eye(3, k=-1)


def eigenvalues(alpha, beta):
    return np.linalg.eigvalsh(np.diag(alpha) + np.diag(beta, -1))


def tridiagonal_solved(diagonals, rhs):
    return np.linalg.solve(tridiagonal(diagonals), rhs)


DIAGONALS = np.array(
    [[[0.3, 9.0, 0.5, 0.7], [0.1, 0.2, -2.0, 3.0], [0.2, 4.0, 1.0, 1.5]]]
)
DIAGONALS = np.concatenate([DIAGONALS, DIAGONALS[..., ::-1] + 0.3])

CASES = [
    case("lu", BASE, expect=lu), case("lu", COMPLEX, expect=lu, order=1),
    case("lu", BOTH, expect=lu, order=1),
    case("checked_permutation", np.array([[1, 0, 2]]), who="lu", expect=lambda x: x),
    case(lu_inverse, BASE, expect=np.linalg.inv, order=2),
    case(lu_restored, COMPLEX, expect=lambda x: x, order=2),
    case(lu_solved, BOTH, floats(2, 3, 2), expect=np.linalg.solve, order=1),
    case("sqrtm", POSITIVE, expect=by_eigenvalues(np.sqrt)),
    case("sqrtm", ROTATED, expect=by_eigenvalues(np.sqrt), order=1),
    case("logm", ROTATED, expect=by_eigenvalues(np.log), order=2),
    case("tridiagonal_solve", DIAGONALS, floats(2, 4, 2), expect=tridiagonal_solved),
    case("tridiagonal_solve", DIAGONALS[0] + 1j, complexes(4, 1), order=1,
         expect=tridiagonal_solved),
    case("tridiagonal_solve", DIAGONALS[1], floats(4, 1), pivoting=False,
         order=1, expect=tridiagonal_solved),
    case(linalg.tridiagonal_matmul, DIAGONALS, floats(2, 4, 2), order=2,
         expect=lambda d, x: tridiagonal(d) @ x),
    case(linalg.banded_triangular_solve, DIAGONALS[0, :2, :3], floats(3, 2), order=1,
         expect=lambda bands, x: np.linalg.solve(triangle(bands[[0, 1]]), x)),
    case(linalg.eigh_tridiagonal, floats(4), floats(3), expect=eigenvalues, order=1),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


def test_lu_in_blocks_is_that_of_columns():
    x = np.random.default_rng(0).normal(size=(2, 75, 75))
    packed, rows = linalg.lu(x, output_idx_type=tw.int64)
    assert rows.dtype is tw.int64
    for got, wanted in zip((packed, rows), lu(x)):
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-9, atol=1e-11)


def test_the_first_of_equal_pivots_is_taken():
    factors = linalg.lu([[1.0, -1.0, 3.0], [-1.0, 1.0, 0.0], [1.0, 2.0, 1.0]])
    assert factors.p.numpy().tolist() == [0, 2, 1]  # as TensorFlow's
    assert factors.lu.numpy().tolist() == [[1, -1, 3], [1, 3, -2], [-1, 0, 3]]


def test_batches_of_a_solution_broadcast():
    rhs = np.ones((5, 1, 3, 2))
    found = linalg.lu_solve(*linalg.lu(BOTH), rhs)
    np.testing.assert_allclose(found.numpy(), np.linalg.solve(BOTH, rhs))


# TensorFlow's results but for the zero matrix, where it has NaN
ROOTS = [
    ([[1.0, 1.0], [1.0, 1.0]], [[0.5**0.5] * 2] * 2),
    ([[4.0, 1.0], [0.0, 4.0]], [[2.0, 0.25], [0.0, 2.0]]),
    ([[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]),
    ([[-4.0, 1.0], [0.0, 9.0]], [[np.nan] * 2] * 2),
    ([[0.0, 1.0], [0.0, 0.0]], [[np.nan] * 2] * 2),
    ([[np.inf, 1.0], [0.0, 1.0]], [[np.nan] * 2] * 2),
    ([[-4.0 + 0j, 1.0], [0.0, 9.0]], [[2j, 3 / 13 - 2j / 13], [0.0, 3.0]]),
]


def test_roots_of_matrices_that_are_singular_or_not_diagonalizable():
    for matrix, root in ROOTS:
        found = linalg.sqrtm(np.array(matrix)).numpy()
        np.testing.assert_allclose(found, root, atol=1e-15)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    block = turn @ (4 * np.eye(3) + np.eye(3, k=1)) @ turn.T
    root = linalg.sqrtm(block).numpy()
    np.testing.assert_allclose(root @ root, block, rtol=1e-13, atol=1e-13)
    logarithm = linalg.logm(block.astype(complex))
    np.testing.assert_allclose(linalg.expm(logarithm).numpy(), block, atol=1e-13)


def test_logarithms_are_principal():
    found = linalg.logm(np.array([[-4.0 + 0j, 1.0], [0.0, 9.0]])).numpy()
    wanted = [1.38629436 + 3.14159265j, 0.06237925 - 0.24166097j]  # TensorFlow's
    np.testing.assert_allclose(found[0], wanted, rtol=1e-7)
    assert np.isnan(linalg.logm(np.array([[0j, 1.0], [0.0, 9.0]])).numpy()).all()


def test_formats_of_diagonals_mean_one_matrix():
    compact = DIAGONALS[0]
    rhs = np.arange(8.0).reshape(4, 2)
    for give, format in [
        (compact, "compact"),
        (list(compact), "sequence"),
        ([compact[0, :-1], compact[1], compact[2, 1:]], "sequence"),
        (tridiagonal(compact), "matrix"),
    ]:
        product = linalg.tridiagonal_matmul(give, rhs, diagonals_format=format)
        np.testing.assert_allclose(product.numpy(), tridiagonal(compact) @ rhs)
        found = linalg.tridiagonal_solve(give, rhs.T, format, transpose_rhs=True)
        np.testing.assert_allclose(found.numpy(), tridiagonal_solved(compact, rhs))
    vector = linalg.tridiagonal_solve(compact, rhs[:, 1])
    np.testing.assert_allclose(vector.numpy(), tridiagonal_solved(compact, rhs)[:, 1])


def test_bands_and_eigenvalues_are_those_of_tensorflow():
    upper = np.array([[0, 0, 6.0], [0, 4, 5], [1, 2, 3]])
    third = 1 / 3
    for adjoint in (False, True):
        found = linalg.banded_triangular_solve(upper, np.eye(3), False, adjoint).numpy()
        wanted = [[1, 0, 0], [0, 0.5, -2 * third], [0, 0, third]]
        np.testing.assert_allclose(found, np.transpose(wanted) if adjoint else wanted)
    alpha, beta = np.array([1.0, 2.0, 3.0]), np.array([0.5, -0.7])
    values = [0.75619807, 1.8605091, 3.38329283]
    for options, kept in [
        ({}, slice(None)),
        ({"select": "i", "select_range": [0, 1]}, slice(2)),
        ({"select": "v", "select_range": [0.9, 2.5]}, slice(1, 2)),
    ]:
        found, vectors = linalg.eigh_tridiagonal(alpha, beta, False, **options)
        np.testing.assert_allclose(found.numpy(), values[kept], rtol=1e-7)
        matrix = np.diag(alpha) + np.diag(beta, 1) + np.diag(beta, -1)
        np.testing.assert_allclose(
            matrix @ vectors.numpy(), vectors.numpy() * found.numpy(), atol=1e-14
        )
    beta = np.array([0.5j, -0.7 + 0.2j])
    found, vectors = linalg.eigh_tridiagonal(alpha.astype(complex), beta, False)
    matrix = np.diag(alpha) + np.diag(beta, 1) + np.diag(beta.conj(), -1)
    np.testing.assert_allclose(
        matrix @ vectors.numpy(), vectors.numpy() * found.numpy(), atol=1e-14
    )


@pytest.mark.parametrize("call, error, text", [
    (lambda: linalg.lu(np.ones((2, 2))), ValueError, "lu: the matrix is not invertible"),
    (lambda: linalg.lu(np.zeros((3, 3))), ValueError, "lu: the matrix is not invertible"),
    (lambda: linalg.lu(np.ones((2, 3))), ValueError, "lu: input must be square"),
    (lambda: linalg.lu_solve(np.eye(3), [0, 1], np.eye(3)), ValueError, "perm \\[..., n\\]"),
    (lambda: linalg.lu_solve(np.eye(2), [0, -1], np.eye(2)), ValueError, "permutation"),
    (lambda: linalg.lu_reconstruct(np.eye(2), [0, 0]), ValueError, "permutation"),
    (lambda: linalg.logm(np.eye(2)), TypeError, "logm: input must be complex"),
    (lambda: linalg.tridiagonal_solve(np.zeros((3, 2)), tw.ones([2])), TypeError, "dtype"),
    (lambda: linalg.tridiagonal_solve(np.zeros((3, 2)), np.ones(2)), ValueError,
     "not invertible"),
    (lambda: linalg.tridiagonal_solve(np.zeros((2, 2)), np.ones(2)), ValueError, "3, n"),
    (lambda: linalg.tridiagonal_matmul(np.eye(3), np.eye(3), "band"), ValueError,
     "diagonals_format must be"),
    (lambda: linalg.eigh_tridiagonal([1.0, 2.0], [1.0], select="i", select_range=(0, 2)),
     ValueError, "select_range must be two indices from 0 to 1"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_conjugate_gradients_solve_in_as_many_steps_as_there_are_unknowns():
    matrix = BASE @ BASE.T + np.eye(3)
    rhs = tw.constant([[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]], tw.float64)
    solve = linalg.experimental.conjugate_gradient
    wanted = np.linalg.solve(matrix, rhs.numpy().T).T

    class Operator:
        is_self_adjoint = True

        def matvec(self, v):
            return linalg.matvec(tw.constant(matrix), v)

    for operator in (matrix, Operator()):
        state = solve(operator, rhs, tol=1e-12)
        assert state.i == 3
        np.testing.assert_allclose(state.x.numpy(), wanted, rtol=1e-10)
    start = tw.ones_like(rhs)
    better = np.diag(1 / np.diag(matrix))
    state = tw.function(lambda: solve(matrix, rhs, better, start, tol=1e-12))()
    np.testing.assert_allclose(state.x.numpy(), wanted, rtol=1e-10, atol=1e-12)
    assert solve(matrix, rhs, max_iter=1).i == 1
    Operator.is_self_adjoint = False
    with pytest.raises(ValueError, match="is_self_adjoint must be true"):
        solve(Operator(), rhs)


def test_traced_functions_compute_the_same():
    @tw.function
    def both(x, d):
        return lu_inverse(x), linalg.sqrtm(x @ tw.transpose(x)), lu_solved(x, d[:, :1])

    x = tw.constant(BASE)
    for got, wanted in zip(both(x, x), both.python_function(x, x)):
        np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-12)
