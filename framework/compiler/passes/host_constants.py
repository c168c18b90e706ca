"""A pass that copies constants from a GPU to the host, where other passes inspect them."""

import numpy as np

from tapewright.core.hardware.devices import to_numpy
from tapewright.core.tensor import new_tensor

from ..tracing.graph import is_value
from .rewriting import GraphRewriter, is_op


def host_constants(graph):
    """Replace constants in GPU memory by host copies; a program keeps its own on the GPU."""
    rewriter, copies = GraphRewriter(graph), {}

    def on_host(x):
        if is_value(x) or isinstance(x.array, np.ndarray):
            return x
        if id(x) not in copies:
            copies[id(x)] = new_tensor(to_numpy(x.array))
        return copies[id(x)]

    for node in graph.nodes:
        inputs = rewriter.inputs(node)
        moved = tuple(map(on_host, inputs)) if is_op(node) else inputs
        same = all([a is b for a, b in zip(moved, inputs, strict=True)])
        rewriter.keep(node, inputs if same else moved)
    return rewriter.result()
