"""Operators of tensors: what stands on either side, and what is compared."""

import numpy as np
import pytest

import tapewright as tw

from .values import same

OPERATIONS = {
    "t + 1": (lambda T: T + 1, [2.0, 3.0]),
    "1 + t": (lambda T: 1 + T, [2.0, 3.0]),
    "t - 1.5": (lambda T: T - 1.5, [-0.5, 0.5]),
    "1.5 - t": (lambda T: 1.5 - T, [0.5, -0.5]),
    "t * list": (lambda T: T * [2, 3], [2.0, 6.0]),
    "list * t": (lambda T: [2.0, 3.0] * T, [2.0, 6.0]),
    "tuple - t": (lambda T: (2.0, 3.0) - T, [1.0, 1.0]),
    "list + t": (lambda T: [2.0, 3.0] + T, [3.0, 5.0]),
    "t / 2": (lambda T: T / 2, [0.5, 1.0]),
    "2 / t": (lambda T: 2 / T, [2.0, 1.0]),
    "t ** 2": (lambda T: T**2, [1.0, 4.0]),
    "2 ** t": (lambda T: 2**T, [2.0, 4.0]),
    "t // 2": (lambda T: T // 2, [0.0, 1.0]),
    "5 % t": (lambda T: 5 % T, [0.0, 1.0]),
    "-t": (lambda T: -T, [-1.0, -2.0]),
    "+t": (lambda T: +T, [1.0, 2.0]),
    "abs(t)": (lambda T: abs(-T), [1.0, 2.0]),
    "array + t": (lambda T: np.array([1.0, 2.0], np.float32) + T, [2.0, 4.0]),
    "double array + t": (lambda T: np.array([1.0, 2.0]) + T, [2.0, 4.0]),
    "t - array": (lambda T: T - np.array([1.0, 2.0]), [0.0, 0.0]),
    "int array * t": (lambda T: np.array([1, 2]) * T, [1.0, 4.0]),
    "float32 scalar * t": (lambda T: np.float32(2.0) * T, [2.0, 4.0]),
    "float64 scalar / t": (lambda T: np.float64(2.0) / T, [2.0, 1.0]),
    "t * mask": (lambda T: T * np.array([True, False]), [1.0, 0.0]),
    "t * list mask": (lambda T: T * [True, False], [1.0, 0.0]),
    "t * True": (lambda T: T * True, [1.0, 2.0]),
    "variable + t": (lambda T: tw.Variable([1.0, 1.0]) + T, [2.0, 3.0]),
    "t + variable": (lambda T: T + tw.Variable([1.0, 1.0]), [2.0, 3.0]),
    "array + variable": (lambda T: np.ones(2) + tw.Variable([1.0, 2.0]), [2.0, 3.0]),
    "list @ variable": (
        lambda T: [[1.0, 2.0]] @ tw.Variable([[1.0], [2.0]]),
        [[5.0]],
    ),
    "array @ t": (lambda T: np.array([[1.0, 2.0]]) @ tw.reshape(T, [2, 1]), [[5.0]]),
    "t @ list": (lambda T: tw.reshape(T, [1, 2]) @ [[1.0], [2.0]], [[5.0]]),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operators_take_numbers_lists_and_arrays_on_both_sides(name):
    operation, expected = OPERATIONS[name]
    assert same(operation(tw.constant([1.0, 2.0])), expected, "float32")


@pytest.mark.parametrize(
    ("operation", "expected", "dtype"),
    [
        (lambda i: i + 1, [-6, 8], "int32"),
        (lambda i: i / 2, [-3.5, 3.5], "float64"),
        (lambda i: i // 2, [-4, 3], "int32"),
        (lambda i: i % 3, [2, 1], "int32"),
        (lambda i: 2 * i, [-14, 14], "int32"),
        (lambda i: i**2, [49, 49], "int32"),
        (lambda i: i & 3, [1, 3], "int32"),
        (lambda i: i | 8, [-7, 15], "int32"),
        (lambda i: 1 ^ i, [-8, 6], "int32"),
        (lambda i: ~i, [6, -8], "int32"),
        (lambda i: i > 0, [False, True], "bool"),
        (lambda i: ~(i > 0), [True, False], "bool"),
        (lambda i: (i > 0) & True, [False, True], "bool"),
        (lambda i: (i > 0) ^ (i < 0), [True, True], "bool"),
    ],
)
def test_integers_and_booleans_have_theirs(operation, expected, dtype):
    assert same(operation(tw.constant([-7, 7])), expected, dtype)


@pytest.mark.parametrize(
    "dtype", ["int8", "int64", "uint8", "float16", "float64", "complex64"]
)
def test_a_python_number_takes_the_dtype_of_the_tensor(dtype):
    t = tw.constant([1, 2], dtype=dtype)
    for result in (t + 1, 1 + t, t * 2, [1, 1] + t):
        assert result.dtype == dtype


@pytest.mark.parametrize(
    "operation",
    [
        lambda: tw.constant(1) + 1.5,
        lambda: tw.constant(1.0) * 1j,
        lambda: tw.constant(1.0) + tw.constant(1),
        lambda: tw.constant(1.0) + tw.constant(1.0, dtype="float64"),
        lambda: tw.constant(1.0) + "a",
        lambda: tw.constant([1], dtype="uint8") + 300,
        lambda: tw.constant(1.0) + None,
        lambda: tw.constant(1.0) + object(),
    ],
)
def test_operands_that_do_not_fit_are_a_type_error(operation):
    with pytest.raises(TypeError):
        operation()


def test_comparisons_are_entry_by_entry():
    t = tw.constant([1.0, 2.0, 3.0])
    assert same(t < 2, [True, False, False], "bool")
    assert same(2 <= t, [False, True, True])
    assert same(t >= [1, 3, 3], [True, False, True])
    assert same(t == tw.constant([1.0, 0.0, 3.0]), [True, False, True])
    assert same(t != 2, [True, False, True])
    assert same(np.array([1.0, 5.0, 3.0]) == t, [True, False, True])
    assert same(np.float32(2.0) < t, [False, False, True])


@pytest.mark.parametrize("make", [tw.constant, tw.Variable, np.float32, list])
def test_tensors_that_do_not_broadcast_are_unequal_as_a_whole(make):
    t, other = tw.constant([1.0, 2.0]), make([1.0, 2.0, 3.0])
    assert same(t == other, False, "bool") and same(other == t, False, "bool")
    assert same(t != other, True, "bool") and same(other != t, True, "bool")


def test_only_the_operators_compare_what_does_not_broadcast():
    t, other = tw.constant([1.0, 2.0]), tw.constant([1.0, 2.0, 3.0])
    for compare in (tw.equal, tw.not_equal, lambda x, y: x < y):
        with pytest.raises(tw.errors.ShapeError, match="do not broadcast together"):
            compare(t, other)


def test_dtypes_are_compared_before_shapes():
    with pytest.raises(tw.errors.DTypeError):
        tw.constant([1.0, 2.0]) == tw.constant([1, 2, 3])  # noqa: B015


def test_a_tensor_is_never_none():
    t = tw.constant([1.0, 2.0])
    assert (t == None) is False and (t != None) is True  # noqa: E711
    assert (None == t) is False  # noqa: E711
    assert tw.constant(1.0) in [tw.constant(2.0), tw.constant(1.0)]


def test_augmented_assignment_makes_a_new_tensor():
    t = old = tw.constant([1.0])
    t += 1.0
    t *= 3.0
    assert t is not old and same(t, [6.0]) and same(old, [1.0])


@pytest.mark.parametrize("constant", [0.0, -0.0, 1, 1.0, -1.0, float("inf"), 1e-30])
def test_the_same_constant_beside_tensors_of_many_kinds(constant):
    for dtype in ("float32", "float64", "float16", "float32"):
        t = tw.constant([2.0], dtype=dtype)
        with np.errstate(all="ignore"):
            expected = np.array([2.0], dtype) * np.array(constant, dtype)
            power = np.copysign(np.array(1.0, dtype), np.array(constant, dtype))
        assert same(t * constant, expected, dtype)
        assert np.copysign(1.0, (t * constant).numpy()) == power


def test_nan_beside_a_tensor_is_nan():
    assert np.isnan((tw.constant(1.0) + float("nan")).numpy())
