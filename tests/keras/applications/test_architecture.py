"""Arguments of the architectures, their checks, and the weights that they load."""

import importlib.util
import json
import pathlib

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.datasets.fetch import DownloadError
from tapewright.keras.applications import architecture

REFERENCE = pathlib.Path(__file__).parent / "reference"
_spec = importlib.util.spec_from_file_location(
    "record_architectures", REFERENCE / "record_architectures.py"
)
record = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(record)
KERAS = json.loads((REFERENCE / "architectures.json").read_text())
MobileNet = keras.applications.MobileNet
TINY = {"alpha": 0.05, "input_shape": (32, 32, 3), "weights": None}
SMALL = {**TINY, "include_top": False, "pooling": "avg"}

BAD = [
    (MobileNet, {"weights": "nowhere.h5"}, "weights.*nowhere.h5"),
    (MobileNet, {"classes": 10}, "classes must be 1000, got 10"),
    (MobileNet, {"weights": None, "pooling": "mean"}, "pooling.*'mean'"),
    (MobileNet, {"classifier_activation": "relu"}, "classifier_activation.*'relu'"),
    (MobileNet, {"input_tensor": np.ones((1, 32, 32, 3))}, "input_tensor must be"),
    (MobileNet, {"input_shape": (96, 96, 3)}, r"\(224, 224, 3\), got \(96, 96, 3\)"),
    (MobileNet, {"input_shape": (32, 32)}, "input_shape must have three entries"),
    (MobileNet, {**SMALL, "input_shape": (31, 64, 3)}, "at least 32 x 32"),
    (MobileNet, {**TINY, "input_shape": (None, 64, 3)}, "must be known"),
    (
        MobileNet,
        {"include_top": False, "input_shape": (64, 64, 1)},
        "3 channels, got",
    ),
    (MobileNet, {"depth_multiplier": 2}, "depth_multiplier must be 1, got 2"),
    (MobileNet, {"alpha": 0.6}, "alpha must be one of.*got 0.6"),
    (keras.applications.MobileNetV2, {"alpha": 0.6}, "alpha must be one of.*got 0.6"),
    (
        keras.applications.MobileNetV3Small,
        {"alpha": 0.75, "minimalistic": True},
        "alpha must be 0.75 or 1.0",
    ),
    (
        keras.applications.MobileNetV3Large,
        {"weights": None, "input_shape": (31, 64, 3)},
        "at least 32 x 32",
    ),
    (
        keras.applications.NASNetMobile,
        {"include_top": False, "input_shape": (None, 64, 3)},
        "must be known",
    ),
    (
        keras.applications.Xception,
        {"weights": None, "input_shape": (70, 71, 3)},
        "at least 71 x 71",
    ),
    (
        keras.applications.InceptionV3,
        {"weights": None, "input_shape": (74, 75, 3)},
        "at least 75 x 75",
    ),
]


@pytest.mark.parametrize(
    "function, arguments, message", BAD, ids=[message for *_, message in BAD]
)
def test_arguments_that_do_not_fit_are_named(function, arguments, message):
    with pytest.raises(ValueError, match=rf"{function.__name__}: .*{message}"):
        function(**arguments)


def test_other_numbers_of_channels_warn():
    with pytest.warns(UserWarning, match=r"1 or 3 channels.*\(32, 32, 4\)"):
        model = MobileNet(**{**SMALL, "input_shape": (32, 32, 4)})
    assert model.input_shape == (None, 32, 32, 4)


def test_a_network_can_begin_at_a_tensor_of_another_model():
    x = keras.Input((40, 40, 3))
    scaled = keras.layers.Rescaling(1 / 127.5, -1.0)(x)
    model = keras.applications.MobileNetV2(
        alpha=0.35, include_top=False, weights=None, input_tensor=scaled
    )
    assert model.inputs[0] is x and model.layers[1].name == "rescaling"
    assert model.output_shape == (None, 2, 2, 1280)
    for function in ("MobileNetV2", "MobileNetV3Small"):
        with pytest.raises(ValueError, match="input_shape and input_tensor differ"):
            getattr(keras.applications, function)(
                weights=None, input_tensor=scaled, input_shape=(64, 64, 3)
            )


@pytest.mark.parametrize("ending", [".weights.h5", ".h5", ".keras"])
def test_weights_are_loaded_from_a_path(ending, tmp_path):
    model, path = MobileNet(**TINY, classes=3), tmp_path / f"m{ending}"
    save = model.save_weights if ending == ".weights.h5" else model.save
    save(path)
    tw.random.set_seed(1)
    first = tw.random.uniform([2]).numpy()
    tw.random.set_seed(1)
    loaded = MobileNet(**{**TINY, "weights": path}, classes=3)
    np.testing.assert_array_equal(tw.random.uniform([2]), first)  # none was drawn
    for a, b in zip(model.weights, loaded.weights, strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(ValueError, match="predictions|conv_preds"):
        MobileNet(**{**TINY, "weights": path}, classes=4)


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """A list of what `get_file` is asked for, in the place of a download."""
    found = []

    def get_file(*args, **kwargs):
        found.append((*args, kwargs["file_hash"]))
        raise DownloadError([(args[1], "no network")])

    monkeypatch.setattr(architecture, "get_file", get_file)
    return found


def test_weights_for_imagenet_are_the_files_of_keras(monkeypatch):
    monkeypatch.setattr(architecture, "get_file", record.asking)
    for name, expected in KERAS["files"].items():
        assert record.files(keras, name) == expected, name


def test_the_files_do_not_depend_on_the_name_of_a_model(asked):
    for name in ("EfficientNetB0", "EfficientNetV2S", "ConvNeXtTiny"):
        with pytest.raises(DownloadError):
            getattr(keras.applications, name)(name="own")
    expected = ["efficientnetb0.h5", "efficientnetv2-s.h5", "convnext_tiny.h5"]
    assert [name for name, *_ in asked] == expected


def test_without_a_network_the_error_names_url_and_place(tmp_path, monkeypatch):
    monkeypatch.setenv("TAPEWRIGHT_HOME", str(tmp_path))
    monkeypatch.setattr(architecture, "STORAGE", "file:///nowhere/")
    monkeypatch.setattr(architecture, "BUCKET", "file:///nowhere/")
    file = "vgg16_weights_tf_dim_ordering_tf_kernels.h5"
    place = tmp_path / "models" / file
    message = f"file:///nowhere/vgg16/{file}(.|\n)*copy the file to {place}"
    with pytest.raises(DownloadError, match=message) as caught:
        keras.applications.VGG16()
    assert "weights=PATH" in caught.value.__notes__[0]


def test_images_of_another_size_take_the_weights_of_224(asked):
    for function in ("MobileNet", "MobileNetV2", "MobileNetV3Small"):
        with (
            pytest.raises(DownloadError),
            pytest.warns(UserWarning, match=r"\(100, 100, 3\).*224"),
        ):
            getattr(keras.applications, function)(
                include_top=False, input_shape=(100, 100, 3)
            )
    assert all("224" in name for name, *_ in asked) and len(asked) == 3


def test_weights_of_efficientnet_for_imagenet_scale_once_more(monkeypatch, tmp_path):
    path = tmp_path / "b0.weights.h5"
    keras.applications.EfficientNetB0(weights=None).save_weights(path)
    monkeypatch.setattr(architecture, "get_file", lambda *_, **__: path)
    layers = keras.applications.EfficientNetB0().layers
    np.testing.assert_allclose(layers[3].scale, np.power([0.229, 0.224, 0.225], -0.5))
