"""`Dense`, `Activation`, `Flatten`, `Dropout`."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.layers import Activation, Dense, Dropout, Flatten


def numbers(*shape):
    return np.random.normal(size=shape).astype("float32")


# ---------------------------------------------------------------------------- Dense


@pytest.mark.parametrize("shape", [(5, 3), (2, 4, 3), (0, 3)])
@pytest.mark.parametrize("use_bias", [True, False])
def test_dense_is_an_affine_map_of_the_last_axis(shape, use_bias):
    layer = Dense(2, use_bias=use_bias, bias_initializer="random_normal")
    x = numbers(*shape)
    y = layer(x)
    expected = x @ layer.kernel.numpy()
    if use_bias:
        expected = expected + layer.bias.numpy()
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
    assert layer.compute_output_shape(shape) == y.shape


def test_dense_gradients():
    # y = x W + b, loss = sum(c y): dW = x^T c, db = sum(c), dx = c W^T
    layer, x, c = Dense(2), tw.constant(numbers(5, 3)), numbers(5, 2)
    with tw.GradientTape() as tape:
        tape.watch(x)
        loss = tw.reduce_sum(layer(x) * c)
    d_x, d_kernel, d_bias = tape.gradient(loss, [x, layer.kernel, layer.bias])
    np.testing.assert_allclose(d_kernel, x.numpy().T @ c, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(d_bias, c.sum(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(d_x, c @ layer.kernel.numpy().T, rtol=1e-5, atol=1e-6)


def test_dense_defaults_are_glorot_and_zeros():
    layer = Dense(50)
    layer.build((None, 100))
    limit = np.sqrt(6 / 150)
    assert 0.95 * limit < np.abs(layer.kernel).max() <= limit
    assert not layer.bias.numpy().any()


def test_dense_casts_integers():
    layer = Dense(1, kernel_initializer="ones")
    y = layer(np.array([[1, 2]], np.uint8))
    assert y.dtype == "float32" and y.numpy().tolist() == [[3.0]]


def test_dense_regularizes_kernel_and_bias():
    layer = Dense(
        2,
        kernel_initializer="ones",
        bias_initializer="ones",
        kernel_regularizer="l1",
        bias_regularizer=tw.keras.regularizers.L2(0.5),
    )
    layer.build((None, 3))
    assert [float(v) for v in layer.losses] == pytest.approx([0.06, 1.0])


@pytest.mark.parametrize("units", [0, -1, 2.5, "3", None])
def test_dense_needs_a_positive_number_of_units(units):
    with pytest.raises(ValueError, match="Dense: units must be a positive integer"):
        Dense(units)


def test_dense_config_makes_the_same_layer():
    layer = Dense(
        np.int64(3), "relu", use_bias=False, kernel_regularizer="l2", name="d"
    )
    config = layer.get_config()
    assert config["units"] == 3 and config["activation"] == "relu"
    assert Dense.from_config(config).get_config() == config


# ----------------------------------------------------------------------- Activation


def test_activation_applies_its_function():
    assert Activation("relu")([-1.0, 2.0]).numpy().tolist() == [0.0, 2.0]
    assert Activation(tw.nn.tanh).get_config()["activation"] == "tanh"


# -------------------------------------------------------------------------- Flatten


@pytest.mark.parametrize(
    "shape, flat", [((2, 3, 4), (2, 12)), ((3,), (3, 1)), ((0, 2, 2), (0, 4)),
                    ((2, 0, 3), (2, 0)), ((2, 5), (2, 5))]
)  # fmt: skip
def test_flatten_keeps_the_batch_axis(shape, flat):
    x = numbers(*shape)
    np.testing.assert_array_equal(Flatten()(x), x.reshape(flat))
    assert Flatten().compute_output_shape((None, *shape[1:])) == (None, flat[1])


def test_flatten_of_channels_first_moves_them_to_the_end():
    x = numbers(2, 3, 4, 5)
    expected = x.transpose(0, 2, 3, 1).reshape(2, 60)
    np.testing.assert_array_equal(Flatten("channels_first")(x), expected)


def test_flatten_refuses_other_formats_and_scalars():
    with pytest.raises(ValueError, match="data_format must be 'channels_last' or"):
        Flatten("NCHW")
    with pytest.raises(ValueError, match="rank 1 or more"):
        Flatten()(1.0)


# -------------------------------------------------------------------------- Dropout


def test_dropout_zeroes_a_share_and_scales_the_rest():
    y = Dropout(0.2)(tw.ones([200, 100]), training=True).numpy()
    assert set(np.unique(y)) == {np.float32(0), np.float32(1.25)}
    assert (y == 0).mean() == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize("training", [False, None])
def test_dropout_does_nothing_outside_training(training):
    x = tw.constant([1.0, 2.0])
    assert Dropout(0.9)(x, training=training) is x


def test_dropout_at_its_ends():
    x = tw.ones([50])
    assert Dropout(0)(x, training=True) is x
    assert not Dropout(1.0)(x, training=True).numpy().any()


def test_the_gradient_of_dropout_is_its_mask():
    x = tw.constant(numbers(20, 10))
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = Dropout(0.5)(x, training=True)
    np.testing.assert_allclose(tape.gradient(y, x), y.numpy() / x.numpy(), rtol=1e-6)


def test_the_noise_shape_says_which_axes_share_a_draw():
    y = Dropout(0.5, noise_shape=(None, 1, None))(tw.ones([4, 30, 5]), training=True)
    assert (y.numpy() == y.numpy()[:, :1]).all()
    assert len(np.unique(y.numpy()[:, 0])) == 2


def test_a_noise_shape_of_another_rank_is_refused():
    layer = Dropout(0.5, noise_shape=(None, 1), name="drop")
    with pytest.raises(
        ValueError, match=r"'drop'.*noise_shape \(None, 1\).*\(2, 3, 4\)"
    ):
        layer(tw.ones([2, 3, 4]), training=True)


def test_a_seed_makes_a_stream_of_its_own():
    x = tw.ones([100])
    first, second = Dropout(0.5, seed=7), Dropout(0.5, seed=7)
    y = first(x, training=True).numpy()
    tw.random.normal([3])
    np.testing.assert_array_equal(second(x, training=True), y)
    assert not np.array_equal(first(x, training=True), y)


def test_without_a_seed_the_global_stream_decides():
    layer, x = Dropout(0.5), tw.ones([100])
    tw.random.set_seed(3)
    y = layer(x, training=True).numpy()
    tw.random.set_seed(3)
    np.testing.assert_array_equal(layer(x, training=True), y)


@pytest.mark.parametrize("rate", [-0.1, 1.5])
def test_rates_lie_between_0_and_1(rate):
    with pytest.raises(ValueError, match=f"rate must be from 0 to 1, got {rate}"):
        Dropout(rate)


def test_dropout_config_makes_the_same_layer():
    config = Dropout(0.5, noise_shape=(None, 1), seed=3).get_config()
    assert config["noise_shape"] == [None, 1]
    assert Dropout.from_config(config).get_config() == config
