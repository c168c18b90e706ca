"""The weights of a model as Keras 3 files them: a tree of groups that follows the objects.

The arrays of a layer are ``0``, ``1``, ... in the group ``<path>/vars``, which has the name
of the layer as an attribute; for the paths see `object_paths`. The optimizer's stand in
``optimizer/vars``, see `optimizer_state`.
"""

import numpy as np

from tapewright.core.devices import to_numpy
from tapewright.layers.base.own_variables import (
    load_own_variables,
    save_own_variables,
)

from .object_paths import places
from .weight_assignment import swapped

__all__ = ["WEIGHTS_MEMBER", "read_tree", "write_tree"]

WEIGHTS_MEMBER = "model.weights.h5"  # of a `.keras` file

# Groups beside those of layers; the last one is that of early files of this layout.
BESIDE = {
    "vars",
    "optimizer",
    "metrics",
    "tapewright",
    "_layer_checkpoint_dependencies",
}


def write_tree(root, model):
    """Writes the weights of all layers into a group."""
    for place in places(model):
        layer = place.layer
        group = root.group(place.vars)
        group.text("name", layer.name)
        if type(layer).save_own_variables is save_own_variables:
            for i, variable in enumerate(place.variables):
                group.array(str(i), to_numpy(variable._array))
            continue
        store = {}
        layer.save_own_variables(store)
        for key, value in store.items():
            group.array(key, np.asarray(value))


def read_tree(root, model, filling, skipped=()):
    """Notes in a `Filling` which arrays of a group belong to the layers of a model.

    ``skipped``: layers that are left out, with all inside of them.
    """
    found = places(model)
    left = {id(place.layer) for layer in skipped for place in places(layer)}
    names = {}  # group with numbered layers -> names there, and in the model
    for place in found:
        if id(place.layer) in left:
            continue
        group = _group_of(root, place)
        layer = place.layer
        if type(layer).load_own_variables is load_own_variables:
            arrays = [] if group is None else group.numbered()
            filling.pairs(place.variables, arrays, _title(root, place), layer.name)
        else:
            keys = [] if group is None else group.keys()
            store = {key: group.array(key).read() for key in keys}
            filling.loader(layer.load_own_variables, store, _title(root, place))
        if place.counted and group is not None and group.has("name"):
            stored, own = names.setdefault(place.path.rpartition("/")[0], ([], []))
            stored.append(group.text("name"))
            own.append(layer.name)
    for parent, (stored, own) in names.items():
        pair = swapped(stored, own)
        if pair:
            filling.problem(
                parent,
                f"holds the weights of '{pair[0]}' in the place of '{pair[1]}', and those "
                f"somewhere else: the layers are {own} in the model, {stored} in the file",
            )
    _find_extra(root, found, filling)


def _group_of(root, place):
    group = root.find_group(place.vars)
    if group is None and place.path.startswith("layers/"):
        early = place.vars.replace("layers", "_layer_checkpoint_dependencies")
        group = root.find_group(early)
    return group


def _title(root, place):
    return f"{root.place}{place.vars}"


def _find_extra(root, found, filling):
    """Notes weights that no layer of the model asks for."""
    expected = {"": set(BESIDE)}
    for place in found:
        parent, _, name = place.path.rpartition("/")
        expected[""].add(place.path.partition("/")[0])
        if place.counted:
            expected.setdefault(parent, set()).add(name)
            while "/" in parent:  # lists in lists
                parent, _, name = parent.rpartition("/")
                if parent in expected:
                    expected[parent].add(name)
    for path, known in expected.items():
        group = root.find_group(path) if path else root
        for name in [] if group is None else group.keys():
            if name not in known and _has_arrays(group, name):
                place = f"{path}/{name}" if path else name
                filling.problem(place, "holds weights, but the model has no such layer")


def _has_arrays(group, name):
    item = group.find(name)
    return item is not None and next(item.arrays(), None) is not None
