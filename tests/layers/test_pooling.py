"""Pooling layers: what the numbers of Keras, in test_spatial_keras, do not show."""

import numpy as np
import pytest

import tapewright as tw
from tapewright import layers
from tapewright.layers import (
    AveragePooling1D,
    GlobalAveragePooling1D,
    GlobalAveragePooling2D,
    MaxPooling1D,
    MaxPooling2D,
)


def numbers(*shape):
    return np.random.normal(size=shape).astype("float32")


def test_strides_are_the_pool_size_by_default():
    layer = MaxPooling2D((2, 3))
    assert layer.strides == (2, 3) and MaxPooling1D().get_config()["strides"] == (2,)


def test_the_pool_size_of_a_maximum_has_a_default_and_that_of_a_mean_has_none():
    assert MaxPooling2D().pool_size == (2, 2)
    with pytest.raises(TypeError, match="pool_size"):
        AveragePooling1D()


def test_margins_do_not_count_in_a_mean():
    y = AveragePooling1D(2, 1, "same")([[[1.0], [2.0], [6.0]]])
    assert y.numpy().ravel().tolist() == [1.5, 4.0, 6.0]


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
@pytest.mark.parametrize("traced", [False, True])
def test_masked_steps_do_not_count_in_a_global_mean(keepdims, data_format, traced):
    x, mask = numbers(2, 4, 3), np.array([[1, 1, 0, 1], [0, 1, 0, 0]], bool)
    expected = np.stack([x[i][mask[i]].mean(0, keepdims=keepdims) for i in range(2)])
    layer = GlobalAveragePooling1D(data_format, keepdims)
    if data_format == "channels_first":
        x = x.swapaxes(1, 2)
        expected = expected.swapaxes(1, 2) if keepdims else expected
    call = tw.function(layer) if traced else layer
    np.testing.assert_allclose(call(x, mask=mask), expected, rtol=1e-5, atol=1e-6)


def test_a_mask_that_a_tensor_carries_is_used_and_ends_there():
    x = tw.constant([[[1.0], [5.0]]])
    x._keras_mask = tw.constant([[True, False]])
    layer = GlobalAveragePooling1D()
    y = layer(x, mask=x._keras_mask)
    assert y.numpy().tolist() == [[1.0]]
    assert layer.compute_mask(x, x._keras_mask) is None


def test_a_global_mean_of_masked_steps_alone_is_nan():
    y = GlobalAveragePooling1D()(numbers(1, 2, 1), mask=np.zeros((1, 2), bool))
    assert np.isnan(y.numpy()).all()


def test_sizes_may_be_unknown_in_a_trace():
    layer, x = MaxPooling2D(padding="same"), numbers(2, 5, 4, 3)
    traced = tw.function(layer, input_signature=[tw.TensorSpec([None, None, None, 3])])
    np.testing.assert_array_equal(traced(x), layer(x))
    assert traced(x[:, :3]).shape == (2, 2, 2, 3)


def test_shapes_with_unknown_sizes():
    assert MaxPooling2D(3, 2).compute_output_shape((None, None, 8, 5)) == (
        *(None, None),
        *(3, 5),
    )
    shape = (None, 3, None, None)
    assert GlobalAveragePooling2D("channels_first").compute_output_shape(shape) == (
        None,
        3,
    )


def test_short_names_are_the_same_classes():
    assert layers.MaxPool2D is MaxPooling2D
    assert layers.AvgPool1D is AveragePooling1D
    assert layers.GlobalAvgPool2D is GlobalAveragePooling2D


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: MaxPooling2D(0), "pool_size .*2.*got 0"),
        (lambda: MaxPooling2D(2, strides=(1, 2, 3)), r"strides .*2.*got \(1, 2, 3\)"),
        (lambda: MaxPooling1D(2, padding="causal"), "padding .*'valid'.*got 'causal'"),
        (
            lambda: layers.AdaptiveMaxPooling1D(10**9),
            "output_size .*4096.*got 1000000000",
        ),
        (
            lambda: GlobalAveragePooling2D("first"),
            "data_format .*'channels_last'.*got 'first'",
        ),
    ],
)
def test_wrong_arguments_are_named(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_inputs_smaller_than_the_window_are_refused():
    with pytest.raises(tw.errors.ShapeError, match="must not exceed the input"):
        MaxPooling2D(3)(numbers(1, 2, 5, 1))
    with pytest.raises(tw.errors.ShapeError, match="must not be smaller than a window"):
        MaxPooling2D(3).compute_output_shape((1, 2, 5, 1))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32"])
def test_the_global_mean_of_whole_numbers_is_none_itself(dtype):
    x = np.array([[[1], [0], [1], [0]]], dtype)
    assert GlobalAveragePooling1D()(x).numpy().tolist() == [[0.5]]
    masked = GlobalAveragePooling1D()(x, mask=np.array([[True, True, True, False]]))
    np.testing.assert_allclose(masked, [[2 / 3]], rtol=1e-6)
    assert GlobalAveragePooling2D()(x[:, None]).dtype is tw.float32


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64"])
@pytest.mark.parametrize(
    "layer",
    [lambda n: AveragePooling1D(2), layers.AdaptiveAveragePooling1D],
    ids=["windows", "adaptive"],
)
def test_the_means_of_whole_numbers_are_none_themselves(layer, dtype):
    x = np.array([[[1], [0], [1], [1]]], dtype)
    means = layer(2)(x)
    assert means.dtype is tw.float32 and means.numpy().ravel().tolist() == [0.5, 1.0]
    assert layer(2)(layers.Input((4, 1), dtype=dtype)).dtype == "float32"
    unchanged = layers.AdaptiveAveragePooling1D(4)(x)
    assert unchanged.dtype is tw.float32
