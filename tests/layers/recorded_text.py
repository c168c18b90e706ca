"""Recordings of Keras' layers of vocabularies, texts and hashes, and their comparison."""

import importlib.util
import json
from pathlib import Path

import numpy as np

import tapewright as tw
from tapewright import layers

REFERENCE = Path(__file__).parent / "reference"


def _script():
    path = REFERENCE / "record_text.py"
    spec = importlib.util.spec_from_file_location("record_text", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


record = _script()
KERAS = json.loads((REFERENCE / "text.json").read_text())


def cases(*names):
    """The cases of some layers."""
    return [case for case in record.CASES if case[0] in names]


def values(outputs):
    """Outputs as a list, strings as text."""
    array = np.asarray(outputs.numpy())
    if array.dtype == object:
        array = np.char.decode(array.astype("S"))
    return array


def differences(case):
    """What differs from the recording: eager, traced, configs, vocabulary, announced shape."""
    name, config, inputs, adapt = case
    expected, dtype, keras_config, tokens = KERAS[record.key(*case)]
    expected = np.array(expected)
    layer, outputs = record.run(layers, tw.constant, *case)
    if hasattr(layer, "get_vocabulary") and layer.get_vocabulary() != tokens:
        yield f"vocabulary {layer.get_vocabulary()}, not {tokens}"
    found = json.loads(json.dumps(layer.get_config()))
    if found != keras_config:
        yield f"config {found}, not {keras_config}"
    several = name == "HashedCrossing"
    tensors = [tw.constant(x) for x in inputs] if several else tw.constant(inputs)
    traced = tw.function(lambda x: layer(x))(tensors)
    for how, each in (("eager", outputs), ("traced", traced)):
        if each.dtype.name != dtype:
            yield f"{how}: {each.dtype.name}, not {dtype}"
        given = values(each)
        close = given.shape == expected.shape and (
            (given == expected).all()
            if expected.dtype.kind in "U"
            else np.allclose(given, expected, rtol=1e-6)
        )
        if not close:
            yield f"{how}: {given.tolist()}, not {expected.tolist()}"
    if np.ndim(inputs if not several else inputs[0]):
        specs = [
            tw.keras.KerasTensor((None, *x.shape[1:]), x.dtype)
            for x in (tensors if several else [tensors])
        ]
        spec = layer.compute_output_spec(specs if several else specs[0])
        if spec.dtype != outputs.dtype or not spec.shape.is_compatible_with(
            outputs.shape
        ):
            yield f"announced {spec}, gave {outputs.shape} {outputs.dtype}"


def check(*names):
    """Compare all cases of some layers with Keras."""
    found = [f"{case}: {text}" for case in cases(*names) for text in differences(case)]
    assert not found, "\n".join(found)


def check_errors(*names):
    """Errors are of the classes of Keras' and name the layer or an argument."""
    for case in record.ERRORS:
        if case[0] not in names:
            continue
        expected = KERAS[record.key(*case)]
        try:
            record.run(layers, tw.constant, *case)
        except Exception as error:
            kinds = [cls.__name__ for cls in type(error).__mro__]
            assert expected in kinds, (case, repr(error))
        else:
            raise AssertionError(f"{case} must raise {expected}")
