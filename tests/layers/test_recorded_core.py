"""Core, merging, attention and normalization layers against Keras, eager and traced."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw
from tapewright.layers.base import masks

FOLDER = Path(__file__).parent / "reference"
SPEC = importlib.util.spec_from_file_location("record_core", FOLDER / "record_core.py")
record = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(record)


@pytest.fixture(scope="module")
def recorded():
    return np.load(FOLDER / "core.npz")


class Problem:
    """A recorded case: a layer with its weights set, inputs, masks and cotangents."""

    def __init__(self, case):
        name, config, shapes, mask_shapes, call = case
        key = record.key_of(case)
        self.inputs = [
            tw.constant(record.numbers(key, i, s)) for i, s in enumerate(shapes)
        ]
        self.masks = {
            i: tw.constant(record.mask(key, f"of {i}", s))
            for i, s in enumerate(mask_shapes or [])
            if s is not None
        }
        self.call, self.flags = {}, {}
        for k, v in record.made(key, call).items():
            if isinstance(v, bool):
                self.flags[k] = v
            else:
                self.call[k] = tw.nest.map_structure(tw.constant, v)
        self.listed = len(shapes) > 1 and not record.by_position(name)
        self.layer = record.layer_of(tw.layers, name, config)
        outputs, _ = self.outputs(self.inputs, self.masks, self.call)
        self.cotangents = [
            tw.constant(record.numbers(key, f"c{i}", y.shape))
            for i, y in enumerate(outputs)
        ]
        for i, weight in enumerate(self.layer.weights):
            value = record.weight_of(key, f"{i} {weight.name}", weight.shape)
            weight.assign(value)

    def outputs(self, inputs, mask_of, call):
        """The outputs, and the mask that they carry, if any."""
        inputs = [tw.identity(x) for x in inputs] if mask_of else inputs
        for i, mask in mask_of.items():
            masks.attach(inputs[i], mask)
        args = [inputs] if self.listed else inputs
        outputs = self.layer(*args, **call, **self.flags)
        if isinstance(outputs, tuple):
            return list(outputs), []
        mask = masks.mask_of(outputs)
        return [outputs], [] if mask is None else [mask]

    def step(self, inputs, mask_of, call, cotangents):
        with tw.GradientTape() as tape:
            tape.watch(inputs)
            outputs, mask = self.outputs(inputs, mask_of, call)
            loss = sum([tw.reduce_sum(y * c) for y, c in zip(outputs, cotangents)])
        sources = [*inputs, *self.layer.trainable_weights]
        slopes = tape.gradient(loss, sources, unconnected_gradients="zero")
        return [*outputs, *slopes], mask

    def result(self, step):
        given = self.inputs, self.masks, self.call, self.cotangents
        found, mask = step(*given)
        found = [*found, *self.layer.non_trainable_weights, *mask]
        return np.concatenate([np.ravel(x.numpy()).astype("float32") for x in found])

    def signature(self):
        """The arguments of `step` with an unknown batch size each."""
        given = self.inputs, self.masks, self.call, self.cotangents
        return tw.nest.map_structure(
            lambda x: tw.TensorSpec([None, *x.shape[1:]], x.dtype), given
        )


@pytest.mark.parametrize("case", record.CASES, ids=record.key_of)
def test_values_gradients_and_masks_are_those_of_keras(recorded, case):
    problem = Problem(case)
    expected = recorded[record.key_of(case)]
    result = problem.result(problem.step)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("case", record.CASES, ids=record.key_of)
def test_a_trace_for_any_batch_size_gives_the_same(recorded, case):
    problem = Problem(case)
    expected = recorded[record.key_of(case)]
    step = tw.function(problem.step, input_signature=problem.signature())
    np.testing.assert_allclose(problem.result(step), expected, rtol=1e-5, atol=1e-5)
