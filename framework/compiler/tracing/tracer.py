"""`Tracer`: the interpreter that adds ops to a graph instead of computing them.

While a function is traced its tensors are `SymbolicTensor` objects: shape and dtype are
known, values are not. Ops on them become nodes of a `Graph`; ops on other tensors run
at once, and their results are constants of the graph. Tapes above a tracer work as
usual: the backward pass consists of ops, which are traced too.
"""

from contextlib import contextmanager
from contextvars import ContextVar
from operator import index
from weakref import ref

import numpy as np

from tapewright.core import hooks
from tapewright.core.dtypes import BY_NUMPY, as_dtype, kind_of
from tapewright.core.errors import NoValueError, TracingError
from tapewright.core.interpreters import (
    Interpreter,
    active_interpreters,
    process_op,
    use_interpreters,
)
from tapewright.core.messages.names_of_pytorch import numpy_function_here
from tapewright.core.messages.source_lines import user_call, user_line
from tapewright.core.settings import config
from tapewright.core.shapes.symbolic_dim import NeedsSize, NeedsValue
from tapewright.core.shapes.symbolic_operand import TracedOperand
from tapewright.core.shapes.symbolic_shape import (
    SymbolicShape,
    has_symbolic_shape,
    product,
    static_shapes,
)
from tapewright.core.shapes.tensor_shape import TensorShape, UnrankedShape
from tapewright.core.tensor import (
    Tensor,
    TensorSpec,
    convert_to_tensor,
    new_tensor,
    next_key,
)
from tapewright.ops.array.conversion import stop_gradient
from tapewright.ops.array.sizes import known_result, known_sizes

from .custom_calls import CustomCall
from .graph import Effect, Node, Read, ReadAgain, Value, Write
from .graph_verifier import verify_graph
from .handles import object_of
from .lifting import concrete_value, generators


class EagerFallback(TracingError):
    """A traced result has a shape that is not known before it runs.

    `Function` catches it and runs the Python code eagerly, on the values of the call.
    It reaches the user where there is no call: in ``get_concrete_function`` and its
    callers.
    """

    peeks = (), ()  # see `Function`


def fall_back(reason, at_end=False):
    """End all active traces with an `EagerFallback`, even if user code catches it.

    If ``at_end`` is True, each trace continues until its function has returned.
    """
    error = EagerFallback(f"{user_line(always=True)}: {reason}")
    for interpreter in active_interpreters():
        graph = interpreter.graph if interpreter.traces else None
        while graph is not None:
            graph.fallback, graph = error, graph.parent
    if not at_end:
        raise error


_INSIDE = ContextVar("inside_function", default=False)


def inside_function() -> bool:
    """Return whether the code of a `tw.function` is running.

    True while it is traced, also in `tw.init_scope`, and while it runs eagerly.
    """
    return _INSIDE.get()


@contextmanager
def inside():
    """Run the code of a function that is traced, or whose trace was given up."""
    token = _INSIDE.set(True)
    try:
        yield
    finally:
        _INSIDE.reset(token)


class AbstractValue:
    """Shape and dtype of an array that a traced function will compute."""

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


