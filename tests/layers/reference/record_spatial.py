"""Writes what Keras' spatial layers give: ``convolution.npz``, ``pooling.npz`` and so on.

Needs Keras 3 with JAX, whose convolutions do everything on a CPU, and TensorFlow:

    KERAS_BACKEND=jax python tests/layers/reference/record_spatial.py
    KERAS_BACKEND=tensorflow python tests/layers/reference/record_spatial.py

The first writes the files of `LAYERS`. An entry holds the outputs, then the gradients of
``sum(outputs * c)`` by the inputs and by each weight, all flat and one after the other.
Inputs, weights and ``c`` come from `numbers`.

The second writes ``preprocessing.npz``: the outputs for `IMAGES`, for `AUGMENTATION` with
the transformation ``KEY|NAME`` that Keras drew, and for `WARPS`.
"""

import os
import pathlib
import zlib

import numpy as np

FIRST = {"data_format": "channels_first"}
CONVOLUTIONS = [
    ("Conv1D", {"filters": 3, "kernel_size": 3}, (2, 7, 2)),
    ("Conv1D", {"filters": 3, "kernel_size": 3, "padding": "causal"}, (2, 7, 2)),
    (
        "Conv1D",
        {"filters": 3, "kernel_size": 2, "padding": "causal", "dilation_rate": 3},
        (2, 8, 2),
    ),
    (
        "Conv1D",
        {"filters": 2, "kernel_size": 3, "padding": "causal", "strides": 2, **FIRST},
        (2, 3, 7),
    ),
    (
        "Conv1D",
        {"filters": 4, "kernel_size": 4, "padding": "same", "strides": 3, "groups": 2},
        (2, 8, 4),
    ),
    ("Conv2D", {"filters": 3, "kernel_size": 3}, (2, 5, 6, 2)),
    (
        "Conv2D",
        {"filters": 3, "kernel_size": 3, "padding": "same", "activation": "tanh"},
        (2, 5, 4, 2),
    ),
    (
        "Conv2D",
        {"filters": 2, "kernel_size": (2, 3), "padding": "SAME", "strides": 2},
        (2, 5, 6, 2),
    ),
    (
        "Conv2D",
        {"filters": 2, "kernel_size": (4, 2), "padding": "same", "strides": (2, 3)},
        (1, 7, 7, 3),
    ),
    ("Conv2D", {"filters": 2, "kernel_size": (1, 3), "strides": (3, 2)}, (2, 5, 7, 2)),
    (
        "Conv2D",
        {"filters": 2, "kernel_size": 3, "padding": "same", "dilation_rate": (2, 1)},
        (1, 6, 5, 2),
    ),
    ("Conv2D", {"filters": 2, "kernel_size": 2, "dilation_rate": 3}, (1, 6, 5, 2)),
    ("Conv2D", {"filters": 4, "kernel_size": 3, "groups": 2}, (1, 5, 4, 4)),
    (
        "Conv2D",
        {"filters": 6, "kernel_size": 2, "groups": 3, "padding": "same", "strides": 2},
        (1, 5, 4, 3),
    ),
    (
        "Conv2D",
        {"filters": 2, "kernel_size": 3, "padding": "same", "use_bias": False, **FIRST},
        (1, 2, 5, 4),
    ),
    (
        "Conv2D",
        {"filters": 4, "kernel_size": (3, 2), "strides": 2, "groups": 2, **FIRST},
        (1, 2, 6, 5),
    ),
    ("Conv3D", {"filters": 2, "kernel_size": 2}, (1, 3, 4, 3, 2)),
    (
        "Conv3D",
        {
            "filters": 2,
            "kernel_size": (2, 1, 3),
            "padding": "same",
            "strides": (1, 2, 2),
        },
        (1, 3, 4, 5, 1),
    ),
    ("Conv3D", {"filters": 2, "kernel_size": 2, **FIRST}, (1, 2, 2, 4, 3)),
    ("Conv1DTranspose", {"filters": 2, "kernel_size": 3, "strides": 2}, (2, 4, 3)),
    (
        "Conv1DTranspose",
        {"filters": 2, "kernel_size": 2, "strides": 3, "padding": "same", **FIRST},
        (2, 3, 4),
    ),
    ("Conv2DTranspose", {"filters": 2, "kernel_size": 3}, (1, 3, 4, 3)),
    (
        "Conv2DTranspose",
        {"filters": 2, "kernel_size": 3, "strides": 2, "padding": "same"},
        (2, 3, 2, 2),
    ),
    (
        "Conv2DTranspose",
        {"filters": 2, "kernel_size": 4, "strides": 2, "padding": "same"},
        (1, 3, 2, 2),
    ),
    ("Conv2DTranspose", {"filters": 2, "kernel_size": 2, "strides": 3}, (1, 3, 2, 2)),
    (
        "Conv2DTranspose",
        {"filters": 2, "kernel_size": 3, "strides": 2, "output_padding": (1, 0)},
        (1, 3, 2, 2),
    ),
    (
        "Conv2DTranspose",
        {
            "filters": 1,
            "kernel_size": (3, 4),
            "strides": (2, 3),
            "padding": "same",
            "output_padding": 1,
        },
        (1, 3, 2, 2),
    ),
    (
        "Conv2DTranspose",
        {"filters": 1, "kernel_size": 5, "strides": 2, "padding": "same", **FIRST},
        (1, 2, 3, 2),
    ),
    (
        "Conv2DTranspose",
        {"filters": 1, "kernel_size": 3, "padding": "same", "dilation_rate": 2},
        (1, 4, 3, 2),
    ),
    (
        "Conv2DTranspose",
        {"filters": 1, "kernel_size": 2, "dilation_rate": (2, 3)},
        (1, 3, 2, 2),
    ),
    ("Conv3DTranspose", {"filters": 2, "kernel_size": 2}, (1, 2, 2, 3, 1)),
    (
        "Conv3DTranspose",
        {"filters": 2, "kernel_size": (1, 3, 2), "strides": 2, "padding": "same"},
        (1, 2, 2, 3, 1),
    ),
    ("DepthwiseConv1D", {"kernel_size": 3}, (2, 6, 2)),
    (
        "DepthwiseConv1D",
        {"kernel_size": 2, "depth_multiplier": 3, "padding": "same", "strides": 2},
        (2, 5, 2),
    ),
    ("DepthwiseConv2D", {"kernel_size": 3}, (1, 5, 4, 3)),
    (
        "DepthwiseConv2D",
        {"kernel_size": (2, 3), "depth_multiplier": 2, "padding": "same", "strides": 2},
        (1, 5, 4, 2),
    ),
    (
        "DepthwiseConv2D",
        {"kernel_size": 2, "dilation_rate": 2, "padding": "same", **FIRST},
        (1, 2, 5, 4),
    ),
    ("SeparableConv1D", {"filters": 3, "kernel_size": 3}, (2, 6, 2)),
    (
        "SeparableConv1D",
        {"filters": 3, "kernel_size": 3, "padding": "same", "dilation_rate": 2},
        (2, 6, 2),
    ),
    (
        "SeparableConv2D",
        {"filters": 3, "kernel_size": 3, "depth_multiplier": 2, "padding": "same"},
        (1, 5, 4, 2),
    ),
    (
        "SeparableConv2D",
        {"filters": 3, "kernel_size": 2, "strides": 2, "activation": "relu", **FIRST},
        (1, 2, 5, 4),
    ),
]
POOLING = (
    [
        (f"{kind}Pooling{rank}D", {"pool_size": 2, **more}, shape)
        for kind in ("Max", "Average")
        for rank, more, shape in [
            (1, {}, (2, 7, 2)),
            (1, {"strides": 1, "padding": "same", **FIRST}, (2, 2, 5)),
            (1, {"strides": 3, "padding": "SAME"}, (2, 8, 2)),
            (2, {}, (2, 5, 4, 2)),
            (
                2,
                {"pool_size": (3, 2), "strides": (2, 1), "padding": "same"},
                (1, 6, 5, 2),
            ),
            (2, {"pool_size": 3, "strides": 2, **FIRST}, (1, 2, 7, 6)),
            (3, {"strides": (1, 2, 1)}, (1, 3, 4, 3, 2)),
            (3, {"padding": "same", **FIRST}, (1, 2, 3, 4, 3)),
        ]
    ]
    + [
        (f"Global{kind}Pooling{rank}D", more, shape)
        for kind in ("Max", "Average")
        for rank, more, shape in [
            (1, {}, (2, 4, 3)),
            (1, {"keepdims": True, **FIRST}, (2, 3, 4)),
            (2, {}, (2, 4, 3, 2)),
            (2, FIRST, (2, 3, 4, 2)),
            (3, {"keepdims": True}, (2, 2, 2, 3, 2)),
        ]
    ]
    + [
        (f"Adaptive{kind}Pooling{rank}D", {"output_size": size, **more}, shape)
        for kind in ("Max", "Average")
        for rank, size, more, shape in [
            (1, 3, {}, (2, 7, 2)),
            (1, 4, FIRST, (1, 2, 6)),
            (2, (2, 3), {}, (1, 5, 7, 2)),
            (3, (2, 1, 3), {}, (1, 3, 2, 5, 1)),
        ]
    ]
)
RESHAPING = [
    ("Flatten", {}, (2, 3, 4, 2)),
    ("Flatten", FIRST, (2, 3, 4, 2)),
    ("Flatten", {}, (3,)),
    ("Reshape", {"target_shape": (-1, 4)}, (2, 3, 4, 2)),
    ("Permute", {"dims": (3, 1, 2)}, (2, 3, 4, 2)),
    ("RepeatVector", {"n": 3}, (2, 4)),
    ("UpSampling1D", {"size": 3}, (2, 3, 2)),
    ("UpSampling2D", {"size": (2, 3)}, (2, 3, 2, 2)),
    ("UpSampling2D", {"size": 2, **FIRST}, (2, 2, 3, 2)),
    ("UpSampling2D", {"size": (2, 3), "interpolation": "bilinear"}, (1, 3, 4, 2)),
    ("UpSampling2D", {"interpolation": "bicubic", **FIRST}, (1, 2, 3, 4)),
    ("UpSampling2D", {"interpolation": "lanczos3"}, (1, 3, 4, 1)),
    ("UpSampling2D", {"interpolation": "lanczos5"}, (1, 3, 4, 1)),
    ("UpSampling3D", {}, (1, 2, 2, 3, 2)),
    ("UpSampling3D", {"size": (1, 2, 3), **FIRST}, (1, 2, 2, 3, 2)),
    ("ZeroPadding1D", {"padding": (1, 2)}, (2, 3, 2)),
    ("ZeroPadding1D", {"padding": 2, **FIRST}, (2, 3, 2)),
    ("ZeroPadding2D", {"padding": (1, 2)}, (1, 3, 2, 2)),
    ("ZeroPadding2D", {"padding": ((1, 0), (2, 1)), **FIRST}, (1, 2, 3, 2)),
    ("ZeroPadding3D", {"padding": (1, 0, 2)}, (1, 2, 2, 2, 1)),
    ("Cropping1D", {"cropping": (1, 2)}, (2, 6, 2)),
    ("Cropping2D", {"cropping": ((1, 0), (0, 2))}, (1, 4, 5, 2)),
    ("Cropping2D", {"cropping": 1, **FIRST}, (1, 2, 4, 5)),
    ("Cropping3D", {"cropping": (0, 1, 1)}, (1, 2, 4, 3, 2)),
]
LAYERS = {"convolution": CONVOLUTIONS, "pooling": POOLING, "reshaping": RESHAPING}

