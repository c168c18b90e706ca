"""`CustomCall`: the node of a call with a custom gradient.

In a replay it is an alias of the outputs of the ops inside the call. If the graph is
interpreted under a tape, the tape records the call with its gradient function, which is
also a graph.
"""

import threading

from tapewright.autodiff.custom_gradient import (
    call_gradient_function,
    record_custom_call,
)
from tapewright.core.errors import TracingError
from tapewright.core.interpreters import active_tracer, use_interpreters
from tapewright.core.shapes.symbolic_shape import sizes_in_use, with_sizes
from tapewright.core.shapes.tensor_shape import TensorShape
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.variable import Variable

from .graph import Graph, Node, is_value
from .interpret import interpret

# The order of gradients up to which the values that they use are found.
DEPTH = 4


def finish_gradients(tracer, gradients):
    """End the trace of a gradient function; return the output index of each, or None."""
    outputs, positions = [], []
    for gradient in gradients:
        positions.append(None if gradient is None else len(outputs))
        if gradient is not None:
            outputs.append(convert_to_tensor(gradient))
    tracer.finish(outputs)
    return positions


class CustomCall(Node):
    """``outputs``, with a gradient defined by a Python function or a graph.

    ``sources`` are the arguments of the call: the numbers of their values among the
    inputs, variables, or None for anything else. ``variables`` are the variables read
    inside, for which ``gradient`` also returns gradients.
    """

    __slots__ = (
        "tracer",
        "title",
        "sources",
        "variables",
        "gradient",
        "_backward",
        "_failure",
        "_lock",
    )
    is_alias = True

    def __init__(self, tracer, title, values, sources, variables, gradient, line=None):
        inputs, self.sources = list(values), []
        for x in sources:
            if is_value(x) or isinstance(x, Tensor):
                self.sources.append(len(inputs))
                inputs.append(x)
            else:
                self.sources.append(x if isinstance(x, Variable) else None)
        super().__init__(None, tuple(inputs), {}, line)
        self.tracer, self.title = tracer, title
        self.variables, self.gradient = list(variables), gradient
        self._backward = self._failure = None
        self._lock = threading.RLock()
        specs = [x if is_value(x) else x.array for x in values]
        self.make_outputs([(x.shape, x.dtype) for x in specs])

    @property
    def name(self):
        return "custom_call"

    def backward(self):
        """Return the graph of the gradient function, and the output index of each gradient.

        Its inputs are the cotangents of the outputs; other values of the call's graph
        that it uses are captured. It is traced on first use. Raises what the gradient
        function raises.
        """
        failure = self.failure()
        if failure is not None:
            raise failure
        return self._backward

    def failure(self):
        """Trace the gradient function; return the exception that it raises, or None."""
        with self._lock:
            if self._backward is None and self._failure is None:
                try:
                    self._backward = self._traced()
                except Exception as error:  # user code; raised when it is asked for
                    self._failure = error
            return self._failure

    @property
    def has_gradient(self):
        """Return whether the gradients have the shapes of the sources."""
        if self.failure() is not None:
            return False
        graph, positions = self._backward
        sources = [self.inputs[s] if type(s) is int else s for s in self.sources]
        return all(
            position is None
            or source is None
            or TensorShape(graph.outputs[position].shape).is_compatible_with(
                source.shape
            )
            for position, source in zip(
                positions, [*sources, *self.variables], strict=True
            )
        )

    def _traced(self):
        graph = Graph(f"gradient of {self.title}", parent=self.tracer.graph)
        tracer = type(self.tracer)(graph)
        tracer.outer = self.tracer
        with use_interpreters((tracer,)):
            cotangents = [
                tracer.input(v.shape, v.dtype, f"cotangent_{i}")
                for i, v in enumerate(self.outputs)
            ]
            answer = call_gradient_function(
                self.gradient, cotangents, len(self.sources), self.variables, self.title
            )
            return graph, finish_gradients(tracer, answer)

    def interpret(self, args, env):
        """Return the outputs for these values, recorded on tapes as one call."""
        sources = [args[s] if type(s) is int else s for s in self.sources]
        if active_tracer() is None:
            # Else it would keep all that the function has computed.
            env = {symbol: env[symbol] for symbol in self.reach() if symbol in env}
        gradient = _Gradient(self, env)
        outputs = args[: len(self.outputs)]
        return record_custom_call(
            self.title, sources, self.variables, outputs, gradient
        )

    def reach(self):
        """Find the symbols that its gradients of all orders use: symbol -> tensor.

        The search ends at the first order that adds no symbol, as a gradient function that
        calls itself has gradients of any order.
        """
        captures, level = {}, [self]
        for _ in range(DEPTH):
            before, deeper = len(captures), []
            for node in level:
                if node.failure() is not None:  # raised when that gradient is asked for
                    continue
                graph, _ = node.backward()
                for x in graph.captures.values():
                    if hasattr(x, "symbol"):
                        captures[x.symbol] = x
                deeper += [n for n in graph.nodes if type(n) is CustomCall]
            if len(captures) == before or not deeper:
                break
            level = deeper
        return captures


def capture_for_gradients(tracer, of=None):
    """Capture the values of other traces, or ``of`` one, that custom gradients use."""
    for node in list(tracer.graph.nodes):
        if type(node) is CustomCall:
            for x in node.reach().values():
                if x.tracer is of or (of is None and x.tracer is not tracer):
                    tracer.value_of(x)


class _Gradient:
    """The gradient function of one call: its graph, on the values of that call."""

    __slots__ = ("node", "env", "sizes")

    def __init__(self, node, env):
        self.node, self.env = node, env
        self.sizes = sizes_in_use()

    def __call__(self, *cotangents, variables=None):
        graph, positions = self.node.backward()
        env = dict(self.env)
        for value, x in graph.captures.items():
            env[value] = self._found(x) if hasattr(x, "symbol") else x
        with with_sizes(self.sizes):
            outputs = interpret(graph, cotangents, env)
        gradients = [None if n is None else outputs[n] for n in positions]
        if variables is None:
            return gradients
        count = len(self.node.sources)
        return gradients[:count], gradients[count:]

    def _found(self, x):
        if x.symbol not in self.env:
            raise TracingError(
                f"{self.node.line}: the gradient of {self.node.title} uses {x} of the "
                "enclosing traced function, but only in a second-order gradient: use "
                "it in the gradient function, too"
            )
        return self.env[x.symbol]
