"""The common parts of architectures: arguments and their checks, classifier, weights.

The file of a family has a function ``network(x, options)`` from images to outputs,
which uses only layers, and one function per variant, decorated by `standard`,
or by a ``_variant`` if the family has arguments of its own.
"""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, ParamSpec, Protocol

from tapewright.core.messages.docstrings import compose
from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.core.settings.floatx import image_data_format
from tapewright.core.state.deferred_initialization import deferred_initialization
from tapewright.datasets.fetch import DownloadError
from tapewright.layers import (
    BatchNormalization,
    Dense,
    GlobalAveragePooling2D,
    GlobalMaxPooling2D,
    ZeroPadding2D,
    activations,
)
from tapewright.layers.base.input_layer import Input
from tapewright.layers.base.symbolic_tensor import KerasTensor, node_of

from ..models import Model
from ..utils.file_download import get_file

STORAGE = "https://storage.googleapis.com/"
BUCKET = STORAGE + "tensorflow/keras-applications/"
IMAGENET_CLASSES = 1000
# What follows the name of a network in the names of the oldest weight files.
KERNELS = "_weights_tf_dim_ordering_tf_kernels"
P = ParamSpec("P")

Weights = str | os.PathLike[str] | None
Activation = str | Callable[..., Any] | None
ImageShape = Sequence[int | None] | None

ARGUMENTS = {
    "include_top": "If True, the network ends in a classifier.",
    "include_preprocessing": "If True, the network accepts pixels in [0, 255] and scales "
    "them itself.",
    "weights": '"imagenet" (downloaded once, see `keras.utils.get_file`), path of a weight '
    "file, or None for random initialization.",
    "input_tensor": "`KerasTensor` that the network is applied to; None for a new `Input`.",
    "input_shape": "Shape of an image: ``(height, width, channels)``, or ``(channels, "
    'height, width)`` if `keras.config.image_data_format` is "channels_first".',
    "pooling": 'Without the classifier: "avg" or "max" for pooled features ``[batch, '
    "features]``, or None for feature maps.",
    "classes": "Number of classes, the outputs of the classifier.",
    "classifier_activation": 'Activation of the classifier: "softmax", or None for logits.',
    "name": "Name of the model.",
    "alpha": "Factor of the number of filters, the width of the network.",
    "depth_multiplier": "Number of outputs of depthwise convolutions per input channel.",
    "dropout": "Dropout rate below the classifier.",
    "dropout_rate": "Dropout rate below the classifier.",
    "minimalistic": "If True, omit squeeze and excitation, hard swish and 5 x 5 kernels.",
}
RESULT = """
Returns:
    A `keras.Model`.

Raises:
    ValueError: If arguments do not fit together.
    DownloadError: If "imagenet" weights are neither in the cache nor can be downloaded;
        an ``OSError``.
"""
REFERENCES = "\nReferences:\n"


@dataclass(frozen=True)
class WeightFile:
    """A file of ImageNet weights, with and without the classifier.

    ``url``: path below Keras' bucket, without suffix; ``hashes``: checksums of the two
    files; ``without_top``: suffix of the second name; ``saved_as``: name in the cache,
    if it differs.
    """

    url: str
    hashes: tuple[str | None, str | None] = (None, None)
    without_top: str = "_notop"
    saved_as: str | None = None

    def path(self, include_top: bool) -> str:
        """Return the path of the file in the cache, downloaded if missing."""
        end = ("" if include_top else self.without_top) + ".h5"
        url = self.url if self.url.startswith(STORAGE) else BUCKET + self.url
        name = os.path.basename(url) + end
        if self.saved_as:
            name = self.saved_as + end.replace("-", "_")
        checksum = self.hashes[0 if include_top else 1]
        try:
            return get_file(name, url + end, cache_subdir="models", file_hash=checksum)
        except DownloadError as error:
            error.add_note(
                "weights=PATH loads a weight file from elsewhere, weights=None starts "
                "from random weights"
            )
            raise


