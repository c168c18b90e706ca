"""`while_loop`: a loop that depends on data.

Outside traced functions it is a Python loop. Inside, it is a `LoopNode` node; a few steps
are unrolled if the condition is known while tracing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tapewright.core.errors import TracingError
from tapewright.core.interpreters import (
    active_interpreters,
    active_tracer,
    use_interpreters,
)
from tapewright.core.nest import (
    assert_same_structure,
    flatten,
    map_structure,
    pack,
)
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import IntLike, TensorLike
from tapewright.ops.math.comparison import logical_and

from ..tracing.graph import Node, spec_of
from ..tracing.interpret import interpret
from ..tracing.tracer import fall_back
from .loop_node import LoopTrace
from .regions import any_traced, describe_tensor, trace_region, traced_or_none
from .tensor_array import (
    TensorArray,
    as_tensors,
    check_form,
    stop_gradients,
    with_common_elements,
)

# The most steps that are unrolled if the condition is known while tracing.
UNROLLED = 16


def while_loop(
    cond: Callable[..., TensorLike],
    body: Callable[..., Any],
    loop_vars: Sequence[Any],
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    maximum_iterations: IntLike | None = None,
    name: str | None = None,
) -> Any:
    """While loop: ``loop_vars = body(*loop_vars)`` while ``cond(*loop_vars)`` is true.

    In a traced function with a traced condition, the loop is one node, in which shapes
    and dtypes cannot change. Its gradient uses the state before each step and
    recomputes the step.

    Args:
        cond: Function of the loop variables that returns a boolean scalar.
        body: Function of the loop variables that returns their next values, in the same
            structure.
        loop_vars: List or tuple of tensors, nests of tensors, or `tw.TensorArray`.
        shape_invariants: Nest like ``loop_vars`` of shapes that the tensors must keep.
            An unknown size may change as long as Python runs the loop.
        parallel_iterations: Ignored.
        back_prop: If False, no gradient flows through the result.
        swap_memory: Ignored.
        maximum_iterations: Maximum number of steps, or None.

    Returns:
        The last values, in the structure of ``loop_vars``.

    Raises:
        TypeError: If a dtype changes.
        ValueError: If the structure or a shape changes.

    Example:
        >>> body = lambda i, x: (i + 1, x * 2.0)
        >>> tw.while_loop(lambda i, x: i < 3, body, [0, 1.0])[1].numpy()
        np.float32(8.0)
    """
    for argument, function in (("cond", cond), ("body", body)):
        if not callable(function):
            raise TypeError(
                f"while_loop: {argument} must be callable, got {type(function).__name__}"
            )
    if not isinstance(loop_vars, (list, tuple)) or not loop_vars:
        raise ValueError(
            "while_loop: loop_vars must be a list or tuple of at least one value, got "
            f"{loop_vars!r}"
        )
    steps = _While(cond, body, loop_vars, shape_invariants)
    if maximum_iterations is not None and any_traced([maximum_iterations]):
        results = _bounded(steps, convert_to_tensor(maximum_iterations))
    else:
        limit = None if maximum_iterations is None else int(maximum_iterations)
        results = steps.run(limit)
    return results if back_prop else stop_gradients(results)


def _bounded(steps, maximum):
    """Run the loop with an extra counter, for a bound that is traced."""

    def cond(i, rest):
        return logical_and(i < maximum, steps.cond(*rest))

    def body(i, rest):
        return i + 1, steps.step(rest)

    start = convert_to_tensor(0, dtype=maximum.dtype)
    counted = _While(cond, body, (start, steps.initial), None)
    return counted.run(None)[1]


class _While:
    """One call of `while_loop`."""

    def __init__(self, cond, body, loop_vars, invariants):
        self.cond, self.body = cond, body
        self.initial = as_tensors(loop_vars)
        self.shapes, self.unclear = None, False
        if invariants is not None:
            leaves = flatten(invariants)
            if len(leaves) != len(flatten(self.initial)):
                raise ValueError(
                    "while_loop: shape_invariants must have the structure of loop_vars"
                )
            self.shapes = [getattr(s, "shape", s) for s in leaves]

    def run(self, limit):
        """Return the last values after at most ``limit`` steps."""
        now, steps = self.initial, 0
        traced, counted = active_tracer() is not None, False
        while limit is None or steps < limit:
            rest = None if limit is None else limit - steps
            go = self.cond(*now)
            if traced and any_traced([go]):
                return self.emit_loop(now, rest)
            if not go:
                break
            if traced and any_traced(flatten(now, True)):
                if not counted:
                    counted, results = True, self.try_loop(now, rest)
                    if results is not None:
                        return results
                elif self.unclear and steps >= UNROLLED:
                    return self.emit_loop(now, rest)
            now = self.step(now)
            steps += 1
        return now if type(now) is type(self.initial) else pack(self.initial, now)

    def try_loop(self, now, limit):
        """Emit a `LoopNode` if it surely has many steps; return its last values, or None.

        Returns None also if the body cannot be traced because it needs values of loop
        variables.
        """
        self.unclear = False
        return traced_or_none(self._emit_if_long, now, limit)

    def _emit_if_long(self, now, limit):
        results = self.emit_loop(now, limit, UNROLLED)
        self.unclear = results is None
        return results

    def step(self, now):
        """Return the values after another step."""
        result = self.body(*now)
        if type(result) in (list, tuple) and len(result) == len(now):
            for x, y in zip(result, now):  # the common case is the quick one
                if type(x) is not Tensor or type(y) is not Tensor:
                    break
            else:
                return result
        if len(now) == 1 and not isinstance(result, (list, tuple)):
            result = [result]
        if type(result) is not type(now) and isinstance(result, (list, tuple)):
            result = pack(now, result) if len(result) == len(now) else result
        try:
            assert_same_structure(now, result, expand_composites=True)
        except ValueError:
            raise ValueError(
                "while_loop: body must return the structure of loop_vars, got\n"
                f"  loop_vars: {now!r}\n  body: {result!r}"
            ) from None
        return as_tensors(result, now)

    def emit_loop(self, now, limit, longer_than=None):
        """Emit a `LoopNode`; return its last values, or None if it may be too short."""
        now = self._with_known_elements(now)
        carried = flatten(now, True)

        def test(leaves):
            go = convert_to_tensor(self.cond(*pack(now, leaves, True)))
            if go.shape.num_elements() != 1:
                raise ValueError(
                    f"while_loop: cond must return one value, got shape {go.shape}"
                )
            return go

        def body(leaves, slices, constants):
            result = self.step(pack(now, leaves, True))
            for x, y in zip(flatten(now), flatten(result), strict=True):
                if isinstance(x, TensorArray):
                    check_form("while_loop", x, y)
            result = flatten(result, True)
            self._check(leaves, result, longer_than is not None)
            return result, [], []

        trace, length = LoopTrace("while_loop", body, carried, test=test), None
        if longer_than is not None:
            steps = known_length(trace.tests[0], trace.body, carried)
            if steps is not None and limit is not None:
                steps = min(steps, limit)
            if steps is None or steps <= longer_than:
                return None
            length = steps if steps < MANY else None
        node, inputs = trace.node(length=length, capacity=limit, maximum=limit)
        return pack(now, trace.emit(node, inputs).carried, True)

    def _with_known_elements(self, now):
        """Set each `TensorArray`'s shape from the elements that the body writes."""
        if all(x is not None for x in flatten(now, True)):
            return now
        specs = [spec_of(x) for x in flatten(now, True) if x is not None]

        def probe(*leaves):
            leaves = iter(leaves)
            own = [x if x is None else next(leaves) for x in flatten(now, True)]
            return self.step(pack(now, own, True))

        result = trace_region("while_loop", probe, specs, active_interpreters()).results
        now = map_structure(
            lambda *pair: with_common_elements("while_loop", pair)[0], now, result
        )
        if any([x is None for x in flatten(now, True)]):
            fall_back("while_loop: no step writes to a TensorArray of unknown elements")
        return now

    def _check(self, before, after, tentative):
        """Raise if a step changes a dtype or shape.

        Raises a `TracingError` if Python may run the loop.
        """
        for i, (x, y) in enumerate(zip(before, after)):
            if x.array.dtype != y.array.dtype:
                raise TracingError(
                    f"while_loop: loop variable {i} enters the loop with dtype "
                    f"{x.dtype.name}, but has {y.dtype.name} after one step: cast it"
                )
            if tuple(x.shape) == tuple(y.shape):
                continue
            if self.shapes is not None:
                raise TracingError(
                    f"while_loop: loop variable {i} changes from {describe_tensor(x)} to "
                    f"{describe_tensor(y)}. In a traced function, shapes may change only if "
                    "the condition is known while tracing: compute it from untraced "
                    "numbers"
                )
            raise (TracingError if tentative else ValueError)(
                f"while_loop: loop variable {i} enters the loop with shape {x.shape}, "
                f"but has shape {y.shape} after one step: shapes must not change"
            )


