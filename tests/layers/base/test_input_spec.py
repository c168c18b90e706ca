"""`InputSpec`: ranks, axes and dtypes that a layer takes."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.layers import InputSpec, Layer


@pytest.mark.parametrize(
    "spec, shape, problem",
    [
        (InputSpec(ndim=2), (1, 2, 3), "rank 2"),
        (InputSpec(max_ndim=2), (1, 2, 3), "rank 2 or less"),
        (InputSpec(min_ndim=2), (1,), "rank 2 or more"),
        (InputSpec(axes={1: 4}), (1, 2), "size 4 on axis 1"),
        (InputSpec(axes={1: 4}), (1,), "size 4 on axis 1"),
        (InputSpec(shape=(None, 3)), (2, 4), "size 3 on axis 1"),
        (InputSpec(shape=(None, 3, 1), allow_last_axis_squeeze=True), (2, 4), "3, 1"),
    ],
)
def test_an_input_spec_names_the_problem(spec, shape, problem):
    assert problem in spec.problem(shape)


def test_unknown_dimensions_are_no_problem():
    assert InputSpec(ndim=2, axes={-1: 3}).problem((None, None)) is None


def test_a_last_axis_of_size_1_may_be_left_out():
    spec = InputSpec(shape=(None, 3, 1), allow_last_axis_squeeze=True)
    assert spec.problem((2, 3)) is None and spec.problem((2, 3, 1)) is None


def test_an_input_spec_may_demand_a_dtype():
    class Picky(Layer):
        input_spec = InputSpec(dtype="int32")

        def call(self, inputs):
            return inputs

    assert Picky()(np.array([1], np.int32)).numpy().tolist() == [1]
    assert Picky()(tw.Input((2,), dtype="int32")).shape[1] == 2
    for inputs in (np.array([1.0]), tw.Input((2,))):
        with pytest.raises(ValueError, match="dtype int32.*got float32"):
            Picky()(inputs)
