"""`fit` beside Keras: the same models from the same weights, for three epochs.

The references are recorded by ``reference/record_histories.py``, which also compares live
where Keras is installed.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw

FOLDER = Path(__file__).parent.parent / "reference"


def load(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MODELS = load("histories").MODELS


@pytest.fixture(scope="module")
def recorded():
    with np.load(FOLDER / "histories.npz") as file:
        return {key: file[key] for key in file}


def parts(recorded, name, part):
    prefix = f"{name}/{part}/"
    return {
        k.removeprefix(prefix): v for k, v in recorded.items() if k.startswith(prefix)
    }


@pytest.mark.parametrize("run_eagerly", [False, True], ids=["traced", "eager"])
@pytest.mark.parametrize("name", MODELS)
def test_training_is_that_of_keras(recorded, name, run_eagerly):
    model, arguments = MODELS[name](tw.keras)
    model.run_eagerly = run_eagerly
    model.set_weights(list(parts(recorded, name, "initial").values()))
    history = model.fit(**arguments, epochs=3, shuffle=False, verbose=0).history
    expected = parts(recorded, name, "history")
    assert sorted(history) == sorted(expected)
    for key, values in expected.items():
        np.testing.assert_allclose(history[key], values, rtol=1e-4, atol=1e-5)
    for mine, theirs in zip(
        model.get_weights(), parts(recorded, name, "final").values()
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-4)
    x = arguments["x"]
    x = {k: v[:5] for k, v in x.items()} if isinstance(x, dict) else x[:5]
    outputs = model.predict(x, verbose=0)
    outputs = outputs if isinstance(outputs, list) else [outputs]
    for mine, theirs in zip(outputs, parts(recorded, name, "outputs").values()):
        np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-4)
