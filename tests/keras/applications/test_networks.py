"""The networks of `keras.applications` are those recorded of Keras, layer for layer."""

import importlib.util
import json
import pathlib

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras
from tapewright.core.state.deferred_initialization import deferred_initialization

REFERENCE = pathlib.Path(__file__).parent / "reference"


def script(name):
    spec = importlib.util.spec_from_file_location(name, REFERENCE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


record, numbers = script("record_architectures"), script("record_outputs")
KERAS = json.loads((REFERENCE / "architectures.json").read_text())
OUTPUTS = np.load(REFERENCE / "outputs.npz")
# All flags, and of each family a network with its table as it is; the others differ in the
# table or the head alone: `record_architectures.py --compare` builds all 109.
CASES = [
    c for c in record.CASES if record.CASES[c][1] not in ({}, {"include_top": False})
]
CASES += """
    InceptionResNetV2 ResNet152 ResNet101V2 VGG19 DenseNet201 EfficientNetB1
    EfficientNetV2B3 ConvNeXtXLarge NASNetLarge
""".split()
# Of networks that are built quickly a case each: without them only --all sees their blocks.
QUICK = """
    MobileNet MobileNetV2 MobileNetV3Small ResNet50 VGG16 Xception InceptionV3
    EfficientNetB0 EfficientNetV2B0 ConvNeXtTiny
""".split()
ALWAYS = {next(c for c in CASES if c.startswith(f"{name} ")) for name in QUICK}


@pytest.fixture
def blank():
    """New variables are zeros: nothing is drawn at random for them."""
    with deferred_initialization(lambda *_: None):
        yield


@pytest.mark.parametrize(
    "case",
    [pytest.param(c, marks=[pytest.mark.always] * (c in ALWAYS), id=c) for c in CASES],
)
def test_a_network_has_the_layers_weights_and_configs_of_keras(case, blank):
    assert record.digests(record.build(keras, case)) == KERAS["networks"][case]


# The parts that depend on the axis of the channels; `record.FIRST` has all families.
@pytest.mark.parametrize(
    "name", ["MobileNetV2", "MobileNetV3Small", "ResNet50", "VGG16", "EfficientNetB0"]
)
def test_a_network_with_the_channels_in_front_is_that_of_keras(name, blank):
    model = record.build_first(keras, name)
    assert record.digests(model) == KERAS["channels_first"][name]


def test_outputs_do_not_depend_on_the_place_of_the_channels(blank):
    name = "MobileNetV3Small"
    arguments = {"weights": None, "classes": 10, "classifier_activation": None}
    architecture = getattr(keras.applications, name)
    last = architecture(input_shape=(40, 33, 3), **arguments)
    numbers.fill(last, numbers.NETWORKS[name][2])
    x = numbers.images((40, 33, 3))
    expected = np.asarray(last(x))
    keras.config.set_image_data_format("channels_first")
    try:
        first = architecture(input_shape=(3, 40, 33), **arguments)
        first.set_weights(last.get_weights())
        found = np.asarray(first(x.transpose(0, 3, 1, 2)))
        with pytest.raises(ValueError, match="ConvNeXtTiny: the data format must be"):
            keras.applications.ConvNeXtTiny(weights=None)
        with pytest.raises(
            ValueError, match=r"must be \(3, 224, 224\), got \(3, 96, 9"
        ):
            keras.applications.ResNet50(input_shape=(3, 96, 97))
        with pytest.raises(ValueError, match=r"\(channels, height, width\), got \(3,"):
            keras.applications.ResNet50(weights=None, input_shape=(3, 96))
    finally:
        keras.config.set_image_data_format("channels_last")
    assert np.ptp(expected, axis=0).max() > 1e-3
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_arguments_and_defaults_are_those_of_keras():
    assert record.signatures(keras) == KERAS["signatures"]


@pytest.mark.parametrize("name", numbers.NETWORKS)
def test_outputs_are_those_of_keras(name, blank):
    found, expected = numbers.inference(keras, name), OUTPUTS[name]
    atol = 1e-4 * np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=atol)


@pytest.mark.parametrize("trace", [lambda f: f, tw.function], ids=["eager", "traced"])
@pytest.mark.parametrize("name", numbers.TRAINED)
def test_a_step_of_training_is_that_of_keras(name, trace, blank):
    arguments = numbers.TRAINED[name]
    found = numbers.training(keras, tw.GradientTape, name, arguments, trace)
    for key, value in found.items():
        expected = OUTPUTS[f"{name}/{key}"]
        atol = 1e-9 * np.abs(expected).max()
        np.testing.assert_allclose(value, expected, rtol=1e-6, atol=atol, err_msg=key)
