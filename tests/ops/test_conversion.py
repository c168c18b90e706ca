"""Dtypes, complex numbers, passing on: the op table, and the gradients of the parts."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.ops import conversion
from tapewright.testing import case, check_op, complexes, floats, integers

CASES = [
    case("identity", floats(2, 3), expect=lambda x: x),
    case("identity", complexes(4), expect=lambda x: x),
    case("stop_gradient", floats(2, 3), expect=lambda x: x),
    case("conj", floats(2, 3), expect=np.conj),
    case("conj", complexes(4), expect=np.conj),
    case("cast", floats(3), dtype="float32", order=0, single=False,
         expect=lambda x: x.astype("float32")),
    case("cast", floats(3), dtype="complex128", single=False, label="to complex",
         expect=lambda x: x + 0j),
    case("cast", complexes(3), dtype="float64", single=False, label="to real",
         expect=np.real),
    case("cast", integers(3), dtype="float64", expect=lambda x: x.astype(float)),
    case("cast", floats(3), dtype="int32", single=False, order=0, label="to int",
         expect=lambda x: x.astype("int32")),
    case("complex", floats(2, 3), floats(2, 3), expect=lambda x, y: x + 1j * y),
    case("complex", floats(2, 1), floats(3), expect=lambda x, y: x + 1j * y),
    case("real", complexes(2, 2), expect=np.real),
    case("imag", complexes(2, 2), expect=np.imag),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


def test_real_and_imaginary_part_of_a_complex_number_get_their_own_gradients():
    x, y = tw.constant(2.0), tw.constant(3.0)
    with tw.GradientTape() as tape:
        tape.watch([x, y])
        z = tw.complex(x, y)
        size = tw.math.real(z * tw.math.conj(z))
    assert [g.numpy() for g in tape.gradient(size, [x, y])] == [4.0, 6.0]


@pytest.mark.parametrize("op", ["_real", "_imag", "stop_gradient"])
def test_a_part_of_a_diagonal_is_diagonal(op):
    rule = getattr(conversion, op).primitive.diagonal_rule
    assert rule((-1,), tw.constant(np.ones((2, 3), np.complex64))) == -1
