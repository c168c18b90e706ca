"""Factorizations: the op table, and what is left where factors are not unique.

Factors of real matrices are unique but for signs, which LAPACK keeps from one matrix to
its neighbours: their derivatives are compared as they are. Those of complex matrices are
compared in combinations that do not depend on a choice.
"""

import numpy as np
import pytest

import tapewright as tw
from tapewright.test import case, check_gradients, check_op, floats

pytestmark = pytest.mark.gpu_first

BASE = np.array([[2.0, 0.3, -0.5], [0.4, 1.7, 0.2], [-0.1, 0.6, 2.9]])
COMPLEX = BASE + 0.4j * BASE[::-1]
POSITIVE = BASE @ BASE.T
BOTH = np.stack([POSITIVE, POSITIVE[::-1, ::-1] + 0.5 * np.eye(3)])
HERMITIAN = COMPLEX @ COMPLEX.conj().T
TALL = np.concatenate([BASE[:, :2], [[0.8, -0.4]]])
WIDE = TALL.T
TALL_COMPLEX = TALL + 0.3j * TALL[::-1]


def adjoint(x):
    return np.swapaxes(x.conj(), -1, -2)


def diagonal(values):
    return values[..., None] * np.eye(values.shape[-1])


def svd(full_matrices):
    def expect(x):
        u, s, v = np.linalg.svd(x, full_matrices)
        return s, u, adjoint(v)

    return expect


def values_alone(x):
    return np.linalg.svd(x, compute_uv=False)


# ----------------------------------------------- what does not depend on a choice


def eigh_restored(x):
    """A function of a Hermitian matrix by its eigenvalues: ``V exp(-E) V^H``."""
    e, v = tw.linalg.eigh(x)
    return tw.matmul(v * tw.exp(-e)[None, :], v, adjoint_b=True)


def eigh_expected(x):
    e, v = np.linalg.eigh(x)
    return (v * np.exp(-e)) @ adjoint(v)


def eigh_sizes(x):
    e, v = tw.linalg.eigh(x)
    return tw.math.real(e), abs(v)


def eig_restored(x):
    e, v = tw.linalg.eig(x)
    return tw.matmul(v * tw.exp(-e)[None, :], tw.linalg.inv(v))


def eig_expected(x):
    e, v = np.linalg.eig(x)
    return (v * np.exp(-e)) @ np.linalg.inv(v)


def eig_sizes(x):
    e, v = tw.linalg.eig(x)
    return e, abs(v)


def svd_restored(x, full_matrices=False):
    """``U exp(-S) V^H``, the sizes of the vectors, and the projectors they span."""
    s, u, v = tw.linalg.svd(x, full_matrices)
    count = s.shape[0]
    inner = tw.cast(tw.exp(-s), u.dtype)
    first, second = u[:, :count], v[:, :count]
    product = tw.matmul(first * inner, second, adjoint_b=True)
    rest, other = u[:, count:], v[:, count:]
    return (
        product,
        abs(first),
        abs(second),
        tw.matmul(rest, rest, adjoint_b=True),
        tw.matmul(other, other, adjoint_b=True),
    )


def svd_expected(x, full_matrices=False):
    u, s, turned = np.linalg.svd(x)
    v, count = adjoint(turned), len(s)
    first, second = u[:, :count], v[:, :count]
    keep = 1.0 if full_matrices else 0.0
    return (
        (first * np.exp(-s)) @ adjoint(second),
        abs(first),
        abs(second),
        keep * (np.eye(len(u)) - first @ adjoint(first)),
        keep * (np.eye(len(v)) - second @ adjoint(second)),
    )


def qr_projectors(x):
    q, r = tw.linalg.qr(x, full_matrices=True)
    rest = q[:, x.shape[1] :]
    return tw.matmul(rest, rest, adjoint_b=True), r


