"""ConvNeXt: blocks of a depthwise 7 x 7 convolution and two dense layers."""

from __future__ import annotations

from functools import partial

from tapewright.layers import (
    Activation,
    Conv2D,
    Dense,
    GlobalAveragePooling2D,
    LayerNormalization,
    Normalization,
)
from tapewright.layers.applications import LayerScale
from tapewright.layers.base.input_layer import Input
from tapewright.layers.base.symbolic_tensor import KerasTensor

from ..models import Model, Sequential
from .architecture import Activation as ActivationLike
from .architecture import (
    ImageShape,
    Options,
    WeightFile,
    Weights,
    channel_axis,
    describe,
)
from .imagenet_utils import STATISTICS, _preprocessing, decode_predictions

__all__ = [
    "ConvNeXtBase",
    "ConvNeXtLarge",
    "ConvNeXtSmall",
    "ConvNeXtTiny",
    "ConvNeXtXLarge",
    "decode_predictions",
    "preprocess_input",
]

preprocess_input = _preprocessing(None)
_SCALE = 1e-6  # what the learned factors of channels start from
_normalization = partial(LayerNormalization, epsilon=1e-6)


def _variant(default_name, hashes, depths, filters):
    """Return a decorator that turns an empty function into an architecture with its name.

    ``depths``: blocks per stage; ``filters``: filters of the first stage, doubled in
    each further stage.
    """
    file = WeightFile(f"convnext/{default_name}", hashes)

    def architecture(
        include_top: bool = True,
        include_preprocessing: bool = True,
        weights: Weights = "imagenet",
        input_tensor: KerasTensor | None = None,
        input_shape: ImageShape = None,
        pooling: str | None = None,
        classes: int = 1000,
        classifier_activation: ActivationLike = "softmax",
        name: str = default_name,
    ) -> Model:
        options = Options(
            architecture.__name__, include_top, weights, input_tensor, input_shape,
            pooling, classes, classifier_activation, name,
        )  # fmt: skip
        options.require(
            channel_axis() == -1,
            "the data format must be 'channels_last'; call "
            "keras.config.set_image_data_format('channels_last') first, and "
            "transpose images",
        )
        shape = options.image_shape(224)
        network = partial(
            _network, depths=depths, filters=filters,
            standardize=include_preprocessing and shape[2] == 3,
        )  # fmt: skip
        return options.build(network, file, shape)

    return partial(describe, architecture)


def _network(x, options, depths, filters, standardize):
    name = options.name
    if standardize:
        _, mean, deviation = STATISTICS["torch"]
        x = Normalization(
            mean=[each * 255 for each in mean],
            variance=[(each * 255) ** 2 for each in deviation],
            name=f"{name}_prestem_normalization",
        )(x)
    for i, depth in enumerate(depths):
        x = _shrunk(x, filters << i, i, name)
        for j in range(depth):
            x = _block(x, filters << i, f"{name}_stage_{i}_block_{j}")
    if not options.include_top:
        return _normalization()(options.pool(x))
    x = GlobalAveragePooling2D(name=f"{name}_head_gap")(x)
    x = _normalization(name=f"{name}_head_layernorm")(x)
    activation = options.classifier_activation
    return Dense(options.classes, activation, name=f"{name}_head_dense")(x)


def _shrunk(x, filters, i, name):
    """Downsample before stage ``i``, by a small model as in the files of Keras."""
    part, end = ("stem", "") if i == 0 else ("downsampling", f"_{i - 1}")
    size = 2 if i else 4
    layers = [
        _normalization(name=f"{name}_{part}_layernorm{end}"),
        Conv2D(filters, size, size, name=f"{name}_{part}_conv{end}"),
    ]
    layers = [Input(x.shape[1:]), *(layers if i else reversed(layers))]
    part = f"{part}_block" if i else part
    return Sequential(layers, name=f"{name}_{part}{end}")(x)


def _block(inputs, filters, name):
    x = Conv2D(
        filters, 7, padding="same", groups=filters, name=f"{name}_depthwise_conv"
    )(inputs)
    x = _normalization(name=f"{name}_layernorm")(x)
    x = Dense(4 * filters, name=f"{name}_pointwise_conv_1")(x)
    x = Activation("gelu", name=f"{name}_gelu")(x)
    x = Dense(filters, name=f"{name}_pointwise_conv_2")(x)
    x = LayerScale(_SCALE, filters, name=f"{name}_layer_scale")(x)
    x = Activation("linear", name=f"{name}_identity")(x)
    return inputs + x


@_variant(
    "convnext_tiny",
    (
        "8ae6e78ce2933352b1ef4008e6dd2f17bc40771563877d156bc6426c7cf503ff",
        "d547c096cabd03329d7be5562c5e14798aa39ed24b474157cef5e85ab9e49ef1",
    ),
    (3, 3, 9, 3),
    96,
)
def ConvNeXtTiny():
    """ConvNeXt for image classification, the tiny variant.

    Without ``include_preprocessing`` the network expects standardized pixels.

    References:
        Liu et al., "A ConvNet for the 2020s" (2022).
    """


@_variant(
    "convnext_small",
    (
        "ce1277d8f1ee5a0ef0e171469089c18f5233860ceaf9b168049cb9263fd7483c",
        "6fc8009faa2f00c1c1dfce59feea9b0745eb260a7dd11bee65c8e20843da6eab",
    ),
    (3, 3, 27, 3),
    96,
)
def ConvNeXtSmall():
    """ConvNeXt for image classification, the small variant.

    Without ``include_preprocessing`` the network expects standardized pixels.

    References:
        Liu et al., "A ConvNet for the 2020s" (2022).
    """


@_variant(
    "convnext_base",
    (
        "52cbb006d3dadd03f6e095a8ca1aca47aecdd75acb4bc74bce1f5c695d0086e6",
        "40a20c5548a5e9202f69735ecc06c990e6b7c9d2de39f0361e27baeb24cb7c45",
    ),
    (3, 3, 27, 3),
    128,
)
def ConvNeXtBase():
    """ConvNeXt for image classification, the base variant.

    Without ``include_preprocessing`` the network expects standardized pixels.

    References:
        Liu et al., "A ConvNet for the 2020s" (2022).
    """


@_variant(
    "convnext_large",
    (
        "070c5ed9ed289581e477741d3b34beffa920db8cf590899d6d2c67fba2a198a6",
        "96f02b6f0753d4f543261bc9d09bed650f24dd6bc02ddde3066135b63d23a1cd",
    ),
    (3, 3, 27, 3),
    192,
)
def ConvNeXtLarge():
    """ConvNeXt for image classification, the large variant.

    Without ``include_preprocessing`` the network expects standardized pixels.

    References:
        Liu et al., "A ConvNet for the 2020s" (2022).
    """


@_variant(
    "convnext_xlarge",
    (
        "c1f5ccab661354fc3a79a10fa99af82f0fbf10ec65cb894a3ae0815f17a889ee",
        "de3f8a54174130e0cecdc71583354753d557fcf1f4487331558e2a16ba0cfe05",
    ),
    (3, 3, 27, 3),
    256,
)
def ConvNeXtXLarge():
    """ConvNeXt for image classification, the extra large variant.

    Without ``include_preprocessing`` the network expects standardized pixels.

    References:
        Liu et al., "A ConvNet for the 2020s" (2022).
    """
