"""Trace functions into regions: the graphs that a node runs as branches or loop bodies.

A region has inputs only, no captures: tensors of outer traces and variables that it
reads become operands of the node; variables that it assigns become results. Variables
that its effects access in place (an optimizer's) are read and stored inside.

The regions of one node are traced one by one (`trace_region`), then get the same
assigned variables (`assigned_variables`) and the same operands from outside
(`close_regions`).
"""

from tapewright.core.errors import TracingError
from tapewright.core.interpreters import active_tracer, use_interpreters
from tapewright.core.tensor import is_tensor

from ..tracing.custom_calls import capture_for_gradients
from ..tracing.graph import Effect, Graph, Read, Value, spec_of
from ..tracing.tracer import EagerFallback, SymbolicTensor, Tracer


class RegionTracer(Tracer):
    """Trace one region; ``outside`` are the interpreters around the node."""

    __slots__ = ("outside", "of_variables", "touched", "called_host", "results")

    def __init__(self, graph, outside=None):
        super().__init__(graph)
        self.outside = outside
        self.of_variables = {}  # id -> (variable, its value as an argument)
        self.touched = {}  # id -> variable, that effects access in place
        self.called_host = False
        self.results = None  # what the function returned

    def before_value(self, variable):
        for each in self.outside or ():
            each.before_value(variable)

    def value_of_variable(self, variable):
        name = id(variable)
        if name in self.bindings or name in self.touched or self.outside is None:
            return super().value_of_variable(variable)
        with use_interpreters(self.outside):
            outer = variable._tw_read_uncast()
        if self.called_host and not self._is_tracked(outer):
            self.touch((variable,))
            return super().value_of_variable(variable)
        value = Value(*spec_of(outer), None, variable.path)
        self.graph.captures[value] = outer
        self.of_variables[name] = variable, value
        tensor = self.bindings[name] = SymbolicTensor(value, self)
        return tensor

    def append_with_variables(self, node, tensors):
        self.touch((*node.reads, *node.writes))
        return super().append_with_variables(node, tensors)

    def flush_variables(self):
        """Read and write variables in place, except those that an outer tape tracks.

        Python code must not assign to the latter.
        """
        self.called_host = True
        self.touch([*self.assigned.values(), *self.untracked()])
        super().flush_variables()
        for name, (_, value) in self.of_variables.items():
            if name not in self.touched:
                self.bindings[name] = SymbolicTensor(value, self)

    def untracked(self):
        """Return the variables that are arguments and that no outer tape tracks."""
        captures = self.graph.captures
        pairs = self.of_variables.values()
        return [v for v, value in pairs if not self._is_tracked(captures[value])]

    def touch(self, variables):
        """Record variables that are read and written in place."""
        self.touched.update((id(v), v) for v in variables)

    def access_in_place(self, touched):
        """Read and store these variables inside the region."""
        first = []
        for name, variable in touched.items():
            if name in self.of_variables:
                _, value = self.of_variables.pop(name)
                self._refuse_tracked(variable, self.graph.captures.pop(value))
                node = Read(variable, self.current_line())
                node.outputs, value.node = (value,), node
                first.append(node)
            self.store(variable)
        self.graph.nodes[:0] = first

    def final_value(self, variable):
        """Return the value of a variable at the end of the region."""
        known = self.bindings.get(id(variable))
        return self.value_of_variable(variable) if known is None else known

    def _is_tracked(self, outer):
        return any([r.takes_records and outer.key in r.known for r in self.outside])

    def _refuse_tracked(self, variable, outer):
        if self._is_tracked(outer):
            raise TracingError(
                f"the variable '{variable.path}' is updated in place (by an "
                f"optimizer, say) in '{self.graph.name}', and read there under an "
                "outer tape: put the tape inside as well"
            )


def describe_tensor(x):
    """Describe a tensor by shape and dtype, for a message."""
    return f"shape {tuple(x.shape)}, {x.dtype.name}"


