"""Branches and bodies: functions traced into graphs of their own, for one node to run.

Such a graph has inputs only, no captures: values of the traces around it, and variables
that it reads, come in with the node; variables that it assigns go out with its outputs.
Only variables that its effects touch by themselves (an optimizer's) are read and stored
where they are.
"""

import numpy as np

from tapewright.core.errors import TracingError
from tapewright.core.interpreters import active_tracer, use_interpreters
from tapewright.core.tensor import is_tensor
from tapewright.ops.array.conversion import stop_gradient

from ..pipeline import make_plan
from ..tracing.custom_calls import CustomCall
from ..tracing.graph import Effect, Graph, Node, Read, ReadAgain, Store, Value, is_value
from ..tracing.handles import Box, boxed
from ..tracing.tracer import SymbolicTensor, Tracer

__all__ = [
    "ControlNode",
    "Replay",
    "SubTracer",
    "close",
    "is_seen",
    "numbers_of_variables",
    "settle",
    "spec_of",
    "split_effects",
    "trace_part",
]


class SubTracer(Tracer):
    """Writes one branch or body down. ``outside``: the interpreters around it."""

    __slots__ = ("outside", "of_variables", "touched", "ran_python", "results")

    def __init__(self, graph, outside=None):
        super().__init__(graph)
        self.outside = outside
        self.of_variables = {}  # id -> (variable, the value under which it came in)
        self.touched = {}  # id -> variable, for those of effects
        self.ran_python = False
        self.results = None  # what the function returned

    def value_of_variable(self, variable):
        name = id(variable)
        if name in self.current or name in self.touched or self.outside is None:
            return super().value_of_variable(variable)
        with use_interpreters(self.outside):
            outer = variable.read()
        if self.ran_python and not self._is_followed(outer):
            self.touch((variable,))
            return super().value_of_variable(variable)
        value = Value(*spec_of(outer), None, variable.path)
        self.graph.captures[value] = outer
        self.of_variables[name] = variable, value
        tensor = self.current[name] = SymbolicTensor(value, self)
        return tensor

    def effect(
        self, kind, call, inputs=(), attributes=None, specs=(), reads=(), writes=()
    ):
        self.touch((*reads, *writes))
        return super().effect(kind, call, inputs, attributes, specs, reads, writes)

    def hand_over(self):
        """Variables are read and written where they are, but for those that a tape
        outside follows: Python is not to assign to them."""
        self.ran_python = True
        self.touch([*self.assigned.values(), *self.unfollowed()])
        super().hand_over()
        for name, (_, value) in self.of_variables.items():
            if name not in self.touched:
                self.current[name] = SymbolicTensor(value, self)

    def unfollowed(self):
        """The variables that came in from outside, where no tape follows them."""
        captures = self.graph.captures
        pairs = self.of_variables.values()
        return [v for v, value in pairs if not self._is_followed(captures[value])]

    def touch(self, variables):
        """Notes variables that are read and written where they are."""
        self.touched.update((id(v), v) for v in variables)

    def keep_in_memory(self, touched):
        """Makes the reads and assignments of these variables those of the variables."""
        first = []
        for name, variable in touched.items():
            if name in self.of_variables:
                _, value = self.of_variables.pop(name)
                self._refuse_followed(variable, self.graph.captures.pop(value))
                node = Read(variable, self.here())
                node.outputs, value.node = (value,), node
                first.append(node)
            self.store(variable)
        self.graph.nodes[:0] = first

    def now(self, variable):
        """What a variable stands for at the end, where it may have been assigned to."""
        known = self.current.get(id(variable))
        return self.value_of_variable(variable) if known is None else known

    def _is_followed(self, outer):
        return any([r.takes_records and outer.key in r.known for r in self.outside])

    def _refuse_followed(self, variable, outer):
        if self._is_followed(outer):
            raise TracingError(
                f"the variable '{variable.path}' is updated in place (by an optimizer, "
                f"say) in '{self.graph.name}', and read there under a tape that is "
                "outside: put the tape inside as well"
            )


def spec_of(x):
    """Shape and dtype of a tensor or value."""
    x = x if is_value(x) else x.array
    return x.shape, x.dtype