def qr_projectors_expected(x):
    q, r = np.linalg.qr(x)
    below = np.zeros((len(x) - len(r), x.shape[1]))
    return np.eye(len(x)) - q @ adjoint(q), np.concatenate([r, below])


CASES = [
    case("cholesky", POSITIVE, expect=np.linalg.cholesky),
    case("cholesky", BOTH, expect=np.linalg.cholesky),
    case("cholesky", HERMITIAN, expect=np.linalg.cholesky),
    case("cholesky", floats(0, 3, 3), expect=np.linalg.cholesky),
    case("cholesky", floats(1, 1, low=1.0), expect=np.sqrt),
    case("gram_factor", POSITIVE, expect=np.linalg.cholesky),
    case("gram_factor", BOTH, expect=np.linalg.cholesky),
    case("gram_factor", HERMITIAN, expect=np.linalg.cholesky),
    case("qr", BASE, expect=np.linalg.qr),
    case("qr", TALL, expect=np.linalg.qr),
    case("qr", WIDE, expect=np.linalg.qr),
    case("qr", BOTH, expect=np.linalg.qr),
    case("qr", TALL[:3], full_matrices=True, label="a column more",
         expect=lambda x: np.linalg.qr(x, "complete")),
    case("qr", TALL, full_matrices=True, order=0, expect=lambda x: np.linalg.qr(x, "complete")),
    case("qr", WIDE, full_matrices=True, expect=lambda x: np.linalg.qr(x, "complete")),
    case("qr", COMPLEX, expect=np.linalg.qr),
    case("qr", TALL_COMPLEX, expect=np.linalg.qr),
    case("qr", TALL_COMPLEX.T, expect=np.linalg.qr),
    case("qr", floats(0, 3, 2), expect=np.linalg.qr),
    case("svd", BASE, expect=svd(False)),
    case("svd", TALL, expect=svd(False)),
    case("svd", WIDE, expect=svd(False)),
    case("svd", BOTH, expect=svd(False)),
    case("svd", TALL[:3], full_matrices=True, label="a column more", expect=svd(True)),
    case("svd", WIDE, full_matrices=True, order=0, expect=svd(True)),
    case("svd", COMPLEX, order=0, expect=svd(False)),
    case("svd", floats(0, 3, 2), expect=svd(False)),
    case("singular_values", BASE, expect=values_alone),
    case("singular_values", TALL, expect=values_alone),
    case("singular_values", WIDE, expect=values_alone),
    case("singular_values", BOTH, expect=values_alone),
    case("singular_values", COMPLEX, expect=values_alone),
    case("singular_values", TALL_COMPLEX, expect=values_alone),
    case("singular_values", floats(0, 3, 2), expect=lambda x: np.zeros((0, 2))),
    case("eigh", BASE, expect=np.linalg.eigh),
    case("eigh", BOTH, expect=np.linalg.eigh),
    case("eigh", HERMITIAN, order=0, expect=np.linalg.eigh),
    case("eigh", floats(0, 3, 3), expect=np.linalg.eigh),
    case("eigvalsh", BASE, expect=np.linalg.eigvalsh),
    case("eigvalsh", BOTH, expect=np.linalg.eigvalsh),
    case("eigvalsh", HERMITIAN, expect=np.linalg.eigvalsh),
    case("eigvalsh", floats(0, 3, 3), expect=np.linalg.eigvalsh),
    case("eig", BASE, order=0,
         expect=lambda x: tuple(y.astype(complex) for y in np.linalg.eig(x))),
    case("eig", COMPLEX, order=0, expect=np.linalg.eig),
    case("eig", np.stack([COMPLEX, COMPLEX.T]), order=0, expect=np.linalg.eig),
    case("eig", floats(0, 3, 3),
         expect=lambda x: (np.zeros((0, 3), complex), x.astype(complex))),
    case("eig", floats(2, 0, 0),
         expect=lambda x: (np.zeros((2, 0), complex), x.astype(complex))),
    # composed of these
    case(eigh_restored, POSITIVE, expect=eigh_expected),
    case(eigh_restored, HERMITIAN, expect=eigh_expected),
    case(eigh_sizes, HERMITIAN, expect=lambda x: [abs(y) for y in np.linalg.eigh(x)]),
    case(tw.linalg.eigvalsh, HERMITIAN, label="as complex numbers",
         expect=lambda x: np.linalg.eigvalsh(x) + 0j),
    case(eig_restored, COMPLEX, expect=eig_expected),
    case(eig_restored, BASE, expect=lambda x: eig_expected(x) + 0j),
    case(eig_restored, BASE - BASE.T, label="complex pairs",
         expect=lambda x: eig_expected(x) + 0j),
    case(eig_sizes, COMPLEX,
         expect=lambda x: [f(y) for f, y in zip([np.array, abs], np.linalg.eig(x))]),
    case(tw.linalg.eigvals, COMPLEX, expect=np.linalg.eigvals),
    case(svd_restored, COMPLEX, expect=svd_expected),
    case(svd_restored, TALL_COMPLEX, expect=svd_expected),
    case(svd_restored, TALL_COMPLEX.T, expect=svd_expected),
    case(svd_restored, TALL, full_matrices=True, label="tall",
         expect=lambda x: svd_expected(x, True)),
    case(svd_restored, TALL_COMPLEX.T, full_matrices=True, label="wide",
         expect=lambda x: svd_expected(x, True)),
    case(qr_projectors, TALL, expect=qr_projectors_expected),
    case(qr_projectors, TALL_COMPLEX, expect=qr_projectors_expected),
    case(tw.linalg.matrix_rank, np.stack([BASE, np.ones((3, 3)), np.zeros((3, 3))]),
         expect=lambda x: np.array([3, 1, 0], np.int32)),
    case(tw.linalg.matrix_rank, BASE, tol=2.5,
         expect=lambda x: np.sum(values_alone(x) > 2.5, dtype=np.int32)),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


@pytest.mark.parametrize(
    "name, full, square, shapes",
    [
        ("qr", False, False, [(4, 3), (3, 3)]),
        ("qr", True, False, [(4, 4), (4, 3)]),
        ("svd", False, False, [(3,), (4, 3), (3, 3)]),
        ("svd", True, False, [(3,), (4, 4), (3, 3)]),
        ("cholesky", None, True, [(3, 3)]),
        ("eigh", None, True, [(3,), (3, 3)]),
        ("eig", None, True, [(3,), (3, 3)]),
        ("eigvalsh", None, True, [(3,)]),
    ],
)
def test_shapes_are_known_before_values(name, full, square, shapes):
    options = {} if full is None else {"full_matrices": full}
    function = tw.function(lambda x: getattr(tw.linalg, name)(x, **options))
    spec = tw.TensorSpec([None, 2, 3 if square else 4, 3])
    outputs = function.get_concrete_function(spec).graph.outputs
    assert [tuple(x.shape) for x in outputs] == [(None, 2, *shape) for shape in shapes]


# ------------------------------------------------------------------ coinciding values


def gradient(f, x, order=1):
    """The gradient of the sum of ``f``, or of the sum of that."""
    x = tw.constant(np.asarray(x))
    with tw.GradientTape() as outer:
        outer.watch(x)
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        g = tape.gradient(y, x)
    return (g if order == 1 else outer.gradient(g, x)).numpy()


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("x", [np.eye(3), np.zeros((3, 3)), np.ones((3, 3))],
                         ids=["unit", "zeros", "ones"])  # fmt: skip
@pytest.mark.parametrize(
    "f",
    [
        lambda x: tw.linalg.eigh(x)[0],
        lambda x: tw.linalg.svd(x)[0],
        lambda x: tw.linalg.eigvalsh(x),
        lambda x: tw.linalg.svd(x, compute_uv=False),
    ],
    ids=["eigh", "svd", "eigvalsh", "singular values"],
)
def test_values_that_coincide_make_no_nan(f, x, order):
    assert np.isfinite(gradient(f, x, order)).all()


def test_the_sum_of_coinciding_eigenvalues_is_the_trace():
    g = gradient(lambda x: tw.linalg.eigh(x)[0], np.eye(3))
    np.testing.assert_allclose(g, np.eye(3), atol=1e-14)


def test_singular_values_that_coincide_leave_the_nuclear_norm_smooth():
    def nuclear(x):
        return tw.reduce_sum(tw.linalg.svd(x, compute_uv=False))

    turned = np.linalg.qr(BASE)[0] * 2.0  # all of them are 2
    check_gradients(nuclear, [turned], order=2)


def test_singular_vectors_that_coincide_leave_their_product_smooth():
    def polar(x):
        _, u, v = tw.linalg.svd(x)
        return tw.matmul(u, v, adjoint_b=True)

    check_gradients(polar, [np.linalg.qr(BASE)[0] * 2.0], order=1)


def test_only_the_lower_half_of_a_hermitian_matrix_is_read():
    half = np.where(np.tri(3) > 0, POSITIVE, np.nan)
    np.testing.assert_allclose(
        tw.linalg.eigvalsh(half).numpy(), np.linalg.eigvalsh(POSITIVE)
    )
    g = gradient(lambda x: tw.linalg.eigh(x)[0][2], half)
    assert np.triu(g, 1).tolist() == np.zeros((3, 3)).tolist() and g[2, 0] != 0


def test_the_gradient_through_a_cholesky_factor_is_symmetric():
    g = gradient(tw.linalg.cholesky, POSITIVE)
    np.testing.assert_allclose(g, g.T)


# ------------------------------------------------------------------------- refusals


def test_a_matrix_that_is_not_positive_definite_has_no_cholesky_factor(device):
    if device == "cupy":
        pytest.skip("a GPU does not look")
    with pytest.raises(
        ValueError, match="^cholesky: the matrix is not positive definite"
    ):
        tw.linalg.cholesky([[1.0, 2.0], [2.0, 1.0]])


@pytest.mark.parametrize("name", ["cholesky", "eigh", "eigvalsh", "eig", "eigvals"])
def test_a_matrix_that_is_not_square_is_refused(name):
    with pytest.raises(tw.errors.ShapeError, match="must be square"):
        getattr(tw.linalg, name)(tw.zeros((2, 3)))


@pytest.mark.parametrize("name", ["cholesky", "qr", "svd", "eigh", "eigvalsh", "eig"])
def test_vectors_and_integers_are_refused(name):
    op = getattr(tw.linalg, name)
    with pytest.raises(tw.errors.ShapeError, match="two axes"):
        op(tw.zeros((3,)))
    with pytest.raises(tw.errors.DTypeError, match="floating"):
        op(tw.zeros((3, 3), tw.int32))


def test_the_tolerance_of_a_rank_broadcasts_against_the_singular_values():
    x = tw.reshape(tw.range(24.0), [4, 3, 2])
    for tol in (1.0, tw.ones([4, 1]), tw.ones([2])):
        rank = tw.linalg.matrix_rank(x, tol=tol)
        assert rank.shape == (4,)
        s = np.linalg.svd(x.numpy(), compute_uv=False)
        assert rank.numpy().tolist() == (s > 1).sum(-1).tolist()
    with pytest.raises(ValueError):
        tw.linalg.matrix_rank(x, tol=tw.ones([4]))


@pytest.mark.parametrize("shape", [(1, 2), (2, 1), (0, 1), (2,)])
def test_cholesky_takes_no_row_for_a_matrix(shape):
    with pytest.raises(ValueError, match="input"):
        tw.linalg.cholesky(tw.ones(shape))
