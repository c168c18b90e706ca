"""Products, contractions, linear systems: the op table, and operands that do not fit."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.errors import DTypeError, ShapeError
from tapewright.ops.linalg import matmul_primitive
from tapewright.testing import case, check_op, complexes, floats, integers

REGULAR = np.array([[2.0, 0.3, -0.5], [0.4, 1.7, 0.2], [-0.1, 0.6, 2.4]])
TWO = np.stack([REGULAR, REGULAR.T + 0.1])
COMPLEX = REGULAR + 0.4j * REGULAR[::-1]


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


def equation(text, *inputs, **options):
    return case(
        "einsum",
        *inputs,
        equation=text,
        expect=lambda *v: np.einsum(text, *v),
        **options,
    )


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
    case("matmul", integers(2, 3), integers(3, 2), expect=np.matmul),
    case("affine", floats(2, 3), floats(3, 4), floats(4), expect=lambda x, k, b: x @ k + b),
    case("affine", floats(2, 2, 3), floats(3, 2), floats(2), expect=lambda x, k, b: x @ k + b),
    equation("ij,jk->ik", floats(2, 3), floats(3, 2)),
    equation("ij->ji", floats(2, 3)),
    equation("ij->", floats(2, 3)),
    equation("ii->i", floats(3, 3)),
    equation("ii->", floats(3, 3)),
    equation("iji->j", floats(2, 3, 2)),
    equation("ij,ij->", floats(2, 3), floats(2, 3)),
    equation("i,j->ij", floats(2), floats(3)),
    equation("bij,bjk->bik", floats(2, 2, 3), floats(2, 3, 2)),
    equation("ij,jk,kl->il", floats(2, 3), floats(3, 2), floats(2, 2)),
    equation("ij,k->i", floats(2, 3), floats(2)),
    equation("i,i->i", complexes(3), complexes(3)),
    equation("ii,ij->j", floats(2, 2), floats(2, 3)),
    case("solve", REGULAR, floats(3, 2), expect=np.linalg.solve),
    case("solve", TWO, floats(2, 3, 1), expect=np.linalg.solve),
    case("solve", REGULAR, floats(2, 3, 2), expect=np.linalg.solve),
    case("solve", TWO, floats(3, 1), expect=np.linalg.solve),
    case("solve", COMPLEX, complexes(3, 2), expect=np.linalg.solve),
    case("inv", REGULAR, expect=np.linalg.inv),
    case("inv", TWO, expect=np.linalg.inv),
    case("inv", COMPLEX, expect=np.linalg.inv),
    # composed of these
    case(tw.matmul, complexes(2, 3), complexes(2, 3), adjoint_b=True,
         expect=lambda a, b: a @ b.conj().T),
    case(tw.linalg.matvec, floats(2, 3), floats(3), expect=np.matmul),
    case(tw.linalg.matvec, floats(2, 3, 2), floats(2, 3), transpose_a=True,
         expect=lambda a, b: np.einsum("bij,bi->bj", a, b)),
    case(tw.linalg.trace, floats(2, 3, 3), expect=lambda x: x.trace(axis1=1, axis2=2)),
    case(tw.linalg.adjoint, complexes(2, 3), expect=lambda x: x.conj().T),
    case(tw.linalg.matrix_transpose, floats(2, 3, 4), expect=lambda x: x.swapaxes(1, 2)),
    case(tw.linalg.solve, COMPLEX, complexes(3, 1), adjoint=True,
         expect=lambda a, b: np.linalg.solve(a.conj().T, b)),
    case(tw.linalg.inv, COMPLEX, adjoint=True, expect=lambda a: np.linalg.inv(a.conj().T)),
    case(tw.tensordot, floats(2, 3, 2), floats(3, 2, 2), axes=2, label="two",
         expect=lambda a, b: np.tensordot(a, b, 2)),
    case(tw.tensordot, floats(2, 3), floats(4, 2), axes=[[0], [1]],
         expect=lambda a, b: np.tensordot(a, b, [[0], [1]])),
    case(tw.tensordot, floats(2), floats(3), axes=0, expect=np.multiply.outer),
    case(lambda a, b: tw.einsum("...ij,jk->...ik", a, b), floats(2, 2, 3), floats(3, 2),
         expect=np.matmul, label="...ij,jk->...ik"),
    case(lambda a, b: tw.einsum("...i,...i", a, b), floats(1, 3), floats(2, 3),
         expect=lambda a, b: (a * b).sum(-1), label="...i,...i"),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


def test_inner_dimensions_that_disagree_are_named():
    with pytest.raises(ShapeError, match="inner dimensions must agree: 4 and 5"):
        tw.matmul(tw.zeros((3, 4)), tw.zeros((5, 6)))


def test_a_vector_is_no_matrix():
    with pytest.raises(ShapeError, match="two axes"):
        tw.matmul(tw.zeros((3,)), tw.zeros((3, 2)))


def test_operands_of_two_dtypes_are_named():
    with pytest.raises(DTypeError, match="float32 and float64"):
        tw.matmul(tw.zeros((2, 2)), tw.zeros((2, 2), tw.float64))


def test_transposed_and_adjoint_at_once_is_refused():
    with pytest.raises(ValueError, match="either"):
        tw.matmul(tw.eye(2), tw.eye(2), transpose_a=True, adjoint_a=True)


def test_a_singular_matrix_is_a_value_error():
    with pytest.raises(ValueError, match="[Ss]ingular"):
        tw.linalg.inv(tw.zeros((2, 2)))


@pytest.mark.parametrize("text, message", [
    ("ij,jk->ik", "2 operands"), ("ij->ik", "no equation"), ("ij->ii", "twice"),
])  # fmt: skip
def test_an_equation_that_says_nothing_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        tw.einsum(text, tw.zeros((2, 2)))


def test_a_label_with_two_sizes_is_named():
    with pytest.raises(ShapeError, match="'i' has sizes 2 and 3"):
        tw.einsum("ii->i", tw.zeros((2, 3)))


def answer(axes, **flips):
    rule = matmul_primitive.primitive.diagonal_rule
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
