"""VGG: blocks of 3 x 3 convolutions and pooling, then three dense layers."""

from __future__ import annotations

from collections.abc import Sequence

from tapewright.layers import Conv2D, Dense, Flatten, MaxPooling2D
from tapewright.layers.base.symbolic_tensor import KerasTensor

from .architecture import Options, standard
from .imagenet_utils import _preprocessing, decode_predictions

__all__ = [
    "VGG16",
    "decode_predictions",
    "preprocess_input",
]

preprocess_input = _preprocessing("caffe")


def _vgg(x: KerasTensor, options: Options, counts: Sequence[int]) -> KerasTensor:
    """Build a network with ``counts`` convolutions in its blocks."""
    for i, (count, filters) in enumerate(zip(counts, (64, 128, 256, 512, 512)), 1):
        for j in range(1, count + 1):
            name = f"block{i}_conv{j}"
            x = Conv2D(filters, 3, padding="same", activation="relu", name=name)(x)
        x = MaxPooling2D(2, strides=2, name=f"block{i}_pool")(x)
    if not options.include_top:
        return options.pool(x)
    x = Flatten(name="flatten")(x)
    for name in ("fc1", "fc2"):
        x = Dense(4096, activation="relu", name=name)(x)
    return options.classify(x)


@standard(
    "vgg16/vgg16",
    ("64373286793e3c8b2b4e3219cbf3544b", "6d6bbae143d832006294945121d1f1fc"),
)
def VGG16(x, options):
    """VGG with 16 weight layers, for image classification.

    Preprocess images with `keras.applications.vgg16.preprocess_input`.

    References:
        Simonyan & Zisserman, "Very deep convolutional networks for large-scale image
        recognition" (2015).
    """
    return _vgg(x, options, (2, 2, 3, 3, 3))
