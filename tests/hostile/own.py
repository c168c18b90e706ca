"""Hostile saved models and checkpoints: files of our own kinds, changed and sealed again.

A seal proves that a file is as it was written, not who wrote it, so what is behind it is
looked at as in any other file. `valid` makes the files that are changed.
"""

import json
import os
import shutil

import files
import h5py
import numpy as np
from cases import ANY, OK, case
from config_cases import config_text

KINDS = ("saved_model", "checkpoint")
MODEL, CHECKPOINT = KINDS[:1], KINDS[1:]
_VALID = {}


def valid(kind, folder):
    """The path of a valid file."""
    if kind not in _VALID:
        _VALID[kind] = MAKERS[kind](os.path.join(folder, f"valid-{kind}"))
    return _VALID[kind]


def saved_model(path):
    import tapewright as tw

    class Clipped(tw.Module):
        def __init__(self):
            super().__init__()
            self.v = tw.Variable([[1.0, 2.0], [3.0, 4.0]], name="v")
            self.parts = [tw.Variable(2, trainable=False, name="n")]

        @tw.function(input_signature=[tw.TensorSpec([None, 2], tw.float32)])
        def __call__(self, x):
            @tw.custom_gradient
            def clip(x):
                return tw.identity(x), lambda g: tw.clip_by_norm(g, 0.5)

            y = clip(x) @ self.v
            y = tw.cond(tw.reduce_sum(y) > 0, lambda: y + 1.0, lambda: y)
            return {"y": y, "z": (tw.while_loop(_small, _doubled, [y])[0],)}

    tw.saved_model.save(Clipped(), path)
    return path


def _small(y):
    import tapewright as tw

    return tw.reduce_sum(y * y) < 100.0


def _doubled(y):
    return [y * 2.0]


def objects():
    """What the checkpoints are of."""
    import tapewright as tw

    class Counter:
        def __init__(self):
            self.state = {"seen": 3, "best": float("inf"), "at": (1, np.float32(2))}

        def get_state(self):
            return self.state

        def set_state(self, state):
            self.state = state

    v = tw.Variable(np.arange(4, dtype="f4").reshape(2, 2), name="v")
    return {"v": v, "n": tw.Variable(7, name="n"), "counter": Counter()}


def checkpoint(path):
    import tapewright as tw

    return tw.train.Checkpoint(**objects()).write(path)


MAKERS = {"saved_model": saved_model, "checkpoint": checkpoint}


def own_case(name, kinds, every, **expected):
    """Decorates ``edit(file)``, which changes the file before it is sealed again."""
    default = {"load": every, "restore": every}

    def decorate(edit):
        @case(name, kinds, every, **{**default, **expected})
        def _(path, kind):
            from tapewright.storage.checksum import seal

            shutil.copy(valid(kind, path.parent.parent), path)
            with h5py.File(path, "r+") as file:
                edit(file)
            seal(path)

        return edit

    return decorate


def change_json(file, place, change):
    """Changes the JSON of an attribute, ``"group@key"``; ``change`` may give another."""
    group, _, key = place.rpartition("@")
    value = json.loads(file[group or "/"].attrs[key])
    changed = change(value)
    text = json.dumps(value if changed is None else changed)
    file[group or "/"].attrs[key] = text


TRACE = "functions/0/call_0/trace_0"


def graph_case(name, every, **expected):
    """Decorates ``change(graph)``."""

    def decorate(change):
        @own_case(name, MODEL, every, **expected)
        def _(file):
            change_json(file, f"{TRACE}@graph", change)

        return change

    return decorate


@own_case("own, valid", KINDS, OK, show=OK)
def _(file):
    pass


@case("own, truncated", KINDS, "damaged", load="damaged", restore="damaged",
      show="damaged")  # fmt: skip
def _(path, kind):
    shutil.copy(valid(kind, path.parent.parent), path)
    os.truncate(path, os.path.getsize(path) - 1)


@case("own, a bit flipped", KINDS, "damaged", load="damaged", restore="damaged",
      show="damaged")  # fmt: skip
