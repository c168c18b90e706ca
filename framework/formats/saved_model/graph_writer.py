"""Write a graph as JSON: nodes in order, each with its inputs and outputs.

Values are numbered in order: the inputs of a graph first, then the outputs of each
node. A nested graph continues the numbers of the enclosing graph; after the node they
are free again. An input of a node is such a number, or ``"c3"`` for constant 3.

    {"op": "matmul", "in": [0, "c1"], "attributes": {...}, "out": [["float32", [2, 3]]]}
    {"read": 0, "out": [...]}                        the value of variable 0
    {"store": 0, "in": [4]}    {"read_again": 0, "in": [4], "out": [...]}
    {"effect": "print", "in": [4], "attributes": {...}}
    {"custom": "clip", "in": [4, 2], "outputs": 1, "sources": [1], "gradient": {...}}
    {"cond": "cond", "in": [...], "graphs": [...]}   {"loop": "while_loop", ...}

``gradient`` is the graph of the gradient function of a call (`custom_gradient`), which
may use values of the enclosing graphs, and the positions of its results.
"""

import secrets
from collections import ChainMap, OrderedDict

from tapewright.compiler.control_flow.cond_node import Cond
from tapewright.compiler.control_flow.host_calls import PythonCall
from tapewright.compiler.control_flow.loop_node import LoopNode
from tapewright.compiler.function.coverage import reason_of
from tapewright.compiler.tracing.custom_calls import CustomCall, finish_gradients
from tapewright.compiler.tracing.graph import (
    Effect,
    Graph,
    Node,
    Read,
    ReadAgain,
    Write,
    is_value,
)
from tapewright.compiler.tracing.tracer import SymbolicTensor, Tracer
from tapewright.core.errors import GradientLookupError, SavingError, TracingError
from tapewright.core.interpreters import use_interpreters
from tapewright.core.nest import flatten, is_nested
from tapewright.core.op_definition.op_registry import get_primitive
from tapewright.core.op_definition.user_gradients import OpCall

from .saved_effects import describe_effect
from .symbolic_dims import encode_shape
from .values import encode, encode_dtype

# Behind the reason of a failed trace, whose advice may be a `py_function`.
ONLY_OPS = "A file can contain only ops, no py_function"

# Gradients of gradient functions, and so on, are kept up to this order.
ORDERS = 4
# Gradients that were left out of files, and that this process still knows.
_KNOWN = OrderedDict()
MANY_KNOWN = 10_000


def known_gradient(key):
    """Return the form of a gradient left out of a file, or None in another process."""
    return _KNOWN.get(key) if isinstance(key, str) else None


