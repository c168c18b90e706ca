"""`MultiHeadAttention` and `GroupQueryAttention`: heads, masks, names of weights."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.layers import (
    GroupQueryAttention,
    MultiHeadAttention,
)
from tapewright.layers.base import masks

from ..attention_inputs import numbers, softmax


def test_heads_attend_each_with_projections_of_its_own():
    layer = MultiHeadAttention(2, 3, value_dim=5)
    q, v = numbers(2, 3, 4), numbers(2, 6, 7)
    outputs = layer(q, v)
    wq, wk, wv, wo = (
        d.kernel.numpy()
        for d in (
            layer.query_dense,
            layer.key_dense,
            layer.value_dense,
            layer.output_dense,
        )
    )
    assert [w.shape for w in (wq, wk, wv, wo)] == [
        (4, 2, 3),
        (7, 2, 3),
        (7, 2, 5),
        (2, 5, 4),
    ]
    expected = 0
    for head in range(2):
        weights = softmax(
            q @ wq[:, head] @ (v @ wk[:, head]).swapaxes(1, 2) / np.sqrt(3)
        )
        expected = expected + weights @ (v @ wv[:, head]) @ wo[head]
    np.testing.assert_allclose(outputs, expected, rtol=1e-4, atol=1e-5)


def test_weights_have_the_names_and_the_order_of_keras():
    layer = MultiHeadAttention(2, 3, use_gate=True, name="m")
    layer.build((None, 3, 4), (None, 5, 4))
    assert [w.path for w in layer.weights] == [
        f"m/{part}/{weight}"
        for part in ("query", "key", "gate", "value", "attention_output")
        for weight in ("kernel", "bias")
    ]
    layer = GroupQueryAttention(3, 4, 2, use_bias=False, name="g")
    layer.build((None, 3, 4), (None, 5, 4))
    shapes = {w.path: tuple(w.shape) for w in layer.weights}
    assert shapes == {
        "g/query/kernel": (4, 4, 3), "g/key/kernel": (4, 2, 3), "g/value/kernel": (4, 2, 3),
        "g/attention_output/kernel": (4, 3, 4),
    }  # fmt: skip


def test_a_query_mask_given_by_hand_counts():
    layer, x = MultiHeadAttention(1, 2), numbers(1, 3, 2)
    mask = np.array([[True, True, False]])
    _, scores = layer(x, x, query_mask=mask, return_attention_scores=True)
    assert not scores.numpy()[0, 0, 2].any() and scores.numpy()[0, 0, :2].all()


def test_the_outputs_carry_the_mask_of_the_query_and_the_inputs_keep_theirs():
    x = tw.constant(numbers(2, 3, 4))
    mask = tw.constant(np.array([[1, 1, 0]] * 2, bool))
    masks.attach(x, mask)
    for layer in (MultiHeadAttention(2, 3), GroupQueryAttention(3, 4, 2)):
        assert masks.mask_of(layer(x, x)) is mask
        assert masks.mask_of(x) is mask


def test_masked_values_do_not_count():
    layer, x = MultiHeadAttention(2, 3), numbers(1, 4, 2)
    mask = np.array([[True, True, True, False]])
    changed = x.copy()
    changed[0, 3] += 10
    y = layer(x, x, value_mask=mask)
    np.testing.assert_allclose(layer(x, changed, value_mask=mask), y, rtol=1e-5)


def test_dropout_of_heads_needs_training():
    layer, x = MultiHeadAttention(2, 3, dropout=0.5, seed=1), numbers(1, 4, 2)
    np.testing.assert_allclose(layer(x, x), layer(x, x, training=False), rtol=1e-5)
    assert not np.allclose(layer(x, x), layer(x, x, training=True))


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("dropout", [0.0, 1e-9])  # so rare that nothing is dropped
@pytest.mark.parametrize(
    "make",
    [lambda **o: MultiHeadAttention(2, 3, **o), lambda **o: GroupQueryAttention(3, 4, 2, **o)],
)  # fmt: skip
def test_rows_that_see_no_key_are_the_same_in_training_and_inference(
    make, dropout, traced
):
    layer = make(dropout=dropout, bias_initializer="glorot_normal")
    x, seen = numbers(3, 4, 6), np.array([[1, 1, 0, 1], [0, 0, 0, 0], [0, 0, 1, 1]])
    mask = seen.astype(bool)

    def call(training):
        return layer(x, x, value_mask=mask, use_causal_mask=True, training=training)

    call = tw.function(call) if traced else call
    outputs = call(training=False).numpy()
    np.testing.assert_allclose(call(training=True), outputs, rtol=1e-5, atol=1e-6)
    # what Keras gives: heads of 0 with dropout, the mean of all values without
    *_, kernel, bias = layer.get_weights()
    value_kernel, value_bias = layer.get_weights()[4:6]
    values = np.einsum("btd,dhk->bthk", x, value_kernel) + value_bias
    means = values.mean(1).repeat(kernel.shape[0] // values.shape[2], axis=1)
    blind = [[1], range(4)], [[2, 2], [0, 1]]
    for rows, times in blind:
        heads = 0 * means[rows] if dropout else means[rows]
        expected = np.einsum("bhk,hkd->bd", heads, kernel) + bias
        expected = np.broadcast_to(expected, outputs[rows, times].shape)
        np.testing.assert_allclose(outputs[rows, times], expected, rtol=1e-4, atol=1e-5)


def test_lengths_may_be_unknown_in_a_trace():
    layer, x = MultiHeadAttention(2, 3, sliding_window=2), tw.constant(numbers(2, 4, 2))
    layer(x, x)
    spec = tw.TensorSpec([None, None, 2])
    call = tw.function(
        lambda x: layer(x, x, use_causal_mask=True), input_signature=[spec]
    )
    for length in (4, 3):
        expected = layer(x[:, :length], x[:, :length], use_causal_mask=True)
        np.testing.assert_allclose(call(x[:, :length]), expected, rtol=1e-5)


def test_configs_of_heads_make_the_same_layers():
    for layer in (
        MultiHeadAttention(2, 3, output_shape=4, attention_axes=1, sliding_window=2),
        GroupQueryAttention(3, 4, 2, dropout=0.5, seed=1, use_gate=True),
    ):
        config = layer.get_config()
        assert type(layer).from_config(config).get_config() == config
        assert "flash_attention" not in config and "activity_regularizer" in config
    assert set(MultiHeadAttention(2, 3).get_config()) == {
        "name", "trainable", "dtype", "num_heads", "key_dim", "value_dim", "dropout",
        "use_bias", "use_gate", "output_shape", "attention_axes", "sliding_window",
        "kernel_initializer", "bias_initializer", "kernel_regularizer",
        "bias_regularizer", "activity_regularizer", "kernel_constraint",
        "bias_constraint", "seed",
    }  # fmt: skip


def test_the_activity_regularizer_is_that_of_the_projections():
    options = {"kernel_initializer": "ones", "activity_regularizer": "l2"}
    layer, x = MultiHeadAttention(1, 2, **options), numbers(2, 3, 4)
    layer(x, x)
    projections = (
        layer.query_dense, layer.key_dense, layer.value_dense, layer.output_dense
    )  # fmt: skip
    assert [len(p.losses) for p in projections] == [1, 1, 1, 1]
    assert len(layer.losses) == 4
    layer = GroupQueryAttention(2, 2, 1, **options)
    layer(x, x)
    assert len(layer.losses) == 5  # and that of the outputs
