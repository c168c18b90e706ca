"""Convolution layers: what the numbers of Keras, in test_spatial_keras, do not show."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import layers
from tapewright.layers import (
    Conv1D,
    Conv2D,
    Conv2DTranspose,
    Conv3DTranspose,
    DepthwiseConv2D,
    SeparableConv1D,
    SeparableConv2D,
)


def numbers(*shape):
    return np.random.normal(size=shape).astype("float32")


@pytest.mark.parametrize(
    "layer, names, shapes",
    [
        (Conv2D(6, (3, 2), groups=2), ["kernel", "bias"], [(3, 2, 2, 6), (6,)]),
        (Conv2DTranspose(5, (3, 2)), ["kernel", "bias"], [(3, 2, 5, 4), (5,)]),
        (
            DepthwiseConv2D(3, depth_multiplier=2),
            ["kernel", "bias"],
            [(3, 3, 4, 2), (8,)],
        ),
        (
            SeparableConv2D(5, 3, depth_multiplier=2),
            ["depthwise_kernel", "pointwise_kernel", "bias"],
            [(3, 3, 4, 2), (1, 1, 8, 5), (5,)],
        ),
    ],
    ids=["conv", "transposed", "depthwise", "separable"],
)
def test_weights_are_named_and_laid_out_as_in_keras(layer, names, shapes):
    layer.build((None, 8, 8, 4))
    assert [w.name for w in layer.weights] == names
    assert [tuple(w.shape) for w in layer.weights] == shapes


def test_a_layer_without_bias_has_only_a_kernel():
    layer = Conv1D(2, 3, use_bias=False)
    layer.build((None, None, 2))
    assert [w.name for w in layer.weights] == ["kernel"] and layer.bias is None


def test_a_causal_convolution_sees_nothing_of_the_future():
    layer, x = Conv1D(2, 3, padding="causal", dilation_rate=2), numbers(1, 9, 2)
    before = layer(x).numpy()
    x[:, 5:] += 1
    after = layer(x).numpy()
    np.testing.assert_array_equal(after[:, :5], before[:, :5])
    assert (after[:, 5] != before[:, 5]).all()


def test_a_subclass_can_use_the_convolution_or_give_its_own():
    class Doubled(Conv2D):
        def convolution_op(self, inputs, kernel):
            return super().convolution_op(inputs, 2.0 * kernel)

    class Own(Conv2D):
        def call(self, inputs):
            return self.convolution_op(inputs, 2.0 * self.kernel) + self.bias

    x = tw.reshape(tw.range(24.0), (1, 3, 4, 2))
    ones = {"kernel_initializer": "ones", "bias_initializer": "ones"}
    expected = 2.0 * Conv2D(3, 2, kernel_initializer="ones")(x) + 1.0
    for kind in (Doubled, Own):
        np.testing.assert_array_equal(kind(3, 2, **ones)(x), expected)


def test_regularizers_give_penalties_and_constraints_go_to_the_weights():
    layer = Conv2D(
        2,
        3,
        kernel_initializer="ones",
        kernel_regularizer="l2",
        bias_initializer="ones",
        bias_regularizer="l1",
        kernel_constraint="non_neg",
        bias_constraint="max_norm",
    )
    layer.build((None, 4, 4, 1))
    np.testing.assert_allclose(layer.losses, [0.01 * 18, 0.01 * 2], rtol=1e-6)
    assert type(layer.kernel.constraint).__name__ == "NonNeg"
    assert type(layer.bias.constraint).__name__ == "MaxNorm"


def test_an_activity_regularizer_adds_a_loss():
    layer = Conv2D(1, 1, kernel_initializer="ones", activity_regularizer="l2")
    layer(np.full((2, 1, 1, 1), 3.0, "float32"))
    np.testing.assert_allclose(layer.losses, [0.01 * 18 / 2], rtol=1e-6)


def test_integers_are_cast():
    y = Conv2D(1, 1, kernel_initializer="ones")(np.full((1, 2, 2, 1), 7, np.uint8))
    assert y.dtype == "float32" and (y.numpy() == 7).all()


def test_one_number_stands_for_every_axis():
    one, each = Conv2D(2, 3, 2, dilation_rate=1), Conv2D(2, (3, 3), (2, 2))
    for name in ("kernel_size", "strides", "dilation_rate"):
        assert getattr(one, name) == getattr(each, name)
    assert one.compute_output_shape((None, None, 7, 1)) == (None, None, 3, 2)


def test_sizes_may_be_unknown_in_a_trace():
    layer, x = Conv2D(2, 3, 2, "same"), numbers(2, 5, 6, 3)
    expected = layer(x)
    traced = tw.function(layer, input_signature=[tw.TensorSpec([None, None, None, 3])])
    np.testing.assert_allclose(traced(x), expected, rtol=1e-5, atol=1e-6)
    assert traced(x[:1, :3]).shape == (1, 2, 3, 2)


def test_a_layer_costs_no_ops_beyond_convolution_bias_and_activation():
    layer = Conv2D(2, 3, activation="relu")
    layer.build((None, 8, 8, 1))
    traced = tw.function(layer, input_signature=[tw.TensorSpec([None, 8, 8, 1])])
    text = str(traced.get_concrete_function())
    assert "transpose" not in text and "pad" not in text


def test_old_names_are_the_same_classes():
    assert layers.Convolution2D is Conv2D
    assert layers.Convolution2DTranspose is Conv2DTranspose
    assert layers.SeparableConvolution1D is SeparableConv1D


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: Conv2D(0, 3), "filters .*got 0"),
        (lambda: Conv2D(2, (3, 3, 3)), r"kernel_size .*2.*got \(3, 3, 3\)"),
        (lambda: Conv2D(2, 0), "kernel_size .*2.*got 0"),
        (lambda: Conv2D(2, 3, strides=1.5), r"strides .*2.*got 1\.5"),
        (lambda: Conv2D(2, 3, padding="causal"), "padding .*'valid'"),
        (lambda: Conv1D(2, 3, padding="full"), "padding .*'valid'"),
        (
            lambda: Conv2D(2, 3, data_format="NHWC"),
            "data_format .*'channels_last'.*got 'NHWC'",
        ),
        (lambda: Conv2D(3, 3, groups=2), "filters .*got 3 and 2"),
        (
            lambda: Conv2D(2, 3, 2, dilation_rate=2),
            r"strides and dilation_rate.*1.*got \(2, 2\) and \(2, 2\)",
        ),
        (
            lambda: Conv2DTranspose(2, 3, 2, output_padding=2),
            r"output_padding .*got \(2, 2\) for \(2, 2\)",
        ),
        (lambda: DepthwiseConv2D(3, depth_multiplier=0), "depth_multiplier .*got 0"),
    ],
)
def test_wrong_arguments_are_named(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_inputs_smaller_than_the_window_are_refused():
    layer = Conv2D(2, 3)
    with pytest.raises(tw.errors.ShapeError, match=r"window of 3 .*\(2, 5\)"):
        layer(numbers(1, 2, 5, 1))
    assert layer.weights == []
    layer(numbers(1, 5, 5, 1))
    with pytest.raises(tw.errors.ShapeError):
        layer(numbers(1, 2, 5, 1))


def test_other_ranks_and_channels_are_refused():
    layer = Conv2D(2, 3)
    with pytest.raises(tw.errors.ShapeError, match="rank 4"):
        layer(numbers(5, 5, 1))
    layer(numbers(1, 5, 5, 1))
    with pytest.raises(
        tw.errors.ShapeError, match=r"size 1.*axis -1.*got shape \(1, 5, 5, 2\)"
    ):
        layer(numbers(1, 5, 5, 2))
    with pytest.raises(
        tw.errors.ShapeError, match=r"channels .*groups=2.*got shape \(1, 2, 2, 3\)"
    ):
        Conv2D(4, 1, groups=2)(numbers(1, 2, 2, 3))


def test_a_3d_transpose_takes_data_format_before_output_padding():
    layer = Conv3DTranspose(1, 2, 2, "same", "channels_first", 1)
    assert layer.data_format == "channels_first" and layer.output_padding == (1, 1, 1)


def test_upsampling_by_a_transpose_then_sampling_is_the_adjoint():
    # <conv(x), y> = <x, conv_transpose(y)>
    down = Conv2D(3, 3, 2, "same", use_bias=False)
    up = Conv2DTranspose(2, 3, 2, "same", use_bias=False)
    x, y = numbers(2, 6, 8, 2), numbers(2, 3, 4, 3)
    down.build(x.shape)
    up.build(y.shape)
    up.kernel.assign(down.kernel)
    left = np.vdot(down(x).numpy(), y)
    np.testing.assert_allclose(left, np.vdot(x, up(y).numpy()), rtol=1e-4)
