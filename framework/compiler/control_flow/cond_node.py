"""`Cond`: run one of several regions, depending on data."""

import math

import numpy as np

from tapewright.core.interpreters import active_interpreters

from ..tracing.graph import spec_of
from ..tracing.handles import zeros_of
from ..tracing.interpret import interpret
from .recording import emit
from .region_node import RegionNode, named_cotangents
from .regions import (
    any_traced,
    assigned_variables,
    close_regions,
    numbers_of_variables,
    trace_region,
)


class Cond(RegionNode):
    """Run the region that the first operand selects, on the other operands.

    A boolean selects the first or the second region; an integer selects the region at
    that index, or the last region if it is out of range.
    """

    OPERANDS, RESULTS = ("choice", "constant"), ("yielded",)
    GROUPS = ((("constant",), ("yielded",)),)
    TOKENS = "yielded", "constant"
    SETTINGS = "title", "of_variables"
    runs_one_region = True
    __slots__ = ()

    def __init__(self, regions, of_variables=(), title="cond", line=None):
        specs = [spec_of(x) for x in regions[0].outputs]
        super().__init__(regions, specs, title, of_variables, line)

    def counts(self):
        region = self.regions[0]
        sizes = {"constant": len(region.inputs), "yielded": len(region.outputs)}
        return {"choice": 1, **sizes}

    def check_regions(self):
        super().check_regions()
        shape, dtype = spec_of(self.inputs[0])
        if dtype.kind not in "biu" or math.prod(shape) != 1:
            raise ValueError(f"{self.name}: one number must choose the region")

    def number(self, choice):
        """Return the number of the region for a value of the first operand."""
        if choice.dtype.kind == "b":
            return 0 if choice else 1
        last, number = len(self.regions) - 1, int(choice)
        return number if 0 <= number < last else last

    def runner(self, executables):
        number = self.number

        def cond(choice, *arrays):
            return executables[number(choice)].run(arrays)

        return cond

    def is_traced(self, operands):
        return any_traced(operands[:1])

    def run(self, operands):
        choice = operands[0]  # which raises if it stands for many values
        choice = np.asarray(
            bool(choice) if choice.dtype.name == "bool" else int(choice)
        )
        region = self.regions[self.number(choice)]
        return tuple(interpret(region, operands[1:]))

    def gradient(self, operands, results, cotangents, wanted):
        """Emit a `Cond` of the gradients of the regions."""
        choice = operands.pop(("choice", 0))
        known = operands | named_cotangents(cotangents)

        def gradient_of(number):
            def function(*tensors):
                gradients, _ = self.pull_back(number, dict(zip(known, tensors)), wanted)
                return list(gradients.values())

            return function

        functions = [gradient_of(number) for number in range(len(self.regions))]
        return branch(f"{self.title}_gradient", choice, functions, known.values())


def branch(title, choice, functions, operands=(), check=None):
    """Emit a `Cond` that runs the function at index ``choice`` on ``operands``.

    Each function returns a list of tensors or None; ``check(results)`` converts these
    lists or rejects them. A None in one list becomes zeros if another list has a tensor
    there. The result is such a list.
    """
    outside = active_interpreters()
    specs = [spec_of(x) for x in operands]
    tracers = [
        trace_region(f"{title}_{i}", function, specs, outside)
        for i, function in enumerate(functions)
    ]
    results = [t.results for t in tracers]
    results = results if check is None else check(results)
    columns = list(zip(*results))
    present = [
        i for i, column in enumerate(columns) if any(x is not None for x in column)
    ]
    variables = assigned_variables(tracers)
    leading = [list(t.graph.inputs) for t in tracers]
    for tracer, row in zip(tracers, results):
        yielded = [
            _zeros_like(columns[i]) if row[i] is None else row[i] for i in present
        ]
        yielded += [tracer.final_value(v) for v in variables]
        tracer.graph.outputs = [tracer.value_of(x) for x in yielded]
    captured = close_regions(tracers, leading)
    node = Cond([t.graph for t in tracers], numbers_of_variables(tracers), title)
    outputs = emit(node, [choice, *operands, *captured])
    for variable, value in zip(variables, outputs[len(present) :]):
        variable.assign(value)
    by_index = dict(zip(present, outputs))
    return [by_index.get(i) for i in range(len(columns))]


def _zeros_like(column):
    """Return zeros like the first tensor of a list."""
    return zeros_of(spec_of(next(x for x in column if x is not None)))
