"""The weights of a model as Keras 3 files them: a tree of groups that follows the objects.

The arrays of a layer are ``0``, ``1``, ... in the group ``<path>/vars``, which has the name
of the layer as an attribute; for the paths see `object_paths`. The optimizer's stand in
``optimizer/vars``, see `optimizer_state`.
"""

from tapewright.layers.base.own_variables import (
    load_own_variables,
    save_own_variables,
)

from .object_paths import layer_paths
from .weight_assignment import first_swap

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
    """Write the weights of all layers into a group."""
    for entry in layer_paths(model):
        layer = entry.layer
        group = root.group(entry.vars)
        group.text("name", layer.name)
        if type(layer).save_own_variables is save_own_variables:
            for i, variable in enumerate(entry.variables):
                group.array(str(i), variable._array)
            continue
        store = {}
        layer.save_own_variables(store)
        for key, value in store.items():
            group.array(key, value)


def read_tree(root, model, assignment, skipped=()):
    """Add the arrays of a group for the layers of a model to a `WeightAssignment`.

    ``skipped``: layers that are left out, with all inside of them.
    """
    found = layer_paths(model)
    left = {id(entry.layer) for layer in skipped for entry in layer_paths(layer)}
    names = {}  # group with numbered layers -> names there, and in the model
    for entry in found:
        if id(entry.layer) in left:
            continue
        group = _group_of(root, entry)
        layer = entry.layer
        if type(layer).load_own_variables is load_own_variables:
            arrays = [] if group is None else group.numbered()
            assignment.add_layer(
                entry.variables, arrays, _title(root, entry), layer.name
            )
        else:
            keys = [] if group is None else group.keys()
            store = {key: group.array(key).read() for key in keys}
            assignment.add_hook(layer.load_own_variables, store, _title(root, entry))
        if entry.counted and group is not None and group.has("name"):
            stored, own = names.setdefault(entry.path.rpartition("/")[0], ([], []))
            stored.append(group.text("name"))
            own.append(layer.name)
    for parent, (stored, own) in names.items():
        pair = first_swap(stored, own)
        if pair:
            assignment.add_problem(
                parent,
                f"holds the weights of '{pair[0]}' in the place of '{pair[1]}', and those "
                f"somewhere else: the layers are {own} in the model, {stored} in the file",
            )
    _find_extra(root, found, assignment)


def _group_of(root, entry):
    group = root.find_group(entry.vars)
    if group is None and entry.path.startswith("layers/"):
        early = entry.vars.replace("layers", "_layer_checkpoint_dependencies")
        group = root.find_group(early)
    return group


def _title(root, entry):
    return f"{root.place}{entry.vars}"


def _find_extra(root, found, assignment):
    """Add a problem for weights that no layer of the model asks for."""
    expected = {"": set(BESIDE)}
    for entry in found:
        parent, _, name = entry.path.rpartition("/")
        expected[""].add(entry.path.partition("/")[0])
        if entry.counted:
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
                assignment.add_problem(
                    place, "holds weights, but the model has no such layer"
                )


def _has_arrays(group, name):
    item = group.find(name)
    return item is not None and next(item.arrays(), None) is not None
