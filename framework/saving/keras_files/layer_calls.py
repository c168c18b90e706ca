"""The calls of layers of the user's own classes, as graphs beside a model's weights.

In the group of our own that model files have, ``calls/0``, ``calls/1``... hold for each
such layer what it does in inference and in training, with gradients of its own
(`custom_gradient`). Where the class is known a file is loaded by it, as ever; where it is
not, a `SavedLayer` runs the graphs. Keras passes the group over.
"""

from contextlib import contextmanager

import numpy as np

from ... import registry
from ...backend import to_numpy
from ...errors import SavingError
from ...registration import (
    custom_object_scope,
    get_registered_name,
    get_registered_object,
)
from ...variable import Variable
from ..graphs.functions import read_function, write_function
from ..graphs.signature_functions import call_of
from ..graphs.values import decode_dtype, encode_dtype

__all__ = ["calls_of_file", "write_calls"]

GROUP, MODES = "calls", ("inference", "training")
STAND_IN = "SavedLayer"
MANY = 10_000


def write_calls(group, model):
    """Writes the calls of the layers in a model whose classes are the user's.

    A layer that cannot be traced is left out, with the reason: its class has to be known
    to whoever loads the model.
    """
    for number, layer in enumerate(_layers_of_users(model)):
        _write(group.group(f"{GROUP}/{number}"), layer)


def _layers_of_users(model):
    for layer in getattr(model, "layers", ()):
        if not registry.is_own(type(layer)) or hasattr(layer, "saved_calls"):
            yield layer
        else:
            yield from _layers_of_users(layer)


def _write(group, layer):
    functions = getattr(layer, "saved_calls", None)
    functions = functions or [call_of(layer, training) for training in (False, True)]
    weights = list(layer.weights)
    variables = list(weights)
    if None in functions:
        group.text("refused", "the layer was not called on the inputs of a model")
        return
    try:
        for name, function in zip(MODES, functions):
            write_function(group.group(name), function, variables)
    except SavingError as error:
        group.text("refused", error.reason)
        return
    for i, state in enumerate(variables[len(weights) :]):
        group.array(f"states/{i}", np.asarray(to_numpy(state._array)))
    head = {
        "name": layer.name,
        "class_name": type(layer).__name__,
        "registered_name": get_registered_name(type(layer)),
        "weights": [_described(v) for v in weights],
        "states": len(variables) - len(weights),
    }
    group.json("layer", head)  # last: without it there is nothing here


def _described(v):
    return [v.path, encode_dtype(v._array.dtype), list(v.shape), bool(v.trainable)]


# --------------------------------------------------------------------------- reading


@contextmanager
def calls_of_file(own):
    """Inside, layers of classes that nobody has made known are made of calls in a file.

    ``own``: the group of our own, or None. Raises: `SavingError`.
    """
    group = None if own is None else own.find(GROUP)
    scope, stand_in = {}, registry.find("layer", STAND_IN)
    for key in [] if group is None else group.keys()[:MANY]:
        part = group.group(key)
        if not part.has("layer"):
            continue
        head = _checked(part, part.json("layer"))
        for name in {head["class_name"], head["registered_name"]}:
            if name == STAND_IN or not _is_known(name):
                maker = scope.setdefault(name, _Maker(name, stand_in))
                maker.layers[head["name"]] = part, head
    with custom_object_scope(scope):
        yield


def _is_known(name):
    if get_registered_object(name) is not None:
        return True
    try:
        return registry.is_own(registry.find("layer", name))
    except ValueError:
        return False


def _checked(part, head):
    words = ("name", "class_name", "registered_name")
    if not isinstance(head, dict) or not all(
        isinstance(head.get(w), str) for w in words
    ):
        part.fail("must have a name and a class", "layer")
    weights, states = head.get("weights"), head.get("states")
    if not isinstance(weights, list) or type(states) is not int or len(weights) > MANY:
        part.fail("must have a list of weights", "layer")
    if not 0 <= states <= MANY:
        part.fail(f"cannot have {states} states", "layer")
    for each in weights:
        try:
            path, dtype, shape, trainable = each
            decode_dtype(dtype)
            fits = isinstance(path, str) and isinstance(trainable, bool)
            fits = fits and all([type(n) is int and n >= 0 for n in shape])
        except (TypeError, ValueError):
            fits = False
        if not fits:
            part.fail(f"{each!r:.100} describes no weight", "layer")
    return head


class _Maker:
    """Stands for a class that is not known here: makes layers from their configs."""

    def __init__(self, name, stand_in):
        self.__name__, self.stand_in, self.layers = name, stand_in, {}

    def from_config(self, config):
        """The layer of that name in the file."""
        found = self.layers.get(config.get("name"))
        if found is None:
            raise ValueError(
                f"the class {self.__name__!r} is not known here, and the file has no graph "
                f"of a layer {config.get('name')!r}: pass custom_objects"
            )
        part, head = found
        return self.stand_in(
            head["class_name"],
            config,
            head["weights"],
            lambda weights: _calls(part, head, weights),
        )


def _calls(part, head, weights):
    """The functions of a layer, in inference and training, on these weights."""
    states = [part.array(f"states/{i}").read() for i in range(head["states"])]
    variables = [*weights, *[Variable(state, False) for state in states]]
    return [read_function(part.group(mode), variables) for mode in MODES]