# --------------------------------------------------------------------- trip count

# Longer loops are not counted: they evaluate their condition in each replay.
MANY = 10_000


def known_length(test, body, carried):
    """Return the number of steps, at most `MANY`, or None if it depends on the trace.

    ``test`` and ``body`` are tracers that have traced both; ``carried`` are the tensors
    that the loop starts with.
    """
    states = [body.value_of(x) for x in body.results[0]]
    condition = test.value_of(test.results)
    number_of = {value: k for k, value in enumerate(body.graph.inputs[: len(carried)])}
    number_of |= {value: k for k, value in enumerate(test.graph.inputs)}
    known, constants, wanted = {}, {}, [(test, condition)]
    while wanted:
        tracer, value = wanted.pop()
        part = tracer.graph.ancestors([value])
        if any([type(node) is not Node for node in part.nodes]):
            return None
        for x in part.inputs:
            k = number_of.get(x)
            outside = tracer.graph.captures.get(x) if k is None else carried[k]
            if outside is None or any_traced([outside]):
                return None
            if k is None:
                constants[x] = outside
            elif k not in known:
                known[k] = outside
                wanted.append((body, states[k]))
    numbers = sorted(known)
    goes_on = _part(test.graph, numbers, [condition])
    after = _part(body.graph, numbers, [states[k] for k in numbers])
    return _count_steps(goes_on, after, [known[k] for k in numbers], constants)


def _part(graph, numbers, outputs):
    """Return the part of a graph that computes outputs from the inputs with these numbers."""
    part = graph.ancestors(outputs)
    part.inputs = [graph.inputs[k] for k in numbers]
    return part


def _count_steps(goes_on, after, state, constants):
    count = 0
    with use_interpreters(()):
        while count < MANY and bool(interpret(goes_on, state, dict(constants))[0]):
            state = interpret(after, state, dict(constants))
            count += 1
    return count