def _(path, kind):
    shutil.copy(valid(kind, path.parent.parent), path)
    files.flip(path, os.path.getsize(path) // 2)


@case("own, missing", KINDS, "no such file", load="no such", restore="no such|no check")
def _(path, kind):
    pass


@case("own, fifo", KINDS, "pipe", load="pipe", restore="pipe", show="pipe")
def _(path, kind):
    os.mkfifo(path)


@case("own, an HDF5 file of Keras", KINDS, OK, load="saved_model", restore="checkpoint")
def _(path, kind):
    files.write(path, "h5")


@own_case("own, of a version to come", KINDS, "version", show=ANY)
def _(file):
    file.attrs["version"] = np.int64(99)


@own_case("own, without a version", KINDS, "version")
def _(file):
    file.attrs.pop("version")


@own_case("own, a bomb", KINDS, "declares|stores|shape")
def _(file):
    first = "variables/0" if "variables" in file else "arrays/v"
    kept = dict(file[first].attrs)
    files.bomb(file, first, (1 << 20, 1 << 20))
    file[first].attrs.update(kept)


@own_case("own, texts", KINDS, "holds|numbers|dtype")
def _(file):
    first = "variables/0" if "variables" in file else "arrays/v"
    kept = dict(file[first].attrs)
    files.replace(file, first, np.array([b"ab"]))
    file[first].attrs.update(kept)


@own_case("own, an external link", KINDS, "link")
def _(file):
    first = "variables/0" if "variables" in file else "arrays/v"
    del file[first]
    file[first] = h5py.ExternalLink("/etc/passwd", "/x")


# Saved models.


@own_case("own, a missing variable", MODEL, "variables|array")
def _(file):
    del file["variables/0"]


@own_case("own, a missing function", MODEL, "functions|group")
def _(file):
    del file["functions/0"]


@own_case("own, a variable's flag is a text", MODEL, "integer")
def _(file):
    file["variables/0"].attrs["trainable"] = "yes"


@own_case("own, 10^9 variables", MODEL, "number|array|count")
def _(file):
    change_json(file, "@counts", lambda counts: [10**9, 1])


@own_case("own, counts are texts", MODEL, "number|count")
def _(file):
    change_json(file, "@counts", lambda counts: ["a", "b"])


def objects_case(name, every, **expected):
    """Decorates ``change(objects)``."""

    def decorate(change):
        @own_case(name, MODEL, every, **expected)
        def _(file):
            change_json(file, "@objects", change)

        return change

    return decorate


@objects_case("own, no root", "objects|root|holds")
def _(objects):
    objects["root"] = 99


@objects_case("own, a root of another kind", "root|module")
def _(objects):
    objects["root"] = next(
        n for n, node in enumerate(objects["nodes"]) if "variable" in node
    )


@objects_case("own, a list of itself", "deep|nested|itself|cycle", verify=".")
def _(objects):
    objects["nodes"].append({"list": [len(objects["nodes"])]})
    objects["nodes"][objects["root"]]["attributes"]["w"] = len(objects["nodes"]) - 1


@objects_case("own, modules in a circle", ANY)
def _(objects):
    objects["nodes"][objects["root"]]["attributes"]["me"] = objects["root"]


@objects_case("own, a class for an attribute", "attribute")
def _(objects):
    objects["nodes"][objects["root"]]["attributes"]["__class__"] = 1


@objects_case("own, a function that is none", "there is|holds|function")
def _(objects):
    objects["nodes"].append({"function": -1})
    objects["nodes"][objects["root"]]["attributes"]["w"] = len(objects["nodes"]) - 1


@objects_case("own, objects are a list", "objects|holds")
def _(objects):
    return [objects]


@own_case("own, objects 200,000 deep", MODEL, "deep")
def _(file):
    file.attrs["objects"] = config_text(200_000)


@graph_case("own, an op that nobody knows", "os.system")
def _(graph):
    graph["nodes"][0]["op"] = "os.system"


@graph_case("own, an op that is a list", ".")
def _(graph):
    graph["nodes"][0]["op"] = ["add"]


@graph_case("own, a node of no kind", ".")
def _(graph):
    graph["nodes"][0] = {"python": "import os", "in": [], "out": []}


@graph_case("own, Python for an effect", ".")
def _(graph):
    graph["nodes"].append({"effect": "py_function", "in": [0], "attributes": {}})


@graph_case("own, an input that comes later", ".")
def _(graph):
    graph["nodes"][0]["in"] = [5]


@graph_case("own, a negative input", ".")
def _(graph):
    graph["nodes"][0]["in"] = [-1]


@graph_case("own, an input too many", ".")
def _(graph):
    graph["nodes"][0]["in"] = [0] * 7


@graph_case("own, a constant that is none", ".")
def _(graph):
    graph["nodes"][0]["in"] = ["c99"]


@graph_case("own, a variable that is none", ".")
def _(graph):
    next(node for node in graph["nodes"] if "read" in node)["read"] = 99


@graph_case("own, another shape than it has", ".")
def _(graph):
    node = next(node for node in graph["nodes"] if node.get("op") == "matmul")
    node["out"] = [["float32", [1000, 1000]]]


@graph_case("own, another dtype than it has", ".")
def _(graph):
    node = next(node for node in graph["nodes"] if node.get("op") == "matmul")
    node["out"][0][0] = "int64"


@graph_case("own, an attribute too many", ".")
def _(graph):
    node = next(node for node in graph["nodes"] if node.get("op") == "matmul")
    node["attributes"]["command"] = "touch x"


@graph_case("own, an attribute of another type", ".")
def _(graph):
    node = next(node for node in graph["nodes"] if node.get("op") == "matmul")
    node["attributes"]["transpose_a"] = {"x": [1]}


@graph_case("own, zeros of 10^12", ANY)
def _(graph):
    node = {"op": "broadcast_to", "in": ["c0"], "attributes": {"shape": [10**12]}}
    graph["nodes"].append({**node, "out": [["float32", [10**12]]], "line": ""})


@graph_case("own, an output that is none", ".")
def _(graph):
    graph["outputs"] = [99]


@graph_case("own, no nodes", ".")
def _(graph):
    del graph["nodes"]


@graph_case("own, a graph in a graph, 60 deep", ".")
def _(graph):
    cond = next(node for node in graph["nodes"] if "cond" in node)
    kept = cond["graphs"][1]
    for _ in range(60):
        cond = {**cond, "graphs": [{**kept, "nodes": [cond]}, kept]}
    graph["nodes"].append(cond)


@own_case("own, constants of 4 TB", MODEL, ".")
def _(file):
    change_json(
        file,
        "functions/0@constants",
        lambda constants: [["float32", [1 << 20, 1 << 20], "0000003f"], *constants[1:]],
    )


@own_case("own, constants of Python objects", MODEL, ".")
def _(file):
    change_json(
        file,
        "functions/0@constants",
        lambda constants: [["object", [1], "0000003f00000000"], *constants[1:]],
    )


@own_case("own, arguments with names that are none", MODEL, ".")
def _(file):
    def change(function):
        function["parameters"] = [["import os; x", "POSITIONAL_OR_KEYWORD"]]

    change_json(file, "functions/0@function", change)


@own_case("own, 10^9 traces", MODEL, ".")
def _(file):
    def change(call):
        call["traces"] = 10**9

    change_json(file, "functions/0/call_0@call", change)
