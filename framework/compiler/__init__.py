"""Compile Python functions to machine code, or to calls of NumPy.

Each folder builds on the folders above it:

tracing        Python calls become a `Graph` of op nodes; its interpreter, VJPs,
verifier
passes         a graph becomes a smaller one of the same meaning
program        a graph becomes a `Program` of array instructions; its passes, its
verifier
loops          groups of instructions become nests of loops, for machine code
targets        lists of passes; a program becomes a callable
pipeline       the steps from a graph to its executable, for the current target
inspection     graphs and executables as text, their costs and times
control_flow   branches, loops and host calls: nodes with regions
autograph      Python control flow becomes control-flow nodes
function       `tw.function`: arguments, the trace that serves them, calls
"""

import functools

from tapewright.core import hooks


@hooks.compiler.fill
@functools.cache  # eager products ask for it, and the import takes a microsecond
def _compiler():
    from .pipeline import COMPILER  # with all passes and targets

    return COMPILER


@hooks.convert.fill
def _convert(function):
    from .autograph.conversion import convert

    return convert(function)


@hooks.why_not_converted.fill
def _why_not_converted():
    from .autograph.conversion import why_not_converted

    return why_not_converted()


@hooks.graph_text.fill
def _graph_text(graph):
    from .inspection.pretty import graph_text

    return graph_text(graph)


@hooks.branch.fill
def _branch(title, choice, functions):
    from .control_flow.cond_node import branch

    return branch(title, choice, functions)


@hooks.map_fn.fill
def _map_fn(function, elements):
    from .control_flow.map_fn import map_fn

    return map_fn(function, elements)
