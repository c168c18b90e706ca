"""MobileNetV3: blocks as in MobileNetV2, some with squeeze and excitation."""

from __future__ import annotations

from functools import partial

from tapewright.layers import (
    Activation,
    Add,
    Conv2D,
    DepthwiseConv2D,
    Dropout,
    Flatten,
    GlobalAveragePooling2D,
    Multiply,
    ReLU,
    Rescaling,
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
    divisible,
    in_data_format,
    pad_for_stride,
)
from .imagenet_utils import _preprocessing, decode_predictions
from .mobilenet import _shape_of_images, _warn_of_other_size

__all__ = [
    "MobileNetV3Large",
    "MobileNetV3Small",
    "decode_predictions",
    "preprocess_input",
]

preprocess_input = _preprocessing(None)
# Of each block: expansion, filters, kernel size, stride, with squeeze and excitation,
# with hard swish. A minimalistic network has none of the last two, and kernels of 3 x 3.
SMALL = (
    (1, 16, 3, 2, True, False),
    (72 / 16, 24, 3, 2, False, False),
    (88 / 24, 24, 3, 1, False, False),
    (4, 40, 5, 2, True, True),
    (6, 40, 5, 1, True, True),
    (6, 40, 5, 1, True, True),
    (3, 48, 5, 1, True, True),
    (3, 48, 5, 1, True, True),
    (6, 96, 5, 2, True, True),
    (6, 96, 5, 1, True, True),
    (6, 96, 5, 1, True, True),
)
LARGE = (
    (1, 16, 3, 1, False, False),
    (4, 24, 3, 2, False, False),
    (3, 24, 3, 1, False, False),
    (3, 40, 5, 2, True, False),
    (3, 40, 5, 1, True, False),
    (3, 40, 5, 1, True, False),
    (6, 80, 3, 2, False, True),
    (2.5, 80, 3, 1, False, True),
    (2.3, 80, 3, 1, False, True),
    (2.3, 80, 3, 1, False, True),
    (6, 112, 3, 1, True, True),
    (6, 112, 3, 1, True, True),
    (6, 160, 5, 2, True, True),
    (6, 160, 5, 1, True, True),
    (6, 160, 5, 1, True, True),
)
HASHES = {
    "large_224_0.75": (
        "765b44a33ad4005b3ac83185abf1d0eb",
        "40af19a13ebea4e2ee0c676887f69a2e",
    ),
    "large_224_1.0": (
        "59e551e166be033d707958cf9e29a6a7",
        "07fb09a5933dd0c8eaafa16978110389",
    ),
    "large_minimalistic_224_1.0": (
        "675e7b876c45c57e9e63e6d90a36599c",
        "ec5221f64a2f6d1ef965a614bdae7973",
    ),
    "small_224_0.75": (
        "cb65d4e5be93758266aa0a7f2c6708b7",
        "ebdb5cc8e0b497cd13a7c275d475c819",
    ),
    "small_224_1.0": (
        "8768d4c2e7dee89b9d02b2d03d65d862",
        "d3e8ec802a04aa4fc771ee12a9a9b836",
    ),
    "small_minimalistic_224_1.0": (
        "99cd97fb2fcdad2bf028eb838de69e37",
        "cde8136e733e811080d9fcd8a252f7e4",
    ),
}
_normalization = partial(batch_normalization, epsilon=1e-3, momentum=0.999)
_convolution = partial(Conv2D, padding="same", use_bias=False)


def _variant(kind, blocks, last):
    """Return a decorator that turns an empty function into an architecture with its name.

    ``last``: filters of the layer below the classifier.
    """
    default_name = f"MobileNetV3{kind.title()}"

    def architecture(
        input_shape: ImageShape = None,
        alpha: float = 1.0,
        minimalistic: bool = False,
        include_top: bool = True,
        weights: Weights = "imagenet",
        input_tensor: KerasTensor | None = None,
        classes: int = 1000,
        pooling: str | None = None,
        dropout_rate: float = 0.2,
        classifier_activation: ActivationLike = "softmax",
        include_preprocessing: bool = True,
        name: str = default_name,
    ) -> Model:
        options = Options(
            architecture.__name__, include_top, weights, input_tensor, input_shape,
            pooling, classes, classifier_activation, name,
        )  # fmt: skip
        shape = _image_shape(options)
        label = f"{kind}{'_minimalistic' if minimalistic else ''}_224_{alpha}"
        if options.is_imagenet:
            _check_weights(options, shape, minimalistic, alpha, label)
        url = f"mobilenet_v3/weights_mobilenet_v3_{label}_float"
        file = WeightFile(url, HASHES.get(label, (None, None)), "_no_top_v2")
        network = partial(
            _network, blocks=blocks, last=last, alpha=alpha, dropout=dropout_rate,
            minimalistic=minimalistic, rescale=include_preprocessing,
        )  # fmt: skip
        return options.build(network, file, shape)

    return partial(describe, architecture)


