"""Determinants, exponentials, norms, least squares: the op table, and the corners."""

import math

import numpy as np
import pytest

import tapewright as tw
from tapewright.test import (
    case,
    check_gradients,
    check_op,
    complexes,
    floats,
)

pytestmark = pytest.mark.gpu_first

BASE = np.array([[2.0, 0.3, -0.5], [0.4, 1.7, 0.2], [-0.1, 0.6, 2.9]])
TWO = np.stack([BASE, BASE[::-1]])
COMPLEX = BASE + 0.4j * BASE[::-1]
POSITIVE = BASE @ BASE.T
HERMITIAN = COMPLEX @ COMPLEX.conj().T
RANK_TWO = np.array([[4.0, 2.0, 8.0], [2.0, 1.0, 3.0], [2.0, 1.0, 5.0]])
RANK_ONE = np.outer([1.0, -0.5, 2.0], [0.7, 1.3, -0.4])


def cofactors(x):
    """By deleting rows and columns."""
    result = np.empty_like(x)
    for i, j in np.ndindex(x.shape):
        minor = np.delete(np.delete(x, i, 0), j, 1)
        result[i, j] = (-1) ** (i + j) * np.linalg.det(minor)
    return result


def slope(h, x):
    """The derivative of the cofactors, a difference quotient of polynomials of degree 2."""
    result = np.empty_like(x)
    for at in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[at] = 0.5
        result[at] = np.sum(h * (cofactors(x + step) - cofactors(x - step)))
    return result


def expm(x):
    """By its series, after halving ten times."""
    x = x / 1024
    result = sum(np.linalg.matrix_power(x, n) / math.factorial(n) for n in range(12))
    for _ in range(10):
        result = result @ result
    return result


def slogdet(x):
    sign, size = np.linalg.slogdet(x)
    return sign, np.asarray(size, x.dtype)


def ridge(a, b, amount):
    unit = np.eye(a.shape[-1])
    return np.linalg.solve(a.conj().T @ a + amount * unit, a.conj().T @ b)


def least(a, b):
    return np.linalg.lstsq(a, b, rcond=None)[0]


