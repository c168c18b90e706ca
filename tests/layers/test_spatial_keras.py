"""Convolution, pooling and reshaping layers against numbers recorded from Keras.

``reference/record_spatial.py`` has the cases, and tells how the files came about.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw
from tapewright import layers

REFERENCE = Path(__file__).parent / "reference"
_spec = importlib.util.spec_from_file_location(
    "record_spatial", REFERENCE / "record_spatial.py"
)
record = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(record)

KERAS = {
    file: dict(np.load(REFERENCE / f"{file}.npz", allow_pickle=False))
    for file in record.LAYERS
}
CASES = [(file, *case) for file, cases in record.LAYERS.items() for case in cases]
NAMES = [record.key(*case) for _, *case in CASES]


def layer_of(name, config, shape):
    """The layer, with the weights that it had in Keras."""
    layer, entry = getattr(layers, name)(**config), record.key(name, config, shape)
    layer.build(shape)
    for i, variable in enumerate(layer.weights):
        variable.assign(record.numbers(f"{i} {entry}", variable.shape))
    return layer


def outputs_and_gradients(layer, x, c):
    with tw.GradientTape() as tape:
        tape.watch(x)
        y = layer(x)
        loss = tw.reduce_sum(y * c)
    return [y, *tape.gradient(loss, [x, *layer.weights])]


@pytest.mark.parametrize("file, name, config, shape", CASES, ids=NAMES)
def test_outputs_and_gradients_are_those_of_keras(file, name, config, shape):
    layer, entry = layer_of(name, config, shape), record.key(name, config, shape)
    x = tw.constant(record.numbers(entry, shape))
    assert tuple(layer.compute_output_shape(shape)) == tuple(layer(x).shape)
    c = record.numbers(f"c {entry}", layer.compute_output_shape(shape))
    found = [np.ravel(v) for v in outputs_and_gradients(layer, x, c)]
    np.testing.assert_allclose(
        np.concatenate(found), KERAS[file][entry], rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("file, name, config, shape", CASES, ids=NAMES)
def test_a_trace_with_unknown_sizes_gives_the_same(file, name, config, shape):
    layer, entry = layer_of(name, config, shape), record.key(name, config, shape)
    x = tw.constant(record.numbers(entry, shape))
    c = tw.constant(record.numbers(f"c {entry}", layer.compute_output_shape(shape)))
    expected = outputs_and_gradients(layer, x, c)
    traced = tw.function(
        lambda x, c: outputs_and_gradients(layer, x, c),
        input_signature=[
            tw.TensorSpec([None, *shape[1:]]),
            tw.TensorSpec([None, *c.shape[1:]]),
        ],
    )
    for ours, theirs in zip(traced(x, c), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("file, name, config, shape", CASES, ids=NAMES)
def test_a_config_makes_the_same_layer_again(file, name, config, shape):
    layer = getattr(layers, name)(**config)
    again = type(layer).from_config(layer.get_config())
    assert again.get_config() == layer.get_config()
    unknown = (None, *shape[1:])
    assert again.compute_output_shape(unknown) == (
        None,
        *layer.compute_output_shape(shape)[1:],
    )
