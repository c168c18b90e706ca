"""EfficientNet: inverted residual blocks, scaled in width, depth and image size."""

from __future__ import annotations

import math
from typing import Any

from tapewright.layers import (
    Activation,
    Add,
    Conv2D,
    DepthwiseConv2D,
    Dropout,
    GlobalAveragePooling2D,
    Multiply,
    Normalization,
    Rescaling,
    Reshape,
)
from tapewright.layers.base.symbolic_tensor import KerasTensor
from tapewright.layers.initializers import VarianceScaling

from .architecture import (
    STORAGE,
    Options,
    batch_normalization,
    channel_axis,
    divisible,
    in_data_format,
    pad_for_stride,
    standard,
)
from .imagenet_utils import STATISTICS, _preprocessing, decode_predictions

__all__ = [
    "EfficientNetB0",
    "EfficientNetB1",
    "EfficientNetB2",
    "EfficientNetB3",
    "EfficientNetB4",
    "EfficientNetB5",
    "EfficientNetB6",
    "EfficientNetB7",
    "decode_predictions",
    "preprocess_input",
]

preprocess_input = _preprocessing(None)
# Of each stage: kernel size, blocks, filters, expansion, stride.
STAGES = (
    (3, 1, 16, 1, 1),
    (3, 2, 24, 6, 2),
    (5, 2, 40, 6, 2),
    (3, 3, 80, 6, 2),
    (5, 3, 112, 6, 1),
    (5, 4, 192, 6, 2),
    (3, 1, 320, 6, 1),
)
DROP_RATE = 0.2  # of whole blocks, reached at the last one


def _initializer() -> VarianceScaling:
    """Return the initializer of convolution kernels."""
    return VarianceScaling(2.0, "fan_out", "truncated_normal")


def _convolution(filters: int, size: int, **kwargs: Any) -> Conv2D:
    """Return a convolution without a bias."""
    kwargs = {"padding": "same", "use_bias": False} | kwargs
    return Conv2D(filters, size, kernel_initializer=_initializer(), **kwargs)


def _normalized(
    x: KerasTensor, prefix: str, activation: str | None = "activation", **kwargs: Any
) -> KerasTensor:
    """Normalize, then apply swish unless ``activation``, a part of the name, is None."""
    x = batch_normalization(3, name=f"{prefix}bn", **kwargs)(x)
    if activation is None:
        return x
    return Activation("swish", name=f"{prefix}{activation}")(x)


def _squeeze(x: KerasTensor, filters: int, name: str) -> KerasTensor:
    """Squeeze and excitation: scale channels by weights computed from their means."""
    y = GlobalAveragePooling2D(name=f"{name}se_squeeze")(x)
    channels = x.shape[channel_axis(3)]
    y = Reshape(in_data_format((1, 1, channels)), name=f"{name}se_reshape")(y)
    for count, kind, part in (
        (filters, "swish", "reduce"),
        (channels, "sigmoid", "expand"),
    ):
        y = _convolution(
            count, 1, activation=kind, use_bias=True, name=f"{name}se_{part}"
        )(y)
    return Multiply(name=f"{name}se_excite")([x, y])


def _add_shortcut(
    x: KerasTensor, inputs: KerasTensor, stride: int, rate: float, name: str
) -> KerasTensor:
    """Add the inputs of a block if shapes match, with stochastic depth in training."""
    axis = channel_axis(3)
    if stride != 1 or inputs.shape[axis] != x.shape[axis]:
        return x
    if rate:
        x = Dropout(rate, noise_shape=(None, 1, 1, 1), name=f"{name}drop")(x)
    return Add(name=f"{name}add")([x, inputs])


def _classifier(
    x: KerasTensor, options: Options, dropout: float, **kwargs: Any
) -> KerasTensor:
    """Return the outputs for the last feature maps."""
    if not options.include_top:
        return options.pool(x, named=True)
    x = GlobalAveragePooling2D(name="avg_pool")(x)
    x = Dropout(dropout, name="top_dropout")(x)
    kernel = VarianceScaling(1 / 3, "fan_out", "uniform")
    return options.classify(x, kernel_initializer=kernel, **kwargs)


def _network(x, options, width, depth, dropout):
    x = Rescaling(1.0 / 255.0)(x)
    x = Normalization(axis=channel_axis(3))(x)
    if options.is_imagenet:  # its weights divide by the variance, not by its root
        _, _, deviations = STATISTICS["torch"]
        scales = [1.0 / math.sqrt(deviation) for deviation in deviations]
        if channel_axis() == 1:
            scales = [[[scale]] for scale in scales]
        x = Rescaling(scales)(x)
    x, padding = pad_for_stride(x, 3, 2, "stem_conv_pad")
    filters = divisible(32 * width)
    x = _convolution(filters, 3, strides=2, padding=padding, name="stem_conv")(x)
    x = _normalized(x, "stem_")
    total, done = sum(math.ceil(depth * stage[1]) for stage in STAGES), 0
    for i, (kernel, blocks, filters, expansion, stride) in enumerate(STAGES, 1):
        for j in range(math.ceil(depth * blocks)):
            x = _block(
                x, kernel, divisible(filters * width), expansion, 1 if j else stride,
                DROP_RATE * done / total, f"block{i}{chr(ord('a') + j)}_",
            )  # fmt: skip
            done += 1
    x = _convolution(divisible(1280 * width), 1, name="top_conv")(x)
    return _classifier(_normalized(x, "top_"), options, dropout)