def is_seen(tensors):
    """Whether an op on one of these tensors would be written down by a tracer."""
    tracer = active_tracer()
    return tracer is not None and any(
        type(x) is SymbolicTensor or (type(x.key) is int and x.key < tracer.birth)
        for x in tensors
        if is_tensor(x)
    )


def trace_part(name, function, specs, outside):
    """The tracer, with its graph, of ``function(*tensors)`` for tensors of these specs."""
    parent = next(r for r in reversed(outside) if r.traces)
    tracer = SubTracer(Graph(f"{parent.graph.name}/{name}", parent.graph), outside)
    tracer.created, tracer.line, tracer.around = parent.created, parent.line, parent
    tracer.overlooked = parent.overlooked
    arguments = [tracer.input(*spec) for spec in specs]
    with use_interpreters((tracer,)):
        tracer.results = function(*arguments)
    return tracer


def settle(tracers):
    """The variables that go out of a node's graphs as outputs, in order.

    Those that effects touch stay where they are, in all of them.
    """
    touched, assigned = {}, {}
    runs_python = any([tracer.ran_python for tracer in tracers])
    for tracer in tracers:
        if runs_python:
            tracer.touch([*tracer.assigned.values(), *tracer.unfollowed()])
        touched |= tracer.touched
    for tracer in tracers:
        tracer.keep_in_memory(touched)
        assigned |= tracer.assigned
    if runs_python:
        kept = [v for tracer in tracers for v, _ in tracer.of_variables.values()]
        for tracer in tracers:
            _keep_from_python(tracer.graph, kept)
    return list(assigned.values())


def _keep_from_python(graph, variables):
    """Makes Python in a graph raise where it changes one of these variables."""
    for node in graph.nodes:
        for part in node.graphs:
            _keep_from_python(part, variables)
        if node.runs_python and not node.graphs and variables:
            name = "call" if isinstance(node, Effect) else "function"
            setattr(node, name, _checked(node.name, getattr(node, name), variables))


def _checked(who, function, variables):
    def checked(*args):
        before = [variable._array for variable in variables]
        result = function(*args)
        changed = [(v, a) for v, a in zip(variables, before) if v._array is not a]
        for variable, array in changed:  # an error leaves all as it was
            variable._bind(array)
        for variable, _ in changed:
            raise TracingError(
                f"{who} changes the variable '{variable.path}', which is read in the same "
                "branch or loop under a tape that is outside of it: put the tape inside as "
                "well"
            )
        return result

    return checked


def numbers_of_variables(tracers):
    """Pairs of a variable that came in and the number of its input."""
    return [
        (variable, tracer.graph.inputs.index(value))
        for tracer in tracers
        for variable, value in tracer.of_variables.values()
    ]


def close(tracers, leading):
    """Ends the traces of one node; the tensors outside that all of them now take.

    ``leading[i]`` are the first inputs of graph ``i``; behind them comes one for each
    tensor that is returned, whether this graph uses it or not.
    """
    tensors, own = {}, []
    for tracer in tracers:
        _capture_for_custom_calls(tracer)
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


def _capture_for_custom_calls(tracer):
    """Lets in what the gradients of custom calls will use of the traces around."""
    for node in list(tracer.graph.nodes):
        if type(node) is CustomCall:
            for x in node.reach().values():
                if x.tracer is not tracer:
                    tracer.value_of(x)


# ---------------------------------------------------------------------------- nodes


