"""The gradient of a traced function, traced itself: so that both ways are planned.

Called under a tape, a function runs as a *forward* graph, which also gives the residuals,
and the tape notes one call; the walk back runs a *backward* graph on them. Residuals are
outputs of that call like any other: a tape outside that differentiates the walk finds its
way back through them, and so on, for gradients of every order.

Both graphs come from one trace of the function under a tape (`Derivative`). What the tape
holds then are symbols; whatever of them a walk back uses becomes an input of its graph.
"""

import threading

from tapewright.autodiff.backward import reachable, source_keys
from tapewright.autodiff.gradient_tape import GradientTape
from tapewright.core.errors import GradientLookupError
from tapewright.core.interpreters import use_interpreters
from tapewright.core.provenance import Provenance, attach_provenance
from tapewright.core.tape import Tape
from tapewright.core.tensor import IndexedSlices, Tensor, new_tensor, next_key

from .call_record import CallAdjoint
from .custom_calls import CustomCall
from .graph import Graph, is_value, reads_by_time
from .interpret import interpret
from .tracer import SymbolicTensor, Tracer

__all__ = ["record_call"]

# Patterns of tracked sources for which one function keeps a derivative.
MANY = 32


def record_call(concrete, tensors, interpreters):
    """The outputs of a call under tapes, which note it."""
    family = concrete.derived.get(None)
    if family is None:
        family = concrete.derived.setdefault(None, _Family(concrete))
    sources = family.sources(tensors)
    recordings = [r for r in interpreters if isinstance(r, Tape)]
    known = _known(recordings)
    tracked = tuple([x.key in known for x in sources])
    if True not in tracked:
        arrays = [x.array for x in sources[: family.width]]
        outputs = [new_tensor(a) for a in concrete.replay(arrays)]
        _stamp(concrete, sources, outputs, recordings)
        return outputs
    derivative = family.derivative(tracked, sources)
    if derivative is None:
        return concrete.interpreted(tensors)
    return derivative.call(sources, recordings)


def _known(recordings):
    if len(recordings) == 1:
        return recordings[0].known
    return set().union(*[r.known for r in recordings])


def _stamp(concrete, sources, outputs, recordings):
    """Outputs that are on no tape tell whence they came."""
    if any([x.key is not None for x in sources]):
        for recording in recordings:
            attach_provenance(concrete, sources, tuple(outputs), recording)


