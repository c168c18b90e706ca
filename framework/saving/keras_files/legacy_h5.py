"""The weights of a model as Keras 2 files them, and Keras 3 in ``.h5``: a group by layer.

``layer_names`` lists the layers in order; in the group of each, ``weight_names`` lists the
paths of its arrays, all trainable ones before all others. Reading goes by that order; the
names are compared where they tell that something was swapped.
"""

import warnings

from ..storage.filling import swapped

__all__ = ["read_layers", "read_layers_by_name", "write_layers"]

TOP = "top_level_model_weights"


def write_layers(group, model, version):
    """Writes the weights of all layers; ``version``: of Keras, whose layout it is."""
    layers = model.layers
    group.texts("layer_names", [layer.name for layer in layers])
    group.text("backend", "tapewright")
    group.text("keras_version", version)
    for layer in layers:
        if layer.name == TOP:
            raise ValueError(
                f"a layer named '{TOP}' cannot be saved in HDF5: the name is taken"
            )
        _write(group.group(layer.name), _in_order(layer))
    _write(group.group(TOP), model.own_variables())


def _in_order(layer):
    """All trainable weights, then all others."""
    return [*layer.trainable_weights, *layer.non_trainable_weights]


def _write(group, variables):
    names = _distinct([variable.path for variable in variables])
    group.texts("weight_names", names)
    for name, variable in zip(names, variables):
        group.array(name, variable._array)


def _distinct(paths):
    """The paths; those where one array would be in the place of another get a number."""
    taken, found = set(), []
    for path in paths:
        name, count = path, 0
        while name in taken or any([start in found for start in _starts(name)]):
            count += 1
            name = f"{path.replace('/', '_')}_{count}"
        found.append(name)
        taken |= {name, *_starts(name)}
    return found


def _starts(path):
    parts = path.split("/")
    return ["/".join(parts[:i]) for i in range(1, len(parts))]


# ------------------------------------------------------------------------------- reading


def read_layers(group, model, filling):
    """Notes in a `Filling` the arrays of a group for the layers of a model, in order."""
    layers = [layer for layer in model.layers if layer.weights]
    stored = [(name, found) for name, found in _stored(group) if found]
    own, names = [layer.name for layer in layers], [name for name, _ in stored]
    if len(own) != len(names):
        filling.problem(
            group.place,
            f"holds {len(names)} layers with weights ({_few(names)}), the model has "
            f"{len(own)} ({_few(own)})",
        )
        filling.check()  # by order, nothing can be told apart
        read_layers_by_name(group, model, filling)
        return
    pair = swapped(names, own)
    if pair:
        filling.problem(
            f"{group.place}@layer_names",
            f"lists the layer '{pair[0]}' in the place of '{pair[1]}'; pass by_name=True "
            "to load by the names",
        )
    for layer, (name, found) in zip(layers, stored):
        _note(group, layer, name, found, filling)
    _read_top(group, model, filling)


def read_layers_by_name(group, model, filling):
    """The same for those layers of the model that the file has by their name."""
    stored, found = dict(_stored(group)), 0
    for layer in model.layers:
        if stored.get(layer.name) is not None and layer.weights:
            _note(group, layer, layer.name, stored[layer.name], filling)
            found += 1
    if not found:
        warnings.warn(
            f"{group.path}: no layer with weights has the name of one of the model "
            f"'{model.name}': nothing was loaded. There are {_few(stored)}",
            stacklevel=4,
        )


def _stored(group):
    """Pairs of a layer's name and the names of its arrays."""
    return [
        (name, group.group(name).texts("weight_names"))
        for name in group.texts("layer_names")
    ]


def _note(group, layer, name, weight_names, filling):
    holder, variables = group.group(name), _in_order(layer)
    arrays = [holder.array(each) for each in weight_names]
    filling.pairs(variables, arrays, holder.place, layer.name)
    last = [each.rpartition("/")[2].partition(":")[0] for each in weight_names]
    pair = swapped(last, [variable.name for variable in variables])
    if pair and len(set(last)) == len(last):
        filling.problem(
            f"{holder.place}@weight_names",
            f"lists '{pair[0]}' in the place of '{pair[1]}' of layer '{layer.name}'",
        )


def _read_top(group, model, filling):
    own = model.own_variables()
    if TOP not in group:
        if own:
            filling.pairs(own, [], f"{group.place}/{TOP}", model.name)
        return
    top = group.group(TOP)
    arrays = [top.array(name) for name in top.texts("weight_names")]
    filling.pairs(own, arrays, top.place, model.name)


def _few(names):
    names = list(names)
    rest = f", and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(map(repr, names[:8])) + rest
