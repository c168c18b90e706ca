"""Images before and class scores after a network."""

import json

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.keras.applications import imagenet_utils

RGB = np.array([10.0, 100.0, 250.0])
# By hand, from the means and deviations of ImageNet.
EXPECTED = {
    "tf": RGB / 127.5 - 1,
    "caffe": RGB[::-1] - [103.939, 116.779, 123.68],
    "torch": (RGB / 255 - [0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225],
}
MODES = {
    "caffe": "resnet resnet50 vgg16 vgg19",
    "tf": """
        inception_resnet_v2 inception_v3 mobilenet mobilenet_v2 nasnet resnet_v2 xception
    """,
    "torch": "densenet",
}
KINDS = {
    "array": lambda x: x,
    "bytes": lambda x: x.astype("uint8"),
    "double": lambda x: x.astype("float64"),
    "tensor": tw.constant,
    "tensor of bytes": lambda x: tw.constant(x.astype("uint8")),
}


def images(data_format, axes):
    x = np.broadcast_to(RGB.astype("float32"), (2, 4, 5, 3)[4 - axes :])
    return np.moveaxis(x, -1, -3) if data_format == "channels_first" else x


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first", None])
@pytest.mark.parametrize("mode", EXPECTED)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("axes", [3, 4])
def test_pixels_are_scaled_as_the_mode_says(axes, kind, mode, data_format):
    x = KINDS[kind](images(data_format, axes))
    before = np.array(x)
    found = imagenet_utils.preprocess_input(x, data_format, mode)
    assert isinstance(found, type(x)) and found.shape == x.shape
    assert found.dtype == ("float64" if kind == "double" else "float32")
    axis = -3 if data_format == "channels_first" else -1
    found = np.moveaxis(np.asarray(found), axis, -1)
    expected = np.broadcast_to(EXPECTED[mode], found.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(np.array(x), before)


@pytest.mark.parametrize("mode", EXPECTED)
def test_a_symbolic_tensor_becomes_layers_of_a_model(mode):
    x = keras.Input((4, 5, 3), dtype="uint8")
    model = keras.Model(x, imagenet_utils.preprocess_input(x, mode=mode))
    found = model(images(None, 4).astype("uint8"))
    expected = np.broadcast_to(EXPECTED[mode], found.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_each_family_has_its_mode():
    x = images(None, 3)
    for mode, families in MODES.items():
        for family in families.split():
            module = getattr(keras.applications, family)
            found = module.preprocess_input(x)
            np.testing.assert_allclose(found[0, 0], EXPECTED[mode], 1e-5, 1e-5)
            assert module.decode_predictions is imagenet_utils.decode_predictions
    for family in ("convnext", "efficientnet", "efficientnet_v2", "mobilenet_v3"):
        assert getattr(keras.applications, family).preprocess_input(x) is x


@pytest.mark.parametrize(
    "arguments, named",
    [
        ({"mode": "bgr"}, "mode"),
        ({"data_format": "NCHW"}, "data_format"),
        ({"x": np.ones((2, 3))}, "3 or 4 axes"),
    ],
)
def test_bad_arguments_are_named(arguments, named):
    with pytest.raises(ValueError, match=named):
        imagenet_utils.preprocess_input(**{"x": np.ones((2, 2, 3)), **arguments})


def test_the_highest_scores_are_named(monkeypatch, tmp_path):
    names = {str(i): [f"n{i:08d}", f"class_{i}"] for i in range(1000)}
    (tmp_path / "index.json").write_text(json.dumps(names))
    asked = []

    def get_file(*args, **kwargs):
        asked.append((args, kwargs))
        return tmp_path / "index.json"

    monkeypatch.setattr(imagenet_utils, "get_file", get_file)
    monkeypatch.setattr(
        imagenet_utils, "_class_names", imagenet_utils._class_names.__wrapped__
    )
    scores = np.zeros((2, 1000), "float32")
    scores[0, [7, 3]], scores[1, 999] = (0.25, 0.75), 1.0
    found = imagenet_utils.decode_predictions(tw.constant(scores), top=2)
    assert found[0] == [("n00000003", "class_3", 0.75), ("n00000007", "class_7", 0.25)]
    assert found[1][0] == ("n00000999", "class_999", 1.0) and len(found[1]) == 2
    (arguments, options) = asked[0]
    assert arguments[0] == "imagenet_class_index.json"
    assert options["file_hash"] == "c2c37ea517e94d9795004a39431a14cb"
    with pytest.raises(ValueError, match=r"\[batch, 1000\].*\(2, 10\)"):
        imagenet_utils.decode_predictions(scores[:, :10])
