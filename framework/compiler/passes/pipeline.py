"""What makes a graph smaller before it is planned: passes, each from graph to graph.

A pass leaves the graph that it is given alone and returns another, or the same where
there is nothing to do. All but `shared_weights` and those of `pooling` compute the very
same numbers, to the bit. Each can be switched: ``tw.config.set_graph_passes(algebra=False)``.
"""

import numpy as np

from tapewright.core import config
from tapewright.core.symbolic_shape import sized
from tapewright.core.tensor import new_tensor

from ..tracing.graph import Read, Store, is_value
from .algebra import COMMUTATIVE, simplified
from .rewriting import Rewriter, is_op, is_static, plain
from .shared_weights import stacked

__all__ = [
    "PASSES",
    "algebra",
    "common_subexpressions",
    "constant_folding",
    "dead_nodes",
    "dead_stores",
    "run",
    "shared_weights",
]

PASSES = {}  # name -> function, in the order in which they run

# A folded constant may be so many times larger than what it is computed from, ...
GROWTH = 4
# ... or have so many bytes, whatever it is from.
SMALL = 1 << 16
# Constants up to so many bytes are the same if their bytes are.
COMPARED = 4096


def graph_pass(function=None, *, on=True):
    """Decorator: makes a function of a graph a pass, which has its name.

    ``on``: whether it is made without being asked for.
    """
    if function is None:
        return lambda function: graph_pass(function, on=on)
    PASSES[function.__name__] = function
    config.offer_graph_pass(function.__name__, on)
    return function


def run(graph, off=()):
    """The graph after all passes but those switched off, there or in ``off``.

    ``passes`` of the result are the names of those that were made.
    """
    made = []
    result = graph.replaced(graph.nodes)
    for name, function in PASSES.items():
        if name not in off and config.graph_pass_is_on(name):
            result = function(result)
            made.append(name)
    if made and "dead_nodes" in made:  # what the others left behind
        result = dead_nodes(result)
    result.passes = tuple(made)
    if config.plans_are_verified():  # nodes that lead nowhere may use what is not here
        (result if "dead_nodes" in made else dead_nodes(result)).check()
    return result


# ---------------------------------------------------------------------- what nobody sees


@graph_pass
def dead_nodes(graph):
    """Without nodes whose results lead to no output and no effect."""
    needed = {x for x in graph.outputs if is_value(x)}
    kept = []
    for node in reversed(graph.nodes):
        if not node.is_effect and needed.isdisjoint(node.outputs):
            continue
        for x in node.inputs:
            if is_value(x):
                needed.add(x)
        kept.append(node)
    if len(kept) == len(graph.nodes):
        return graph
    return graph.replaced(kept[::-1])


# ----------------------------------------------------------------------------- algebra


@graph_pass
def algebra(graph):
    """With ops replaced by cheaper ones that give the same numbers; rules: `algebra`."""
    rewriter = Rewriter(graph)
    for node in graph.nodes:
        if node.hands_on:
            for own, x in zip(node.outputs, node.inputs, strict=False):
                rewriter.replace(own, rewriter.now(x))
            continue
        if not is_op(node):
            rewriter.keep(node)
            continue
        inputs = rewriter.inputs(node)
        found = simplified(rewriter, node, inputs)
        if found is None:
            rewriter.keep(node, inputs)
        else:
            rewriter.replace(node.outputs[0], found)
    return rewriter.result()


@graph_pass
def dead_stores(graph):
    """Without assignments that change nothing, or that the next one overwrites unseen."""
    unchanged, gone = {}, set()  # id of a variable -> the value that it has
    for node in graph.nodes:
        if type(node) is Read:
            unchanged[id(node.variable)] = node.outputs[0]
        elif type(node) is Store:
            if unchanged.get(id(node.variable)) is node.inputs[0]:
                gone.add(node)
            else:
                unchanged[id(node.variable)] = node.inputs[0]
        elif node.is_effect:
            unchanged.clear()
    overwritten = set()
    for node in reversed(graph.nodes):
        if node in gone:
            continue
        if type(node) is Store:
            if id(node.variable) in overwritten:
                gone.add(node)
            overwritten.add(id(node.variable))
        elif node.is_effect:
            overwritten.clear()
        else:
            overwritten.difference_update([id(v) for v in node.reads])
    if not gone:
        return graph
    return graph.replaced([node for node in graph.nodes if node not in gone])


