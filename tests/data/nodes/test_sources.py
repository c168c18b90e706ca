"""Data sets of slices, lists and generators."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.data import (
    Dataset,
)

from ..elements_of import X, Y, values


def test_slices_keep_structure_and_dtype():
    ds = Dataset.from_tensor_slices((X, {"a": Y}))
    first = next(iter(ds))
    assert first[0].dtype == tw.float64 and first[1]["a"].dtype == tw.int64
    assert values(ds.take(2)) == [([0.0, 1.0], {"a": 0}), ([2.0, 3.0], {"a": 1})]


def test_a_list_is_one_tensor():
    assert values(Dataset.from_tensor_slices([[1, 2], [3, 4]])) == [[1, 2], [3, 4]]


def test_the_data_set_keeps_its_own_copy():
    x = np.zeros(3)
    ds = Dataset.from_tensor_slices(x)
    x[:] = 1
    assert values(ds) == [0.0, 0.0, 0.0]


def test_a_tuple_is_one_tensor_where_the_signature_says_so():
    """As in TensorFlow: tuples are structure only where the signature has them."""
    vector = tw.TensorSpec([None], "int64")
    ds = Dataset.from_generator(lambda: iter([(7,), (8, 9)]), output_signature=vector)
    assert values(ds) == [[7], [8, 9]]
    rows = iter([(("a", "b"), [(1.0, 2.0)])])
    ds = Dataset.from_generator(
        lambda: rows, output_types=("string", "float32"), output_shapes=((2,), (1, 2))
    )
    ((text, numbers),) = ds.as_numpy_iterator()
    assert text.tolist() == [b"a", b"b"] and numbers.tolist() == [[1.0, 2.0]]


def test_generated_elements_are_held_against_the_signature():
    spec = tw.TensorSpec([2], "float32")
    ds = Dataset.from_generator(lambda: iter([np.zeros(3)]), output_signature=spec)
    with pytest.raises(TypeError, match=r"shape \(3,\).*output_signature.*\(2,\)"):
        list(ds)
    ds = Dataset.from_generator(lambda: iter([[1, 2]]), output_signature=(spec,) * 2)
    with pytest.raises(TypeError, match="yielded list, which does not fit"):
        list(ds)
    ds = Dataset.from_generator(lambda: iter([(1, 2)]), output_signature=(spec,) * 2)
    with pytest.raises(TypeError, match="output_signature"):
        list(ds)


def test_a_list_of_arrays_keeps_their_dtype():
    rows = [np.array([1, 2]), np.array([3, 4])]
    assert Dataset.from_tensor_slices(rows).element_spec.dtype == "int64"
    assert Dataset.from_tensors(rows).element_spec.dtype == "int64"
    assert Dataset.from_tensor_slices([np.int64(1)]).element_spec.dtype == "int32"
