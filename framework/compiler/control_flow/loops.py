"""`Loop`: a body that runs many times, and its gradient, which is another loop.

What goes in is carried from step to step, sliced (one row of it for each step), or the
same for all steps; what comes out is the last state, a sum over all steps, or a stack of
what each step gave. The gradient turns these into each other: that of what was carried is
carried back, that of slices is stacked, that of what was the same for all is a sum.
"""

import itertools

import numpy as np

from tapewright.core.errors import TracingError
from tapewright.core.interpreters import (
    active_interpreters,
    active_tracer,
    use_interpreters,
)
from tapewright.core.symbolic_shape import evaluated, sizes_in_use
from tapewright.core.tensor import Tensor, convert_to_tensor, new_tensor
from tapewright.ops.array.creation import zeros
from tapewright.ops.array.joining import concat, stack
from tapewright.ops.array.shape import expand_dims

from ..pipeline import optimize
from ..tracing.binding import now_bound
from ..tracing.graph import Value
from ..tracing.handles import boxed, opened
from ..tracing.interpret import interpret
from .backward_step import BackwardStep
from .in_place import writing_body
from .narrowing import narrowed_loop
from .records import is_box, place
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
from .steps import runner_of
from .trip_count import MANY, known_length

__all__ = ["Loop", "loop"]

BOX = (), np.dtype(object)  # the spec of a list of arrays, of a length not known before


