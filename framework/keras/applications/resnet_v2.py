"""ResNetV2: ResNet with normalization before each convolution."""

from __future__ import annotations

from functools import partial

from tapewright.layers import Add, Conv2D, MaxPooling2D, ZeroPadding2D

from .architecture import standard
from .imagenet_utils import _preprocessing, decode_predictions
from .resnet import _normalized_relu, _resnet

__all__ = [
    "ResNet101V2",
    "ResNet152V2",
    "ResNet50V2",
    "decode_predictions",
    "preprocess_input",
]

preprocess_input = _preprocessing("tf")


def _stage(x, filters, count, stride, name):
    for i in range(1, count + 1):
        last = i == count
        x = _block(x, filters, stride if last else 1, i == 1, f"{name}_block{i}")
    return x


def _block(x, filters, stride, project, name):
    """Bottleneck block: a 3 x 3 convolution with the stride between two of 1 x 1."""
    y = _normalized_relu(x, f"{name}_preact")
    if project:
        x = Conv2D(4 * filters, 1, strides=stride, name=f"{name}_0_conv")(y)
    elif stride > 1:
        x = MaxPooling2D(1, strides=stride)(x)
    y = Conv2D(filters, 1, use_bias=False, name=f"{name}_1_conv")(y)
    y = _normalized_relu(y, f"{name}_1")
    y = ZeroPadding2D(1, name=f"{name}_2_pad")(y)
    y = Conv2D(filters, 3, strides=stride, use_bias=False, name=f"{name}_2_conv")(y)
    y = _normalized_relu(y, f"{name}_2")
    y = Conv2D(4 * filters, 1, name=f"{name}_3_conv")(y)
    return Add(name=f"{name}_out")([x, y])


_network = partial(_resnet, stage=_stage, strides=(2, 2, 2, 1), preactivated=True)


@standard(
    "resnet/resnet50v2",
    ("3ef43a0b657b3be2300d5770ece849e0", "fac2f116257151a9d068a22e544a4917"),
)
def ResNet50V2(x, options):
    """ResNetV2 with 50 layers, for image classification.

    Preprocess images with `keras.applications.resnet_v2.preprocess_input`.

    References:
        He et al., "Identity mappings in deep residual networks" (2016).
    """
    return _network(x, options, counts=(3, 4, 6, 3))


@standard(
    "resnet/resnet101v2",
    ("6343647c601c52e1368623803854d971", "c0ed64b8031c3730f411d2eb4eea35b5"),
)
def ResNet101V2(x, options):
    """ResNetV2 with 101 layers, for image classification.

    Preprocess images with `keras.applications.resnet_v2.preprocess_input`.

    References:
        He et al., "Identity mappings in deep residual networks" (2016).
    """
    return _network(x, options, counts=(3, 4, 23, 3))


@standard(
    "resnet/resnet152v2",
    ("a49b44d1979771252814e80f8ec446f9", "ed17cf2e0169df9d443503ef94b23b33"),
)
def ResNet152V2(x, options):
    """ResNetV2 with 152 layers, for image classification.

    Preprocess images with `keras.applications.resnet_v2.preprocess_input`.

    References:
        He et al., "Identity mappings in deep residual networks" (2016).
    """
    return _network(x, options, counts=(3, 8, 36, 3))
