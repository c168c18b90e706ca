"""Describe the content of files as plain values, which `report` formats as text.

No object is built from a file, and no array is read except single numbers such as an
optimizer's step.
"""

import collections
import math
import os

import numpy as np

from tapewright.core.names.naming import snake_case
from tapewright.formats.checkpoints.checkpoint_file import FORMAT as CHECKPOINT
from tapewright.formats.saved_model.graph_reader import FAULTS
from tapewright.formats.saved_model.module_file import FORMAT as SAVED_MODEL
from tapewright.keras.files.class_names import custom_classes
from tapewright.keras.files.custom_layer_graphs import classes_with_graphs
from tapewright.keras.files.limits import walk
from tapewright.keras.files.model_file import (
    LAYER_WEIGHTS,
    OTHER,
    SHARDS,
    is_in_vars,
    opened_model_file,
)
from tapewright.keras.files.weights import weights_by_layer, weights_by_path
from tapewright.keras.files.weights.optimizer_state import OPTIMIZER_GROUPS

MODEL_ITSELF = "(the model itself)"  # stands for the name of a layer
KERAS_GROUPS = {"model_weights", "optimizer", "optimizer_weights", "vars", "layers"}
INTERNAL = {"generator", "aliases", "workers"}  # infos of checkpoints


def describe(path):
    """Return the content of a file of any format as JSON values.

    Raises:
        SavingError: If the file cannot be read or is damaged.
    """
    path = os.fspath(path)
    formats = {CHECKPOINT: _checkpoint, SAVED_MODEL: _saved_model, SHARDS: _shards}
    with opened_model_file(path) as file:
        content = formats.get(file.format, _keras_file)(file)
        description = {
            "path": path,
            "bytes": os.path.getsize(path),
            "format": file.format,
            "seal": "intact" if file.root.sealed else "none",
            "custom_classes": sorted(needed_classes(file)),
            "classes_with_graphs": sorted(classes_with_graphs(file.own_group)),
            **content,
        }
    return {k: v for k, v in description.items() if v not in (None, [], {})}


def needed_classes(file):
    """Return the names of the classes that must be registered to load a file."""
    optimizers = _optimizers(file.root) if file.format == SAVED_MODEL else []
    classes = custom_classes(file.config, file.compile_config, *optimizers)
    return classes - classes_with_graphs(file.own_group)


# ----------------------------------------------------------------------- rows of tables


def _array_row(column, name, array):
    return {
        column: name,
        "shape": list(array.shape),
        "dtype": array.dtype.name,
        "bytes": array.nbytes,
    }


def _group_row(column, name, group):
    arrays = list(group.arrays())
    return {column: name, "arrays": len(arrays), "bytes": _totals(arrays)["bytes"]}


def _totals(arrays):
    return {
        "weights": len(arrays),
        "parameters": sum(math.prod(array.shape) for array in arrays),
        "bytes": sum(array.nbytes for array in arrays),
    }


def _sorted_keys(keys):
    """Sort keys that end in numbers by these numbers."""
    return sorted(keys, key=lambda key: (len(key), key))


# ---------------------------------------------------------------------- files of Keras


def _shards(file):
    rows = [_group_row("file", os.path.basename(g.path), g) for g in file.root.groups]
    table = {"columns": ["file", "arrays", "bytes"], "rows": rows}
    return {"tables": [table], "totals": _totals(list(file.root.arrays()))}


def _keras_file(file):
    classes = _classes(file.config)
    order = {name: i for i, name in enumerate(classes)}
    layers = [(each, each.arrays) for each in stored_layers(file)]
    rows = [_layer_row(layer, arrays, classes) for layer, arrays in layers]
    rows += _rows_without_weights(file, rows)
    return {
        "written_by": {key: str(value) for key, value in file.written_by.items()},
        "model": _model(file.config),
        "layers": sorted(rows, key=lambda row: order.get(row["name"], len(order))),
        "optimizer": _optimizer(file),
        "training": _training(file.compile_config),
        "notes": _notes(file),
        "others": _others(file),
        "totals": _totals([array for _, arrays in layers for array in arrays]),
    }


def stored_layers(file):
    """Return the `StoredLayer` of each layer with weights, in the order of the file."""
    if not file.by_layer:
        return list(weights_by_path.stored_layers(file.root))
    layers = weights_by_layer.stored_layers(file.weights)
    top = weights_by_layer.stored_top(file.weights)
    if top is not None and top.weight_names:
        layers.append(top._replace(name=MODEL_ITSELF))
    return layers


