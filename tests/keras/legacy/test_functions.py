"""Models of Keras 2 with TensorFlow's functions between their layers."""

import copy
import json
import pathlib

import numpy as np
import pytest

import tapewright as tw
from tapewright.keras.legacy.configs import keras3_config
from tapewright.serialization.load_errors import from_file

from .reference import record_keras2_functions as reference

keras = tw.keras
FOLDER = pathlib.Path(__file__).parent / "reference"
RECORDED = json.loads((FOLDER / "keras2_functions.json").read_text())


def read(config):
    with from_file("old.h5", "model_config"):
        return keras.Model.from_config(keras3_config(config))


@pytest.fixture
def model():
    return read(copy.deepcopy(RECORDED["config"]))


@pytest.fixture
def inputs():
    return [tw.constant(x) for x in reference.inputs()]


@pytest.fixture
def outputs(model, inputs):
    return model(inputs)


@pytest.mark.parametrize("key", RECORDED["outputs"])
def test_a_function_of_tensorflow_computes_what_it_does_in_keras_2(key, outputs):
    found = outputs[key].numpy().ravel()
    np.testing.assert_allclose(found, RECORDED["outputs"][key], rtol=1e-5, atol=1e-6)


def test_the_model_is_one_of_operations_with_the_names_that_the_file_has(model):
    names = {operation.name for operation in model.operations}
    assert {"tf.__operators__.getitem", "tf.math.truediv", "tf.reshape"} <= names
    kinds = {entry["class_name"] for entry in model.get_config()["layers"]}
    assert {"GetItem", "TrueDivide", "Reshape"} <= kinds
    assert "TFOpLambda" not in kinds and "OpCall" not in kinds


def test_the_model_is_written_in_the_present_form(model, inputs, outputs):
    again = keras.Model.from_config(json.loads(json.dumps(model.get_config())))(inputs)
    for key, value in outputs.items():
        np.testing.assert_array_equal(again[key], value)


@pytest.mark.parametrize(
    "function", ["os.system", "py_function", "io.read_file", "math.__class__", None, 3]
)
def test_a_function_that_is_not_of_the_table_is_refused(function):
    config = copy.deepcopy(RECORDED["config"])
    entry = next(x for x in config["layers"] if x["class_name"] == "TFOpLambda")
    entry["config"]["function"] = function
    with pytest.raises(tw.errors.SavingError, match="of TensorFlow in a model"):
        read(config)
