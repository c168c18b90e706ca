"""`IndexedSlices`: what keeps them sparse, and what makes them dense."""

import numpy as np
import pytest

import tapewright as tw

from .values import same


def test_slices_become_dense_and_repeated_rows_add_up():
    slices = tw.IndexedSlices(
        tw.constant([[1.0], [2.0], [4.0]]), tw.constant([2, 0, 2]), [3, 1]
    )
    assert slices.shape == (3, 1) and slices.dtype == "float32"
    assert same(tw.convert_to_tensor(slices), [[2.0], [0.0], [5.0]])
    assert same(slices + tw.ones([3, 1]), [[3.0], [1.0], [6.0]])
    assert same(tw.ones([3, 1]) + slices, [[3.0], [1.0], [6.0]])
    assert isinstance(slices + slices, tw.IndexedSlices)
    assert repr(slices).startswith("IndexedSlices(indices=") and tw.is_tensor(slices)


def test_ops_take_slices():
    slices = tw.IndexedSlices(tw.constant([[1.0, 2.0]]), tw.constant([1]), [2, 2])
    assert same(tw.reduce_sum(slices, axis=0), [1.0, 2.0])


def test_slices_without_a_dense_shape_have_no_shape_and_no_dense_form():
    slices = tw.IndexedSlices(tw.constant([[1.0, -2.0]]), tw.constant([1]))
    assert slices.shape.rank is None
    for convert in (tw.convert_to_tensor, tw.abs):
        with pytest.raises(ValueError, match="dense_shape"):
            convert(slices)


@pytest.mark.parametrize("dense_shape", [None, (3, 2)])
def test_what_acts_on_each_entry_keeps_slices_sparse(dense_shape):
    slices = tw.IndexedSlices(tw.constant([[1.0, -2.0]]), tw.constant([1]), dense_shape)
    for made, wanted in (
        (tw.scalar_mul(2.0, slices), [[2.0, -4.0]]),
        (-slices, [[-1.0, 2.0]]),
        (tw.clip_by_value(slices, -1.5, 0.5), [[0.5, -1.5]]),
        (tw.clip_by_norm(slices, 1.0), [[5**-0.5, -2 * 5**-0.5]]),
        (tw.cast(slices, "float64"), [[1.0, -2.0]]),
        (tw.clip_by_global_norm([slices], 5**0.5)[0][0], [[1.0, -2.0]]),
    ):
        assert isinstance(made, tw.IndexedSlices)
        assert made.dense_shape == dense_shape and made.indices.numpy().tolist() == [1]
        np.testing.assert_allclose(made.values.numpy(), wanted, rtol=1e-6)
    assert tw.linalg.global_norm([slices]).numpy() == np.float32(5**0.5)