@dataclass
class Options:
    """Checked arguments of one call of an architecture.

    ``title`` is its name, for errors. Shapes have the channels last, except in errors,
    where they are shown as given.

    Raises:
        ValueError: If arguments do not fit together.
    """

    title: str
    include_top: bool
    weights: Weights
    input_tensor: KerasTensor | None
    input_shape: ImageShape
    pooling: str | None
    classes: int
    classifier_activation: Activation
    name: str | None

    def __post_init__(self):
        if self.input_shape is not None:
            shape = tuple(self.input_shape)
            entries = in_data_format(("height", "width", "channels"))
            self.require(
                len(shape) == 3,
                f"input_shape must have three entries ({', '.join(entries)}), got {shape}",
            )
            self.input_shape = channels_behind(shape)
        is_path = self.weights not in (None, "imagenet")
        self.require(
            not is_path or os.path.exists(self.weights),
            "weights must be None (random), 'imagenet', or the path of a file that "
            f"exists, got {self.weights!r}",
        )
        self.require(
            self.pooling in (None, "avg", "max"),
            f"pooling must be None, 'avg' or 'max', got {self.pooling!r}",
        )
        self.require(
            self.input_tensor is None or isinstance(self.input_tensor, KerasTensor),
            "input_tensor must be a KerasTensor, the output of Input(...) or of a layer "
            f"called on it, got {self.input_tensor!r}",
        )
        if not self.include_top or self.weights is None:
            return
        self.require(
            is_path or self.classes == IMAGENET_CLASSES,
            "with weights='imagenet' and include_top=True, classes must be 1000, got "
            f"{self.classes}",
        )
        activation = activations.get(self.classifier_activation)
        self.require(
            activation in (activations.softmax, activations.linear),
            "with weights and include_top=True, classifier_activation must be 'softmax' "
            f"or None, got {self.classifier_activation!r}",
        )

    @property
    def is_imagenet(self) -> bool:
        return self.weights == "imagenet"

    def require(self, condition: bool, message: str) -> None:
        """Raise a ``ValueError`` that begins with the title if the condition is false."""
        if not condition:
            raise ValueError(f"{self.title}: {message}")

    def image_shape(self, default_size: int, min_size: int = 32) -> tuple:
        """Check and return the shape of an image; None for sizes that may vary."""
        shape = self.input_shape
        if self.is_imagenet and self.include_top:
            default = (default_size, default_size, 3)
            self.require(
                shape in (None, default),
                f"with weights='imagenet' and include_top=True, input_shape must be "
                f"{in_data_format(default)}, got {in_data_format(shape)}",
            )
            return default
        if shape is None:
            size = default_size if self.include_top else None
            return (size, size, 3)
        self.require(
            shape[2] == 3 or not self.is_imagenet,
            "with weights='imagenet', images must have 3 channels, got "
            f"{in_data_format(shape)}",
        )
        if shape[2] not in (1, 3):
            warnings.warn(
                f"{self.title}: images should have 1 or 3 channels, got input_shape "
                f"{in_data_format(shape)}",
                stacklevel=user_stacklevel(),
            )
        self.require(
            all(n is None or n >= min_size for n in shape[:2]),
            f"images must be at least {min_size} x {min_size}, got input_shape "
            f"{in_data_format(shape)}",
        )
        self.require(
            not self.include_top or None not in shape,
            "with include_top=True, input_shape must be known, got "
            f"{in_data_format(shape)}",
        )
        return shape

    def pool(self, x: KerasTensor, named: bool = False) -> KerasTensor:
        """Return the outputs without the classifier.

        ``named``: use Keras' name for the layer.
        """
        if self.pooling is None:
            return x
        average = self.pooling == "avg"
        layer = GlobalAveragePooling2D if average else GlobalMaxPooling2D
        return layer(name=f"{self.pooling}_pool" if named else None)(x)

    def classify(self, x: KerasTensor, **kwargs: Any) -> KerasTensor:
        """Return the class scores, from the layer "predictions"."""
        activation = self.classifier_activation
        return Dense(self.classes, activation, name="predictions", **kwargs)(x)

    def head(
        self, x: KerasTensor, name: str | None = "avg_pool", named: bool = False
    ) -> KerasTensor:
        """Return the outputs: class scores of averaged features, or pooled features.

        ``name``: name of the pooling layer below the classifier.
        """
        if self.include_top:
            return self.classify(GlobalAveragePooling2D(name=name)(x))
        return self.pool(x, named)

    def build(self, network: Network, file: WeightFile, shape: tuple) -> Model:
        """Return the model of a network, with its weights.

        ``shape``: shape of an image. No random numbers are drawn for weights that are
        loaded.
        """
        path = file.path(self.include_top) if self.is_imagenet else self.weights
        with nullcontext() if path is None else deferred_initialization(_allow):
            x = self.input_tensor
            x = Input(in_data_format(shape)) if x is None else x
            inputs = x if self.input_tensor is None else _source_inputs(x)
            model = Model(inputs, network(x, self), name=self.name)
            if path is not None:
                model.load_weights(path)
        return model


