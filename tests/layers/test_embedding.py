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


def test_the_way_back_multiplies_by_the_embeddings_or_by_a_weight_of_its_own():
    table = np.float32([[0.0, 0.0], [1.0, 2.0], [3.0, -4.0]])
    tied = layers.ReversibleEmbedding(3, 2, weights=[table], mask_zero=True)
    vectors = tied([[1, 0]])
    assert vectors._keras_mask.numpy().tolist() == [[True, False]]
    logits = tied(vectors, reverse=True)
    assert logits.numpy().tolist() == [[[0, 5, -5], [0, 0, 0]]]
    assert getattr(logits, "_keras_mask", None) is None
    other = layers.ReversibleEmbedding(3, 2, tie_weights=False, logit_soft_cap=2.0)
    other.build()
    other.set_weights([table, np.float32([[1, 2, 3], [4, 5, 6]])])
    capped = 2 * np.tanh(np.array([[9.0, 12.0, 15.0]]) / 2)
    np.testing.assert_allclose(other([[1.0, 2.0]], reverse=True), capped, rtol=1e-6)
    inputs = tw.keras.Input((4,), dtype="int32")
    assert other(other(inputs), reverse=True).shape == (None, 4, 3)
    assert other.compute_output_shape((None, 4, 2), reverse=True) == (None, 4, 3)
    half = layers.ReversibleEmbedding(
        3, 2, dtype="mixed_float16", reverse_dtype="float32"
    )
    assert (
        half([1]).dtype == "float16"
        and half(half([1]), reverse=True).dtype == "float32"
    )
