"""EfficientNetV2: EfficientNet whose first stages fuse two convolutions of a block."""

from __future__ import annotations

import math
from functools import partial

from tapewright.layers import DepthwiseConv2D, Normalization, Rescaling
from tapewright.layers.base.symbolic_tensor import KerasTensor
from tapewright.layers.initializers import Constant

from ..models import Model
from . import efficientnet as v1
from .architecture import (
    Activation,
    ImageShape,
    Options,
    WeightFile,
    Weights,
    channel_axis,
    describe,
    divisible,
)
from .imagenet_utils import STATISTICS, _preprocessing, decode_predictions

__all__ = [
    "EfficientNetV2B0",
    "EfficientNetV2B1",
    "EfficientNetV2B2",
    "EfficientNetV2B3",
    "EfficientNetV2L",
    "EfficientNetV2M",
    "EfficientNetV2S",
    "decode_predictions",
    "preprocess_input",
]

preprocess_input = _preprocessing(None)
# Filters of the first layer; then of each stage blocks, filters, expansion, stride, fused.
STAGES = {
    "b": (
        32,
        (1, 16, 1, 1, True),
        (2, 32, 4, 2, True),
        (2, 48, 4, 2, True),
        (3, 96, 4, 2, False),
        (5, 112, 6, 1, False),
        (8, 192, 6, 2, False),
    ),
    "s": (
        24,
        (2, 24, 1, 1, True),
        (4, 48, 4, 2, True),
        (4, 64, 4, 2, True),
        (6, 128, 4, 2, False),
        (9, 160, 6, 1, False),
        (15, 256, 6, 2, False),
    ),
    "m": (
        24,
        (3, 24, 1, 1, True),
        (5, 48, 4, 2, True),
        (5, 80, 4, 2, True),
        (7, 160, 4, 2, False),
        (14, 176, 6, 1, False),
        (18, 304, 6, 2, False),
        (5, 512, 6, 1, False),
    ),
    "l": (
        32,
        (4, 32, 1, 1, True),
        (7, 64, 4, 2, True),
        (7, 96, 4, 2, True),
        (10, 192, 4, 2, False),
        (19, 224, 6, 1, False),
        (25, 384, 6, 2, False),
        (7, 640, 6, 1, False),
    ),
}
_normalized = partial(v1._normalized, momentum=0.9)


def _variant(label, hashes, default_size, width=1.0, depth=1.0):
    """Return a decorator that turns an empty function into an architecture with its name."""
    default_name = f"efficientnetv2-{label}"
    file = WeightFile(f"efficientnet_v2/{default_name}", hashes)

    def architecture(
        include_top: bool = True,
        weights: Weights = "imagenet",
        input_tensor: KerasTensor | None = None,
        input_shape: ImageShape = None,
        pooling: str | None = None,
        classes: int = 1000,
        classifier_activation: Activation = "softmax",
        include_preprocessing: bool = True,
        name: str = default_name,
    ) -> Model:
        options = Options(
            architecture.__name__, include_top, weights, input_tensor, input_shape,
            pooling, classes, classifier_activation, name,
        )  # fmt: skip
        shape = options.image_shape(default_size)
        is_small = label[0] == "b" and shape[2] == 3
        scaled = _standardized if is_small else Rescaling(1.0 / 128.0, offset=-1)
        network = partial(
            _network, stages=STAGES[label[0]], width=width, depth=depth,
            preprocess=scaled if include_preprocessing else None,
        )  # fmt: skip
        return options.build(network, file, shape)

    return partial(describe, architecture)


def _standardized(x):
    _, mean, deviation = STATISTICS["torch"]
    variance = [each**2 for each in deviation]
    x = Rescaling(1.0 / 255)(x)
    return Normalization(mean=list(mean), variance=variance, axis=channel_axis(3))(x)


def _network(x, options, stages, width, depth, preprocess):
    def scaled(filters):
        return divisible(filters * width, keep=0)

    x = x if preprocess is None else preprocess(x)
    first, *stages = stages
    x = v1._convolution(scaled(first), 3, strides=2, name="stem_conv")(x)
    x = _normalized(x, "stem_")
    total, done = sum(stage[0] for stage in stages), 0
    for i, (blocks, filters, expansion, stride, fused) in enumerate(stages, 1):
        block = _fused_block if fused else _block
        for j in range(math.ceil(depth * blocks)):
            x = block(
                x, scaled(filters), expansion, 1 if j else stride,
                v1.DROP_RATE * done / total, f"block{i}{chr(ord('a') + j)}_",
            )  # fmt: skip
            done += 1
    x = v1._convolution(scaled(1280), 1, name="top_conv")(x)
    x = _normalized(x, "top_")
    return v1._classifier(x, options, 0.2, bias_initializer=Constant(0.0))