class ControlNode(Node):
    """A node that runs graphs of its own."""

    __slots__ = ("graphs", "_touched")

    def __init__(self, graphs, specs, line=None):
        super().__init__(None, (), {}, line)
        self.graphs = tuple(graphs)
        nodes = [n for g in self.graphs for n in g.nodes]
        self._touched = (
            any(n.is_effect for n in nodes),
            _unique(v for n in nodes for v in n.reads),
            _unique(v for n in nodes for v in n.writes),
            any(n.runs_python for n in nodes),
        )
        self.give(specs)

    is_effect = property(lambda self: self._touched[0])
    reads = property(lambda self: self._touched[1])
    writes = property(lambda self: self._touched[2])
    runs_python = property(lambda self: self._touched[3])

    def append_to(self, tracer, tensors):
        """Becomes the next node of a trace; its outputs as tensors."""
        touched = (*self.reads, *self.writes)
        for variable in touched:
            tracer.store(variable)
        if isinstance(tracer, SubTracer):
            tracer.touch(touched)
        self.inputs = tuple([tracer.value_of(x) for x in tensors])
        self.line = tracer.here()
        outputs = tracer.append(self, self.outputs, True)
        for variable in self.writes:
            tracer.current.pop(id(variable), None)
            tracer.unread.discard(id(variable))
        return outputs

    def joined(self, inputs, more):
        """The inputs of a node that takes ``more`` of what effects gave."""
        return (*inputs, *more)

    def input_kinds(self):
        """Of each input the kind of dtype; of a list of arrays, that of its items."""
        return [spec_of(x)[1].kind for x in self.graphs[0].inputs]

    def output_kinds(self):
        """The same of each output."""
        return [v.dtype.kind for v in self.outputs]

    def kernel(self):
        """A function of arrays, for plans, that returns a tuple of arrays.

        They are new, or views of the inputs; if the node is an effect, all are new.
        """
        run = self.runner()
        if not self.is_effect:
            return run
        writes = self.writes

        def effect(*arrays):
            # What lies in the memory of a variable would change while it is needed.
            arrays = [
                a.copy() if any(np.may_share_memory(a, v._array) for v in writes) else a
                for a in arrays
            ]
            return tuple([_copied(a) for a in run(*arrays)])

        effect.__name__ = self.name
        return effect


def _copied(array):
    """A copy of an array; of a list of arrays, copies of these."""
    if array.dtype == object and not array.shape and isinstance(array.item(), Box):
        return boxed([np.array(item) for item in array.item().items])
    return np.array(array)


def _unique(variables):
    return tuple({id(v): v for v in variables}.values())


class Replay:
    """A graph as a function of arrays; each thread borrows an instance of its plan.

    The arrays are lent to it; it may write to those inputs that are ``owned`` only.
    """

    def __init__(self, graph, owned=()):
        self.plan = make_plan(graph, borrows=True, owned=owned)
        self.free = []

    def borrow(self):
        try:
            return self.free.pop()
        except IndexError:
            return self.plan.instance()

    def __call__(self, *arrays):
        run = self.borrow()
        try:
            return run(*arrays)
        except Exception as error:
            raise self.plan.explained(error) from None
        finally:
            self.free.append(run)


# -------------------------------------------------------------------------- effects


def split_effects(graph):
    """``(full, given, pure)``: what a gradient needs in order to run a graph again.

    ``full`` gives, behind its outputs, what effects and variables gave in it; ``pure``
    takes these, of the specs ``given``, behind its inputs, and has no effects itself:
    random numbers are not drawn, lines not printed once more. Both share their values
    with ``graph``.
    """
    full, pure, given = [], [], []
    for node in graph.nodes:
        if isinstance(node, ControlNode) and node.is_effect:
            with_more, specs, without = node.split()
            with_more.inputs, with_more.line = node.inputs, node.line
            more = [Value(*spec, with_more) for spec in specs]
            with_more.outputs = (*node.outputs, *more)
            given += more
            without.inputs, without.line = without.joined(node.inputs, more), node.line
            without.outputs = node.outputs
            full.append(with_more)
            pure.append(without)
            continue
        full.append(node)
        if isinstance(node, (Effect, Read)):
            given += node.outputs
        elif type(node) is ReadAgain:
            pure.append(_cut(node))
        elif type(node) is not Store:
            pure.append(node)
    outputs = list(graph.outputs)
    whole = graph.replaced(full, outputs + given)
    rest = graph.replaced(pure, outputs)
    rest.inputs = [*graph.inputs, *given]
    return whole, [spec_of(v) for v in given], rest


def _cut(node):
    """A variable read after its assignment: no gradient passes to what was assigned."""
    twin = Node(stop_gradient.primitive, node.inputs, {}, node.line)
    twin.outputs = node.outputs
    return twin
