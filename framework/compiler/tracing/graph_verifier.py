"""Verify graphs: each value is made once, before its use, and is what its op infers.

`verify_graph` looks at one graph and the regions of its nodes; `verify_effects` holds a
graph against the one that a pass has made it of. Nodes that lead to no output and no
effect may use what is not there any more, and are passed over.
"""

from tapewright.core.errors import TracingError, VerificationError
from tapewright.core.symbolic_shape import definitely_equal, has_symbolic_shape
from tapewright.core.tensor import TensorSpec

from .graph import Read, ReadAgain, Store, is_value

__all__ = ["verify_effects", "verify_graph"]


def verify_graph(graph, after, known=None):
    """Check a graph; ``after`` names what made it what it is.

    ``known``: a set of nodes that were found right before; it takes those of this graph.
    Raises: ``VerificationError``.
    """
    known = set() if known is None else known
    live = graph.live_values(graph.outputs)
    nodes = [n for n in graph.nodes if n.is_effect or not live.isdisjoint(n.outputs)]
    try:
        graph.replaced(nodes).check()
        for node in nodes:
            if node not in known:
                _check_node(node, after)
                known.add(node)
    except (TracingError, ValueError, TypeError) as error:
        raise VerificationError(f"{graph.name}, after {after}: {error}") from None


def _check_node(node, after):
    if node.op is not None:
        _check_specs(node, _inferred(node))
    elif type(node) is Store:
        _check_fits(node, node.variable, node.inputs[0])
    elif type(node) in (Read, ReadAgain):
        _check_fits(node, node.variable, node.outputs[0])
    if node.is_alias:
        pairs = zip(node.inputs, node.outputs)
        _check_specs(node, [_spec(x) for x, _ in pairs])
    for region in node.regions:
        if region.captures:
            raise TracingError(
                f"a region of {node} captures instead of taking operands"
            )
        verify_graph(region, after)
    node.check_regions()


def _inferred(node):
    """The specs of the outputs by the op's own rule; None where sizes are open."""
    specs = [_spec(x) for x in node.inputs]
    if has_symbolic_shape(node.attributes) or any(
        [has_symbolic_shape(shape) for shape, _ in specs]
    ):
        return None  # the rule could make assumptions of them
    found = node.op.inferred([TensorSpec(*spec) for spec in specs], node.attributes)
    found = found if type(found) in (tuple, list) else (found,)
    return [(tuple(spec.shape), spec.dtype.dtype) for spec in found]


def _check_specs(node, wanted):
    if wanted is None:
        return
    if len(wanted) != len(node.outputs):
        raise TracingError(f"{node} has {len(node.outputs)} outputs, not {len(wanted)}")
    for (shape, dtype), out in zip(wanted, node.outputs):
        if dtype != out.dtype or not definitely_equal(shape, out.shape):
            raise TracingError(f"{node} gives {dtype} of shape {shape}, not {out}")


def _check_fits(node, variable, x):
    shape, dtype = _spec(x)
    if dtype != variable.dtype.dtype or not definitely_equal(
        tuple(variable.shape), shape
    ):
        raise TracingError(f"{node}: {x} does not fit the variable '{variable.path}'")


def _spec(x):
    x = x if is_value(x) else x.array
    return x.shape, x.dtype


# ---------------------------------------------------------------------------- effects


def verify_effects(before, graph, after):
    """Check that a pass keeps effects, their order, and what reads of variables see.

    Stores may only go where, at each effect and at the end, every variable has the very
    value that it had before. Raises: ``VerificationError``.
    """
    problem = None
    if _effects(before, False) != _effects(graph, False):
        problem = "other effects than before, or in another order"
    elif _effects(before, True) != _effects(graph, True):
        if _held(before) != _held(graph):
            problem = "a variable gets another value"
    elif _reads(graph) - _reads(before):
        problem = "a variable is read at another time"
    if problem:
        raise VerificationError(f"{graph.name}, after {after}: {problem}")


def _effects(graph, stores):
    """Names of the effects in their order, and what they write; with stores, or without."""
    return [
        (node.name, *[id(v) for v in node.writes])
        for node in graph.nodes
        if node.is_effect and (stores or type(node) is not Store)
    ]


def _reads(graph):
    """``(variable, time)`` of each read; time: the number of effects that it comes after."""
    found, time = set(), 0
    for node in graph.nodes:
        if type(node) is Read:
            found.add((id(node.variable), time))
        time += node.is_effect
    return found


def _held(graph):
    """What variables hold, as far as it is known, at each effect and at the end."""
    held, found, same = {}, [], {}
    for node in graph.nodes:
        if type(node) is Read:
            out = id(node.outputs[0])
            same[out] = held.setdefault(id(node.variable), out)
        elif type(node) is Store:
            value = id(node.inputs[0])
            held[id(node.variable)] = same.get(value, value)
        elif node.is_effect:
            found.append(held)
            held = {}
    return [*found, held]
