"""Compute traced tensors at once: initial values of variables created in a trace.

The part of the graph that a tensor depends on is interpreted, with the arguments of the
call and the current values of variables.
"""

from tapewright.core.interpreters import use_interpreters
from tapewright.ops.random.philox import GENERATOR

from .graph import is_value
from .interpret import interpret


def concrete_value(tensor):
    """Return a traced tensor as one with a value, any other tensor unchanged.

    Raises:
        ValueError: If it depends on an argument of which only the spec is known.
    """
    tracer = getattr(tensor, "tracer", None)
    if tracer is None:
        return tensor
    if tracer.graph.finished:
        tensor.raise_outside_trace()
    part = tracer.graph.ancestors([tensor.symbol])
    inputs = []
    for value in part.inputs:
        outside = tracer.graph.captures.get(value)
        if outside is None:
            outside = tracer.call_tensors.get(value)
        if outside is None or not hasattr(outside, "array"):
            raise ValueError(
                f"function '{tracer.graph.name}' creates a variable whose initial "
                f"value depends on the argument '{value.name}', whose value is "
                "unknown: call the function first, or initialize the variable "
                "without it"
            )
        inputs.append(concrete_value(outside))
    with use_interpreters(()):
        (value,) = interpret(part, inputs)
    return value


def generators(tensor):
    """Return the states of the random generators that a traced tensor depends on."""
    tracer = getattr(tensor, "tracer", None)
    if tracer is None:
        return []
    variables = []
    for node in tracer.graph.ancestors([tensor.symbol]).nodes:
        if node.attributes.get("purpose") == GENERATOR and is_value(node.inputs[0]):
            states = tracer.graph.ancestors([node.inputs[0]]).nodes
            variables += [v for state in states for v in state.reads]
    return variables
