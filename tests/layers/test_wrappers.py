"""`TimeDistributed` and `Bidirectional`."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import layers

from .recorded_recurrent import some


def test_the_weights_of_both_ways_are_the_forward_ones_first():
    layer = layers.Bidirectional(layers.LSTM(2, name="lstm"), name="both")
    layer.build((None, None, 3))
    paths = [w.path for w in layer.weights]
    assert paths[0] == "both/forward_lstm/lstm_cell/kernel"
    assert paths[3] == "both/backward_lstm/lstm_cell/kernel" and len(paths) == 6


def test_both_ways_can_start_with_weights():
    first = layers.Bidirectional(layers.GRU(2))
    first.build((None, None, 3))
    second = layers.Bidirectional(layers.GRU(2), weights=first.get_weights())
    x = some(2, 4, 3)
    np.testing.assert_array_equal(first(x).numpy(), second(x).numpy())


def test_a_merge_mode_must_be_known():
    with pytest.raises(
        ValueError,
        match=r"merge_mode .*\('sum', 'mul', 'ave', 'concat', None\).*got 'max'",
    ):
        layers.Bidirectional(layers.LSTM(2), merge_mode="max")


def test_layers_that_go_both_the_same_way_are_refused():
    with pytest.raises(ValueError, match="go_backwards.*True.*got False for both"):
        layers.Bidirectional(layers.LSTM(2), backward_layer=layers.LSTM(2))


def test_layers_both_ways_must_return_alike():
    other = layers.LSTM(2, go_backwards=True, return_sequences=True)
    with pytest.raises(ValueError, match="return_sequences.*got False and True"):
        layers.Bidirectional(layers.LSTM(2), backward_layer=other)


def test_a_wrapper_wraps_layers():
    with pytest.raises(ValueError, match="layer .*got <function tanh"):
        layers.TimeDistributed(tw.tanh)


def test_each_step_needs_three_axes():
    with pytest.raises(ValueError, match=r"\[batch, time, ...\]"):
        layers.TimeDistributed(layers.Dense(2))(some(2, 3))


def test_a_mask_for_each_step_must_fit():
    layer = layers.TimeDistributed(layers.Dense(2))
    with pytest.raises(
        ValueError, match=r"mask .*shape \(2, 3, 4\).*got shape \(2, 4\)"
    ):
        layer(some(2, 3, 4), mask=tw.ones((2, 4), tw.bool))


@pytest.mark.parametrize("merge_mode", ["concat", "sum", None])
@pytest.mark.parametrize("return_state", [False, True])
def test_both_ways_tell_the_shapes_and_masks_of_all_outputs(merge_mode, return_state):
    one_way = layers.GRU(3, return_sequences=True, return_state=return_state)
    layer = layers.Bidirectional(one_way, merge_mode)
    outputs = layer(layers.Masking()(np.ones((2, 4, 5), np.float32)))
    shapes = layer.compute_output_shape((2, 4, 5))
    if not isinstance(outputs, tuple):
        outputs, shapes = (outputs,), (shapes,)
    assert [tuple(y.shape) for y in outputs] == list(shapes)
    masked = [getattr(y, "_keras_mask", None) is not None for y in outputs]
    count = 2 if merge_mode is None else 1
    assert masked == [True] * count + [False] * (2 if return_state else 0)


def test_both_ways_keep_the_states_of_both():
    layer = layers.Bidirectional(layers.GRU(3, stateful=True))
    assert layer.states is None
    layer(np.ones((2, 4, 5), np.float32))
    assert [tuple(state.shape) for state in layer.states] == [(2, 3), (2, 3)]
