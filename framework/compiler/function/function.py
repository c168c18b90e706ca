"""`function`: Python code traced once for each kind of arguments, then replayed."""

from __future__ import annotations

import functools
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from io import IOBase
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Self, overload

from tapewright.core.errors import TracingError
from tapewright.core.hardware.devices import current_module
from tapewright.core.interpreters import (
    active_interpreter,
    active_interpreters,
    active_tracer,
    converted,
    use_interpreters,
)
from tapewright.core.messages.source_lines import line_of_error, user_line
from tapewright.core.settings import config
from tapewright.core.shapes.symbolic_dim import NeedsValue
from tapewright.core.shapes.symbolic_operand import SymbolicOperand
from tapewright.core.state.autocast import autocast_dtype
from tapewright.core.state.replica_context import replica_context
from tapewright.core.tensor import Tensor, TensorSpec, convert_to_tensor
from tapewright.core.typing import P, R

from ..control_flow import map_fn  # noqa: F401  offers loops to `autodiff.confluence`
from ..tracing.graph import Graph, Value, is_value
from ..tracing.handles import Resource, UnexpectedElement, object_of
from ..tracing.lifting import concrete_value
from ..tracing.tracer import (
    EagerFallback,
    SymbolicTensor,
    Tracer,
    fall_back,
    inside,
)
from .arguments import (
    map_tensors,
    named_leaves,
    quick_key,
    revived,
    trace_context,
)
from .concrete_function import ConcreteFunction, InputStructure, UntracedFunction
from .methods import Always, Method
from .outputs import flatten_result, packer
from .retracing import Retraces
from .signature import Signature
from .specialization import Specializations, is_open

Q = ParamSpec("Q")

NO_PEEKS = (), ()

# The number of argument kinds in the cache of the fast path.
FAST_KEYS = 1024


@overload
def function(
    func: Callable[P, R],
    input_signature: Sequence[Any] | None = None,
    **options: Any,
) -> Function[P, R]: ...
@overload
def function(
    func: None = None,
    input_signature: Sequence[Any] | None = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    **options: Any,
) -> Callable[[Callable[P, R]], Function[P, R]]: ...
def function(
    func=None,
    input_signature=None,
    autograph=True,
    jit_compile=None,
    reduce_retracing=False,
    experimental_implements=None,
    experimental_autograph_options=None,
    experimental_attributes=None,
    experimental_relax_shapes=None,
    experimental_compile=None,
    experimental_follow_type_hints=None,
):
    """Compile a Python function: trace it once per kind of arguments, then replay it.

    A decorator, with or without arguments. The ops of the function are recorded while
    it runs and compiled to machine code or a flat list of array calls
    (`tw.config.set_target`), which later calls run. Tensors are distinguished by shape
    and dtype, Python values by type and value, other objects by identity.

    Python code (a ``print``, an ``append``) runs only while tracing; `tw.Variable`
    assignments, random numbers, `tw.print`, and updates of optimizers and data set
    iterators take effect in every call. Python's ``if``, ``while`` and ``for`` on
    tensors become branches and loops of the trace (`tw.autograph`).

    A call runs eagerly if the shapes of results are unknown before they run: in a loop
    over a data set with elements of unknown size, with Python iterators, and with a
    `tw.py_function` whose ``Tout`` has no shape.

    Args:
        func: Function to trace; None to return a decorator.
        input_signature: List of `tw.TensorSpec`, or nests of them: a single trace
            serves all calls, and arguments are converted or rejected.
        autograph: If False, Python control flow is not converted, and raises an error
            on a traced tensor.
        jit_compile: Ignored; functions are always compiled by tapewright.
        reduce_retracing: If True, leave the dimensions open in which two calls differ,
            so that other sizes need no new trace.
        experimental_implements: Ignored.
        experimental_autograph_options: Ignored.
        experimental_attributes: Ignored.
        experimental_relax_shapes: Older name of ``reduce_retracing``.
        experimental_compile: Ignored.
        experimental_follow_type_hints: Ignored.

    Returns:
        A callable with the signature of ``func``. Calls raise `tw.errors.TracingError`
        (a TypeError) where Python needs the value of a tensor, TypeError for arguments
        that do not match the ``input_signature``, and ValueError if variables are
        created in any call but the first.

    Raises:
        TypeError: If ``func`` is not callable.

    Example:
        >>> @tw.function
        ... def square_sum(x):
        ...     print("tracing", x.shape)
        ...     return tw.reduce_sum(x * x)
        >>> square_sum(tw.constant([1.0, 2.0])).numpy()
        tracing (2,)
        np.float32(5.0)
        >>> square_sum(tw.constant([2.0, 2.0])).numpy()
        np.float32(8.0)
    """
    relaxed = reduce_retracing or bool(experimental_relax_shapes)
    if func is None:
        return lambda func: Function(
            func, input_signature, relaxed, autograph=autograph
        )
    return Function(func, input_signature, relaxed, autograph=autograph)


