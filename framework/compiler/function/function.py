"""`function`: Python traced once for each kind of arguments, then replayed."""

from __future__ import annotations

import functools
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from io import IOBase
from typing import Any, Concatenate, Generic, ParamSpec, Self, overload

import numpy as np

from tapewright.core import config
from tapewright.core.devices import current_module
from tapewright.core.errors import TracingError
from tapewright.core.interpreters import (
    active_interpreter,
    active_interpreters,
    active_tracer,
    use_interpreters,
)
from tapewright.core.source_lines import user_line
from tapewright.core.tensor import Tensor, TensorSpec, convert_to_tensor
from tapewright.core.typing import P, R
from tapewright.ops.random.generators import is_lent

from ..tracing.graph import Graph, Value, is_value
from ..tracing.handles import Resource, Unforeseen
from ..tracing.lifting import value_now
from ..tracing.tracer import EagerFallback, SymbolicTensor, Tracer, fall_back
from .arguments import map_tensors, named_leaves, quick_key, revived
from .concrete_function import ConcreteFunction, Form, UntracedFunction
from .methods import Always, Method
from .outputs import numbered, packer
from .retracing import Retraces
from .scopes import inside
from .signature import Signature
from .specialization import Specializations, is_open

__all__ = ["ConcreteFunction", "Function", "function"]

Q = ParamSpec("Q")

NO_FORESIGHT = (), ()

# So many shapes of arguments are found at once; more take a longer way.
QUICK = 1024


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
    """Decorator: the function runs once for each kind of arguments, then is replayed.

    What it does to tensors is written down while it runs, and made into a flat list of
    array calls; that list is what further calls run. Tensors are told apart by shape and
    dtype, Python values by type and value, other objects by identity. Python itself (a
    ``print``, an ``append``) runs while tracing only; `Variable` assignments, random
    numbers, ``tw.print`` and updates of optimizers happen in every call, and iterators of
    data sets go on. A call runs eagerly where no trace can know what comes: in a loop of
    Python over a data set, with iterators of Python itself, and with a `py_function` whose
    ``Tout`` has no shape.

    Args: ``input_signature``: a list of `TensorSpec`, or nests of them: one trace serves
    all calls, and arguments are converted or refused with a ``TypeError``;
    ``reduce_retracing``: dimensions in which two calls differ are left open, so that
    further sizes need no trace. The others are TensorFlow's, and change nothing here:
    there is no other compiler (``jit_compile``), and Python's ``if`` and ``while`` are
    not rewritten (``autograph``): see `cond`, `while_loop` and `where`.

    Raises: ``TracingError`` where Python needs the value of a tensor; ``ValueError`` if
    variables are made in other calls than the first.

    >>> import tapewright as tw
    >>> @tw.function
    ... def square_sum(x):
    ...     print("tracing", x.shape)
    ...     return tw.reduce_sum(x * x)
    >>> square_sum(tw.constant([1.0, 2.0])).numpy(), square_sum(tw.constant([2.0, 2.0])).numpy()
    tracing (2,)
    (np.float32(5.0), np.float32(8.0))
    """
    relaxed = reduce_retracing or bool(experimental_relax_shapes)
    if func is None:
        return lambda func: Function(func, input_signature, relaxed)
    return Function(func, input_signature, relaxed)


