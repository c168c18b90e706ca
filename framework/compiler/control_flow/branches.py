"""`Cond`: one of several branches, which depends on data."""

import numpy as np

from tapewright.core.interpreters import active_interpreters
from tapewright.ops.array.creation import zeros

from ..tracing.binding import now_bound
from ..tracing.graph import Value
from ..tracing.interpret import interpret
from .narrowing import narrowed_cond
from .records import place, pulled_back
from .regions import (
    ControlNode,
    Replay,
    close,
    is_seen,
    numbers_of_variables,
    settle,
    spec_of,
    split_effects,
    trace_part,
)

__all__ = ["Cond", "branch"]


class Cond(ControlNode):
    """Runs the graph that its first input picks, on the others.

    A boolean picks the first graph or the second; a number the graph of that number, the
    last one if there is none. ``of_variables``: see `records.pulled_back`.
    """

    __slots__ = ("of_variables", "title")

    def __init__(self, graphs, of_variables=(), title="cond", line=None):
        specs = [spec_of(x) for x in graphs[0].outputs]
        super().__init__(graphs, specs, line)
        self.of_variables, self.title = of_variables, title

    @property
    def name(self):
        return self.title

    def number(self, choice):
        """The number of the graph for a value of the first input."""
        if choice.dtype.kind == "b":
            return 0 if choice else 1
        last, number = len(self.graphs) - 1, int(choice)
        return number if 0 <= number < last else last

    def runner(self):
        replays = [Replay(graph) for graph in self.graphs]
        number = self.number

        def cond(choice, *arrays):
            return replays[number(choice)](*arrays)

        return cond

    def interpret(self, args, env):
        if is_seen(args[:1]):
            return place(self.again(), args)
        choice = args[0]  # which raises if it stands for many values
        choice = np.asarray(
            bool(choice) if choice.dtype.name == "bool" else int(choice)
        )
        graph = self.graphs[self.number(choice)]
        return tuple(interpret(graph, args[1:]))

    narrowed = narrowed_cond

    def again(self):
        graphs = now_bound(self.graphs)
        return Cond(graphs, self.of_variables, self.title, self.line)

    # --- gradient

    def input_kinds(self):
        return ["b", *super().input_kinds()]

    def split(self):
        """As `split_effects`: for the node."""
        if not self.is_effect:
            return self.again(), [], self.again()
        parts = [split_effects(graph) for graph in self.graphs]
        specs = [spec for _, given, _ in parts for spec in given]
        full, pure, start = [], [], 0
        for graph, (whole, given, rest) in zip(self.graphs, parts):
            stop = start + len(given)
            own, count = whole.outputs[len(graph.outputs) :], len(graph.inputs)
            filled = [_zeros(spec) for spec in specs]
            filled[start:stop] = own
            full.append(
                whole.replaced(
                    whole.nodes, whole.outputs[: len(graph.outputs)] + filled
                )
            )
            inputs = [Value(*spec) for spec in specs]
            inputs[start:stop] = rest.inputs[count:]
            rest.inputs = [*graph.inputs, *inputs]
            pure.append(rest)
            start = stop
        full = Cond(full, self.of_variables, self.title, self.line)
        return full, specs, Cond(pure, self.of_variables, self.title, self.line)

    def recorded(self):
        full, _, pure = self.split()
        count = len(self.outputs)

        def gradient(inputs, outputs, cotangents, wanted):
            choice, *operands = inputs
            operands += outputs[count:]
            kept = [i for i, c in enumerate(cotangents[:count]) if c is not None]
            numbers, size = [i - 1 for i in wanted], len(operands)

            def back(graph):
                def function(*arguments):
                    given = [None] * count
                    for i, c in zip(kept, arguments[size:]):
                        given[i] = c
                    arguments = arguments[:size]
                    found, _ = pulled_back(
                        graph, arguments, numbers, given, pure.of_variables
                    )
                    return found

                return function

            operands += [cotangents[i] for i in kept]
            functions = [back(graph) for graph in pure.graphs]
            return branch(f"{self.title}_gradient", choice, functions, operands)

        return full, gradient


def branch(title, choice, functions, operands=(), check=None):
    """What the function that ``choice`` picks gives for ``operands``: tensors, or None.

    ``check(results)`` is given the list that each function returned, and may refuse them.
    None in one list becomes zeros if another has a tensor there.
    """
    outside = active_interpreters()
    specs = [spec_of(x) for x in operands]
    tracers = [
        trace_part(f"{title}_{i}", function, specs, outside)
        for i, function in enumerate(functions)
    ]
    results = [t.results for t in tracers]
    results = results if check is None else check(results)
    places = [
        i
        for i, column in enumerate(zip(*results))
        if any(x is not None for x in column)
    ]
    rows = [_filled([row[i] for i in places], results, places) for row in results]
    variables = settle(tracers)
    leading = [list(t.graph.inputs) for t in tracers]
    for tracer, row in zip(tracers, rows):
        values = [tracer.now(v) for v in variables]
        tracer.graph.outputs = [tracer.value_of(x) for x in (*row, *values)]
    captured = close(tracers, leading)
    node = Cond([t.graph for t in tracers], numbers_of_variables(tracers), title)
    outputs = place(node, [choice, *operands, *captured])
    for variable, value in zip(variables, outputs[len(places) :]):
        variable.assign(value)
    found = [None] * len(results[0])
    for i, out in zip(places, outputs):
        found[i] = out
    return found


def _filled(row, results, places):
    filled = []
    for x, i in zip(row, places):
        if x is None:
            x = _zeros(spec_of(next(r[i] for r in results if r[i] is not None)))
        filled.append(x)
    return filled


def _zeros(spec):
    return zeros(*spec)
