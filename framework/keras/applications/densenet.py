"""DenseNet: each convolution receives all previous outputs of its block."""

from __future__ import annotations

from tapewright.layers import (
    Activation,
    AveragePooling2D,
    Concatenate,
    Conv2D,
    MaxPooling2D,
    ZeroPadding2D,
)

from .architecture import channel_axis, standard
from .imagenet_utils import _preprocessing, decode_predictions
from .resnet import _normalization, _normalized_relu

__all__ = [
    "DenseNet121",
    "DenseNet169",
    "DenseNet201",
    "decode_predictions",
    "preprocess_input",
]

preprocess_input = _preprocessing("torch")
GROWTH = 32


def _network(x, options, counts):
    x = ZeroPadding2D(3)(x)
    x = Conv2D(64, 7, strides=2, use_bias=False, name="conv1_conv")(x)
    x = _normalized_relu(x, "conv1")
    x = ZeroPadding2D(1)(x)
    x = MaxPooling2D(3, strides=2, name="pool1")(x)
    for i, count in enumerate(counts, 2):
        for j in range(1, count + 1):
            x = _block(x, f"conv{i}_block{j}")
        if i <= len(counts):
            x = _transition(x, f"pool{i}")
    x = _normalization(name="bn")(x)
    x = Activation("relu", name="relu")(x)
    return options.head(x, named=True)


def _block(x, name):
    y = _normalized_relu(x, f"{name}_0")
    y = Conv2D(4 * GROWTH, 1, use_bias=False, name=f"{name}_1_conv")(y)
    y = _normalized_relu(y, f"{name}_1")
    y = Conv2D(GROWTH, 3, padding="same", use_bias=False, name=f"{name}_2_conv")(y)
    return Concatenate(axis=channel_axis(3), name=f"{name}_concat")([x, y])


def _transition(x, name):
    """Halve the number of channels, rows and columns."""
    x = _normalized_relu(x, name)
    x = Conv2D(x.shape[channel_axis(3)] // 2, 1, use_bias=False, name=f"{name}_conv")(x)
    return AveragePooling2D(2, strides=2, name=f"{name}_pool")(x)


@standard(
    "densenet/densenet121",
    ("9d60b8095a5708f2dcce2bca79d332c7", "30ee3e1110167f948a6b9946edeeb738"),
)
def DenseNet121(x, options):
    """DenseNet with 121 layers, for image classification.

    Preprocess images with `keras.applications.densenet.preprocess_input`.

    References:
        Huang et al., "Densely connected convolutional networks" (2017).
    """
    return _network(x, options, (6, 12, 24, 16))


@standard(
    "densenet/densenet169",
    ("d699b8f76981ab1b30698df4c175e90b", "b8c4d4c20dd625c148057b9ff1c1176b"),
)
def DenseNet169(x, options):
    """DenseNet with 169 layers, for image classification.

    Preprocess images with `keras.applications.densenet.preprocess_input`.

    References:
        Huang et al., "Densely connected convolutional networks" (2017).
    """
    return _network(x, options, (6, 12, 32, 32))


@standard(
    "densenet/densenet201",
    ("1ceb130c1ea1b78c3bf6114dbdfd8807", "c13680b51ded0fb44dff2d8f86ac8bb1"),
)
def DenseNet201(x, options):
    """DenseNet with 201 layers, for image classification.

    Preprocess images with `keras.applications.densenet.preprocess_input`.

    References:
        Huang et al., "Densely connected convolutional networks" (2017).
    """
    return _network(x, options, (6, 12, 48, 32))
