"""Specs of elements."""

import numpy as np

import tapewright as tw
from tapewright.data import (
    Dataset,
)

from .elements_of import X, Y, values

# --- what is known


def test_specs_leave_open_what_varies():
    ds = Dataset.from_tensor_slices((X, Y))
    open_specs = (tw.TensorSpec([None, 2], "float64"), tw.TensorSpec([None], "int64"))
    assert ds.batch(5).element_spec == open_specs
    assert ds.batch(5, drop_remainder=True).element_spec[0].shape == (5, 2)
    assert ds.batch(5).map(lambda x, y: (x * 2, y)).element_spec == open_specs
    assert ds.enumerate().element_spec[0] == tw.TensorSpec((), "int64")


def test_the_spec_of_a_function_in_numpy_is_seen_from_an_element():
    calls = []
    ds = Dataset.range(3).map(lambda x: calls.append(1) or np.float32(x.numpy()))
    assert ds.element_spec == tw.TensorSpec((), "float32")
    assert values(ds) == [0, 1, 2]
