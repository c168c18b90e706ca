"""`TensorShape`: shapes as tuples, with unknown dimensions and ranks."""

import copy
import pickle

import numpy as np
import pytest

import tapewright as tw
from tapewright import TensorShape

from ..values import same


def test_a_shape_is_a_tuple():
    shape = tw.zeros([2, 3, 4]).shape
    assert shape == (2, 3, 4) == tuple(shape) and shape == [2, 3, 4]
    assert shape[0] == 2 and shape[-1] == 4 and shape[1:] == TensorShape([3, 4])
    assert isinstance(shape[1:], TensorShape) and len(shape) == 3
    a, b, c = shape
    assert (a, b, c) == (2, 3, 4) and hash(shape) == hash((2, 3, 4))
    assert shape + [5] == (2, 3, 4, 5) and [5] + shape == (5, 2, 3, 4)
    assert isinstance(shape + (5,), TensorShape)
    assert (shape.rank, shape.ndims, shape.dims) == (3, 3, [2, 3, 4])
    assert shape.as_list() == [2, 3, 4] and shape.num_elements() == 24
    assert shape[0] * shape[1] == 6 and shape != (2, 3) and shape != 5


def test_a_scalar_shape_is_true_and_empty():
    shape = tw.constant(1.0).shape
    assert shape == () and bool(shape) and shape.num_elements() == 1


def test_unknown_dimensions_and_ranks():
    part, none = TensorShape([None, 3]), TensorShape(None)
    assert part.num_elements() is None and not part.is_fully_defined()
    assert part.is_compatible_with((5, 3)) and not part.is_compatible_with((5, 4))
    assert not part.is_compatible_with((3,)) and none.is_compatible_with((1, 2))
    assert part.merge_with([2, None]) == (2, 3) and none.merge_with([1]) == [1]
    assert none.rank is None and not none and none[1:] == none and none[0] is None
    assert none + [1] == none and none != TensorShape([]) and none == TensorShape(None)
    assert part == [None, 3]
    with pytest.raises(ValueError, match="incompatible"):
        part.assert_is_compatible_with((5, 4))
    with pytest.raises(ValueError, match="unknown"):
        none.as_list()


def test_dimensions_are_whole_and_not_negative():
    assert TensorShape([np.int64(2), tw.constant(3)]) == (2, 3)
    assert TensorShape(3) == (3,)
    with pytest.raises(ValueError, match="-1"):
        TensorShape([-1])
    for wrong in ([1.5], ["a"]):
        with pytest.raises((TypeError, AttributeError)):
            TensorShape(wrong)


def test_shapes_can_be_pickled_and_copied():
    for shape in (TensorShape([1, None]), TensorShape(None), TensorShape([])):
        for twin in (pickle.loads(pickle.dumps(shape)), copy.deepcopy(shape)):
            assert twin == shape and twin.rank == shape.rank


def test_a_shape_is_a_value_for_ops():
    kernel = tw.zeros([5, 8])
    n = tw.reduce_prod(kernel.shape)
    assert same(n, 40, "int32")
    assert tw.reshape(kernel, [n, 1]).shape == (40, 1)
    assert tw.zeros(kernel.shape).shape == (5, 8)
    assert tw.reshape(kernel, [kernel.shape[0] * kernel.shape[1]]).shape == (40,)
    assert tw.zeros([tw.constant(2), 3]).shape == (2, 3)


def test_set_shape_checks():
    t = tw.zeros([2, 3])
    t.set_shape([2, None])
    assert t.get_shape() == (2, 3)
    with pytest.raises(ValueError, match="incompatible"):
        t.set_shape([3, 3])


def test_shapes_print_as_tensorflow_prints_them():
    shape = tw.zeros([7, 10]).shape
    assert (repr(shape), str(shape)) == ("TensorShape([7, 10])", "(7, 10)")
    assert (repr(TensorShape(None)), str(TensorShape(None))) == (
        "TensorShape(None)",
        "<unknown>",
    )