IMAGES = [
    ("Rescaling", {"scale": 0.5, "offset": [1.0, -2.0]}, (2, 3, 2)),
    ("Normalization", {"mean": 0.5, "variance": 4.0}, (2, 3, 2)),
    (
        "Normalization",
        {"axis": (1, -1), "mean": [1.0, 2.0], "variance": [4.0, 0.0], "invert": True},
        (2, 3, 2),
    ),
    ("Resizing", {"height": 4, "width": 5}, (2, 6, 3, 2)),
    ("Resizing", {"height": 7, "width": 3, "data_format": "channels_first"}, (2, 6, 5)),
    ("Resizing", {"height": 4, "width": 2, "interpolation": "nearest"}, (2, 6, 3, 2)),
    ("Resizing", {"height": 3, "width": 3, "interpolation": "lanczos3"}, (2, 6, 5, 1)),
    ("Resizing", {"height": 2, "width": 3, "interpolation": "area"}, (2, 5, 7, 1)),
    ("Resizing", {"height": 2, "width": 3, "antialias": True}, (2, 5, 7, 1)),
    ("Resizing", {"height": 4, "width": 3, "crop_to_aspect_ratio": True}, (6, 9, 2)),
    (
        "Resizing",
        {"height": 4, "width": 3, "pad_to_aspect_ratio": True, "fill_value": 0.5},
        (2, 5, 9, 1),
    ),
    ("Resizing", {"height": 3, "width": 3, "pad_to_aspect_ratio": True}, (9, 4, 1)),
    ("CenterCrop", {"height": 3, "width": 4}, (2, 6, 7, 2)),
    ("CenterCrop", {"height": 7, "width": 4}, (2, 6, 7, 2)),
    (
        "CenterCrop",
        {"height": 2, "width": 3, "data_format": "channels_first"},
        (2, 6, 4),
    ),
]
AUGMENTATION = [
    ("RandomFlip", {}, (4, 3, 4, 2)),
    ("RandomFlip", {"mode": "horizontal", **FIRST}, (4, 2, 4, 3)),
    ("RandomFlip", {"mode": "vertical"}, (4, 4, 3, 1)),
    ("RandomRotation", {"factor": 0.4}, (3, 5, 4, 2)),
    ("RandomRotation", {"factor": (0.1, 0.2), "fill_mode": "wrap"}, (5, 6, 2)),
    ("RandomRotation", {"factor": 0.5, "interpolation": "nearest"}, (3, 5, 4, 1)),
    ("RandomTranslation", {"height_factor": 0.5, "width_factor": 0.3}, (3, 5, 4, 2)),
    (
        "RandomTranslation",
        {
            "height_factor": (-0.5, 0.1),
            "width_factor": 0.9,
            "fill_mode": "constant",
            "fill_value": 0.5,
            **FIRST,
        },
        (3, 1, 5, 4),
    ),
    ("RandomZoom", {"height_factor": 0.5}, (3, 5, 4, 2)),
    (
        "RandomZoom",
        {"height_factor": 0.9, "width_factor": (0.1, 0.5), "fill_mode": "nearest"},
        (3, 5, 4, 1),
    ),
    ("RandomCrop", {"height": 3, "width": 2}, (2, 5, 4, 2)),
    ("RandomBrightness", {"factor": 0.5, "value_range": (0, 1)}, (3, 2, 2, 2)),
    ("RandomContrast", {"factor": (0.2, 0.9), "value_range": (-2, 2)}, (3, 3, 2, 2)),
]
# For each pair of modes: a shift and a turn, large ones, one with a vanishing point.
WARPS = [
    (interpolation, fill_mode)
    for interpolation in ("bilinear", "nearest")
    for fill_mode in ("constant", "nearest", "reflect", "wrap")
]
WARPED = (4, 4, 5, 1)
TRANSFORMS = [
    [0.7, -0.6, 2.0, 0.6, 0.7, -1.2, 0.0, 0.0],
    [1.0, 0.0, -0.5, 0.0, 1.0, 0.5, 0.0, 0.0],
    [3.0, 0.0, -19.0, 0.0, 2.5, -17.0, 0.0, 0.0],
    [1.0, 0.1, 0.3, -0.2, 1.0, 0.4, 0.05, -0.5],
]


