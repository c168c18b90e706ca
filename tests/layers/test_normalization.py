"""`BatchNormalization`."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.layers import BatchNormalization


def numbers(*shape):
    return np.random.normal(2.0, 3.0, shape).astype("float32")


def normal(x, axes, epsilon):
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon)


def test_a_step_of_training_equals_that_of_keras():
    # Recorded from Keras 3.15 with TensorFlow: this code with keras.layers and tf.
    layer = BatchNormalization(momentum=0.9, epsilon=0.01)
    x = tw.constant([[1.0, -2.0], [3.0, 0.0], [8.0, 5.0]])
    c = tw.constant([[1.0, 2.0], [-1.0, 0.5], [2.0, 1.0]])
    layer.build(x.shape)
    layer.gamma.assign([2.0, 3.0])
    layer.beta.assign([0.5, -0.5])
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = layer(x, training=True)
        loss = tw.reduce_sum(y * c)
    d_x, d_gamma, d_beta = tape.gradient(loss, [x, *layer.trainable_variables])
    near = dict(rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        y, [[-1.5369236, -3.5553856], [-0.1789746, -1.5184618], [3.2158983, 3.5738473]],
        **near,
    )  # fmt: skip
    np.testing.assert_allclose(
        d_x, [[0.6958423, 0.5552697], [-0.9751184, -0.7767907], [0.2792761, 0.2215209]],
        **near,
    )  # fmt: skip
    np.testing.assert_allclose(d_gamma, [2.0369236, -0.8487182], **near)
    np.testing.assert_allclose(d_beta, [2.0, 3.5], **near)
    # the variance is the biased one: (9 + 1 + 16) / 3 of the first channel
    np.testing.assert_allclose(layer.moving_mean, [0.4, 0.1], **near)
    np.testing.assert_allclose(layer.moving_variance, [1.7666667, 1.7666667], **near)
    np.testing.assert_allclose(
        layer(x),
        [[1.4002814, -5.2264771], [4.4012189, -0.7250704], [11.9035645, 10.5284472]],
        **near,
    )


@pytest.mark.parametrize(
    "shape, axis, axes", [((8, 3), -1, (0,)), ((4, 3, 5), 1, (0, 2)),
                          ((2, 4, 4, 3), -1, (0, 1, 2)), ((2, 3, 4, 4), -3, (0, 2, 3))]
)  # fmt: skip
def test_training_normalizes_every_channel(shape, axis, axes):
    x = numbers(*shape)
    layer = BatchNormalization(axis=axis)
    y = layer(x, training=True)
    np.testing.assert_allclose(y, normal(x, axes, 1e-3), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(layer.moving_mean, 0.01 * x.mean(axes), rtol=1e-4)
    expected = 0.99 + 0.01 * x.var(axes)
    np.testing.assert_allclose(layer.moving_variance, expected, rtol=1e-4)


@pytest.mark.parametrize("axis", [-1, 1])
def test_inference_uses_the_moving_statistics(axis):
    x = numbers(2, 3, 3)
    layer = BatchNormalization(axis=axis)
    layer.build(x.shape)
    values = [
        np.array(v, "float32") for v in ([2, 1, 3], [1, 0, -1], [0, 2, 1], [1, 4, 9])
    ]
    layer.set_weights(values)
    shape = (3,) if axis == -1 else (3, 1)
    gamma, beta, mean, variance = (v.reshape(shape) for v in values)
    expected = (x - mean) / np.sqrt(variance + 1e-3) * gamma + beta
    for training in (None, False):
        np.testing.assert_allclose(layer(x, training=training), expected, rtol=1e-4)
    np.testing.assert_array_equal(layer.moving_mean, values[2])


def test_center_and_scale_leave_their_weights_out():
    layer = BatchNormalization(center=False, scale=False)
    x = numbers(8, 3)
    y = layer(x, training=True)
    assert [v.name for v in layer.weights] == ["moving_mean", "moving_variance"]
    np.testing.assert_allclose(y, normal(x, 0, 1e-3), rtol=1e-4, atol=1e-5)
    assert layer(x).shape == (8, 3)


def test_a_frozen_layer_does_not_learn():
    layer, x = BatchNormalization(), numbers(8, 3)
    layer.build(x.shape)
    layer.trainable = False
    np.testing.assert_allclose(layer(x, training=True), x / np.sqrt(1.001), rtol=1e-5)
    assert not layer.moving_mean.numpy().any()


def test_examples_are_coupled_through_the_batch_in_training():
    layer, x = BatchNormalization(), tw.constant(numbers(3, 2))
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = layer(x, training=True)
    j = tape.jacobian(y, x).numpy()
    assert j.shape == (3, 2, 3, 2)
    assert np.abs(j[0, 0, 1:, 0]).min() > 1e-3 and not j[:, 0, :, 1].any()
    np.testing.assert_allclose(j.sum(2), 0, atol=1e-5)  # a shift of the batch is undone


def test_second_derivatives_are_exact():
    # y = (x - m) / s, loss = sum(c y): its gradient moves as central differences say
    layer = BatchNormalization(dtype="float64")
    x0, c = np.random.normal(size=(4, 1)), np.random.normal(size=(4, 1))

    def gradient(value):
        x = tw.constant(value)
        with tw.GradientTape() as outer:
            outer.watch(x)
            with tw.GradientTape() as tape:
                tape.watch(x)
                loss = tw.reduce_sum(layer(x, training=True) * c)
            g = tape.gradient(loss, x)
        return g.numpy(), outer.jacobian(g, x).numpy()

    _, hessian = gradient(x0)
    for i in range(4):
        step = np.zeros((4, 1))
        step[i] = 1e-5
        slope = (gradient(x0 + step)[0] - gradient(x0 - step)[0]) / 2e-5
        np.testing.assert_allclose(hessian[:, 0, i, 0], slope[:, 0], atol=1e-7)


def test_wrong_channels_are_refused_also_in_inference():
    layer = BatchNormalization(name="bn")
    layer(numbers(2, 3))
    with pytest.raises(ValueError, match=r"'bn'.*size 3 on axis 1.*\(2, 1\)"):
        layer(numbers(2, 1))


def test_an_axis_out_of_range_is_refused():
    with pytest.raises(ValueError, match="axis must be from -2 to 1"):
        BatchNormalization(axis=2)(numbers(2, 3))


def test_the_config_makes_the_same_layer():
    layer = BatchNormalization(axis=1, momentum=0.5, gamma_regularizer="l2")
    config = layer.get_config()
    assert BatchNormalization.from_config(config).get_config() == config
