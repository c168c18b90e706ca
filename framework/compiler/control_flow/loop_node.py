"""`LoopNode`: a region that runs many times, and its gradient, which is another loop.

The body receives values carried from step to step, a row of each sliced operand, and
constants; it yields the carried values, terms of sums, and rows of stacks. The gradient
runs through the steps from last to first and exchanges the groups:

    operand    its gradient is              result     its cotangent goes in as
    carried    carried, from step to step   carried    carried
    sliced     stacked                      stacked    sliced
    constant   summed                       summed     constant
"""

import itertools
import math
from typing import Any, NamedTuple

import numpy as np

from tapewright.core.dtypes import kind_of
from tapewright.core.errors import TracingError
from tapewright.core.hardware.devices import current_module, is_array
from tapewright.core.interpreters import (
    active_interpreters,
    active_tracer,
    use_interpreters,
)
from tapewright.core.tensor import Tensor, convert_to_tensor, new_tensor
from tapewright.ops.array.conversion import stop_gradient
from tapewright.ops.array.joining import concat, stack
from tapewright.ops.array.shape import expand_dims

from ..tracing.graph import Value, spec_of
from ..tracing.graph_verifier import check_fits
from ..tracing.handles import HANDLE, HANDLE_SPEC, list_items, list_value, zeros_of
from ..tracing.interpret import interpret
from ..tracing.tracer import SymbolicTensor
from .loop_source import loop_function
from .recording import emit, is_list
from .region_node import RegionNode, named_cotangents, region_program
from .regions import (
    any_traced,
    assigned_variables,
    close_regions,
    numbers_of_variables,
    trace_region,
)
from .row_updates import writing_body

# The spec of a list value: arrays of a loop whose length is not known before.