class Function(Generic[P, R]):
    """A Python function that is traced when called; see `tw.function`."""

    def __init__(
        self,
        python_function: Callable[P, R],
        input_signature: Sequence[Any] | None = None,
        reduce_retracing: bool = False,
        owner: Callable[[], Any] | None = None,
        autograph: bool = True,
    ):
        self._kind = _unwrapped_kind(python_function)
        if self._kind is not None:
            python_function = python_function.__func__
        if not callable(python_function):
            raise TypeError(f"function: {python_function!r} is not a callable object")
        # Not its attributes: a callable object has some of its own.
        functools.update_wrapper(self, python_function, updated=())
        self.python_function = python_function
        self._name = getattr(python_function, "__name__", "function")
        self.input_signature = (
            tuple(input_signature)
            if isinstance(input_signature, list)
            else input_signature
        )
        self.reduce_retracing = reduce_retracing
        self.autograph = autograph
        self._owner = owner  # a function without arguments that returns it, or None
        self._home = None  # the class of which it is a method
        self._owners = {}  # id of an owner -> a reference to it, and its own `Function`
        self._lock = threading.RLock()
        self._signature = None
        if owner is not None or not _seems_method(python_function):
            self._signature = self._read_signature()
        self._forget_traces()

    def _forget_traces(self):
        self._concrete = {}  # key of arguments -> trace
        self._eager = {}  # key of arguments -> why their calls run eagerly
        self._peeked = {}  # key -> the iterators whose next elements select the trace
        self._general = {}  # kind of arguments -> their specs with differing sizes open
        self._fast = {}  # `quick_key` of arguments -> trace
        self._watched = {}  # key -> weak references to arguments, with callbacks
        self._tracing = set()
        self._may_create = True  # variables
        self._count = self._calls = 0
        self.retraces: Retraces = Retraces(self._name, self.reduce_retracing)

    def _read_signature(self):
        bound = self._owner is not None
        constraints = self.input_signature
        return Signature(self.python_function, self._name, constraints, bound)

    @property
    def signature(self):
        """The parameters of the function."""
        if self._signature is None:
            self._signature = self._read_signature()
        return self._signature

    function_spec = function_type = signature

    @property
    def name(self) -> str:
        """The name of the Python function."""
        return self._name

    # --- calling

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if not kwargs and active_interpreter() is None and autocast_dtype() is None:
            key, tensors = quick_key(args)
            concrete = self._fast.get(key)
            if concrete is not None and not config.functions_run_eagerly():
                self._calls += 1
                return concrete.run(tensors)
        return self._call(args, kwargs)

    def _call(self, args, kwargs):
        if config.functions_run_eagerly():
            return self._run_python(args, kwargs)
        for x in args:
            if isinstance(x, SymbolicOperand):  # its ops become part of a model
                return self._run_python(args, kwargs)
        home = self._home
        if home is not None and args and isinstance(args[0], home):
            return self.__get__(args[0])._call(args[1:], kwargs)
        context = replica_context()
        if context is not None and isinstance(context.share, SymbolicTensor):
            return self._run_python(args, kwargs)  # part of the trace with that share
        self._calls += 1
        arguments = self.signature.arguments(args, kwargs)
        for x in arguments.tensors:
            if type(x) is not Tensor:
                _check_usable(x, self._name)
        if self._eager and active_tracer() is None:
            if self._key(arguments) in self._eager:  # without an exception
                return self._run_eagerly(arguments)
        try:
            concrete = self._find(arguments)
        except EagerFallback as error:
            if active_tracer() is not None:  # the trace around this one ends as well
                fall_back(str(error))
            return self._run_eagerly(arguments)
        if not kwargs and concrete.is_steady and autocast_dtype() is None:
            key, tensors = quick_key(args)
            # The fast path knows neither numbers that became tensors nor defaults.
            if key is not None and len(tensors) == len(arguments.tensors):
                if len(self._fast) >= FAST_KEYS:
                    self._fast.clear()
                self._fast[key] = concrete
        if arguments.borrowed and not concrete.borrows(arguments.tensors):
            arguments.copy_borrowed()
        if len(concrete.peeks[0]) != 1:
            return concrete.run(arguments.tensors)
        try:
            return concrete.run(arguments.tensors)
        except UnexpectedElement:  # another thread has taken the element
            return self._call(args, kwargs)

    def _run_python(self, args, kwargs):
        if self._owner is not None:
            args = (self._owner(), *args)
        return converted(self.python_function)(*args, **kwargs)

    def _run_eagerly(self, arguments):
        """Run the Python code on the values of a call; return results like a replay."""
        arguments.copy_borrowed()
        tensors = iter(arguments.tensors)
        names = self.signature.names
        values = map_tensors(lambda *_: next(tensors), arguments.values, names)
        with inside():
            answer = self._run_python(*self.signature.as_call(values))
        leaves, structure = flatten_result(answer, self._name)
        return packer(structure)([convert_to_tensor(x) for x in leaves])

    def _find(self, arguments):
        """Return the trace for these arguments; create it if it does not exist."""
        if self.reduce_retracing:
            self._relax(arguments)
        key = self._key(arguments)
        if key in self._eager:
            fall_back(self._eager[key])
        concrete = self._concrete.get(key)
        if concrete is None or not concrete.holds():
            with self._lock:
                concrete = self._concrete.get(key)
                if concrete is None or not concrete.holds():
                    concrete = self._trace_and_cache(key, arguments)
        tracer = active_tracer()
        if tracer is not None:
            tracer.captured_constants.update(concrete.captured_constants)
        return concrete

    def _key(self, arguments):
        """Return the key of the trace: arguments, context, and specs of peeked elements."""
        key = arguments.static, arguments.specs, trace_context()
        sources = self._peeked.get(key)
        if sources is None:
            return key
        if active_tracer() is not None:
            fall_back(f"'{self._name}' is traced for the sizes of the next elements")
        return *key, _peek_again(sources, arguments.tensors)

    def _key_with_peeks(self, key, peeks):
        """Return the key of a trace that depends on the specs of peeked elements."""
        sources, specs = peeks
        if not sources:
            return key
        known = self._peeked.setdefault(key[:3], sources)
        if list(map(_identity, known)) != list(map(_identity, sources)):
            self._eager[key] = f"'{self._name}' takes other elements for other sizes"
            fall_back(self._eager[key])
        return *key[:3], specs

    def _relax(self, arguments):
        """Leave sizes open in the specs that differ from the specs of earlier calls."""
        specs = arguments.specs
        ranks = tuple([(None if s is None else len(s), *rest) for s, *rest in specs])
        kind = arguments.static, ranks
        general = self._general.get(kind, specs)
        if general != specs:
            general = tuple([(_common(a[0], b[0]), *a[1:])
                             for a, b in zip(general, specs)])  # fmt: skip
            arguments.specs = general
        self._general[kind] = general

    # --- tracing

    def _trace_and_cache(self, key, arguments):
        if key in self._tracing:
            raise TracingError(
                f"{user_line(always=True)}: function '{self._name}' recurses "
                "endlessly with arguments of the same signature. End the recursion "
                "with a Python value: pass the depth as a number, or use "
                "tw.while_loop"
            )
        self._tracing.add(key)
        try:
            self._refuse_iterators(arguments)
            concrete = self._concrete_for(arguments)
        except EagerFallback as error:
            full_key = self._key_with_peeks(key, error.peeks)
            self._eager[full_key] = str(error)
            self._watch(full_key, arguments)
            raise
        finally:
            self._tracing.discard(key)
        full_key = self._key_with_peeks(key, concrete.peeks)
        self._concrete[full_key] = concrete
        self._fast.clear()
        self._watch(full_key, arguments)
        if not self._tracing:  # a recursion is one call
            names = self.signature.names
            warning = self.retraces.note(self._calls, names, arguments)
            if warning:
                file, _, line = (user_line(always=True) or "?:0").rpartition(":")
                warnings.warn_explicit(warning, UserWarning, file, int(line))
        return concrete

    def _refuse_iterators(self, arguments):
        """End the trace if there are Python iterators among arguments and captures.

        Every replay would see the elements that they returned while tracing.
        """
        names = _named(self.signature.names, arguments.values)
        owner = None if self._owner is None else self._owner()
        for name, x in [*names, *_captures(self.python_function, owner)]:
            if isinstance(x, Iterator) and not isinstance(x, (Resource, IOBase)):
                fall_back(
                    f"'{name}' of '{self._name}' is a {type(x).__name__}, which "
                    "returns something else in each call, so it cannot be traced: "
                    "make a data set of it (tw.data.Dataset.from_generator), and "
                    "iterate over that"
                )

    def _concrete_for(self, arguments):
        """Trace for these arguments; for all sizes if their specs leave sizes open."""
        shapes = tuple([shape for shape, *_ in arguments.specs])
        if not is_open(shapes):
            return self.trace_for(arguments, shapes)
        latest = [arguments]
        specializations = Specializations(
            lambda shapes: self.trace_for(latest[0], shapes), shapes
        )
        sizes = None
        if all([type(x) is Tensor for x in arguments.tensors]):
            sizes = tuple([x.array.shape for x in arguments.tensors])
        concrete = specializations.first(sizes) or self._untraced(arguments, shapes)
        latest[0] = arguments.released()
        concrete.specializations = specializations
        return concrete

    def _untraced(self, arguments, shapes):
        """Return a stand-in for traces that are made for the sizes of each call."""
        graph, taken = Graph(self._name), set()
        tensors = zip(arguments.tensors, shapes, arguments.names, strict=True)

        def spec(_, name):
            tensor, shape, own_name = next(tensors)
            name, dtype = _unique(own_name or name, taken), tensor.dtype
            graph.inputs.append(Value(shape, dtype.dtype, None, name))
            return TensorSpec(shape, dtype, name)

        values = [revived(x) for x in arguments.values]
        values = map_tensors(spec, values, self.signature.names)
        graph.finished = True
        inputs = InputStructure.of(self.signature, values, arguments.names)
        return UntracedFunction(graph, input_structure=inputs)

    def trace_for(self, arguments, shapes):
        """Trace for tensors of these shapes; only the first trace may create variables."""
        concrete = self._trace(arguments, shapes)
        if concrete.created and self._may_create:
            _advance_generators(concrete.advanced_generators)
            concrete = self._trace(arguments, shapes)
        if concrete.created:
            raise ValueError(self._creation_message(concrete.created))
        self._may_create = False
        return concrete

    def _keep_created(self, tracer):
        """Keep the variables of a discarded trace."""
        if tracer.created and not self._may_create:
            raise ValueError(self._creation_message(tracer.created))
        _advance_generators(_advanced_generators(tracer))
        self._may_create = False

    def _creation_message(self, created):
        names = ", ".join([repr(variable.path) for variable in created])
        return (
            "tf.function only supports singleton tf.Variables created on the first "
            f"call: function '{self._name}' created {names} in a later one. Create "
            "variables outside, or only once: if self.v is None: self.v = "
            "Variable(...)"
        )

    def _trace(self, arguments, shapes):
        """Run the function once under a tracer."""
        graph = Graph(self._name)
        tracer = Tracer(graph)
        tracer.converts = self.autograph
        tracer.peeks = [] if active_tracer() is None else None
        tensors = zip(arguments.tensors, shapes, arguments.names, strict=True)
        taken = set()

        def symbolic(_, name):
            tensor, shape, own_name = next(tensors)
            name = _unique(own_name or name, taken)
            made = tracer.input(shape, tensor.dtype.dtype, name)
            tracer.call_tensors[made.symbol] = tensor
            return made

        names = self.signature.names
        values = [revived(x) for x in arguments.values]
        values = map_tensors(symbolic, values, names)
        try:
            with use_interpreters((tracer,)), inside():
                answer = self._run_python(*self.signature.as_call(values))
                leaves, structure = flatten_result(answer, self._name)
                advanced = _advanced_generators(tracer)
                tracer.finish([convert_to_tensor(x) for x in leaves])
        except Exception as error:  # code that catches the fallback may raise another
            fallback = graph.fallback or _fallback_of(error)
            if fallback is None:
                self._name_in(error)
                raise
            self._count += 1
            self._keep_created(tracer)
            fallback.peeks = _peeks_of(tracer)
            raise fallback from None
        finally:
            graph.finished = True
        self._count += 1
        inputs = InputStructure.of(self.signature, values, arguments.names)
        concrete = ConcreteFunction(graph, structure, inputs, tracer)
        concrete.peeks = _peeks_of(tracer)
        concrete.is_steady &= concrete.peeks == NO_PEEKS
        modules = {current_module(), *[module for *_, module in arguments.specs]}
        concrete.advanced_generators = advanced
        if len(modules) > 1:
            concrete.is_compiled = False
        return concrete

    def _name_in(self, error):
        """Add the function and the user's line to an error that does not have them."""
        known = [str(error), *getattr(error, "__notes__", ())]
        line = line_of_error(error)
        if line is not None and not any(["function '" in text for text in known]):
            at = "" if any([line in text for text in known]) else f", {line}"
            error.add_note(f"in the function {self._name!r}{at}")

    def _watch(self, key, arguments):
        """Drop the trace when an object among its arguments is garbage collected."""
        if not arguments.objects:
            return
        me = weakref.ref(self)

        def drop(_):
            function = me()
            if function is not None:
                function._concrete.pop(key, None)
                function._eager.pop(key, None)
                function._watched.pop(key, None)

        objects = [reference() for reference in arguments.objects]
        self._watched[key] = [weakref.ref(x, drop) for x in objects if x is not None]

    # --- methods

    def __set_name__(self, home, name):
        self._home = home

    @overload
    def __get__(self, owner: None, home: type[Any]) -> Self: ...
    @overload
    def __get__(
        self: Function[Concatenate[Any, Q], R], owner: object, home: Any = None
    ) -> Method[Q, R]: ...
    def __get__(self, owner, home=None):
        if self._kind is staticmethod:
            return self
        if self._kind is classmethod:
            owner = home if home is not None else type(owner)
        if owner is None:
            return self
        entry = self._owners.get(id(owner))
        if entry is None or entry[0]() is not owner:
            with self._lock:
                entry = self._own(owner)
        return Method(entry[1], owner)

    def _own(self, owner):
        """Return the `Function` of one owner, which has separate traces."""
        number, owners = id(owner), self._owners
        entry = owners.get(number)
        if entry is not None and entry[0]() is owner:
            return entry
        try:
            reference = weakref.ref(owner, lambda _: owners.pop(number, None))
        except TypeError:  # not weakly referable: it lives as long as this function
            reference = Always(owner)
        own = Function(
            self.python_function,
            self.input_signature,
            self.reduce_retracing,
            owner=reference,
            autograph=self.autograph,
        )
        entry = owners[number] = reference, own
        return entry

    # --- looking inside

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """Return the trace for these arguments; a `TensorSpec` may replace a tensor.

        Without arguments, return the trace of the ``input_signature``.

        Raises:
            TypeError: If the function does not accept the arguments.
        """
        home = self._home
        if home is not None and args and isinstance(args[0], home):
            return self.__get__(args[0]).get_concrete_function(*args[1:], **kwargs)
        if not (args or kwargs) and self.input_signature is not None:
            args = self.input_signature
        return self._find(self.signature.arguments(args, kwargs))

    def experimental_get_tracing_count(self) -> int:
        """Count how often the Python function was traced."""
        return self._count

    @property
    def eager_reasons(self) -> list[str]:
        """The reasons why calls run eagerly, such as results whose sizes depend on values."""
        return list(dict.fromkeys(self._eager.values()))

    @property
    def concrete_functions(self) -> list[ConcreteFunction]:
        """All traces, in the order of creation."""
        return list(self._concrete.values())

    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> str:
        """Return the signatures of all traces, as text."""
        texts = [c.pretty_printed_signature(verbose) for c in self.concrete_functions]
        return "\n\n".join(texts)

    def pretty(
        self,
        *args: Any,
        target: Literal["native", "numpy"] | None = None,
        **kwargs: Any,
    ) -> str:
        """Return the executable for these arguments as text; without any, the latest one.

        Args:
            *args: Arguments of a call.
            target: See `ConcreteFunction.pretty`. If it is not a string, it is an
                argument of the function.
            **kwargs: Keyword arguments of a call.

        Raises:
            ValueError: If there are no arguments and the function was not traced yet.
        """
        if target is not None and not isinstance(target, str):
            kwargs["target"], target = target, None
        return self._one_of(args, kwargs).pretty(target)

    def pipeline(self, *args: Any, **kwargs: Any) -> str:
        """Return the compiler's passes as text: see `ConcreteFunction.pipeline`.

        Args:
            *args: Arguments of a call; without any, the latest trace is shown.
            **kwargs: Keyword arguments of a call.

        Raises:
            ValueError: If there are no arguments and the function was not traced yet.
        """
        return self._one_of(args, kwargs).pipeline()

    def explain(self, *args: Any, repeats: int | None = None, **kwargs: Any) -> Any:
        """Time each call of the executable: see `ConcreteFunction.explain`."""
        concrete, tensors = self._one_of(args, kwargs), ()
        if args or kwargs:
            inputs = self.signature.arguments(args, kwargs).tensors
            tensors = [x for x in inputs if not isinstance(x, TensorSpec)]
            tensors = tensors if len(tensors) == len(inputs) else ()
        return concrete.explain(*tensors, repeats=repeats)

    def _one_of(self, args, kwargs):
        """Return the trace for these arguments; without any, the latest one."""
        if args or kwargs or self.input_signature is not None:
            return self.get_concrete_function(*args, **kwargs)
        if self._concrete:
            return self.concrete_functions[-1]
        for reason in self.eager_reasons:
            fall_back(reason)
        if self.signature.parameters:
            raise ValueError(
                f"function '{self._name}' was not traced yet: call it first, or pass "
                "arguments"
            )
        return self.get_concrete_function()

    def __repr__(self) -> str:
        return f"<tapewright.function {self._name}>"

    def __reduce__(self):
        module = sys.modules.get(self.__dict__.get("__module__"))
        object_ = module
        for part in self.__dict__.get("__qualname__", "").split("."):
            object_ = getattr(object_, part, None)
        if object_ is self:
            return self.__qualname__  # by name, as any function
        given = self.python_function, self.input_signature, self.reduce_retracing
        return Function, (*given, None, self.autograph)


