"""`Target`: the pipeline of a target, from a traced graph to its executable.

Each folder of targets has one, in its `target.py`. `compiler.pipeline` runs the passes in
order.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from ..passes.algebra import algebra
from ..passes.common_subexpressions import common_subexpressions
from ..passes.constant_folding import constant_folding
from ..passes.dead_code import dead_nodes, dead_stores, narrow_control
from ..program.passes.overlapping import overlap_all_reduces
from ..program.passes.simplification import drop_unused, merge_equal, uniform_constants


class Target(NamedTuple):
    """The passes of a target, in order, and the class that runs what they make.

    ``graph_passes`` are functions of a `Graph` that return a smaller one of the same
    meaning. `lower` turns the last one into a `Program`, with the arguments ``lowering()``.
    ``program_passes`` modify it in place. ``executable(program, name)`` runs the result.
    """

    name: str
    graph_passes: tuple[Callable[[Any], Any], ...]
    lowering: Callable[[], dict[str, Any]]
    program_passes: tuple[Callable[[Any], None], ...]
    executable: Callable[..., Any]


# Dead nodes go first: the other passes then look at fewer nodes, and count fewer readers.
REWRITES = (dead_nodes, algebra, dead_stores, constant_folding, common_subexpressions)
# Rewrites leave nodes that nobody reads any more.
CLEANUP = (narrow_control, dead_nodes)
# Of a program that is as lowered.
SIMPLIFICATION = (merge_equal, uniform_constants, drop_unused, overlap_all_reduces)
