"""Weights in the layout of Keras 2, and of Keras 3 in ``.h5``: one group per layer.

``layer_names`` lists the layers in order; in the group of each layer, ``weight_names``
lists the paths of its arrays, trainable arrays first. Arrays are read in that order;
names are compared to find swapped weights.
"""

import warnings
from typing import Any, NamedTuple

from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.storage.reader import Group

from .weight_assignment import first_swap

TOP = "top_level_model_weights"


def write_layers(group: Any, model: Any, version: str) -> None:
    """Write the weights of all layers; ``version``: the Keras version of the layout."""
    layers = _layers(model)
    group.texts("layer_names", [layer.name for layer in layers])
    group.text("backend", "tapewright")
    group.text("keras_version", version)
    for layer in layers:
        if layer.name == TOP:
            raise ValueError(
                f"a layer named '{TOP}' cannot be saved in HDF5: the name is taken"
            )
        _write(group.group(layer.name), _in_order(layer))
    _write(group.group(TOP), model._tw_own_variables())


def _layers(model):
    """Return the layers without duplicates: a `Sequential` may list a layer several times."""
    return list({id(layer): layer for layer in model.layers}.values())


def _in_order(layer):
    """Return the trainable weights of a layer, then all others."""
    return [*layer.trainable_weights, *layer.non_trainable_weights]


def _write(group, variables):
    names = _distinct([variable.path for variable in variables])
    group.texts("weight_names", names)
    for name, variable in zip(names, variables):
        group.array(name, variable._array)


def _distinct(paths):
    """Return the paths, numbered where two arrays would have the same path."""
    taken, names = set(), []
    for path in paths:
        name, count = path, 0
        while name in taken or any([start in names for start in _starts(name)]):
            count += 1
            name = f"{path.replace('/', '_')}_{count}"
        names.append(name)
        taken |= {name, *_starts(name)}
    return names


def _starts(path):
    parts = path.split("/")
    return ["/".join(parts[:i]) for i in range(1, len(parts))]


# ------------------------------------------------------------------------------- reading


class StoredLayer(NamedTuple):
    """The weights of a layer in a file: its group, and the names of arrays, in order."""

    name: str
    group: Group
    weight_names: list

    @property
    def location(self):
        """The path of the group in the file."""
        return self.group.name.strip("/")

    @property
    def arrays(self):
        return [self.group.array(name) for name in self.weight_names]


def stored_layers(group: Group) -> list[StoredLayer]:
    """Return the `StoredLayer`s of a group, in the order of ``layer_names``."""
    return [_stored(group.group(name), name) for name in group.texts("layer_names")]


def stored_top(group: Group) -> StoredLayer | None:
    """Return the `StoredLayer` of the weights outside of layers, or None."""
    top = group.find_group(TOP)
    return None if top is None else _stored(top, TOP)


def _stored(group, name):
    return StoredLayer(name, group, group.texts("weight_names"))


def read_layers(group: Group, model: Any, assignment: Any) -> None:
    """Add the arrays of a group for the layers of a model, in order."""
    layers = [layer for layer in _layers(model) if layer.weights]
    stored = [each for each in stored_layers(group) if each.weight_names]
    if len(layers) != len(stored):
        before = [layer for layer in _layers(model) if _in_order_before(layer)]
        layers = before if len(before) == len(stored) else layers
    expected, names = [each.name for each in layers], [each.name for each in stored]
    if len(expected) != len(names):
        assignment.add_problem(
            group.location,
            f"holds {len(names)} layers with weights ({_few(names)}), the model has "
            f"{len(expected)} ({_few(expected)})",
        )
        assignment.check()  # by order, no layer can be matched
        read_layers_by_name(group, model, assignment)
        return
    pair = first_swap(names, expected)
    if pair:
        assignment.add_problem(
            f"{group.location}@layer_names",
            f"lists the layer '{pair[0]}' in place of '{pair[1]}'; pass by_name=True "
            "to load by name",
        )
    for layer, each in zip(layers, stored):
        _note(layer, each, assignment)
    _read_top(group, model, assignment)


def read_layers_by_name(group: Group, model: Any, assignment: Any) -> None:
    """Add the arrays for the layers of a model whose names are in the file."""
    stored, count = {each.name: each for each in stored_layers(group)}, 0
    for layer in _layers(model):
        if layer.name in stored and layer.weights:
            _note(layer, stored[layer.name], assignment)
            count += 1
    if not count:
        warnings.warn(
            f"{group.path}: no stored layer has the name of a layer of model "
            f"'{model.name}': nothing was loaded. The file has {_few(stored)}",
            stacklevel=user_stacklevel(),
        )


def _in_order_before(layer):
    """Return `_in_order` with variables that are not weights, as 0.2 wrote them."""
    variables = [
        v for each, _ in layer._tw_walk() for v in each._tw_own_variables_before()
    ]
    variables = {id(variable): variable for variable in variables}.values()
    return sorted(variables, key=lambda v: not (layer.trainable and v.trainable))


def _note(layer, stored, assignment):
    variables, location = _in_order(layer), stored.group.location
    before = _in_order_before(layer)
    assignment.add_layer(variables, stored.arrays, location, layer.name, before)
    if len(variables) != len(stored.weight_names):
        variables = before
    last = [each.rpartition("/")[2].partition(":")[0] for each in stored.weight_names]
    pair = first_swap(last, [variable.name for variable in variables])
    if pair and len(set(last)) == len(last):
        assignment.add_problem(
            f"{location}@weight_names",
            f"lists '{pair[0]}' in place of '{pair[1]}' of layer '{layer.name}'",
        )


def _read_top(group, model, assignment):
    variables, top = model._tw_own_variables(), stored_top(group)
    if top is not None:
        before = model._tw_own_variables_before()
        assignment.add_layer(
            variables, top.arrays, top.group.location, model.name, before
        )
    elif variables:
        assignment.add_layer(variables, [], f"{group.location}/{TOP}", model.name)


def _few(names):
    names = list(names)
    rest = f", and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(map(repr, names[:8])) + rest
