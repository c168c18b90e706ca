"""Every layer, with fixed and with open sizes, at three batch sizes."""

import importlib.util
import inspect
from pathlib import Path

import numpy as np
import pytest

import tapewright as tw
from tapewright.keras import layers

from .runtime import same_as_eager

HERE = Path(__file__).parent
FLOAT, INT = tw.float32, tw.int32
# Inputs that most layers accept; the first that a layer accepts is used.
FIXED = [
    ([None, 8, 8, 4], FLOAT),
    ([None, 8, 8, 3], FLOAT),
    ([None, 6, 4], FLOAT),
    ([None, 4], FLOAT),
    ([None, 6, 6, 6, 4], FLOAT),
    ([None, 5], INT),
    ([None, 4, 5, 5, 4], FLOAT),
    ([None, 4, 5, 5, 5, 4], FLOAT),
]
OPEN = [
    ([None, None, None, 4], FLOAT),
    ([None, None, 4], FLOAT),
    ([None, None], INT),
    ([None, None, None, None, 4], FLOAT),
]
MERGING = {
    "Add", "Average", "Concatenate", "Dot", "Maximum", "Minimum", "Multiply", "Subtract",
    "Attention", "AdditiveAttention",
}  # fmt: skip
PAIRS = {"MultiHeadAttention", "GroupQueryAttention", "GroupedQueryAttention"}
MADE = {
    "Bidirectional": lambda: layers.Bidirectional(
        layers.LSTM(3, return_sequences=True)
    ),
    "ConvLSTM1D": lambda: layers.ConvLSTM1D(2, 3),
    "ConvLSTM3D": lambda: layers.ConvLSTM3D(2, 1),
    "Discretization": lambda: layers.Discretization(bin_boundaries=[0.1, 0.5]),
    "GRU": lambda: layers.GRU(3, return_state=True),
    "GroupedQueryAttention": lambda: layers.GroupedQueryAttention(4, 4, 2),
    "Normalization": lambda: layers.Normalization(mean=0.3, variance=2.0),
    "RNN": lambda: layers.RNN(layers.LSTMCell(3)),
    "RandomColorDegeneration": lambda: layers.RandomColorDegeneration(0.5),
    "RandomHeight": lambda: layers.RandomHeight(0.5),
    "RandomPosterization": lambda: layers.RandomPosterization(4),
    "RandomSaturation": lambda: layers.RandomSaturation(0.5),
    "RandomSharpness": lambda: layers.RandomSharpness(0.5),
    "RandomWidth": lambda: layers.RandomWidth(0.5),
    "SpectralNormalization": lambda: layers.SpectralNormalization(layers.Dense(3)),
    "TimeDistributed": lambda: layers.TimeDistributed(layers.Dense(3)),
}
# Bases, cells, layers of strings and spectra; `Lambda` is in another test.
LEFT_OUT = {
    "GRUCell", "HashedCrossing", "Hashing", "IntegerLookup", "LSTMCell", "Lambda", "Layer",
    "MaxNumBoundingBoxes", "MelSpectrogram", "Pipeline", "STFTSpectrogram", "SavedLayer",
    "SimpleRNNCell", "StackedRNNCells", "StringLookup", "TextVectorization", "Wrapper",
    "InputLayer",
}  # fmt: skip
# The trace for open sizes is one for images that have more pixels than these.
FOR_LARGE_IMAGES = {("ContrastLimitedAdaptiveHistogramEqualization", "open")}


def _table():
    """Arguments of the constructors, from the table of reference configs."""
    path = HERE.parents[1] / "keras" / "files" / "reference" / "record_configs.py"
    spec = importlib.util.spec_from_file_location("record_configs", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.LAYERS


ARGUMENTS = _table()


def _is_listed(name):
    kind = getattr(layers, name)
    is_layer = isinstance(kind, type) and issubclass(kind, layers.Layer)
    return is_layer and kind.__name__ == name and name not in LEFT_OUT


LAYERS = [name for name in dir(layers) if name[0].isupper() and _is_listed(name)]


def made(name):
    if name in MADE:
        return MADE[name]()
    arguments = dict(ARGUMENTS.get(name, {}))
    arguments.pop("stateful", None)
    return getattr(layers, name)(**arguments)


def drawn(rng, shape, dtype, batch):
    sizes = [batch, 7, 9, 8]
    shape = [sizes[i] if n is None else n for i, n in enumerate(shape)]
    if dtype == INT:
        return rng.integers(0, 4, shape).astype("i4")
    return rng.random(shape, dtype="f4")


def called(layer, name):
    options = {}
    if "training" in inspect.signature(layer.call).parameters:
        options["training"] = False
    if name in MERGING:
        return lambda x, y: layer([x, y], **options), 2
    if name in PAIRS:
        return lambda x, y: layer(x, y, **options), 2
    return lambda x: layer(x, **options), 1


def accepted(name, rng, candidates):
    """A call, its signature, and how many inputs it has; None if no input fits."""
    for shape, dtype in candidates:
        call, count = called(made(name), name)
        try:
            call(*[tw.constant(drawn(rng, shape, dtype, 2)) for _ in range(count)])
        except (ValueError, TypeError):
            continue
        return call, shape, dtype, count
    return None


@pytest.mark.parametrize("sizes", ["fixed", "open"])
@pytest.mark.parametrize("name", LAYERS)
def test_it_computes_the_same(name, sizes, tmp_path):
    rng = np.random.default_rng(1)
    found = accepted(name, rng, FIXED if sizes == "fixed" else OPEN)
    if found is None:
        assert sizes == "open"
        return
    call, shape, dtype, count = found
    calls = [[drawn(rng, shape, dtype, n) for _ in range(count)] for n in (2, 5, 1)]
    signature = [tw.TensorSpec(shape, dtype)] * count
    if (name, sizes) in FOR_LARGE_IMAGES:
        with pytest.raises(Exception, match="sizes must satisfy"):
            same_as_eager(call, signature, *calls, path=tmp_path / "layer.onnx")
        return
    same_as_eager(call, signature, *calls, path=tmp_path / "layer.onnx")
