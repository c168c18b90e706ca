"""`Attention` and `AdditiveAttention`: scores, causal masks, dropout."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.layers import (
    AdditiveAttention,
    Attention,
    GroupQueryAttention,
    MultiHeadAttention,
)

from ..attention_inputs import numbers, softmax


def test_attention_is_the_mean_of_the_values_weighted_by_their_keys():
    q, v, k = numbers(2, 3, 4), numbers(2, 5, 6), numbers(2, 5, 4)
    weights = softmax(q @ k.swapaxes(1, 2))
    outputs, scores = Attention()([q, v, k], return_attention_scores=True)
    np.testing.assert_allclose(scores, weights, rtol=1e-5)
    np.testing.assert_allclose(outputs, weights @ v, rtol=1e-5, atol=1e-6)
    assert Attention().compute_output_shape([q.shape, v.shape, k.shape]) == (2, 3, 6)


def test_a_causal_query_sees_no_further_than_its_place():
    x = numbers(1, 4, 3)
    _, scores = Attention()([x, x], return_attention_scores=True, use_causal_mask=True)
    assert not np.triu(scores.numpy()[0], 1).any()


def test_dropout_falls_on_the_weights_in_training_alone():
    layer, x = Attention(dropout=0.5, seed=1), tw.ones([1, 4, 50])
    np.testing.assert_allclose(layer([x, x]), x, rtol=1e-6)
    y = layer([x, x], training=True).numpy()
    assert set(np.unique(y)) <= {0.0, 0.5, 1.0, 1.5, 2.0} and (y != 1).any()


@pytest.mark.parametrize("inputs", [[1], [1, 2, 3, 4]])
def test_attention_takes_query_value_and_key(inputs):
    with pytest.raises(
        ValueError, match=rf"\[query, value, key\], got list of {len(inputs)}"
    ):
        Attention()([tw.ones([1, 2, 3])] * len(inputs))
    with pytest.raises(ValueError, match="inputs must be a list"):
        Attention()(tw.ones([1, 2, 3]))


def test_unknown_scores_and_rates_are_refused():
    with pytest.raises(ValueError, match="score_mode .*got 'sum'"):
        Attention(score_mode="sum")
    with pytest.raises(ValueError, match="AdditiveAttention: dropout .*0.*1.*got 2"):
        AdditiveAttention(dropout=2)


def test_configs_have_the_keys_of_keras():
    base = {"name", "trainable", "dtype", "use_scale", "dropout", "seed"}
    assert set(Attention().get_config()) == base | {"score_mode"}
    config = AdditiveAttention(use_scale=False).get_config()
    assert set(config) == base
    assert AdditiveAttention.from_config(config).get_config() == config


@pytest.mark.parametrize("make", [
    lambda: MultiHeadAttention(2, 2, 3, dtype="float64", use_gate=True),
    lambda: GroupQueryAttention(2, 2, 1, dtype="float64"),
])  # fmt: skip
def test_every_derivative_agrees_with_differences(make):
    layer = make()
    q, v = np.random.normal(size=(1, 2, 2)), np.random.normal(size=(1, 3, 2))
    mask = np.array([[[1, 1, 0], [1, 1, 1]]], bool)
    layer(q, v)
    tw.test.check_gradients(
        lambda q, v, *_: layer(q, v, attention_mask=mask),
        [q, v, *layer.weights],
        order=2,
    )


@pytest.mark.parametrize("make, message", [
    (lambda: MultiHeadAttention(0, 3), "num_heads .*got 0"),
    (lambda: MultiHeadAttention(2, 3, sliding_window=0), "sliding_window .*got 0"),
    (lambda: MultiHeadAttention(2, 3, flash_attention=True), "flash_attention"),
    (lambda: GroupQueryAttention(2, 3, 2), "multiple of num_key_value_heads.*3 and 2"),
    (lambda: MultiHeadAttention(2, 3).build((1, 2, 3), (1, 4, 3), (1, 5, 3)),
     r"value and key.*shapes \(1, 4, 3\).*\(1, 5, 3\)"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("make", [Attention, AdditiveAttention])
def test_the_scores_returned_are_those_with_dropout(make):
    query = value = np.ones((1, 4, 2), "float32")
    layer = make(dropout=0.5, seed=3)
    outputs, scores = layer([query, value], return_attention_scores=True, training=True)
    assert set(np.unique(scores)) == {0.0, 0.5}  # 1/4 each, dropped or doubled
    np.testing.assert_allclose(outputs, scores.numpy() @ value)
    _, scores = layer([query, value], return_attention_scores=True)
    np.testing.assert_allclose(scores, 0.25)


@pytest.mark.parametrize("make", [Attention, AdditiveAttention])
def test_attention_computes_the_mask_of_its_outputs_from_masks_by_name(make):
    inputs = [np.ones((1, 2, 2), "float32")] * 2
    layer, query = make(), np.array([[True, False]])
    computed = layer.compute_mask(inputs, mask=[query, None])
    assert computed.numpy().tolist() == [[True, False]]
    assert layer.compute_mask(inputs) is None
    assert layer.compute_mask(inputs, mask=[None, query]) is None
    with pytest.raises(ValueError, match="mask .*got ndarray"):
        layer.compute_mask(inputs, mask=query)
    with pytest.raises(ValueError, match="inputs must be a list"):
        layer.compute_mask(inputs[0], mask=[query, None])


@pytest.mark.parametrize("make", [Attention, AdditiveAttention])
def test_masks_that_are_all_none_hide_nothing(make):
    inputs = [np.ones((1, 2, 2), "float32"), np.eye(2, dtype="float32")[None]]
    layer = make()
    expected = layer(inputs)
    np.testing.assert_array_equal(layer(inputs, mask=[None, None]), expected)
    np.testing.assert_array_equal(
        layer(inputs, mask=[None, np.ones((1, 2), bool)]), expected
    )
