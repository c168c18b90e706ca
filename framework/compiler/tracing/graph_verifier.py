"""Verify graphs: each value is defined once, before its use, and matches its op's rule.

`verify_graph` checks one graph and the regions of its nodes; `verify_effects` compares
a graph with its state before a pass. Dead nodes may use removed values and are skipped.
"""

from tapewright.core.errors import TracingError, VerificationError
from tapewright.core.shapes.symbolic_shape import (
    equal_for_examples,
    has_symbolic_shape,
)
from tapewright.core.tensor import TensorSpec

from .graph import Read, ReadAgain, Write, spec_of


def verify_graph(graph, after):
    """Check a graph; ``after`` names the pass that has run.

    Each node is compared with the rule of its op once, since passes create new nodes.

    Raises:
        VerificationError: If the graph is invalid.
    """
    live = graph.live_values(graph.outputs)
    nodes = [n for n in graph.nodes if n.is_effect or not live.isdisjoint(n.outputs)]
    try:
        graph.replaced(nodes).check()
        for node in nodes:
            if node not in graph.verified:
                _check_node(node, after)
                graph.verified.add(node)
    except (TracingError, ValueError, TypeError) as error:
        raise VerificationError(f"{graph.name}, after {after}: {error}") from None


def _check_node(node, after):
    wanted = _inferred(node) if node.op is not None else None
    if node.is_alias:
        wanted = [spec_of(x) for x, _ in zip(node.inputs, node.outputs)]
    if wanted is not None:
        _check_outputs(node, wanted)
    if type(node) is Write:
        check_fits(node.variable, node.inputs[0])
    elif type(node) in (Read, ReadAgain):
        check_fits(node.variable, node.outputs[0])
    for region in node.regions:
        if region.captures:
            raise TracingError(
                f"a region of {node} captures instead of taking operands"
            )
        verify_graph(region, after)
    node.check_regions()


def _inferred(node):
    """Infer the specs of the outputs by the op's rule; None if sizes are open."""
    specs = [spec_of(x) for x in node.inputs]
    if has_symbolic_shape(node.attributes) or any(
        [has_symbolic_shape(shape) for shape, _ in specs]
    ):
        return None  # the rule could make assumptions of them
    inferred = node.op.output_specs(
        [TensorSpec(*spec) for spec in specs], node.attributes
    )
    inferred = inferred if type(inferred) in (tuple, list) else (inferred,)
    return [(tuple(spec.shape), spec.dtype.dtype) for spec in inferred]


def _check_outputs(node, wanted):
    if len(wanted) != len(node.outputs):
        raise ValueError(f"{node} has {len(node.outputs)} outputs, not {len(wanted)}")
    for spec, out in zip(wanted, node.outputs):
        check_spec(node, out, spec)


def check_spec(what, x, spec):
    """Raise ``ValueError`` unless a value or tensor surely has a spec: shape and dtype."""
    (shape, dtype), (wanted, kind) = spec_of(x), spec
    if dtype != kind or not equal_for_examples(shape, wanted):
        raise ValueError(
            f"{what}: {dtype} of shape {shape} does not fit {kind} of shape {wanted}"
        )


def check_fits(variable, x):
    """Raise ``ValueError`` unless a value or tensor matches its variable."""
    spec = tuple(variable._array.shape), variable._array.dtype
    check_spec(f"the variable '{variable.path}'", x, spec)


# ---------------------------------------------------------------------------- effects


def verify_effects(before, graph, after):
    """Check that a pass keeps effects, their order, and the values that reads see.

    A store may be removed only if every variable has the same value as before at each
    effect and at the end.

    Raises:
        VerificationError: If an effect or value has changed.
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
    """Return the names of effects in order, and their writes; with or without stores."""
    return [
        (node.name, *[id(v) for v in node.writes])
        for node in graph.nodes
        if node.is_effect and (stores or type(node) is not Write)
    ]


def _reads(graph):
    """Return ``(variable, time)`` for each read; the time counts the effects before it."""
    reads, time = set(), 0
    for node in graph.nodes:
        if type(node) is Read:
            reads.add((id(node.variable), time))
        time += node.is_effect
    return reads


def _held(graph):
    """List the known values of variables at each effect and at the end."""
    held, history, same = {}, [], {}
    for node in graph.nodes:
        if type(node) is Read:
            out = id(node.outputs[0])
            same[out] = held.setdefault(id(node.variable), out)
        elif type(node) is Write:
            value = id(node.inputs[0])
            held[id(node.variable)] = same.get(value, value)
        elif node.is_effect:
            history.append(held)
            held = {}
    return [*history, held]
