"""Asking and choosing: the op table of comparisons, logic, bits and selection."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.ops.math import comparison
from tapewright.test import (
    booleans,
    case,
    check_op,
    complexes,
    floats,
    integers,
)

COMPARISONS = [
    ("equal", np.equal),
    ("not_equal", np.not_equal),
    ("less", np.less),
    ("less_equal", np.less_equal),
    ("greater", np.greater),
    ("greater_equal", np.greater_equal),
]
TESTS = [
    ("is_nan", np.isnan),
    ("is_inf", np.isinf),
    ("is_finite", np.isfinite),
]

CASES = [
    *[case(op, floats(2, 3), expect=f) for op, f in TESTS],
    *[case(op, floats(2, 3), floats(2, 3), expect=f) for op, f in COMPARISONS],
    *[case(op, floats(2, 1), floats(3), expect=f) for op, f in COMPARISONS],
    case("is_nan", np.array([0.0, np.nan, np.inf]), expect=np.isnan, order=0, label="nan"),
    case("is_inf", np.array([0.0, np.nan, np.inf]), expect=np.isinf, order=0, label="inf"),
    case("is_finite", np.array([0.0, np.nan, np.inf]), expect=np.isfinite, order=0,
         label="nan and inf"),
    case("masked", floats(2, 3), booleans(2, 3), expect=np.multiply),
    case("masked", floats(3), booleans(2, 1), expect=np.multiply),
    case("masked", complexes(3), booleans(3), expect=np.multiply),
    case("where_positive", floats(2, 3), floats(2, 3), expect=lambda x, y: x * (y > 0)),
    case("where_positive", floats(2, 1), floats(3), expect=lambda x, y: x * (y > 0)),
    case("where", booleans(2, 3), floats(2, 3), floats(2, 3), expect=np.where),
    case("where", booleans(2, 1), floats(3), floats(), expect=np.where),
    case("where", booleans(3), complexes(3), complexes(3), expect=np.where),
    case("where", booleans(3), integers(3), integers(3), expect=np.where),
    case("nonzero", np.array([[True, False], [True, True]]),
         expect=lambda x: np.argwhere(x)),
    *[case(op, booleans(4), booleans(4), expect=f) for op, f in [
        ("logical_and", np.logical_and), ("logical_or", np.logical_or),
        ("logical_xor", np.logical_xor), ("bitwise_and", np.bitwise_and),
        ("bitwise_or", np.bitwise_or), ("bitwise_xor", np.bitwise_xor)]],
    *[case(op, integers(2, 1, high=8), integers(3, high=8), expect=f) for op, f in [
        ("bitwise_and", np.bitwise_and), ("bitwise_or", np.bitwise_or),
        ("bitwise_xor", np.bitwise_xor)]],
    case("logical_not", booleans(4), expect=np.logical_not),
    case("invert", integers(2, 3, low=-4, high=4), expect=np.invert),
    case("left_shift", integers(2, 1, high=8), integers(3, high=4),
         expect=lambda x, y: x * 2**y),
    case("right_shift", integers(2, 1, low=-90, high=90), integers(3, high=4),
         expect=lambda x, y: np.floor(x / 2**y).astype(np.int64)),
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


def test_where_with_one_argument_lists_the_true_places():
    assert tw.where([[True, False], [False, True]]).numpy().tolist() == [[0, 0], [1, 1]]


def test_where_wants_both_values_or_none():
    with pytest.raises(ValueError, match="both"):
        tw.where([True], 1.0)


def test_an_answer_has_no_diagonal_rule():
    assert all(
        comparison.__dict__[name].primitive.diagonal_rule is None
        for name in ("less", "is_nan")
    )


@pytest.mark.parametrize("op", [tw.left_shift, tw.right_shift])
def test_shifts_are_of_integers(op):
    with pytest.raises(TypeError, match="x .*integer"):
        op([1.0], [2.0])
    with pytest.raises(TypeError, match="x .*integer"):
        op([True], [True])
    with pytest.raises(TypeError, match="invert: x must be integer"):
        tw.invert([True])


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "complex64", "int32"]
)
@pytest.mark.parametrize("least", [-2, -np.inf])
def test_what_is_masked_is_a_positive_zero_whatever_stands_beside_it(dtype, least):
    x = np.array([-0.0, 3, -3, least if np.dtype(dtype).kind in "fc" else -2], dtype)
    found = comparison.masked(x, np.array([True, True, False, False])).numpy()
    assert found[:2].tobytes() == x[:2].tobytes()
    assert found[2:].tobytes() == np.zeros(2, dtype).tobytes()


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_where_positive_gives_zeros_without_a_sign(dtype):
    x = np.array([-0.0, np.nan, -np.inf, -1], dtype)
    found = comparison.where_positive(x, np.array([1, -1, np.nan, -0.0], dtype)).numpy()
    assert found.tobytes() == np.array([-0.0, 0, 0, 0], dtype).tobytes()


def test_an_array_of_numbers_is_a_condition():
    for condition in (np.array([1, 0]), np.array([0.5, 0.0]), np.array([True, False])):
        assert tw.where(condition, [1.0, 2.0], [3.0, 4.0]).numpy().tolist() == [
            1.0,
            4.0,
        ]
    with pytest.raises(TypeError, match="boolean"):
        tw.where(tw.constant([1, 0]), [1.0, 2.0], [3.0, 4.0])
