"""Normalization layers: `BatchNormalization`, then those of one example."""

import numpy as np
import pytest

import tapewright as tw
from tapewright.core.state.replica_context import ReplicaContext, in_replica_context
from tapewright.layers import (
    BatchNormalization,
    GroupNormalization,
    LayerNormalization,
    RMSNormalization,
    UnitNormalization,
    normalization,
)


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
    with pytest.raises(ValueError, match=r"'bn'.*size 3.*axis 1.*got shape \(2, 1\)"):
        layer(numbers(2, 1))


def test_an_axis_out_of_range_is_refused():
    with pytest.raises(ValueError, match="axis .*-2.*1.*got 2"):
        BatchNormalization(axis=2)(numbers(2, 3))


def test_the_config_makes_the_same_layer():
    layer = BatchNormalization(axis=1, momentum=0.5, gamma_regularizer="l2")
    config = layer.get_config()
    assert BatchNormalization.from_config(config).get_config() == config


def test_renormalization_that_is_off_is_left_out_of_a_config():
    off = {"renorm": False, "renorm_clipping": None, "renorm_momentum": 0.99}
    config = BatchNormalization().get_config()
    assert BatchNormalization.from_config({**config, **off}).get_config() == config
    on = BatchNormalization(renorm=True).get_config()
    assert on["renorm"] is True and on["renorm_clipping"] == {}


@pytest.mark.parametrize("traced", [False, True])
def test_renormalized_outputs_are_those_by_the_statistics_so_far(traced):
    layer = BatchNormalization(renorm=True, renorm_momentum=0.5, momentum=0.5)
    layer.build((None, 2))
    mean, stddev = np.float32([1, -1]), np.float32([2, 3])
    layer.renorm_mean.assign(mean)
    layer.renorm_stddev.assign(stddev)
    x = numbers(5, 2)
    call = tw.function(layer) if traced else layer
    y = call(x, training=True)
    np.testing.assert_allclose(y, (x - mean) / stddev, rtol=1e-4, atol=1e-5)
    of_batch = np.sqrt(x.var(0) + 1e-3)
    np.testing.assert_allclose(layer.renorm_mean, (mean + x.mean(0)) / 2, rtol=1e-5)
    np.testing.assert_allclose(layer.renorm_stddev, (stddev + of_batch) / 2, rtol=1e-5)
    moved = (1 + of_batch) / 2
    np.testing.assert_allclose(layer.moving_variance, moved**2 - 1e-3, rtol=1e-5)
    limited = BatchNormalization(
        renorm=True, renorm_clipping={"rmax": 1, "rmin": 1, "dmax": 0}
    )
    plain = BatchNormalization()
    np.testing.assert_allclose(
        limited(x, training=True), plain(x, training=True), rtol=1e-5
    )


@pytest.mark.parametrize(
    "limits", [{"max": 1.0}, {"rmin": 2.0, "rmax": 1.0}, {"dmax": -1.0}]
)
def test_limits_of_renormalization_must_fit(limits):
    with pytest.raises(ValueError, match="renorm_clipping must (only )?have.*got"):
        BatchNormalization(renorm=True, renorm_clipping=limits)


def test_entries_that_a_mask_leaves_out_do_not_count():
    x = numbers(3, 4, 2)
    mask = np.array([[1, 1, 0, 1], [1, 0, 0, 0], [1, 1, 1, 1]], bool)
    layer = BatchNormalization()
    y = layer(x, training=True, mask=mask).numpy()
    kept = x[mask]
    expected = (x - kept.mean(0)) / np.sqrt(kept.var(0) + 1e-3)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(layer.moving_mean, 0.01 * kept.mean(0), rtol=1e-4)
    changed = np.where(mask[..., None], x, np.float32(np.nan))
    again = BatchNormalization()(changed, training=True, mask=mask).numpy()
    np.testing.assert_allclose(again[mask], y[mask], rtol=1e-5)


def test_a_mask_has_an_axis_less_than_the_inputs():
    with pytest.raises(ValueError, match="mask .*inputs"):
        BatchNormalization()(numbers(2, 3), training=True, mask=np.ones((2, 3), bool))


