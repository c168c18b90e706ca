"""The traced program: a `Graph` is a list of nodes in the order in which they ran.

A `Value` is what a node gives, or an input of the graph; a `Node` applies an op to values
(or to constants, which are plain tensors). Everything is written once: a variable that is
assigned to stands for another value from there on, so that only three kinds of node know
of variables: `Read`, `Store` at the end of a program, and `Effect`, what the world
outside notices (an optimizer's update, random numbers drawn, a line printed).
"""

import itertools

from tapewright.core.errors import TracingError
from tapewright.core.tensor import Tensor

__all__ = [
    "Effect",
    "Graph",
    "Node",
    "Read",
    "ReadAgain",
    "Store",
    "Value",
    "is_value",
    "reads_by_time",
    "spec_of",
]


class Value:
    """An array that is not there yet: its shape and dtype, and the node that gives it."""

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
    """Shape and dtype of a value or tensor."""
    x = x if type(x) is Value else x.array
    return x.shape, x.dtype


class Node:
    """An op on values and constants: ``outputs = op(*inputs, **attributes)``.

    ``line`` is the user's line that called it.
    """

    __slots__ = ("op", "inputs", "attributes", "outputs", "line")

    is_effect = False
    is_host_call = False  # of Python that may look at variables, and assign to any
    regions = ()  # graphs that a node of control flow runs
    is_alias = False  # its outputs are its first inputs; only tapes tell them apart
    overwrites = None  # the number of an input that its kernel changes and hands on
    reads = writes = ()  # variables

    def __init__(self, op, inputs, attributes, line=None):
        self.op, self.inputs, self.attributes = op, inputs, attributes
        self.outputs, self.line = (), line

    def give(self, specs):
        """Makes the outputs, of these ``(shape, dtype)``."""
        self.outputs = tuple([Value(shape, dtype, self) for shape, dtype in specs])
        return self.outputs

    @property
    def name(self):
        return self.op.name

    def check_regions(self):
        """Raise ``ValueError`` unless its regions fit its inputs and outputs."""

    def narrowed(self, used):
        """A smaller node that gives the ``used`` outputs, if it has regions; or None."""
        return None

    def __repr__(self):
        return f"<{type(self).__name__} {self.name}>"


class Read(Node):
    """The value of a variable at this point of the program."""

    __slots__ = ("variable",)

    def __init__(self, variable, line=None):
        super().__init__(None, (), {}, line)
        self.variable = variable
        self.give([(tuple(variable._array.shape), variable._array.dtype)])

    @property
    def name(self):
        return "read"

    @property
    def reads(self):
        return (self.variable,)


class ReadAgain(Node):
    """The value of a variable that was assigned to before: that value, for a replay.

    For a tape it is where a path starts: an assignment is nothing that it sees.
    """

    __slots__ = ("variable",)
    is_alias = True

    def __init__(self, variable, value, line=None):
        super().__init__(None, (value,), {}, line)
        self.variable = variable
        self.give([(tuple(variable._array.shape), variable._array.dtype)])

    @property
    def name(self):
        return "read_again"

    def interpret(self, args, env):
        self.variable.assign(args[0])
        return (self.variable.read(),)


class Store(Node):
    """A value becomes that of a variable."""

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
    """A call of the world outside, in its place in the order of all effects.

    ``call(*arrays)`` is what a replay does; it returns as many arrays as ``specs`` has.
    ``reads`` and ``writes`` are the variables that it touches by itself. ``kind`` and
    ``attributes`` say in plain values what is done.
    """

    __slots__ = ("kind", "call", "_reads", "_writes")
    is_effect = True

    def __init__(self, kind, call, inputs, attributes, specs, reads, writes, line=None):
        super().__init__(None, tuple(inputs), attributes, line)
        self.kind, self.call = kind, call
        self._reads, self._writes = tuple(reads), tuple(writes)
        self.give(specs)

    @property
    def name(self):
        return self.kind

    @property
    def reads(self):
        return self._reads

    @property
    def writes(self):
        return self._writes

    @property
    def is_host_call(self):
        """Nothing says what the call does."""
        return not (self.attributes or self._reads or self._writes)


class Graph:
    """Nodes in order, the values that they start from, and what comes out.

    ``inputs`` are values; ``captures`` maps further ones to the tensors outside for which
    they stand; ``outputs`` are values or constant tensors.
    """

    def __init__(self, name="graph", parent=None):
        self.name, self.parent = name, parent
        self.nodes, self.inputs, self.outputs = [], [], []
        self.captures = {}
        self.aliases = {}  # values of other graphs -> those that stand for them here
        self.finished = False
        self.fallback = None  # the error that ended the trace, if one did
        self.passes = ()  # names of those that made it of the graph as it was traced

    def variables(self):
        """The variables that the program reads or writes, each once, in that order."""
        found = {}
        for node in self.nodes:
            for variable in (*node.reads, *node.writes):
                found.setdefault(id(variable), variable)
        return list(found.values())

    def uses(self):
        """Count how often each value is an input or output: value -> count."""
        count = {}
        for x in itertools.chain(*[n.inputs for n in self.nodes], self.outputs):
            if is_value(x):
                count[x] = count.get(x, 0) + 1
        return count

    def live_values(self, outputs):
        """The values on which these outputs, and all effects, depend."""
        live = {x for x in outputs if is_value(x)}
        for node in reversed(self.nodes):
            if node.is_effect or not live.isdisjoint(node.outputs):
                live.update([x for x in node.inputs if is_value(x)])
        return live

    def replaced(self, nodes, outputs=None):
        """A graph with the same inputs and other nodes."""
        twin = Graph(self.name, self.parent)
        twin.nodes, twin.inputs = nodes, self.inputs
        twin.captures, twin.finished = self.captures, self.finished
        twin.aliases = self.aliases
        twin.outputs = self.outputs if outputs is None else outputs
        return twin

    def within(self, other):
        """Return whether it is a region in another graph, at any depth."""
        graph = self.parent
        while graph is not None and graph is not other:
            graph = graph.parent
        return graph is other

    def check(self):
        """Raises ``TracingError`` unless every value is made before it is used, once."""
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
    """``(initial, later, inner)``: the nodes that read variables.

    Those that see what a variable holds before the graph runs; those after an assignment
    to it, or after an effect of any kind; those in graphs of other nodes.
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
        seen_effect = seen_effect or (node.is_effect and type(node) is not Store)
    return initial, later, inner
