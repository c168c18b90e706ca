"""MobileNetV2: inverted residual blocks: expand, convolve each channel, project."""

from __future__ import annotations

from functools import partial

from tapewright.layers import (
    Add,
    Conv2D,
    DepthwiseConv2D,
    ReLU,
)
from tapewright.layers.base.symbolic_tensor import KerasTensor

from ..models import Model
from .architecture import (
    Activation,
    ImageShape,
    Options,
    WeightFile,
    Weights,
    batch_normalization,
    channel_axis,
    describe,
    divisible,
    pad_for_stride,
)
from .imagenet_utils import _preprocessing, decode_predictions
from .mobilenet import _rows_of_weights, _shape_of_images, _square_size

__all__ = ["MobileNetV2", "decode_predictions", "preprocess_input"]

preprocess_input = _preprocessing("tf")
# Filters and strides of the blocks.
BLOCKS = (
    (16, 1), (24, 2), (24, 1), (32, 2), (32, 1), (32, 1), (64, 2), (64, 1), (64, 1),
    (64, 1), (96, 1), (96, 1), (96, 1), (160, 2), (160, 1), (160, 1), (320, 1),
)  # fmt: skip
SIZES = (96, 128, 160, 192, 224)  # of the images for which there are weights
WIDTHS = (0.35, 0.5, 0.75, 1.0, 1.3, 1.4)
_normalization = partial(batch_normalization, epsilon=1e-3, momentum=0.999)


def MobileNetV2(
    input_shape: ImageShape = None,
    alpha: float = 1.0,
    include_top: bool = True,
    weights: Weights = "imagenet",
    input_tensor: KerasTensor | None = None,
    pooling: str | None = None,
    classes: int = 1000,
    classifier_activation: Activation = "softmax",
    name: str | None = None,
) -> Model:
    """MobileNetV2 for image classification on small devices.

    Preprocess images with `keras.applications.mobilenet_v2.preprocess_input`. By
    default the model is named after ``alpha`` and the image size.

    References:
        Sandler et al., "MobileNetV2: inverted residuals and linear bottlenecks" (2018).
    """
    options = Options(
        "MobileNetV2", include_top, weights, input_tensor, input_shape, pooling,
        classes, classifier_activation, name,
    )  # fmt: skip
    shape = options.image_shape(_square_size(_shape_of_images(options), SIZES))
    rows = _rows_of_weights(options, shape, SIZES, alpha, WIDTHS)
    options.name = name or f"mobilenetv2_{alpha:0.2f}_{rows}"
    url = (
        "mobilenet_v2/mobilenet_v2_weights_tf_dim_ordering_tf_kernels_"
        f"{float(alpha)}_{rows}"
    )
    file = WeightFile(url, without_top="_no_top")
    return options.build(partial(_network, alpha=alpha), file, shape)


describe(MobileNetV2, MobileNetV2)


def _network(x, options, alpha):
    x = Conv2D(
        divisible(32 * alpha), 3, 2, padding="same", use_bias=False, name="Conv1"
    )(x)
    x = _normalization(name="bn_Conv1")(x)
    x = ReLU(6.0, name="Conv1_relu")(x)
    for i, (filters, stride) in enumerate(BLOCKS):
        x = _block(x, divisible(int(filters * alpha)), stride, i)
    last = divisible(1280 * alpha) if alpha > 1 else 1280
    x = Conv2D(last, 1, use_bias=False, name="Conv_1")(x)
    x = _normalization(name="Conv_1_bn")(x)
    x = ReLU(6.0, name="out_relu")(x)
    return options.head(x, name=None)


def _block(inputs, filters, stride, i):
    """Inverted residual block; the first block does not expand."""
    name = f"block_{i}" if i else "expanded_conv"
    x, channels = inputs, inputs.shape[channel_axis()]
    if i:
        x = Conv2D(
            6 * channels, 1, padding="same", use_bias=False, name=f"{name}_expand"
        )(x)
        x = _normalization(name=f"{name}_expand_BN")(x)
        x = ReLU(6.0, name=f"{name}_expand_relu")(x)
    x, padding = pad_for_stride(x, 3, stride, f"{name}_pad")
    x = DepthwiseConv2D(3, stride, padding, use_bias=False, name=f"{name}_depthwise")(x)
    x = _normalization(name=f"{name}_depthwise_BN")(x)
    x = ReLU(6.0, name=f"{name}_depthwise_relu")(x)
    x = Conv2D(filters, 1, padding="same", use_bias=False, name=f"{name}_project")(x)
    x = _normalization(name=f"{name}_project_BN")(x)
    if stride == 1 and channels == filters:
        x = Add(name=f"{name}_add")([inputs, x])
    return x