class GraphWriter:
    """Build the form of one trace.

    ``path`` is the file, for messages; ``variables`` is a list, to which the variables
    of the graph are appended; ``constants`` is a `ConstantWriter`; ``gradients`` says
    whether custom gradients are written; ``scope`` is the `Guards` of the trace;
    ``optimizers`` is an `OptimizerWriter`, or None if the file cannot hold optimizers.
    """

    def __init__(
        self, path, variables, constants, gradients=True, scope=None, optimizers=None
    ):
        self.path, self.variables, self.constants = path, variables, constants
        self.gradients, self.scope, self.optimizers = gradients, scope, optimizers
        self._numbers = {id(v): n for n, v in enumerate(variables)}
        self._next = 0
        self._line = None

    def form(self, graph):
        """Return a graph and its nested graphs as JSON.

        Raises:
            SavingError: If the graph cannot be saved; it names the line of user code.
        """
        if self.scope is not None:
            self.scope.closed = False  # what gradients assume of sizes is noted, too
        try:
            return self._graph(graph)
        except SavingError:
            raise
        except (TypeError, ValueError, LookupError) as error:
            raise self._refused(str(error)) from error
        finally:
            if self.scope is not None:
                self.scope.closed = True

    def _refused(self, reason, line=None):
        line = line or self._line
        where = f"{line}: " if line and not reason.startswith(line) else ""
        return SavingError(self.path, f"{where}{reason}")

    # --- graphs

    def _graph(self, graph, outer=None, order=0):
        known = ChainMap({}) if outer is None else outer.new_child()
        first = self._next
        inputs = [self._give(v, known) for v in graph.inputs]
        for value, tensor in graph.captures.items():
            known[value] = self._captured(tensor, known, graph)
        for other, value in graph.aliases.items():
            if other not in known and value in known:
                known[other] = known[value]
        nodes = []
        for node in graph.nodes:
            self._line = node.line
            nodes += self._node(node, known, graph, order)
        outputs = [self._reference(x, known) for x in graph.outputs]
        self._next = first
        return {
            "name": graph.name,
            "inputs": [[*spec, v.name] for spec, v in zip(inputs, graph.inputs)],
            "nodes": nodes,
            "outputs": outputs,
        }

    def _captured(self, tensor, known, graph):
        """Return the outer value that a captured value represents, or a constant."""
        if isinstance(tensor, SymbolicTensor):
            if tensor.symbol in known:
                return known[tensor.symbol]
            raise TracingError(
                f"'{graph.name}' uses {tensor} of another trace: pass it as an argument"
            )
        return f"c{self.constants.number(tensor)}"

    def _give(self, value, known):
        """Number a value; return its dtype and shape."""
        known[value] = self._next
        self._next += 1
        return [encode_dtype(value.dtype), encode_shape(value.shape)]

    def _reference(self, x, known):
        if not is_value(x):
            return f"c{self.constants.number(x)}"
        if x not in known:
            raise TracingError(f"{x} comes from outside this function")
        return known[x]

    def variable(self, variable):
        """Return the number of a variable."""
        number = self._numbers.get(id(variable))
        if number is None:
            number = self._numbers[id(variable)] = len(self.variables)
            self.variables.append(variable)
        return number

    def _optimizer(self, optimizer):
        if self.optimizers is None:
            raise TracingError(
                "apply_gradients: this file cannot hold an optimizer; save functions "
                "that update variables with saved_model.save"
            )
        return self.optimizers.number(optimizer)

    # --- nodes

    def _node(self, node, known, graph, order):
        """Return the forms of a node: one, or two for an op with a custom gradient."""
        taken = [self._reference(x, known) for x in node.inputs]
        kind = type(node)
        more = []
        if kind is Node:
            form = {"op": _name_of(node.op), "in": taken}
            form["attributes"] = {k: encode(v) for k, v in node.attributes.items()}
        elif kind is Read:
            form = {"read": self.variable(node.variable)}
        elif kind is ReadAgain:
            form = {"read_again": self.variable(node.variable), "in": taken}
        elif kind is Write:
            form = {"store": self.variable(node.variable), "in": taken}
        elif kind is Effect:
            form = {"effect": node.kind, "in": taken}
            attributes = describe_effect(node, self.variable, self._optimizer)
            form["attributes"] = encode(attributes)
        elif kind is CustomCall:
            form = self._custom_call(node, taken, known, order)
        elif kind is Cond:
            form = {"cond": node.title, "in": taken, **self._graphs(node, order)}
        elif kind is LoopNode:
            form = {"loop": node.title, "in": taken, **self._graphs(node, order)}
            form["settings"] = self._settings(node)
        elif kind is PythonCall:
            raise TracingError(
                f"{node.title} runs Python code, which cannot be saved: use ops instead"
            )
        else:
            raise TracingError(f"{node.name} cannot be saved")
        out = [self._give(v, known) for v in node.outputs]
        if out:
            form["out"] = out
        if node.line:
            form["line"] = node.line
        if kind is Node and node.op.registered is not None:
            more = self._registered(node, known, graph, order)
        return [form, *more]

    def _graphs(self, node, order):
        graphs = [self._graph(graph, None, order) for graph in node.regions]
        pairs = [[self.variable(v), n] for v, n in node.of_variables]
        return {"graphs": graphs, "of_variables": pairs}

    def _settings(self, loop):
        settings = {}
        for name in loop.SETTINGS:
            value = getattr(loop, name)
            if name == "variables":
                settings[name] = [self.variable(v) for v in value]
            elif name not in ("of_variables", "title"):
                settings[name] = encode(value)
        return settings

    # --- gradients of the user's own

    def _custom_call(self, node, taken, known, order):
        sources = []
        for source in node.sources:
            if source is None or type(source) is int:
                sources.append(source)
            else:
                sources.append({"variable": self.variable(source)})
        form = {
            "custom": node.title,
            "in": taken,
            "outputs": len(node.outputs),
            "sources": sources,
            "variables": [self.variable(v) for v in node.variables],
        }
        form["gradient"] = self._gradient(node.title, node.backward, known, order)
        return form

    def _gradient(self, title, trace, known, order):
        """Return the form of a gradient: a graph with positions, or why it is missing."""
        if order >= ORDERS:
            return {"missing": f"gradients of {title} are saved up to order {ORDERS}"}
        line = self._line
        try:
            graph, positions = trace()
            form = self._graph(graph, known, order + 1)
            form = {"graph": form, "places": list(positions)}
        except Exception as error:
            self._line = line
            if self.gradients and not order and not _is_missing(error):
                raise self._refused(
                    f"the gradient function of {title} cannot be traced: "
                    f"{reason_of(error)}. {ONLY_OPS}"
                ) from error
            form = {"missing": str(error)}
        self._line = line
        if self.gradients or order:
            return form
        return {"left_out": _remembered(form)}

    def _registered(self, node, known, graph, order):
        """Return a call with the gradient registered for a node's op.

        See `RegisterGradient`.
        """
        outputs = [known[v] for v in node.outputs]
        taken = [self._reference(x, known) for x in node.inputs]
        form = {
            "custom": node.op.name,
            "in": [*outputs, *taken],
            "outputs": len(outputs),
            "sources": [len(outputs) + i for i in range(len(taken))],
            "variables": [],
            "gradient": self._gradient(
                node.op.type_name, lambda: _traced_gradient(node, graph), known, order
            ),
        }
        form["out"] = [self._give(v, known) for v in node.outputs]
        if node.line:
            form["line"] = node.line
        return [form]