def key(name, config, shape):
    """The name of an entry."""
    return f"{name} {config} {shape}"


def numbers(seed, shape):
    """Normally distributed ones, the same for the same text ``seed``."""
    random = np.random.default_rng(zlib.crc32(seed.encode()))
    return random.normal(size=tuple(shape)).astype("float32")


def record_layers():
    import jax

    import keras

    for file, cases in LAYERS.items():
        found = {}
        for name, config, shape in cases:
            layer = getattr(keras.layers, name)(**config)
            entry = key(name, config, shape)
            layer.build(shape)
            weights = [
                numbers(f"{i} {entry}", v.shape) for i, v in enumerate(layer.variables)
            ]

            def call(x, *weights, layer=layer):
                return layer.stateless_call(list(weights), [], x)[0]

            y, back = jax.vjp(call, numbers(entry, shape), *weights)
            values = [y, *back(numbers(f"c {entry}", y.shape))]
            found[entry] = np.concatenate([np.ravel(v) for v in values])
        save(file, found)


def record_images():
    import keras

    found = {}
    for name, config, shape in IMAGES:
        layer, entry = getattr(keras.layers, name)(**config), key(name, config, shape)
        layer.build(shape)
        found[entry] = np.array(layer(numbers(entry, shape)))
    for name, config, shape in AUGMENTATION:
        layer, entry = getattr(keras.layers, name)(**config), key(name, config, shape)
        images = keras.ops.convert_to_tensor(numbers(entry, shape))
        drawn = layer.get_random_transformation(images, seed=5)
        found[entry] = np.array(layer.transform_images(images, drawn))
        if not isinstance(drawn, dict):
            drawn = {"top": drawn[0], "left": drawn[1]}
        for part in drawn:
            if part in PARTS:
                found[f"{entry}|{part}"] = np.array(drawn[part])
    for modes in WARPS:
        images, maps = numbers(str(modes), WARPED), np.array(TRANSFORMS, "float32")
        found[str(modes)] = np.array(
            keras.ops.image.affine_transform(images, maps, *modes, fill_value=0.5)
        )
    for name, layer, data in statistics(keras.layers):
        layer.adapt(data)
        found[name] = np.array(layer(data))
    save("preprocessing", found)


PARTS = """flips angle rotation_matrix translations height_zoom width_zoom top left rgb_delta
    contrast_factor""".split()


def statistics(layers):
    """Layers to adapt to data."""
    data = numbers("statistics", (50, 3))
    return [
        ("adapted", layers.Normalization(), data),
        ("adapted to all", layers.Normalization(axis=None), data),
        ("bins", layers.Discretization(num_bins=4), data),
        ("few bins", layers.Discretization(num_bins=5, epsilon=0.1), data),
    ]


def save(file, found):
    import keras

    path = pathlib.Path(__file__).with_name(f"{file}.npz")
    np.savez_compressed(path, version=keras.__version__, **found)
    print(path, os.path.getsize(path), "bytes, Keras", keras.__version__)


def main():
    if os.environ.get("KERAS_BACKEND") == "jax":
        record_layers()
    else:
        record_images()


if __name__ == "__main__":
    main()
