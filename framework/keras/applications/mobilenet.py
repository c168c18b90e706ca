"""MobileNet: depthwise separable convolutions."""

from __future__ import annotations

import warnings
from functools import partial

from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.layers import (
    Activation,
    Conv2D,
    DepthwiseConv2D,
    Dropout,
    GlobalAveragePooling2D,
    ReLU,
    Reshape,
    ZeroPadding2D,
)
from tapewright.layers.base.symbolic_tensor import KerasTensor

from ..models import Model
from .architecture import Activation as ActivationLike
from .architecture import (
    ImageShape,
    Options,
    WeightFile,
    Weights,
    batch_normalization,
    channels_behind,
    describe,
    in_data_format,
)
from .imagenet_utils import _preprocessing, decode_predictions

__all__ = [
    "MobileNet",
    "decode_predictions",
    "preprocess_input",
]

preprocess_input = _preprocessing("tf")
# Filters and strides of the blocks.
_BLOCKS = (
    (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1), (512, 1),
    (512, 1), (512, 1), (512, 1), (1024, 2), (1024, 1),
)  # fmt: skip
_SIZES = (128, 160, 192, 224)  # of the images for which there are weights
WIDTHS = {0.25: "2_5", 0.5: "5_0", 0.75: "7_5", 1.0: "1_0"}


def MobileNet(
    input_shape: ImageShape = None,
    alpha: float = 1.0,
    depth_multiplier: int = 1,
    dropout: float = 0.001,
    include_top: bool = True,
    weights: Weights = "imagenet",
    input_tensor: KerasTensor | None = None,
    pooling: str | None = None,
    classes: int = 1000,
    classifier_activation: ActivationLike = "softmax",
    name: str | None = None,
) -> Model:
    """MobileNet for image classification on small devices.

    Preprocess images with `keras.applications.mobilenet.preprocess_input`. By default
    the model is named after ``alpha`` and the image size.

    References:
        Howard et al., "MobileNets: efficient convolutional neural networks for mobile
        vision applications" (2017).
    """
    options = Options(
        "MobileNet", include_top, weights, input_tensor, input_shape, pooling, classes,
        classifier_activation, name,
    )  # fmt: skip
    shape = options.image_shape(_square_size(options.input_shape, _SIZES))
    if options.is_imagenet:
        options.require(
            depth_multiplier == 1,
            "with weights='imagenet', depth_multiplier must be 1, got "
            f"{depth_multiplier}",
        )
    rows = _rows_of_weights(options, shape, _SIZES, alpha, WIDTHS)
    options.name = name or f"mobilenet_{alpha:0.2f}_{rows}"
    network = partial(
        _network, alpha=alpha, depth_multiplier=depth_multiplier, dropout=dropout
    )
    url = f"mobilenet/mobilenet_{WIDTHS.get(alpha)}_{rows}_tf"
    return options.build(network, WeightFile(url, without_top="_no_top"), shape)


describe(MobileNet, MobileNet)


def _shape_of_images(options: Options) -> ImageShape:
    """Return the shape of an image, from ``input_shape`` or ``input_tensor``, or None.

    Raises:
        ValueError: If both are given and differ.
    """
    shape = options.input_shape
    if options.input_tensor is None:
        return shape
    of_tensor = channels_behind(tuple(options.input_tensor.shape[1:]))
    options.require(
        shape is None or shape[1] == of_tensor[1],
        f"input_shape and input_tensor differ: {in_data_format(shape)} and "
        f"{in_data_format(of_tensor)}",
    )
    return shape or of_tensor


def _square_size(shape: ImageShape, sizes: tuple[int, ...]) -> int:
    """Return the size of a square image if there are weights for it, else 224."""
    is_square = shape is not None and shape[0] == shape[1]
    return shape[0] if is_square and shape[0] in sizes else 224


def _rows_of_weights(options, shape, sizes, alpha, widths):
    """Return the image size in the names of model and weights.

    Raises:
        ValueError: If there are no weights for the width ``alpha``.
    """
    if not options.is_imagenet:
        return shape[0]
    options.require(
        alpha in widths,
        f"with weights='imagenet', alpha must be one of {list(widths)}, got {alpha}",
    )
    if shape[0] == shape[1] and shape[0] in sizes:
        return shape[0]
    _warn_of_other_size(options, shape)
    return 224


def _warn_of_other_size(options, shape):
    """Warn that weights for images of 224 x 224 are loaded for images of this shape."""
    warnings.warn(
        f"{options.title}: there are no weights for images of the shape "
        f"{in_data_format(shape)}; loading the weights for "
        f"{in_data_format((224, 224, 3))}",
        stacklevel=user_stacklevel(),
    )


def _network(x, options, alpha, depth_multiplier, dropout):
    x = Conv2D(
        int(32 * alpha), 3, strides=2, padding="same", use_bias=False, name="conv1"
    )(x)
    x = batch_normalization(name="conv1_bn")(x)
    x = ReLU(6.0, name="conv1_relu")(x)
    for i, (filters, stride) in enumerate(_BLOCKS, 1):
        x = _block(x, int(filters * alpha), stride, depth_multiplier, i)
    if not options.include_top:
        return options.pool(x)
    x = GlobalAveragePooling2D(keepdims=True)(x)
    x = Dropout(dropout, name="dropout")(x)
    x = Conv2D(options.classes, 1, padding="same", name="conv_preds")(x)
    x = Reshape((options.classes,), name="reshape_2")(x)
    return Activation(options.classifier_activation, name="predictions")(x)


def _block(x, filters, stride, depth_multiplier, i):
    if stride > 1:
        x = ZeroPadding2D(((0, 1), (0, 1)), name=f"conv_pad_{i}")(x)
    x = DepthwiseConv2D(
        3,
        stride,
        padding="same" if stride == 1 else "valid",
        depth_multiplier=depth_multiplier,
        use_bias=False,
        name=f"conv_dw_{i}",
    )(x)
    x = batch_normalization(name=f"conv_dw_{i}_bn")(x)
    x = ReLU(6.0, name=f"conv_dw_{i}_relu")(x)
    x = Conv2D(filters, 1, padding="same", use_bias=False, name=f"conv_pw_{i}")(x)
    x = batch_normalization(name=f"conv_pw_{i}_bn")(x)
    return ReLU(6.0, name=f"conv_pw_{i}_relu")(x)