def _named(names, values):
    """Return pairs of a name and a leaf of the arguments."""
    pairs = zip(names, values, strict=True)
    return [pair for name, x in pairs for pair in named_leaves(x, name)]


def _captures(function, owner):
    """Yield pairs of a name and an object: closure variables, globals and attributes."""
    code = getattr(function, "__code__", None)
    if code is None:
        return
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # a cell that is empty as yet
            yield name, cell.cell_contents
    for space in (function.__globals__, getattr(owner, "__dict__", {})):
        yield from [(name, space[name]) for name in code.co_names if name in space]


def _fallback_of(error):
    """Return the `EagerFallback` for an error that has ended a trace, or None."""
    # In a trace around this one the code may do without the value: it tells.
    if isinstance(error, NeedsValue) and active_tracer() is None:
        return EagerFallback(str(error))
    return None


def _peeks_of(tracer):
    """Return the elements that a trace has peeked at, and the texts of their specs.

    An element is ``(handle, number)``; the number is counted from the next element; a
    handle is a tensor, or the number of an input of the trace.
    """
    peeks, tracer.peeks = tracer.peeks or (), None
    inputs = tracer.graph.inputs
    sources = [(inputs.index(x) if is_value(x) else x, n) for x, n, *_ in peeks]
    return tuple(sources), tuple([repr(spec) for _, _, spec, _ in peeks])


