"""Describe the content of saved models and checkpoints without building anything.

`inspection` makes a report of it. A file in another form than `saved_model` and
`checkpoint_file` write is a `SavingError`.
"""

import math

from .checkpoints.checkpoint_file import FORMAT as CHECKPOINT
from .saved_model.graph_reader import FAULTS
from .saved_model.module_file import FORMAT as SAVED_MODEL

__all__ = [
    "CHECKPOINT",
    "SAVED_MODEL",
    "array_row",
    "describe_own",
    "optimizers_of",
    "totals",
]


def describe_own(kind, root):
    """Facts, tables and totals of a saved model or a checkpoint, for `describe`."""
    if kind == SAVED_MODEL:
        return _saved_model(root)
    return _checkpoint(root)


def array_row(what, name, array):
    """Row of a table for an array; ``what`` is its name there."""
    return {
        what: name,
        "shape": list(array.shape),
        "dtype": array.dtype.name,
        "bytes": array.nbytes,
    }


def totals(arrays):
    """Total count and size of arrays."""
    return {
        "weights": len(arrays),
        "parameters": sum(math.prod(array.shape) for array in arrays),
        "bytes": sum(array.nbytes for array in arrays),
    }


# ------------------------------------------------------------------------- checkpoints


def _checkpoint(root):
    info = root.json_object("info")
    versions = info.pop("versions", None)
    info.pop("generator", None)  # long numbers that tell nothing
    info.pop("aliases", None)
    group = root.find_group("arrays")
    arrays = [] if group is None else list(group.arrays())
    states = root.json_object("states") if root.has("states") else {}
    return {
        "written_by": versions if isinstance(versions, dict) else {},
        "facts": info | _progress(states) | {"states": sorted(states)},
        "tables": [_table("array", arrays, "/arrays/")],
        "totals": totals(arrays),
    }


def _progress(states):
    """The epoch and whether it was over, of the state that `fit` keeps."""
    form = states.get("progress")
    pairs = form.get("dict") if isinstance(form, dict) else None
    found = {}
    for pair in pairs if isinstance(pairs, list) else []:
        if isinstance(pair, list) and len(pair) == 2 and pair[0] in ("epoch", "within"):
            found[pair[0]] = pair[1]
    return found


def _table(what, arrays, prefix):
    rows = [array_row(what, each.name.removeprefix(prefix), each) for each in arrays]
    return {"columns": [what, "shape", "dtype", "bytes"], "rows": rows}


# ------------------------------------------------------------------------ saved models


def _saved_model(root):
    group = root.find_group("variables")
    variables = [] if group is None else group.numbered()
    table = _table("variable", variables, "")
    table["columns"].insert(3, "trainable")
    for row, array in zip(table["rows"], variables, strict=True):
        row["variable"] = array.text("name")
        row["trainable"] = bool(array.integer("trainable"))
    functions = [_function(group) for group in _functions(root)]
    columns = ["function", "arguments", "traces", "nodes", "custom gradients"]
    facts = {"version": root.integer("version"), "root": _root_class(root)}
    if optimizers := optimizers_of(root):
        facts["optimizers"] = [str(each.get("class_name")) for each in optimizers]
    return {
        "facts": facts,
        "tables": [
            table,
            {"columns": columns, "rows": [row for rows in functions for row in rows]},
        ],
        "totals": totals(variables),
    }


def optimizers_of(root):
    """The configs of the optimizers that a saved model has."""
    listed = root.json("optimizers") if root.has("optimizers") else []
    try:
        return [form["config"] for form in listed if isinstance(form["config"], dict)]
    except FAULTS:
        return root.fail("must be a list of optimizers", "optimizers")


def _functions(root):
    group = root.find_group("functions")
    if group is None:
        return []
    keys = sorted(group.keys(), key=lambda key: (len(key), key))
    return [group.group(key) for key in keys]


def _root_class(root):
    form = root.json("objects")
    try:
        return form["nodes"][form["root"]]["module"]
    except FAULTS:
        return root.fail("does not tell the class of the root", "objects")


def _function(group):
    """A row for each signature of a function."""
    name = group.json("function")
    calls = [key for key in group.keys() if key.startswith("call_")]
    rows = []
    for key in sorted(calls, key=lambda key: (len(key), key)):
        call = group.group(key)
        traces = [each for each in call.keys() if each.startswith("trace_")]
        graphs = [call.group(each).json("graph") for each in traces]
        nodes = [node for graph in graphs for node in _nodes(graph)]
        custom = {str(node["custom"]) for node in nodes if node.get("custom")}
        rows.append({
            "function": name.get("name") if isinstance(name, dict) else None,
            "arguments": _arguments(call.json("call")),
            "traces": len(traces),
            "nodes": len(nodes),
            "custom gradients": ", ".join(sorted(custom)),
        })  # fmt: skip
    return rows


def _nodes(graph):
    """All nodes of a graph, and of graphs in it."""
    found, ahead = [], [graph]
    while ahead:
        each = ahead.pop()
        if isinstance(each, dict):
            found += [n for n in _listed(each.get("nodes")) if isinstance(n, dict)]
            ahead += each.values()
        elif isinstance(each, list):
            ahead += each
    return found


def _listed(value):
    return value if isinstance(value, list) else []


def _arguments(call):
    """``float32[None, 2], 3``: what a saved signature takes."""
    values = call.get("values") if isinstance(call, dict) else None
    return ", ".join(_argument(value) for value in _listed(values))


def _argument(value):
    spec = value.get("spec") if isinstance(value, dict) else None
    if not isinstance(spec, list) or len(spec) < 2:
        return str(value)
    dtype, shape = spec[:2]
    if not isinstance(shape, list):
        return f"{dtype}[...]"
    return f"{dtype}[{', '.join(map(str, shape))}]"