class SymbolicTensor(TracedOperand, Tensor):
    """A tensor of a function that is being traced."""

    __slots__ = ("symbol", "tracer")

    def __init__(self, symbol, tracer):
        self.symbol, self.tracer = symbol, tracer
        self.array = AbstractValue(symbol.shape, symbol.dtype)
        self.key = None

    @property
    def shape(self):
        shape = self.symbol.shape
        return TensorShape(
            static_shapes(shape) if self.tracer.graph.finished else shape
        )

    @property
    def dtype(self):
        return BY_NUMPY.get(self.symbol.dtype) or as_dtype(self.symbol.dtype)

    @property
    def device(self):
        return "/CPU:0"

    @property
    def name(self):
        return self.symbol.name or "tensor"

    def _no_value(self, what, ways, error=TracingError):
        where = self.tracer.graph.name
        line = user_line(always=True)
        if self.tracer.graph.finished:
            raise error(
                f"{line}: this tensor belongs to the trace of '{where}', which has "
                "ended: only the results of a traced function have values outside "
                "it. Return the tensor, or assign it to a Variable"
            )
        raise error(
            f"{line}: {what} needs the value of a tensor, but '{where}' is being "
            f"traced: its tensors have a shape and a dtype, but no value yet. {ways}"
        )

    def raise_outside_trace(self):
        self._no_value(
            "an op outside the trace",
            "Leave tw.init_scope first, or pass the tensor as an argument",
        )

    def numpy(self):
        self._no_value(
            "numpy()",
            "Use tapewright ops, or tw.py_function to run Python code in each call; "
            "config.run_functions_eagerly(True) disables tracing",
            NoValueError,
        )

    def __array__(self, dtype=None, copy=None):
        call = user_call()
        here = numpy_function_here((call or "").rpartition(".")[2])
        if not here:
            words = f"in place of {call}" if call else "of that name"
            here = f"use the tapewright op {words}"
        self._no_value(
            call or "a NumPy function",
            f"{here[0].upper()}{here[1:]}, or tw.numpy_function, which has no gradient",
        )

    def __dlpack__(self, **options):
        self._no_value("another library", "Use the return value of the function")

    __dlpack_device__ = __dlpack__

    def known_sizes(self):
        return known_sizes(self)

    def _scalar(self, kind):
        known = self.known_sizes()
        if known is not None and known.size == 1:
            return kind(known.item())
        self._no_value(
            f"{kind.__name__}()",
            "Keep it a tensor; config.run_functions_eagerly(True) disables tracing",
        )

    def __bool__(self):
        known = self.known_sizes()
        if known is not None and known.size == 1:
            return bool(known.item())
        reason = hooks.why_not_converted.call()
        self._no_value(
            "a Python condition (if, while, and, or, not, assert)",
            ("" if reason is None else f"The control flow of {reason}. ")
            + "Choose with tw.where(condition, a, b), branch with tw.cond, loop with "
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
            NeedsValue,
        )

    def __format__(self, spec):
        return format(str(self), spec)

    def __repr__(self):
        shape = "" if self.shape.rank is None else f"shape={self.shape}, "
        return f'Tensor("{self.name}:0", {shape}dtype={self.dtype.name})'

    __str__ = __repr__

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        self._no_value("pickle", "Return the tensor from the function first")


def _put(mapping, key, value):
    """Set an entry, or remove it if the value is None."""
    if value is None:
        mapping.pop(key, None)
    else:
        mapping[key] = value


def _shape(dims, node=None):
    """Return a shape in the form of graphs: a tuple of ints and formulas."""
    if type(dims) is UnrankedShape:
        return dims
    if getattr(dims, "rank", 0) is None or any([d is None for d in dims]):
        who, kind = "an input", NeedsSize
        if node is not None:
            sizes = [value.shape for value in node.inputs], node.attributes
            who = node.op.name
            kind = NeedsSize if has_symbolic_shape(sizes) else NeedsValue
        raise kind(
            f"{user_line(always=True)}: the shape of the results of {who} is unknown "
            "before it runs; call it outside traced functions, or keep the shape, as "
            "where(condition, x, y) does"
        )
    return SymbolicShape(dims) if has_symbolic_shape(tuple(dims)) else tuple(dims)


