"""The interpreter that writes ops down instead of computing them.

While a function is traced its tensors are `SymbolicTensor`: shape and dtype are known, values
are not. Ops on them become nodes of a `Graph`; ops on other tensors just run, and what
they give is a constant of the graph. Tapes work as ever above a tracer: the backward pass
is a matter of ops, and so is written down too.
"""

from contextlib import contextmanager
from operator import index
from weakref import ref

import numpy as np

from tapewright.core import config
from tapewright.core.dtypes import BY_NUMPY, as_dtype
from tapewright.core.errors import TracingError
from tapewright.core.interpreters import (
    Interpreter,
    active_interpreters,
    process_op,
    use_interpreters,
)
from tapewright.core.source_lines import user_line
from tapewright.core.symbolic_dim import NeedsSize
from tapewright.core.symbolic_shape import SymbolicShape, has_symbolic_shape, product
from tapewright.core.tensor import (
    Tensor,
    TensorSpec,
    convert_to_tensor,
    new_tensor,
    next_key,
)
from tapewright.core.tensor_shape import TensorShape, UnrankedShape
from tapewright.ops.array.sizes import known_result, known_sizes

from .custom_calls import CustomCall
from .graph import Effect, Node, Read, ReadAgain, Store, Value
from .graph_verifier import verify_graph
from .lifting import generators, value_now

__all__ = [
    "AbstractValue",
    "EagerFallback",
    "SymbolicTensor",
    "Tracer",
    "fall_back",
]


class EagerFallback(TracingError):
    """A trace meets a result that has no shape before it runs: the call runs eagerly.

    `Function` catches it and runs the Python code on the values of the call. It reaches
    the user where there is no call: ``get_concrete_function``, and what is made of it.
    """

    foresight = (), ()  # questions of the trace to iterators: see `Function`


def fall_back(reason):
    """Ends the traces that are going on with an `EagerFallback`.

    They end even if the code that is being traced catches the exception.
    """
    error = EagerFallback(f"{user_line(always=True)}: {reason}")
    for interpreter in active_interpreters():
        graph = interpreter.graph if interpreter.traces else None
        while graph is not None:
            graph.fallback, graph = error, graph.parent
    raise error


class AbstractValue:
    """Shape and dtype of an array that is not there yet."""

    __slots__ = ("shape", "dtype")

    def __init__(self, shape, dtype):
        self.shape, self.dtype = shape, dtype

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        return product(self.shape)

    @property
    def nbytes(self):
        return self.size * self.dtype.itemsize

    def __array__(self, dtype=None, copy=None):  # NumPy would make it an object
        raise TracingError("a tensor that is being traced has no array yet")

    get = __array__  # as of an array on a GPU


