"""Linearize traced functions: compiled forward and backward graphs of calls.

Under a tape a function runs as a *forward* graph, which has the residuals as further
outputs, and the tape records one call; the backward pass runs a `VJPGraph` on them.
Outer tapes, which differentiate the backward pass, track residuals like any other
output, so gradients of every order exist.

Both graphs come from one trace of the function under a tape (`Linearization`). Symbols
of that trace that a backward pass uses become inputs of its graph.
"""

import threading

from tapewright.autodiff.backward import reachable, source_keys
from tapewright.autodiff.gradient_tape import GradientTape
from tapewright.core.dtypes import kind_of
from tapewright.core.errors import GradientLookupError
from tapewright.core.interpreters import use_interpreters
from tapewright.core.messages.provenance import Provenance, attach_provenance
from tapewright.core.tape import Tape
from tapewright.core.tensor import IndexedSlices, new_tensor, next_key

from .call_record import call_pullback
from .custom_calls import CustomCall, capture_for_gradients
from .graph import Graph, is_value, reads_by_time
from .handles import HANDLE
from .interpret import interpret
from .tracer import SymbolicTensor, Tracer

# The most linearizations of a function, one for each set of tracked sources, and the most
# VJP graphs of a linearization, one for each set of cotangents and wanted gradients.
MANY = 32


def record_call(concrete, tensors, interpreters):
    """Return the outputs of a call, and record it on the tapes."""
    family = concrete.linearizations
    if family is None:
        family = concrete.linearizations = Linearizations(concrete)
    sources = family.sources(tensors)
    for each in interpreters:
        if each.only_watches_variables:
            for variable in family.assigned:
                each.before_assign(variable, "assign", None)
    tapes = [each for each in interpreters if isinstance(each, Tape)]
    known = (
        tapes[0].known if len(tapes) == 1 else set().union(*[t.known for t in tapes])
    )
    tracked = tuple([x.key in known for x in sources])
    if True not in tracked:
        arrays = [x.array for x in sources[: family.width]]
        outputs = [new_tensor(a) for a in concrete.executable.run(arrays)]
        if any([x.key is not None for x in sources]):
            for tape in tapes:
                attach_provenance(concrete, sources, tuple(outputs), tape)
        return outputs
    linearization = family.linearization(tracked, sources)
    if linearization is None:
        return concrete.interpreted(tensors)
    return linearization.call(sources, tapes)


class Linearizations:
    """The linearizations of a function: one for each set of tracked sources.

    Sources are its inputs and captures (``width`` of them), the constants of its graph,
    and the variables that it reads, in this order. Constants are tensors from outside
    the function, which a tape may watch.

    The source for a variable is its value before the call. A later read, after an
    assignment, is a separate source; its value is an output of the call (``later``).
    """

    def __init__(self, concrete):
        graph = self.graph = concrete.graph
        self.concrete = concrete
        self.width = len(graph.inputs) + len(graph.captures)
        self.constants = _constants(graph)
        self.initial, self.later, inner = reads_by_time(graph)
        reads = [*self.initial, *self.later, *inner]
        self.variables = list({id(n.variable): n.variable for n in reads}.values())
        self.inner = {id(node.variable) for node in inner}
        self.assigned = [v for node in graph.nodes for v in node.writes]
        self.by_tracked = {}  # tuple of flags -> `Linearization`, or None
        self.lock = threading.RLock()

    def sources(self, tensors):
        """Return the sources for these inputs; reads of variables reach the tapes."""
        return [
            *tensors,
            *self.graph.captures.values(),
            *self.constants,
            *[variable._tw_read_uncast() for variable in self.variables],
        ]

    def linearization(self, tracked, sources):
        """Return the linearization by these sources; None if the graph must be interpreted."""
        if tracked not in self.by_tracked:
            with self.lock:
                if tracked not in self.by_tracked:
                    self.by_tracked[tracked] = self._linearized(tracked, sources)
        return self.by_tracked[tracked]

    def _linearized(self, tracked, sources):
        start = len(sources) - len(self.variables)
        for variable, is_tracked in zip(self.variables, tracked[start:]):
            if is_tracked and id(variable) in self.inner:
                return None  # it is a source inside of a branch or loop
        if len(self.by_tracked) >= MANY or not _can_be_linearized(self.graph):
            return None
        try:
            with use_interpreters(()):
                return Linearization(self, tracked, sources)
        except GradientLookupError:
            # An op has no VJP rule. Where the graph is interpreted, the tape records each
            # op, and only gradients that pass this op raise the error.
            return None


def _can_be_linearized(graph):
    """Return whether traced gradients of a graph contain everything that tapes compute.

    This is not so if a custom gradient function cannot be traced, or if values may
    coincide, whose higher-order derivatives only a tape finds (see
    `autodiff.confluence`).
    """
    for node in graph.nodes:
        if type(node) is CustomCall and not node.has_gradient:
            return False
        op = node.op
        if op is not None and (op.registered is not None or _is_factorization(op)):
            return False
        if not all([_can_be_linearized(part) for part in node.regions]):
            return False
    return True


def _is_factorization(op):
    return op.confluent_rules is not None or op.values_of is not None


