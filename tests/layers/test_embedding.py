"""`Embedding`: sparse gradients, numbers out of range."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import layers


def test_the_gradient_of_an_embedding_is_sparse():
    layer = layers.Embedding(100, 3)
    with tw.GradientTape() as tape:
        y = tw.reduce_sum(layer(np.array([[3, 5, 3]])))
    gradient = tape.gradient(y, layer.embeddings)
    assert isinstance(gradient, tw.IndexedSlices)
    dense = tw.convert_to_tensor(gradient).numpy()
    assert dense[3].tolist() == [2, 2, 2] and dense.sum() == 9


def test_an_embedding_takes_floating_whole_numbers():
    layer = layers.Embedding(5, 2)
    np.testing.assert_array_equal(layer([[1.0, 3.0]]).numpy(), layer([[1, 3]]).numpy())


def test_an_embedding_refuses_a_number_that_it_does_not_have():
    with pytest.raises((IndexError, ValueError)):
        layers.Embedding(5, 2)(np.array([[5]]))


@pytest.mark.parametrize("size", [0, -1, 2.5, True, None])
def test_the_sizes_of_an_embedding_must_be_positive_whole_numbers(size):
    with pytest.raises(ValueError, match="input_dim"):
        layers.Embedding(size, 2)
