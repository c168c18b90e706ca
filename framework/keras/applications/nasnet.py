"""NASNet: two cells found by architecture search, a normal and a reduction cell."""

from __future__ import annotations

from functools import partial

from tapewright.layers import (
    Activation,
    Add,
    AveragePooling2D,
    Concatenate,
    Conv2D,
    Cropping2D,
    MaxPooling2D,
    SeparableConv2D,
    ZeroPadding2D,
)
from tapewright.layers.base.symbolic_tensor import KerasTensor

from ..models import Model
from .architecture import Activation as ActivationLike
from .architecture import (
    ImageShape,
    Options,
    WeightFile,
    Weights,
    batch_normalization,
    channel_axis,
    describe,
    in_data_format,
    pad_for_stride,
)
from .imagenet_utils import _preprocessing, decode_predictions

__all__ = [
    "NASNetLarge",
    "NASNetMobile",
    "decode_predictions",
    "preprocess_input",
]

preprocess_input = _preprocessing("tf")
_normalization = partial(batch_normalization, momentum=0.9997, epsilon=1e-3)
_projection = partial(
    Conv2D,
    kernel_size=1,
    padding="same",
    use_bias=False,
    kernel_initializer="he_normal",
)


def _variant(default_name, hashes, default_size, stem, filters, blocks, skips):
    """Return a decorator that turns an empty function into an architecture with its name.

    ``stem``, ``filters``: filters of the first layer, and of the first cells;
    ``blocks``: normal cells between two reduction cells; ``skips``: the cell after a
    reduction cell does not receive the input of that cell.
    """
    url = "nasnet/" + default_name.replace("nasnet_", "NASNet-")
    file = WeightFile(url, hashes, "-no-top", default_name)

    def architecture(
        input_shape: ImageShape = None,
        include_top: bool = True,
        weights: Weights = "imagenet",
        input_tensor: KerasTensor | None = None,
        pooling: str | None = None,
        classes: int = 1000,
        classifier_activation: ActivationLike = "softmax",
        name: str = default_name,
    ) -> Model:
        if default_size == 224 and not include_top and input_shape is None:
            input_shape = in_data_format((224, 224, 3))
        options = Options(
            architecture.__name__, include_top, weights, input_tensor, input_shape,
            pooling, classes, classifier_activation, name,
        )  # fmt: skip
        options.require(
            not (options.is_imagenet and None in (options.input_shape or ())),
            "with weights='imagenet', input_shape must be known, got "
            f"{in_data_format(options.input_shape)}",
        )
        network = partial(
            _network, stem=stem, filters=filters, blocks=blocks, skips=skips
        )
        return options.build(network, file, options.image_shape(default_size))

    return partial(describe, architecture)