def _image_shape(options):
    """Return the shape of an image; sizes may vary even with the classifier."""
    shape = _shape_of_images(options) or (None, None, 3)
    options.require(
        all(n is None or n >= 32 for n in shape[:2]),
        f"images must be at least 32 x 32, got {in_data_format(shape)}",
    )
    return shape


def _check_weights(options, shape, minimalistic, alpha, label):
    options.require(
        label in HASHES,
        "with weights='imagenet', alpha must be 0.75 or 1.0 (1.0 if minimalistic), "
        f"got {alpha}",
    )
    if shape[:2] != (224, 224):
        _warn_of_other_size(options, shape)


def _network(x, options, blocks, last, alpha, dropout, minimalistic, rescale):
    activation = _relu if minimalistic else _hard_swish
    if rescale:
        x = Rescaling(scale=1.0 / 127.5, offset=-1.0)(x)
    x = _convolution(16, 3, strides=2, name="conv")(x)
    x = activation(_normalization(name="conv_bn")(x))
    for i, (expansion, filters, kernel, stride, squeeze, swish) in enumerate(blocks):
        x = _block(
            x,
            divisible(x.shape[channel_axis()] * expansion),
            divisible(filters * alpha),
            3 if minimalistic else kernel,
            stride,
            squeeze and not minimalistic,
            activation if swish else _relu,
            f"expanded_conv_{i}_" if i else "expanded_conv_",
        )
    x = _convolution(divisible(x.shape[channel_axis()] * 6), 1, name="conv_1")(x)
    x = activation(_normalization(name="conv_1_bn")(x))
    if not options.include_top:
        return options.pool(x, named=True)
    last = divisible(last * alpha) if alpha > 1 else last
    x = GlobalAveragePooling2D(keepdims=True)(x)
    x = activation(Conv2D(last, 1, padding="same", name="conv_2")(x))
    x = Dropout(dropout)(x) if dropout > 0 else x
    x = Conv2D(options.classes, 1, padding="same", name="logits")(x)
    return Activation(options.classifier_activation, name="predictions")(Flatten()(x))


def _block(inputs, expanded, filters, kernel, stride, squeeze, activation, name):
    """Inverted residual block; the first block does not expand."""
    x = inputs
    if name != "expanded_conv_":
        x = _convolution(expanded, 1, name=f"{name}expand")(x)
        x = activation(_normalization(name=f"{name}expand_bn")(x))
    x, padding = pad_for_stride(x, kernel, stride, f"{name}depthwise_pad")
    x = DepthwiseConv2D(
        kernel, stride, padding, use_bias=False, name=f"{name}depthwise"
    )(x)
    x = activation(_normalization(name=f"{name}depthwise_bn")(x))
    if squeeze:
        x = _squeeze(x, expanded, f"{name}squeeze_excite_")
    x = _convolution(filters, 1, name=f"{name}project")(x)
    x = _normalization(name=f"{name}project_bn")(x)
    if stride == 1 and inputs.shape[channel_axis()] == filters:
        x = Add(name=f"{name}add")([inputs, x])
    return x


def _squeeze(x, filters, name):
    """Squeeze and excitation: scale channels by weights computed from their means."""
    y = GlobalAveragePooling2D(keepdims=True, name=f"{name}avg_pool")(x)
    y = Conv2D(divisible(filters / 4), 1, padding="same", name=f"{name}conv")(y)
    y = ReLU(name=f"{name}relu")(y)
    y = Conv2D(filters, 1, padding="same", name=f"{name}conv_1")(y)
    y = ReLU(6.0)(y + 3.0) * (1.0 / 6.0)  # a hard sigmoid
    return Multiply(name=f"{name}mul")([x, y])


def _relu(x):
    return ReLU()(x)


def _hard_swish(x):
    return Activation("hard_swish")(x)


@_variant("small", SMALL, 1024)
def MobileNetV3Small():
    """MobileNetV3 for image classification on small devices, the small variant.

    Without ``include_preprocessing`` the network expects pixels in [-1, 1].

    References:
        Howard et al., "Searching for MobileNetV3" (2019).
    """


@_variant("large", LARGE, 1280)
def MobileNetV3Large():
    """MobileNetV3 for image classification on small devices, the large variant.

    Without ``include_preprocessing`` the network expects pixels in [-1, 1].

    References:
        Howard et al., "Searching for MobileNetV3" (2019).
    """
