"""`Graph`: a traced function as a list of nodes, in the order in which they ran.

A `Value` is an output of a node, or an input of the graph; a `Node` applies an op to
values (or to constants, which are plain tensors). The graph is in SSA form: an
assignment gives a variable another value, so that only few kinds of node access
variables: `Read`, `Write` at the end of a graph, and `Effect`, which is visible outside
the graph (an optimizer's update, random numbers, a printed line).
"""

from tapewright.core import hooks
from tapewright.core.errors import TracingError
from tapewright.core.tensor import Tensor

from .operations import GraphOperations


class Value:
    """An array of the graph: its shape and dtype, and the node that computes it."""

    __slots__ = ("shape", "dtype", "node", "name")

    def __init__(self, shape, dtype, node=None, name=None):
        self.shape, self.dtype = shape, dtype  # a tuple, a NumPy dtype
        self.node, self.name = node, name

    @property
    def nbytes(self):
        count = self.dtype.itemsize
        for n in self.shape:
            count *= n
        return count

    def __repr__(self):
        return f"<Value {self.name or ''} {self.dtype.name}{list(self.shape)}>"


def is_value(x):
    """Return whether an input of a node is a value; else it is a constant tensor."""
    return type(x) is Value


def spec_of(x):
    """Return the shape and dtype of a value or tensor."""
    x = x if type(x) is Value else x.array
    return x.shape, x.dtype


class Node:
    """An op on values and constants: ``outputs = op(*inputs, **attributes)``.

    ``line`` is the line of user code that called it.
    """

    __slots__ = ("op", "inputs", "attributes", "outputs", "line")

    is_effect = False
    is_host_call = False  # of Python code, which may read and assign any variable
    regions = ()  # graphs that a node of control flow runs
    is_alias = False  # its outputs are its first inputs; only tapes tell them apart
    donates = None  # the number of an input that its kernel overwrites and returns
    reads = writes = ()  # variables

    def __init__(self, op, inputs, attributes, line=None):
        self.op, self.inputs, self.attributes = op, inputs, attributes
        self.outputs, self.line = (), line

    @property
    def is_collective(self):
        """Return whether all processes of a job must run it, in the same order."""
        if self.op is not None:
            return self.op.collective
        return any([node.is_collective for part in self.regions for node in part.nodes])

    @property
    def is_kept(self):
        """Return whether it runs even if its outputs are not read."""
        return self.is_effect or self.is_collective

    def make_outputs(self, specs):
        """Create and return the outputs, with these ``(shape, dtype)`` pairs."""
        self.outputs = tuple([Value(shape, dtype, self) for shape, dtype in specs])
        return self.outputs

    @property
    def name(self):
        return self.op.name

    def check_regions(self):
        """Raise ``ValueError`` unless its regions match its inputs and outputs."""

    def narrowed(self, used):
        """Return a smaller node with only the ``used`` outputs, if it has regions; or None."""
        return None

    def __repr__(self):
        return f"<{type(self).__name__} {self.name}>"


class Read(Node):
    """The value of a variable at this point of the program."""

    __slots__ = ("variable",)

    def __init__(self, variable, line=None):
        super().__init__(None, (), {}, line)
        self.variable = variable
        self.make_outputs([(tuple(variable._array.shape), variable._array.dtype)])

    @property
    def name(self):
        return "read"

    @property
    def reads(self):
        return (self.variable,)


class ReadAgain(Node):
    """The value of a variable that was assigned before: an alias of that value.

    Gradients do not flow through assignments: for a tape it is a separate source.
    """

    __slots__ = ("variable",)
    is_alias = True

    def __init__(self, variable, value, line=None):
        super().__init__(None, (value,), {}, line)
        self.variable = variable
        self.make_outputs([(tuple(variable._array.shape), variable._array.dtype)])

    @property
    def name(self):
        return "read_again"

    def interpret(self, args, env):
        self.variable.assign(args[0])
        return (self.variable._tw_read_uncast(),)


class Write(Node):
    """Store a value in a variable."""

    __slots__ = ("variable",)
    is_effect = True

    def __init__(self, variable, value, line=None):
        super().__init__(None, (value,), {}, line)
        self.variable = variable

    @property
    def name(self):
        return "store"

    @property
    def writes(self):
        return (self.variable,)


