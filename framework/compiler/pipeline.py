"""The list of passes, in order, from a traced graph to its executable.

Graph passes return a smaller `Graph` of the same meaning; program passes modify a
`Program` of array calls in place. All except `shared_weights`, `pool_first` and
`cropped_convolutions` compute bitwise identical results. Each can be switched by its
name: ``tw.config.set_graph_passes(algebra=False)``.
"""

import functools
import threading
from contextlib import contextmanager

import numpy as np

from tapewright.core import config
from tapewright.core.devices import current_module
from tapewright.core.logger import get_logger

from .passes.algebra import algebra
from .passes.common_subexpressions import common_subexpressions
from .passes.constant_folding import constant_folding
from .passes.dead_code import dead_nodes, dead_stores, narrow_control
from .passes.host_constants import host_constants
from .passes.pooling_passes import cropped_convolutions, pool_first
from .passes.shared_weights import shared_weights
from .program.lowering import lower
from .program.map_fusion import row_blocks
from .program.overlapping import overlap_all_reduces
from .program.simplification import drop_unused, merge_equal, uniform_constants
from .program.verifier import verify_program
from .targets.cuda.availability import flaw as cuda_flaw
from .targets.native import engine
from .targets.native.availability import availability
from .targets.numpy.executable import Executable
from .tracing.graph_verifier import verify_effects, verify_graph

__all__ = [
    "GRAPH_PASSES",
    "PROGRAM_PASSES",
    "make_executable",
    "make_gather",
    "make_program",
    "make_update",
    "optimize",
    "optimize_program",
]

GRAPH_PASSES = (
    dead_nodes,
    algebra,
    dead_stores,
    constant_folding,
    common_subexpressions,
    shared_weights,
    pool_first,
    cropped_convolutions,
    narrow_control,
)
PROGRAM_PASSES = (
    merge_equal,
    uniform_constants,
    drop_unused,
    overlap_all_reduces,
    row_blocks,
)


@functools.cache
def _native_product():
    from .targets.native.eager_products import product  # with LLVM

    return product


SLOW = 2.0  # seconds of compilation without a word
_told = threading.Event()

for _each in (*GRAPH_PASSES, *PROGRAM_PASSES):
    config.offer_graph_pass(_each.__name__, on=_each is not shared_weights)
for _each in (
    *("native_kernels", "sums_for_products", "loop_fusion", "slice_loops"),
    *("compiled_updates", "epilogues", "half_factors", "small_products"),
):
    config.offer_graph_pass(_each)
config.offer_target("native", availability, engine.description, _native_product)
config.offer_gpu_target(cuda_flaw)


def make_executable(graph):
    """Return the executable of a graph for the current device and target."""
    if current_module() is not np:
        from .targets.cuda.executable import CudaExecutable  # with all that it needs

        with _telling_if_slow(graph.name):
            return CudaExecutable(make_program(graph), graph.name, make_program)
    if config.target() == "native":
        from .targets.native.executable import NativeExecutable  # with LLVM

        with _telling_if_slow(graph.name):
            return NativeExecutable(make_program(graph), graph.name)
    return Executable(make_program(graph), graph.name)


@contextmanager
def _telling_if_slow(name):
    """Log, once in a process, that a function compiles if that takes longer than `SLOW`."""
    if _told.is_set():
        yield
        return
    timer = threading.Timer(SLOW, _tell, (name,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def _tell(name):
    if not _told.is_set():
        _told.set()
        get_logger().warning(
            f"compiling {name!r}, which takes a while the first time; later runs of the "
            "program load it from the cache. "
            "tw.get_logger().setLevel('ERROR') hides this line"
        )


def make_update(rule, dtype, decays, scaled):
    """Return a `BlockRule` as machine code, or None if NumPy is to compute it.

    See `compiled_update` for the arguments.
    """
    if config.target() != "native" or not config.graph_pass_is_on("compiled_updates"):
        return None
    from .targets.native.updates import compiled_update  # with LLVM

    return compiled_update(rule, dtype, decays, scaled)


def make_gather():
    """Return a machine-code version of `gather_rows`, or None if this is switched off."""
    if not config.graph_pass_is_on("native_kernels"):
        return None
    from .targets.native.rows import gather_rows  # with LLVM

    return gather_rows()


def make_program(graph, **lowering):
    """Return the `Program` of a graph after all passes; ``lowering``: as for `lower`."""
    if current_module() is not np:
        from .targets.cuda.kernels.table import is_supported

        kind = current_module().ndarray
        how = {"in_loops": True, "is_supported": is_supported, **lowering}
        off = ("pool_first",)  # a look at values, and one kernel more
        program = lower(optimize(graph, off), kind, **how)
        return optimize_program(program, off=("row_blocks",))
    if config.target() == "native":
        return optimize_program(
            lower(optimize(graph), in_loops=True, **lowering), off=("row_blocks",)
        )
    return optimize_program(lower(optimize(graph), **lowering))


def optimize(graph, off=()):
    """Return the graph after all passes except those switched off globally or in ``off``.

    ``passes`` of the result are the names of the passes that were applied.
    """
    passes = _switched_on(GRAPH_PASSES, off)
    made = tuple([each.__name__ for each in passes])
    if "dead_nodes" in made:
        passes.append(dead_nodes)  # what the others leave behind
    verified = config.functions_are_verified()
    if verified:
        verify_graph(graph, "tracing")
    result = graph if current_module() is np else host_constants(graph)
    for each in passes:
        before, result = result, each(result)
        if verified and result is not before:
            verify_graph(result, each.__name__)
            verify_effects(before, result, each.__name__)
    result = result.replaced(result.nodes)
    result.passes = made
    return result


def optimize_program(program, off=()):
    """Run the program passes except those switched off globally or in ``off``."""
    passes = _switched_on(PROGRAM_PASSES, off)
    if not config.functions_are_verified():
        for each in passes:
            each(program)
        return program
    verify_program(program, "lowering")
    for each in passes:
        before = _operands(program)
        each(program)
        if _operands(program) != before:
            verify_program(program, each.__name__)
    verify_program(program, "all passes")  # whatever else they changed
    return program


def _operands(program):
    """List the instructions of a program with the buffers that they read and write."""
    instructions = [(i, i.operands, i.outputs) for i in program.instructions]
    return instructions, list(program.outputs)


def _switched_on(passes, off):
    names = [(each, each.__name__) for each in passes]
    return [each for each, n in names if n not in off and config.graph_pass_is_on(n)]
