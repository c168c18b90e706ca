"""`tw.test.check_gradients` and `compute_gradient`: wrong derivatives are found."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.test import check_gradients, compute_gradient


@tw.custom_gradient
def wrong_at_one_entry(x):
    y = tw.square(x)
    return y, lambda g: g * 2.0 * x + tw.constant([0.0, 0.5, 0.0], tw.float64)


@tw.custom_gradient
def right_once_only(x):
    return tw.square(x) * x, lambda g: g * 3.0 * tw.stop_gradient(tw.square(x))


POINT = np.array([1.0, 2.0, 3.0])


def test_right_derivatives_pass():
    check_gradients(lambda x, y: tw.exp(x) * y, [POINT, POINT + 1])


def test_the_worst_entry_is_named():
    with pytest.raises(AssertionError, match=r"order 1 .*argument 0\[1\]"):
        check_gradients(wrong_at_one_entry, [POINT])


def test_a_rule_that_is_wrong_in_the_second_order_only_is_found():
    check_gradients(right_once_only, [POINT], order=1)
    with pytest.raises(AssertionError, match="order 2"):
        check_gradients(right_once_only, [POINT])


def test_a_missing_gradient_is_found():
    with pytest.raises(AssertionError, match=r"\(None\)"):
        check_gradients(tw.stop_gradient, [POINT])


def test_a_nan_is_found():
    with pytest.raises(AssertionError, match="nan"):
        check_gradients(lambda x: tw.sqrt(x - x + 0.0 * x), [POINT], order=1)


def test_variables_are_varied_and_put_back():
    v = tw.Variable(POINT)
    check_gradients(lambda x, v: x * tw.sin(v), [POINT, v])
    assert v.numpy().tolist() == POINT.tolist()


def test_integers_are_not_varied():
    check_gradients(lambda x, i: tw.gather(x, i) ** 2.0, [POINT, [0, 2]])


def test_complex_derivatives_follow_tensorflows_convention():
    check_gradients(lambda z: tw.cast(tw.abs(z), z.dtype) * z, [POINT + 1j])


def test_single_precision_is_checked_as_well_as_it_goes():
    check_gradients(lambda x: tw.sin(x), [tw.constant([1.0, 2.0])])


def test_compute_gradient_is_tensorflows():
    theoretical, numerical = compute_gradient(
        lambda x, y: x * y, [POINT, np.array([2.0])]
    )
    np.testing.assert_allclose(theoretical[0], np.diag([2.0, 2.0, 2.0]))
    np.testing.assert_allclose(theoretical[1], POINT[:, None])
    for a, b in zip(theoretical, numerical, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_compute_gradient_counts_a_complex_number_as_two_reals():
    # z^2 = (x^2 - y^2) + 2ixy at 1 + 2i: rows are its parts, columns x and y
    theoretical, numerical = compute_gradient(tw.square, [np.array(1 + 2j)])
    np.testing.assert_allclose(theoretical[0], [[2.0, -4.0], [4.0, 2.0]])
    np.testing.assert_allclose(numerical[0], theoretical[0], rtol=1e-9)


@pytest.mark.parametrize("x, kind, message", [
    (1.0, ValueError, "x .*got float"), ([1], TypeError, r"x\[0\].*got int32"),
])  # fmt: skip
def test_compute_gradient_explains_what_it_needs(x, kind, message):
    with pytest.raises(kind, match=message):
        compute_gradient(tw.identity, x)
