"""Activations by name."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.layers import Dense, activations

# Recorded from Keras 3.15 with TensorFlow:
#   keras.activations.get(name)(tf.constant([[-3.0, -0.5, 0.0, 0.5, 8.0]]))
EXPECTED = {
    "relu": [0.0, 0.0, 0.0, 0.5, 8.0],
    "relu6": [0.0, 0.0, 0.0, 0.5, 6.0],
    "leaky_relu": [-0.6, -0.1, 0.0, 0.5, 8.0],
    "elu": [-0.950213, -0.3934693, 0.0, 0.5, 8.0],
    "selu": [-1.670569, -0.6917582, 0.0, 0.5253505, 8.405608],
    "sigmoid": [0.04742587, 0.3775407, 0.5, 0.6224594, 0.9996647],
    "silu": [-0.1422776, -0.1887703, 0.0, 0.3112297, 7.997317],
    "swish": [-0.1422776, -0.1887703, 0.0, 0.3112297, 7.997317],
    "softplus": [0.04858735, 0.474077, 0.6931472, 0.974077, 8.000336],
    "softsign": [-0.75, -0.3333333, 0.0, 0.3333333, 0.8888889],
    "softmax": [1.66832e-05, 0.000203243, 0.0003350911, 0.0005524718, 0.9988925],
    "log_softmax": [-11.00111, -8.501108, -8.001108, -7.501108, -0.001108151],
    "tanh": [-0.9950547, -0.4621171, 0.0, 0.4621171, 1.0],
    "exponential": [0.04978707, 0.6065307, 1.0, 1.648721, 2980.958],
    "linear": [-3.0, -0.5, 0.0, 0.5, 8.0],
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_name_means_what_it_means_in_keras(name):
    x = tw.constant([[-3.0, -0.5, 0.0, 0.5, 8.0]])
    np.testing.assert_allclose(
        activations.get(name)(x), [EXPECTED[name]], rtol=1e-5, atol=1e-7
    )


@pytest.mark.parametrize("name", sorted(set(EXPECTED) - {"swish"}))
def test_a_name_survives_the_round_trip(name):
    assert activations.serialize(activations.get(name)) == name


def test_the_op_itself_is_known_by_its_name():
    assert Dense(1, activation=tw.nn.relu).get_config()["activation"] == "relu"
    assert activations.serialize(tw.nn.swish) == "silu"


def test_none_is_linear():
    assert activations.serialize(activations.get(None)) == "linear"


def test_any_callable_will_do():
    layer = Dense(1, activation=lambda x: x * 2.0, kernel_initializer="ones")
    assert layer([[3.0]]).numpy().tolist() == [[6.0]]


def test_a_function_of_the_users_comes_back_through_a_scope():
    def double(x):
        return x * 2.0

    config = Dense(1, activation=double).get_config()
    assert config["activation"] == "double"
    with tw.registry.custom_object_scope({"double": double}):
        assert Dense.from_config(config).activation is double


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="'rleu'; known are elu, .*relu6"):
        activations.get("rleu")


def test_what_is_neither_name_nor_callable_is_refused():
    with pytest.raises(TypeError, match="must be a name, a callable or None, got 3"):
        activations.get(3)