def test_every_derivative_with_a_mask_agrees_with_differences():
    layer = BatchNormalization(dtype="float64")
    x, mask = np.random.normal(size=(2, 3, 2)), np.array([[1, 1, 0], [0, 1, 1]], bool)
    layer(x)
    tw.test.check_gradients(
        lambda x, *_: layer(x, training=True, mask=mask),
        [x, *layer.trainable_weights],
        order=2,
    )


@pytest.mark.parametrize(
    "layer", [BatchNormalization, LayerNormalization, GroupNormalization]
)
def test_gamma_and_beta_take_constraints(layer):
    arguments = {"groups": 2} if layer is GroupNormalization else {}
    layer = layer(gamma_constraint="non_neg", beta_constraint="max_norm", **arguments)
    layer.build((None, 4))
    assert layer.gamma.constraint is layer.gamma_constraint
    assert layer.beta.constraint is layer.beta_constraint
    again = type(layer).from_config(layer.get_config())
    assert again.get_config() == layer.get_config()


def test_rms_scaling_has_a_gamma_and_no_beta():
    layer = LayerNormalization(rms_scaling=True, scale=False)
    x = numbers(3, 4)
    expected = x / np.sqrt(x.var(-1, keepdims=True) + 1e-3)
    np.testing.assert_allclose(layer(x), expected, rtol=1e-5)
    assert [w.name for w in layer.weights] == ["gamma"]


# ------------------------------------------------- layers that normalize each example

# Outputs and input gradients of the second row, recorded from Keras 3.15: inputs are 0 to
# 11 modulo 5, the loss is sum(outputs * (0 to 11 modulo 7)), weights are 0.5, 1, 1.5, ...
# in the first and 0.5 less than 0, 0.5, ... in the second.
RECORDED = [
    (LayerNormalization(),
     [-0.810001, 0.124, 1.802004, 4.22401, -1.910011, 0.139994],
     [-2.14566, -3.29088, -1.08809, 1.858702, 0.115565, 4.550362]),
    (LayerNormalization(axis=[1, 2]),
     [0.653894, 3.703278, 7.455942, 11.911882, -2.269055, 1.835247],
     [7.595014, -6.28249, -2.226391, 2.532986, 3.538916, 9.704849]),
    (LayerNormalization(axis=1),
     [0.998006, 0.998006, 0.998006, 0.998006, -0.999875, 0.998006],
     [0.023856, -0.001988, 0.0, 0.001988, 0.000062, 0.005964]),
    (GroupNormalization(3),
     [-0.5, 1.412802, 0.5, 3.825604, -0.405878, 1.542589],
     [2.825603, -1.412802, -3.002204, -0.17519, -2.467794, 0.48225]),
    (GroupNormalization(1, axis=1),
     [-0.527459, 0.17582, 0.879098, 1.582377, -1.230737, -0.527459],
     [2.730999, -1.340114, -0.488278, 0.363558, 0.472606, 1.324442]),
    (RMSNormalization(),
     [0.219971, 0.879883, 1.979736, 3.51953, 0.0, 1.319824],
     [0.81602, -1.007607, -0.851499, -0.255449, 3.29956, 4.775492]),
    (UnitNormalization(),
     [0.179605, 0.359211, 0.538816, 0.718421, 0.0, 0.179605],
     [0.955964, -0.243336, -0.185399, -0.127462, 0.538816, 0.596753]),
    (UnitNormalization(axis=[1, 2]),
     [0.128037, 0.256074, 0.384111, 0.512148, 0.0, 0.128037],
     [0.661174, -0.214094, -0.193105, -0.172115, 0.384111, 0.4051]),
]  # fmt: skip


@pytest.mark.parametrize("layer, outputs, slopes", RECORDED, ids=range(len(RECORDED)))
def test_outputs_and_gradients_are_those_of_keras(layer, outputs, slopes):
    x = tw.constant(np.arange(12, dtype="float32").reshape(1, 2, 6) % 5)
    layer.build(x.shape)
    for i, weight in enumerate(layer.weights):
        steps = np.arange(1, 1 + np.prod(weight.shape)).reshape(weight.shape)
        weight.assign((steps / 2 - i).astype("float32"))
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = layer(x)
        c = np.arange(12, dtype="float32").reshape(1, 2, 6) % 7
        loss = tw.reduce_sum(y * c)
    np.testing.assert_allclose(y.numpy()[0, 1], outputs, rtol=1e-5, atol=2e-6)
    slope = tape.gradient(loss, x).numpy()[0, 1]
    np.testing.assert_allclose(slope, slopes, rtol=1e-5, atol=4e-6)


