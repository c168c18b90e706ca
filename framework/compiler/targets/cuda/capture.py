"""Captures of CUDA graphs, safe from interrupts: see `tapewright.core.state.commit`.

A stream that is still capturing would reject every call that waits for the device.
"""

from collections import deque
from functools import partial
from operator import call


def captured(stream, calls):
    """Return the graph of the work that ``calls``, functions without arguments, enqueue."""
    ends, graphs = [], []
    ending = map(call, ends)  # ends the capture once, if it has begun
    begin = stream.begin_capture, partial(ends.append, stream.end_capture)
    try:
        try:
            deque(map(call, (*begin, *calls)), 0)
        finally:
            graphs.extend(ending)
    finally:
        graphs.extend(ending)
    (graph,) = graphs
    return graph