class Loop(ControlNode):
    """Runs ``graphs[0]``, the body, for each step; as long as ``graphs[1]`` gives true.

    Inputs: the number of steps (if ``counted``), ``carried``, ``sliced``, and constants.
    The body takes a row of each sliced input in its place, and gives the carried values,
    ``summed`` and ``stacked`` ones; a test takes all but the slices. Outputs: the last
    carried values, the sums, the number of steps (if there is a test), the stacks.

    The number of steps is ``length``, or else that of the rows of the first sliced input.
    ``capacity``: the size of stacks, or None: then they are lists in an array of rank 0.
    ``variables``: those that the last of the carried values stand for.
    """

    SETTINGS = ("carried", "sliced", "summed", "stacked", "counted", "length", "capacity",
                "maximum", "reverse", "variables", "of_variables", "title")  # fmt: skip
    __slots__ = SETTINGS

    def __init__(self, graphs, line=None, **settings):
        for name in self.SETTINGS:
            setattr(self, name, settings[name])
        outputs = [spec_of(x) for x in graphs[0].outputs]
        fixed = self.carried + self.summed
        specs = outputs[:fixed]
        if len(graphs) > 1:
            specs.append(((), np.dtype(np.int32)))
        for shape, dtype in outputs[fixed:]:
            in_box = self.capacity is None or dtype.kind == "O"
            specs.append(BOX if in_box else ((self.capacity, *shape), dtype))
        super().__init__(graphs, specs, line)

    @property
    def name(self):
        return self.title

    @property
    def tested(self):
        return len(self.graphs) > 1

    def again(self, graphs=None, **changes):
        """Another node like this one."""
        settings = {name: getattr(self, name) for name in self.SETTINGS}
        sizes = sizes_in_use()
        if sizes is not None:
            settings = evaluated(settings, sizes)
        graphs = graphs or now_bound(self.graphs)
        return Loop(graphs, self.line, **{**settings, **changes})

    narrowed = narrowed_loop

    def parts(self, inputs):
        """The count or None, carried, sliced and constant inputs."""
        count, rest = None, list(inputs)
        if self.counted:
            count, *rest = rest
        stop = self.carried + self.sliced
        return count, rest[: self.carried], rest[self.carried : stop], rest[stop:]

    def runner(self):
        body, owned, sparse = writing_body(self, optimize(self.graphs[0]))
        replays = [Replay(body, owned), *map(Replay, self.graphs[1:])]
        return runner_of(self, replays, owned, sparse)

    # --- step by step, through ops

    def interpret(self, args, env):
        if is_seen(args) or (self.is_effect and active_tracer() is not None):
            return place(self.again(), args)
        count, carried, sliced, constants = self.parts(args)
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
            outputs = interpret(self.graphs[0], [*carried, *slices, *constants])
            carried, outputs = outputs[: self.carried], outputs[self.carried :]
            for i, x in enumerate(outputs[: self.summed]):
                sums[i] = x if sums[i] is None else sums[i] + x
            rows[number] = outputs[self.summed :]
            steps += 1
        return self._gathered(carried, sums, rows, steps)

    def _numbers(self, count, sliced):
        if self.tested:
            limit = self.maximum
            return itertools.count() if limit is None else range(limit)
        if count is not None:
            count = int(count)
        elif self.length is not None:
            count = self.length
        else:
            count = len(opened(sliced[0].array, *spec_of(self.graphs[0].inputs[0])))
        count = range(count)
        return reversed(count) if self.reverse else count

    def _rows(self, sliced):
        """Sliced inputs as what gives the row of a step by its number, a tensor."""
        values = self.graphs[0].inputs[self.carried :]
        return [
            _Items(opened(x.array, *spec_of(v))) if is_box(x) else x
            for x, v in zip(sliced, values)
        ]

    def _goes_on(self, carried, constants):
        return bool(interpret(self.graphs[1], [*carried, *constants])[0])

    def _through_variables(self, carried):
        """A variable is assigned and read again: where a path starts for a tape."""
        start = self.carried - len(self.variables)
        carried = list(carried)
        for i, variable in enumerate(self.variables, start):
            variable.assign(carried[i])
            carried[i] = variable.read()
        return carried

    def _gathered(self, carried, sums, rows, steps):
        found = list(carried)
        outputs = self.graphs[0].outputs[self.carried :]
        for x, value in zip(sums, outputs):
            found.append(_zeros(spec_of(value)) if x is None else x)
        if self.tested:
            found.append(convert_to_tensor(np.int32(steps)))
        order = sorted(rows)
        for i, value in enumerate(outputs[self.summed :]):
            column = [rows[number][i] for number in order]
            found.append(self._stack(column, value))
        return tuple(found)

    def _stack(self, column, value):
        if self.capacity is None or value.dtype == object:
            return new_tensor(boxed(column))
        shape, dtype = spec_of(value)
        missing = self.capacity - len(column)
        parts = [stack(column)] if column else []
        if missing:
            parts.append(_zeros(((missing, *shape), dtype)))
        return parts[0] if len(parts) == 1 else concat(parts, 0)

    # --- gradient

    def input_kinds(self):
        return ["i"] * self.counted + super().input_kinds()

    def output_kinds(self):
        kinds = [spec_of(x)[1].kind for x in self.graphs[0].outputs]
        at = self.carried + self.summed
        return [*kinds[:at], *["i"] * self.tested, *kinds[at:]]

    def sum_of_boxes(self, i, x, y):
        """Two lists of arrays for input ``i``, item by item added."""
        spec = spec_of(self.graphs[0].inputs[i - self.counted])

        def body(state, slices, constants):
            return [], [], [slices[0] + slices[1]]

        *_, (total,) = loop("sum", body, [], [x, y], slice_specs=[spec, spec])
        return total

    def split(self):
        """As `split_effects`: for the node."""
        if not self.is_effect:
            return self.again(), [], self.again()
        body, given, pure = split_effects(self.graphs[0])
        full = self.again((body, *self.graphs[1:]), stacked=self.stacked + len(given))
        stop, size = self.carried + self.sliced, len(self.graphs[0].inputs)
        inputs = pure.inputs
        pure.inputs = [*inputs[:stop], *inputs[size:], *inputs[stop:size]]
        without = self.again((pure, *self.graphs[1:]), sliced=self.sliced + len(given))
        specs = [spec_of(v) for v in full.outputs[len(self.outputs) :]]
        return full, specs, without

    def joined(self, inputs, more):
        """Inputs with further sliced ones, the last of all."""
        stop = self.counted + self.carried + self.sliced - len(more)
        return (*inputs[:stop], *more, *inputs[stop:])

    def recorded(self):
        """The node that also gives the state before each step, and its gradient."""
        body = self.graphs[0]
        states = body.inputs[: self.carried]
        saving = body.replaced(body.nodes, [*body.outputs, *states])
        whole, given, pure = split_effects(saving)
        full = self.again(
            (whole, *self.graphs[1:]), stacked=self.stacked + len(states) + len(given)
        )

        def gradient(inputs, outputs, cotangents, wanted):
            extra = outputs[len(self.outputs) :]
            saved, given = extra[: self.carried], extra[self.carried :]
            return full.gradient(
                pure, inputs, outputs, saved, given, cotangents, wanted
            )

        return full, gradient

    def gradient(self, pure, inputs, outputs, saved, given, cotangents, wanted):
        """What comes back to the inputs ``wanted``, for cotangents of all outputs."""
        count, carried, sliced, constants = self.parts(inputs)
        fixed = self.carried + self.summed
        if self.tested:
            count = outputs[fixed]
        of_carried, of_sums = (
            cotangents[: self.carried],
            cotangents[self.carried : fixed],
        )
        of_rows = list(cotangents[fixed + self.tested :])
        of_rows = of_rows[: len(pure.outputs) - fixed]  # not of what effects gave
        back = BackwardStep(self, pure, [i - self.counted for i in wanted])
        state = [
            _zeros(spec_of(carried[i])) if of_carried[i] is None else of_carried[i]
            for i in back.propagated
        ]
        rows = [c for c in of_rows if c is not None]
        after = self._states_after(outputs, saved, back.propagated)
        back.places(of_sums, of_rows, len(given), len(rows))
        slices = [*saved, *sliced, *given, *rows, *after]
        states = pure.inputs[: self.carried + self.sliced]
        specs = [spec_of(v) for v in states]
        specs += [spec_of(v) for v in pure.inputs[len(pure.inputs) - len(given) :]]
        specs += [spec_of(pure.outputs[fixed + i]) for i in back.rows]
        specs += [spec_of(states[i]) for i in back.propagated[: len(after)]]
        last, sums, _, stacks = loop(
            f"{self.title}_gradient",
            back.body,
            state,
            slices,
            [*constants, *[c for c in of_sums if c is not None]],
            slice_specs=specs,
            length=self.length,
            count=None if self.length is not None else count,
            capacity=self.capacity,
            reverse=not self.reverse,
        )
        return back.collected(last, sums, stacks)

    def _states_after(self, outputs, saved, numbers):
        """What each step made of carried values, stacked, where that is known at once."""
        if self.length is None:
            return []
        body, first = self.graphs[0].outputs, self.carried + self.summed
        found = []
        for i in numbers:
            same = [j for j, x in enumerate(body) if x is body[i] and j >= first]
            if same and same[0] - first < self.stacked - self.carried:
                found.append(outputs[same[0]])
                continue
            last = expand_dims(outputs[i], 0)
            ends = [last, saved[i][:-1]] if self.reverse else [saved[i][1:], last]
            found.append(concat(ends, 0))
        return found


