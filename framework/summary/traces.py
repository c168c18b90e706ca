"""`trace_on` and `trace_export`, for graphs and times, and `graph`."""

from __future__ import annotations

import os
import threading
import warnings
from os import PathLike
from typing import Any

from tapewright import profiler as profiling
from tapewright.compiler.function.concrete_function import ConcreteFunction
from tapewright.compiler.tracing.graph import Graph
from tapewright.core.interpreters import active_tracer
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.text import make_text
from tapewright.core.typing import TensorLike

from .graph_defs import graph_def, run_metadata
from .recording import default_writer, write_event


class _Trace:
    """The graphs of the traced functions that run, and an optional profile."""

    def __init__(self, graph, profiler, outdir):
        self.graphs = {}  # by identity, in the order of their first call
        self.only_graphs = graph and not profiler
        self.outdir = outdir
        self.profile = profiling.trace(table=False) if profiler else None
        if self.profile is not None:
            self.profile.__enter__()
        self.flat_call = ConcreteFunction.flat_call
        if graph or profiler:
            ConcreteFunction.flat_call = self.noting(self.flat_call)

    def noting(self, flat_call):
        graphs = self.graphs

        def noting_call(concrete, tensors):
            # A call inside of a trace is a part of its graph.
            if concrete.specializations is None and active_tracer() is None:
                graphs.setdefault(id(concrete.graph), concrete.graph)
            return flat_call(concrete, tensors)

        return noting_call

    def stop(self, outdir=None):
        """Stop recording; write the profile to a folder, or drop it for None."""
        ConcreteFunction.flat_call = self.flat_call
        if self.profile is not None:
            if outdir is not None:
                os.makedirs(outdir, exist_ok=True)
                self.profile.path = os.path.join(os.fspath(outdir), "trace.json")
            self.profile.__exit__(None, None, None)


_lock = threading.Lock()
_trace: _Trace | None = None  # the trace of the process that is on


def trace_on(
    graph: bool = True,
    profiler: bool = False,
    profiler_outdir: str | PathLike[str] | None = None,
) -> None:
    """Record the graphs of traced functions that run from now on, in all threads.

    `trace_export` writes them and ends the trace; `trace_off` drops them. A second
    trace, or a trace in a traced function, is not started; a warning is printed.

    Args:
        graph: If False, record no graphs unless ``profiler``.
        profiler: If True, also record times, like `profiler.trace`.
        profiler_outdir: Folder of the profile; `trace_export` accepts it as well.

    Raises:
        RuntimeError: If a `profiler.trace` is active.

    Example:
        >>> tw.summary.trace_on()
        >>> tw.summary.trace_off()
    """
    global _trace
    if active_tracer() is not None:
        warnings.warn("summary.trace_on: ignored in a traced function", stacklevel=2)
        return
    with _lock:
        if _trace is not None:
            warnings.warn(
                "summary.trace_on: ignored, as a trace is already active", stacklevel=2
            )
            return
        _trace = _Trace(graph, profiler, profiler_outdir)


def trace_export(
    name: str,
    step: TensorLike | None = None,
    profiler_outdir: str | PathLike[str] | None = None,
) -> None:
    """End the trace of `trace_on`; write its graphs for TensorBoard, and its profile.

    The graphs are written to the default writer, if there is one: the dashboard
    "Graphs" lists them under the tag. The profile is ``trace.json`` in its folder, for
    Perfetto or ``chrome://tracing``.

    Args:
        name: Tag of the graphs, prefixed by the enclosing `name_scope`.
        step: Integer of rank 0, or None for the default step, as in `scalar`.
        profiler_outdir: Folder of the profile if it was not passed to `trace_on`.

    Raises:
        ValueError: If no trace is active, or there is no step.
    """
    global _trace
    if active_tracer() is not None:
        warnings.warn(
            "summary.trace_export: ignored in a traced function", stacklevel=2
        )
        return
    with _lock:
        trace = _trace
        if trace is None:
            raise ValueError(
                "summary.trace_export: no trace is active; call trace_on first"
            )
        plugin = (
            "graph_run_metadata_graph" if trace.only_graphs else "graph_run_metadata"
        )

        def write(file, tag, step):
            texts = make_text([run_metadata(trace.graphs.values())], ())
            file.add_strings(tag, texts, step, plugin, b"1")

        write_event("trace_export", name, step, write)
        _trace = None
    outdir = profiler_outdir if trace.outdir is None else trace.outdir
    if trace.profile is not None and outdir is None:
        warnings.warn(
            "summary.trace_export: the profile is dropped; pass profiler_outdir here "
            "or to trace_on",
            stacklevel=2,
        )
    trace.stop(outdir)


def trace_off() -> None:
    """End the trace of `trace_on`, if any, and drop its graphs and times."""
    global _trace
    with _lock:
        trace, _trace = _trace, None
    if trace is not None:
        trace.stop()


def graph(graph_data: Any) -> Tensor:
    """Write the graph of a traced function for TensorBoard.

    Args:
        graph_data: Graph, such as ``f.get_concrete_function(x).graph``.

    Returns:
        True if the graph was written; False without a default writer.

    Raises:
        TypeError: If ``graph_data`` is not a graph.
        ValueError: In a traced function.
    """
    if active_tracer() is not None:
        raise ValueError("summary.graph: it must be called outside of traced functions")
    if not isinstance(graph_data, Graph):
        raise TypeError(
            "summary.graph: graph_data must be the graph of a traced function, "
            f"f.get_concrete_function(x).graph, got {type(graph_data).__name__}"
        )
    writer = default_writer()
    if writer is not None:
        writer._open_file().add_graph(graph_def(graph_data))
    return convert_to_tensor(writer is not None)
