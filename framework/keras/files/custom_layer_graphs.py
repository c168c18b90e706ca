"""Custom layers as graphs beside a model's weights.

The groups ``calls/0``, ``calls/1``... of our group in model files hold, for each such
layer, its graphs in inference and training with gradients (`custom_gradient`), the
losses that it adds, and the regularizers and constraints of its weights. A layer is
loaded by its class if it is registered, otherwise a `SavedLayer` runs the graphs. Keras
ignores the group.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tapewright.compiler.function.function import Function
from tapewright.core.errors import SavingError
from tapewright.core.nest import flatten
from tapewright.core.state.own_variables import keeps_plainly
from tapewright.core.tensor import TensorSpec
from tapewright.core.trackable import Opaque
from tapewright.core.variable import Variable
from tapewright.formats.saved_model.functions import read_function, write_function
from tapewright.formats.saved_model.signature_functions import call_of
from tapewright.formats.saved_model.values import DTYPES, encode_dtype
from tapewright.layers.base.saved_layer import SavedLayer
from tapewright.ops.random.sampling import Generator
from tapewright.serialization import object_config, registry
from tapewright.serialization.constructor_arguments import is_own
from tapewright.serialization.registry import (
    custom_object_scope,
    get_registered_object,
    unregistered,
)
from tapewright.storage.reader import Group

from .weights.weights_by_path import layer_paths

GROUP, MODES = "calls", ("inference", "training")
_MANY = 10_000


def write_layer_graphs(group: Any, model: Any) -> None:
    """Write the graphs of the custom layers in a model.

    A layer that cannot be traced is left out, with the reason: its class must then be
    registered to load the model.
    """
    for number, layer in enumerate(_layers_of_users(model)):
        part = group.group(f"{GROUP}/{number}")
        reason = _write(part, layer)
        if reason is not None:
            entry = object_config.serialize(layer)
            head = {
                "name": layer.name,
                "class_name": _known_as(entry),
                "reason": reason,
            }
            part.json("without_graph", head)


def _layers_of_users(model):
    for layer in getattr(model, "layers", ()):
        if not is_own(type(layer)) or isinstance(layer, SavedLayer):
            yield layer
        else:
            yield from _layers_of_users(layer)


def _write(group, layer):
    """Write the graphs of a layer; return None, or the reason why it has no graph."""
    counts = [[], []]  # of the losses that a call adds, by trace
    if isinstance(layer, SavedLayer):
        functions, counts = layer.saved_calls, [[n] for n in layer.saved_losses]
    else:
        functions = [call_of(layer, bool(i), counts[i]) for i in range(len(MODES))]
    weights, streams = list(layer.weights), random_states(layer)
    variables = [*weights, *streams]
    if None in functions:
        return "the layer was not called on the inputs of a model"
    if _depends_on_masks(layer):
        return "the layer uses or returns masks, which graphs do not support"
    paths = _weight_paths(layer, weights)
    if paths is None:
        return "a nested layer overrides save_own_variables"
    try:
        for name, function in zip(MODES, functions):
            write_function(group.group(name), function, variables)
        numbers = {
            name: _write_weight_functions(group, name, layer, pairs, variables)
            for name, pairs in _weight_functions(layer).items()
        }
    except SavingError as error:
        return error.reason
    if any([len({*each}) != 1 for each in counts]):
        return "the number of losses that the layer adds depends on its inputs"
    for i, state in enumerate(variables[len(weights) :]):
        group.array(f"states/{i}", state._array)
    entry = object_config.serialize(layer)
    head = {
        "name": layer.name,
        "module": entry["module"],
        "class_name": entry["class_name"],
        "registered_name": entry["registered_name"],
        "weights": [_describe(v) for v in weights],
        "filed": paths,
        "streams": len(streams),
        "states": len(variables) - len(weights),
        "losses": [each[0] for each in counts],
        "regularized": numbers["penalties"],
        "constrained": numbers["constraints"],
    }
    group.json("layer", head)  # last: without it there is nothing here
    return None


def _weight_functions(layer):
    """Return pairs of a weight and a function of it, by the group that stores them."""
    constraints = [(v, getattr(v, "constraint", None)) for v in layer.weights]
    return {
        "penalties": layer._tw_all_penalties(),
        "constraints": [(v, f) for v, f in constraints if f is not None],
    }


def _write_weight_functions(group, name, layer, pairs, variables):
    """Write functions of weights; return the numbers of the weights."""
    numbers, of_weights = {id(v): i for i, v in enumerate(variables)}, []
    for weight, function in pairs:
        if not isinstance(layer, SavedLayer):
            spec = TensorSpec(weight.shape, weight.dtype)
            function = Function(function, [spec])
        write_function(group.group(f"{name}/{len(of_weights)}"), function, variables)
        of_weights.append(numbers[id(weight)])
    return of_weights


def _depends_on_masks(layer):
    """Return whether a layer uses a mask of its inputs, or masks its outputs."""
    if isinstance(layer, SavedLayer):
        return False
    masked = [x.mask_spec is not None for x in flatten(layer.input)]
    given = [x.mask_spec is not None for x in flatten(layer.output)]
    return any(given) or (any(masked) and bool(layer._tw_signature.masks))


def _weight_paths(layer, weights):
    """Return ``[path below the layer, numbers of weights]``, as in `weights_by_path`.

    Return None if a layer overrides how its variables are saved.
    """
    numbers = {id(v): i for i, v in enumerate(weights)}
    paths = []
    for entry in layer_paths(layer):
        numbered = [numbers.get(id(v)) for v in entry.variables]
        if None in numbered or not keeps_plainly(entry.layer):
            return None
        paths.append([entry.path, numbered])
    return paths


def random_states(layer: Any) -> list[Variable]:
    """Return the states of the random generators of a layer or model."""
    weights = {id(v) for v in layer.weights}
    return [v for v in layer.variables if id(v) not in weights]


def _describe(v):
    return [v.path, encode_dtype(v._array.dtype), list(v.shape), bool(v.trainable)]


# --------------------------------------------------------------------------- reading


@contextmanager
def using_layer_graphs(own_group: Group | None) -> Iterator[None]:
    """Create layers with unknown classes from the graphs of a file.

    Raises:
        SavingError: If a graph is invalid.
    """
    scope = {}
    for group in _layer_groups(own_group):
        if not group.has("layer"):
            _note_refused(group, scope)
            continue
        head = _read_head(group)
        for name in {head["class_name"], _known_as(head)}:
            if not _is_known(name):
                factory = scope.setdefault(name, _LayerFactory(name))
                factory.layers[head["name"]] = group, head
    with custom_object_scope(scope):
        yield


def _note_refused(group, scope):
    """Keep the reason why a layer has no graph, for the error if its class is unknown."""
    head = {}
    if group.has("without_graph"):
        head = group.json_object("without_graph")
    name, class_name, reason = [head.get(k) for k in ("name", "class_name", "reason")]
    if all([isinstance(each, str) for each in (name, class_name, reason)]):
        if not _is_known(class_name):
            factory = scope.setdefault(class_name, _LayerFactory(class_name))
            factory.refused[name] = reason


def classes_with_graphs(own_group: Group | None) -> set[str]:
    """Return the names of the classes whose layers all have graphs in a file.

    The set is empty if a graph is missing, because that layer may have any class.
    """
    groups = _layer_groups(own_group)
    if not all([group.has("layer") for group in groups]):
        return set()
    return {_known_as(_read_head(group)) for group in groups}


def _known_as(head):
    return head["registered_name"] or head["class_name"]


def _layer_groups(own_group):
    group = None if own_group is None else own_group.find_group(GROUP)
    return [] if group is None else [group.group(key) for key in group.keys()[:_MANY]]


def _is_known(name):
    if get_registered_object(name) is not None:
        return True
    try:
        return is_own(registry.find("layer", name))
    except ValueError:
        return False


# The description of a layer: its keys, and how their values are made of types; a list stands
# for a list of any length, a tuple for one of its length.
_HEAD = {
    "name": str,
    "class_name": str,
    "module": str | None,
    "registered_name": str | None,
    "weights": [(str, str, [int], bool)],  # path, dtype, shape, trainable
    "filed": [(str, [int])],  # path, numbers of weights
    "streams": int,
    "states": int,
    "losses": (int, int),  # that a call adds
    "regularized": [int],  # numbers of weights
    "constrained": [int],
}
_OF_OLDER_FILES = {"losses": [0, 0], "regularized": [], "constrained": []}


def _read_head(group):
    """Check and return the description of a layer.

    Raises:
        SavingError: If it is invalid.
    """
    head = _OF_OLDER_FILES | group.json_object("layer")
    wrong = [key for key in _HEAD if not _matches(head.get(key), _HEAD[key])]
    if not wrong:
        numbers = [i for _, each in head["filed"] for i in each]
        paths = [path for path, _ in head["filed"]]
        stored = group.find_group("states")
        count = 0 if stored is None else len(stored.keys())
        valid = {
            "weights": all([dtype in DTYPES for _, dtype, *_ in head["weights"]]),
            "filed": sorted(numbers) == [*range(len(head["weights"]))]
            and all([re.fullmatch(r"(\w+(/\w+)*)?", path) for path in paths]),
            "streams": head["streams"] <= count,
            "states": head["states"] == count,
        }
        for key in ("regularized", "constrained"):
            valid[key] = all([i < len(head["weights"]) for i in head[key]])
        wrong = [key for key in valid if not valid[key]]
    for key in wrong:
        group.fail(f"{key} of a layer cannot be {head.get(key)!r:.100}", "layer")
    return head


def _matches(value, pattern):
    if isinstance(pattern, list):
        items = isinstance(value, list) and len(value) <= _MANY
        return items and all([_matches(each, pattern[0]) for each in value])
    if isinstance(pattern, tuple):
        items = isinstance(value, list) and len(value) == len(pattern)
        return items and all(map(_matches, value, pattern))
    if pattern is int:
        return type(value) is int and value >= 0
    return isinstance(value, pattern)


class _LayerFactory:
    """Substitute for an unknown class, which creates layers from their configs."""

    def __init__(self, name):
        self.__name__, self.layers, self.refused = name, {}, {}

    def from_config(self, config):
        """Return the layer with this name in the file."""
        name = config.get("name")
        stored = self.layers.get(name)
        if stored is None:
            reason = (
                f", since {self.refused[name]:.500}" if name in self.refused else ""
            )
            raise ValueError(
                f"the class {unregistered(self.__name__)}. The file has no graph of "
                f"{name!r}{reason}"
            )
        return _saved_layer(*stored, config)


def _saved_layer(group, head, config):
    layer = SavedLayer(head["class_name"], config, name=head["name"])
    layer.class_path = head["module"], head["class_name"], head["registered_name"]
    weights = []
    for path, dtype, shape, trainable in head["weights"]:
        name = path.rpartition("/")[2]
        weight = layer.add_weight(
            tuple(shape), "zeros", name=name, dtype=dtype, trainable=trainable
        )
        weight.path = path
        weights.append(weight)
    layer.generators = [Generator(0) for _ in range(head["streams"])]
    filed = [(path, [weights[i] for i in numbers]) for path, numbers in head["filed"]]
    layer.weight_paths = Opaque(filed)
    streams = [generator.state for generator in layer.generators]
    variables = _read_states(group, head["states"], weights, streams)
    layer.saved_calls = [read_function(group.group(m), variables) for m in MODES]
    layer.saved_losses = tuple(head["losses"])
    for i, number in enumerate(head["regularized"]):
        penalty = read_function(group.group(f"penalties/{i}"), variables)
        layer._tw_penalties.append((weights[number], penalty))
    for i, number in enumerate(head["constrained"]):
        constraint = read_function(group.group(f"constraints/{i}"), variables)
        weights[number].constraint = constraint
    layer.built = True
    return layer


def _read_states(group, count, weights, streams):
    """Return the variables of a layer's functions: weights, generators, and others."""
    first = len(streams)
    for i, stream in enumerate(streams):
        stream.assign(group.array(f"states/{i}").read(tuple(stream.shape), "i"))
    states = [group.array(f"states/{i}").read() for i in range(first, count)]
    return [*weights, *streams, *[Variable(state, False) for state in states]]
