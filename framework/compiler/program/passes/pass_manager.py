"""Run passes in order, and verify the result of each.

A pass over graphs returns a graph, a pass over programs modifies one in place. Those that
a user has a reason to turn off, by `tw.config.set_graph_passes`, are `SWITCHES`: they
change rounding, the gradient of special values, or what a user reads of a function.
"""

from tapewright.core.settings import config

from ...tracing.graph_verifier import verify_effects, verify_graph
from ..instructions.variable_update import defer_all_reduces, inline_updates
from ..verifier import verify_program

SWITCHES = (
    *("algebra", "constant_folding", "common_subexpressions"),
    *("pool_first", "cropped_convolutions", "overlap_all_reduces"),
    *("loop_fusion", "epilogues", "half_factors"),
)


def graph_stages(graph, passes):
    """Run passes over a graph; yield ``(name, graph)`` before the first and after each.

    Args:
        graph: The `Graph` to begin with.
        passes: Functions that return a graph of the same meaning, in order.

    Yields:
        ``"trace"`` and the graph; then the name of each pass that is turned on, and its
        graph.

    Raises:
        VerificationError: If functions are verified, and a pass makes a mistake.
    """
    verified = config.functions_are_verified()
    # First, as passes must keep effects.
    graph = defer_all_reduces(inline_updates(graph))
    if verified:
        verify_graph(graph, "tracing")
    yield "trace", graph
    for each in filter(_is_on, passes):
        before, graph = graph, each(graph)
        if verified and graph is not before:
            verify_graph(graph, each.__name__)
            verify_effects(before, graph, each.__name__)
        yield each.__name__, graph


def program_stages(program, passes):
    """Run passes over a program; yield the name of each after it has modified the program.

    Args:
        program: The `Program` to modify.
        passes: Functions that modify a program in place, in order.

    Yields:
        The name of each pass that is turned on.

    Raises:
        VerificationError: If functions are verified, and a pass makes a mistake.
    """
    verified = config.functions_are_verified()
    if verified:
        verify_program(program, "lowering")
    for each in filter(_is_on, passes):
        before = _operands(program) if verified else None
        each(program)
        if verified and _operands(program) != before:
            verify_program(program, each.__name__)
        yield each.__name__
    if verified:
        verify_program(program, "all passes")  # whatever else they changed


def run_passes(program, passes):
    """Run passes over a program, see `program_stages`; return the program."""
    for _ in program_stages(program, passes):
        pass
    return program


def _is_on(each):
    return each.__name__ not in SWITCHES or config.graph_pass_is_on(each.__name__)


def _operands(program):
    """List the instructions of a program with the buffers that they read and write."""
    instructions = [(i, i.operands, i.outputs) for i in program.instructions]
    return instructions, list(program.outputs)
