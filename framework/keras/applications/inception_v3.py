"""Inception v3: branches of convolutions of several sizes, concatenated."""

from __future__ import annotations

from collections.abc import Sequence

from tapewright.layers import (
    Activation,
    AveragePooling2D,
    Concatenate,
    Conv2D,
    MaxPooling2D,
)
from tapewright.layers.base.symbolic_tensor import KerasTensor

from .architecture import batch_normalization, channel_axis, standard
from .imagenet_utils import _preprocessing, decode_predictions

__all__ = [
    "InceptionV3",
    "decode_predictions",
    "preprocess_input",
]

preprocess_input = _preprocessing("tf")


def _convolution(
    x: KerasTensor,
    filters: int,
    kernel_size: int | Sequence[int],
    strides: int = 1,
    padding: str = "same",
    name: str | None = None,
) -> KerasTensor:
    """Convolve, normalize without a scale, and apply ReLU."""
    x = Conv2D(filters, kernel_size, strides, padding, use_bias=False, name=name)(x)
    x = batch_normalization(3, scale=False, name=name and f"{name}_bn")(x)
    return Activation("relu", name=name and f"{name}_ac")(x)


def _chain(
    x: KerasTensor, *steps: tuple[int, int | tuple[int, int]], shrink: bool = False
) -> KerasTensor:
    """Convolve by each ``(filters, kernel_size)``; with ``shrink`` the last has stride 2."""
    for step in steps[: -1 if shrink else None]:
        x = _convolution(x, *step)
    return _convolution(x, *steps[-1], strides=2, padding="valid") if shrink else x


def _join(name: str | None, *branches: KerasTensor) -> KerasTensor:
    """Concatenate the channels of branches."""
    return Concatenate(channel_axis(3), name=name)(list(branches))


def _stem(x: KerasTensor) -> KerasTensor:
    """Build the first layers, from images to 192 channels."""
    x = _convolution(x, 32, 3, strides=2, padding="valid")
    x = _convolution(x, 32, 3, padding="valid")
    x = _convolution(x, 64, 3)
    x = MaxPooling2D(3, strides=2)(x)
    x = _convolution(x, 80, 1, padding="valid")
    x = _convolution(x, 192, 3, padding="valid")
    return MaxPooling2D(3, strides=2)(x)


def _inception_a(x: KerasTensor, first: int, pooled: int, name: str) -> KerasTensor:
    """Build branches of 1 x 1, 5 x 5 and two 3 x 3 convolutions, and of pooling."""
    return _join(
        name,
        _chain(x, (first, 1)),
        _chain(x, (48, 1), (64, 5)),
        _chain(x, (64, 1), (96, 3), (96, 3)),
        _pooled(x, pooled),
    )


def _pooled(x, filters):
    return _convolution(AveragePooling2D(3, strides=1, padding="same")(x), filters, 1)


def _inception_b(x, n, name):
    """Build branches of 1 x 7 and 7 x 1 convolutions with ``n`` channels."""
    wide, high = (1, 7), (7, 1)
    return _join(
        name,
        _chain(x, (192, 1)),
        _chain(x, (n, 1), (n, wide), (192, high)),
        _chain(x, (n, 1), (n, high), (n, wide), (n, high), (192, wide)),
        _pooled(x, 192),
    )


def _inception_c(x, i):
    """Build branches that end in a fork of 1 x 3 and 3 x 1 convolutions."""

    def fork(y, name):
        return _join(name, _chain(y, (384, (1, 3))), _chain(y, (384, (3, 1))))

    return _join(
        f"mixed{9 + i}",
        _chain(x, (320, 1)),
        fork(_chain(x, (384, 1)), f"mixed9_{i}"),
        fork(_chain(x, (448, 1), (384, 3)), None),
        _pooled(x, 192),
    )


@standard(
    "inception_v3/inception_v3",
    ("9a0d58056eeedaa3f26cb7ebd46da564", "bcbd6486424b2319ff4ef7d526e38f63"),
    default_size=299,
    min_size=75,
)
def InceptionV3(x, options):
    """Inception v3 for image classification, for images of 299 x 299.

    Preprocess images with `keras.applications.inception_v3.preprocess_input`.

    References:
        Szegedy et al., "Rethinking the Inception architecture for computer vision"
        (2016).
    """
    x = _stem(x)
    for i, pooled in enumerate((32, 64, 64)):
        x = _inception_a(x, 64, pooled, f"mixed{i}")
    x = _join(
        "mixed3",
        _chain(x, (384, 3), shrink=True),
        _chain(x, (64, 1), (96, 3), (96, 3), shrink=True),
        MaxPooling2D(3, strides=2)(x),
    )
    for i, filters in enumerate((128, 160, 160, 192), 4):
        x = _inception_b(x, filters, f"mixed{i}")
    x = _join(
        "mixed8",
        _chain(x, (192, 1), (320, 3), shrink=True),
        _chain(x, (192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3), shrink=True),
        MaxPooling2D(3, strides=2)(x),
    )
    for i in range(2):
        x = _inception_c(x, i)
    return options.head(x)