def _network(x, options, stem, filters, blocks, skips):
    x = Conv2D(
        stem, 3, 2, use_bias=False, name="stem_conv1", kernel_initializer="he_normal"
    )(x)
    x = _normalization(name="stem_bn1")(x)
    x, previous = _reduction_cell(x, None, filters // 4, "stem_1"), x
    x, previous = _reduction_cell(x, previous, filters // 2, "stem_2"), x
    for i in range(3):
        if i:
            name = f"reduce_{i * blocks}"
            y = _reduction_cell(x, previous, filters << i, name)
            x, previous = y, previous if skips else x
        for j in range(blocks):
            name = f"{i * blocks + j + (i > 0)}"
            x, previous = _normal_cell(x, previous, filters << i, name), x
    return options.head(Activation("relu")(x), name=None)


def _normal_cell(x, previous, filters, i):
    p, h = _inputs(x, previous, filters, "normal", i)
    separable = partial(_separable, filters=filters)
    average = partial(AveragePooling2D, 3, 1, padding="same")

    def add(n, left, right):
        return Add(name=f"normal_add_{n}_{i}")([left, right])

    parts = [
        add(1, separable(h, 5, f"normal_left1_{i}"), separable(p, 3, f"normal_right1_{i}")),
        add(2, separable(p, 5, f"normal_left2_{i}"), separable(p, 3, f"normal_right2_{i}")),
        add(3, average(name=f"normal_left3_{i}")(h), p),
        add(4, average(name=f"normal_left4_{i}")(p), average(name=f"normal_right4_{i}")(p)),
        add(5, separable(h, 3, f"normal_left5_{i}"), h),
    ]  # fmt: skip
    return Concatenate(channel_axis(), name=f"normal_concat_{i}")([p, *parts])


def _reduction_cell(x, previous, filters, i):
    p, h = _inputs(x, previous, filters, "reduction", i)
    shrinking = partial(_separable, filters=filters, stride=2)
    padded, padding = pad_for_stride(h, 3, 2, f"reduction_pad_1_{i}")

    def add(name, left, right):
        return Add(name=name and f"{name}_{i}")([left, right])

    def pool(kind, name):
        return kind(3, 2, padding, name=f"{name}_{i}")(padded)

    first = add(
        "reduction_add_1",
        shrinking(h, 5, f"reduction_left1_{i}"),
        shrinking(p, 7, f"reduction_right1_{i}"),
    )
    second = add(
        "reduction_add_2",
        pool(MaxPooling2D, "reduction_left2"),
        shrinking(p, 7, f"reduction_right2_{i}"),
    )
    third = add(
        "reduction_add3",
        pool(AveragePooling2D, "reduction_left3"),
        shrinking(p, 5, f"reduction_right3_{i}"),
    )
    average = AveragePooling2D(3, 1, padding="same", name=f"reduction_left4_{i}")
    fourth = add(None, second, average(first))
    fifth = add(
        "reduction_add4",
        _separable(first, 3, f"reduction_left4_{i}", filters),
        pool(MaxPooling2D, "reduction_right5"),
    )
    name = f"reduction_concat_{i}"
    return Concatenate(channel_axis(), name=name)([second, third, fourth, fifth])


def _inputs(x, previous, filters, kind, i):
    """Return both inputs of a cell, with its number of filters and one size."""
    previous = _adjusted(x, previous, filters, i)
    x = _projection(filters, name=f"{kind}_conv_1_{i}")(Activation("relu")(x))
    return previous, _normalization(name=f"{kind}_bn_1_{i}")(x)


def _adjusted(x, previous, filters, i):
    """Return the output before the last one, resized to the last one."""
    if previous is None:
        return x
    if previous.shape[2] != x.shape[2]:
        y = Activation("relu", name=f"adjust_relu_1_{i}")(previous)
        first = AveragePooling2D(1, 2, name=f"adjust_avg_pool_1_{i}")(y)
        first = _projection(filters // 2, name=f"adjust_conv_1_{i}")(first)
        second = ZeroPadding2D(((0, 1), (0, 1)))(y)
        second = Cropping2D(((1, 0), (1, 0)))(second)
        second = AveragePooling2D(1, 2, name=f"adjust_avg_pool_2_{i}")(second)
        second = _projection(filters // 2, name=f"adjust_conv_2_{i}")(second)
        return _normalization(name=f"adjust_bn_{i}")(
            Concatenate(channel_axis())([first, second])
        )
    if previous.shape[channel_axis()] != filters:
        y = Activation("relu")(previous)
        y = _projection(filters, name=f"adjust_conv_projection_{i}")(y)
        return _normalization(name=f"adjust_bn_{i}")(y)
    return previous


def _separable(x, kernel, name, filters, stride=1):
    """Apply ReLU, a separable convolution and normalization, twice; stride in the first."""
    for n, strides in ((1, stride), (2, 1)):
        x = Activation("relu")(x)
        pad_name = f"separable_conv_{n}_pad_{name}"
        x, padding = pad_for_stride(x, kernel, strides, pad_name)
        x = SeparableConv2D(
            filters,
            kernel,
            strides,
            padding,
            use_bias=False,
            name=f"separable_conv_{n}_{name}",
        )(x)
        x = _normalization(name=f"separable_conv_{n}_bn_{name}")(x)
    return x


@_variant(
    "nasnet_mobile",
    ("020fb642bf7360b370c678b08e0adf61", "1ed92395b5b598bdda52abe5c0dbfd63"),
    default_size=224,
    stem=32,
    filters=44,
    blocks=4,
    skips=False,
)
def NASNetMobile():
    """NASNet-A for image classification, the mobile variant, for images of 224 x 224.

    Preprocess images with `keras.applications.nasnet.preprocess_input`.

    References:
        Zoph et al., "Learning transferable architectures for scalable image
        recognition" (2018).
    """


@_variant(
    "nasnet_large",
    ("11577c9a518f0070763c2b964a382f17", "d81d89dc07e6e56530c4e77faddd61b5"),
    default_size=331,
    stem=96,
    filters=168,
    blocks=6,
    skips=True,
)
def NASNetLarge():
    """NASNet-A for image classification, the large variant, for images of 331 x 331.

    Preprocess images with `keras.applications.nasnet.preprocess_input`.

    References:
        Zoph et al., "Learning transferable architectures for scalable image
        recognition" (2018).
    """
