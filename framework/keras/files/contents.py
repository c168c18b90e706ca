"""The contents of a file of tapewright or Keras, without building anything of it.

`describe` gives all that can be told of it as plain values, from which `report`
makes a text. Arrays are not read, but for single numbers such as an optimizer's step.
"""

import itertools
import os

import numpy as np

from tapewright.formats.contents import (
    CHECKPOINT,
    SAVED_MODEL,
    array_row,
    describe_own,
    totals,
)
from tapewright.storage.reader import Group

from .custom_layer_graphs import classes_with_graphs
from .model_file import (
    HDF5_MODEL,
    LAYER_WEIGHTS,
    SHARDS,
    WEIGHTS,
    ZIP,
    is_in_vars,
    opened_model_file,
)
from .optimizer_state import OPTIMIZER_GROUPS
from .weights_by_layer import stored_layers, stored_top

__all__ = [
    "custom_classes",
    "describe",
    "layer_name",
    "legacy_groups",
    "model_layers",
    "needed_classes",
]

ITSELF = "(the model itself)"  # in the place of a layer's name

KERAS = (HDF5_MODEL, LAYER_WEIGHTS, WEIGHTS, ZIP)


def describe(path):
    """All that can be told of a file without building anything, as JSON has it.

    Raises: `SavingError` if the file cannot be read, is damaged or of no known kind.
    """
    path = os.fspath(path)
    with opened_model_file(path) as found:
        told = {
            "path": path,
            "bytes": os.path.getsize(path),
            "format": found.format,
            "seal": "intact" if found.root.sealed else "none",
        }
        told |= _described(found)
    return {key: value for key, value in told.items() if value not in (None, [], {})}


def _described(found):
    if found.format in (SAVED_MODEL, CHECKPOINT):
        return describe_own(found.format, found.root)
    if found.format == SHARDS:
        return _shards(found.root)
    classes, groups = _classes(found.config), list(_weight_groups(found))
    rows = _in_order([_row(*group, classes) for group in groups], classes)
    return {
        "written_by": {k: str(v) for k, v in (found.written_by or {}).items()},
        "model": None if found.config is None else _model(found.config),
        "layers": rows,
        "optimizer": _optimizer(found),
        "training": _training(found.compile_config),
        "notes": _notes(found),
        "custom_classes": sorted(needed_classes(found)),
        "others": _others(found),
        "totals": totals([array for *_, arrays in groups for _, array in arrays]),
    }


def _shards(whole):
    rows = [_summed("file", *shard) for shard in whole.shards.items()]
    table = {"columns": ["file", "arrays", "bytes"], "rows": rows}
    return {"tables": [table], "totals": totals(list(whole.arrays()))}


def _summed(what, name, group):
    found = totals(list(group.arrays()))
    return {what: name, "arrays": found["weights"], "bytes": found["bytes"]}


def _model(config):
    inner = config.get("config")
    name = inner.get("name") if isinstance(inner, dict) else None
    return {
        "class": config.get("class_name"),
        "name": name,
        "layers": len(model_layers(config)),
    }


def model_layers(config):
    """The configs of a model's layers, in order; none for a model of another kind."""
    inner = config.get("config") if isinstance(config, dict) else None
    if isinstance(inner, list):  # Keras 2 wrote a Sequential so
        return [each for each in inner if isinstance(each, dict)]
    layers = inner.get("layers") if isinstance(inner, dict) else None
    found = layers if isinstance(layers, list) else []
    return [each for each in found if isinstance(each, dict)]


def layer_name(config):
    """The name that the config of a layer gives, or None."""
    inner = config.get("config")
    name = inner.get("name") if isinstance(inner, dict) else None
    return name if isinstance(name, str) else config.get("name")


def _weight_groups(found):
    """``(name, path, arrays)`` of every layer, in the file's order."""
    if found.format in (HDF5_MODEL, LAYER_WEIGHTS):
        yield from legacy_groups(found.weights)
    elif found.format in (WEIGHTS, ZIP):
        yield from _vars_groups(found.root)


def legacy_groups(holder):
    """``(name, path, [(weight's name, Array)])`` in the order of ``layer_names``."""
    for each in stored_layers(holder):
        yield each.name, each.group.name, list(zip(each.weight_names, each.arrays))
    top = stored_top(holder)
    if top is not None and top.weight_names:
        arrays = list(zip(top.weight_names, top.arrays))
        yield ITSELF, top.group.name, arrays


def _vars_groups(root):
    """The groups ``vars`` but the optimizer's, in the order of the file."""
    inside = (item for item in root.arrays() if is_in_vars(item.name))
    for place, arrays in itertools.groupby(
        inside, key=lambda item: item.name.rpartition("/")[0]
    ):
        if not place.startswith("/optimizer/"):
            group = root.group(place[1:])
            name = group.text("name") if group.has("name") else place[1:]
            short = [(item.name.rpartition("/")[2], item) for item in arrays]
            yield name, place, sorted(short, key=_by_number)


