"""Xception: depthwise separable convolutions with residual connections."""

from __future__ import annotations

from functools import partial

from tapewright.layers import (
    Activation,
    Add,
    Conv2D,
    MaxPooling2D,
    SeparableConv2D,
)

from .architecture import batch_normalization, standard
from .imagenet_utils import _preprocessing, decode_predictions

__all__ = ["Xception", "decode_predictions", "preprocess_input"]

preprocess_input = _preprocessing("tf")
_separable = partial(SeparableConv2D, padding="same", use_bias=False)


@standard(
    "xception/xception",
    ("0a58e3b7378bc2990ea3b43d5981f1f6", "b0042744bf5b25fce3cb969f33bebb97"),
    default_size=299,
    min_size=71,
)
def Xception(x, options):
    """Xception for image classification, for images of 299 x 299.

    Preprocess images with `keras.applications.xception.preprocess_input`.

    References:
        Chollet, "Xception: deep learning with depthwise separable convolutions" (2017).
    """
    for i, (filters, strides) in enumerate(((32, 2), (64, 1)), 1):
        name = f"block1_conv{i}"
        x = Conv2D(filters, 3, strides=strides, use_bias=False, name=name)(x)
        x = batch_normalization(name=f"{name}_bn")(x)
        x = Activation("relu", name=f"{name}_act")(x)
    for i, filters in ((2, (128, 128)), (3, (256, 256)), (4, (728, 728))):
        x = _shrinking(x, filters, f"block{i}")
    for i in range(5, 13):
        x = Add()([_convolved(x, (728, 728, 728), f"block{i}"), x])
    x = _shrinking(x, (728, 1024), "block13")
    for i, filters in enumerate((1536, 2048), 1):
        name = f"block14_sepconv{i}"
        x = _separable(filters, 3, name=name)(x)
        x = batch_normalization(name=f"{name}_bn")(x)
        x = Activation("relu", name=f"{name}_act")(x)
    return options.head(x)


def _shrinking(x, filters, name):
    """Add separable convolutions and pooling to a shortcut convolution with stride 2."""
    residual = Conv2D(filters[1], 1, strides=2, padding="same", use_bias=False)(x)
    residual = batch_normalization()(residual)
    x = _convolved(x, filters, name)
    x = MaxPooling2D(3, strides=2, padding="same", name=f"{name}_pool")(x)
    return Add()([x, residual])


def _convolved(x, filters, block):
    for i, count in enumerate(filters, 1):
        name = f"{block}_sepconv{i}"
        if name != "block2_sepconv1":  # its input comes from a ReLU
            x = Activation("relu", name=f"{name}_act")(x)
        x = _separable(count, 3, name=name)(x)
        x = batch_normalization(name=f"{name}_bn")(x)
    return x