@graph_pass
def constant_folding(graph):
    """With ops on constants alone computed now, unless the results are large."""
    rewriter = Rewriter(graph)
    for node in graph.nodes:
        tensors = _folded(node, rewriter) if is_op(node) else None
        if tensors is None:
            rewriter.keep(node)
        else:
            for value, tensor in zip(node.outputs, tensors, strict=True):
                rewriter.replace(value, tensor)
    return rewriter.result()


def _folded(node, rewriter):
    """The outputs of a node as constants, or None."""
    for x in node.inputs:
        if is_value(x) and is_value(rewriter.now(x)):
            return None
    inputs = rewriter.inputs(node)
    if not inputs or not all([isinstance(x.array, np.ndarray) for x in inputs]):
        return None
    if sized(node.attributes) or not all([is_static(v) for v in node.outputs]):
        return None
    limit = max(SMALL, GROWTH * sum([x.array.nbytes for x in inputs]))
    if sum([v.nbytes for v in node.outputs]) > limit:
        return None
    uniform = node.op.elementwise and all([_is_uniform(x.array) for x in inputs])
    if uniform:
        inputs = [new_tensor(x.array.flat[:1].reshape(())) for x in inputs]
    try:
        with np.errstate(all="ignore"):
            outputs = node.op.run(inputs, node.attributes)
    except Exception:
        if not node.op.raises_on_values(*[x.array.dtype for x in inputs]):
            raise
        return None  # the replay raises it, and names the user's line
    outputs = outputs if type(outputs) is tuple else (outputs,)
    arrays = [np.asarray(x.array) for x in outputs]
    if uniform:
        arrays = [np.broadcast_to(a, v.shape) for a, v in zip(arrays, node.outputs)]
    return [new_tensor(a) for a in arrays]


def _is_uniform(array):
    """Return whether an array is one number, broadcast, to be computed once."""
    return array.size > 0 and not any(array.strides)


# -------------------------------------------------------------------------- duplicates


@graph_pass
def common_subexpressions(graph):
    """With one node in place of several that apply one op to the same inputs."""
    rewriter, known, keys = Rewriter(graph), {}, {}
    for node in graph.nodes:
        key = None
        if is_op(node):
            key = _key(node, rewriter.inputs(node), keys)
        first = known.get(key)
        if first is not None:
            for own, other in zip(node.outputs, first, strict=True):
                rewriter.replace(own, other)
            continue
        rewriter.keep(node)
        if key is not None:
            known[key] = rewriter.nodes[-1].outputs
    return rewriter.result()


@graph_pass(on=False)
def shared_weights(graph):
    """With what is done twice with the same weights done once, on stacked rows.

    A product of more rows may add in another order: results may differ by rounding. So it
    is off until it is asked for.
    """
    return stacked(graph)


def _key(node, inputs, keys):
    """What two nodes that compute the same have in common; None: not to be merged."""
    attributes = plain(node.attributes) if node.attributes else ()
    if attributes is None:
        return None
    own = [x if is_value(x) else _constant_key(x, keys) for x in inputs]
    if node.op in COMMUTATIVE and node.outputs[0].dtype.kind in "iuf":
        own = [frozenset(own)]
    return (node.op, *own, attributes)


def _constant_key(x, keys):
    """Small constants are the same if their bytes are, large ones if they are one."""
    found = keys.get(id(x))
    if found is None:
        array = x.array
        found = id(array)
        if isinstance(array, np.ndarray) and array.nbytes <= COMPARED:
            if array.dtype.kind in "biufc":
                found = array.dtype.str, array.shape, array.tobytes()
        keys[id(x)] = found
    return found
