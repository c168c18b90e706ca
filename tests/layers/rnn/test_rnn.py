"""`RNN`: states, masks, cells of a user's own."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import layers

from ..recorded_recurrent import ALL, KINDS, record, some


def test_a_stateful_layer_goes_on_where_it_ended_and_can_be_reset():
    x = some(2, 6, 3)
    whole, parts = layers.LSTM(4, **ALL), layers.LSTM(4, stateful=True, **ALL)
    whole(x)
    parts(x[:, :3])
    record.fill(whole)
    record.fill(parts)
    for _ in range(2):
        parts.reset_states()
        first, last = parts(x[:, :3])[0], parts(x[:, 3:])[0]
        found = tw.concat([first, last], 1)
        np.testing.assert_allclose(found.numpy(), whole(x)[0].numpy(), atol=1e-6)
    assert [tuple(s.shape) for s in parts.states] == [(2, 4)] * 2
    assert len(parts.weights) == 3  # the states are none of them


def test_a_stateful_layer_refuses_a_batch_of_another_size():
    layer = layers.GRU(4, stateful=True)
    layer(some(2, 3, 3))
    with pytest.raises(ValueError, match="states .*2.*got 5"):
        layer(some(5, 3, 3))


def test_a_stateful_layer_needs_a_batch_size():
    with pytest.raises(
        ValueError, match=r"batch size .*got inputs of shape \(None, 5, 3\)"
    ):
        layers.LSTM(4, stateful=True).build((None, 5, 3))


def test_a_traced_stateful_layer_keeps_its_states():
    layer, x = layers.GRU(4, stateful=True), some(2, 3, 3)
    layer(x)
    layer.reset_state()
    wanted = [layer(x).numpy() for _ in range(2)]
    layer.reset_state()
    traced = tw.function(layer)
    for value in wanted:
        np.testing.assert_allclose(traced(x).numpy(), value, atol=1e-6)


def test_nan_in_steps_that_do_not_count_harms_nothing():
    x = np.array(record.numbers(1, 3, 2))
    x[:, 1:] = np.nan
    x = tw.constant(x)
    for kind in KINDS:
        layer = kind(3)
        with tw.GradientTape() as tape:
            tape.watch(x)
            y = layer(x, mask=tw.constant([[True, False, False]]))
        g = tape.gradient(y, [x, *layer.trainable_variables[1:]])
        assert np.isfinite(y.numpy()).all()
        assert all(np.isfinite(part.numpy()).all() for part in g)
        assert not g[0].numpy()[:, 1:].any()


@pytest.mark.parametrize("unroll", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda **o: layers.SimpleRNN(3, **o),
        lambda **o: layers.LSTM(3, **o),
        lambda **o: layers.LSTM(3, activation="elu", **o),
        lambda **o: layers.GRU(3, **o),
        lambda **o: layers.RNN(layers.GRUCell(3), **o),
    ],
)
def test_zero_output_for_mask_acts_on_sequences_alone(make, unroll):
    x, mask = some(2, 4, 2), np.array([[1, 1, 0, 0], [1, 1, 1, 1]], bool)
    last = make(zero_output_for_mask=True, unroll=unroll)
    plain = make(unroll=unroll)
    sequences = make(zero_output_for_mask=True, unroll=unroll, return_sequences=True)
    last(x)
    for layer in (plain, sequences):
        layer(x)
        layer.set_weights(last.get_weights())
    outputs = sequences(x, mask=mask).numpy()
    assert not outputs[0, 2:].any() and outputs[0, :2].all()
    counted = np.stack([outputs[0, 1], outputs[1, 3]])  # the last steps that count
    for layer in (last, plain):
        np.testing.assert_allclose(layer(x, mask=mask), counted, rtol=1e-5)
        traced = tw.function(lambda x, layer=layer: layer(x, mask=mask))
        np.testing.assert_allclose(traced(x), counted, rtol=1e-5)


def test_the_mask_goes_on_where_outputs_are_sequences():
    x = layers.Masking()(some(2, 3, 2))
    assert layers.LSTM(4, return_sequences=True)(x)._keras_mask is x._keras_mask
    assert getattr(layers.LSTM(4)(x), "_keras_mask", None) is None
    both = layers.Bidirectional(layers.LSTM(4, return_sequences=True))
    assert both(x)._keras_mask is x._keras_mask


class Accumulator(layers.Layer):
    """Two states of different sizes; the outputs have a size of their own."""

    state_size = [2, 3]
    output_size = 5

    def call(self, inputs, states):
        a, b = states
        a, b = a + inputs, b * 0.5 + 1.0
        return tw.concat([a, b], 1), [a, b]


def test_a_cell_of_ones_own_is_run():
    layer = layers.RNN(Accumulator(), **ALL)
    y, a, b = layer(tw.ones((1, 3, 2)))
    np.testing.assert_allclose(y[0, :, 0].numpy(), [1, 2, 3])
    np.testing.assert_allclose(a.numpy(), [[3, 3]])
    np.testing.assert_allclose(b.numpy(), [[1.75] * 3])
    assert layer.compute_output_shape((1, 3, 2)) == ((1, 3, 5), (1, 2), (1, 3))


class Plain:
    """A cell that is no layer, and whose state is no list."""

    state_size = 2

    def call(self, inputs, states):
        total = states[0] + inputs
        return total, total


def test_a_cell_need_not_be_a_layer():
    y = layers.RNN(Plain())(tw.ones((1, 4, 2)))
    np.testing.assert_allclose(y.numpy(), [[4, 4]])


def test_what_is_no_cell_is_refused():
    with pytest.raises(ValueError, match="'state_size'"):
        layers.RNN(layers.Dense(3))
    with pytest.raises(ValueError, match="'state_size'"):
        layers.StackedRNNCells([layers.Dense(3)])


def test_inputs_of_another_rank_are_refused():
    with pytest.raises(tw.errors.ShapeError, match=r"rank 3.*got shape \(2, 3\)"):
        layers.LSTM(3)(some(2, 3))
