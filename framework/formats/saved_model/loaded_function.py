"""Loaded functions: the graph that serves given arguments."""

import inspect

from tapewright.compiler.function.arguments import Arguments, quick_key
from tapewright.compiler.function.concrete_function import (
    ConcreteFunction,
    fitting,
)
from tapewright.compiler.function.function import Function
from tapewright.compiler.function.signature import Signature
from tapewright.compiler.function.specialization import (
    Specializations,
    first_bound,
)
from tapewright.core.composite import CompositeTensor
from tapewright.core.errors import InvalidArgumentError
from tapewright.core.hardware.devices import is_array
from tapewright.core.nest import is_nested
from tapewright.core.settings import config
from tapewright.core.shapes.tensor_shape import UnrankedShape
from tapewright.core.tensor import Tensor, TensorSpec

from .values import nested_alike

FAST_KEYS = 1024


class NoSuchCall(TypeError, ValueError):
    """A loaded function was called with arguments for which no trace was saved."""


class SavedTraces(Specializations):
    """The traces of a loaded function, which serve sizes but make no further traces.

    ``name`` is the name of the function, ``shapes`` the allowed shapes, ``saved`` a
    list of `Trace` objects, and ``refusals`` are pairs of ranks and a reason.
    """

    def __init__(self, name, shapes, saved, refusals):
        super().__init__(None, shapes)
        self.name, self.traces, self.refusals = name, saved, refusals

    def first(self, shapes=None):
        return self.traces[0].concrete

    def _find_or_trace(self, key):
        trace, problem = first_bound(self.traces, key)
        if trace is None:
            raise problem or self._unserved(key)
        return trace

    def _unserved(self, key):
        ranks = [len(shape) for shape in key]
        for refused, reason in self.refusals:
            if refused == ranks:
                return NoSuchCall(
                    f"'{self.name}' could not be traced for ranks {ranks} when it was "
                    f"saved: {reason}"
                )
        patterns = ", ".join([str(list(t.pattern)) for t in self.traces[:20]])
        return NoSuchCall(
            f"'{self.name}' has no saved trace for the shapes {list(key)}; it has "
            f"traces for {patterns}, where None is any size that the code did not use "
            "as a number. Call the function with such shapes before saving it"
        )


class Restored(Function):
    """A function from a file: it has the saved traces and makes no others.

    ``parameters`` are `inspect.Parameter` objects; ``saved`` is a list with a
    `ConcreteFunction` with `InputStructure` for each signature.
    """

    def __init__(self, name, parameters, saved, input_signature=None):
        super().__init__(_stub(name, parameters))
        self._name, self.saved = name, saved
        self.input_signature = input_signature
        self._concrete = dict(enumerate(saved))

    def _read_signature(self):
        return Signature(self.python_function, self.python_function.__name__)

    def _call(self, args, kwargs):
        self._calls += 1
        values = self.signature.bind(args, kwargs)
        concrete, tensors = self._matching(values)
        if not kwargs and concrete.is_steady and not config.functions_run_eagerly():
            key, leaves = quick_key(args)
            plain = key is not None and len(leaves) == len(tensors)
            if plain and all(x is y for x, y in zip(leaves, tensors)):
                if len(self._fast) >= FAST_KEYS:
                    self._fast.clear()
                self._fast[key] = concrete
        return concrete.run(tensors)

    def _find(self, arguments):
        return self._matching(arguments.values)[0]

    def _matching(self, values):
        """Return the trace for these values of the parameters, and their tensors."""
        fits = []
        for concrete in self.saved:
            tensors = []
            if all(
                map(
                    _collect,
                    values,
                    concrete.input_structure.values,
                    [tensors] * len(values),
                )
            ):
                if all(_is_exact(x, v) for x, v in zip(tensors, concrete.graph.inputs)):
                    return concrete, tensors
                fits.append((concrete, tensors))
        if fits:
            return fits[0]
        given = ", ".join([_shown(x) for x in values])
        known = "\n".join([f"  {c.form_text()}" for c in self.saved]) or "  none"
        raise NoSuchCall(
            f"function '{self._name}' has no saved signature that accepts ({given}); "
            f"convert the arguments to one of its signatures:\n{known}"
        )

    def __reduce__(self):
        raise TypeError(
            f"function '{self._name}' was loaded from a file and has no Python code "
            "to pickle: save it with saved_model.save"
        )


class RestoredConcrete(ConcreteFunction):
    """A trace from a file."""

    def form_text(self):
        parameters = zip(
            self.input_structure.signature.parameters, self.input_structure.shown()
        )
        return f"({', '.join([f'{p.name}: {x}' for p, x in parameters])})"


def _stub(name, parameters):
    """Return a function with the signature of the Python code, which is not saved."""

    def function(*args, **kwargs):
        raise InvalidArgumentError(f"function '{name}' has no Python code")

    function.__name__ = function.__qualname__ = name
    function.__signature__ = inspect.Signature(parameters)
    function.__module__ = __name__
    return function


def _collect(value, wanted, tensors):
    """Return True if a value fits the saved one; append its tensors to a list."""
    if isinstance(wanted, TensorSpec):
        return _collect_tensor(value, wanted, tensors)
    if isinstance(wanted, CompositeTensor):
        if not isinstance(value, CompositeTensor):
            return False
        if value._tw_static_key() != wanted._tw_static_key():
            return False
        pairs = zip(value._tw_components(), wanted._tw_components(), strict=True)
        return all(_collect(x, spec, tensors) for x, spec in pairs)
    if is_nested(wanted):
        if not nested_alike(value, wanted):
            return False
        keys = _keys(wanted) if isinstance(wanted, dict) else range(len(wanted))
        return all(_collect(value[k], wanted[k], tensors) for k in keys)
    if value is wanted:
        return True
    if isinstance(value, (Tensor, CompositeTensor)) or is_nested(value):
        return False
    return Arguments((value,)).static == Arguments((wanted,)).static


def _keys(mapping):
    try:
        return sorted(mapping)
    except TypeError:  # of several types: in their order, as in `nest`
        return list(mapping)


def _collect_tensor(value, spec, tensors):
    if isinstance(value, TensorSpec):
        fits = spec.is_compatible_with(value)
        tensors.append(value)
        return fits
    if (
        value is None
        or isinstance(value, (str, bytes, bool))
        and not _takes(value, spec)
    ):
        return False
    if isinstance(value, (dict, CompositeTensor)):
        return False
    if not isinstance(value, Tensor) and not hasattr(type(value), "__tensor__"):
        kind = value.dtype if is_array(value) else None
        if kind is not None and kind != spec.dtype.dtype:
            return False
    try:
        if hasattr(type(value), "__tensor__"):
            value = value.__tensor__()
        tensors.append(fitting(value, spec, ""))
    except (TypeError, ValueError):
        return False
    return True


def _takes(value, spec):
    kind = spec.dtype.dtype.kind
    return kind == "b" if isinstance(value, bool) else kind == "O"


def _is_exact(x, value):
    shape = getattr(getattr(x, "array", None), "shape", None)
    if (
        shape is None
        or isinstance(value.shape, UnrankedShape)
        or len(shape) != len(value.shape)
    ):
        return False
    return all(type(n) is int and n == m for n, m in zip(value.shape, shape))


def _shown(x):
    if isinstance(x, Tensor) or is_array(x):
        return f"{getattr(x.dtype, 'name', x.dtype)}{list(x.shape)}"
    text = repr(x)
    return text if len(text) < 80 else f"{text[:77]}..."
