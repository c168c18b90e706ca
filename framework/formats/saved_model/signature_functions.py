"""``loaded.signatures``: functions by name that accept tensors and return dicts of them."""

from tapewright.compiler.function.concrete_function import ConcreteFunction
from tapewright.compiler.function.function import Function
from tapewright.compiler.function.methods import Method
from tapewright.core.errors import SavingError
from tapewright.core.nest import flatten, map_structure
from tapewright.core.tensor import TensorSpec

from .functions import has_traces, map_specs, specs_of, why_untraced

DEFAULT_SERVING_SIGNATURE_DEF_KEY = "serving_default"


class SignatureFunction:
    """A function of tensors by the names of their specs, or else of the parameters.

    Its result is a dict: ``{"output_0": ...}`` unless the function returns a dict.
    """

    def __init__(self, function):
        self.function = function
        self._concrete = function.saved[0]
        self._names = [value.name for value in self._concrete.graph.inputs]

    def __call__(self, *args, **kwargs):
        if kwargs and not args and set(kwargs) == set(self._names):
            args, kwargs = self._in_place([kwargs[name] for name in self._names])
        return _as_dict(self.function(*args, **kwargs))

    def _in_place(self, tensors):
        """Return ``(args, kwargs)`` with these tensors for the specs, in order."""
        rest = iter(tensors)
        arguments = self._concrete.input_structure.structured()
        return map_specs(lambda spec: next(rest), arguments)

    @property
    def structured_input_signature(self):
        """``((), {name: TensorSpec})``."""
        specs = specs_of(self._concrete.input_structure.structured())
        pairs = zip(self._names, specs, strict=True)
        return (), {n: TensorSpec(spec.shape, spec.dtype, n) for n, spec in pairs}

    @property
    def structured_outputs(self):
        """``{name: TensorSpec}``."""
        return _as_dict(self._concrete.structured_outputs)

    @property
    def variables(self):
        """The variables that it reads or writes, each once."""
        return self._concrete.variables

    @property
    def trainable_variables(self):
        """The trainable variables among `variables`."""
        return self._concrete.trainable_variables

    def __repr__(self):
        return f"<signature {self.function!r}>"


def _as_dict(outputs):
    if isinstance(outputs, dict):
        return outputs
    return {f"output_{i}": x for i, x in enumerate(flatten(outputs))}


class Signatures(dict):
    """Map names to `SignatureFunction` objects."""

    def __init__(self, functions):
        super().__init__({n: SignatureFunction(f) for n, f in functions.items()})


def call_of(layer, training=False, losses=None):
    """Return the call of a layer or model, to be traced for its symbolic inputs.

    ``losses`` is a list to which each trace appends the number of losses that the call
    adds; the call then returns them after its outputs, ``[outputs, losses]``, if there
    are any.

    Returns None if the layer has no such inputs, or has a traced ``__call__``.
    `write_function` writes the call into a group of any file, its weights by number;
    `read_function` then needs neither the class of the layer nor its code.
    """
    own = [vars(kind).get("__call__") for kind in type(layer).__mro__]
    is_traced = any(isinstance(call, Function) for call in own)
    if is_traced or not callable(getattr(layer, "call", None)):
        return None
    try:
        graph_of = getattr(layer, "_tw_need_graph", None)  # of a model
        known = layer.input if graph_of is None else graph_of("inputs").input_nest
    except AttributeError:  # it was not called on the inputs of a model
        return None
    if not isinstance(known, dict):
        known = flatten(known)
        known = known[0] if len(known) == 1 else known
    specs = map_structure(lambda x: TensorSpec(x.shape, x.dtype), known)

    def call(inputs):
        outputs = layer(inputs, training=training)
        if losses is None:
            return outputs
        added = layer._tw_take_losses()
        losses.append(len(added))
        return [outputs, added] if added else outputs

    return Function(call, [specs])


def as_signatures(obj, signatures, path, call=None):
    """Return the functions to write as signatures: name -> function."""
    if signatures is None:
        own = vars(obj).get("signatures")
        if not isinstance(own, Signatures):
            return {} if call is None else {DEFAULT_SERVING_SIGNATURE_DEF_KEY: call}
        return {name: each.function for name, each in own.items()}
    if not isinstance(signatures, dict):
        signatures = {DEFAULT_SERVING_SIGNATURE_DEF_KEY: signatures}
    checked = {}
    for name, function in signatures.items():
        function = getattr(function, "function", function)
        function = function._tw_function if type(function) is Method else function
        if not isinstance(name, str) or not isinstance(
            function, (Function, ConcreteFunction)
        ):
            raise TypeError(
                "saved_model.save: signatures must be a traced function, or a dict of them "
                f"by name, got {name!r}: {function!r}"
            )
        if not has_traces(function):
            raise SavingError(path, f"the signature {name!r} {why_untraced(function)}")
        checked[name] = function
    return checked