class LoopNode(RegionNode):
    """Run the first region, the body, for each step, while the second region yields true.

    The number of steps is the operand ``count`` (if ``counted``), else ``length``, else
    the number of rows of the first sliced operand, or determined by the test; then it
    is a result. ``capacity`` is the size of stacks; None makes them lists in an array
    of rank 0. ``variables`` are those whose values are the last carried values.
    """

    OPERANDS = "count", "carried", "sliced", "constant"
    RESULTS = "carried", "summed", "steps", "stacked"
    GROUPS = (
        (("carried", "sliced", "constant"), ("carried", "summed", "stacked")),  # body
        (("carried", "constant"), ("condition",)),  # test
    )
    TOKENS, ROWS = ("stacked", "sliced"), ("stacked", "sliced")
    COUNTED = "carried", "sliced", "summed", "stacked"
    SETTINGS = (*COUNTED, "counted", "length", "capacity", "maximum", "reverse",
                "variables", "of_variables", "title")  # fmt: skip
    __slots__ = SETTINGS[:-2]

    def __init__(self, regions, line=None, *, title, of_variables, **settings):
        for name in self.__slots__:
            setattr(self, name, settings[name])
        outputs = [spec_of(x) for x in regions[0].outputs]
        fixed = self.carried + self.summed
        specs = outputs[:fixed]
        if len(regions) > 1:
            specs.append(((), np.dtype(np.int32)))
        for shape, dtype in outputs[fixed:]:
            is_list = self.capacity is None or dtype == HANDLE
            specs.append(HANDLE_SPEC if is_list else ((self.capacity, *shape), dtype))
        super().__init__(regions, specs, title, of_variables, line)

    @property
    def tested(self):
        return len(self.regions) > 1

    def counts(self):
        constants = len(self.regions[0].inputs) - self.carried - self.sliced
        sizes = {name: getattr(self, name) for name in self.COUNTED}
        sizes |= {"count": int(self.counted), "constant": constants}
        return sizes | {"steps": int(self.tested), "condition": 1}

    def pinned(self):
        """Return variables, the condition, and the ports that set the number of steps."""
        start = self.carried - len(self.variables)
        ports = {("carried", i) for i in range(start, self.carried)}
        ports |= {("condition", i) for i in range(self.tested)}
        if self.sliced and not self.tested and not self.counted and self.length is None:
            ports.add(("sliced", 0))
        return ports

    def check_regions(self):
        super().check_regions()
        if len(self.regions) > 2:
            raise ValueError(f"{self.name}: a loop has a body and one test at most")
        whole = [spec_of(x) for x in self.inputs[: self.counted]]
        if any([shape or dtype.kind not in "iu" for shape, dtype in whole]):
            raise ValueError(f"{self.name}: the count must be a whole number")
        for region in self.regions[1:]:
            if math.prod(spec_of(region.outputs[0])[0]) != 1:
                raise ValueError(f"{self.name}: the test must yield one value")
        start = self.carried - len(self.variables)
        carried = self.regions[0].inputs[max(start, 0) : self.carried]
        for variable, value in zip(self.variables, carried, strict=True):
            check_fits(variable, value)

    def lowered(self):
        from ..pipeline import optimize

        if current_module() is not np:  # rows of a GPU are not written to one by one
            programs = [region_program(region) for region in self.regions]
            return programs, {"owned": (), "sparse": ()}
        body, owned, sparse = writing_body(self, optimize(self.regions[0]))
        tests = map(region_program, self.regions[1:])
        programs = [region_program(body, owned), *tests]
        return programs, {"owned": owned, "sparse": sparse}

    def runner(self, executables, owned, sparse):
        return loop_function(self, executables, owned, sparse)

    # --- step by step, through ops

    def is_traced(self, operands):
        return any_traced(operands) or (self.is_effect and active_tracer() is not None)

    def run(self, operands):
        count, carried, sliced, constants = self.grouped(self.OPERANDS, operands)
        sums, rows = [None] * self.summed, {}
        numbers = self._numbers(count, sliced)
        rows_of = self._rows(sliced)
        steps = 0
        for number in numbers:
            if self.tested and not self._goes_on(carried, constants):
                break
            if steps:
                carried = self._through_variables(carried)
            slices = [x[number] for x in rows_of]
            outputs = interpret(self.regions[0], [*carried, *slices, *constants])
            carried, terms, rows[number] = self.grouped(self.GROUPS[0][1], outputs)
            sums = [x if s is None else s + x for s, x in zip(sums, terms)]
            steps += 1
        return self._gathered(carried, sums, rows, steps)

    def _numbers(self, count, sliced):
        if self.tested:
            limit = self.maximum
            return itertools.count() if limit is None else range(limit)
        if count:
            count = int(count[0])
        elif self.length is not None:
            count = self.length
        else:
            count = len(
                list_items(sliced[0].array, *spec_of(self.regions[0].inputs[0]))
            )
        count = range(count)
        return reversed(count) if self.reverse else count

    def _rows(self, sliced):
        """Return, for each sliced operand, an object that returns the tensor of a step."""
        values = self.regions[0].inputs[self.carried :]
        return [
            _Items(list_items(x.array, *spec_of(v))) if is_list(x) else x
            for x, v in zip(sliced, values)
        ]

    def _goes_on(self, carried, constants):
        return bool(interpret(self.regions[1], [*carried, *constants])[0])

    def _through_variables(self, carried):
        """Assign variables and read them again, as separate sources for a tape."""
        start = self.carried - len(self.variables)
        carried = list(carried)
        for i, variable in enumerate(self.variables, start):
            variable.assign(carried[i])
            carried[i] = variable._tw_read_uncast()
        return carried

    def _gathered(self, carried, sums, rows, steps):
        _, terms, values = self.grouped(self.GROUPS[0][1], self.regions[0].outputs)
        sums = [zeros_of(spec_of(v)) if x is None else x for x, v in zip(sums, terms)]
        count = [convert_to_tensor(np.int32(steps))] if self.tested else []
        rows = [rows[number] for number in sorted(rows)]
        stacks = [
            self._stack([row[i] for row in rows], value)
            for i, value in enumerate(values)
        ]
        return (*carried, *sums, *count, *stacks)

    def _stack(self, column, value):
        if self.capacity is None or value.dtype == HANDLE:
            return new_tensor(list_value(column))
        shape, dtype = spec_of(value)
        missing = self.capacity - len(column)
        parts = [stack(column)] if column else []
        if missing or not parts:
            parts.append(zeros_of(((missing, *shape), dtype)))
        return parts[0] if len(parts) == 1 else concat(parts, 0)

    # --- gradient

    def sum_of_lists(self, i, x, y):
        """Add two lists of arrays for input ``i``, item by item."""
        spec = spec_of(self.regions[0].inputs[i - self.counted])

        def body(state, slices, constants):
            return [], [], [slices[0] + slices[1]]

        return loop("sum", body, [], [x, y], row_specs=[spec, spec]).stacked[0]

    def saving(self):
        """Return the node that also returns the state before each step."""
        body = self.regions[0]
        states = body.inputs[: self.carried]
        body = body.replaced(body.nodes, [*body.outputs, *states])
        stacked = self.stacked + len(states)
        return self.copy((body, *self.regions[1:]), stacked=stacked)

    def gradient(self, operands, results, cotangents, wanted):
        """Emit a loop from the last step to the first, which recomputes each step."""
        arguments, yields = self.region_ports()[0]
        start = self.carried - len(self.variables)
        carried = [("carried", i) for i in range(self.carried)]
        # The value of a variable is a source of its own in each step.
        carries = [
            port for port in carried[:start] if kind_of(arguments[port].dtype) in "fc"
        ]
        sums = [p for p in wanted if p[0] == "constant" or p in carried[start:]]
        stacks = [port for port in wanted if port[0] == "sliced"]
        sources = list(dict.fromkeys([*carries, *sums, *stacks]))
        first = self.stacked - self.carried  # of the states that were saved
        saved = {port: results["stacked", first + port[1]] for port in carried}
        after = self._states_after(results, saved, yields, carries)
        rows = saved | _of("sliced", operands)
        rows |= named_cotangents(_of("stacked", cotangents)) | after
        constants = _of("constant", operands) | named_cotangents(
            _of("summed", cotangents)
        )
        state = [
            cotangents[p] if p in cotangents else zeros_of(spec_of(operands[p]))
            for p in carries
        ]

        def body(state, slices, others):
            known = named_cotangents(zip(carries, state))
            known |= zip([*rows, *constants], [*slices, *others])
            gradients, outputs = self.pull_back(0, known, sources)
            for name in after:
                _use(known[name], outputs[name[1]])
            state = [
                zeros_of(spec_of(known[port]))
                if gradients[port] is None
                else gradients[port]
                for port in carries
            ]
            return state, [gradients[p] for p in sums], [gradients[p] for p in stacks]

        specs = {port: spec_of(value) for port, value in arguments.items()}
        specs |= named_cotangents([(p, spec_of(value)) for p, value in yields.items()])
        specs |= {name: specs[name[1]] for name in after}
        count = results.get(("steps", 0), operands.get(("count", 0)))
        backward = loop(
            f"{self.title}_gradient",
            body,
            state,
            rows.values(),
            constants.values(),
            row_specs=[specs[name] for name in rows],
            count=count if self.length is None else None,
            length=self.length,
            capacity=self.capacity,
            reverse=not self.reverse,
        )
        gradients = dict(zip(carries, backward.carried))
        gradients |= zip(sums, backward.summed)
        gradients |= zip(stacks, backward.stacked)
        return [gradients[port] for port in wanted]

    def _states_after(self, results, saved, yields, ports):
        """Return the stacked carried values after each step, if the length is known."""
        if self.length is None:
            return {}
        after = {}
        for port in ports:
            same = [
                p for p, x in yields.items() if x is yields[port] and p[0] == "stacked"
            ]
            if same:
                after["after", port] = results[same[0]]
                continue
            last, states = expand_dims(results[port], 0), saved[port]
            ends = [last, states[:-1]] if self.reverse else [states[1:], last]
            after["after", port] = concat(ends, 0)
        return after