class Function(Generic[P, R]):
    """A Python function that is traced when called; made by `function`."""

    def __init__(
        self,
        python_function: Callable[P, R],
        input_signature: Sequence[Any] | None = None,
        reduce_retracing: bool = False,
        owner: Callable[[], Any] | None = None,
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
        self._owner = owner  # a function without arguments that gives it, or None
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
        self._foresight = {}  # key -> the iterators that are asked what they will give
        self._general = {}  # what the specs of arguments have in common, by their kind
        self._quick = {}  # for plain tensors: shapes and dtypes -> trace
        self._watched = {}  # key -> references that tell when an argument is gone
        self._tracing = set()
        self._may_create = True  # variables
        self._count = self._calls = 0
        self._retraces = Retraces(self._name, self.reduce_retracing)

    def _read_signature(self):
        bound = self._owner is not None
        constraints = self.input_signature
        return Signature(self.python_function, self._name, constraints, bound)

    @property
    def signature(self):
        """The parameters: a `Signature`."""
        if self._signature is None:
            self._signature = self._read_signature()
        return self._signature

    function_spec = function_type = signature

    @property
    def name(self) -> str:
        return self._name

    # --- calling

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if not kwargs and active_interpreter() is None:
            key, tensors = quick_key(args)
            found = self._quick.get(key)
            if found is not None and not config.functions_run_eagerly():
                self._calls += 1
                return found.run(tensors)
        return self._call(args, kwargs)

    def _call(self, args, kwargs):
        if config.functions_run_eagerly():
            return self._run_python(args, kwargs)
        for x in args:
            if hasattr(x, "record_op"):  # its ops become part of a model
                return self._run_python(args, kwargs)
        home = self._home
        if home is not None and args and isinstance(args[0], home):
            return self.__get__(args[0])._call(args[1:], kwargs)
        self._calls += 1
        arguments = self.signature.arguments(args, kwargs)
        for x in arguments.tensors:
            if type(x) is not Tensor:
                _check_usable(x, self._name)
        if self._eager and active_tracer() is None:
            if self._key(arguments) in self._eager:  # the quick way
                return self._run_eagerly(arguments)
        try:
            concrete = self._find(arguments)
        except EagerFallback as error:
            if active_tracer() is not None:  # the trace around this one ends as well
                fall_back(str(error))
            return self._run_eagerly(arguments)
        if not kwargs and concrete.is_steady:
            key, tensors = quick_key(args)
            # Numbers that became tensors, and defaults, are not among those found.
            if key is not None and len(tensors) == len(arguments.tensors):
                if len(self._quick) >= QUICK:
                    self._quick.clear()
                self._quick[key] = concrete
        if arguments.borrowed and not concrete.borrows(arguments.tensors):
            arguments.copy_borrowed()
        if len(concrete.foresight[0]) != 1:
            return concrete.run(arguments.tensors)
        try:
            return concrete.run(arguments.tensors)
        except Unforeseen:  # another thread has taken the element that was to come
            return self._call(args, kwargs)

    def _run_python(self, args, kwargs):
        if self._owner is not None:
            args = (self._owner(), *args)
        return self.python_function(*args, **kwargs)

    def _run_eagerly(self, arguments):
        """The Python code run on the values of a call; its results as a trace gives them."""
        arguments.copy_borrowed()
        tensors = iter(arguments.tensors)
        names = self.signature.names
        values = map_tensors(lambda *_: next(tensors), arguments.values, names)
        answer = self._run_python(*self.signature.as_call(values))
        leaves, structure = numbered(answer, self._name)
        return packer(structure)([convert_to_tensor(x) for x in leaves])

    def _find(self, arguments):
        """The trace for these arguments, made if there is none."""
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
                    concrete = self._trace_and_keep(key, arguments)
        tracer = active_tracer()
        if tracer is not None:
            tracer.captured_constants.update(concrete.captured_constants)
        return concrete

    def _key(self, arguments):
        """The key of the trace: arguments, surroundings, and elements to come if asked."""
        surroundings = current_module(), is_lent()
        key = arguments.static, arguments.specs, surroundings
        sources = self._foresight.get(key)
        if sources is None:
            return key
        if active_tracer() is not None:
            fall_back(f"'{self._name}' is traced for the sizes of the elements to come")
        return *key, _foreseen(sources, arguments.tensors)

    def _keep_foresight(self, key, foresight):
        """The key of a trace for which iterators were asked what they will give."""
        sources, found = foresight
        if not sources:
            return key
        known = self._foresight.setdefault(key[:3], sources)
        if known != sources:
            self._eager[key] = f"'{self._name}' takes other elements for other sizes"
            fall_back(self._eager[key])
        return *key[:3], found

    def _relax(self, arguments):
        """Leaves open in the specs what differs from those of earlier calls."""
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

    def _trace_and_keep(self, key, arguments):
        if key in self._tracing:
            raise TracingError(
                f"{user_line(always=True)}: function '{self._name}' calls itself with "
                "arguments of the kind with which it is being traced, without end. A "
                "recursion ends if Python values decide: pass the depth as a number, or "
                "loop with tw.while_loop"
            )
        self._tracing.add(key)
        try:
            self._refuse_iterators(arguments)
            concrete = self._traced(arguments)
        except EagerFallback as error:
            kept = self._keep_foresight(key, error.foresight)
            self._eager[kept] = str(error)
            self._watch(kept, arguments)
            raise
        finally:
            self._tracing.discard(key)
        key = self._keep_foresight(key, concrete.foresight)
        self._concrete[key] = concrete
        self._quick.clear()
        self._watch(key, arguments)
        if not self._tracing:  # a recursion is one call
            names = self.signature.names
            warning = self._retraces.note(self._calls, names, arguments)
            if warning:
                file, _, line = (user_line(always=True) or "?:0").rpartition(":")
                warnings.warn_explicit(warning, UserWarning, file, int(line))
        return concrete

    def _refuse_iterators(self, arguments):
        """Ends the trace if Python's own iterators are among arguments and captures.

        A trace would give what they gave while tracing for ever.
        """
        names = _named(self.signature.names, arguments.values)
        owner = None if self._owner is None else self._owner()
        for name, x in [*names, *_captures(self.python_function, owner)]:
            if isinstance(x, Iterator) and not isinstance(x, (Resource, IOBase)):
                fall_back(
                    f"'{name}' of '{self._name}', a {type(x).__name__}, gives something "
                    "else in each call, which no trace can: make a data set of it "
                    "(tw.data.Dataset.from_generator), and iterate over that"
                )

    def _traced(self, arguments):
        """The trace for these arguments; for all sizes, where their specs leave it open."""
        shapes = tuple([shape for shape, *_ in arguments.specs])
        if not is_open(shapes):
            return self.trace_for(arguments, shapes)
        latest = [arguments]
        family = Specializations(lambda s: self.trace_for(latest[0], s), shapes)
        given = None
        if all([type(x) is Tensor for x in arguments.tensors]):
            given = tuple([x.array.shape for x in arguments.tensors])
        concrete = family.first(given) or self._untraced(arguments, shapes)
        latest[0] = arguments.released()
        concrete.sizes = family
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
        form = Form.of(self.signature, values, arguments.names)
        return UntracedFunction(graph, form=form)

    def trace_for(self, arguments, shapes):
        """The trace for tensors of these shapes; variables are made in the first only."""
        concrete = self._trace(arguments, shapes)
        if concrete.created and self._may_create:
            _use_up(concrete.drawn)
            concrete = self._trace(arguments, shapes)
        if concrete.created:
            raise ValueError(self._creation_message(concrete.created))
        self._may_create = False
        return concrete

    def _keep_created(self, tracer):
        """Settles the variables of a trace that is given up: they live on."""
        if tracer.created and not self._may_create:
            raise ValueError(self._creation_message(tracer.created))
        _use_up([(v, value_now(state)) for v, state in tracer.drawn.values()])
        self._may_create = False

    def _creation_message(self, created):
        names = ", ".join([repr(variable.path) for variable in created])
        return (
            "tf.function only supports singleton tf.Variables created on the first call: "
            f"function '{self._name}' made {names} in a later one. Make variables outside, "
            "or keep them: if self.v is None: self.v = Variable(...)"
        )

    def _trace(self, arguments, shapes):
        """The function run once, and what it did written down."""
        graph = Graph(self._name)
        tracer = Tracer(graph)
        tracer.foreseen = [] if active_tracer() is None else None
        tensors = zip(arguments.tensors, shapes, arguments.names, strict=True)
        taken = set()

        def symbolic(_, name):
            tensor, shape, own_name = next(tensors)
            name = _unique(own_name or name, taken)
            made = tracer.input(shape, tensor.dtype.dtype, name)
            tracer.given[made.symbol] = tensor
            return made

        names = self.signature.names
        values = [revived(x) for x in arguments.values]
        values = map_tensors(symbolic, values, names)
        try:
            with use_interpreters((tracer,)), inside():
                answer = self._run_python(*self.signature.as_call(values))
                leaves, structure = numbered(answer, self._name)
                drawn = [(v, value_now(state)) for v, state in tracer.drawn.values()]
                tracer.finish([convert_to_tensor(x) for x in leaves])
        except Exception:  # of code that has caught the fallback, it may be another
            error = graph.fallback
            if error is None:
                raise
            self._count += 1
            self._keep_created(tracer)
            error.foresight = _foresight(tracer)
            raise error from None
        finally:
            graph.finished = True
        self._count += 1
        form = Form.of(self.signature, values, arguments.names)
        concrete = ConcreteFunction(graph, structure, form, tracer)
        concrete.foresight = _foresight(tracer)
        concrete.is_steady &= concrete.foresight == NO_FORESIGHT
        modules = {current_module(), *[module for *_, module in arguments.specs]}
        concrete.drawn = drawn
        if modules != {np}:
            concrete.is_compiled = False
        return concrete

    def _watch(self, key, arguments):
        """Drops the trace when an object among its arguments is gone."""
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
        found = self._owners.get(id(owner))
        if found is None or found[0]() is not owner:
            with self._lock:
                found = self._own(owner)
        return Method(found[1], owner)

    def _own(self, owner):
        """The `Function` of one owner, which has traces of its own."""
        number, owners = id(owner), self._owners
        found = owners.get(number)
        if found is not None and found[0]() is owner:
            return found
        try:
            reference = weakref.ref(owner, lambda _: owners.pop(number, None))
        except TypeError:  # it lives as long as this function
            reference = Always(owner)
        own = Function(
            self.python_function,
            self.input_signature,
            self.reduce_retracing,
            owner=reference,
        )
        found = owners[number] = reference, own
        return found

    # --- looking inside

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """The trace for these arguments: tensors, or a `TensorSpec` in place of each.

        Without arguments, that of the ``input_signature``.
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
    def concrete_functions(self) -> list[ConcreteFunction]:
        """All traces, the latest last."""
        return list(self._concrete.values())

    def pretty_printed_concrete_signatures(self, verbose: bool = True) -> str:
        """The signatures of all traces, as text."""
        texts = [c.pretty_printed_signature(verbose) for c in self.concrete_functions]
        return "\n\n".join(texts)

    def pretty(self, *args: Any, **kwargs: Any) -> str:
        """The executable for these arguments, as it runs; without any, the latest one."""
        return self._one_of(args, kwargs).pretty()

    def explain(self, *args: Any, repeats: int | None = None, **kwargs: Any) -> Any:
        """Time each call of the executable: see `ConcreteFunction.explain`."""
        concrete, tensors = self._one_of(args, kwargs), ()
        if args or kwargs:
            found = self.signature.arguments(args, kwargs).tensors
            tensors = [x for x in found if not isinstance(x, TensorSpec)]
            tensors = tensors if len(tensors) == len(found) else ()
        return concrete.explain(*tensors, repeats=repeats)

    def _one_of(self, args, kwargs):
        """The trace for these arguments; without any, the latest one."""
        if args or kwargs or self.input_signature is not None:
            return self.get_concrete_function(*args, **kwargs)
        if self._concrete:
            return self.concrete_functions[-1]
        for reason in self._eager.values():
            fall_back(reason)
        if self.signature.parameters:
            raise ValueError(
                f"function '{self._name}' was not traced yet: call it first, or give "
                "arguments"
            )
        return self.get_concrete_function()

    def __repr__(self) -> str:
        return f"<tapewright.function {self._name}>"

    def __reduce__(self):
        module = sys.modules.get(self.__dict__.get("__module__"))
        found = module
        for part in self.__dict__.get("__qualname__", "").split("."):
            found = getattr(found, part, None)
        if found is self:
            return self.__qualname__  # by name, as any function
        given = self.python_function, self.input_signature, self.reduce_retracing
        return Function, given


def _named(names, values):
    """Pairs of a name and a leaf of the arguments."""
    pairs = zip(names, values, strict=True)
    return [pair for name, x in pairs for pair in named_leaves(x, name)]


def _captures(function, owner):
    """Pairs of a name and an object that the code of a function names outside of it."""
    code = getattr(function, "__code__", None)
    if code is None:
        return
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # a cell that is empty as yet
            yield name, cell.cell_contents
    for space in (function.__globals__, getattr(owner, "__dict__", {})):
        yield from [(name, space[name]) for name in code.co_names if name in space]


def _foresight(tracer):
    """Questions of a trace to iterators, ``(handle, number)`` each, and the answers.

    A handle is a tensor, or the number of an input of the trace.
    """
    asked, tracer.foreseen = tracer.foreseen or (), None
    inputs = tracer.graph.inputs
    sources = [(inputs.index(x) if is_value(x) else x, n) for x, n, *_ in asked]
    return tuple(sources), tuple([repr(found) for _, _, found, _ in asked])


def _foreseen(sources, tensors):
    """The answers to the questions of a trace, for the tensors of another call."""
    handles = [tensors[x] if type(x) is int else x for x, _ in sources]
    pairs = zip(handles, sources, strict=True)
    return tuple([repr(x.array.item().foresee(n)) for x, (_, n) in pairs])


def _use_up(drawn):
    """Moves generators on, behind the numbers of which variables were made."""
    for state, advanced in drawn:
        state.assign(advanced)


def _unwrapped_kind(function):
    kind = type(function)
    return kind if kind in (classmethod, staticmethod) else None


def _seems_method(function):
    """Return whether the first parameter may be an owner: then its signature can wait.

    So it is of what stands in the body of a class, whatever the parameter is called.
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
    """The name, with a number behind it if it is taken."""
    found, n = name, 0
    while found in taken:
        n += 1
        found = f"{name}_{n}"
    taken.add(found)
    return found


def _check_usable(x, name):
    """Raises where a function is called with what has no value, and no trace."""
    if isinstance(x, TensorSpec):
        raise TypeError(
            f"function '{name}' was called with {x}: a spec has no value. Call it with a "
            "tensor, or trace it with get_concrete_function"
        )
    if type(x) is SymbolicTensor and not any([r.traces for r in active_interpreters()]):
        x.stray()