def _constants(graph):
    """Return the real and complex constants of the nodes, each once."""
    constants = {}
    for node in graph.nodes:
        for x in node.inputs:
            if not is_value(x) and kind_of(x.array.dtype) in "fc":
                constants.setdefault(id(x), x)
    return list(constants.values())


class Linearization:
    """The forward graph of a function for one set of tracked sources, and its VJPs.

    Values are numbered: values below ``count`` are the sources, the others are the
    results of the forward graph. Values of later reads of variables are the last
    sources; the forward graph returns them after its results.
    """

    def __init__(self, family, tracked, sources):
        graph, count = family.graph, len(sources) - len(family.variables)
        self.kind, self.name, self.lock = type(family.concrete), graph.name, family.lock
        self.module = family.concrete.module
        self.tracer = Tracer(Graph(graph.name))
        self.tape = GradientTape(persistent=True, watch_accessed_variables=False)
        # The sources that are inputs of the forward graph: not constants without a tape.
        self.inputs = [i for i in range(count) if i < family.width or tracked[i]]
        symbols = {
            i: self.tracer.input(sources[i].array.shape, sources[i].array.dtype)
            for i in self.inputs
        }
        self.sources, env = {**symbols}, {}
        with use_interpreters((self.tracer,)), self.tape:
            for i in [i for i, is_tracked in enumerate(tracked) if is_tracked]:
                if i not in symbols:
                    self.tape.watch(family.variables[i - count])
                elif symbols[i].array.dtype == HANDLE:
                    self.tape._tw_tape.watch(symbols[i])  # the states of a loop
                else:
                    self.tape.watch(symbols[i])
            outputs = _interpreted(family, symbols, env)
        self.known = self.tape._tw_tape.known
        self.tracer.finish(outputs)
        self.tracer.graph.finished = False  # VJPs go on to use its values
        self.later = self._add_reads(family, count, env)
        self.tracked = tuple(
            [i for i, x in self.sources.items() if x.key in self.known]
        )
        self.count = len(sources) + len(self.later)
        self.numbers = {x.symbol: i for i, x in self.sources.items()}
        self.results = []  # of the forward graph, symbolic, without later reads
        self.closed, self.vjps, self.pullbacks = False, {}, {}
        self.outputs = [self.number(x) for x in outputs]
        self._close()
        nodes = list(self.tracer.graph.nodes)
        given = [*self.results, *[x for _, x in self.later]]
        forward = self.tracer.graph.replaced(nodes, [x.symbol for x in given])
        forward.finished = True
        self.forward = self.concrete_function(forward)
        self.captured = [x.array for x in forward.captures.values()]

    def _add_reads(self, family, start, env):
        """Add reads of variables to the sources; return the later reads."""
        number = {id(v): i for i, v in enumerate(family.variables, start)}
        seen = set()
        for node in family.initial:
            tensor = env[node.outputs[0]]
            self.sources[number[id(node.variable)]] = tensor
            seen.add(tensor.symbol)
        later, stop = [], start + len(family.variables)
        for node in family.later:
            tensor = env[node.outputs[0]]
            if tensor.symbol not in seen:
                self.sources[stop + len(later)] = tensor
                later.append((node.variable, tensor))
                seen.add(tensor.symbol)
        return later

    def number(self, x):
        """Return the number of a tensor of the trace, or a constant itself.

        Tensors without a number become results of the forward graph; once it is closed,
        ``_Missing`` is raised.
        """
        if not isinstance(x, SymbolicTensor):
            return x
        number = self.numbers.get(x.symbol)
        if number is None:
            if self.closed:
                raise _Missing
            number = self.numbers[x.symbol] = self.count + len(self.results)
            self.results.append(x)
        elif number >= self.count:
            if self.results[number - self.count].key not in self.known:
                self.results[number - self.count] = x
        return number

    def _close(self):
        """Find the residuals: the values that VJPs, and VJPs of these, use."""
        before = None
        while before != self.connected:
            before = self.connected
            full = self._vjp(before, self.tracked)
        self.closed, self.full = True, full
        self.residuals = list(
            dict.fromkeys([n for vjp in self.vjps.values() for n in vjp.residuals])
        )
        # Sources that no output depends on are not tracked.
        pairs = list(zip(self.tracked, full.gradients))
        self.tracked = tuple([i for i, gradient in pairs if gradient is not None])
        self.lost = self._lost([i for i, gradient in pairs if gradient is None])

    def _lost(self, without):
        """Find where the gradients of these sources are lost inside: source -> `Origin`."""
        tape, lost_at = self.tape._tw_tape, {}
        losses = [lost for _, lost in tape.untracked_inputs]
        losses += [x.key for x in self.results if type(x.key) is Provenance]
        origins = [o for lost in losses for o in lost.origins if o.reason != "variable"]
        for i in without if origins else ():
            reached = reachable(tape.records, source_keys(tape, self.sources[i]))
            for origin in origins:
                if origin.key in reached:
                    lost_at[i] = origin
        return lost_at

    def concrete_function(self, graph):
        """Return a function like the differentiated one, with another graph."""
        made = self.kind(graph)
        made.module = self.module
        return made

    @property
    def connected(self):
        """The indices of the results that depend on a source."""
        return tuple([k for k, x in enumerate(self.results) if x.key in self.known])

    # --- forward

    def call(self, sources, tapes):
        """Return the output tensors; record the call on the tapes."""
        arrays = [sources[i].array for i in self.inputs]
        arrays = self.forward.executable.run([*arrays, *self.captured])
        results = [new_tensor(array) for array in arrays]
        later = results[len(self.results) :]
        values = [*sources, *later, *results]
        for tape in tapes:
            for (variable, _), tensor in zip(self.later, later):
                tape.read_variable(variable, tensor)
        targets = [results[k] for k in self.full.present]
        for target in targets:
            target.key = next_key()
        keys = tuple([target.key for target in targets])
        residuals = tuple([values[n] for n in self.residuals])
        for tape in tapes:
            known = tape.known
            own = tuple([i for i in self.tracked if values[i].key in known])
            if own and keys:
                pullback = self.pullbacks.get(own)
                if pullback is None:
                    pullback = self.pullbacks.setdefault(own, call_pullback(self, own))
                inputs = tuple([values[i].key for i in own])
                tape.process_record((pullback, keys, inputs, *residuals), targets, ())
                # Lists of arrays, too: the states of a loop (see `loops`).
                known.update([t.key for t in targets if t.array.dtype == HANDLE])
        if self.lost:
            self._explain_losses(values, tapes, results)
        return [values[n] if type(n) is int else n for n in self.outputs]

    def _explain_losses(self, sources, tapes, results):
        """Record on tapes which sources have no gradient, and why, for `explain`."""
        lost = Provenance(
            [o._replace(key=sources[i].key) for i, o in self.lost.items()],
        )
        for tensor in results:
            if tensor.key is None:
                tensor.key = lost
        for tape in tapes:
            if self.full.present:
                tape.untracked_inputs.append((results[self.full.present[0]].key, lost))

    # --- backward

    def vjp(self, present, wanted):
        """Return the `VJPGraph` from these results of the forward graph to these sources."""
        vjp = self.vjps.get((present, wanted))
        if vjp is None:
            with self.lock:
                if len(self.vjps) >= MANY:
                    return self.full
                try:
                    vjp = self._vjp(present, wanted)
                except _Missing:
                    vjp = self.vjps[present, wanted] = self.full
        return vjp

    def _vjp(self, present, wanted):
        vjp = self.vjps.get((present, wanted))
        if vjp is None:
            vjp = self.vjps[present, wanted] = VJPGraph(self, present, wanted)
        return vjp


