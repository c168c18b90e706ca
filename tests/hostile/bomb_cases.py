"""Small files that take long to read, or much memory, if they are taken at their word."""

import os
import struct

import files
import h5py
from array_cases import array_case
from cases import ANY, case
from config_cases import config_case
from own import MODEL, TRACE, change_json, objects_case, own_case

HEAP = b"GCOL\1\0\0\0"


@array_case("virtual data of a size that others tell", "other files",
            kinds=("h5", "weights"))  # fmt: skip
def _(file, kernel):
    """HDF5 opens the other files to tell the shape: here a pipe, for ever."""
    del file[kernel]
    space = h5py.h5s.create_simple((0, 4), (h5py.h5s.UNLIMITED, 4))
    space.select_hyperslab((0, 0), (h5py.h5s.UNLIMITED, 1), None, (1, 4))
    creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    creation.set_virtual(space, os.environ["PIPE"].encode(), b"/x", space)
    real = h5py.h5t.IEEE_F32LE
    h5py.h5d.create(file.id, kernel.encode(), real, space, creation)


@case("one text of 1 MiB, 3,000 times", ("h5",), "texts, of up to", placed=True)
def _(path, kind):
    def edit(file, kernel):
        names = [*files.NAMES, *[f"n{i}" for i in range(3000)], "x" * (1 << 20)]
        top = file["model_weights"]
        del top.attrs["layer_names"]
        top.attrs.create("layer_names", names, dtype=files.TEXT)

    files.write(path, kind, edit=edit)
    data = bytearray(path.read_bytes())
    last = _reference(data, 1 << 20)
    for i in range(1, 3001):  # the others, which lie before it, lead to the same text
        data[last - 16 * i : last - 16 * i + 16] = data[last : last + 16]
    path.write_bytes(data)


def _reference(data, length):
    """Where the reference to a text of that length stands: length, heap, number."""
    at = data.find(struct.pack("<I", length))
    while at >= 0:
        heap = struct.unpack_from("<Q", data, at + 4)[0]
        if data[heap : heap + 4] == HEAP[:4]:
            return at
        at = data.find(struct.pack("<I", length), at + 1)
    raise LookupError("there is no such text")


def _append(path, kind, extra):
    files.write(path, kind)
    with open(path, "ab") as file:
        file.write(extra)


@case(
    "texts that go back",
    ("h5", "weights"),
    "strings cannot be read",
    show="strings cannot be read",
)
def _(path, kind):
    objects = struct.pack("<HHIQHHIQ", 1, 0, 0, 0, 2, 0, 0, 2**64 - 32)
    heap = HEAP + struct.pack("<Q", 6 << 20) + objects
    _append(path, kind, heap.ljust(6 << 20, b"\0"))


@case("texts over texts over texts", ("h5", "weights"), "strings cannot be read",
      show="strings cannot be read")  # fmt: skip
def _(path, kind):
    """Each of the heaps reaches half through the file."""
    _append(path, kind, (HEAP + struct.pack("<Q", 1 << 20)) * (1 << 17))


@case("1 TB of holes", files.KINDS, "holes", show="holes")
def _(path, kind):
    files.write(path, kind)
    os.truncate(path, 1 << 40)


@case("1 TB of nothing", files.KINDS, ".")
def _(path, kind):
    path.touch()
    os.truncate(path, 1 << 40)


@config_case("adaptive pooling to 10^9 windows", "output_size", load_weights=ANY,
             verify=ANY)  # fmt: skip
def _(config, kind):
    config["config"]["layers"] = [
        files.entry("InputLayer", kind, name="in", batch_shape=[None, 8, 4]),
        files.entry("AdaptiveAveragePooling1D", kind, name="a", output_size=10**9),
    ]


@case("a metric of 10^9 classes", ("h5", "keras"), load_model="num_classes",
      load_weights=ANY, verify=ANY)  # fmt: skip
def _(path, kind):
    metric = files.entry("MeanIoU", kind, num_classes=10**9)
    if kind == "keras":
        metric["module"] = "keras.metrics"
    files.write(path, kind, training={**files.TRAINING, "metrics": [metric]})


# Saved models.


@objects_case("own, lists of lists of lists", "in total")
def _(objects):
    nodes = objects["nodes"]
    objects["nodes"][objects["root"]]["attributes"]["w"] = len(nodes)
    for _ in range(60):
        nodes.append({"list": [len(nodes) + 1] * 2})
    nodes.append({"list": []})


@own_case("own, a formula to the power of powers", MODEL, "degree")
def _(file):
    _add_fact(file, ["poly", [[[[0, 0]], 1]]])


@own_case("own, a number to the power of powers", MODEL, "degree")
def _(file):
    _add_fact(file, ["poly", [[[], 1 << 60]]])


def _add_fact(file, formula):
    for _ in range(6):
        formula = ["**", formula, 64]

    def change(call):
        facts = call["traces"][0]["assumptions"]["facts"]
        facts.append(["==", formula, False])

    change_json(file, "functions/0/call_0@call", change)


@own_case("own, slices without end", MODEL, "slices")
def _(file):
    n = 1 << 30

    def change(graph):
        start = {"op": "broadcast_to", "in": ["c0"], "out": [["float32", [n]]]}
        start["attributes"] = {"shape": {"tuple": [n]}}
        slices = {"op": "unstack", "in": [1], "attributes": {"axis": 0}, "out": []}
        graph["nodes"] = [start, slices]
        graph["outputs"] = [1, 1]

    change_json(file, f"{TRACE}@graph", change)