def _identity(source):
    """Return what identifies a source of elements: its argument, or its object."""
    handle, number = source
    return handle if type(handle) is int else id(object_of(handle.array)), number


def _peek_again(sources, tensors):
    """Peek at the same elements for the tensors of another call."""
    handles = [tensors[x] if type(x) is int else x for x, _ in sources]
    pairs = zip(handles, sources, strict=True)
    return tuple([repr(object_of(x.array)._tw_peek_spec(n)) for x, (_, n) in pairs])


def _advanced_generators(tracer):
    """Return pairs of the state of a generator and its value after initial values."""
    pairs = tracer.advanced_generators.values()
    return [(state, concrete_value(value)) for state, value in pairs]


def _advance_generators(advanced):
    """Advance generators past the numbers that initial values of variables have used."""
    for state, value in advanced:
        state.assign(value)


def _unwrapped_kind(function):
    kind = type(function)
    return kind if kind in (classmethod, staticmethod) else None


def _seems_method(function):
    """Return whether the first parameter may be an owner: the signature is read later.

    This holds for functions in the body of a class, regardless of the parameter's name.
    """
    code = getattr(function, "__code__", None)
    home = getattr(function, "__qualname__", "").rpartition(".")[0]
    in_class = bool(home) and not home.endswith("<locals>")
    named = code is not None and code.co_varnames[:1] in (("self",), ("cls",))
    return in_class or named


def _common(a, b):
    if a is None or b is None:
        return None
    return tuple([m if m == n else None for m, n in zip(a, b, strict=True)])


def _unique(name, taken):
    """Return the name, with a number appended if it is taken."""
    unique, n = name, 0
    while unique in taken:
        n += 1
        unique = f"{name}_{n}"
    taken.add(unique)
    return unique


def _check_usable(x, name):
    """Raise if a function is called with a spec, or with a tensor of an inactive trace."""
    if isinstance(x, TensorSpec):
        raise TypeError(
            f"function '{name}' was called with {x}: a spec has no value. Call it with a "
            "tensor, or trace it with get_concrete_function"
        )
    if type(x) is SymbolicTensor and not any([r.traces for r in active_interpreters()]):
        x.raise_outside_trace()
