"""Layers on images beside recordings of Keras: values, dtypes, boxes, labels, masks."""

import importlib.util
import json
from pathlib import Path

import numpy as np

import tapewright as tw
from tapewright import layers

REFERENCE = Path(__file__).parents[1] / "reference"
_spec = importlib.util.spec_from_file_location(
    "record_augmentation", REFERENCE / "record_augmentation.py"
)
record = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(record)
KERAS = dict(np.load(REFERENCE / "augmentation.npz", allow_pickle=False))


def drawn_by_keras(entry, layer, shape):
    """The transformation of a recording, as tensors."""
    start = f"{entry}|drawn|"
    drawn = {
        name.removeprefix(start): tw.constant(x)
        for name, x in KERAS.items()
        if name.startswith(start)
    }
    if f"{entry}|drawn" in KERAS:
        return tw.constant(KERAS[f"{entry}|drawn"])
    if isinstance(layer, layers.Resizing):
        return shape[-3:-1]
    return drawn | {"input_shape": shape}


def results_of(case):
    """What a layer makes of the inputs of a recording."""
    name, config, shape, dtype, parts = case
    layer, entry = getattr(layers, name)(**config), record.key(*case)
    given = record.inputs_of(entry, config, shape, dtype)
    given = {part: tw.constant(x) for part, x in given.items()}
    drawn = drawn_by_keras(entry, layer, shape)
    yield "images", layer.transform_images(given["images"], drawn)
    if "boxes" in parts:
        boxes = {"boxes": given["boxes"], "labels": given["classes"]}
        boxes = layer.transform_bounding_boxes(boxes, drawn)
        yield from {"boxes": boxes["boxes"], "classes": boxes["labels"]}.items()
    if "labels" in parts:
        yield "labels", layer.transform_labels(given["labels"], drawn)
    if "masks" in parts:
        yield "masks", layer.transform_segmentation_masks(given["masks"], drawn)


def test_layers_do_what_they_do_in_keras():
    wrong = []
    for case in record.CASES:
        for part, x in results_of(case):
            entry = f"{record.key(*case)}|{part}"
            x, keras = x.numpy(), KERAS[entry]
            if (x.shape, x.dtype) != (keras.shape, keras.dtype):
                wrong.append((entry, x.shape, x.dtype, keras.shape, keras.dtype))
            elif not np.allclose(x, keras, rtol=1e-5, atol=2e-4):
                wrong.append((entry, np.abs(x.astype("f4") - keras).max()))
    assert not wrong, "\n".join(map(str, wrong))


def test_configs_are_those_of_keras():
    configs, wrong = json.loads(str(KERAS["configs"])), []
    for name, config, *_ in [*record.CASES, *record.OTHERS]:
        keras = configs[f"{name} {config}"]
        layer = getattr(layers, name)(**config, name="layer")
        ours = json.loads(json.dumps(layer.get_config()))
        dtype = keras.pop("dtype")
        if ours | {"dtype": dtype} != keras | {"dtype": dtype}:
            wrong.append((name, ours, keras))
        again = json.loads(json.dumps(type(layer).from_config(keras).get_config()))
        if again != ours:
            wrong.append((name, again))
    assert not wrong, "\n".join(map(str, wrong))