CASES = [
    case("det", BASE, expect=np.linalg.det),
    case("det", TWO, expect=np.linalg.det),
    case("det", COMPLEX, expect=np.linalg.det),
    case("det", floats(1, 1), expect=lambda x: x[0, 0]),
    case("det", floats(2, 2), expect=np.linalg.det),
    case("det", floats(4, 4), expect=np.linalg.det, order=2),
    case("det", RANK_TWO, order=2, label="rank 2", expect=lambda x: np.zeros(()), single=False),
    case("det", RANK_ONE, order=2, label="rank 1", expect=lambda x: np.zeros(()), single=False),
    case("det", np.zeros((3, 3)), order=2, label="zeros", expect=np.linalg.det),
    case("det", floats(0, 3, 3), expect=lambda x: np.zeros(0)),
    case("det", floats(0, 0), expect=lambda x: np.ones(())),
    case("cofactor", BASE, expect=cofactors),
    case("cofactor", COMPLEX, expect=cofactors),
    case("cofactor", RANK_TWO, order=1, label="rank 2", expect=cofactors, single=False),
    case("cofactor", np.stack([BASE, RANK_ONE]), order=1, label="one of rank 1",
         single=False, expect=lambda x: np.stack([cofactors(y) for y in x])),
    case("cofactor_slope", floats(3, 3), BASE, order=2, expect=slope),
    case("cofactor_slope", complexes(3, 3), COMPLEX, order=1, expect=slope),
    case("cofactor_slope", floats(4, 4), floats(4, 4), order=1),
    case("slogdet", BASE, expect=slogdet),
    case("slogdet", TWO, expect=slogdet),
    case("slogdet", -BASE, label="negative", expect=slogdet),
    case("slogdet", COMPLEX, expect=slogdet),
    case("slogdet", floats(0, 3, 3), expect=slogdet),
    case("slogdet", np.zeros((2, 2)), order=0, label="zeros", expect=slogdet),
    case("expm", BASE, expect=expm),
    case("expm", np.stack([BASE, -4 * BASE, 0 * BASE]), order=1, label="of many sizes",
         expect=lambda x: np.stack([expm(y) for y in x])),
    case("expm", COMPLEX, order=2, expect=expm),
    case("expm", np.zeros((2, 2)), label="zeros", expect=expm),
    case("expm", floats(0, 2, 2), expect=np.exp),
    # composed of these
    case(tw.linalg.logdet, POSITIVE, expect=lambda x: np.linalg.slogdet(x)[1]),
    case(tw.linalg.logdet, HERMITIAN, expect=lambda x: np.linalg.slogdet(x)[1]),
    case(tw.linalg.logdet, np.stack([POSITIVE, 2 * POSITIVE]),
         expect=lambda x: np.linalg.slogdet(x)[1]),
    *[case(tw.norm, floats(2, 3), ord=p, axis=1, expect=lambda x, p=p: np.linalg.norm(x, p, 1))
      for p in (0.5, 1, 2, 3.0, np.inf)],
    *[case(tw.norm, floats(2, 3), ord=p, expect=lambda x, p=p: np.linalg.norm(x.ravel(), p))
      for p in (1, 2, 2.5, np.inf)],
    case(tw.norm, floats(2, 3), expect=np.linalg.norm),
    case(tw.norm, floats(2, 3), keepdims=True,
         expect=lambda x: np.linalg.norm(x, keepdims=True)),
    case(tw.norm, floats(2, 3, 2), axis=-2, keepdims=True,
         expect=lambda x: np.linalg.norm(x, axis=1, keepdims=True)),
    case(tw.norm, complexes(2, 3), axis=1, expect=lambda x: np.linalg.norm(x, axis=1) + 0j),
    case(tw.norm, complexes(2, 3), ord=1, axis=1,
         expect=lambda x: np.linalg.norm(x, 1, axis=1)),
    *[case(tw.norm, floats(2, 3), ord=p, axis=(0, 1),
           expect=lambda x, p=p: np.linalg.norm(x, p))
      for p in ("fro", 1, 2, np.inf, "nuc")],
    *[case(tw.norm, floats(2, 3, 2), ord=p, axis=[-1, 0], keepdims=keep, order=1,
           expect=lambda x, p=p, k=keep: np.linalg.norm(x, p, (-1, 0), k))
      for p in ("fro", 1, 2, np.inf, "nuc") for keep in (False, True)],
    *[case(tw.norm, complexes(3, 2), ord=p, axis=(0, 1), order=2,
           expect=lambda x, p=p: np.linalg.norm(x, p)) for p in (1, 2, np.inf, "nuc")],
    case(tw.norm, floats(2, 3), axis=(0, 1), expect=np.linalg.norm),
    case(tw.norm, floats(0, 3), axis=1, expect=lambda x: np.zeros(0)),
    case(tw.linalg.normalize, floats(2, 3), axis=1,
         expect=lambda x: [x / np.linalg.norm(x, axis=1, keepdims=True),
                           np.linalg.norm(x, axis=1, keepdims=True)]),
    case(tw.linalg.normalize, complexes(3), ord=1,
         expect=lambda x: [x / abs(x).sum(), abs(x).sum(keepdims=True) + 0j]),
    case(tw.linalg.lstsq, floats(4, 2), floats(4, 2), expect=least),
    case(tw.linalg.lstsq, floats(2, 4), floats(2, 1), expect=least),
    case(tw.linalg.lstsq, floats(4, 2), floats(4, 1), fast=False, expect=least),
    case(tw.linalg.lstsq, floats(4, 2), floats(4, 1), l2_regularizer=0.3,
         expect=lambda a, b: ridge(a, b, 0.3)),
    case(tw.linalg.lstsq, complexes(2, 3), complexes(2, 1), l2_regularizer=0.3, order=2,
         expect=lambda a, b: ridge(a, b, 0.3)),
    case(tw.linalg.lstsq, floats(2, 4, 2), floats(2, 4, 1), order=1,
         expect=lambda a, b: np.stack([least(*pair) for pair in zip(a, b)])),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


# ---------------------------------------------------------------------- determinants


def test_beyond_the_second_derivative_a_singular_matrix_is_refused(device):
    if device == "cupy":
        pytest.skip("a GPU does not look")
    with pytest.raises(ValueError, match="matrix .*invertible"):
        check_gradients(tw.linalg.det, [np.zeros((3, 3))], order=3)


def test_a_determinant_that_overflows_has_a_logarithm():
    x = tw.eye(200) * 1e30
    sign, size = tw.linalg.slogdet(-x)
    assert sign.numpy() == 1.0
    np.testing.assert_allclose(size.numpy(), 200 * 30 * math.log(10), rtol=1e-6)
    assert tw.linalg.slogdet(x).log_abs_determinant.dtype == tw.float32


def test_a_singular_matrix_has_the_logarithm_minus_infinity():
    result = tw.linalg.slogdet(tw.zeros((2, 2)))
    assert result.sign.numpy() == 0 and result.log_abs_determinant.numpy() == -np.inf


@pytest.mark.parametrize("name", ["det", "slogdet", "expm", "logdet"])
def test_what_is_no_square_matrix_of_floating_numbers_is_refused(name):
    op = getattr(tw.linalg, name)
    with pytest.raises(tw.errors.ShapeError, match="input .*square"):
        op(tw.zeros((2, 3)))
    with pytest.raises(tw.errors.ShapeError, match="two axes"):
        op(tw.zeros((3,)))
    with pytest.raises(tw.errors.DTypeError, match="floating"):
        op(tw.zeros((3, 3), tw.int32))


def test_the_exponential_of_a_turn_is_a_rotation():
    angle = 40.0
    turn = tw.constant([[0.0, -angle], [angle, 0.0]], tw.float64)
    c, s = math.cos(angle), math.sin(angle)
    np.testing.assert_allclose(
        tw.linalg.expm(turn).numpy(), [[c, -s], [s, c]], rtol=1e-12
    )


def test_the_exponential_of_nan_is_nan():
    assert np.isnan(tw.linalg.expm([[np.nan, 0.0], [0.0, 1.0]]).numpy()).any()


# ----------------------------------------------------------------------------- norms


def slopes(f, x, order):
    """The ``order``-th derivative of the sum of ``f``, float64."""
    x = tw.constant(np.asarray(x, np.float64))
    tapes = [tw.GradientTape() for _ in range(order)]
    for tape in tapes:
        tape.__enter__()
        tape.watch(x)
    y = f(x)
    for tape in reversed(tapes):
        tape.__exit__(None, None, None)
        y = tape.gradient(y, x, unconnected_gradients="zero")
    return tw.convert_to_tensor(y).numpy()


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("p", ["euclidean", 1, 2, 3.0, np.inf])
def test_a_norm_has_no_slope_at_zero(p, order):
    assert not slopes(lambda x: tw.norm(x, p), [0.0, 0.0], order).any()


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("p", ["fro", 1, 2, np.inf, "nuc"])
def test_a_norm_of_matrices_has_no_slope_at_zero(p, order):
    assert not slopes(lambda x: tw.norm(x, p, (0, 1)), np.zeros((2, 3)), order).any()


@pytest.mark.parametrize("p", ["fro", 2, "nuc"])
def test_a_norm_of_a_matrix_without_full_rank_has_a_slope(p):
    check_gradients(lambda x: tw.norm(tw.einsum("i,j->ij", x, x), p, (0, 1)),
                    [np.array([1.0, 2.0])], order=2)  # fmt: skip


@pytest.mark.parametrize("p, axis", [
    ("nuc", None), ("fro", 0), (-1, None), (0, 0), (3, (0, 1)), ("other", (0, 1)),
])  # fmt: skip
def test_a_norm_of_an_unknown_kind_is_explained(p, axis):
    with pytest.raises(ValueError, match="norm: ord must be"):
        tw.norm(tw.eye(2), ord=p, axis=axis)


@pytest.mark.parametrize("axis", [(0,), (0, 0), (0, -2), (0, 1, 2), (0, 2)])
def test_the_axes_of_a_matrix_are_two(axis):
    with pytest.raises(ValueError, match="norm: axis must be .* a pair"):
        tw.norm(tw.eye(2), axis=axis)


# --------------------------------------------------------------------- least squares


def test_columns_that_depend_on_each_other_need_the_slower_way(device):
    a, b = np.ones((3, 2)), np.array([[1.0], [2.0], [3.0]])
    x = tw.linalg.lstsq(a, b, fast=False)
    np.testing.assert_allclose(x.numpy(), [[1.0], [1.0]])
    x = tw.linalg.lstsq(a, b, l2_regularizer=6.0)
    np.testing.assert_allclose(x.numpy(), [[0.5], [0.5]])


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(
    "matrix", [[[1.0, 1.0], [1.0, 1.0]], [[1.0, 2.0], [3.0, 6.0]], [[1.0] * 3] * 2]
)
def test_least_squares_refuse_a_matrix_that_lacks_full_rank(matrix, traced, device):
    solve = tw.function(tw.linalg.lstsq) if traced else tw.linalg.lstsq
    with pytest.raises(ValueError, match="lstsq: .* lacks full rank.*fast=False"):
        solve(tw.constant(matrix), tw.constant([[1.0], [2.0]]))


def test_the_rank_of_least_squares_does_not_depend_on_the_scale_of_columns():
    a = tw.constant([[1.0, 1e-8], [1.0, 2e-8], [1.0, 4e-8]])
    x = tw.linalg.lstsq(a, a @ tw.constant([[3.0], [5e7]]))
    np.testing.assert_allclose(x.numpy(), [[3.0], [5e7]], rtol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_a_determinant_keeps_nan(dtype):
    singular = np.zeros((3, 2, 2), dtype)
    singular[0, 0, 0] = singular[1, 1, 0] = np.nan
    for det in (tw.linalg.det, tw.function(tw.linalg.det)):
        out = det(tw.constant(singular)).numpy()
        assert np.isnan(out[:2]).all() and out[2] == 0
    sign, size = tw.linalg.slogdet(tw.constant(singular))
    assert np.isnan(sign.numpy()[:2]).all() and np.isnan(size.numpy()[:2]).all()
    assert sign.numpy()[2] == 0 and size.numpy()[2].real == -np.inf


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_a_determinant_of_zero_times_infinity_is_nan(dtype):
    x = np.array([[[np.inf, 0], [0, 0]], [[2, 0], [0, 3]], [[1, 2], [2, 4]]], dtype)
    with np.errstate(all="ignore"):
        det, size = tw.linalg.det(x).numpy(), tw.linalg.slogdet(x)[1].numpy()
    assert np.isnan(det).tolist() == np.isnan(size).tolist() == [True, False, False]
    np.testing.assert_allclose(det[1:], [6, 0])