class _Missing(Exception):
    """A VJP needs a value that is not a residual."""


def _interpreted(family, symbols, env):
    """Return the outputs of a function for symbols of its inputs, captures and constants.

    ``env`` receives the tensor of each value.
    """
    graph, count = family.graph, len(family.graph.inputs)
    env.update((value, symbols[i]) for i, value in enumerate(graph.captures, count))
    constants = {
        id(x): symbols[i]
        for i, x in enumerate(family.constants, family.width)
        if i in symbols
    }
    inputs = [symbols[i] for i in range(count)]
    return interpret(graph, inputs, env, constants)


class VJPGraph:
    """The backward pass of a function: gradients from cotangents and residuals.

    ``present`` are the indices of the forward results whose cotangents it receives;
    ``residuals`` are the numbers of the values that are its further inputs;
    ``gradients`` has, for each wanted source, the index of its gradient among the
    outputs, the indices of the parts of `IndexedSlices` and their shape, or None.
    """

    def __init__(self, linearization, present, wanted):
        self.present, self.wanted = present, wanted
        graph = Graph(f"gradient of {linearization.name}")
        tracer = Tracer(graph)
        targets = [linearization.results[k] for k in present]
        with use_interpreters((tracer,)):
            cotangents = [
                tracer.input(x.array.shape, x.array.dtype, "cotangent") for x in targets
            ]
            sources = [linearization.sources[i] for i in wanted]
            gradients = linearization.tape.gradient(targets, sources, cotangents)
            outputs = []
            self.gradients = [_numbers(gradient, outputs) for gradient in gradients]
            capture_for_gradients(tracer, linearization.tracer)
            tracer.finish(outputs)
        self.residuals, rest = [], {}
        for value, x in graph.captures.items():
            if isinstance(x, SymbolicTensor) and x.tracer is linearization.tracer:
                self.residuals.append(linearization.number(x))
                graph.inputs.append(value)
                graph.aliases[x.symbol] = value
            else:
                rest[value] = x
        graph.captures = rest
        self.function = linearization.concrete_function(graph)
        self.captured = [x.array for x in rest.values()]


def _numbers(gradient, outputs):
    """Add a gradient to the outputs; return its index, or the indices of its parts."""
    if gradient is None:
        return None
    if isinstance(gradient, IndexedSlices):
        outputs += [gradient.values, gradient.indices]
        return len(outputs) - 2, len(outputs) - 1, gradient.dense_shape
    outputs.append(gradient)
    return len(outputs) - 1
