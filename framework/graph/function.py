"""`function`: Python traced once for each signature of its arguments, then replayed."""

import functools
import inspect
import threading
import warnings
import weakref

import numpy as np

from .. import backend
from ..errors import TracingError
from ..nest import flatten, is_nested, pack
from ..primitive import kernels_are_wrapped
from ..readers import Recording, active_reader, active_readers, reading
from ..tensor import Tensor, TensorSpec, convert_to_tensor, is_tensor, new_tensor
from ..tensor_shape import TensorShape
from . import passes
from .differentiate import record_call
from .interpret import interpret
from .ir import Graph
from .lowering import lower
from .plan import Plan
from .tracing import Symbolic, Tracer

__all__ = ["ConcreteFunction", "Function", "function", "functions_run_eagerly",
           "run_functions_eagerly"]  # fmt: skip

_run_eagerly = False
# After so many traces of one function, told once what varies.
MANY_TRACES = 5


def run_functions_eagerly(run_eagerly):
    """Whether traced functions are to run as plain Python, to look inside them."""
    global _run_eagerly
    _run_eagerly = bool(run_eagerly)


def functions_run_eagerly():
    """What `run_functions_eagerly` was told last."""
    return _run_eagerly


class ConcreteFunction:
    """One trace: tensors in, tensors out. Made by ``Function.get_concrete_function``."""

    def __init__(self, graph, structure=None, inputs=None):
        self.graph = graph
        self.structure = (
            structure  # of the outputs: a nest of their numbers, or of None
        )
        self._free = []  # replay functions that no thread uses now
        self._plan = None
        self._lock = threading.Lock()
        self.derived = {}  # patterns of tracked inputs -> what `differentiate` made
        self._described = inputs

    @property
    def name(self):
        return self.graph.name

    @property
    def plan(self):
        """The plan, made when it is first needed."""
        if self._plan is None:
            with self._lock:
                if self._plan is None:
                    self._plan = Plan(lower(passes.run(self.graph)), self.name)
        return self._plan

    def __call__(self, *args, **kwargs):
        tensors = [x for x in flatten([*args, *kwargs.values()]) if is_tensor(x)
                   or isinstance(x, np.ndarray)]  # fmt: skip
        return self.run([convert_to_tensor(x) for x in tensors])

    def run(self, tensors):
        """The outputs, in their structure, for the tensors among the arguments."""
        return self.packed(self.flat_call(tensors))

    def packed(self, outputs):
        if self.structure is None:
            return None
        return _filled(self.structure, outputs)

    def flat_call(self, tensors):
        """Output tensors for input tensors, whoever watches."""
        reader = active_reader()
        if reader is None and not kernels_are_wrapped():
            captures = self.graph.captures
            if captures:
                tensors = [*tensors, *captures.values()]
            return [new_tensor(a) for a in self.replay([x.array for x in tensors])]
        readers = active_readers()
        if readers and all([isinstance(r, Recording) for r in readers]):
            if not kernels_are_wrapped():
                return record_call(self, tensors, readers)
        return interpret(self.graph, tensors)

    def replay(self, arrays):
        """Output arrays for input arrays, seen by nobody."""
        try:
            run = self._free.pop()
        except IndexError:
            run = self.plan.instance()
        try:
            with np.errstate(all="ignore"):
                return run(*arrays)
        except Exception as error:
            call = self.plan.blame(error)
            if call is not None:
                error.add_note(f"in the op {call.node.name}, {call.node.line}")
            raise
        finally:
            self._free.append(run)

    def pretty(self):
        """The plan as it runs: Python source, a line a call."""
        return self.plan.source


def _filled(structure, outputs):
    if type(structure) is int:
        return outputs[structure]
    if structure is None:
        return None
    numbers = flatten(structure)
    return pack(structure, [None if n is None else outputs[n] for n in numbers])