class _Family:
    """The derivatives of one function: one for each pattern of tracked sources.

    Sources are its inputs and captures (``width`` in number), the constants of its graph,
    and the variables that it reads, in this order. A constant may be one: it is a tensor
    that the function found outside, which a tape may watch.

    A variable stands for its value before the call. A later read, which may see another
    one, is a source of its own: the call gives its value (``later``).
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
        self.derivatives = {}  # None where there is none
        self.lock = threading.RLock()

    def sources(self, tensors):
        """The sources for these inputs; tapes are told of the variables among them."""
        return [
            *tensors,
            *self.graph.captures.values(),
            *self.constants,
            *[variable.read() for variable in self.variables],
        ]

    def derivative(self, tracked, sources):
        """The derivative by the tracked sources; None: the graph has to be interpreted."""
        found = self.derivatives.get(tracked, self)
        if found is self:
            with self.lock:
                found = self.derivatives.get(tracked, self)
                if found is self:
                    found = self._derived(tracked, sources)
                    self.derivatives[tracked] = found
        return found

    def _derived(self, tracked, sources):
        start = len(sources) - len(self.variables)
        for variable, is_tracked in zip(self.variables, tracked[start:]):
            if is_tracked and id(variable) in self.inner:
                return None  # a path starts in the middle of a branch or body
        if len(self.derivatives) >= MANY:
            return None
        if not _has_gradients(self.graph):
            return None
        try:
            with use_interpreters(()):
                return Derivative(self, tracked, sources)
        except GradientLookupError:  # an error only for who asks for that gradient
            return None


def _has_gradients(graph):
    """Return whether all gradient functions of the user in a graph can be traced."""
    for node in graph.nodes:
        if type(node) is CustomCall and not node.has_gradient:
            return False
        if node.op is not None and node.op.registered is not None:
            return False
        if not all([_has_gradients(part) for part in node.graphs]):
            return False
    return True


def _constants(graph):
    """The tensors, real or complex, that the nodes use as they are: each once."""
    found = {}
    for node in graph.nodes:
        for x in node.inputs:
            if not is_value(x) and x.array.dtype.kind in "fc":
                found.setdefault(id(x), x)
    return list(found.values())


class Derivative:
    """A function for one pattern of tracked sources: forward, and the ways back.

    A *place* says where a tensor is when the forward graph has run: ``i`` is the source
    of that number, ``~k`` the forward graph's output of that number. Values of later
    reads are the last outputs, and the last sources.
    """

    def __init__(self, family, tracked, sources):
        graph, count = family.graph, len(sources) - len(family.variables)
        self.kind, self.name, self.lock = type(family.concrete), graph.name, family.lock
        self.tracer = Tracer(Graph(graph.name))
        self.tape = GradientTape(persistent=True, watch_accessed_variables=False)
        # A constant that no tape watches stays one.
        self.given = [i for i in range(count) if i < family.width or tracked[i]]
        self.tracked = tuple([i for i, is_tracked in enumerate(tracked) if is_tracked])
        symbols = {
            i: self.tracer.input(sources[i].array.shape, sources[i].array.dtype)
            for i in self.given
        }
        self.sources, env = {**symbols}, {}
        with use_interpreters((self.tracer,)), self.tape:
            for i in self.tracked:
                if i in symbols and symbols[i].array.dtype == object:
                    self.tape._tape.watch(symbols[i])  # the states of a loop
                else:
                    variable = None if i in symbols else family.variables[i - count]
                    self.tape.watch(symbols[i] if variable is None else variable)
            outputs = _interpreted(family, symbols, env)
        self.known = self.tape._tape.known
        self.tracer.finish(outputs)
        self.tracer.graph.finished = False  # the ways back go on to use its values
        self.later = self._add_reads(family, count, env)
        self.tracked = tuple(
            [i for i, x in self.sources.items() if x.key in self.known]
        )
        self.places = {x.symbol: i for i, x in self.sources.items()}
        self.made = []  # by the forward graph: symbols
        self.closed = False
        self.backwards, self.adjoints = {}, {}
        self.outputs = [self._placed(x) for x in outputs]
        self._close()
        nodes = list(self.tracer.graph.nodes)
        given = [*self.made, *[x for _, x in self.later]]
        forward = self.tracer.graph.replaced(nodes, [x.symbol for x in given])
        forward.finished = True
        self.forward = self.kind(forward)
        self.captured = [x.array for x in forward.captures.values()]

    def _add_reads(self, family, start, env):
        """Adds reads of variables to the sources; those of the later ones."""
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

    def _placed(self, x):
        """The place of a tensor of the trace; a constant is its own."""
        if not isinstance(x, SymbolicTensor):
            return x
        place = self.places.get(x.symbol)
        if place is None:
            if self.closed:
                raise _Missing
            place = self.places[x.symbol] = ~len(self.made)
            self.made.append(x)
        elif place < 0 and self.made[~place].key not in self.known:
            self.made[~place] = x
        return place

    def _close(self):
        """Finds the residuals: all that the ways back, and theirs in turn, ever use."""
        before = None
        while before != self.connected:
            before = self.connected
            full = self._backward(before, self.tracked)
        self.closed, self.full = True, full
        self.residuals = list(
            dict.fromkeys(p for b in self.backwards.values() for p in b.residuals)
        )
        # Those from which no path leads to what the function gives are no sources.
        pairs = list(zip(self.tracked, full.answers))
        self.tracked = tuple([i for i, answer in pairs if answer is not None])
        self.lost = self._lost([i for i, answer in pairs if answer is None])

    def _lost(self, without):
        """Where the paths from these sources end inside: source -> `Origin`."""
        recording, found = self.tape._tape, {}
        losses = [lost for _, lost in recording.losses]
        losses += [x.key for x in self.made if type(x.key) is Provenance]
        origins = [o for lost in losses for o in lost.origins if o.reason != "variable"]
        for i in without if origins else ():
            keys = source_keys(recording, self.sources[i])
            reached = reachable(recording.records, keys)
            for origin in origins:
                if origin.key in reached:
                    found[i] = origin
        return found

    @property
    def connected(self):
        """The numbers of what the forward graph gives that depends on a source."""
        return tuple([k for k, x in enumerate(self.made) if x.key in self.known])

    # --- forward

    def call(self, sources, recordings):
        """Output tensors; the recordings note the call."""
        arrays = [sources[i].array for i in self.given]
        arrays = self.forward.replay([*arrays, *self.captured])
        made = [new_tensor(array) for array in arrays]
        sources = [*sources, *made[len(self.made) :]]
        for recording in recordings:
            for (variable, _), tensor in zip(self.later, made[len(self.made) :]):
                recording.read_variable(variable, tensor)
        targets = [made[k] for k in self.full.present]
        for target in targets:
            target.key = next_key()
        keys = tuple([target.key for target in targets])
        residuals = [sources[p] if p >= 0 else made[~p] for p in self.residuals]
        for recording in recordings:
            known = recording.known
            own = tuple([i for i in self.tracked if sources[i].key in known])
            if own and keys:
                adjoint = self.adjoints.get(own)
                if adjoint is None:
                    adjoint = self.adjoints.setdefault(own, CallAdjoint(self, own))
                record = (adjoint, keys, *[sources[i].key for i in own], *residuals)
                recording.process_record(record, targets, ())
                # Lists of arrays, too: the states of a loop (see `loops`).
                known.update([t.key for t in targets if t.array.dtype == object])
        if self.lost:
            self._tell_losses(sources, recordings, made)
        return [
            p if isinstance(p, Tensor) else sources[p] if p >= 0 else made[~p]
            for p in self.outputs
        ]

    def _tell_losses(self, sources, recordings, made):
        """Tells tapes, for explanations, which sources have no gradient, and why."""
        lost = Provenance(
            [o._replace(key=sources[i].key) for i, o in self.lost.items()],
        )
        for tensor in made:
            if tensor.key is None:
                tensor.key = lost
        for recording in recordings:
            if self.full.present:
                recording.losses.append((made[self.full.present[0]].key, lost))

    # --- back

    def backward(self, present, wanted):
        """The way back from these outputs of the forward graph to these sources."""
        found = self.backwards.get((present, wanted))
        if found is None:
            with self.lock:
                if len(self.backwards) >= MANY:
                    return self.full
                try:
                    found = self._backward(present, wanted)
                except _Missing:
                    found = self.backwards[present, wanted] = self.full
        return found

    def _backward(self, present, wanted):
        found = self.backwards.get((present, wanted))
        if found is None:
            found = Backward(self, present, wanted)
            self.backwards[present, wanted] = found
        return found


class _Missing(Exception):
    """A way back needs what is no residual."""


def _interpreted(family, symbols, env):
    """The outputs of a function for these symbols of its inputs, captures, constants.

    ``env`` takes the tensor of each value.
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