def _block(inputs, kernel, filters, expansion, stride, rate, name):
    x, channels = inputs, inputs.shape[channel_axis(3)]
    if expansion != 1:
        x = _convolution(channels * expansion, 1, name=f"{name}expand_conv")(x)
        x = _normalized(x, f"{name}expand_")
    x, padding = pad_for_stride(x, kernel, stride, f"{name}dwconv_pad")
    x = DepthwiseConv2D(
        kernel,
        stride,
        padding,
        use_bias=False,
        depthwise_initializer=_initializer(),
        name=f"{name}dwconv",
    )(x)
    x = _squeeze(_normalized(x, name), max(1, channels // 4), name)
    x = _convolution(filters, 1, name=f"{name}project_conv")(x)
    x = _normalized(x, f"{name}project_", None)
    return _add_shortcut(x, inputs, stride, rate, name)


def _variant(name, hashes, default_size):
    url = f"{STORAGE}keras-applications/{name}"
    return standard(url, hashes, default_size, ending="")


@_variant(
    "efficientnetb0",
    ("902e53a9f72be733fc0bcb005b3ebbac", "50bc09e76180e00e4465e1a485ddc09d"),
    default_size=224,
)
def EfficientNetB0(x, options):
    """EfficientNet-B0 for image classification, for images of 224 x 224.

    It accepts pixels in [0, 255] and scales them itself.

    References:
        Tan & Le, "EfficientNet: rethinking model scaling for convolutional neural
        networks" (2019).
    """
    return _network(x, options, 1.0, 1.0, 0.2)


@_variant(
    "efficientnetb1",
    ("1d254153d4ab51201f1646940f018540", "74c4e6b3e1f6a1eea24c589628592432"),
    default_size=240,
)
def EfficientNetB1(x, options):
    """EfficientNet-B1 for image classification, for images of 240 x 240.

    It accepts pixels in [0, 255] and scales them itself.

    References:
        Tan & Le, "EfficientNet: rethinking model scaling for convolutional neural
        networks" (2019).
    """
    return _network(x, options, 1.0, 1.1, 0.2)


@_variant(
    "efficientnetb2",
    ("b15cce36ff4dcbd00b6dd88e7857a6ad", "111f8e2ac8aa800a7a99e3239f7bfb39"),
    default_size=260,
)
def EfficientNetB2(x, options):
    """EfficientNet-B2 for image classification, for images of 260 x 260.

    It accepts pixels in [0, 255] and scales them itself.

    References:
        Tan & Le, "EfficientNet: rethinking model scaling for convolutional neural
        networks" (2019).
    """
    return _network(x, options, 1.1, 1.2, 0.3)


@_variant(
    "efficientnetb3",
    ("ffd1fdc53d0ce67064dc6a9c7960ede0", "af6d107764bb5b1abb91932881670226"),
    default_size=300,
)
def EfficientNetB3(x, options):
    """EfficientNet-B3 for image classification, for images of 300 x 300.

    It accepts pixels in [0, 255] and scales them itself.

    References:
        Tan & Le, "EfficientNet: rethinking model scaling for convolutional neural
        networks" (2019).
    """
    return _network(x, options, 1.2, 1.4, 0.3)


@_variant(
    "efficientnetb4",
    ("18c95ad55216b8f92d7e70b3a046e2fc", "ebc24e6d6c33eaebbd558eafbeedf1ba"),
    default_size=380,
)
def EfficientNetB4(x, options):
    """EfficientNet-B4 for image classification, for images of 380 x 380.

    It accepts pixels in [0, 255] and scales them itself.

    References:
        Tan & Le, "EfficientNet: rethinking model scaling for convolutional neural
        networks" (2019).
    """
    return _network(x, options, 1.4, 1.8, 0.4)


@_variant(
    "efficientnetb5",
    ("ace28f2a6363774853a83a0b21b9421a", "38879255a25d3c92d5e44e04ae6cec6f"),
    default_size=456,
)
def EfficientNetB5(x, options):
    """EfficientNet-B5 for image classification, for images of 456 x 456.

    It accepts pixels in [0, 255] and scales them itself.

    References:
        Tan & Le, "EfficientNet: rethinking model scaling for convolutional neural
        networks" (2019).
    """
    return _network(x, options, 1.6, 2.2, 0.4)


@_variant(
    "efficientnetb6",
    ("165f6e37dce68623721b423839de8be5", "9ecce42647a20130c1f39a5d4cb75743"),
    default_size=528,
)
def EfficientNetB6(x, options):
    """EfficientNet-B6 for image classification, for images of 528 x 528.

    It accepts pixels in [0, 255] and scales them itself.

    References:
        Tan & Le, "EfficientNet: rethinking model scaling for convolutional neural
        networks" (2019).
    """
    return _network(x, options, 1.8, 2.6, 0.5)


@_variant(
    "efficientnetb7",
    ("8c03f828fec3ef71311cd463b6759d99", "cbcfe4450ddf6f3ad90b1b398090fe4a"),
    default_size=600,
)
def EfficientNetB7(x, options):
    """EfficientNet-B7 for image classification, for images of 600 x 600.

    It accepts pixels in [0, 255] and scales them itself.

    References:
        Tan & Le, "EfficientNet: rethinking model scaling for convolutional neural
        networks" (2019).
    """
    return _network(x, options, 2.0, 3.1, 0.5)