def _of(group, named):
    """Select the ports of one group."""
    return {port: x for port, x in named.items() if port[0] == group}


def _use(known, tensor):
    """Make the nodes of the trace use a known value instead of a recomputed one.

    The nodes that recompute it are then dead, unless something else uses them.
    """
    if type(tensor) is not SymbolicTensor or tensor.tracer is not known.tracer:
        return
    old, new = tensor.symbol, known.symbol
    for node in known.tracer.graph.nodes:
        if any([x is old for x in node.inputs]):
            node.inputs = tuple([new if x is old else x for x in node.inputs])


# ----------------------------------------------------------------------- tracing one


class Results(NamedTuple):
    """Results of a loop by group; the number of steps is None without a test."""

    carried: list
    summed: list
    steps: Any
    stacked: list


def loop(title, body, carried, sliced=(), constants=(), *, row_specs=None, **settings):
    """Emit a `LoopNode`: ``body(carried, slices, constants)`` for each step.

    The body returns lists of carried values, terms of sums and rows of stacks, where
    None stays None. The result is a `Results`. For ``settings``, see `LoopTrace.node`.
    """
    trace = LoopTrace(title, body, carried, sliced, constants, row_specs=row_specs)
    return trace.emit(*trace.node(**settings))


class LoopTrace:
    """The traced regions of a loop, which can be inspected before the node is emitted.

    ``test(carried)`` returns whether there is another step. ``row_specs`` are the
    shapes and dtypes of the rows of sliced operands that may be lists.
    """

    def __init__(self, title, body, carried, sliced=(), constants=(), *,
                 test=None, row_specs=None):  # fmt: skip
        self.title, self.outside = title, active_interpreters()
        self.carried, self.sliced = list(carried), list(sliced)
        self.constants = list(constants)
        if row_specs is None:
            row_specs = [(spec_of(x)[0][1:], x.array.dtype) for x in self.sliced]
        specs = [spec_of(x) for x in self.carried]
        start, stop = len(specs), len(specs) + len(row_specs)

        def step(*args):
            return body(list(args[:start]), list(args[start:stop]), list(args[stop:]))

        def go(*args):
            return test(list(args))

        self.tests = []
        if test is not None:
            self.tests.append(trace_region(f"{title}_test", go, specs, self.outside))
        specs += [*row_specs, *[spec_of(x) for x in self.constants]]
        self.body = trace_region(f"{title}_body", step, specs, self.outside)

    def node(
        self, *, count=None, length=None, capacity=None, maximum=None, reverse=False
    ):
        """Return the `LoopNode` and its inputs; for the settings and ``count``, see `LoopNode`.

        With a ``length``, the test is omitted.
        """
        tests = self.tests if length is None else []
        tracers = [self.body, *tests]
        self.variables, first = self._carried_variables(tracers)
        leading = self._leading(tests)
        state, self.summed, self.stacked = self.body.results
        sums = [x for x in self.summed if x is not None]
        stacks = [x for x in self.stacked if x is not None]
        values = [self.body.final_value(v) for v in self.variables]
        is_scoped = self.body.in_scope  # then no step may assign to a variable
        if is_scoped:
            with use_interpreters((self.body,)):
                values = [stop_gradient(value) for value in values]
        outputs = [*state, *values, *sums, *stacks]
        self.body.graph.outputs = [self.body.value_of(x) for x in outputs]
        for test in tests:
            test.graph.outputs = [test.value_of(test.results)]
        captured = close_regions(tracers, leading)
        node = LoopNode(
            [tracer.graph for tracer in tracers],
            carried=len(state) + len(values),
            sliced=len(self.sliced),
            summed=len(sums),
            stacked=len(stacks),
            counted=count is not None,
            length=length,
            capacity=capacity if length is None else length,
            maximum=maximum,
            reverse=reverse,
            variables=[] if is_scoped else self.variables,
            of_variables=numbers_of_variables(tracers[:1]),
            title=self.title,
        )
        head = [] if count is None else [count]
        operands = [*self.carried, *first, *self.sliced, *self.constants]
        return node, [*head, *operands, *captured]

    def emit(self, node, inputs):
        """Emit the node; return `Results`."""
        carried, *others = node.grouped(node.RESULTS, emit(node, inputs))
        summed, steps, stacked = map(iter, others)
        count = len(self.carried)
        for variable, value in zip(self.variables, carried[count:]):
            variable.assign(value)
        return Results(
            carried[:count],
            [None if x is None else next(summed) for x in self.summed],
            next(steps, None),
            [None if x is None else next(stacked) for x in self.stacked],
        )

    def _carried_variables(self, tracers):
        """Return the variables that the body assigns, and their values before the loop."""
        variables = assigned_variables(tracers)
        for tracer in tracers[1:]:
            for variable in tracer.assigned.values():
                raise TracingError(
                    f"'{tracer.graph.name}': the variable '{variable.path}' is assigned "
                    "in the condition of a loop: assign it in the body"
                )
        with use_interpreters(self.outside):
            return variables, [v._tw_read_uncast() for v in variables]

    def _leading(self, tests):
        """Return the arguments of each region that precede its captures."""
        inputs, count = list(self.body.graph.inputs), len(self.carried)
        own = [_as_input(self.body, v) for v in self.variables]
        leading = [[*inputs[:count], *own, *inputs[count:]]]
        for test in tests:
            own = [_as_input(test, v) for v in self.variables]
            unused = [Value(*spec_of(x)) for x in self.constants]
            leading.append([*test.graph.inputs, *own, *unused])
        return leading


def _as_input(tracer, variable):
    """Remove a variable from the captures of a region; return its value there."""
    _, value = tracer.of_variables.pop(id(variable), (None, None))
    if value is None:
        return Value(tuple(variable._array.shape), variable._array.dtype)
    del tracer.graph.captures[value]
    return value


class _Items:
    """The items of a list: tensors, or arrays if a replay has created the list."""

    def __init__(self, items):
        self.items = items

    def __getitem__(self, number):
        item = self.items[number]
        if isinstance(item, Tensor):
            return item
        return new_tensor(item if is_array(item) else np.asarray(item))
