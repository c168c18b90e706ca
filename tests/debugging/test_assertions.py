"""Assertions of `tw.debugging`: what holds is passed on, what does not is shown."""

import numpy as np
import pytest

import tapewright as tw

from ..ways import ways

HOLD = {
    "assert_equal": (([1, 2], [1, 2]), ([1, 2], [1, 3])),
    "assert_none_equal": (([1, 2], [2, 1]), ([1, 2], [3, 2])),
    "assert_greater": (([1, 2], 0), ([1, 2], 1)),
    "assert_greater_equal": (([1, 2], 1), ([1, 2], 2)),
    "assert_less": (([1, 2], 3), ([1, 2], 2)),
    "assert_less_equal": (([1, 2], 2), ([1, 2], 1)),
    "assert_near": (([1.0], [1.0 + 1e-6]), ([1.0], [1.1])),
    "assert_positive": (([1, 2],), ([0, 2],)),
    "assert_non_negative": (([0, 2],), ([-1, 2],)),
    "assert_negative": (([-1],), ([0],)),
    "assert_non_positive": (([0, -1],), ([1],)),
    "assert_all_finite": (([1.0], "m"), ([np.nan], "m")),
}


@ways
@pytest.mark.parametrize("name", HOLD)
def test_assertions_about_values(name, wrap):
    good, bad = HOLD[name]
    assertion = getattr(tw.debugging, name)

    def f(x):
        assertion(x, *rest)
        return x

    *_, rest = good[0], good[1:]
    wrap(f)(tw.constant(good[0]))
    *_, rest = bad[0], bad[1:]
    with pytest.raises(tw.errors.InvalidArgumentError, match=name):
        wrap(f)(tw.constant(bad[0]))


@pytest.mark.parametrize(
    "name, x, y",
    [
        ("assert_equal", [0.1], tw.constant([0.1], "float64")),
        ("assert_equal", tw.constant([0.1], "float64"), [0.1]),
        ("assert_equal", np.array([0.1]), [0.1]),
        ("assert_greater", [2**40], [1]),
    ],
)
def test_lists_take_the_dtype_of_the_tensor_or_of_the_first(name, x, y):
    getattr(tw.debugging, name)(x, y)


@pytest.mark.parametrize(
    "name, arguments, error",
    [
        ("assert_rank", ([1.0], 2), ValueError),
        ("assert_rank_at_least", ([1.0], 2), ValueError),
        ("assert_rank_in", ([1.0], (0, 2)), ValueError),
        ("assert_scalar", ([1.0],), ValueError),
        ("assert_type", ([1.0], "int32"), TypeError),
        ("assert_integer", ([1.0],), TypeError),
        ("assert_all_finite", ([1], "m"), TypeError),
        ("assert_proper_iterable", (1,), TypeError),
        ("assert_same_float_dtype", ([np.float32(1), np.float64(1)],), ValueError),
        ("assert_same_float_dtype", ([np.int32(1)],), ValueError),
        ("assert_shapes", ([([1.0], 1)],), ValueError),
        ("assert_shapes", ([([[1.0]], ("n", 2))],), ValueError),
        ("assert_shapes", ([([1.0], ("n",)), ([1.0, 2.0], ("n",))],), ValueError),
        ("assert_shapes", ([([1.0], ("n", "m"))],), ValueError),
    ],
)
def test_assertions_about_shapes_and_dtypes(name, arguments, error):
    with pytest.raises(error, match=name):
        getattr(tw.debugging, name)(*arguments)


def test_assert_shapes_shows_data():
    x, data = tw.range(2), ["it is", tw.range(9)]
    with pytest.raises(ValueError, match=r"it is\n  \[0 1 \.\.\. 7 8\]"):
        tw.debugging.assert_shapes([(x, [3])], data, summarize=2)
    with pytest.raises(ValueError, match="it is"):
        tw.function(lambda x: tw.debugging.assert_shapes([(x, [3])], ["it is", x]))(x)


def test_assertions_about_shapes_that_hold():
    x = tw.zeros((2, 3))
    tw.debugging.assert_rank(x, 2)
    tw.debugging.assert_rank_at_least(x, 1)
    tw.debugging.assert_rank_in(x, (0, 2))
    tw.debugging.assert_shapes([(x, ("n", "m")), (tw.zeros(3), ("m",)), (x, (..., 3))])
    assert tw.debugging.assert_same_float_dtype([x]) == tw.float32
    assert tw.debugging.is_numeric_tensor(x)


def test_check_numerics_looks_in_each_call():
    f = tw.function(lambda x: tw.debugging.check_numerics(tw.math.log(x), "the loss"))
    assert f(tw.constant(1.0)).numpy() == 0.0
    with pytest.raises(FloatingPointError, match="the loss"):
        f(tw.constant(0.0))