class Function:
    """A Python function that is traced when called; made by `function`."""

    def __init__(
        self, python_function, input_signature=None, reduce_retracing=False, name=None
    ):
        self.python_function = python_function
        self._name = name or getattr(python_function, "__name__", "function")
        self.input_signature = (
            None if input_signature is None else tuple(input_signature)
        )
        self.reduce_retracing = reduce_retracing
        self._signature = _signature_of(python_function)
        self._concrete = {}
        self._lock = threading.RLock()
        self._traces, self._warned = 0, False
        self._bound_methods = weakref.WeakKeyDictionary()
        functools.update_wrapper(self, python_function)

    @property
    def name(self):
        return self._name

    def __get__(self, owner, kind=None):
        if owner is None:
            return self
        try:
            bound = self._bound_methods.get(owner)
        except TypeError:  # not hashable, or without weak references
            return _Method(self, owner)
        if bound is None:
            bound = self._bound_methods[owner] = _Method(self, weakref.proxy(owner))
        return bound

    def __call__(self, *args, **kwargs):
        if _run_eagerly:
            return self.python_function(*args, **kwargs)
        concrete, tensors = self._find(args, kwargs)
        return concrete.run(tensors)

    def _find(self, args, kwargs):
        args, tensors, key = self._canonical(args, kwargs)
        concrete = self._concrete.get(key)
        if concrete is None:
            with self._lock:
                concrete = self._concrete.get(key)
                if concrete is None:
                    concrete = self._concrete[key] = self._traced(args, tensors)
        return concrete, tensors

    def _canonical(self, args, kwargs):
        """Arguments in one form, the tensors among them, and the key of the trace."""
        if kwargs or self._signature is not None:
            args = self._in_order(args, kwargs)
        tensors = []
        key = tuple([_key_of(x, tensors) for x in args])
        return args, tensors, (backend.current_module(), key)

    def _in_order(self, args, kwargs):
        signature = self._signature
        if signature is None:
            return (*args, *kwargs.values())
        if not kwargs and len(args) == signature.count:
            return args
        bound = signature.bind(*args, **kwargs)
        return bound

    def _traced(self, args, tensors):
        self._traces += 1
        if self._traces == MANY_TRACES and not self._warned:
            self._warned = True
            self._warn_of_retracing()
        concrete, created = self._trace(args)
        if created:
            concrete, created = self._trace(args)
            if created:
                raise ValueError(
                    f"function '{self._name}' makes variables in every call: "
                    "tf.Variable may be created in the first call only. Make it outside, "
                    "or keep it (if self.v is None: self.v = Variable(...))"
                )
        return concrete

    def _trace(self, args):
        graph = Graph(self._name)
        tracer = Tracer(graph)
        names = self._signature.names if self._signature else None
        symbolic = _map_tensors(
            args, lambda x, n: tracer.input(x.array.shape, x.array.dtype, n), names
        )
        with reading((tracer,)):
            positional, keywords = self._as_call(symbolic)
            answer = self.python_function(*positional, **keywords)
            leaves, structure = _numbered(answer)
            outputs = [convert_to_tensor(x) for x in leaves]
            tracer.finish(outputs)
        return ConcreteFunction(graph, structure), tracer.created

    def _as_call(self, args):
        if self._signature is None:
            return args, {}
        return self._signature.as_call(args)

    def _warn_of_retracing(self):
        warnings.warn(
            f"function '{self._name}' was traced {self._traces} times", stacklevel=5
        )

    def get_concrete_function(self, *args, **kwargs):
        """The trace for these arguments, tensors or `TensorSpec`."""
        return self._find(args, kwargs)[0]

    def experimental_get_tracing_count(self):
        """How often the Python function was traced."""
        return self._traces

    def __repr__(self):
        return f"<tapewright.function {self._name}>"


class _Method:
    """A traced method, bound to its owner."""

    def __init__(self, traced, owner):
        self._function, self._owner = traced, owner
        functools.update_wrapper(self, traced.python_function)

    def _self(self):
        owner = self._owner
        if type(owner) is weakref.ProxyType or type(owner) is weakref.CallableProxyType:
            return owner.__repr__.__self__
        return owner

    def __call__(self, *args, **kwargs):
        return self._function(self._self(), *args, **kwargs)

    def __getattr__(self, name):
        return getattr(self._function, name)


