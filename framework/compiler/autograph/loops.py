"""``while`` and ``for``: Python loops, unless they depend on traced tensors."""

from __future__ import annotations

import functools
from typing import Any

from tapewright.core.interpreters import active_tracer
from tapewright.core.tensor import is_tensor

from .branches import if_stmt
from .conditions import is_traced
from .expressions import and_, not_
from .iteration import Rows, as_iteration
from .state import State
from .traced_loop import TracedLoop, loop_options


def set_loop_options(
    parallel_iterations: int | None = None,
    swap_memory: bool | None = None,
    maximum_iterations: int | None = None,
    shape_invariants: Any = None,
) -> None:
    """Set options of the traced loop in whose body it is called.

    Loops that Python runs have no options.

    Args:
        parallel_iterations: Ignored.
        swap_memory: Ignored.
        maximum_iterations: Maximum number of steps.
        shape_invariants: List of pairs of a variable and its shape, whose unknown sizes
            may change from step to step; the function then runs eagerly.
    """
    options = loop_options()
    if options is not None:
        options["most"] = maximum_iterations
        options["invariants"] = shape_invariants


def while_stmt(test, body, names, needed, attributes, reachable, stop):
    """Run ``while test(): body()``; emit a `LoopNode` node if the test is a traced tensor.

    ``names`` are the variables that a further step or the following code reads,
    ``needed`` the variables that the following code reads, ``stop`` the flags that end
    the loop. For ``attributes`` and ``reachable``, see `State`.
    """
    state = State((test, body), names, attributes, reachable)
    goes_on = functools.partial(_goes_on, state, stop, test)
    tracer, tried = active_tracer(), False
    while True:
        mark = None if tracer is None else tracer.mark()
        go = goes_on()
        if is_traced(go):
            tracer.roll_back(mark)  # the loop evaluates it again
            TracedLoop(state, needed, body, goes_on).emit()
            return
        if not go:
            return
        if tracer is not None and is_tensor(go) and not tried:
            tried = True
            if TracedLoop(state, needed, body, goes_on, is_known=True).emit_if_traced():
                return
        body()


def for_stmt(iterable, body, names, needed, attributes, reachable, stop):
    """Run ``for item in iterable: body(item)``; emit a `LoopNode` node for traced tensors.

    For the arguments, see `while_stmt`.
    """
    state = State((body,), names, attributes, reachable)
    iteration = None if active_tracer() is None else as_iteration(iterable)
    goes_on = functools.partial(_goes_on, state, stop) if stop else None
    if iteration is not None:
        is_static = type(iteration) is Rows and iteration.is_static
        if type(iteration) is Rows and stop and not is_static:
            iteration = iteration.as_steps()
        loop = TracedLoop(state, needed, body, goes_on, iteration)
        if not is_static:
            loop.emit()
            return
        if not iteration.length or loop.emit_if_traced():
            return
        iterable = iteration
    for item in iterable:
        go = goes_on() if stop else True
        if is_traced(go):  # a step before has set a flag: each one asks for it
            step, skip = functools.partial(body, item), functools.partial(_skip, body)
            if_stmt(go, step, skip, names, needed, attributes, reachable)
        elif go:
            body(item)
        else:
            break


def _skip(body):
    """Do nothing, with the variables of a step."""


def _goes_on(state, stop, test=None):
    """Return whether no flag is set, and the test holds."""
    flags = [functools.partial(_is_unset, state, name) for name in stop]
    first, *others = flags if test is None else [*flags, test]
    return and_(first(), *others)


def _is_unset(state, name):
    return not_(state.value(name))
