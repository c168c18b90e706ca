"""`TimeDistributed`, `Bidirectional`, `SpectralNormalization`."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import layers
from tapewright.layers import Activation, Dense, SpectralNormalization

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


def test_many_steps_give_the_kernel_the_spectral_norm_1():
    layer = SpectralNormalization(Dense(3, kernel_initializer="random_normal"))
    x = tw.ones([1, 5])
    for _ in range(30):
        layer(x, training=True)
    assert np.linalg.norm(layer.layer.kernel, 2) == pytest.approx(1, rel=1e-3)


def test_outside_of_training_nothing_changes():
    layer = SpectralNormalization(Dense(3))
    layer.build((None, 4))
    before = [w.numpy().copy() for w in layer.weights]
    layer(tw.ones([2, 4]))
    for weight, value in zip(layer.weights, before):
        np.testing.assert_array_equal(weight, value)


def test_a_kernel_of_zeros_stays():
    layer = SpectralNormalization(Dense(2, kernel_initializer="zeros"))
    layer.build((None, 3))
    u = layer.vector_u.numpy().copy()
    assert not layer(tw.ones([1, 3]), training=True).numpy().any()
    np.testing.assert_array_equal(layer.vector_u, u)


def test_weights_stand_in_the_order_of_keras():
    layer = SpectralNormalization(Dense(2, name="d"), name="s")
    layer.build((None, 3))
    paths = [w.path for w in layer.weights]
    assert paths == ["s/d/kernel", "s/vector_u", "s/d/bias"]
    assert [w.name for w in layer.trainable_weights] == ["kernel", "bias"]


def test_the_config_makes_the_same_layer():
    layer = SpectralNormalization(Dense(2, name="d"), power_iterations=3, name="s")
    config = layer.get_config()
    again = SpectralNormalization.from_config(config)
    assert again.get_config() == config and again.layer.units == 2


def test_what_has_no_kernel_is_refused():
    with pytest.raises(
        ValueError, match="layer .*kernel or embeddings.*got <Activation"
    ):
        SpectralNormalization(Activation("relu")).build((None, 3))
    with pytest.raises(ValueError, match="layer .*got 3"):
        SpectralNormalization(3)
    with pytest.raises(ValueError, match="power_iterations .*got 0"):
        SpectralNormalization(Dense(2), power_iterations=0)