class _Signature:
    """How arguments map to the parameters of a function."""

    def __init__(self, signature):
        self.parameters = list(signature.parameters.values())
        self.signature = signature
        kinds = inspect.Parameter
        self.simple = all(
            p.kind is kinds.POSITIONAL_OR_KEYWORD for p in self.parameters
        )
        self.count = len(self.parameters) if self.simple else -1
        self.names = [p.name for p in self.parameters]

    def bind(self, *args, **kwargs):
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return tuple(bound.arguments.values())

    def as_call(self, args):
        kinds, positional, keywords = inspect.Parameter, [], {}
        for parameter, value in zip(self.parameters, args, strict=True):
            if parameter.kind is kinds.VAR_POSITIONAL:
                positional += value
            elif parameter.kind is kinds.VAR_KEYWORD:
                keywords.update(value)
            elif parameter.kind is kinds.KEYWORD_ONLY:
                keywords[parameter.name] = value
            else:
                positional.append(value)
        return positional, keywords


def _signature_of(function):
    try:
        return _Signature(inspect.signature(function))
    except (TypeError, ValueError):
        return None


def _key_of(x, tensors):
    """What of an argument picks the trace; its tensors are added to the list."""
    kind = type(x)
    if kind is Tensor or kind is Symbolic:
        tensors.append(x)
        return x.array.shape, x.array.dtype
    if kind in (int, float, bool, str, bytes, complex, type(None)):
        return kind, x
    if isinstance(x, (np.ndarray, np.generic)):
        tensors.append(convert_to_tensor(x))
        return tensors[-1].array.shape, tensors[-1].array.dtype
    if kind in (list, tuple):
        return (kind, *[_key_of(y, tensors) for y in x])
    if kind is dict:
        return (kind, *[(k, _key_of(x[k], tensors)) for k in x])
    if isinstance(x, Tensor):
        tensors.append(x)
        return x.array.shape, x.array.dtype
    if isinstance(x, TensorSpec):
        return tuple(x.shape), x.dtype.dtype
    return id(x)


def _map_tensors(args, make, names=None):
    """The arguments with each tensor replaced."""

    def mapped(x, name):
        if isinstance(x, (Tensor, TensorSpec)):
            if isinstance(x, TensorSpec):
                x = Symbolic.__new__(Symbolic) if False else _spec_like(x)
            return make(x, name)
        if isinstance(x, (np.ndarray, np.generic)):
            return make(convert_to_tensor(x), name)
        if type(x) in (list, tuple):
            return type(x)([mapped(y, f"{name}_{i}") for i, y in enumerate(x)])
        if type(x) is dict:
            return {k: mapped(y, f"{name}_{k}") for k, y in x.items()}
        return x

    names = names or [f"x{i}" for i in range(len(args))]
    return tuple([mapped(x, n) for x, n in zip(args, names)])


class _spec_like:
    def __init__(self, spec):
        self.array = self
        self.shape, self.dtype = tuple(spec.shape), spec.dtype.dtype


def _numbered(answer):
    """The leaves of what a function returned, and its structure with their numbers."""
    if answer is None:
        return [], None
    if not is_nested(answer):
        return [answer], 0
    leaves, numbers = [], []
    for leaf in flatten(answer):
        if leaf is None:
            numbers.append(None)
        else:
            numbers.append(len(leaves))
            leaves.append(leaf)
    return leaves, pack(answer, numbers)


def function(
    func=None,
    input_signature=None,
    autograph=True,
    jit_compile=None,
    reduce_retracing=False,
    **options,
):
    """Decorator: traces the function once for each signature, and replays the plan."""
    if func is None:
        return lambda func: function(
            func, input_signature, autograph, jit_compile, reduce_retracing, **options
        )
    return Function(func, input_signature, reduce_retracing)


_ = TracingError, TensorShape
