"""Specs of elements."""

import numpy as np

import tapewright as tw
from tapewright.core.hardware import devices
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


# --- where they are


def test_elements_come_to_the_current_device_when_they_leave_the_iterator(strict):
    places = []

    def mapped(x):
        places.append(x.device)
        return x, x + 1

    ds = Dataset.from_tensor_slices(X).map(mapped).batch(2)
    with devices.use_module(strict):
        for element in (next(iter(ds)), iter(ds).get_next()):
            assert {x.device for x in element} == {"/GPU:0"}
        traced = tw.function(lambda iterator: next(iterator))(iter(ds))
        assert {x.device for x in traced} == {"/GPU:0"}
        state = ds.reduce(np.float64(0), lambda total, xy: total + tw.reduce_sum(xy[0]))
    np.testing.assert_allclose(state.numpy(), X.sum())
    assert set(places) == {"/CPU:0"}


def test_text_and_numpys_arrays_stay_on_the_host(strict):
    with devices.use_module(strict):
        (text,) = Dataset.from_tensors("text")
        (array,) = Dataset.from_tensors([1.0]).as_numpy_iterator()
    assert text.device == "/CPU:0" and type(array) is np.ndarray