class Tracer(Interpreter):
    """Add the ops that it processes to ``graph``.

    A tensor of another active trace, or one that an outer tape tracks, becomes a
    captured input.
    """

    __slots__ = (
        "graph",
        "bindings",
        "assigned",
        "unread",
        "in_scope",
        "substituted",
        "captured",
        "outer",
        "created",
        "first_key",
        "line",
        "call_tensors",
        "advanced_generators",
        "captured_constants",
        "peeks",
        "converts",
    )
    traces = True

    def __init__(self, graph):
        self.graph = graph
        self.bindings = {}  # id of a variable -> the tensor that is its value
        self.assigned = {}  # id -> variable, if that tensor is not stored yet
        self.unread = set()  # ids of variables that were assigned and not read since
        self.in_scope = False  # inside of `substituting`
        self.substituted = set()  # ids of variables whose values are those of the scope
        self.captured = {}  # id of a tensor -> its value in this graph
        self.outer = None  # the tracer around this one, for traces that have ended
        self.created = []  # variables made while tracing
        # id -> state of a generator that initial values have used, and its new value
        self.advanced_generators = {}
        self.first_key = next_key()  # tapes outside know tensors by smaller keys only
        self.call_tensors = {}  # value of an input -> the tensor of the call, if there is one
        self.peeks = None  # or a list: (value of a handle, number, spec, object)
        self.captured_constants = {}  # id -> weak reference: a tape may track them later
        self.line = None  # of the next nodes, if they are copied from another graph
        self.converts = True  # the Python control flow of functions that are called

    def current_line(self):
        """Return the line of user code to record in a node."""
        return self.line or user_line(always=True)

    def input(self, shape, dtype, name=None):
        """Add an input to the graph; return it as a tensor."""
        value = Value(_shape(shape), np.dtype(dtype), None, name)
        self.graph.inputs.append(value)
        return SymbolicTensor(value, self)

    # --- ops

    def process(self, op, inputs, attributes, below):
        for x in inputs:
            if type(x) is not Tensor or (type(x.key) is int and x.key < self.first_key):
                break
        else:
            if not (has_symbolic_shape(attributes) or op.collective):
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
        node = Node(op, tuple(values), attributes, self.current_line())
        outputs = node.make_outputs(
            [
                (_shape(spec.shape, node), spec.dtype.dtype)
                for spec in (inferred if many else (inferred,))
            ]
        )
        return self.append(node, outputs, many)

    def append(self, node, outputs, many):
        """Add a node; return its outputs as tensors."""
        nodes = self.graph.nodes
        if self.graph.finished:
            raise TracingError(f"the trace of '{self.graph.name}' has ended")
        if node.is_host_call:
            self.flush_variables()
        for out in outputs:
            out.name = f"{node.name}_{len(nodes)}"
        nodes.append(node)
        if many:
            return tuple([SymbolicTensor(out, self) for out in outputs])
        return SymbolicTensor(outputs[0], self)

    def value_of(self, x):
        """Return the value of a tensor in this graph, or the tensor itself as a constant."""
        if type(x) is SymbolicTensor:
            if x.tracer is self:
                return x.symbol
            x = self._known_outside(x)
        elif type(x) is Tensor and (type(x.key) is not int or x.key > self.first_key):
            self.capture_constants((x,))
            return x
        elif type(x.array) is AbstractValue:  # of a functional model
            x._no_value("a traced function")
        captured = self.captured.get(id(x))
        return self.capture(x).symbol if captured is None else captured

    def capture(self, x):
        """Add an input that gets its value from an outer tensor; return it as a tensor."""
        value = Value(x.array.shape, x.array.dtype, None, "captured")
        self.graph.captures[value] = x
        self.captured[id(x)] = value
        return SymbolicTensor(value, self)

    def _known_outside(self, x):
        """Return a tensor of another trace as the tensor that the outer trace uses for it.

        The outer trace has ended if this is the trace of a gradient that is first
        needed later.
        """
        around, graph = self.outer, x.tracer.graph
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
        """Record constants that a tape may track later, as they are used outside too."""
        for x in tensors:
            if kind_of(x.array.dtype) in "fc" and type(x.key) is not int:
                self.captured_constants[id(x)] = ref(x)

    # --- variables

    def create(self, variable, initial_value):
        """Record a new variable; return its initial value, computed now."""
        if hasattr(type(initial_value), "__tensor__"):  # another variable
            initial_value = initial_value.__tensor__()
        for interpreter in active_interpreters():
            if interpreter.traces:
                interpreter.created.append(variable)
        value = concrete_value(initial_value)
        for state in generators(initial_value):
            self.advanced_generators[id(state)] = state, self.bindings[id(state)]
        return value

    def value_of_variable(self, variable):
        """Return the value that a variable has at this point of the trace."""
        name = id(variable)
        tensor = self.bindings.get(name)
        if tensor is not None and name not in self.unread:
            # Each read is a tensor of its own, which no tape tracks yet.
            if type(tensor) is SymbolicTensor:
                return SymbolicTensor(tensor.symbol, self)
            return new_tensor(tensor.array)
        if tensor is not None and name in self.substituted:
            # A `ReadAgain` would assign to the variable where it is interpreted.
            with use_interpreters((self,)):
                tensor = stop_gradient(tensor)
        else:
            node = Read(variable, self.current_line())
            if tensor is not None:
                node = ReadAgain(variable, self.value_of(tensor), self.current_line())
            tensor = self.append(node, node.outputs, False)
            tensor.symbol.name = variable.path
        self.bindings[name] = tensor
        self.unread.discard(name)
        return tensor

    def assign(self, variable, method, value):
        """Set the value of a variable from this point of the trace on."""
        if hasattr(type(value), "__tensor__"):
            value = value.__tensor__()
        if not isinstance(value, Tensor):
            value = convert_to_tensor(value, dtype_hint=variable.dtype)
        for interpreter in active_interpreters():
            interpreter.before_assign(variable, method, value.key)
        variable._tw_check_assigned(method, value.array)
        with use_interpreters((self,)):
            if method == "assign_add":
                value = self.value_of_variable(variable) + value
            elif method == "assign_sub":
                value = self.value_of_variable(variable) - value
        self.bindings[id(variable)] = self.fresh(value)
        self.assigned[id(variable)] = variable
        self.unread.add(id(variable))
        if self.in_scope:
            self.substituted.add(id(variable))

    def flush_variables(self):
        """Store all assigned values, as Python may now read or assign any variable."""
        for variable in list(self.assigned.values()):
            self.store(variable)
        self.bindings.clear()
        self.unread.clear()

    def mark(self):
        """Return the point that the trace has reached, for `roll_back`."""
        variables = self.bindings.copy(), self.assigned.copy(), self.unread.copy()
        return len(self.graph.nodes), variables

    def roll_back(self, mark):
        """Remove the nodes after a mark; reset variables assigned since then."""
        count, (self.bindings, self.assigned, self.unread) = mark
        del self.graph.nodes[count:]

    @contextmanager
    def assigning_nothing(self):
        """Reset variables that are assigned inside to their old values afterwards."""
        _, variables = self.mark()
        try:
            yield
        finally:
            self.bindings, self.assigned, self.unread = variables

    @contextmanager
    def substituting(self, pairs):
        """Give variables other values inside; assignments stay inside."""
        names = [id(variable) for variable, _ in pairs]
        scope = self.in_scope, self.substituted
        self.in_scope, self.substituted = True, {*self.substituted, *names}
        before = [
            (self.bindings.get(n), self.assigned.get(n), n in self.unread)
            for n in names
        ]
        for variable, tensor in pairs:
            self.bindings[id(variable)] = self.fresh(tensor)
            self.unread.discard(id(variable))
        try:
            yield
            is_bound = self.bindings.keys() >= set(names)
        finally:
            self.in_scope, self.substituted = scope
            for name, (binding, variable, unread) in zip(names, before):
                _put(self.bindings, name, binding)
                _put(self.assigned, name, variable)
                (self.unread.add if unread else self.unread.discard)(name)
        if not is_bound:
            raise TracingError(
                "Python calls, such as py_function, are not supported in a traced "
                "function where variables have other values (stateless_call, "
                "StatelessScope)"
            )

    def fresh(self, tensor):
        """Return a new tensor object of the same value, which no tape tracks yet."""
        value = self.value_of(tensor)
        if type(value) is Value:
            return SymbolicTensor(value, self)
        return new_tensor(value.array)

    def effect(
        self, kind, call, inputs=(), attributes=None, specs=(), reads=(), writes=()
    ):
        """Add an `Effect`; return its outputs as a tuple of tensors."""
        node = Effect(kind, call, attributes or {}, specs, reads, writes)
        return self.append_with_variables(node, inputs)

    def append_with_variables(self, node, tensors):
        """Add a node that accesses variables in place; return its outputs as tensors."""
        for variable in (*node.reads, *node.writes):
            self.store(variable)
        node.inputs = tuple([self.value_of(x) for x in tensors])
        node.line = self.current_line()
        outputs = self.append(node, node.outputs, True)
        for variable in node.writes:
            self.bindings.pop(id(variable), None)
            self.unread.discard(id(variable))
        return outputs

    def peek_spec(self, handle, kind):
        """Return the spec of the element that the next effect of this kind will consume.

        ``handle`` belongs to the `Resource` that yields elements. Returns None if the
        element may depend on earlier effects of the trace, or on another trace.
        """
        if self.peeks is None or self.assigned:
            return None
        if any([node.is_effect and node.name != kind for node in self.graph.nodes]):
            return None
        value = self.value_of(handle)
        tensor = self.call_tensors.get(value) if type(value) is Value else value
        if type(tensor) is not Tensor:
            return None
        resource = object_of(tensor.array)
        number = len([x for *_, x in self.peeks if x is resource])
        spec = resource._tw_peek_spec(number)
        self.peeks.append((value, number, spec, resource))
        return spec

    def custom_call(self, name, outputs, sources, variables, gradient):
        """Mark tensors as the outputs of a call with a custom gradient: a `CustomCall`.

        ``sources`` are its arguments: tensors, variables, or None for anything else.
        """
        values = [self.value_of(x) for x in outputs]
        given = [self.value_of(x) if isinstance(x, Tensor) else x for x in sources]
        node = CustomCall(
            self, name, values, given, variables, gradient, self.current_line()
        )
        return self.append(node, node.outputs, True)

    def store(self, variable):
        """Add a `Write` of the value that was assigned to a variable, if there is one."""
        if self.assigned.pop(id(variable), None) is not None:
            value = self.value_of(self.bindings[id(variable)])
            self.graph.nodes.append(Write(variable, value, self.current_line()))

    def finish(self, outputs):
        """End the trace with these outputs, tensors."""
        if self.graph.fallback is not None:
            raise self.graph.fallback
        self.graph.outputs = [self.value_of(x) for x in outputs]
        for variable in list(self.assigned.values()):
            self.store(variable)
        self.call_tensors.clear()  # their memory is not to be held
        self.graph.finished = True
        if config.functions_are_verified():
            verify_graph(self.graph, "tracing")