class Backward:
    """A way back, as a function of cotangents and residuals.

    ``present``: the numbers of the forward outputs whose cotangents it takes;
    ``residuals``: the places of what else it takes; ``answers``: for each wanted source
    the number of its gradient among the outputs, those of the parts of its
    `IndexedSlices` with their shape, or None.
    """

    def __init__(self, derivative, present, wanted):
        self.present, self.wanted = present, wanted
        graph = Graph(f"gradient of {derivative.name}")
        tracer = Tracer(graph)
        targets = [derivative.made[k] for k in present]
        with use_interpreters((tracer,)):
            cotangents = [
                tracer.input(x.array.shape, x.array.dtype, "cotangent") for x in targets
            ]
            found = derivative.tape.gradient(
                targets, [derivative.sources[i] for i in wanted], cotangents
            )
            outputs = []
            self.answers = [_answer(gradient, outputs) for gradient in found]
            _capture_for_custom_calls(tracer, derivative.tracer)
            tracer.finish(outputs)
        self.residuals, rest = [], {}
        for value, x in graph.captures.items():
            if isinstance(x, SymbolicTensor) and x.tracer is derivative.tracer:
                self.residuals.append(derivative._placed(x))
                graph.inputs.append(value)
                graph.aliases[x.symbol] = value
            else:
                rest[value] = x
        graph.captures = rest
        self.function = derivative.kind(graph)
        self.captured = [x.array for x in rest.values()]


def _capture_for_custom_calls(tracer, forward):
    """Makes inputs of what the gradients of custom calls will use of the forward graph."""
    for node in tracer.graph.nodes:
        if type(node) is CustomCall:
            for x in node.reach().values():
                if x.tracer is forward:
                    tracer.value_of(x)


def _answer(gradient, outputs):
    """Where a gradient is among the outputs, to which it is added."""
    if gradient is None:
        return None
    if isinstance(gradient, IndexedSlices):
        outputs += [gradient.values, gradient.indices]
        return len(outputs) - 2, len(outputs) - 1, gradient.dense_shape
    outputs.append(gradient)
    return len(outputs) - 1
