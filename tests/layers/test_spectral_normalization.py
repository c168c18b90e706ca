"""`SpectralNormalization`."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.layers import Activation, Dense, SpectralNormalization


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
