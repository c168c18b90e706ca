"""Inception-ResNet v2: Inception blocks with scaled residual connections."""

from __future__ import annotations

from tapewright.layers import Activation, Conv2D, MaxPooling2D
from tapewright.layers.applications import CustomScaleLayer

from .architecture import channel_axis, standard
from .imagenet_utils import _preprocessing, decode_predictions
from .inception_v3 import _chain, _convolution, _inception_a, _join, _stem

__all__ = ["InceptionResNetV2", "decode_predictions", "preprocess_input"]

preprocess_input = _preprocessing("tf")
# Name -> the branches of a block, each a list of (filters, kernel size).
_BLOCKS = {
    "block35": ([(32, 1)], [(32, 1), (32, 3)], [(32, 1), (48, 3), (64, 3)]),
    "block17": ([(192, 1)], [(128, 1), (160, (1, 7)), (192, (7, 1))]),
    "block8": ([(192, 1)], [(192, 1), (224, (1, 3)), (256, (3, 1))]),
}


@standard(
    "inception_resnet_v2/inception_resnet_v2",
    ("e693bd0210a403b3192acc6073ad2e96", "d19885ff4a710c122648d3b5c3b684e4"),
    default_size=299,
    min_size=75,
)
def InceptionResNetV2(x, options):
    """Inception-ResNet v2 for image classification, for images of 299 x 299.

    Preprocess images with `keras.applications.inception_resnet_v2.preprocess_input`.

    References:
        Szegedy et al., "Inception-v4, Inception-ResNet and the impact of residual
        connections on learning" (2017).
    """
    x = _inception_a(_stem(x), 96, 64, "mixed_5b")
    for i in range(1, 11):
        x = _block(x, "block35", i, 0.17)
    x = _join(
        "mixed_6a",
        _chain(x, (384, 3), shrink=True),
        _chain(x, (256, 1), (256, 3), (384, 3), shrink=True),
        MaxPooling2D(3, strides=2)(x),
    )
    for i in range(1, 21):
        x = _block(x, "block17", i, 0.1)
    x = _join(
        "mixed_7a",
        _chain(x, (256, 1), (384, 3), shrink=True),
        _chain(x, (256, 1), (288, 3), shrink=True),
        _chain(x, (256, 1), (288, 3), (320, 3), shrink=True),
        MaxPooling2D(3, strides=2)(x),
    )
    for i in range(1, 10):
        x = _block(x, "block8", i, 0.2)
    x = _block(x, "block8", 10, 1.0, last=True)
    return options.head(_convolution(x, 1536, 1, name="conv_7b"))


def _block(x, kind, i, scale, last=False):
    name = f"{kind}_{i}"
    y = _join(f"{name}_mixed", *[_chain(x, *steps) for steps in _BLOCKS[kind]])
    y = Conv2D(x.shape[channel_axis(3)], 1, padding="same", name=f"{name}_conv")(y)
    x = CustomScaleLayer(scale)([x, y])
    return x if last else Activation("relu", name=f"{name}_ac")(x)
