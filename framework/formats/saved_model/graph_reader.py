"""Read graphs from the JSON of `graph_writer`, in untrusted files.

Every op is looked up among the registered ops, its attributes are plain values, and its
shape rule is evaluated again: the outputs of a node must match the file. Text of the
file never becomes code: generated source contains only numbers and names made of
letters.
"""

import math
from collections import ChainMap

from tapewright.compiler.control_flow.cond_node import Cond
from tapewright.compiler.control_flow.loop_node import LoopNode
from tapewright.compiler.program.instructions.variable_update import VariableUpdate
from tapewright.compiler.tracing.custom_calls import CustomCall
from tapewright.compiler.tracing.graph import (
    Effect,
    Graph,
    Node,
    Read,
    ReadAgain,
    Value,
    Write,
    spec_of,
)
from tapewright.compiler.tracing.graph_verifier import check_fits
from tapewright.compiler.tracing.tracer import SymbolicTensor, Tracer
from tapewright.core.errors import GradientLookupError, SavingError
from tapewright.core.primitive import Primitive, get_primitive
from tapewright.core.shapes.symbolic_shape import definitely_equal, has_symbolic_shape

from .graph_checks import (
    check_plain,
    check_settings,
    dims_of,
    identifier,
    message_of,
    name_or_none,
    rule_spec,
    short_text,
)
from .graph_writer import known_gradient
from .saved_effects import make_effect
from .symbolic_dims import decode_shape
from .values import decode, decode_dtype, item_of

DEEPEST = 60  # graphs in graphs
LARGEST = 1 << 42  # bytes of one value
FAULTS = (
    TypeError, ValueError, LookupError, ArithmeticError, AttributeError, RecursionError,
    NotImplementedError, MemoryError,
)  # fmt: skip


class LostGradientError(GradientLookupError):
    """A custom gradient is not in the file."""

    def __init__(self, title, reason):
        LookupError.__init__(
            self,
            "No gradient defined for operation 'IdentityN' (op type: IdentityN): the "
            f"gradient of {title} {reason}",
        )


