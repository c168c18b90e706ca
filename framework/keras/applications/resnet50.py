"""`keras.applications.resnet50`: the names of `keras.applications.resnet`, as in Keras."""

from .resnet import (
    ResNet50,
    ResNet101,
    ResNet152,
    decode_predictions,
    preprocess_input,
)

__all__ = [
    "ResNet101",
    "ResNet152",
    "ResNet50",
    "decode_predictions",
    "preprocess_input",
]
