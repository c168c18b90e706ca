"""Reductions over processes, in a job of one: the op table, and refusals."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.ops.collective import (
    all_reduce,
    all_reduce_extreme,
    all_reduce_sum,
)
from tapewright.test import case, check_op, floats

CASES = [
    case(all_reduce_sum, floats(2, 3), expect=lambda x: x),
    case(all_reduce_extreme, floats(2, 3), reduction="max", expect=lambda x: x),
    case(all_reduce_extreme, floats(2, 3), reduction="min", expect=lambda x: x),
]


@pytest.mark.parametrize("c", CASES, ids=str)
def test_every_rule_agrees_with_its_definition(c):
    check_op(c)


@pytest.mark.parametrize("op", ["sum", "mean", "max", "min"])
def test_in_one_process_a_reduction_returns_its_input(op):
    x = np.array([3.0, -1.0], np.float32)
    assert np.array_equal(all_reduce(x, op), x)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"op": "median"}, "op must be 'sum', 'mean', 'max' or 'min', got 'median'"),
        ({"compression": "int8"}, "compression must be None or 'float16'"),
        ({"op": "max", "compression": "float16"}, "compression must be None"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments, named):
    with pytest.raises(ValueError, match=named):
        all_reduce([1.0], **arguments)


@pytest.mark.parametrize(("op", "x"), [("mean", [1]), ("sum", [True])])
def test_dtypes_without_the_reduction_are_refused(op, x):
    with pytest.raises(tw.errors.DTypeError):
        all_reduce(x, op)