class Effect(Node):
    """A call with side effects, ordered among all effects.

    A replay calls ``call(*arrays)``, which returns an array for each of ``specs``.
    ``reads`` and ``writes`` are the variables that it accesses in place. ``kind`` and
    ``attributes`` describe the call in plain values.
    """

    __slots__ = ("kind", "call", "_reads", "_writes")
    is_effect = True

    def __init__(
        self,
        kind,
        call,
        attributes,
        specs=(),
        reads=(),
        writes=(),
        inputs=(),
        line=None,
    ):
        super().__init__(None, tuple(inputs), attributes, line)
        self.kind, self.call = kind, call
        self._reads, self._writes = tuple(reads), tuple(writes)
        self.make_outputs(specs)

    @property
    def name(self):
        return self.kind

    @property
    def reads(self):
        return self._reads

    @property
    def writes(self):
        return self._writes

    def calling(self, call, inputs):
        """Return the node with another call and other inputs."""
        twin = Effect(
            self.kind, call, self.attributes, (), self.reads, self.writes, inputs,
            self.line,
        )  # fmt: skip
        twin.outputs = self.outputs
        return twin

    @property
    def is_host_call(self):
        """Return whether the call declares nothing: neither its reads nor its writes."""
        return not (self.attributes or self._reads or self._writes)


class Graph(GraphOperations):
    """Nodes in order, input values and outputs.

    ``inputs`` are values; ``captures`` maps further input values to tensors outside;
    ``outputs`` are values or constant tensors.
    """

    def __init__(self, name="graph", parent=None):
        self.name, self.parent = name, parent
        self.nodes, self.inputs, self.outputs = [], [], []
        self.captures = {}
        self.aliases = {}  # values of other graphs -> the same values in this graph
        self.finished = False
        self.fallback = None  # the error that ended the trace, if one did
        self.verified = set()  # nodes that `verify_graph` has found right

    def __str__(self):
        return hooks.graph_text.call(self)

    def variables(self):
        """Return the variables that the nodes read or write, each once, in that order."""
        variables = {}
        for node in self.nodes:
            for variable in (*node.reads, *node.writes):
                variables.setdefault(id(variable), variable)
        return list(variables.values())

    def live_values(self, outputs):
        """Return the values on which these outputs and all kept nodes depend."""
        live = {x for x in outputs if is_value(x)}
        for node in reversed(self.nodes):
            if node.is_kept or not live.isdisjoint(node.outputs):
                live.update([x for x in node.inputs if is_value(x)])
        return live

    def ancestors(self, outputs):
        """Return the part that computes these outputs, with the inputs that it needs."""
        part, needed = Graph(self.name), {x for x in outputs if is_value(x)}
        for node in reversed(self.nodes):
            if not needed.isdisjoint(node.outputs):
                part.nodes.append(node)
                needed.update([x for x in node.inputs if is_value(x)])
        part.nodes.reverse()
        made = {out for node in part.nodes for out in node.outputs}
        part.inputs, part.outputs = [x for x in needed if x not in made], list(outputs)
        part.finished = True
        return part

    def replaced(self, nodes, outputs=None):
        """Return a graph with the same inputs and other nodes."""
        twin = Graph(self.name, self.parent)
        twin.nodes, twin.inputs = nodes, self.inputs
        twin.captures, twin.finished = self.captures, self.finished
        twin.aliases, twin.verified = self.aliases, self.verified
        twin.outputs = self.outputs if outputs is None else outputs
        return twin

    def within(self, other):
        """Return whether this is a region of another graph, at any depth."""
        graph = self.parent
        while graph is not None and graph is not other:
            graph = graph.parent
        return graph is other

    def check(self):
        """Raise ``TracingError`` unless every value is defined once, before its uses."""
        known = {*self.inputs, *self.captures}
        for node in self.nodes:
            for x in node.inputs:
                if is_value(x) and x not in known:
                    raise TracingError(f"{node} uses {x} before it is made")
                if not is_value(x) and not isinstance(x, Tensor):
                    raise TracingError(f"{node} has an input of {type(x).__name__}")
            for out in node.outputs:
                if out in known:
                    raise TracingError(f"{node} makes {out} again")
            known.update(node.outputs)
        for x in self.outputs:
            if is_value(x) and x not in known:
                raise TracingError(f"the output {x} is not made in {self.name}")


def reads_by_time(graph):
    """Return ``(initial, later, inner)``: the nodes that read variables.

    Initial reads see the value from before the graph runs; later reads follow an
    assignment to the variable, or any effect; inner reads are in regions.
    """
    initial, later, inner = [], [], []
    written, seen_effect = set(), False
    for node in graph.nodes:
        if type(node) is ReadAgain:
            later.append(node)
        elif type(node) is Read:
            is_late = seen_effect or id(node.variable) in written
            (later if is_late else initial).append(node)
        for part in node.regions:
            inner += [read for reads in reads_by_time(part) for read in reads]
        written.update([id(v) for v in node.writes])
        seen_effect = seen_effect or (node.is_effect and type(node) is not Write)
    return initial, later, inner
