"""How many steps a loop takes, where that follows from what is known while tracing."""

from tapewright.core.interpreters import use_interpreters

from ..tracing.graph import Graph, Node, is_value
from ..tracing.interpret import interpret
from .regions import is_seen

__all__ = ["MANY", "known_length"]

# Counting ends here: such a loop asks its condition in each replay.
MANY = 10_000


def known_length(test, body, carried):
    """The number of steps, `MANY` at most; None if it depends on what is traced.

    Args: ``test``, ``body``: tracers that have traced both; ``carried``: the tensors that
    the loop starts with.
    """
    states = [body.value_of(x) for x in body.results[0]]
    condition = test.value_of(test.results)
    places = {value: k for k, value in enumerate(body.graph.inputs[: len(carried)])}
    known, wanted = {}, [(test, condition)]
    places |= {value: k for k, value in enumerate(test.graph.inputs)}
    constants, nodes = {}, {test: set(), body: set()}
    while wanted:
        tracer, value = wanted.pop()
        for leaf in _leaves(tracer.graph, value, nodes[tracer]):
            if leaf is None:
                return None
            if leaf in places:
                k = places[leaf]
                if k not in known:
                    if is_seen([carried[k]]):
                        return None
                    known[k] = carried[k]
                    wanted.append((body, states[k]))
                continue
            tensor = tracer.graph.captures.get(leaf)
            if tensor is None or is_seen([tensor]):
                return None
            constants[leaf] = tensor
    return _counted(test, body, condition, states, known, constants, nodes)


def _leaves(graph, value, nodes):
    """The inputs and captures on which a value depends; None for what is no plain op."""
    seen, stack = set(), [value]
    while stack:
        x = stack.pop()
        if not is_value(x) or x in seen:
            continue
        seen.add(x)
        if x.node is None:
            yield x
        elif type(x.node) is not Node:
            yield None
        else:
            nodes.add(x.node)
            stack += x.node.inputs


def _counted(test, body, condition, states, known, constants, nodes):
    numbers = sorted(known)
    goes_on = _part(test, nodes[test], numbers, [condition])
    after = _part(body, nodes[body], numbers, [states[k] for k in numbers])
    now, count = [known[k] for k in numbers], 0
    with use_interpreters(()):
        while count < MANY and bool(interpret(goes_on, now, dict(constants))[0]):
            now = interpret(after, now, dict(constants))
            count += 1
    return count


def _part(tracer, nodes, numbers, outputs):
    graph = Graph(tracer.graph.name)
    graph.inputs = [tracer.graph.inputs[k] for k in numbers]
    graph.nodes = [node for node in tracer.graph.nodes if node in nodes]
    graph.outputs = outputs
    return graph
