"""Smooth functions: the op table, overflow, infinities."""

import math

import numpy as np
import pytest

import tapewright as tw
from tapewright.ops.math import smooth
from tapewright.test import case, check_op, floats


def sum_of_powers(x, y):
    return np.log2(2**x + 2**y)


def root(x):
    return np.sqrt(x * x + 4)


CASES = [
    *[case(op, floats(*shape), expect=f)
      for shape in [(2, 3), (), (0, 2)]
      for op, f in [
          ("sinc", lambda x: np.sin(np.pi * x) / (np.pi * x)),
          ("log_cosh", lambda x: np.log(np.cosh(x))),
          ("tanh_shrink", lambda x: x - np.tanh(x))]],
    *[case(op, floats(*shape), b=4.0, expect=f)
      for shape in [(2, 3), (), (0, 2)]
      for op, f in [
          ("squareplus", lambda x: (x + root(x)) / 2),
          ("squareplus_slope", lambda x: (1 + x / root(x)) / 2)]],
    case("sinc", floats(4, low=-3.2, high=3.1), derivative=1,
         expect=lambda x: (np.cos(np.pi * x) - np.sinc(x)) / x),
    case("tanh_shrink", floats(4, low=-3.2, high=3.1), expect=lambda x: x - np.tanh(x)),
    *[case(op, floats(*m), floats(*n), expect=f)
      for m, n in [((2, 3), (2, 3)), ((2, 1), (3,)), ((), (0,))]
      for op, f in [
          ("logaddexp", lambda x, y: np.log(np.exp(x) + np.exp(y))),
          ("distance", np.subtract)]],
    case("logaddexp", floats(2, 3), floats(3), log_base=np.log(2.0), expect=sum_of_powers),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_numbers_do_not_overflow(dtype):
    x = np.array([300.0, -300.0], dtype)
    np.testing.assert_allclose(smooth.log_cosh(x), 300 - math.log(2), rtol=1e-6)
    np.testing.assert_allclose(smooth.logaddexp(x, x), x + math.log(2), rtol=1e-6)
    large = np.array([1e30, -1e30], dtype)
    np.testing.assert_allclose(
        smooth.squareplus(large, b=4.0), [1e30, 1e-30], rtol=1e-6
    )
    np.testing.assert_allclose(smooth.squareplus(large, b=0.0), [1e30, 0], rtol=1e-6)


def test_infinities_have_the_values_and_slopes_of_the_limit(slopes):
    inf = math.inf
    x, y = [inf, -inf, inf, -inf, 1.0, inf], [inf, -inf, -inf, 2.0, inf, 1.0]
    assert smooth.logaddexp(x, y).numpy().tolist() == [inf, -inf, inf, 2.0, inf, inf]
    assert slopes(smooth.logaddexp, x, y) == [0.5, 0.0, 1.0, 0.0, 0.0, 1.0]
    assert slopes(smooth.logaddexp, x, y, order=2) == [0.125 * 2, 0, 0, 0, 0, 0]
    ends = [inf, -inf]
    for f in (smooth.sinc, smooth.log_cosh, lambda x: smooth.squareplus(x, b=4.0)):
        assert slopes(f, ends, order=2) == [0.0, 0.0]
    assert slopes(smooth.sinc, ends) == [0.0, 0.0]
    assert slopes(smooth.log_cosh, ends) == [1.0, -1.0]
    assert slopes(smooth.tanh_shrink, ends) == [1.0, 1.0]


def test_an_integer_is_a_zero_of_sinc():
    assert not smooth.sinc(np.array([1.0, -2.0, 7.0, 1e6])).numpy().any()


def test_a_derivative_of_sinc_is_the_same_on_both_sides_of_the_change_of_formula():
    for order in range(6):
        edge = (1 + order / 2) / math.pi
        near, far = smooth.sinc(
            edge + np.array([-1e-9, 1e-9]), derivative=order
        ).numpy()
        assert abs(near - far) < 1e-8 * math.pi ** (order + 2)


def test_numpy_and_native_agree():
    x = np.linspace(-3, 3, 61)

    @tw.function(jit_compile=True)
    def traced(x):
        return smooth.sinc(x), smooth.tanh_shrink(x), smooth.log_cosh(x)

    for got, f in zip(traced(x), [smooth.sinc, smooth.tanh_shrink, smooth.log_cosh]):
        np.testing.assert_allclose(got, f(x), rtol=1e-12, atol=1e-15)