class SymbolicTensor(Tensor):
    """A tensor of a function that is being traced."""

    __slots__ = ("symbol", "tracer")

    def __init__(self, symbol, tracer):
        self.symbol, self.tracer = symbol, tracer
        self.array = AbstractValue(symbol.shape, symbol.dtype)
        self.key = None

    @property
    def shape(self):
        return TensorShape(self.symbol.shape)

    @property
    def dtype(self):
        return BY_NUMPY.get(self.symbol.dtype) or as_dtype(self.symbol.dtype)

    @property
    def device(self):
        return "/CPU:0"

    @property
    def name(self):
        return self.symbol.name or "tensor"

    def _no_value(self, what, ways):
        where = self.tracer.graph.name
        line = user_line(always=True)
        if self.tracer.graph.finished:
            raise TracingError(
                f"{line}: this tensor is from the trace of '{where}', which is over: only "
                "what a traced function returns has a value outside of it. Return the "
                "tensor, or assign it to a Variable"
            )
        raise TracingError(
            f"{line}: {what} needs the value of a tensor, but '{where}' is being traced: "
            f"its tensors have a shape and a dtype, no value yet. {ways}"
        )

    def stray(self):
        """Raises: it is used where the trace does not see it."""
        self._no_value(
            "an op outside of the trace",
            "Leave tw.init_scope first, or pass the tensor to what uses it",
        )

    def numpy(self):
        self._no_value(
            "numpy()",
            "Use ops of tapewright, or tw.py_function for Python code that is to run in "
            "each call; config.run_functions_eagerly(True) switches tracing off",
        )

    def __array__(self, dtype=None, copy=None):
        self._no_value(
            "a NumPy function",
            "Use the op of tapewright of that name, or tw.numpy_function for code that is "
            "to run in each call",
        )

    def known_sizes(self):
        """The sizes that it holds, where it is made of nothing else; else None."""
        return known_sizes(self)

    def _scalar(self, kind):
        known = self.known_sizes()
        if known is not None and known.size == 1:
            return kind(known.item())
        self._no_value(
            f"{kind.__name__}()",
            "Keep it a tensor; config.run_functions_eagerly(True) switches tracing off",
        )

    def __bool__(self):
        self._no_value(
            "a Python condition (if, while, and, or, not, assert)",
            "Choose with tw.where(condition, a, b), branch with tw.cond, loop with "
            "tw.while_loop, or run the function eagerly: run_eagerly=True, "
            "config.run_functions_eagerly(True)",
        )

    def __index__(self):
        known = self.known_sizes()
        if known is not None and known.ndim == 0:
            return index(known.item())
        self._no_value(
            "an index, a size or range()",
            "Take sizes from x.shape, select with tw.gather, loop with tw.while_loop, "
            "tw.scan or tw.map_fn, or pass a Python number: it is a constant of the trace",
        )

    def __format__(self, spec):
        return format(str(self), spec)

    def __repr__(self):
        dtype = self.dtype.name
        return f'Tensor("{self.name}:0", shape={self.shape}, dtype={dtype})'

    __str__ = __repr__

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        self._no_value("pickle", "Return the tensor from the function first")


def _shape(dims, op=None):
    """A shape as graphs have it: a tuple of ints and formulas."""
    if type(dims) is UnrankedShape:
        return dims
    if getattr(dims, "rank", 0) is None or any([d is None for d in dims]):
        who = "an input" if op is None else op.name
        raise NeedsSize(
            f"{user_line(always=True)}: the shape of what {who} gives is not known before "
            "it runs"
        )
    return SymbolicShape(dims) if has_symbolic_shape(tuple(dims)) else tuple(dims)


