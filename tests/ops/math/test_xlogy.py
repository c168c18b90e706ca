"""xlogy, xlog1py, xdivy: the op table, and zeros beside poles."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.test import case, check_op, complexes, floats

POSITIVE = {"low": 0.4, "high": 2.2}

CASES = [
    *[case(op, floats(2, 3), floats(2, 3, **POSITIVE), expect=f)
      for op, f in [("xlogy", lambda x, y: x * np.log(y)),
                    ("xlog1py", lambda x, y: x * np.log1p(y)), ("xdivy", np.divide)]],
    *[case(op, floats(2, 1), floats(3, **POSITIVE), expect=f)
      for op, f in [("xlogy", lambda x, y: x * np.log(y)),
                    ("xlog1py", lambda x, y: x * np.log1p(y)), ("xdivy", np.divide)]],
    *[case(op, complexes(3), complexes(3, **POSITIVE), expect=f)
      for op, f in [("xlogy", lambda x, y: x * np.log(y)),
                    ("xlog1py", lambda x, y: x * np.log(1 + y)), ("xdivy", np.divide)]],
    *[case(op, np.array([0.0, 2.0]), np.array([1.5, 0.5]), expect=f, label="x = 0")
      for op, f in [("xlogy", lambda x, y: x * np.log(y)),
                    ("xlog1py", lambda x, y: x * np.log1p(y)), ("xdivy", np.divide)]],
]  # fmt: skip


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


# f, and a point where it or its derivative is infinite, or it is not defined
MASKED = [
    (lambda x: tw.math.xlogy(x, x), 0.0), (lambda x: tw.math.xlogy(1.0 + x, x), 0.0),
    (lambda x: tw.math.xlogy(x, x), -1.0), (lambda x: tw.math.xdivy(1.0 + x, x), 0.0),
    (lambda x: tw.math.xdivy(x, x), 0.0), (lambda x: tw.math.xlog1py(x, x), -1.0),
]  # fmt: skip


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("f, x", MASKED)
def test_a_masked_point_has_no_slope_instead_of_nan(slopes, f, x, order):
    masked = slopes(
        lambda x: tw.where([False], f(x), tw.zeros_like(x)), [x], order=order
    )
    assert masked == [0.0]


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize(
    "f", [tw.math.xlogy, tw.math.xdivy, lambda x, y: tw.math.xlog1py(x, y - 1.0)]
)
def test_a_zero_factor_beside_a_pole_has_no_slope(slopes, f, order):
    assert slopes(f, [0.0], [0.0], order=order) == [0.0]
    assert slopes(lambda y, x: f(x, y), [0.0], [0.0], order=order) == [0.0]


def test_a_zero_factor_elsewhere_has_the_slope_that_it_has(slopes):
    # TensorFlow gives 0
    assert slopes(tw.math.xlogy, [0.0], [2.0]) == [np.log(2.0)]
    assert slopes(tw.math.xlog1py, [0.0], [1.0]) == [np.log1p(1.0)]
    assert slopes(tw.math.xdivy, [0.0], [2.0]) == [0.5]


@pytest.mark.parametrize("f", [tw.math.xlogy, tw.math.xlog1py, tw.math.xdivy])
def test_a_zero_factor_makes_zero_of_anything(f):
    y = np.array([0.0, -1.0, -2.0, np.inf, np.nan])
    assert f(np.zeros(5), y).numpy().tolist() == [0.0] * 5


def test_the_entropy_of_a_sure_thing_is_flat(slopes):
    assert slopes(lambda p: tw.math.xlogy(p, p), [0.0, 1.0]) == [0.0, 1.0]


@pytest.mark.parametrize("name", ["xlogy", "xlog1py", "xdivy"])
def test_integers_are_refused(name):
    with pytest.raises(TypeError, match=f"{name}: x and y must be floating or complex"):
        getattr(tw.math, name)([1], [2])
