"""Read untrusted ONNX files: check, then inline functions, then read arrays.

Every failure is a `SavingError` with the file and the reason. Data outside of the file
must be in regular files in its folder, and as large as declared.
"""

from __future__ import annotations

import math
import os

import numpy as np

from tapewright.core.errors import SavingError, as_saving_error
from tapewright.storage.file_objects import Window
from tapewright.storage.reader import regular_file

from ..package import require_onnx
from . import NEWEST, OLDEST
from .graph import dtype_of

# All external data may be read so many times, by tensors that share it.
_SHARED = 10
# The most nodes after functions are inlined: they may call each other many times.
_NODES = 1_000_000


def read_model(path):
    """Return the checked model at ``path``, its opset, and its `Tensors`.

    Calls of functions of the file are replaced by their bodies.

    Raises:
        SavingError: If it is not a valid ONNX file, or of an opset that is not supported.
    """
    onnx = require_onnx("onnx.load")
    path = regular_file(path)
    with as_saving_error(path, "cannot be read", errors=OSError), open(path, "rb") as f:
        content = f.read()
    model = onnx.ModelProto()
    with as_saving_error(path, "is not an ONNX model"):
        model.ParseFromString(content)
    if not model.HasField("graph"):
        raise SavingError(path, "is not an ONNX model: it has no graph")
    opset = _opset(path, model)
    tensors = Tensors(onnx, path)
    external = [t for t in _tensors(model) if t.data_location == t.EXTERNAL]
    for tensor in external:
        tensors.check_external(tensor)
    with as_saving_error(path, "is not a valid ONNX model"):
        onnx.checker.check_model(path if external else model)
        if model.functions:
            _check_calls(model)
            model = onnx.inliner.inline_local_functions(model)
    return model, opset, tensors


def _opset(path, model):
    versions = [o.version for o in model.opset_import if o.domain in ("", "ai.onnx")]
    if len(versions) != 1:
        raise SavingError(path, f"must import one ONNX opset, imports {versions}")
    if not OLDEST <= versions[0] <= NEWEST:
        advice = (
            "convert it with onnx.version_converter.convert_version"
            if versions[0] < OLDEST
            else "export it for an older opset, or use a newer tapewright"
        )
        raise SavingError(path, f"has opset {versions[0]}; tapewright reads opsets "
                          f"{OLDEST} to {NEWEST}: {advice}")  # fmt: skip
    return versions[0]


def _check_calls(model):
    """Raise ``ValueError`` if the functions have too many nodes when they are inlined."""
    bodies = {_key(f.domain, f.name, f): f.node for f in model.functions}
    sizes = {}

    def size(nodes):
        total = 0
        for node in _all_nodes(nodes):
            key = _key(node.domain, node.op_type, node)
            if key in bodies and key not in sizes:
                sizes[key] = size(bodies[key])
            total += 1 + sizes.get(key, 0)
        return total

    if size(model.graph.node) > _NODES:
        raise ValueError(f"its functions have more than {_NODES} nodes when inlined")


def _key(domain, name, proto):
    return domain, name, getattr(proto, "overload", "")


def _all_nodes(nodes):
    """Yield nodes, and all nodes of the graphs in their attributes."""
    for node in nodes:
        yield node
        for graph in _graphs_of(node):
            yield from graph.node


def _graphs(graph):
    """Yield a graph and all graphs in the attributes of its nodes."""
    yield graph
    for node in graph.node:
        yield from _graphs_of(node)


def _graphs_of(node):
    for attribute in node.attribute:
        for inner in [*[attribute.g] * attribute.HasField("g"), *attribute.graphs]:
            yield from _graphs(inner)


def _tensors(model):
    """Yield all tensors of a model, wherever they are."""
    nodes = [node for function in model.functions for node in function.node]
    graphs = [*_graphs(model.graph), *[g for node in nodes for g in _graphs_of(node)]]
    for graph in graphs:
        yield from graph.initializer
        for sparse in graph.sparse_initializer:
            yield from (sparse.values, sparse.indices)
        nodes += graph.node
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            for sparse in [attribute.sparse_tensor, *attribute.sparse_tensors]:
                yield from (sparse.values, sparse.indices)


class Tensors:
    """The arrays of a file, and of the files of external data beside it."""

    def __init__(self, onnx, path):
        self.onnx, self.path = onnx, path
        self._windows, self._referenced = {}, 0

    def array(self, tensor):
        """Return a tensor of the file as an array.

        Raises:
            SavingError: If its data are not as large as declared.
        """
        with as_saving_error(self.path, "holds a damaged tensor", tensor.name):
            return self._array(tensor)

    def _array(self, tensor):
        dtype = dtype_of(tensor.data_type)
        if dtype is None:
            raise ValueError(f"its type {tensor.data_type} is not supported")
        if min(tensor.dims, default=0) < 0:
            raise ValueError(f"its shape is {list(tensor.dims)}")
        if tensor.data_location == tensor.EXTERNAL:
            window, offset, length = self._location(tensor)
            order = dtype.dtype.newbyteorder("<")
            array = np.frombuffer(window.read_at(offset, length), order)
            array = array.reshape(tuple(tensor.dims))
        else:
            array = self.onnx.numpy_helper.to_array(tensor)
        # Old versions of onnx return the bits.
        if dtype == "bfloat16" and array.dtype.kind == "u":
            return array.view(dtype.dtype)
        return array

    def check_external(self, tensor):
        """Raise `SavingError` unless the data of a tensor are in a file beside the model."""
        with as_saving_error(self.path, "refers to external data", tensor.name):
            _, _, length = self._location(tensor)
            self._referenced += length
            if self._referenced > _SHARED * sum(w.size for w in self._windows.values()):
                raise ValueError("tensors share more bytes than the files have")

    def _location(self, tensor):
        """Return the `Window` of a file, and the offset and length of a tensor's data."""
        entries = {each.key: each.value for each in tensor.external_data}
        location = entries.get("location", "")
        parts = location.replace("\\", "/").split("/")
        if (
            "" in parts
            or ".." in parts
            or "." in parts
            or ":" in parts[0]
            or "\0" in location
        ):
            raise ValueError(f"the location {location!r} is not a file in its folder")
        folder = os.path.dirname(os.path.abspath(self.path))
        for i in range(len(parts)):
            if os.path.islink(os.path.join(folder, *parts[: i + 1])):
                raise ValueError(f"the location {location!r} leads through a link")
        if location not in self._windows:
            file = regular_file(os.path.join(folder, *parts))
            self._windows[location] = Window(file)
        window = self._windows[location]
        dtype = dtype_of(tensor.data_type)
        if dtype is None or dtype == "string":
            raise ValueError(f"type {tensor.data_type} cannot be external data")
        size = math.prod(tensor.dims) * dtype.size
        offset = int(entries.get("offset") or 0)
        length = int(entries.get("length") or size)
        if min([*tensor.dims, offset], default=0) < 0 or length != size:
            raise ValueError(f"{length} bytes at {offset} are not its data: shape "
                             f"{list(tensor.dims)}, {dtype.name}")  # fmt: skip
        if offset + length > window.size:
            raise ValueError(f"{location!r} has {window.size} bytes, but {length} bytes at "
                             f"{offset} are declared")  # fmt: skip
        return window, offset, length
