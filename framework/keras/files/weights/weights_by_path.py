"""Weights by path, the layout of Keras 3: a tree of groups that follows the objects.

The arrays of a layer are ``0``, ``1``, ... in the group ``<path>/vars``, which has the
name of the layer as an attribute. The layers of a sequential or functional model have
the paths ``layers/dense``, ``layers/dense_1``, ...: their class names, numbered. A
nested layer is named after its attribute, or in a list again after its class.
Attributes are in alphabetical order, private attributes last; each layer occurs once. The
arrays of the optimizer are in ``optimizer/vars``, see `optimizer_state`.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from tapewright.core.names.naming import snake_case
from tapewright.core.nest import is_nested
from tapewright.core.state.own_variables import load_own_variables, save_own_variables
from tapewright.core.trackable import children
from tapewright.layers.base.saved_layer import SavedLayer
from tapewright.serialization.constructor_arguments import is_own
from tapewright.storage.reader import Array, Group

from ..class_names import FUNCTIONAL, is_functional
from ..model_file import OWN_GROUP
from .weight_assignment import first_swap
from .weights_by_layer import StoredLayer

# Groups beside those of layers; the last one is that of early files of this layout.
_BESIDE = {
    "vars",
    "optimizer",
    "metrics",
    OWN_GROUP,
    "_layer_checkpoint_dependencies",
}


# --------------------------------------------------------------------------------- paths


class LayerPath(NamedTuple):
    """Layer, its path in a file, and its variables without variables of nested layers."""

    path: str
    layer: object
    variables: list
    counted: bool = False  # goes by its class and its number, in a list

    @property
    def vars(self):
        """The group that holds the variables."""
        return f"{self.path}/vars" if self.path else "vars"


def layer_paths(model, by_attribute=False):
    """Return the `LayerPath`s of a model and all nested layers, in Keras' order, each once.

    In a subclass of ``Model``, Keras' paths of private attributes, and of those behind
    "layers" in the alphabet, are in its list ``layers``. ``by_attribute``: each layer has
    the path of its attribute.
    """
    parts = partial(_parts, by_attribute=by_attribute)
    entries, seen = [], {}  # seen holds what it met: a list of layers that is freed
    _visit(model, "", entries, seen, parts)  # would leave its id to the next one
    return entries


def _visit(layer, path, entries, seen, parts, counted=False):
    if id(layer) in seen:
        return
    seen[id(layer)] = layer
    if isinstance(layer, SavedLayer):  # of a class that is not known here
        for inner, variables in layer.weight_paths.value:
            at = f"{path}/{inner}".strip("/")
            entries.append(LayerPath(at, layer, variables, counted and not inner))
        return
    entries.append(LayerPath(path, layer, layer._tw_own_variables(), counted))
    for name, part in parts(layer):
        inner = f"{path}/{name}" if path else name
        if is_nested(part):
            _visit_all(part, inner, entries, seen, parts)
        else:
            _visit(part, inner, entries, seen, parts)


def _parts(layer, by_attribute):
    """Return layers and containers of layers, by the names that Keras uses."""
    lists_layers = getattr(layer, "_tw_lists_layers", False)
    attributes = {}
    for name, value in children(layer):
        if is_nested(value) or hasattr(value, "_tw_own_variables"):
            attributes[_public(layer, name)] = value
    if lists_layers or hasattr(type(layer), "layers") and not by_attribute:
        # what is private to a model is among its layers, where it was met before
        attributes = {k: v for k, v in attributes.items() if k[0] != "_"}
        attributes.setdefault("layers", layer.layers)
    if lists_layers:
        yield "layers", attributes.pop("layers", [])
    for name in sorted(attributes, key=lambda name: (name[0] == "_", name)):
        yield name, attributes[name]


def _public(layer, name):
    """Return the name of the property that exposes a private attribute, if any."""
    if name[0] == "_" and isinstance(getattr(type(layer), name[1:], None), property):
        return name[1:]
    return name


def _visit_all(container, path, entries, seen, parts):
    """Visit the items of a container, named after their classes and numbered if repeated."""
    if id(container) in seen:
        return
    seen[id(container)] = container
    items = container.values() if isinstance(container, dict) else container
    counts = {}
    for item in items:
        if is_nested(item):
            name = "container"
        elif hasattr(item, "_tw_own_variables"):
            name = snake_case(_class_name(item))
        else:
            continue
        number = counts[name] = counts.get(name, -1) + 1
        inner = f"{path}/{name}_{number}" if number else f"{path}/{name}"
        if is_nested(item):
            _visit_all(item, inner, entries, seen, parts)
        else:
            _visit(item, inner, entries, seen, parts, counted=True)


def _class_name(layer):
    if isinstance(layer, SavedLayer):
        return layer.class_name
    is_plain = is_functional(layer) and is_own(type(layer))
    return FUNCTIONAL[1] if is_plain else type(layer).__name__


# ------------------------------------------------------------------- writing and reading


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


def stored_layers(root: Group) -> Iterator[StoredLayer]:
    """Yield the `StoredLayer` of each group ``vars`` with arrays, except the optimizer's."""
    for group in root.walk():
        if not isinstance(group, Group) or not group.name.endswith("/vars"):
            continue
        keys = [key for key in group.keys() if isinstance(group.find(key), Array)]
        if keys and not group.name.startswith("/optimizer/"):
            name = group.text("name") if group.has("name") else group.name[1:]
            keys = sorted(keys, key=lambda key: (len(key), key))  # numbers in order
            yield StoredLayer(name, group, keys)


