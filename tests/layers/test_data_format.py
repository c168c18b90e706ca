"""``set_image_data_format("channels_first")``: the default of all layers, with channels
in front of the spatial axes."""

import inspect

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras, layers

SIZES = {1: (6,), 2: (6, 4), 3: (6, 4, 5)}  # by the rank that a name tells
# The arguments of layers that need some, by the start of the name.
ARGUMENTS = {
    "Adaptive": (2,), "AveragePooling": (2,), "AvgPool": (2,), "CenterCrop": (3, 2),
    "Conv": (3, 2), "Depthwise": (2,), "RandomBrightness": (0.3,),
    "RandomContrast": (0.3,), "RandomCrop": (3, 2), "RandomRotation": (0.2,),
    "RandomTranslation": (0.2, 0.2), "RandomZoom": (0.2,), "Resizing": (3, 5),
    "Separable": (3, 2), "SpatialDropout": (0.5,),
}  # fmt: skip


@pytest.fixture
def channels_first():
    keras.config.set_image_data_format("channels_first")
    yield
    keras.config.set_image_data_format("channels_last")


def classes():
    found = [getattr(layers, name) for name in layers.__all__]
    found = {x.__name__: x for x in found if isinstance(x, type)}
    takes = [x for x in found.values() if "data_format" in vars(x) or _takes(x)]
    return [x for x in takes if not x.__name__.startswith("_") and not _is_elsewhere(x)]


def _is_elsewhere(cls):
    """Most augmentations, and layers on sounds, have tests of their formats elsewhere."""
    here = cls.__name__.startswith((*ARGUMENTS, "RandomFlip"))
    folder, _, file = cls.__module__.rpartition(".")
    return (folder.endswith("augmentation") or file == "spectrograms") and not here


def _takes(cls):
    return "data_format" in inspect.signature(cls.__init__).parameters


def make(cls, **options):
    starts = [a for start, a in ARGUMENTS.items() if cls.__name__.startswith(start)]
    if cls.__name__.startswith("Random"):
        options["seed"] = 3
    return cls(*(starts[0] if starts else ()), **options)


def outputs_and_gradients(layer, x):
    """Also of random layers, which draw the same numbers; `Dropout` is left out."""
    training = type(layer).__name__.startswith("Random")
    with tw.GradientTape() as tape:
        x = tw.constant(x)
        tape.watch(x)
        y = layer(x, training=training)
        total = tw.reduce_sum(y**3)
    sources = [x, *layer.trainable_variables]
    gradients = tape.gradient(total, sources, unconnected_gradients="zero")
    return [np.asarray(each) for each in (y, *gradients)]


def test_each_layer_takes_the_format_that_is_set_when_it_is_made(channels_first):
    names = []
    for cls in classes():
        name = cls.__name__
        rank = next((r for r in SIZES if f"{r}D" in name), 2)
        keras.config.set_image_data_format("channels_first")
        if not _takes(cls):  # along one axis, without a choice
            continue
        first, last = make(cls), make(cls, data_format="channels_last")
        assert first.get_config()["data_format"] == "channels_first", name
        keras.config.set_image_data_format("channels_last")  # this has no effect
        time = (2,) if name.startswith("ConvLSTM") else ()
        shape = 3, *time, *SIZES[rank], 3
        x = np.random.default_rng(1).uniform(size=shape).astype("float32")
        moved = np.moveaxis(x, -1, -rank - 1)
        first(moved), last(x)
        last.set_weights(first.get_weights())
        y, *gradients = outputs_and_gradients(first, moved)
        expected, *wanted = outputs_and_gradients(last, x)
        shape = first.compute_output_shape(moved.shape)
        assert tuple(shape) == y.shape, name
        if y.ndim == rank + 2:
            y = np.moveaxis(y, -rank - 1, -1)
        gradients[0] = np.moveaxis(gradients[0], -rank - 1, -1)
        for a, b in zip([y, *gradients], [expected, *wanted], strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-4, err_msg=name)
        names.append(name)
    assert len(names) >= 45 and {"Flatten", "ConvLSTM2D", "RandomZoom"} <= {*names}


def test_functions_take_the_format_that_is_set(channels_first):
    ops = keras.ops
    x = np.random.default_rng(2).uniform(size=(2, 6, 5, 3)).astype("float32")
    kernel = np.random.default_rng(3).normal(size=(2, 3, 3, 4)).astype("float32")
    deep, wide = kernel[..., :2], kernel.transpose(0, 1, 3, 2)
    point = np.ones((1, 1, 6, 2), "float32")
    turn = np.float32([[1, 0.1, 0, 0.2, 1, 0, 0, 0]] * 2)
    calls = {
        "conv": lambda x, **o: ops.conv(x, kernel, 2, "same", **o),
        "depthwise": lambda x, **o: ops.depthwise_conv(x, deep, **o),
        "separable": lambda x, **o: ops.separable_conv(x, deep, point, **o),
        "transposed": lambda x, **o: ops.conv_transpose(x, wide, 2, **o),
        "max": lambda x, **o: ops.max_pool(x, 2, **o),
        "average": lambda x, **o: ops.average_pool(x, 2, padding="same", **o),
        "adaptive": lambda x, **o: ops.adaptive_max_pool(x, 2, **o),
        "resize": lambda x, **o: ops.image.resize(x, (3, 7), **o),
        "crop": lambda x, **o: ops.image.crop_images(x, 1, 1, None, None, 3, 2, **o),
        "pad": lambda x, **o: ops.image.pad_images(x, 1, 0, None, None, 8, 5, **o),
        "patches": lambda x, **o: ops.image.extract_patches(x, (2, 2), **o),
        "blur": lambda x, **o: ops.image.gaussian_blur(x, **o),
        "affine": lambda x, **o: ops.image.affine_transform(x, turn, **o),
        "gray": lambda x, **o: ops.image.rgb_to_grayscale(x, **o),
        "edges": lambda x, **o: ops.image.sobel_edges(x, **o)[..., 0],
        "hsv": lambda x, **o: ops.image.rgb_to_hsv(x, **o),
    }
    for name, call in calls.items():
        found = np.moveaxis(np.asarray(call(np.moveaxis(x, -1, 1))), 1, -1)
        expected = call(x, data_format="channels_last")
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5, err_msg=name)
        # a model keeps it
        inputs = keras.Input((3, 6, 5))
        model = keras.Model(inputs, call(inputs))
        keras.config.set_image_data_format("channels_last")
        again = np.moveaxis(np.asarray(model(np.moveaxis(x, -1, 1))), 1, -1)
        keras.config.set_image_data_format("channels_first")
        np.testing.assert_allclose(again, found, rtol=1e-4, atol=1e-5, err_msg=name)


def test_images_have_the_channels_first(channels_first, tmp_path):
    pytest.importorskip("PIL")
    image = keras.utils.array_to_img(np.arange(24.0).reshape(3, 2, 4))
    assert image.size == (4, 2)
    assert keras.utils.img_to_array(image).shape == (3, 2, 4)
    keras.utils.save_img(tmp_path / "x.png", np.zeros((3, 2, 4)))
    assert keras.utils.load_img(tmp_path / "x.png").size == (4, 2)
    x = np.ones((1, 3, 2, 2))
    scaled = keras.applications.resnet50.preprocess_input(x)
    np.testing.assert_allclose(scaled[0, :, 0, 0], [-102.939, -115.779, -122.68])
