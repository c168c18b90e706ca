"""Predictions of a trained network, for one row and for batches, by each way to serve it.

``library`` is the machine code of `tw.export_library`, called through ctypes; ``native``
a `tw.function`; ``predict``, ``predict_on_batch`` and ``call`` methods of the model;
``onnxruntime`` runs the file of `Model.export`; ``torch`` and ``torch_compile`` the same
network. All start from the same weights.
"""

import ctypes
import functools
import os
import sys
import tempfile

import numpy as np
from programs import compare
from turns import serve

NAMES = [
    "native",
    "library",
    "call",
    "predict_on_batch",
    "predict",
    "onnxruntime",
    "torch",
    "torch_compile",
]


def mlp(layers):
    return (784,), [layers.Dense(128, activation="relu"), layers.Dense(10)]


def convnet(layers):
    return (28, 28, 1), [
        layers.Conv2D(32, 3, activation="relu"),
        layers.MaxPooling2D(2),
        layers.Conv2D(64, 3, activation="relu"),
        layers.MaxPooling2D(2),
        layers.Flatten(),
        layers.Dense(10),
    ]


NETWORKS = {"mlp": mlp, "convnet": convnet}
PROGRAMS = [f"{name}-{rows}" for name in NETWORKS for rows in (1, 32, 256)]


def built(network):
    """Return the model, which is the same in all processes."""
    import tapewright as tw

    tw.get_logger().setLevel("ERROR")
    tw.keras.utils.set_random_seed(0)
    shape, layers = NETWORKS[network](tw.keras.layers)
    model = tw.keras.Sequential([tw.keras.Input(shape), *layers])
    generator = np.random.default_rng(0)
    model.set_weights(
        [generator.standard_normal(w.shape, "f4") / 10 for w in model.get_weights()]
    )
    return model


def make(name, program):
    """Return a call for the rows, and the sums of its results to compare."""
    network, _, rows = program.partition("-")
    model = built(network)
    x = np.random.default_rng(1).random((int(rows), *model.input_shape[1:]), "f4")
    call = CALLS[name](model, x)
    return call, lambda outputs: [float(np.abs(np.asarray(outputs)).sum())]


def function(model, x):
    import tapewright as tw

    traced, x = tw.function(lambda x: model(x, training=False)), tw.constant(x)
    return lambda: traced(x)


def library(model, x):
    import tapewright as tw

    folder = tempfile.mkdtemp()
    path = os.path.join(folder, "network.so")
    traced = tw.function(lambda x: model(x, training=False))
    tw.export_library(traced, [tw.TensorSpec(x.shape)], path)
    code = ctypes.CDLL(path)
    if code.network_init(None):
        raise RuntimeError("network_init failed")
    y = np.empty((len(x), 10), "f4")
    arrays = x, y  # the pointers do not keep them
    given, made = [ctypes.c_void_p(array.ctypes.data) for array in arrays]

    def call():
        code.network_run(given, made, 1)
        return arrays[1]

    return call


def onnxruntime(model, x):
    import onnxruntime as ort

    path = os.path.join(tempfile.mkdtemp(), "network.onnx")
    model.export(path)
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    feed = {session.get_inputs()[0].name: x}
    return lambda: session.run(None, feed)[0]


def torch_network(model, x, compiled=False):
    import torch

    modules = []
    for layer in model.layers:
        weights = [torch.from_numpy(w) for w in layer.get_weights()]
        kind = type(layer).__name__
        if kind == "Dense":
            module = torch.nn.Linear(*weights[0].shape)
            weights[0] = weights[0].T.contiguous()
        elif kind == "Conv2D":
            height, width, before, after = weights[0].shape
            module = torch.nn.Conv2d(before, after, (height, width))
            weights[0] = weights[0].permute(3, 2, 0, 1).contiguous()
        else:
            module = torch.nn.MaxPool2d(2) if kind == "MaxPooling2D" else Flatten()
        for own, value in zip(module.parameters(), weights, strict=True):
            own.data = value
        modules.append(module)
        if getattr(layer, "activation", None) and layer.activation.__name__ == "relu":
            modules.append(torch.nn.ReLU())
    network = torch.nn.Sequential(*modules).eval()
    rows = torch.from_numpy(x)
    if x.ndim == 4:
        rows = rows.permute(0, 3, 1, 2)
        network = network.to(memory_format=torch.channels_last)
    if compiled:
        network = torch.compile(network)

    def call():
        with torch.inference_mode():
            return network(rows)

    return call


def Flatten():  # noqa: N802
    """Return a module that flattens with channels last."""
    import torch

    class ChannelsLast(torch.nn.Module):
        def forward(self, x):
            return x.permute(0, 2, 3, 1).flatten(1)

    return ChannelsLast()


CALLS = {
    "native": function,
    "library": library,
    "call": lambda model, x: lambda: model(x, training=False),
    "predict_on_batch": lambda model, x: lambda: model.predict_on_batch(x),
    "predict": lambda model, x: lambda: model.predict(x, verbose=0),
    "onnxruntime": onnxruntime,
    "torch": torch_network,
    "torch_compile": functools.partial(torch_network, compiled=True),
}


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        serve(make, *sys.argv[2:])
    else:
        compare(PROGRAMS, NAMES, __doc__)
