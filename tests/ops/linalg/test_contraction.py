"""Contractions over named axes: the op table, and equations that do not fit."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.test import (
    case,
    check_op,
    complexes,
    floats,
    integers,
)


def equation(text, *inputs, **options):
    """The primitive, whose equations spell out everything."""
    expect = lambda *v: np.einsum(text, *v)  # noqa: E731
    return case("einsum", *inputs, equation=text, expect=expect, **options)


def written(text, *inputs, **options):
    """What users write: ellipses, no arrow, blanks."""

    def function(*values):
        return tw.einsum(text, *values, **options)

    def expect(*values):
        return np.einsum(text, *values)

    return case(function, *inputs, expect=expect, label=f"{text} {options or ''}")


CASES = [
    equation("ij,jk->ik", floats(2, 3), floats(3, 2)),
    equation("ij,kj->ki", floats(2, 3), floats(4, 3)),
    equation("ij->ji", floats(2, 3)),
    equation("ij->", floats(2, 3)),
    equation("ijk->ki", floats(2, 3, 2)),
    equation("ii->i", floats(3, 3)),
    equation("ii->", floats(3, 3)),
    equation("iji->j", floats(2, 3, 2)),
    equation("iii->i", floats(2, 2, 2)),
    equation("iijj->ij", floats(2, 2, 3, 3), order=2),
    equation("->", floats()),
    equation(",->", floats(), floats()),
    equation(",ij->ji", floats(), floats(2, 3)),
    equation("ij,ij->", floats(2, 3), floats(2, 3)),
    equation("ij,ij->ij", floats(2, 3), floats(2, 3)),
    equation("ij,j->ji", floats(2, 3), floats(3)),
    equation("i,j->ij", floats(2), floats(3)),
    equation("bij,bjk->bik", floats(2, 2, 3), floats(2, 3, 2)),
    equation("bij,bkj->kbi", floats(2, 2, 3), floats(2, 2, 3)),
    equation("bhqd,bkhd->bhqk", floats(2, 2, 2, 2), floats(2, 2, 2, 2), order=2),
    equation("ij,jk,kl->il", floats(2, 3), floats(3, 2), floats(2, 2)),
    equation("i,i,i->i", floats(3), floats(3), floats(3)),
    equation("ai,bj,abk->ijk", floats(2, 2), floats(2, 3), floats(2, 2, 2), order=2),
    equation("ij,jk,kl,li->", floats(2, 2), floats(2, 3), floats(3, 2), floats(2, 2), order=2),
    equation("ij,k->i", floats(2, 3), floats(2)),
    equation("i,i->i", complexes(3), complexes(3)),
    equation("ij,jk->ik", complexes(2, 2), complexes(2, 2)),
    equation("ii,ij->j", floats(2, 2), floats(2, 3)),
    equation("ii,ii->i", floats(2, 2), floats(2, 2)),
    equation("ij,jk->ik", floats(2, 0), floats(0, 3)),
    equation("ij,jk->ik", floats(0, 2), floats(2, 3)),
    equation("bi,bi->b", floats(0, 2), floats(0, 2)),
    equation("ij,jk->ik", integers(2, 3), integers(3, 2), label="ij,jk->ik, integers"),
    equation("ij->", integers(2, 3), label="ij->, integers"),
    case("einsum", floats(2, 3), floats(3, 2), floats(2, 2), equation="ij,jk,kl->il",
         optimize="optimal", expect=lambda a, b, c: a @ b @ c),
    # composed of it
    written("...ij,jk->...ik", floats(2, 2, 3), floats(3, 2)),
    written("...i,...i", floats(1, 3), floats(2, 3)),
    written("...ij,...jk->...ik", floats(2, 1, 2, 3), floats(2, 3, 2)),
    written("i...,i...->...", floats(2, 3), floats(2, 3)),
    written("b...d,d->b...", floats(2, 2, 3), floats(3)),
    written("...ii->...i", floats(2, 3, 3)),
    written("...->...", floats(2, 3)),
    written("ij->...ij", floats(2, 3)),
    written("ba", floats(2, 3)),
    written("i j, j k", floats(2, 3), floats(3, 2)),
    written("ii", floats(3, 3)),
    written("ij,jk,kl->il", floats(2, 3), floats(3, 2), floats(2, 2), optimize="branch-2"),
    case(tw.tensordot, floats(2, 3, 2), floats(3, 2, 2), axes=2, label="two",
         expect=lambda a, b: np.tensordot(a, b, 2)),
    case(tw.tensordot, floats(2, 3), floats(4, 2), axes=[[0], [1]],
         expect=lambda a, b: np.tensordot(a, b, [[0], [1]])),
    case(tw.tensordot, floats(2, 3), floats(2, 3), axes=[[1, 0], [-1, 0]],
         expect=lambda a, b: np.tensordot(a, b, 2)),
    case(tw.tensordot, floats(2, 3), floats(4, 2), axes=(0, 1),
         expect=lambda a, b: np.tensordot(a, b, (0, 1))),
    case(tw.tensordot, floats(2, 3), floats(3, 2), axes=np.array([[1], [0]]), label="array",
         expect=np.matmul),
    case(tw.tensordot, complexes(2, 3), complexes(3, 2), axes=1, expect=np.matmul),
    case(tw.tensordot, floats(2), floats(3), axes=0, expect=np.multiply.outer),
    case(tw.linalg.trace, floats(2, 3, 3), expect=lambda x: x.trace(axis1=1, axis2=2)),
    case(tw.linalg.trace, floats(2, 3), expect=np.trace),
    case(tw.linalg.trace, complexes(3, 3), expect=np.trace),
    case(tw.linalg.trace, integers(3, 3), expect=np.trace),
    case(tw.linalg.trace, floats(0, 3, 3), expect=lambda x: np.zeros(0)),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


@pytest.mark.parametrize("text, message", [
    ("ij,jk->ik", "2 operands"), ("ij->ik", "not a valid equation"), ("ij->ii", "twice"),
    ("i1->i", "not a valid equation"),
])  # fmt: skip
def test_an_equation_that_says_nothing_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        tw.einsum(text, tw.zeros((2, 2)))


def test_a_label_with_two_sizes_is_named():
    with pytest.raises(tw.errors.ShapeError, match="'i'.*sizes 2.*3"):
        tw.einsum("ii->i", tw.zeros((2, 3)))


def test_a_label_of_size_1_does_not_broadcast():
    with pytest.raises(tw.errors.ShapeError, match="'i'.*sizes 1.*3"):
        tw.einsum("i,i->i", tw.zeros(1), tw.zeros(3))


def test_too_few_labels_are_named():
    with pytest.raises(tw.errors.ShapeError, match="'i'.*axes"):
        tw.einsum("i->", tw.zeros((2, 3)))


def test_too_many_labels_beside_an_ellipsis_are_named():
    with pytest.raises(tw.errors.ShapeError, match=r"'\.\.\.ijk'.*more axes"):
        tw.einsum("...ijk->...", tw.zeros((2, 3)))


def test_axes_of_an_ellipsis_cannot_vanish():
    with pytest.raises(tw.errors.ShapeError, match=r"'\.\.\.i->i' must include"):
        tw.einsum("...i->i", tw.zeros((2, 3)))


def test_operands_of_two_dtypes_are_refused():
    with pytest.raises(tw.errors.DTypeError, match="dtypes .*got float32 and float64"):
        tw.einsum("i,i->", tw.zeros(2), tw.zeros(2, tw.float64))


def test_an_unknown_optimizer_is_refused():
    with pytest.raises(ValueError, match="optimize .*'greedy'.*got 'best'"):
        tw.einsum("i,i->", tw.zeros(2), tw.zeros(2), optimize="best")


def test_pairs_of_axes_must_have_the_same_sizes():
    with pytest.raises(tw.errors.ShapeError, match="same sizes"):
        tw.tensordot(tw.zeros((2, 3)), tw.zeros((3, 2)), [[0, 1], [0, 1]])


@pytest.mark.parametrize("axes, message", [
    (3, "axes .*0.*2.*got 3"), ([[0]], r"axes .*got \[\[0\]\]"),
    ([[0], [0, 1]], r"axes .*got \[\[0\], \[0, 1\]\]"),
    ([[2], [0]], r"axes\[0\].*-2.*1.*got 2"), ([[0, 0], [0, 1]], "twice"),
])  # fmt: skip
def test_axes_that_are_not_there_are_named(axes, message):
    with pytest.raises(ValueError, match=message):
        tw.tensordot(tw.zeros((2, 2)), tw.zeros((2, 2)), axes)


def test_a_vector_has_no_trace():
    with pytest.raises(tw.errors.ShapeError, match="two axes"):
        tw.linalg.trace([1.0, 2.0])


def test_an_array_takes_the_dtype_of_a_tensor_behind_it():
    product = tw.einsum("i,i->", np.ones(2), tw.constant([1.0, 2.0]))
    assert product.dtype == tw.float32 and float(product) == 3.0
