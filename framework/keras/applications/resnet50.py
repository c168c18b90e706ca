"""The names of `resnet`, which Keras also has here."""

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
