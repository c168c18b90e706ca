"""ResNet: stages of bottleneck blocks with residual connections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tapewright.layers import (
    Activation,
    Add,
    Conv2D,
    MaxPooling2D,
    ZeroPadding2D,
)
from tapewright.layers.base.symbolic_tensor import KerasTensor

from .architecture import Options, batch_normalization, standard
from .imagenet_utils import _preprocessing, decode_predictions

__all__ = [
    "ResNet101",
    "ResNet152",
    "ResNet50",
    "decode_predictions",
    "preprocess_input",
]

preprocess_input = _preprocessing("caffe")
_normalization = partial(batch_normalization, axis=3, epsilon=1.001e-5)


def _normalized_relu(x, name):
    x = _normalization(name=f"{name}_bn")(x)
    return Activation("relu", name=f"{name}_relu")(x)


def _resnet(
    x: KerasTensor,
    options: Options,
    stage: Callable[..., KerasTensor],
    counts: Sequence[int],
    strides: Sequence[int],
    preactivated: bool = False,
) -> KerasTensor:
    """Build a network of four stages, ``stage(x, filters, count, stride, name)``.

    ``preactivated``: blocks begin with normalization and ReLU, as in ResNetV2.
    """
    x = ZeroPadding2D(3, name="conv1_pad")(x)
    x = Conv2D(64, 7, strides=2, name="conv1_conv")(x)
    if not preactivated:
        x = _normalized_relu(x, "conv1")
    x = ZeroPadding2D(1, name="pool1_pad")(x)
    x = MaxPooling2D(3, strides=2, name="pool1_pool")(x)
    for i, (count, stride) in enumerate(zip(counts, strides)):
        x = stage(x, 64 << i, count, stride, f"conv{i + 2}")
    if preactivated:
        x = _normalized_relu(x, "post")
    return options.head(x, named=True)


def _stage(x, filters, count, stride, name):
    for i in range(1, count + 1):
        x = _block(x, filters, stride if i == 1 else 1, i == 1, f"{name}_block{i}")
    return x


def _block(x, filters, stride, project, name):
    """Bottleneck block: a 3 x 3 convolution between two of 1 x 1, and a projected shortcut."""
    shortcut = x
    if project:
        shortcut = Conv2D(4 * filters, 1, strides=stride, name=f"{name}_0_conv")(x)
        shortcut = _normalization(name=f"{name}_0_bn")(shortcut)
    x = Conv2D(filters, 1, strides=stride, name=f"{name}_1_conv")(x)
    x = _normalized_relu(x, f"{name}_1")
    x = Conv2D(filters, 3, padding="same", name=f"{name}_2_conv")(x)
    x = _normalized_relu(x, f"{name}_2")
    x = Conv2D(4 * filters, 1, name=f"{name}_3_conv")(x)
    x = _normalization(name=f"{name}_3_bn")(x)
    x = Add(name=f"{name}_add")([shortcut, x])
    return Activation("relu", name=f"{name}_out")(x)


_network = partial(_resnet, stage=_stage, strides=(1, 2, 2, 2))


@standard(
    "resnet/resnet50",
    ("2cb95161c43110f7111970584f804107", "4d473c1dd8becc155b73f8504c6f6626"),
)
def ResNet50(x, options):
    """ResNet with 50 layers, for image classification.

    Preprocess images with `keras.applications.resnet.preprocess_input`.

    References:
        He et al., "Deep residual learning for image recognition" (2015).

    Example:
        >>> import numpy as np
        >>> resnet = keras.applications.resnet
        >>> images = resnet.preprocess_input(np.zeros((1, 224, 224, 3)))
        >>> scores = resnet.ResNet50().predict(images)  # doctest: +SKIP
        >>> resnet.decode_predictions(scores, top=3)  # doctest: +SKIP
    """
    return _network(x, options, counts=(3, 4, 6, 3))


@standard(
    "resnet/resnet101",
    ("f1aeb4b969a6efcfb50fad2f0c20cfc5", "88cf7a10940856eca736dc7b7e228a21"),
)
def ResNet101(x, options):
    """ResNet with 101 layers, for image classification.

    Preprocess images with `keras.applications.resnet.preprocess_input`.

    References:
        He et al., "Deep residual learning for image recognition" (2015).
    """
    return _network(x, options, counts=(3, 4, 23, 3))


@standard(
    "resnet/resnet152",
    ("100835be76be38e30d865e96f2aaae62", "ee4c566cf9a93f14d82f913c2dc6dd0c"),
)
def ResNet152(x, options):
    """ResNet with 152 layers, for image classification.

    Preprocess images with `keras.applications.resnet.preprocess_input`.

    References:
        He et al., "Deep residual learning for image recognition" (2015).
    """
    return _network(x, options, counts=(3, 8, 36, 3))
