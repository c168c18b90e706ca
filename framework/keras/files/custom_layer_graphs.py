"""Layers of the user's own classes, as graphs beside a model's weights.

The groups ``calls/0``, ``calls/1``... of our own group in model files hold the graphs of
each such layer in inference and in training, with its gradients (`custom_gradient`). A file
is loaded by the class if that is known, else a `SavedLayer` runs the graphs. Keras ignores
the group.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tapewright.core.errors import SavingError
from tapewright.core.variable import Variable
from tapewright.formats.saved_model.functions import read_function, write_function
from tapewright.formats.saved_model.signature_functions import call_of
from tapewright.formats.saved_model.values import decode_dtype, encode_dtype
from tapewright.layers.base.own_variables import keeps_plainly
from tapewright.serialization import object_config, registry
from tapewright.serialization.constructor_arguments import is_own
from tapewright.serialization.registry import (
    custom_object_scope,
    get_registered_object,
    unregistered,
)
from tapewright.storage.reader import Group

from .weights_by_path import layer_paths

__all__ = ["classes_with_graphs", "using_layer_graphs", "write_layer_graphs"]

GROUP, MODES = "calls", ("inference", "training")
STAND_IN = "SavedLayer"
MANY = 10_000


def write_layer_graphs(group: Any, model: Any) -> None:
    """Write the graphs of the layers in a model whose classes are the user's.

    A layer that cannot be traced is left out, with the reason: its class has to be known
    to whoever loads the model.
    """
    for number, layer in enumerate(_layers_of_users(model)):
        _write(group.group(f"{GROUP}/{number}"), layer)


def _layers_of_users(model):
    for layer in getattr(model, "layers", ()):
        if not is_own(type(layer)) or hasattr(layer, "saved_calls"):
            yield layer
        else:
            yield from _layers_of_users(layer)


def _write(group, layer):
    functions = getattr(layer, "saved_calls", None)
    functions = functions or [call_of(layer, training) for training in (False, True)]
    weights, streams = list(layer.weights), _streams(layer)
    variables = [*weights, *streams]
    if None in functions:
        group.text("refused", "the layer was not called on the inputs of a model")
        return
    filed = _filed(layer, weights)
    if filed is None:
        group.text("refused", "a layer inside keeps its weights in its own way")
        return
    try:
        for name, function in zip(MODES, functions):
            write_function(group.group(name), function, variables)
    except SavingError as error:
        group.text("refused", error.reason)
        return
    for i, state in enumerate(variables[len(weights) :]):
        group.array(f"states/{i}", state._array)
    entry = object_config.serialize(layer)
    head = {
        "name": layer.name,
        "module": entry["module"],
        "class_name": entry["class_name"],
        "registered_name": entry["registered_name"],
        "weights": [_described(v) for v in weights],
        "filed": filed,
        "streams": len(streams),
        "states": len(variables) - len(weights),
    }
    group.json("layer", head)  # last: without it there is nothing here


def _filed(layer, weights):
    """``[path below the layer, numbers of weights]``, as in `weights_by_path`.

    None if a layer stores its weights in its own way.
    """
    numbers = {id(v): i for i, v in enumerate(weights)}
    found = []
    for entry in layer_paths(layer):
        numbered = [numbers.get(id(v)) for v in entry.variables]
        if None in numbered or not keeps_plainly(entry.layer):
            return None
        found.append([entry.path, numbered])
    return found


def _streams(layer):
    """The states of the random generators that are the layer's own."""
    weights = {id(v) for v in layer.weights}
    return [v for v in layer.variables if id(v) not in weights]


def _described(v):
    return [v.path, encode_dtype(v._array.dtype), list(v.shape), bool(v.trainable)]


# --------------------------------------------------------------------------- reading


@contextmanager
def using_layer_graphs(own: Group | None) -> Iterator[None]:
    """Make layers of unknown classes from the graphs of a file.

    ``own``: the group of our own. Raises: `SavingError`.
    """
    scope, stand_in = {}, registry.find("layer", STAND_IN)
    for part in _parts(own):
        if not part.has("layer"):
            continue
        head = _checked(part, part.json("layer"))
        for name in {head["class_name"], head["registered_name"] or head["class_name"]}:
            if not _is_known(name):
                maker = scope.setdefault(name, _LayerFactory(name, stand_in))
                maker.layers[head["name"]] = part, head
    with custom_object_scope(scope):
        yield


def classes_with_graphs(own: Group | None) -> set[str]:
    """Return the names of the classes whose layers all have graphs in a file.

    None of them if one graph is missing: it may be one of any class.
    """
    parts = _parts(own)
    if not all([part.has("layer") for part in parts]):
        return set()
    heads = [_checked(part, part.json("layer")) for part in parts]
    return {head["registered_name"] or head["class_name"] for head in heads}


def _parts(own):
    group = None if own is None else own.find_group(GROUP)
    return [] if group is None else [group.group(key) for key in group.keys()[:MANY]]


def _is_known(name):
    if get_registered_object(name) is not None:
        return True
    try:
        return is_own(registry.find("layer", name))
    except ValueError:
        return False


def _checked(part, head):
    words = ("name", "class_name")
    if not isinstance(head, dict) or not all(
        isinstance(head.get(w), str) for w in words
    ):
        part.fail("must have a name and a class", "layer")
    for word in ("module", "registered_name"):
        if not isinstance(head.get(word), (str, type(None))):
            part.fail(f"the {word} must be a text", "layer")
    weights = head.get("weights")
    if not isinstance(weights, list) or len(weights) > MANY:
        part.fail("must have a list of weights", "layer")
    states, streams = head.get("states"), head.get("streams")
    if not all([type(n) is int and 0 <= n <= MANY for n in (states, streams)]):
        part.fail(f"cannot have {states} states, {streams} of them random", "layer")
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
    _check_filed(part, head.get("filed"), len(weights))
    return head


def _check_filed(part, filed, count):
    """Check that each weight has one place, with a valid name."""
    try:
        fits = all([re.fullmatch(r"(\w+(/\w+)*)?", path) for path, _ in filed])
        numbers = [number for _, numbered in filed for number in numbered]
        fits = fits and sorted(numbers) == list(range(count))
    except (TypeError, ValueError):
        fits = False
    if not fits:
        part.fail(f"{filed!r:.100} does not tell where the weights are", "layer")


class _LayerFactory:
    """A stand-in for an unknown class: makes layers from their configs."""

    def __init__(self, name, stand_in):
        self.__name__, self.stand_in, self.layers = name, stand_in, {}

    def from_config(self, config):
        """Return the layer of that name in the file."""
        found = self.layers.get(config.get("name"))
        if found is None:
            raise ValueError(
                f"the file has no graph of {config.get('name')!r}, and the class "
                f"{unregistered(self.__name__)}"
            )
        part, head = found
        return self.stand_in(head, config, lambda *own: _calls(part, head, *own))


def _calls(part, head, weights, streams):
    """The functions of a layer, in inference and training, on its own variables."""
    first = len(streams)
    for stream, i in zip(streams, range(first)):
        stream.assign(part.array(f"states/{i}").read(tuple(stream.shape), "i"))
    states = [part.array(f"states/{i}").read() for i in range(first, head["states"])]
    states = [Variable(state, False) for state in states]
    variables = [*weights, *streams, *states]
    return [read_function(part.group(mode), variables) for mode in MODES]
