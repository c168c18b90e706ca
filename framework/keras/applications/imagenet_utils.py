"""Preprocess images and decode predictions for the networks of `keras.applications`."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

import numpy as np

from tapewright.core.messages.docstrings import compose
from tapewright.core.settings.floatx import floatx
from tapewright.core.tensor import Tensor
from tapewright.layers.base.spatial import checked_format
from tapewright.layers.base.symbolic_tensor import KerasTensor

from .. import ops
from ..utils.file_download import get_file

__all__ = ["decode_predictions", "preprocess_input"]

_CLASS_INDEX = (
    "https://storage.googleapis.com/download.tensorflow.org/data/"
    "imagenet_class_index.json"
)
_CLASS_INDEX_HASH = "c2c37ea517e94d9795004a39431a14cb"
# Mode -> scale, mean and deviation per channel; "caffe" has the channels in order BGR.
STATISTICS = {
    "caffe": (None, (103.939, 116.779, 123.68), None),
    "torch": (255.0, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
}
_EFFECTS = {
    "caffe": "Convert images from RGB to BGR, and subtract the ImageNet mean of each channel.",
    "tf": "Scale pixels from [0, 255] to [-1, 1].",
    "torch": "Scale pixels to [0, 1], and standardize the channels by ImageNet statistics.",
    None: "Return the images unchanged: the network scales them itself.",
}
ARGUMENTS = {
    "x": "Images ``[height, width, 3]`` or a batch of them, with pixels in [0, 255].",
    "data_format": '"channels_last" or "channels_first"; None means `image_data_format`.',
}


def preprocess_input(
    x: Any, data_format: str | None = None, mode: str = "caffe"
) -> Any:
    """Preprocess images with pixels in [0, 255] for networks trained on ImageNet.

        "tf"     x / 127.5 - 1
        "torch"  (x / 255 - mean) / deviation
        "caffe"  x in BGR order, - mean

    Means and deviations are statistics of ImageNet.

    Args:
        x: Images ``[height, width, 3]`` or a batch of them: an array, a `Tensor` or a
            `KerasTensor`.
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.
        mode: "caffe", "tf" or "torch", see above.

    Returns:
        An array for an array, otherwise a tensor; floating dtypes are kept, integers
        become `floatx`. ``x`` itself is unchanged (Keras overwrites a floating array).

    Raises:
        ValueError: If ``mode``, ``data_format`` or the number of axes is invalid.

    Example:
        >>> import numpy as np
        >>> preprocess_input = keras.applications.imagenet_utils.preprocess_input
        >>> preprocess_input(np.full((1, 1, 3), 255), mode="tf")
        array([[[1., 1., 1.]]], dtype=float32)
    """
    if mode not in ("caffe", "tf", "torch"):
        raise ValueError(
            f"preprocess_input: mode must be 'caffe', 'tf' or 'torch', got {mode!r}"
        )
    data_format = checked_format("preprocess_input", data_format)
    if not isinstance(x, (Tensor, KerasTensor)):
        x = np.asarray(x) if not hasattr(x, "numpy") else ops.convert_to_tensor(x)
    if len(x.shape) not in (3, 4):
        raise ValueError(
            "preprocess_input: x must be an image or a batch of images, with 3 or 4 "
            f"axes, got shape {tuple(x.shape)}"
        )
    is_array = isinstance(x, np.ndarray)
    if "float" not in str(getattr(x.dtype, "name", x.dtype)):
        x = x.astype(floatx()) if is_array else ops.cast(x, floatx())
    if mode == "tf":
        return x / 127.5 - 1.0
    axis = -3 if data_format == "channels_first" else -1
    scale, mean, deviation = STATISTICS[mode]
    x = x / scale if scale else _reversed(x, axis)
    x = x + _per_channel(x, -np.array(mean), axis)
    return x if deviation is None else x / _per_channel(x, np.array(deviation), axis)


def _reversed(x, axis):
    """Return ``x`` with the channels reversed."""
    if isinstance(x, np.ndarray):
        return np.flip(x, axis)
    behind = (slice(None),) * (-axis - 1)
    channels = [x[(..., i, *behind)] for i in (2, 1, 0)]
    return ops.stack(channels, axis=axis + len(x.shape) if axis < -1 else axis)


def _per_channel(x, numbers, axis):
    numbers = numbers.reshape((3,) + (1,) * (-axis - 1))
    if isinstance(x, np.ndarray):
        return numbers.astype(x.dtype)
    return ops.convert_to_tensor(numbers, dtype=x.dtype)


@functools.cache
def _preprocessing(mode: str | None) -> Callable[..., Any]:
    """Return the `preprocess_input` of a family of networks.

    Args:
        mode: Mode of `preprocess_input`; None for networks that accept images as they
            are.
    """

    def preprocess(x: Any, data_format: str | None = None) -> Any:
        return x if mode is None else preprocess_input(x, data_format, mode)

    preprocess.__name__ = preprocess.__qualname__ = "preprocess_input"
    details = "See `keras.applications.imagenet_utils.preprocess_input`."
    preprocess.__doc__ = compose(preprocess, _EFFECTS[mode], details, ARGUMENTS)
    return preprocess


def decode_predictions(preds: Any, top: int = 5) -> list[list[tuple[str, str, Any]]]:
    """Decode the predictions of an ImageNet classifier: the top classes per image.

    The class names come from a file of 35 kB, downloaded once, see
    `keras.utils.get_file`.

    Args:
        preds: Scores ``[batch, 1000]``, an array or a tensor.
        top: Number of classes per image.

    Returns:
        For each row a list of ``(WordNet id, name, score)``, sorted by descending
        score.

    Raises:
        ValueError: If ``preds`` has another shape.
        DownloadError: If the file is not in the cache and cannot be downloaded; an
            ``OSError``.
    """
    preds = np.asarray(preds)
    if preds.ndim != 2 or preds.shape[1] != 1000:
        raise ValueError(
            "decode_predictions: preds must be a batch of scores, of shape "
            f"[batch, 1000], got {preds.shape}"
        )
    names = _class_names()
    best = np.argsort(preds, axis=1)[:, ::-1][:, :top]
    return [
        [(*names[str(i)], row[i]) for i in chosen]
        for row, chosen in zip(preds, best, strict=True)
    ]


@functools.cache
def _class_names():
    path = get_file(
        "imagenet_class_index.json", _CLASS_INDEX, cache_subdir="models",
        file_hash=_CLASS_INDEX_HASH,
    )  # fmt: skip
    with open(path, encoding="utf-8") as file:
        return json.load(file)
