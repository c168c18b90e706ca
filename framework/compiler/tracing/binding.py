"""Bind the sizes of a graph: copy it with numbers instead of formulas."""

from tapewright.core.interpreters import use_interpreters
from tapewright.core.shapes.symbolic_shape import sizes_in_use, substitute, with_sizes

from .graph import Graph
from .interpret import interpret
from .tracer import Tracer


def bind(graph, sizes):
    """Copy a graph with numbers for its sizes (`symbolic_dim.DimSymbol` -> number).

    A tracer interprets it: every op infers its result again and so checks its inputs
    for exactly these sizes. Tensors of sizes become constants. Captures stay captures
    and constants stay constants, even if tapes track them by now.
    """
    twin = Graph(graph.name, graph.parent)
    tracer = Tracer(twin)
    with use_interpreters((tracer,)), with_sizes(sizes):
        env = {value: tracer.capture(x) for value, x in graph.captures.items()}
        tracer.first_key = 0
        inputs = [
            tracer.input(substitute(v.shape, sizes), v.dtype, v.name)
            for v in graph.inputs
        ]
        tracer.finish(interpret(graph, inputs, env))
    return twin


def bound_regions(graphs):
    """Return copies of regions if the graph around them is being bound, else themselves."""
    sizes = sizes_in_use()
    return graphs if sizes is None else tuple([bind(graph, sizes) for graph in graphs])
