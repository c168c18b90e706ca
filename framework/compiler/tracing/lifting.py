"""The value now of a tensor that is being traced: for variables made while tracing.

What the tensor depends on is computed at once, from the arguments with which the function
was called and from the variables as they are.
"""

from tapewright.core.interpreters import use_interpreters
from tapewright.ops.random.philox import GENERATOR

from .graph import Graph, is_value
from .interpret import interpret

__all__ = ["generators", "value_now"]


def value_now(tensor):
    """A traced tensor as one with a value; any other as it is.

    Raises: ``ValueError`` if it depends on an argument for which there is only a spec.
    """
    tracer = getattr(tensor, "tracer", None)
    if tracer is None:
        return tensor
    if tracer.graph.finished:
        tensor.stray()
    part = _ancestors(tracer.graph, tensor.symbol)
    known = {}
    for value in part.inputs:
        given = tracer.graph.captures.get(value)
        if given is None:
            given = tracer.given.get(value)
        if given is None or not hasattr(given, "array"):
            raise ValueError(
                f"function '{tracer.graph.name}' makes a variable whose initial value "
                f"depends on the argument '{value.name}', of which only the spec is known: "
                "call the function first, or give the variable a value of its own"
            )
        known[value] = value_now(given)
    with use_interpreters(()):
        (found,) = interpret(part, list(known.values()))
    return found


def generators(tensor):
    """The states of the random generators that a traced tensor was drawn with."""
    tracer = getattr(tensor, "tracer", None)
    if tracer is None:
        return []
    found = []
    for node in _ancestors(tracer.graph, tensor.symbol).nodes:
        if node.attributes.get("purpose") == GENERATOR and is_value(node.inputs[0]):
            states = _ancestors(tracer.graph, node.inputs[0]).nodes
            found += [v for state in states for v in state.reads]
    return found


def _ancestors(graph, value):
    """The part of a graph that gives a value; its inputs are those that are needed."""
    needed, nodes = {value}, []
    for node in reversed(graph.nodes):
        if not needed.isdisjoint(node.outputs):
            nodes.append(node)
            needed.update([x for x in node.inputs if is_value(x)])
    part = Graph(graph.name)
    part.nodes, part.outputs = nodes[::-1], [value]
    made = {out for node in nodes for out in node.outputs}
    part.inputs = [x for x in needed if x not in made]
    part.finished = True
    return part