# ----------------------------------------------------------------------- tracing one


def loop(
    title, body, carried, sliced=(), constants=(), *, test=None, slice_specs=None,
    length=None, count=None, capacity=None, maximum=None, reverse=False, longer_than=None,
    only_if_traced=False,
):  # fmt: skip
    """Writes a `Loop` down: ``body(carried, slices, constants)`` for each step.

    With ``longer_than`` it does so only if the number of steps is known to be larger, and
    else returns None; with ``only_if_traced`` only if something depends on what is not
    known while tracing. The body returns the carried values and lists of what is to be
    summed and to be stacked, where None stays None. ``test(carried)``: whether there is a
    further step. Returns the last carried values, sums, the number of steps (None without
    a test) and stacks.
    """
    outside = active_interpreters()
    if slice_specs is None:
        slice_specs = [(spec_of(x)[0][1:], x.array.dtype) for x in sliced]
    specs = [spec_of(x) for x in carried]
    ends = len(specs), len(specs) + len(slice_specs)

    def stepped(*arguments):
        parts = arguments[: ends[0]], arguments[ends[0] : ends[1]], arguments[ends[1] :]
        return body(*[list(part) for part in parts])

    tracers = []
    if test is not None:
        tracers.append(trace_part(f"{title}_test", _listed(test), specs, outside))
    all_specs = [*specs, *slice_specs, *[spec_of(x) for x in constants]]
    tracers.insert(0, trace_part(f"{title}_body", stepped, all_specs, outside))
    state, sums, stacks = tracers[0].results
    if longer_than is not None:
        steps = known_length(tracers[1], tracers[0], carried)
        steps = steps if steps is None or maximum is None else min(steps, maximum)
        if steps is None or steps <= longer_than:
            return None
        if steps < MANY:
            length, test = steps, None
            del tracers[1]
    variables, first = _carried_variables(tracers, outside)
    leading = _leading(tracers, variables, ends, constants)
    rest = [x for x in (*sums, *stacks) if x is not None]
    outputs = [*state, *[tracers[0].now(v) for v in variables], *rest]
    tracers[0].graph.outputs = [tracers[0].value_of(x) for x in outputs]
    if test is not None:
        tracers[1].graph.outputs = [tracers[1].value_of(tracers[1].results)]
    captured = close(tracers, leading)
    node = Loop(
        [t.graph for t in tracers],
        carried=len(carried) + len(variables),
        sliced=len(sliced),
        summed=len([x for x in sums if x is not None]),
        stacked=len([x for x in stacks if x is not None]),
        counted=count is not None,
        length=length,
        capacity=capacity if length is None else length,
        maximum=maximum,
        reverse=reverse,
        variables=variables,
        of_variables=numbers_of_variables(tracers[:1]),
        title=title,
    )
    head = [] if count is None else [count]
    inputs = [*head, *carried, *first, *sliced, *constants, *captured]
    if only_if_traced and not (node.is_effect or variables or is_seen(inputs)):
        return None
    found = iter(place(node, inputs))
    last = [next(found) for _ in carried]
    for variable in variables:
        variable.assign(next(found))
    sums = [None if x is None else next(found) for x in sums]
    steps = next(found) if test is not None else None
    return last, sums, steps, [None if x is None else next(found) for x in stacks]