@pytest.mark.parametrize(
    "layer, names",
    [(LayerNormalization(), ["gamma", "beta"]), (GroupNormalization(2), ["gamma", "beta"]),
     (LayerNormalization(center=False), ["gamma"]), (RMSNormalization(), ["scale"]),
     (GroupNormalization(2, scale=False), ["beta"]), (UnitNormalization(), [])],
)  # fmt: skip
def test_weights_have_the_names_and_the_order_of_keras(layer, names):
    layer.build((None, 4))
    assert [v.name for v in layer.weights] == names
    assert all(v.shape == (4,) for v in layer.weights)
    assert layer.compute_output_shape((None, 4)) == (None, 4)


@pytest.mark.parametrize(
    "layer",
    [LayerNormalization(axis=[1, 2], gamma_regularizer="l2"), GroupNormalization(4, axis=1),
     RMSNormalization(epsilon=0.1), UnitNormalization(axis=(0, 1))],
    ids=lambda layer: type(layer).__name__,
)  # fmt: skip
def test_the_config_of_each_makes_the_same_layer(layer):
    config = layer.get_config()
    assert type(layer).from_config(config).get_config() == config


def test_groups_must_divide_the_channels():
    layer = GroupNormalization(3, name="gn")
    with pytest.raises(ValueError, match="'gn'.*groups .*4, got 3"):
        layer(numbers(2, 4))


def test_groups_of_minus_one_are_the_channels():
    x = numbers(2, 5, 3)
    y = GroupNormalization(-1)(x)
    np.testing.assert_allclose(y, normal(x, (1,), 1e-3), rtol=1e-4, atol=1e-5)


def test_an_axis_must_be_whole():
    with pytest.raises(TypeError, match=r"LayerNormalization: axis .*got 1\.5"):
        LayerNormalization(axis=1.5)


@pytest.mark.parametrize("make", [LayerNormalization, RMSNormalization])
def test_a_layer_built_for_one_rank_serves_others(make):
    x = np.random.default_rng(0).normal(size=(5, 2, 3, 4)).astype("float32")
    layer = make()
    layer.build((None, 3, 4))
    layer.set_weights([np.arange(1.0, 5.0) for _ in layer.weights])
    rows = layer(x.reshape(10, 3, 4))
    np.testing.assert_allclose(layer(x), rows.numpy().reshape(x.shape), rtol=1e-6)
    with pytest.raises(ValueError, match=r"size 4.*axis -1.*got shape \(5, 2, 3, 3\)"):
        layer(x[..., :3])


@pytest.mark.parametrize("mask", [None, [[True, False], [True, True]]])
def test_an_idle_replica_leaves_no_trace_in_moving_moments(mask, monkeypatch):
    """The sums of a job in which the other replica has the same examples."""
    inputs = np.array([[[1.0], [2.0]], [[3.0], [6.0]]], np.float32)
    layer, alone = tw.layers.BatchNormalization(), tw.layers.BatchNormalization()
    alone(inputs, training=True, mask=mask)
    sums = []
    monkeypatch.setattr(normalization, "all_reduce", lambda x: sums.append(x) or x)
    with in_replica_context(ReplicaContext(2, 0, 1.0)):
        layer(inputs, training=True, mask=mask)
    np.testing.assert_allclose(layer.moving_mean, alone.moving_mean, 1e-6)
    np.testing.assert_allclose(layer.moving_variance, alone.moving_variance, 1e-6)
    before = sums.pop()
    monkeypatch.setattr(normalization, "all_reduce", lambda x: sums.append(x) or before)
    with in_replica_context(ReplicaContext(2, 1, 0.0, True)):
        layer(inputs, training=True, mask=mask)
    assert not sums[0].numpy().any()