def read_tree(root, model, assignment, skipped=()):
    """Add the arrays of a group for the layers of a model to a `WeightAssignment`.

    ``skipped``: layers to skip, with all nested layers.
    """
    entries = layer_paths(model)
    left = {id(entry.layer) for layer in skipped for entry in layer_paths(layer)}
    names = {}  # group with numbered layers -> names there, and in the model
    for entry in entries:
        if id(entry.layer) in left:
            continue
        group = _group_of(root, entry)
        layer = entry.layer
        if type(layer).load_own_variables is load_own_variables:
            arrays = [] if group is None else group.numbered()
            of_saved = isinstance(layer, SavedLayer)
            before = [] if of_saved else layer._tw_own_variables_before()
            assignment.add_layer(
                entry.variables, arrays, _location(root, entry), layer.name, before
            )
        else:
            keys = [] if group is None else group.keys()
            store = {key: group.array(key).read() for key in keys}
            assignment.add_hook(layer.load_own_variables, store, _location(root, entry))
        if entry.counted and group is not None and group.has("name"):
            stored, expected = names.setdefault(entry.path.rpartition("/")[0], ([], []))
            stored.append(group.text("name"))
            expected.append(layer.name)
    for parent, (stored, expected) in names.items():
        pair = first_swap(stored, expected)
        if pair:
            assignment.add_problem(
                parent,
                f"has the weights of '{pair[0]}' in place of '{pair[1]}', which are "
                f"elsewhere: the layers are {expected} in the model, {stored} in the "
                "file",
            )
    _find_extra(root, entries, assignment)


def _group_of(root, entry):
    group = root.find_group(entry.vars)
    if group is None and entry.path.startswith("layers/"):
        early = entry.vars.replace("layers", "_layer_checkpoint_dependencies")
        group = root.find_group(early)
    return group


def _location(root, entry):
    return f"{root.location}{entry.vars}"


def _find_extra(root, entries, assignment):
    """Add a problem for weights that belong to no layer of the model."""
    expected = {"": set(_BESIDE)}
    for entry in entries:
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
                location = f"{path}/{name}" if path else name
                assignment.add_problem(
                    location, "holds weights, but the model has no such layer"
                )


def _has_arrays(group, name):
    item = group.find(name)
    return item is not None and next(item.arrays(), None) is not None
