"""Modules that are saved and loaded here."""

import json

import h5py
import numpy as np

import tapewright as tw
from tapewright.formats.saved_model.functions import read_function, write_function
from tapewright.nest import flatten
from tapewright.storage.reader import opened
from tapewright.storage.writer import writing

ROWS = np.array([[0.5, -1.0, 2.0], [1.5, 0.3, -0.7]], np.float32)


def through_a_file(functions, folder, variables=()):
    """Functions written into one file, and what is read from there."""
    path, variables = folder / "functions.h5", list(variables)
    with writing(path) as root:
        for i, function in enumerate(functions):
            write_function(root.group(f"f{i}"), function, variables)
    with opened(path) as root:
        return [
            read_function(root.group(f"f{i}"), variables) for i in range(len(functions))
        ]


def traced(*shapes):
    """Decorator: a function traced for float32 tensors of these shapes."""
    return tw.function(input_signature=[tw.TensorSpec(shape) for shape in shapes])


def derivatives(function, inputs, variables=(), orders=3):
    """The value, and gradients up to an order, by inputs and variables."""
    inputs = [tw.constant(x) for x in inputs]
    sources = [*inputs, *variables]
    tapes = [tw.GradientTape(persistent=True) for _ in range(orders)]
    for tape in tapes:
        tape.__enter__()
        tape.watch(sources)
    targets = flatten(function(*inputs))
    found = list(targets)
    for tape in reversed(tapes):
        tape.__exit__(None, None, None)
        targets = [x for x in targets if x.dtype.is_differentiable]
        gradients = tape.gradient(targets, sources) if targets else []
        found += gradients
        targets = [tw.convert_to_tensor(g) for g in gradients if g is not None]
    return [None if x is None else np.array(tw.convert_to_tensor(x)) for x in found]


def same(found, wanted, rtol=0.0):
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol, atol=rtol)


def cubed(x):
    """Cubes, with 3.5 in the place of 3 in the first derivative, 2.5 for 2 in the second."""

    @tw.custom_gradient
    def squared(x):
        return x * x, lambda g: 2.5 * g * x

    @tw.custom_gradient
    def cube(x):
        return x * x * x, lambda g: 3.5 * g * squared(x)

    return cube(x)


X = np.array([[1.0, 2.0], [0.5, -1.0]], np.float32)


@tw.custom_gradient
def cube(x):
    return x * x * x, lambda g: 3.5 * g * x * x


class Net(tw.Module):
    def __init__(self):
        self.w = tw.Variable([[1.0, 2.0], [3.0, 4.0]], name="w")
        self.parts = [tw.Module(), tw.Module()]
        self.parts[0].b = tw.Variable(5.0, name="b")
        self.parts[1].b = tw.Variable(6.0, trainable=False, name="frozen")
        self.table = {"first": self.parts[0], "n": 3}

    @tw.function(input_signature=[tw.TensorSpec([None, 2])])
    def __call__(self, x):
        return cube(tw.matmul(x, self.w)) + self.parts[0].b

    @tw.function(input_signature=[tw.TensorSpec([None, 2])])
    def loss(self, x):
        return tw.reduce_sum(self(x) ** 2)


def holding(**functions):
    module = tw.Module()
    for name, function in functions.items():
        setattr(module, name, function)
    return module


def again(module, folder, **options):
    path = folder / "module"
    tw.saved_model.save(module, path, **options)
    return tw.saved_model.load(path)


def gradients_of(net):
    with tw.GradientTape() as tape:
        loss = net.loss(X)
    return tape.gradient(loss, net.trainable_variables)


def changed(path, place, key, change):
    """The file with the JSON of one attribute changed, and without its seal."""
    with h5py.File(path, "r+") as file:
        attributes = file[place].attrs
        value = json.loads(attributes[key])
        attributes[key] = json.dumps(change(value))
    with open(path, "r+b") as file:
        file.write(bytes(512))


def put(*place_and_value):
    """A change: the value at a place inside of JSON replaced."""
    *place, last, new = place_and_value

    def change(value):
        inner = value
        for key in place:
            inner = inner[key]
        inner[last] = new
        return value

    return change
