"""The parts that architectures share: arguments and their checks, the head, the weights.

A family's file has a function ``network(x, options)`` from images to outputs, which uses
layers alone, and under `standard` one function for each variant.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from tapewright.core.deferred_initialization import deferred_initialization
from tapewright.core.floatx import image_data_format
from tapewright.core.source_lines import user_stacklevel
from tapewright.datasets.fetch import DownloadError
from tapewright.layers import (
    BatchNormalization,
    Dense,
    GlobalAveragePooling2D,
    GlobalMaxPooling2D,
    activations,
)
from tapewright.layers.base.input_layer import Input
from tapewright.layers.base.symbolic_tensor import KerasTensor, node_of

from ..models import Model
from ..utils.file_download import get_file

__all__ = [
    "Activation",
    "Architecture",
    "ImageShape",
    "Network",
    "Options",
    "WeightFile",
    "Weights",
    "batch_normalization",
    "channel_axis",
    "channels_behind",
    "describe",
    "divisible",
    "in_data_format",
    "kernels",
    "padding_for_stride",
    "standard",
]

STORAGE = "https://storage.googleapis.com/"
BUCKET = STORAGE + "tensorflow/keras-applications/"
IMAGENET_CLASSES = 1000

Weights = str | os.PathLike[str] | None
Activation = str | Callable[..., Any] | None
ImageShape = Sequence[int | None] | None

ARGUMENTS = """
    Args: ``include_top``: end in the classifier of ``classes`` outputs; ``weights``:
    "imagenet" (downloaded once, see `keras.utils.get_file`), the path of a weight file, or
    None for random ones; ``input_tensor``: a `KerasTensor` to start from;
    ``input_shape``: ``(height, width, channels)``, or with the channels in front if
    `keras.config.image_data_format` says so; ``pooling``, without the top: None for
    the feature maps, "avg" or "max" for ``[batch, features]``;
    ``classifier_activation``: of the classifier, None for logits; ``name``: of the model.

    Raises: ``ValueError`` for arguments that do not fit each other; ``DownloadError`` (an
    ``OSError``) if "imagenet" weights can neither be found nor downloaded.
    """


@dataclass(frozen=True)
class WeightFile:
    """A file of weights for ImageNet, with the classifier and without.

    ``url``: below Keras' bucket, without ending; ``hashes``: of the two files;
    ``without_top``: the end of the second one's name; ``saved_as``: the name in the
    cache, if it is another one.
    """

    url: str
    hashes: tuple[str | None, str | None] = (None, None)
    without_top: str = "_notop"
    saved_as: str | None = None

    def path(self, include_top: bool) -> str:
        """Return the path of the file in the cache, where it is downloaded if missing."""
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


def kernels(stem: str, with_top: str, without_top: str) -> WeightFile:
    """Return the files whose names end as those of the oldest architectures."""
    return WeightFile(
        f"{stem}_weights_tf_dim_ordering_tf_kernels", (with_top, without_top)
    )


@dataclass
class Options:
    """The arguments of one call of an architecture, checked. ``title``: its name, for errors.

    Shapes have the channels last, but for those in errors, which are as given.

    Raises: ``ValueError`` if they do not fit each other.
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
        """Raise a ``ValueError`` that begins with the title unless the condition holds."""
        if not condition:
            raise ValueError(f"{self.title}: {message}")

    def image_shape(self, default_size: int, min_size: int = 32) -> tuple:
        """Return the shape of an image, checked; None where any size will do."""
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
                f"{self.title}: images have 1 or 3 channels, input_shape is "
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
        """Return the outputs without the top. ``named``: give the layer Keras' name."""
        if self.pooling is None:
            return x
        average = self.pooling == "avg"
        layer = GlobalAveragePooling2D if average else GlobalMaxPooling2D
        return layer(name=f"{self.pooling}_pool" if named else None)(x)

    def classify(self, x: KerasTensor, **kwargs: Any) -> KerasTensor:
        """Return the scores of the classes, by the layer "predictions"."""
        activation = self.classifier_activation
        return Dense(self.classes, activation, name="predictions", **kwargs)(x)

    def head(
        self, x: KerasTensor, name: str | None = "avg_pool", named: bool = False
    ) -> KerasTensor:
        """Return the outputs: classes of averaged features, or pooled features.

        ``name``: of the layer that averages below the classifier.
        """
        if self.include_top:
            return self.classify(GlobalAveragePooling2D(name=name)(x))
        return self.pool(x, named)

    def build(self, network: Network, file: WeightFile, shape: tuple) -> Model:
        """Return the model of a network, with its weights.

        ``shape``: of an image. Nothing is drawn at random for weights that are loaded.
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
    """Let any weight take its memory: its shape comes from the table of the family."""


def _source_inputs(x):
    """Return the tensors of `Input`s that a symbolic tensor follows from."""
    found, seen, stack = [], set(), [node_of(x)]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if not node.args:
            found.append(node.outputs)
        stack += [node_of(y) for y in reversed(node.input_tensors)]
    return found


class Architecture(Protocol):
    """A function that returns a model, with the arguments of most architectures."""

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
    name: str, file: WeightFile, default_size: int = 224, min_size: int = 32
) -> Callable[[Network], Architecture]:
    """Make an architecture of a network: a decorator. ``name``: of models, by default."""
    default_name = name

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


def describe(architecture: Any, network: Callable[..., Any]) -> Any:
    """Give a function the name and docstring of a network, and the text on arguments."""
    for key in ("__name__", "__qualname__", "__module__"):
        setattr(architecture, key, getattr(network, key))
    text = (network.__doc__ or "").rstrip()
    architecture.__doc__ = f"{text}\n{ARGUMENTS}"
    return architecture


def channel_axis(last: int = -1) -> int:
    """Return the axis of the channels: ``last``, or 1 if they are in front."""
    return 1 if image_data_format() == "channels_first" else last


def batch_normalization(axis: int = -1, **kwargs: Any) -> BatchNormalization:
    """Return a layer that normalizes channels, whose axis is ``axis`` if they are last."""
    return BatchNormalization(channel_axis(axis), **kwargs)


def in_data_format(shape: tuple | None) -> tuple | None:
    """Return the shape of an image with the channels last as one of the data format."""
    if shape is None or channel_axis() == -1:
        return shape
    return (shape[2], *shape[:2])


def channels_behind(shape: tuple) -> tuple:
    """Return the shape of an image of the data format with the channels last."""
    return shape if channel_axis() == -1 else (*shape[1:], shape[0])


def divisible(number: float, divisor: int = 8, keep: float = 0.9) -> int:
    """Round to a multiple of ``divisor``, at least one of it, and not below ``keep`` of it."""
    rounded = max(divisor, int(number + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < keep * number else rounded


def padding_for_stride(x: KerasTensor, kernel_size: int) -> tuple:
    """Return the padding of a convolution with stride 2 that keeps pixels aligned.

    An even size is padded by one less in front than behind.
    """
    half = kernel_size // 2
    sizes = channels_behind(tuple(x.shape[1:]))[:2]
    sizes = sizes if sizes[0] is not None else (0, 0)
    return tuple([(half - (1 - n % 2), half) for n in sizes])
