"""Makes the files of the hostile suite, by h5py, zipfile and json alone.

The model in all of them is ``Dense(4), Dense(4), Dense(2)`` on four numbers, in one of
three kinds: "h5" (Keras' legacy layout), "weights" (``.weights.h5``) and "keras" (zip).
A maker changes what it is about, and leaves the rest as Keras writes it.
"""

import io
import json
import zipfile

import h5py
import numpy as np

KINDS = ("h5", "weights", "keras")
SUFFIX = {"h5": ".h5", "weights": ".weights.h5", "keras": ".keras"}
NAMES = ("first", "second", "third")
UNITS = (4, 4, 2)
TEXT = h5py.string_dtype()


def arrays():
    """Layer's name -> kernel and bias."""
    draw = np.random.default_rng(0).standard_normal
    return {
        name: (draw((4, units), "f4"), draw(units, "f4"))
        for name, units in zip(NAMES, UNITS, strict=True)
    }


def entry(class_name, kind="h5", **config):
    """The config of an object."""
    found = {"class_name": class_name, "config": config}
    if kind == "keras":
        found.update(module="keras.layers", registered_name=None)
    return found


def sequential(kind="h5", layers=None):
    """The config of the model."""
    if layers is None:
        layers = [entry("InputLayer", kind, name="in", batch_shape=[None, 4])]
        layers += [
            entry("Dense", kind, name=name, units=units)
            for name, units in zip(NAMES, UNITS, strict=True)
        ]
    config = entry("Sequential", kind, name="net", layers=layers)
    if kind == "keras":
        config["module"] = "keras"
    return config


def functional(kind="h5", sources=("in", "first", "second")):
    """The same as a graph; ``sources`` names the layer that each one takes."""
    config = sequential(kind)
    config["class_name"] = "Functional"
    inner = config["config"]
    for each in inner["layers"]:
        each["name"] = each["config"]["name"]
        each["inbound_nodes"] = []
    for each, source in zip(inner["layers"][1:], sources, strict=True):
        history = {"shape": [None, 4], "dtype": "float32"}
        history["keras_history"] = [source, 0, 0]
        tensor = {"class_name": "__keras_tensor__", "config": history}
        each["inbound_nodes"] = [{"args": [tensor], "kwargs": {}}]
    inner["input_layers"] = [["in", 0, 0]]
    inner["output_layers"] = [["third", 0, 0]]
    return config


TRAINING = {
    "loss": "mse",
    "loss_weights": None,
    "metrics": ["mae"],
    "weighted_metrics": None,
    "optimizer_config": {
        "class_name": "Adam",
        "config": {"name": "adam", "learning_rate": 0.01},
    },
}


def write(path, kind, config=None, edit=None, training=None, weights=None, **options):
    """Writes the file; ``config`` may be a text; ``edit(file, kernel)`` changes arrays.

    ``kernel`` is the place of the first layer's kernel.
    """
    weights = weights or arrays()
    config = sequential(kind) if config is None else config
    text = config if isinstance(config, str) else json.dumps(config)
    if kind == "keras":
        if training:
            changed = dict(training, optimizer=training["optimizer_config"])
            del changed["optimizer_config"]
            text = json.dumps({**config, "compile_config": changed})
        members = [("metadata.json", '{"keras_version": "3.15.1"}')]
        members += [("config.json", text)]
        members += [("model.weights.h5", hdf5_bytes(weights, edit))]
        write_zip(path, members)
        return
    with h5py.File(path, "w", **options) as file:
        if kind == "h5":
            file.attrs["model_config"] = text
            file.attrs["keras_version"], file.attrs["backend"] = "3.15.1", "numpy"
            if training:
                file.attrs["training_config"] = json.dumps(training)
            fill_legacy(file.create_group("model_weights"), weights)
        else:
            fill_vars(file, weights)
        if edit:
            edit(file, KERNEL[kind])


KERNEL = {
    "h5": "model_weights/first/first/kernel",
    "weights": "layers/dense/vars/0",
    "keras": "layers/dense/vars/0",
}


def write_zip(path, members):
    """A zip file of ``(name, content)``, stored."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members:
            archive.writestr(name, content)


def hdf5_bytes(weights=None, edit=None):
    """``model.weights.h5`` of a ``.keras`` file."""
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        fill_vars(file, weights or arrays())
        if edit:
            edit(file, KERNEL["keras"])
    return buffer.getvalue()


def fill_legacy(top, weights):
    top.attrs["keras_version"], top.attrs["backend"] = "3.15.1", "numpy"
    top.attrs.create("layer_names", list(weights), dtype=TEXT)
    for name, (kernel, bias) in weights.items():
        group = top.create_group(name)
        names = [f"{name}/kernel", f"{name}/bias"]
        group.attrs.create("weight_names", names, dtype=TEXT)
        group[names[0]], group[names[1]] = kernel, bias
    extra = top.create_group("top_level_model_weights")
    extra.attrs["weight_names"] = np.zeros(0)


def fill_vars(file, weights):
    for i, (name, pair) in enumerate(weights.items()):
        group = file.create_group(f"layers/dense{f'_{i}' if i else ''}/vars")
        group.attrs["name"] = name
        for k, array in enumerate(pair):
            group[str(k)] = array
    file.create_group("vars").attrs["name"] = "net"


def replace(file, place, data, **options):
    """Puts another array there."""
    del file[place]
    file.create_dataset(place, data=data, **options)


def bomb(file, place, shape):
    """An array of that shape, of which nothing is stored."""
    del file[place]
    chunks = tuple(min(size, 1 << 10) for size in shape)
    file.create_dataset(place, shape, "f4", chunks=chunks)


def flip(path, at):
    """Flips one bit of a file."""
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 4]))


def place_of(path, content):
    """Where ``content`` stands in a file."""
    with open(path, "rb") as file:
        return file.read().index(content)