def any_traced(tensors):
    """Return whether an op on one of these tensors would be traced."""
    tracer = active_tracer()
    return tracer is not None and any(
        type(x) is SymbolicTensor or (type(x.key) is int and x.key < tracer.first_key)
        for x in tensors
        if is_tensor(x)
    )


def trace_region(name, function, specs, outside):
    """Trace ``function(*tensors)`` for tensors of these specs; return the tracer."""
    parent = next(r for r in reversed(outside) if r.traces)
    tracer = RegionTracer(Graph(f"{parent.graph.name}/{name}", parent.graph), outside)
    tracer.created, tracer.line, tracer.outer = parent.created, parent.line, parent
    tracer.captured_constants = parent.captured_constants
    tracer.converts = parent.converts
    tracer.in_scope, tracer.substituted = parent.in_scope, {*parent.substituted}
    arguments = [tracer.input(*spec) for spec in specs]
    with use_interpreters((tracer,)):
        tracer.results = function(*arguments)
    return tracer


def traced_or_none(write, *args):
    """Return ``write(*args)``, or None if it cannot be traced, so that Python has to run.

    Only the trace itself can decide: the user's code may read a value anywhere.
    """
    try:
        return write(*args)
    except EagerFallback:
        raise
    except TracingError:
        return None


def assigned_variables(tracers):
    """Return the variables that regions assign, which become results of their node.

    Variables that effects access in place are not included.
    """
    touched, assigned = {}, {}
    host_called = any([tracer.called_host for tracer in tracers])
    if host_called and (outer := active_tracer()) is not None:
        outer.flush_variables()  # Python code inside may read what was assigned before
    for tracer in tracers:
        if host_called:
            tracer.touch([*tracer.assigned.values(), *tracer.untracked()])
        touched |= tracer.touched
    for tracer in tracers:
        tracer.access_in_place(touched)
        assigned |= tracer.assigned
    if host_called:
        kept = [v for tracer in tracers for v, _ in tracer.of_variables.values()]
        for tracer in tracers:
            _guard_from_python(tracer.graph, kept)
    return list(assigned.values())


def _guard_from_python(graph, variables):
    """Make Python code in a graph raise if it changes one of these variables."""
    for node in graph.nodes:
        for part in node.regions:
            _guard_from_python(part, variables)
        if node.is_host_call and not node.regions and variables:
            name = "call" if isinstance(node, Effect) else "function"
            setattr(node, name, _checked(node.name, getattr(node, name), variables))


def _checked(who, function, variables):
    def checked(*args):
        before = [variable._array for variable in variables]
        result = function(*args)
        changed = [(v, a) for v, a in zip(variables, before) if v._array is not a]
        for variable, array in changed:
            variable._bind(array)
        for variable, _ in changed:
            raise TracingError(
                f"{who} changes the variable '{variable.path}', which is read in the "
                "same branch or loop under an outer tape: put the tape inside as well"
            )
        return result

    return checked


def numbers_of_variables(tracers):
    """Return pairs of a variable and the number of its argument."""
    return [
        (variable, tracer.graph.inputs.index(value))
        for tracer in tracers
        for variable, value in tracer.of_variables.values()
    ]


def close_regions(tracers, leading):
    """End the traces of one node; return the outer tensors that its regions use.

    ``leading[i]`` are the first arguments of region ``i``; they are followed by one
    argument for each returned tensor, used by this region or not.
    """
    tensors, own = {}, []
    for tracer in tracers:
        capture_for_gradients(tracer)
        named, count = {}, {}
        for value, tensor in tracer.graph.captures.items():
            nth = count[id(tensor)] = count.get(id(tensor), -1) + 1
            named[id(tensor), nth] = value
            tensors[id(tensor), nth] = tensor
        own.append(named)
    for tracer, named, first in zip(tracers, own, leading):
        graph = tracer.graph
        further = [named.get(n) or Value(*spec_of(x)) for n, x in tensors.items()]
        graph.inputs = [*first, *further]
        graph.aliases = {
            x.symbol: value
            for value, x in graph.captures.items()
            if type(x) is SymbolicTensor
        }
        graph.captures, graph.finished = {}, True
    return list(tensors.values())
