"""The way from a traced graph to its executable: the passes of the current target.

Each folder of `compiler.targets` lists its passes in a `Target`; `pass_manager` runs and
verifies them.
"""

import functools
import threading
from contextlib import contextmanager

import numpy as np

from tapewright.core.hardware.devices import current_module
from tapewright.core.hooks import Compiler
from tapewright.core.messages.logger import get_logger
from tapewright.core.settings import config

from .program.lowering.lowering import lower
from .program.passes.pass_manager import SWITCHES, graph_stages, program_stages
from .targets.cuda.availability import why_unavailable
from .targets.native.availability import availability
from .targets.native.jit import engine
from .targets.numpy.target import TARGET as NUMPY


@functools.cache
def _native_product():
    from .targets.native.products.eager_products import product  # with LLVM

    return product


SLOW = 2.0  # seconds of compilation without a word
_told = threading.Event()

COMPILER = Compiler(
    dict.fromkeys(SWITCHES, True),
    why_native_unavailable=availability,
    native_description=engine.description,
    native_product=_native_product,
    why_op_by_op=why_unavailable,
)


def current_target():
    """Return the `Target` of the current device and settings."""
    if current_module() is not np:
        from .targets.cuda.target import TARGET  # with all that it needs

        return TARGET
    if config.target() == "native":
        from .targets.native.target import TARGET  # with LLVM

        return TARGET
    return NUMPY


def make_executable(graph):
    """Return the executable of a graph for the current device and target."""
    target = current_target()
    if target.name == "numpy":
        return target.executable(make_program(graph), graph.name)
    with _telling_if_slow(graph.name):
        return target.executable(make_program(graph), graph.name)


def make_program(graph, **lowering):
    """Return the `Program` of a graph after all passes; ``lowering``: as for `lower`."""
    *_, (_, program) = stages(graph, **lowering)
    program.remake = functools.partial(make_program, program.graph, **lowering)
    return program


def optimize(graph):
    """Return a graph after the graph passes of the current target."""
    *_, (_, optimized) = graph_stages(graph, current_target().graph_passes)
    return optimized


def stages(graph, target=None, **lowering):
    """Yield ``(name, result)`` after each step of the pipeline of a target.

    The result of passes over graphs is a `Graph`; from ``"lower"`` on it is a `Program`,
    the same one, which the passes modify in place.

    Args:
        graph: The `Graph`.
        target: The `Target`, by default the current one.
        **lowering: Arguments of `lower`.
    """
    target = target or current_target()
    for name, optimized in graph_stages(graph, target.graph_passes):
        yield name, optimized
    program = lower(optimized, **target.lowering(), **lowering)
    yield "lower", program
    for name in program_stages(program, target.program_passes):
        yield name, program


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
    if config.target() != "native":
        return None
    from .targets.native.kernels.updates import compiled_update  # with LLVM

    return compiled_update(rule, dtype, decays, scaled)


def make_gather():
    """Return a machine-code version of `gather_rows`."""
    from .targets.native.kernels.rows import gather_rows  # with LLVM

    return gather_rows()
