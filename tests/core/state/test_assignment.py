"""Many variables take their values together, or keep those that they have."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.state.assignment import assign_all, unchanged_on_error


def variables():
    return [tw.Variable(1.0, name="a"), tw.Variable([1.0, 2.0], name="b")]


def values_of(variables):
    return [v.numpy().tolist() for v in variables]


def test_each_variable_takes_its_value():
    own = variables()
    assign_all("load", own, [np.float32(3), [4.0, 5.0]])
    assert values_of(own) == [3.0, [4.0, 5.0]]


@pytest.mark.parametrize(
    "values, message",
    [
        ([3.0], "load: needs 2 values.* got 1"),
        ([3.0, [4.0]], r"load: the value of 'b' must have shape \(2,\), got \(1,\)"),
        ([3.0, tw.constant([1, 1])], "'b'.*dtype float32"),
    ],
)
def test_none_changes_where_one_does_not_fit(values, message):
    own = variables()
    with pytest.raises((ValueError, TypeError), match=message):
        assign_all("load", own, values)
    assert values_of(own) == [1.0, [1.0, 2.0]]


def test_a_block_that_fails_leaves_variables_as_they_were():
    own = variables()
    with pytest.raises(KeyboardInterrupt), unchanged_on_error(own):
        own[0].assign(7.0)
        raise KeyboardInterrupt
    assert values_of(own) == [1.0, [1.0, 2.0]]
    with unchanged_on_error(own):
        own[0].assign(7.0)
    assert values_of(own) == [7.0, [1.0, 2.0]]


def test_values_are_cast_on_their_device():
    own = [tw.Variable(np.int32(1)), tw.Variable(np.float32([1, 2]))]
    assign_all("load", own, [tw.constant(3.0), np.float64([4, 5])], cast=True)
    assert own[0].numpy() == 3 and own[0].dtype == "int32"
    assert own[1].numpy().tolist() == [4.0, 5.0] and own[1].dtype == "float32"