def _layer_row(layer, arrays, classes):
    weights = zip(layer.weight_names, arrays)
    return {
        "name": layer.name,
        "class": classes.get(layer.name),
        "place": layer.location,
        **_totals(arrays),
        "weights": [_array_row("name", *each) for each in weights],
    }


def _rows_without_weights(file, rows):
    """Return a row for each layer of the model's list that has no arrays in the file."""
    held = {row["name"] for row in rows}
    locations = {"/".join(row["place"].split("/", 2)[:2]) for row in rows}
    seen, missing = collections.Counter(), []
    for config in _listed_layers(file.config or {}):
        name, class_name = str(layer_name(config)), str(config.get("class_name"))
        stem = snake_case(class_name.rpartition(">")[2])
        number = f"_{seen[stem]}" if seen[stem] else ""
        seen[stem] += 1
        if name not in held and f"layers/{stem}{number}" not in locations:
            row = {"name": name, "class": class_name, "place": ""}
            missing.append(row | _totals([]) | {"weights": []})
    return missing


def _listed_layers(config):
    """Return the configs of a model's layers that its summary lists."""
    layers = model_layers(config)
    if config.get("class_name") != "Sequential":
        return layers
    return [each for each in layers if each.get("class_name") != "InputLayer"]


def _model(config):
    if config is None:
        return None
    inner = config.get("config")
    return {
        "class": config.get("class_name"),
        "name": inner.get("name") if isinstance(inner, dict) else None,
        "layers": len(_listed_layers(config)),
    }


def model_layers(config):
    """Return the configs of a model's layers, or an empty list for other classes."""
    layers = config.get("config")
    if isinstance(layers, dict):  # Keras 2 has a list in its place for a Sequential
        layers = layers.get("layers")
    layers = layers if isinstance(layers, list) else []
    return [each for each in layers if isinstance(each, dict)]


def layer_name(config):
    """Return the name in the config of a layer, or None."""
    inner = config.get("config")
    name = inner.get("name") if isinstance(inner, dict) else None
    return name if isinstance(name, str) else config.get("name")


def _classes(config):
    """Map layer names to classes, for a model and its nested models."""
    classes = {}
    for each in walk(config):
        if not isinstance(each, dict) or not isinstance(each.get("config"), dict):
            continue
        name, class_name = layer_name(each), each.get("class_name")
        if isinstance(name, str) and isinstance(class_name, str):
            classes.setdefault(name, class_name)
    return classes


def _optimizer(file):
    config, row = _optimizer_config(file), {}
    if config is not None:
        inner = config.get("config")
        rate = inner.get("learning_rate") if isinstance(inner, dict) else None
        row = {"class": str(config.get("class_name")), "learning_rate": _short(rate)}
    groups = [file.root.find_group(path) for path in OPTIMIZER_GROUPS]
    for group in [each for each in groups if each is not None and each.keys()][:1]:
        row |= _group_row("place", group.name.strip("/"), group)
        row["iterations"] = _iterations(group)
    return row


def _optimizer_config(file):
    config = (file.compile_config or {}).get("optimizer")
    config = {"class_name": config} if isinstance(config, str) else config
    return config if isinstance(config, dict) else None


def _iterations(group):
    """Return the number of steps: the integer scalar."""
    for array in group.arrays():
        if array.shape == () and np.issubdtype(array.dtype, np.integer):
            return int(array.read())
    return None


def _training(config):
    keys = ("loss", "metrics", "weighted_metrics", "loss_weights")
    config = config or {}
    return {key: _short(config[key]) for key in keys if config.get(key) is not None}


def _short(value):
    """Return the config of a loss, metric or rate as its name; nests stay nests."""
    if isinstance(value, dict) and isinstance(value.get("class_name"), str):
        name, inner = value["class_name"], value.get("config")
        return inner if name == "function" and isinstance(inner, str) else name
    if isinstance(value, dict):
        return {key: _short(each) for key, each in value.items()}
    return [_short(each) for each in value] if isinstance(value, list) else value


def _notes(file):
    if file.compile_config is not None and _optimizer_config(file) is None:
        return ["the compile config names no optimizer: the model loads uncompiled"]
    return []