def _listed(test):
    return lambda *carried: test(list(carried))


def _carried_variables(tracers, outside):
    """Variables that the body assigns, and what they are before the loop."""
    variables = settle(tracers)
    for tracer in tracers[1:]:
        for variable in tracer.assigned.values():
            raise TracingError(
                f"'{tracer.graph.name}': the variable '{variable.path}' is assigned in "
                "the condition of a loop: assign it in the body"
            )
    with use_interpreters(outside):
        return variables, [v.read() for v in variables]


def _leading(tracers, variables, ends, constants):
    """The inputs of each graph before those that are captured."""
    body, *tests = tracers
    inputs = list(body.graph.inputs)
    leading = [
        [
            *inputs[: ends[0]],
            *[_as_input(body, v) for v in variables],
            *inputs[ends[0] :],
        ]
    ]
    for test in tests:
        own = [_as_input(test, v) for v in variables]
        unused = [Value(*spec_of(x)) for x in constants]
        leading.append([*test.graph.inputs, *own, *unused])
    return leading


def _as_input(tracer, variable):
    """The value under which a variable came in; no capture any more."""
    _, value = tracer.of_variables.pop(id(variable), (None, None))
    if value is None:
        return Value(tuple(variable._array.shape), variable._array.dtype)
    del tracer.graph.captures[value]
    return value


class _Items:
    """The items of a list: tensors, or arrays where a plan made the list."""

    def __init__(self, items):
        self.items = items

    def __getitem__(self, number):
        item = self.items[number]
        return item if isinstance(item, Tensor) else new_tensor(np.asarray(item))


def _zeros(spec):
    return zeros(*spec)