class GraphReader:
    """Build the graph of one trace.

    ``item`` is the group that it is from, for errors; ``variables`` is a list of the
    variables that it may access; ``constants`` is a `ConstantReader`; ``scope`` is the
    `Guards` of the trace; ``optimizers`` is a list of the optimizers that it may run.
    """

    def __init__(self, item, variables, constants, scope=None, optimizers=()):
        self.item, self.variables, self.constants = item, variables, constants
        self.scope, self.optimizers = scope, optimizers
        self._next = 0
        self._location = "graph"

    def graph(self, form):
        """Return the graph of a form; raise `SavingError` if it is invalid."""
        try:
            return self._graph(form)
        except SavingError:
            raise
        except FAULTS as error:
            return self.item.fail(f"{self._location}: {message_of(error)}", "graph")
        finally:
            if self.scope is not None:
                self.scope.closed = True

    def _graph(self, form, parent=None, outer=None, depth=0):
        if depth > DEEPEST:
            raise ValueError(f"graphs are nested deeper than {DEEPEST}")
        graph, first = Graph(short_text(form["name"]), parent), self._next
        tracer = Tracer(graph)
        known = ChainMap({}) if outer is None else outer.new_child()
        for dtype, shape, name in form["inputs"]:
            value = Value(*self._spec(dtype, shape), None, name_or_none(name))
            graph.inputs.append(value)
            self._give(value, known, tracer)
        for i, each in enumerate(form["nodes"]):
            self._location = f"node {i} of {graph.name!r}"
            node = self._node(each, known, tracer, depth)
            self._location = f"node {i} of {graph.name!r}"
            self._check_given(node, each)
            for out in node.outputs:
                out.name = f"{node.name}_{i}"
                self._give(out, known, tracer)
            graph.nodes.append(node)
        self._location = f"the outputs of {graph.name!r}"
        graph.outputs = [self._taken(x, known, tracer) for x in form["outputs"]]
        graph.finished, self._next = True, first
        graph.check()
        return graph

    # --- values

    def _spec(self, dtype, shape):
        shape, dtype = decode_shape(shape, self.scope), decode_dtype(dtype)
        if (
            not has_symbolic_shape(shape)
            and math.prod(shape) * max(dtype.itemsize, 1) > LARGEST
        ):
            raise ValueError(f"a value of shape {shape} is too large")
        return shape, dtype

    def _give(self, value, known, tracer):
        known[self._next] = value, tracer
        self._next += 1

    def _taken(self, x, known, tracer):
        """Return the value or constant of an input of a node."""
        if isinstance(x, str) and x[:1] == "c" and x[1:].isdecimal():
            return self.constants[int(x[1:])]
        if type(x) is not int or x not in known:
            raise ValueError(f"uses {x!r} before it is computed")
        value, own = known[x]
        if own is not tracer:  # of a graph around: it becomes an input here
            outer = SymbolicTensor(value, own)
            value = Value(value.shape, value.dtype, None, "captured")
            tracer.graph.captures[value] = outer
            known[x] = value, tracer
        return value

    def _variable(self, number):
        return item_of(self.variables, number, "variable")

    def _optimizer(self, number):
        return item_of(self.optimizers, number, "optimizer")

    def _check_given(self, node, form):
        """Check that the outputs have the shapes and dtypes in the file."""
        said = [self._spec(*each) for each in form.get("out", ())]
        if len(said) != len(node.outputs):
            raise ValueError(
                f"returns {len(node.outputs)} values, but the file declares {len(said)}"
            )
        for (shape, dtype), value in zip(said, node.outputs):
            if dtype != value.dtype or not definitely_equal(shape, value.shape):
                raise ValueError(
                    f"returns {value.dtype} of shape {value.shape}, but the file "
                    f"declares {dtype} of shape {shape}"
                )

    # --- nodes

    def _node(self, form, known, tracer, depth):
        inputs = [self._taken(x, known, tracer) for x in form.get("in", ())]
        line = form.get("line")
        line = line if isinstance(line, str) and line.isprintable() else None
        for kind, make in self._KINDS.items():
            if kind in form:
                return make(self, form, inputs, line, known, tracer, depth)
        raise ValueError(f"is of an unknown kind: {sorted(form)[:8]}")

    def _op(self, form, inputs, line, *_):
        try:
            op = get_primitive(form["op"])
        except ValueError:
            raise ValueError(
                f"the op {form['op']!r} is not defined here: define it before loading"
            ) from None
        if not isinstance(op, Primitive) or op.infer_rule is None:
            raise ValueError(f"the op {form['op']!r} cannot be in a graph")
        self._location += f", {op.name}"
        attributes = self._attributes(op, form["attributes"])
        if not op.variadic and len(inputs) != len(op.inputs):
            raise ValueError(f"takes {len(op.inputs)} inputs, got {len(inputs)}")
        specs = [rule_spec(x) for x in inputs]
        outputs = op.infer_rule(*specs, **attributes)
        many = type(outputs) in (tuple, list)
        node = Node(op, tuple(inputs), attributes, line)
        node.make_outputs(
            [
                (dims_of(s.shape), s.dtype.dtype)
                for s in (outputs if many else (outputs,))
            ]
        )
        return node

    def _attributes(self, op, given):
        if set(given) != set(op.attributes):
            raise ValueError(f"must have the attributes {list(op.attributes)}")
        attributes = {}
        for name in op.attributes:
            value = decode(given[name], self.scope)
            check_plain(value)
            convert = op.convert.get(name)
            attributes[name] = value if convert is None else convert(value)
        return attributes

    def _read(self, form, inputs, line, *_):
        return Read(self._variable(form["read"]), line)

    def _read_again(self, form, inputs, line, *_):
        variable, (value,) = self._variable(form["read_again"]), inputs
        check_fits(variable, value)
        return ReadAgain(variable, value, line)

    def _store(self, form, inputs, line, *_):
        variable, (value,) = self._variable(form["store"]), inputs
        check_fits(variable, value)
        return Write(variable, value, line)

    def _effect(self, form, inputs, line, *_):
        kind, attributes = form["effect"], decode(form["attributes"])
        lookups = self._variable, self._optimizer
        call = make_effect(kind, attributes, inputs, *lookups)
        if not isinstance(call, VariableUpdate):
            return Effect(kind, call, attributes, inputs=inputs, line=line)
        return Effect(kind, call, {}, (), call.reads, call.writes, inputs, line)

    # --- gradients of the user's own

    def _custom(self, form, inputs, line, known, tracer, depth):
        count, given, taken = form["outputs"], [], form["outputs"]
        if type(count) is not int or not 0 <= count <= len(inputs):
            raise ValueError("returns more values than it is given")
        for source in form["sources"]:
            if isinstance(source, dict):
                given.append(self._variable(source["variable"]))
            elif source is None:
                given.append(None)
            else:
                if source != taken or taken >= len(inputs):
                    raise ValueError(f"has no input {source!r} as its next source")
                given.append(inputs[source])
                taken += 1
        if taken != len(inputs):
            raise ValueError("has inputs that are not sources")
        variables = [self._variable(n) for n in form["variables"]]
        title = short_text(form["custom"])
        node = CustomCall(
            tracer, title, inputs[:count], given, variables, _Lost(title), line
        )
        gradient = form["gradient"]
        if "left_out" in gradient:
            kept = known_gradient(gradient["left_out"])
            if kept is None:
                node.gradient.reason = (
                    "was left out of the file (experimental_custom_gradients=False)"
                )
                return node
            gradient = kept
        if "missing" in gradient:
            reason = str(gradient["missing"])[:2000]
            node.gradient.reason = f"is not in the file: {reason}"
            return node
        node._backward = self._backward(gradient, node, known, tracer, depth)
        return node

    def _backward(self, form, node, known, tracer, depth):
        graph = self._graph(form["graph"], tracer.graph, known, depth + 1)
        positions, wanted = form["places"], len(node.sources) + len(node.variables)
        if [spec_of(x)[1] for x in graph.inputs] != [v.dtype for v in node.outputs]:
            raise ValueError("a gradient must take a cotangent for each output")
        for x, v in zip(graph.inputs, node.outputs):
            if not definitely_equal(x.shape, v.shape):
                raise ValueError("a cotangent must have the shape of its output")
        numbers = range(len(graph.outputs))
        if len(positions) != wanted or any(
            p is not None and p not in numbers for p in positions
        ):
            raise ValueError("a gradient must have a place for each source")
        return graph, list(positions)

    # --- branches and loops

    def _graphs(self, form, tracer, depth):
        graphs = [self._graph(g, tracer.graph, None, depth + 1) for g in form["graphs"]]
        if not graphs or any(g.captures for g in graphs):
            raise ValueError("must have graphs, of inputs only")
        size = len(graphs[0].inputs)
        pairs = [(self._variable(v), n) for v, n in form["of_variables"]]
        if any(type(n) is not int or not 0 <= n < size for _, n in pairs):
            raise ValueError("a variable must be one of the inputs")
        return graphs, pairs

    def _cond(self, form, inputs, line, known, tracer, depth):
        graphs, pairs = self._graphs(form, tracer, depth)
        node = Cond(graphs, pairs, identifier(form["cond"]), line)
        node.inputs = tuple(inputs)
        node.check_regions()
        return node

    def _loop(self, form, inputs, line, known, tracer, depth):
        graphs, pairs = self._graphs(form, tracer, depth)
        settings = dict(form["settings"])
        variables = [self._variable(n) for n in settings.pop("variables")]
        settings = {name: decode(x, self.scope) for name, x in settings.items()}
        title = identifier(form["loop"])
        check_settings(settings)
        node = LoopNode(
            graphs,
            line,
            **settings,
            variables=variables,
            of_variables=pairs,
            title=title,
        )
        node.inputs = tuple(inputs)
        node.check_regions()
        return node

    _KINDS = {
        "op": _op, "read": _read, "store": _store, "read_again": _read_again,
        "effect": _effect, "custom": _custom, "cond": _cond, "loop": _loop,
    }  # fmt: skip


class _Lost:
    """The gradient of a call that the file does not contain."""

    def __init__(self, title):
        self.title, self.reason = title, None

    def __call__(self, *cotangents, variables=None):
        raise LostGradientError(self.title, self.reason)