def _block(inputs, filters, expansion, stride, rate, name):
    channels = inputs.shape[channel_axis(3)]
    x = v1._convolution(channels * expansion, 1, name=f"{name}expand_conv")(inputs)
    x = _normalized(x, f"{name}expand_")
    x = DepthwiseConv2D(
        3,
        stride,
        padding="same",
        use_bias=False,
        depthwise_initializer=v1._initializer(),
        name=f"{name}dwconv2",
    )(x)
    x = v1._squeeze(_normalized(x, name), max(1, channels // 4), name)
    x = v1._convolution(filters, 1, name=f"{name}project_conv")(x)
    x = _normalized(x, f"{name}project_", None)
    return v1._add_shortcut(x, inputs, stride, rate, name)


def _fused_block(inputs, filters, expansion, stride, rate, name):
    """Block with one 3 x 3 convolution instead of a 1 x 1 and a depthwise convolution."""
    x, size = inputs, 3
    if expansion != 1:
        filters_between = inputs.shape[channel_axis(3)] * expansion
        conv = v1._convolution(
            filters_between, 3, strides=stride, name=f"{name}expand_conv"
        )
        x, size = _normalized(conv(x), f"{name}expand_"), 1
    strides = stride if expansion == 1 else 1
    x = v1._convolution(filters, size, strides=strides, name=f"{name}project_conv")(x)
    x = _normalized(x, f"{name}project_", "activation" if expansion == 1 else None)
    return v1._add_shortcut(x, inputs, stride, rate, name)


@_variant(
    "b0",
    ("21ecbf6da12460d5c40bb2f29ceb2188", "893217f2bb855e2983157299931e43ff"),
    224,
)
def EfficientNetV2B0():
    """EfficientNetV2-B0 for image classification, for images of 224 x 224.

    Without ``include_preprocessing`` the network expects standardized pixels.

    References:
        Tan & Le, "EfficientNetV2: smaller models and faster training" (2021).
    """


@_variant(
    "b1",
    ("069f0534ff22adf035c89e2d9547a9dc", "0e80663031ca32d657f9caa404b6ec37"),
    240,
    1.0,
    1.1,
)
def EfficientNetV2B1():
    """EfficientNetV2-B1 for image classification, for images of 240 x 240.

    Without ``include_preprocessing`` the network expects standardized pixels.

    References:
        Tan & Le, "EfficientNetV2: smaller models and faster training" (2021).
    """


@_variant(
    "b2",
    ("424e49f28180edbde1e94797771950a7", "1dfe2e7a5d45b6632553a8961ea609eb"),
    260,
    1.1,
    1.2,
)
def EfficientNetV2B2():
    """EfficientNetV2-B2 for image classification, for images of 260 x 260.

    Without ``include_preprocessing`` the network expects standardized pixels.

    References:
        Tan & Le, "EfficientNetV2: smaller models and faster training" (2021).
    """


@_variant(
    "b3",
    ("1f1fc43bd98a6e4fd8fdfd551e02c7a0", "f6abf7b5849ac99a89b50dd3fd532856"),
    300,
    1.2,
    1.4,
)
def EfficientNetV2B3():
    """EfficientNetV2-B3 for image classification, for images of 300 x 300.

    Without ``include_preprocessing`` the network expects standardized pixels.

    References:
        Tan & Le, "EfficientNetV2: smaller models and faster training" (2021).
    """


@_variant(
    "s",
    ("e1d88a8495beba45748fedd0cecbe016", "af0682fb74e8c54910f2d4393339c070"),
    384,
)
def EfficientNetV2S():
    """EfficientNetV2-S for image classification, for images of 384 x 384.

    Without ``include_preprocessing`` the network expects pixels in [-1, 1].

    References:
        Tan & Le, "EfficientNetV2: smaller models and faster training" (2021).
    """


@_variant(
    "m",
    ("a3bf6aa3276309f4fc6a34aa114c95cd", "1b8dc055df72dde80d614482840fe342"),
    480,
)
def EfficientNetV2M():
    """EfficientNetV2-M for image classification, for images of 480 x 480.

    Without ``include_preprocessing`` the network expects pixels in [-1, 1].

    References:
        Tan & Le, "EfficientNetV2: smaller models and faster training" (2021).
    """


@_variant(
    "l",
    ("27e6d408b53c7ebc868fefa357689935", "b0b66b5c863aef5b46e8608fe1711615"),
    480,
)
def EfficientNetV2L():
    """EfficientNetV2-L for image classification, for images of 480 x 480.

    Without ``include_preprocessing`` the network expects pixels in [-1, 1].

    References:
        Tan & Le, "EfficientNetV2: smaller models and faster training" (2021).
    """
