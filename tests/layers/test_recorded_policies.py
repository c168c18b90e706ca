"""Every layer under each policy against Keras: dtypes of weights, outputs and gradients,
and values to the precision of the dtype."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw
from tapewright import keras

FOLDER = Path(__file__).parent / "reference"
SPEC = importlib.util.spec_from_file_location(
    "record_policies", FOLDER / "record_policies.py"
)
record = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(record)

DTYPES = json.loads((FOLDER / "policies.json").read_text())
VALUES = np.load(FOLDER / "policies.npz")
LIMITS = {"float16": 1e-2, "bfloat16": 6e-2, "float64": 1e-6}


def without_seeds(weights):
    return [v for v in weights if "seed" not in v.path]


class Case:
    """A layer under a policy, with its weights set, its inputs and cotangents."""

    def __init__(self, key, policy):
        make, shapes, listed, self.random, self.flags = record.CASES[key]
        keras.config.set_dtype_policy(policy)
        try:
            self.layer = make(keras.layers)
        finally:
            keras.config.set_dtype_policy(None)
        inputs = [tw.constant(x) for x in record.inputs_of(key, shapes)]
        self.args = [inputs] if listed else inputs
        if key.endswith("Cell"):
            self.args = [inputs[0], inputs[1:]]
        outputs = tw.nest.flatten(self.layer(*self.args, **self.flags))
        self.key = key
        self.cotangents = [
            tw.constant(record.numbers(key, f"c{i}", tuple(y.shape)).astype("float64"))
            for i, y in enumerate(outputs)
        ]

    def reset(self):
        for i, v in enumerate(self.layer.weights):
            if "seed" not in v.path:
                value = record.weight(self.key, i, v.name, v.shape)
                v.assign(tw.cast(value, v.dtype))
        if getattr(self.layer, "stateful", False):
            self.layer.reset_state()

    def step(self, *args):
        """Outputs, and the gradients by the trainable weights."""
        with tw.GradientTape() as tape:
            outputs = tw.nest.flatten(self.layer(*args, **self.flags))
            loss = sum(
                [
                    tw.reduce_sum(tw.cast(y, "float64") * c)
                    for y, c in zip(outputs, self.cotangents)
                ]
            )
        slopes = tape.gradient(loss, self.layer.trainable_weights)
        slopes = [None if g is None else tw.convert_to_tensor(g) for g in slopes]
        return outputs, slopes


@pytest.mark.parametrize("name", [n for n in DTYPES if DTYPES[n] is not None])
def test_a_layer_has_the_dtypes_and_values_of_keras(name):
    key, policy = name.split("|")
    case = Case(key, policy)
    for step in (case.step, tw.function(case.step)):
        case.reset()
        outputs, slopes = step(*case.args)
        found = {
            "weights": [v.dtype.name for v in without_seeds(case.layer.weights)],
            "outputs": [y.dtype.name for y in outputs],
            "gradients": [None if g is None else g.dtype.name for g in slopes],
        }
        assert found == DTYPES[name]
        if not case.random:
            arrays = [*outputs, *[g for g in slopes if g is not None]]
            arrays = [np.ravel(x.numpy()).astype("float32") for x in arrays]
            limit = LIMITS[policy.removeprefix("mixed_")]
            expected = VALUES[name]
            scale = np.maximum(1, np.abs(expected).max())
            np.testing.assert_allclose(
                np.concatenate(arrays) / scale, expected / scale, atol=limit
            )