Network = Callable[[KerasTensor, Options], KerasTensor]


def _allow(description, shape):
    """Accept any weight size: shapes come from the tables of the families."""


def _source_inputs(x):
    """Return the tensors of `Input`s that a symbolic tensor depends on."""
    inputs, seen, stack = [], set(), [node_of(x)]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if not node.args:
            inputs.append(node.outputs)
        stack += [node_of(y) for y in reversed(node.input_tensors)]
    return inputs


class Architecture(Protocol):
    """Function that returns a model, with the arguments of most architectures."""

    __name__: str

    def __call__(
        self,
        include_top: bool = True,
        weights: Weights = "imagenet",
        input_tensor: KerasTensor | None = None,
        input_shape: ImageShape = None,
        pooling: str | None = None,
        classes: int = 1000,
        classifier_activation: Activation = "softmax",
        name: str = ...,
    ) -> Model: ...


def standard(
    url: str,
    hashes: tuple[str, str],
    default_size: int = 224,
    min_size: int = 32,
    ending: str = KERNELS,
) -> Callable[[Network], Architecture]:
    """Return a decorator that turns a network into an architecture.

    ``url``: path of the weight files below Keras' bucket, without ``ending``; its last
    part is the default name of the models. ``hashes``: checksums of the files with and
    without the classifier.
    """
    default_name = os.path.basename(url)
    file = WeightFile(url + ending, hashes)

    def decorate(network: Network) -> Architecture:
        def architecture(
            include_top: bool = True,
            weights: Weights = "imagenet",
            input_tensor: KerasTensor | None = None,
            input_shape: ImageShape = None,
            pooling: str | None = None,
            classes: int = 1000,
            classifier_activation: Activation = "softmax",
            name: str = default_name,
        ) -> Model:
            options = Options(
                network.__name__, include_top, weights, input_tensor, input_shape,
                pooling, classes, classifier_activation, name,
            )  # fmt: skip
            shape = options.image_shape(default_size, min_size)
            return options.build(network, file, shape)

        return describe(architecture, network)

    return decorate


def describe(
    architecture: Callable[P, Model], variant: Callable[..., Any]
) -> Callable[P, Model]:
    """Give a function the names of ``variant`` and its docstring, with all arguments."""
    for key in ("__name__", "__qualname__", "__module__"):
        setattr(architecture, key, getattr(variant, key))
    doc = inspect.cleandoc(variant.__doc__ or "")
    text, heading, references = doc.partition(REFERENCES)
    summary, _, details = text.partition("\n\n")
    details = f"{details}\n{RESULT}{heading}{references}"
    architecture.__doc__ = compose(architecture, summary, details, ARGUMENTS)
    return architecture


def channel_axis(last: int = -1) -> int:
    """Return the axis of the channels: ``last``, or 1 for "channels_first"."""
    return 1 if image_data_format() == "channels_first" else last


def batch_normalization(axis: int = -1, **kwargs: Any) -> BatchNormalization:
    """Return a batch normalization layer for channels at ``axis`` in "channels_last"."""
    return BatchNormalization(channel_axis(axis), **kwargs)


def in_data_format(shape: tuple | None) -> tuple | None:
    """Convert the shape of an image from channels last to the data format."""
    if shape is None or channel_axis() == -1:
        return shape
    return (shape[2], *shape[:2])


def channels_behind(shape: tuple) -> tuple:
    """Convert the shape of an image from the data format to channels last."""
    return shape if channel_axis() == -1 else (*shape[1:], shape[0])


def divisible(number: float, divisor: int = 8, keep: float = 0.9) -> int:
    """Round to a positive multiple of ``divisor`` that is at least ``keep`` of the number."""
    rounded = max(divisor, int(number + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < keep * number else rounded


def pad_for_stride(
    x: KerasTensor, kernel_size: int, stride: int, name: str
) -> tuple[KerasTensor, str]:
    """Pad images for a convolution with a stride, and return its argument ``padding``.

    Pixels stay aligned: an even size gets one pixel less at the start than at the end.
    """
    if stride == 1:
        return x, "same"
    half = kernel_size // 2
    sizes = channels_behind(tuple(x.shape[1:]))[:2]
    sizes = sizes if sizes[0] is not None else (0, 0)
    padding = tuple([(half - (1 - n % 2), half) for n in sizes])
    return ZeroPadding2D(padding, name=name)(x), "valid"
