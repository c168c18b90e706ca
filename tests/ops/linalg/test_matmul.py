"""Products of matrices and vectors: the op table, and operands that do not fit."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.ops.linalg.matmul import matmul_p
from tapewright.test import (
    case,
    check_op,
    complexes,
    floats,
    integers,
)


def product(a, b, transpose_a=False, transpose_b=False):
    a = np.swapaxes(a, -1, -2) if transpose_a else a
    b = np.swapaxes(b, -1, -2) if transpose_b else b
    return a @ b


FLIPS = [{}, {"transpose_a": True}, {"transpose_b": True},
         {"transpose_a": True, "transpose_b": True}]  # fmt: skip


def operands(lead_a, lead_b, flips, kind=floats):
    a = (3, 2) if "transpose_a" in flips else (2, 3)
    b = (4, 3) if "transpose_b" in flips else (3, 4)
    return kind(*lead_a, *a), kind(*lead_b, *b)


CASES = [
    *[case("matmul", *operands(la, lb, flips), **flips,
           expect=lambda a, b, f=flips: product(a, b, **f))
      for flips in FLIPS
      for la, lb in [((), ()), ((2,), (2,)), ((2,), ()), ((), (2,)), ((2, 1), (2,))]],
    case("matmul", complexes(2, 2), complexes(2, 2), transpose_b=True,
         expect=lambda a, b: a @ b.T),
    case("matmul", floats(3, 3), floats(3, 3), expect=np.matmul),
    case("matmul", floats(2, 2, 2), floats(2, 2, 2), transpose_a=True, label="square",
         expect=lambda a, b: product(a, b, True)),
    case("matmul", floats(2, 0), floats(0, 3), expect=np.matmul),
    case("matmul", floats(0, 2), floats(2, 3), expect=np.matmul),
    case("matmul", floats(0, 2, 2), floats(2, 3), expect=np.matmul),
    case("matmul", integers(2, 3), integers(3, 2), label="integers", expect=np.matmul),
    case("affine", floats(2, 3), floats(3, 4), floats(4), expect=lambda x, k, b: x @ k + b),
    case("affine", floats(2, 2, 3), floats(3, 2), floats(2), expect=lambda x, k, b: x @ k + b),
    case("cross", floats(3), floats(3), expect=np.cross),
    case("cross", floats(2, 3), floats(2, 3), expect=np.cross),
    case("cross", floats(2, 3), floats(3), expect=np.cross),
    case("cross", floats(3), floats(2, 2, 3), expect=np.cross),
    case("cross", complexes(2, 3), complexes(2, 3), expect=np.cross),
    case("cross", integers(2, 3), integers(2, 3), label="integers", expect=np.cross),
    case("cross", floats(0, 3), floats(0, 3), expect=np.cross),
    case("triangle", floats(3, 3), expect=np.tril),
    case("triangle", floats(2, 2, 3), lower=False, expect=np.triu),
    case("triangle", complexes(3, 3), half=True,
         expect=lambda x: np.tril(x) - np.diag(np.diag(x)) / 2),
    # composed of these
    case(tw.matmul, complexes(2, 3), complexes(2, 3), adjoint_b=True,
         expect=lambda a, b: a @ b.conj().T),
    case(tw.matmul, complexes(2, 3), complexes(2, 3), adjoint_a=True,
         expect=lambda a, b: a.conj().T @ b),
    case(tw.linalg.matvec, floats(2, 3), floats(3), expect=np.matmul),
    case(tw.linalg.matvec, floats(2, 3, 2), floats(2, 3), transpose_a=True,
         expect=lambda a, b: np.einsum("bij,bi->bj", a, b)),
    case(tw.linalg.matvec, complexes(3, 2), complexes(3), adjoint_a=True,
         expect=lambda a, b: a.conj().T @ b),
    case(tw.linalg.matvec, floats(2, 3), floats(2, 3), label="one matrix",
         expect=lambda a, b: b @ a.T),
    case(tw.linalg.adjoint, complexes(2, 3), expect=lambda x: x.conj().T),
    case(tw.linalg.matrix_transpose, floats(2, 3, 4), expect=lambda x: x.swapaxes(1, 2)),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


def test_inner_dimensions_that_disagree_are_named():
    with pytest.raises(tw.errors.ShapeError, match="matmul: .*4 and 5"):
        tw.matmul(tw.zeros((3, 4)), tw.zeros((5, 6)))


def test_a_vector_is_no_matrix():
    with pytest.raises(tw.errors.ShapeError, match="two axes"):
        tw.matmul(tw.zeros((3,)), tw.zeros((3, 2)))


def test_a_number_is_no_vector():
    with pytest.raises(tw.errors.ShapeError, match="b .*axis"):
        tw.linalg.matvec(tw.zeros((3, 3)), 2.0)


def test_operands_of_two_dtypes_are_named():
    with pytest.raises(tw.errors.DTypeError, match="dtypes .*float32.*float64"):
        tw.matmul(tw.zeros((2, 2)), tw.zeros((2, 2), tw.float64))


def test_transposed_and_adjoint_at_once_is_refused():
    with pytest.raises(ValueError, match="must not be both"):
        tw.matmul(tw.eye(2), tw.eye(2), transpose_a=True, adjoint_a=True)


def test_a_product_is_computed_in_the_dtype_asked_for():
    x = tw.constant([[100, 100]], tw.int8)
    product = tw.matmul(x, x, transpose_b=True, output_type=tw.int32)
    assert product.dtype == tw.int32 and product.numpy().tolist() == [[20000]]


@pytest.mark.parametrize("a, b", [((2,), (2,)), ((3,), (2,)), ((), (3,))])
def test_only_vectors_in_space_have_a_cross_product(a, b):
    with pytest.raises(tw.errors.ShapeError, match="must have size 3"):
        tw.linalg.cross(tw.zeros(a), tw.zeros(b))


def test_vectors_that_do_not_broadcast_have_no_cross_product():
    with pytest.raises(tw.errors.ShapeError, match="do not broadcast"):
        tw.linalg.cross(tw.zeros((2, 3)), tw.zeros((4, 3)))


def answer(axes, **flips):
    rule = matmul_p.primitive.diagonal_rule
    a, b = (tw.zeros((5, 3, 3)),) * 2
    return rule(axes, a, b, **({"transpose_a": False, "transpose_b": False} | flips))


def test_a_product_keeps_rows_of_the_first_and_columns_of_the_second():
    assert answer((-2, None)) == -2
    assert answer((-1, None), transpose_a=True) == -2
    assert answer((None, -1)) == -1
    assert answer((None, -2), transpose_b=True) == -1
    assert answer((-3, -3)) == -3


def test_a_product_over_the_diagonal_axis_ends_it():
    assert answer((-1, None)) is None
    assert answer((None, -2)) is None
    assert answer((-2, -1)) is None


@pytest.mark.parametrize("wrap", [lambda f: f, tw.function], ids=["eager", "traced"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_a_product_with_a_lone_zero_keeps_nan_and_infinity(wrap, dtype):
    column = tw.constant(np.array([[np.nan], [2.0], [np.inf]], dtype))
    zero, row = tw.constant(np.zeros((1, 1), dtype)), tw.transpose(column)
    with np.errstate(all="ignore"):
        products = [
            wrap(tw.matmul)(column, zero),
            wrap(tw.matmul)(zero, row),
            wrap(lambda a, b: tw.matmul(a, b, transpose_a=True))(row, zero),
            wrap(lambda a, b: tw.einsum("ab,b->a", a, b))(column, zero[0]),
            wrap(tw.linalg.matvec)(column, zero[0]),
            wrap(lambda a, b: tw.tensordot(a, b, 1))(column, zero),
        ]
    for product in products:
        lost = ~np.isnan(np.asarray(product).reshape(-1))
        np.testing.assert_array_equal(lost, [False, True, False])


@pytest.mark.parametrize("a, b", [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2))])
def test_a_product_of_vectors_is_refused_with_the_op_that_takes_them(a, b):
    a, b = tw.ones(a), tw.ones(b)
    with pytest.raises(tw.errors.ShapeError, match=r"tw\.tensordot\(a, b, 1\)"):
        a @ b
    assert tw.tensordot(a, b, 1).numpy().max() == 3.0