def _by_number(pair):
    name = pair[0]
    return (0, int(name), "") if name.isascii() and name.isdigit() else (1, 0, name)


def _in_order(rows, classes):
    """Rows as the config has the layers; what it does not name comes last."""
    numbers = {name: number for number, name in enumerate(classes)}
    return sorted(rows, key=lambda row: numbers.get(row["name"], len(numbers)))


def _row(name, path, arrays, classes):
    told = {"name": name, "class": classes.get(name), "place": path.strip("/")}
    told |= totals([array for _, array in arrays])
    return told | {"weights": [array_row("name", *each) for each in arrays]}


def _classes(model):
    """Layer's name -> its class, for the layers of a model and of models in it."""
    found = {}
    for each in _dicts(model):
        kind, name = each.get("class_name"), None
        if isinstance(kind, str) and isinstance(each.get("config"), dict):
            name = layer_name(each)
        if isinstance(name, str):
            found.setdefault(name, kind)
    return found


def _dicts(value):
    """All JSON objects in a value, itself included."""
    ahead = [value]
    while ahead:
        each = ahead.pop()
        if isinstance(each, dict):
            yield each
            ahead += reversed(each.values())
        elif isinstance(each, list):
            ahead += reversed(each)


def needed_classes(found, *configs):
    """Names of the classes that have to be known for a file to be loaded."""
    held = classes_with_graphs(found.own_group)
    return custom_classes(found.config, found.compile_config, *configs) - held


def custom_classes(*configs):
    """Names of the classes in configs that neither tapewright nor Keras has."""
    found = set()
    for each in _dicts(list(configs)):
        kind, registered = each.get("class_name"), each.get("registered_name")
        if not isinstance(kind, str):
            continue
        module = each.get("module")
        if kind == "function":
            kind = each.get("config")
            foreign = module == "builtins" and isinstance(kind, str)
        else:
            foreign = isinstance(module, str) and module.partition(".")[0] != "keras"
        package = registered if isinstance(registered, str) else kind
        if ">" in package and package.partition(">")[0] != "keras":
            found.add(package)
        elif foreign or ("module" in each and module is None and registered):
            found.add(kind)
    return found


def _optimizer(found):
    """Its class, step and arrays; None if the file has none."""
    place = _optimizer_group(found.root)
    config = _optimizer_config(found.compile_config)
    if place is None and config is None:
        return None
    told = {}
    if config is not None:
        inner = config.get("config") if isinstance(config.get("config"), dict) else {}
        told["class"] = str(config.get("class_name"))
        told["learning_rate"] = _short(inner.get("learning_rate"))
    if place is not None:
        told |= _summed("place", place.name.strip("/"), place)
        told["iterations"] = _iterations(place.arrays())
    return told


def _optimizer_group(root):
    for path in OPTIMIZER_GROUPS:
        group = root.find(path)
        if isinstance(group, Group) and group.keys():
            return group
    return None


def _optimizer_config(training):
    config = None if training is None else training.get("optimizer")
    if isinstance(config, str):
        return {"class_name": config}
    return config if isinstance(config, dict) else None


def _iterations(arrays):
    """The optimizer's count of steps: its whole number of no dimensions."""
    for array in arrays:
        if array.shape == () and np.issubdtype(array.dtype, np.integer):
            return int(array.read())
    return None


def _training(config):
    if config is None:
        return None
    keys = ("loss", "metrics", "weighted_metrics", "loss_weights")
    return {key: _short(config[key]) for key in keys if config.get(key) is not None}


def _short(value):
    """A loss, metric or rate in a word: ``Huber``; ``{"a": "mse"}`` stays as it is."""
    if isinstance(value, dict) and isinstance(value.get("class_name"), str):
        name, inner = value["class_name"], value.get("config")
        return inner if name == "function" and isinstance(inner, str) else name
    if isinstance(value, dict):
        return {key: _short(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_short(each) for each in value]
    return value


def _notes(found):
    if (
        found.compile_config is not None
        and _optimizer_config(found.compile_config) is None
    ):
        return ["how it was trained tells no optimizer: loading leaves it not compiled"]
    return []


def _others(found):
    """Arrays that are in the file besides those of layers and optimizer, by group."""
    if found.format in KERAS:
        known = {"model_weights", "optimizer", "optimizer_weights", "vars", "layers"}
        if found.format == LAYER_WEIGHTS:
            return None
        keys = [key for key in found.root.keys() if key not in known]
    else:
        keys = found.root.keys()
    rows = []
    for key in keys:
        item = found.root.find(key)
        if found.format in KERAS and all(
            is_in_vars(each.name) for each in item.arrays()
        ):
            continue
        rows.append(_summed("besides", key, item))
    return rows