def _name_of(op):
    """Return the name of an op, under which a file finds it again."""
    if get_primitive(op.name) is not op:
        raise TracingError(
            f"the op {op.name!r} of this trace is no longer the op with that name, "
            "which a file would run: give each op a unique name"
        )
    return op.name


def _is_missing(error):
    """Return whether a loaded function has lost the gradient: its file left it out."""
    return isinstance(error, GradientLookupError)


def _remembered(form):
    """Return the key under which this process keeps a gradient that is not written."""
    key = secrets.token_hex(16)
    _KNOWN[key] = form
    while len(_KNOWN) > MANY_KNOWN:
        _KNOWN.popitem(last=False)
    return key


def _traced_gradient(node, graph):
    """Return the graph of the gradient registered for a node's op, and its positions."""
    around, twin = Tracer(graph), Graph(f"gradient of {node.op.name}", parent=graph)
    tracer = Tracer(twin)

    def shown(x):
        return SymbolicTensor(x, around) if is_value(x) else x

    with use_interpreters((tracer,)):
        cotangents = [tracer.input(v.shape, v.dtype) for v in node.outputs]
        call = OpCall(
            node.op,
            [shown(x) for x in node.inputs],
            tuple([shown(v) for v in node.outputs]),
            node.attributes,
        )
        answer = node.op.registered(call, *cotangents)
        answer = flatten(answer) if is_nested(answer) else [answer]
        return twin, finish_gradients(tracer, answer)
