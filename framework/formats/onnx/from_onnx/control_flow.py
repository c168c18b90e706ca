"""Branches and loops: the bodies are graphs, which see the values around them.

Outside traces they are Python's. In a trace, a loop with a known number of steps is one
over rows, a loop with a condition a `while_loop`. If the number of rows of a result
depends on values, the function runs eagerly.
"""

from __future__ import annotations

import math
from collections import ChainMap

from tapewright.compiler.control_flow.cond import cond
from tapewright.compiler.control_flow.map_fn import carry_along
from tapewright.compiler.control_flow.while_loop import while_loop
from tapewright.core.interpreters import active_tracer
from tapewright.core.shapes.symbolic_dim import NeedsValue, is_symbolic
from tapewright.core.tensor import convert_to_tensor
from tapewright.ops.array.creation import range as arange
from tapewright.ops.array.joining import reverse, stack
from tapewright.ops.array.shape import reshape, transpose
from tapewright.ops.math.comparison import less, logical_and

from .static import dims, known, number

# The most steps of a loop that are copied into a trace; shapes may change in them.
_UNROLLED = 16
# The most steps for which a condition is computed while tracing.
_COUNTED = 10_000


def _if(condition, then_branch, else_branch):
    if known(condition) is not None:
        return then_branch() if number(condition) else else_branch()
    return cond(reshape(condition, ()), then_branch, else_branch)


def _loop(trips=None, go=None, *state, body):
    """Run ``body(i, go, *state)``, which returns the next ``go``, the state and rows."""
    go = convert_to_tensor(True) if go is None else go
    limit = math.inf if trips is None else known(trips)
    limit = limit if trips is None or limit is None else limit.item()
    if active_tracer() is None:
        return _run(limit if number(go) else 0, state, body)
    count = _number_of_steps(limit, go, state, body)
    if count is not None:
        small = not is_symbolic(count) and count <= _UNROLLED
        return _run(count, state, body) if small else _counted(count, state, body)
    if len(body.graph.outputs) > 1 + len(state):
        raise NeedsValue("the number of rows that a Loop of the ONNX graph returns "
                         "depends on values")  # fmt: skip
    return _while(trips, go, state, body)


def _number_of_steps(limit, go, state, body):
    """Return the number of steps of a loop, a number or a formula, or None.

    It is known if the condition is computed from known numbers, such as a counter: then
    that part of the body runs now, alone.
    """
    if limit is None or known(go) is None:
        return None
    if not number(go):
        return 0
    graph, names, steps = body.graph, *body.graph.behind_the_first_output()
    before = {n: x for n, x in zip(graph.inputs[2:], state) if n in names}
    around = [body.scope[n] for n in names if n in body.scope]
    if any([step.graphs for step in steps]) or any(
        [known(x) is None for x in (*before.values(), *around)]
    ):
        return None
    after = dict(zip(graph.inputs[2:], graph.outputs[1:]))
    i, changes = 0, bool(before) or graph.inputs[0] in names
    while i < limit:
        number_of_step = convert_to_tensor(i, "int64")
        scope = ChainMap({graph.inputs[0]: number_of_step, graph.inputs[1]: go, **before},
                         body.scope)  # fmt: skip
        scope.update({n: convert_to_tensor(x) for n, x in graph.constants.items()})
        for step in steps:
            step.run(scope)
        again, i = bool(number(scope[graph.outputs[0]])), i + 1
        if not again:
            return i
        if not changes:
            return None if limit == math.inf else limit
        if i > _COUNTED:
            return None
        before = {n: scope[after[n]] for n in before}
    return limit


def _run(limit, state, body):
    """Run the loop in Python for at most so many steps; its condition must be known."""
    i, go, rows = 0, True, [[] for _ in body.graph.outputs[1 + len(state) :]]
    while go and i < limit:
        step = convert_to_tensor(i, "int64"), convert_to_tensor(True)
        again, *outputs = body(*step, *state)
        i = i + 1
        go = i < limit and bool(number(again))
        state, results = outputs[: len(state)], outputs[len(state) :]
        for each, result in zip(rows, results):
            each.append(result)
    if rows and not i:
        raise ValueError("the loop has no steps: the shapes of its rows are unknown")
    return (*state, *map(stack, rows))


def _counted(limit, state, body):
    def step(state, i):
        _, *outputs = body(i, convert_to_tensor(True), *state)
        return tuple(outputs[: len(state)]), tuple(outputs[len(state) :])

    last, rows = carry_along(step, tuple(state), arange(limit, dtype="int64"))
    return (*last, *rows)


def _while(trips, go, state, body):
    def goes(i, go, *state):
        go = reshape(go, ())
        return go if trips is None else logical_and(less(i, reshape(trips, ())), go)

    def step(i, go, *state):
        return i + 1, *body(i, go, *state)

    go = convert_to_tensor(True) if go is None else go
    start = convert_to_tensor(0, "int64")
    return tuple(while_loop(goes, step, (start, go, *state))[2:])


def _scan(
    *values, body, num_scan_inputs, scan_input_axes=None, scan_input_directions=None,
    scan_output_axes=None, scan_output_directions=None,
):  # fmt: skip
    """Run ``body(*state, *rows)`` along an axis of each of the last inputs."""
    count = len(values) - num_scan_inputs
    state, inputs = values[:count], values[count:]
    outputs = len(body.graph.outputs) - count
    rows = [_in_front(x, axis, backwards) for x, axis, backwards in zip(
        inputs, scan_input_axes or [0] * num_scan_inputs,
        scan_input_directions or [0] * num_scan_inputs)]  # fmt: skip

    def step(state, rows):
        results = body(*state, *rows)
        return tuple(results[:count]), tuple(results[count:])

    last, results = carry_along(step, tuple(state), tuple(rows))
    return (*last, *[_behind(x, axis, backwards) for x, axis, backwards in zip(
        results, scan_output_axes or [0] * outputs,
        scan_output_directions or [0] * outputs)])  # fmt: skip


def _in_front(x, axis, backwards):
    """Return ``x`` with an axis moved to the front, and reversed if it runs backwards."""
    rank = len(dims(x))
    axis = axis % rank
    if axis:
        x = transpose(x, (axis, *[a for a in range(rank) if a != axis]))
    return reverse(x, [0]) if backwards else x


def _behind(x, axis, backwards):
    x, rank = reverse(x, [0]) if backwards else x, len(dims(x))
    axis = axis % rank
    return transpose(x, (*range(1, axis + 1), 0, *range(axis + 1, rank))) if axis else x


OPS = {"If": _if, "Loop": _loop, "Scan": {9: _scan}}