def _others(file):
    """Return groups with arrays other than layers and the optimizer."""
    if file.format == LAYER_WEIGHTS:
        return []
    is_keras = file.format != OTHER
    known = KERAS_GROUPS if is_keras else ()
    items = {key: file.root.find(key) for key in file.root.keys() if key not in known}
    return [
        _group_row("besides", key, item)
        for key, item in items.items()
        if not (is_keras and all(is_in_vars(each.name) for each in item.arrays()))
    ]


# ----------------------------------------------------------- checkpoints, saved models


def _checkpoint(file):
    root = file.root
    info = root.json_object("info")
    versions = info.pop("versions", None)
    info = {key: info[key] for key in info if key not in INTERNAL}
    states = root.json_object("states") if root.has("states") else {}
    group = root.find_group("arrays")
    arrays = [] if group is None else list(group.arrays())
    names = [array.name.removeprefix("/arrays/") for array in arrays]
    rows = [_array_row("array", *each) for each in zip(names, arrays)]
    return {
        "written_by": versions if isinstance(versions, dict) else {},
        "facts": info | _progress(states) | {"states": sorted(states)},
        "tables": [{"columns": ["array", "shape", "dtype", "bytes"], "rows": rows}],
        "totals": _totals(arrays),
    }


def _progress(states):
    """Return the epoch, and whether it was complete, from the state that `fit` keeps."""
    progress = states.get("progress")
    pairs = progress.get("dict") if isinstance(progress, dict) else None
    return {
        pair[0]: pair[1]
        for pair in _list(pairs)
        if isinstance(pair, list) and len(pair) == 2 and pair[0] in ("epoch", "within")
    }


def _saved_model(file):
    root = file.root
    group = root.find_group("variables")
    variables = [] if group is None else group.numbered()
    rows = [
        _array_row("variable", array.text("name"), array)
        | {"trainable": bool(array.integer("trainable"))}
        for array in variables
    ]
    functions = root.find_group("functions")
    keys = [] if functions is None else _sorted_keys(functions.keys())
    calls = [row for key in keys for row in _function_rows(functions.group(key))]
    facts = {"version": root.integer("version"), "root": _root_class(root)}
    if optimizers := _optimizers(root):
        facts["optimizers"] = [str(each.get("class_name")) for each in optimizers]
    columns = ["variable", "shape", "dtype", "trainable", "bytes"]
    call_columns = ["function", "arguments", "traces", "nodes", "custom gradients"]
    return {
        "facts": facts,
        "tables": [
            {"columns": columns, "rows": rows},
            {"columns": call_columns, "rows": calls},
        ],
        "totals": _totals(variables),
    }


def _optimizers(root):
    """The configs of the optimizers in a saved model."""
    entries = root.json("optimizers") if root.has("optimizers") else []
    try:
        configs = [entry["config"] for entry in entries]
    except FAULTS:
        root.fail("must be a list of optimizers", "optimizers")
    return [config for config in configs if isinstance(config, dict)]


def _root_class(root):
    objects = root.json("objects")
    try:
        return objects["nodes"][objects["root"]]["module"]
    except FAULTS:
        return root.fail("does not name the class of the root", "objects")


def _function_rows(group):
    """A row for each signature of a function."""
    name = group.json("function")
    for key in _sorted_keys([k for k in group.keys() if k.startswith("call_")]):
        call = group.group(key)
        traces = [each for each in call.keys() if each.startswith("trace_")]
        objects = [
            each
            for trace in traces
            for each in walk(call.group(trace).json("graph"))
            if isinstance(each, dict)
        ]
        nodes = [node for each in objects for node in _list(each.get("nodes"))]
        nodes = [node for node in nodes if isinstance(node, dict)]
        custom = {str(node["custom"]) for node in nodes if node.get("custom")}
        yield {
            "function": name.get("name") if isinstance(name, dict) else None,
            "arguments": _arguments(call.json("call")),
            "traces": len(traces),
            "nodes": len(nodes),
            "custom gradients": ", ".join(sorted(custom)),
        }


def _list(value):
    return value if isinstance(value, list) else []


def _arguments(call):
    """The arguments of a saved signature, such as ``float32[None, 2], 3``."""
    values = call.get("values") if isinstance(call, dict) else None
    return ", ".join(_argument(value) for value in _list(values))


def _argument(value):
    spec = value.get("spec") if isinstance(value, dict) else None
    if not isinstance(spec, list) or len(spec) < 2:
        return str(value)
    dtype, shape = spec[:2]
    sizes = ", ".join(map(str, shape)) if isinstance(shape, list) else "..."
    return f"{dtype}[{sizes}]"
