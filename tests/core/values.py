"""`same`: values, type and dtype of a tensor at once."""

import numpy as np

import tapewright as tw


def same(actual, expected, dtype=None):
    """Checks values, and that ``actual`` is a Tensor of this dtype."""
    assert isinstance(actual, tw.Tensor), type(actual)
    np.testing.assert_array_equal(actual.numpy(), expected)
    assert actual.shape == np.shape(expected)
    if dtype is not None:
        assert actual.dtype == dtype
    return True