class Tracer(Interpreter):
    """Writes the ops that it sees into ``graph``.

    A tensor of another trace that is still going on, or one that a tape follows outside,
    becomes a captured input.
    """

    __slots__ = (
        "graph",
        "current",
        "assigned",
        "unread",
        "captured",
        "around",
        "created",
        "birth",
        "line",
        "given",
        "drawn",
        "captured_constants",
        "foreseen",
    )
    traces = True

    def __init__(self, graph):
        self.graph = graph
        self.current = {}  # id of a variable -> the tensor that it stands for
        self.assigned = {}  # id -> variable, where that tensor is still to be stored
        self.unread = set()  # ids of variables that were not read since
        self.captured = {}  # id of a tensor -> its symbol here
        self.around = None  # the tracer around it, for traces that are over by now
        self.created = []  # variables made while tracing
        self.drawn = {}  # id -> generator's state, its value after drawing for variables
        self.birth = next_key()  # a tape outside knows tensors by smaller keys only
        self.given = {}  # value of an input -> the tensor of the call, where there is one
        self.foreseen = None  # or a list: (value of a handle, number, answer, object)
        self.captured_constants = {}  # id -> weak reference: a tape may know them later
        self.line = None  # of the nodes to come, where they are copied from a graph

    def here(self):
        """The line of the node that is written now."""
        return self.line or user_line(always=True)

    def input(self, shape, dtype, name=None):
        """A further input of the graph, as a tensor."""
        value = Value(_shape(shape), np.dtype(dtype), None, name)
        self.graph.inputs.append(value)
        return SymbolicTensor(value, self)

    # --- ops

    def process(self, op, inputs, attributes, below):
        for x in inputs:
            if type(x) is not Tensor or (type(x.key) is int and x.key < self.birth):
                break
        else:
            if not has_symbolic_shape(attributes):
                self.capture_constants(inputs)
                if below:
                    return process_op(op, inputs, attributes, below)
                return op.run(inputs, attributes)
        known = known_result(op, inputs, attributes)
        if known is not None:
            return known
        values = [self.value_of(x) for x in inputs]
        specs = [TensorSpec(x.array.shape, x.array.dtype) for x in inputs]
        inferred = op.output_specs(specs, attributes)
        many = type(inferred) in (tuple, list)
        node = Node(op, tuple(values), attributes, self.here())
        outputs = node.give(
            [
                (_shape(spec.shape, op), spec.dtype.dtype)
                for spec in (inferred if many else (inferred,))
            ]
        )
        return self.append(node, outputs, many)

    def append(self, node, outputs, many):
        """Adds a node; its outputs as tensors."""
        nodes = self.graph.nodes
        if self.graph.finished:
            raise TracingError(f"the trace of '{self.graph.name}' is over")
        if node.is_host_call:
            self.hand_over()
        for out in outputs:
            out.name = f"{node.name}_{len(nodes)}"
        nodes.append(node)
        if many:
            return tuple([SymbolicTensor(out, self) for out in outputs])
        return SymbolicTensor(outputs[0], self)

    def value_of(self, x):
        """The value, or constant, for which a tensor stands in this graph."""
        if type(x) is SymbolicTensor:
            if x.tracer is self:
                return x.symbol
            x = self._from_around(x)
        elif type(x) is Tensor and (type(x.key) is not int or x.key > self.birth):
            self.capture_constants((x,))
            return x
        elif type(x.array) is AbstractValue:  # of a model that is being put together
            x._no_value("a traced function")
        found = self.captured.get(id(x))
        return self.capture(x).symbol if found is None else found

    def capture(self, x):
        """A tensor from outside as a further input, to be taken from there."""
        value = Value(x.array.shape, x.array.dtype, None, "captured")
        self.graph.captures[value] = x
        self.captured[id(x)] = value
        return SymbolicTensor(value, self)

    def _from_around(self, x):
        """A tensor of a trace further out: what the trace around knows it by, if need be.

        That is over where a gradient is traced that was not asked for before.
        """
        around, graph = self.around, x.tracer.graph
        if self.graph.within(graph):
            return x
        if around is not None and around.graph.finished:
            value = around.captured.get(id(x))
            if value is not None:
                return SymbolicTensor(value, around)
        if not graph.finished:
            return x
        if around is None or around.graph.finished:
            x._no_value("an op", "")
        return SymbolicTensor(around.value_of(x), around)

    def capture_constants(self, tensors):
        """Notes constants: a tape may come to know those that live on outside."""
        for x in tensors:
            if x.array.dtype.kind in "fc" and type(x.key) is not int:
                self.captured_constants[id(x)] = ref(x)

    # --- variables

    def create(self, variable, initial_value):
        """A variable is made: its initial value, as one that is known now."""
        for interpreter in active_interpreters():
            if interpreter.traces:
                interpreter.created.append(variable)
        value = value_now(initial_value)
        for state in generators(initial_value):
            self.drawn[id(state)] = state, self.current[id(state)]
        return value

    def value_of_variable(self, variable):
        """Return the tensor that a variable stands for at this point."""
        name = id(variable)
        tensor = self.current.get(name)
        if tensor is not None and name not in self.unread:
            if (
                type(tensor) is SymbolicTensor
            ):  # each read is one's own, and no tape's yet
                return SymbolicTensor(tensor.symbol, self)
            return new_tensor(tensor.array)
        if tensor is None:
            node = Read(variable, self.here())
        else:
            node = ReadAgain(variable, self.value_of(tensor), self.here())
        tensor = self.append(node, node.outputs, False)
        tensor.symbol.name = variable.path
        self.current[name] = tensor
        self.unread.discard(name)
        return tensor

    def assign(self, variable, method, value):
        """The variable stands for another value from here on."""
        if hasattr(type(value), "__tensor__"):
            value = value.__tensor__()
        if not isinstance(value, Tensor):
            value = convert_to_tensor(value, dtype_hint=variable.dtype)
        for interpreter in active_interpreters():
            interpreter.before_assign(variable, method, value.key)
        variable.check_assigned(method, value.array)
        with use_interpreters((self,)):
            if method == "assign_add":
                value = self.value_of_variable(variable) + value
            elif method == "assign_sub":
                value = self.value_of_variable(variable) - value
        self.current[id(variable)] = self.own(value)
        self.assigned[id(variable)] = variable
        self.unread.add(id(variable))

    def hand_over(self):
        """Variables have their values from here on: Python will look at them, or assign."""
        for variable in list(self.assigned.values()):
            self.store(variable)
        self.current.clear()
        self.unread.clear()

    @contextmanager
    def assigning_nothing(self):
        """Variables assigned to inside stand for what they stood for, afterwards."""
        kept = self.current.copy(), self.assigned.copy(), self.unread.copy()
        try:
            yield
        finally:
            self.current, self.assigned, self.unread = kept

    def own(self, tensor):
        """A tensor of this trace that no other name goes by: keys are one's own."""
        value = self.value_of(tensor)
        if type(value) is Value:
            return SymbolicTensor(value, self)
        return new_tensor(value.array)

    def effect(
        self, kind, call, inputs=(), attributes=None, specs=(), reads=(), writes=()
    ):
        """Adds an `Effect`; its outputs as a tuple of tensors."""
        for variable in (*reads, *writes):
            self.store(variable)
        values = [self.value_of(x) for x in inputs]
        line = self.here()
        node = Effect(kind, call, values, attributes or {}, specs, reads, writes, line)
        outputs = self.append(node, node.outputs, True)
        for variable in writes:
            self.current.pop(id(variable), None)
            self.unread.discard(id(variable))
        return outputs

    def foresee(self, handle, kind):
        """The spec of the result that an object will give to the next effect of a kind.

        None if it may depend on what the trace does before, or on another trace.
        """
        if self.foreseen is None or self.assigned:
            return None
        if any([node.is_effect and node.name != kind for node in self.graph.nodes]):
            return None
        value = self.value_of(handle)
        given = self.given.get(value) if type(value) is Value else value
        if type(given) is not Tensor:
            return None
        resource = given.array.item()
        number = len([x for *_, x in self.foreseen if x is resource])
        found = resource.foresee(number)
        self.foreseen.append((value, number, found, resource))
        return found

    def custom_call(self, name, outputs, sources, variables, gradient):
        """Marks tensors as what a call with a gradient of its own gave: a `CustomCall`.

        ``sources`` are its arguments: tensors, variables, or None for anything else.
        """
        values = [self.value_of(x) for x in outputs]
        given = [self.value_of(x) if isinstance(x, Tensor) else x for x in sources]
        node = CustomCall(self, name, values, given, variables, gradient, self.here())
        return self.append(node, node.outputs, True)

    def store(self, variable):
        """Writes the value that was assigned to a variable, if there is one."""
        if self.assigned.pop(id(variable), None) is not None:
            value = self.value_of(self.current[id(variable)])
            self.graph.nodes.append(Store(variable, value, self.here()))

    def finish(self, outputs):
        """Ends the trace with these outputs, tensors."""
        if self.graph.fallback is not None:
            raise self.graph.fallback
        self.graph.outputs = [self.value_of(x) for x in outputs]
        for variable in list(self.assigned.values()):
            self.store(variable)
        self.given.clear()  # the tensors of this very call are not to be kept
        self.graph.finished = True
        if config.functions_are_verified():
            verify_graph(self.graph, "tracing")
