"""The parameters of a traced function, and the constraints of an ``input_signature``."""

import inspect

from tapewright.core.composite import CompositeSpec
from tapewright.core.messages.suggestions import explain_argument
from tapewright.core.nest import flatten, is_nested
from tapewright.core.tensor import TensorSpec, convert_to_tensor, is_tensor

from .arguments import Arguments

_Parameter = inspect.Parameter
EMPTY = _Parameter.empty


class Signature:
    """The parameters of a function, to which arguments are mapped.

    ``constraints`` is the ``input_signature``, nests of `TensorSpec` for the first
    parameters; the others then keep their defaults. If ``owner`` is True, ``self`` is
    excluded.
    """

    def __init__(self, function, name, constraints=None, owner=False):
        self.name = name
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):  # of a builtin: any positional arguments
            signature = inspect.Signature(
                [_Parameter("args", _Parameter.VAR_POSITIONAL)]
            )
        parameters = list(signature.parameters.values())
        if owner and parameters and parameters[0].kind is not _Parameter.VAR_POSITIONAL:
            parameters = parameters[1:]
        self.signature = signature.replace(parameters=parameters)
        self.parameters = parameters
        self.names = [p.name for p in parameters]
        kinds = {p.kind for p in parameters}
        self.is_plain = kinds <= {_Parameter.POSITIONAL_OR_KEYWORD}
        self.constraints = self.prescribed = None
        if constraints is not None:
            self._constrain(constraints)

    def __str__(self):
        return f"{self.name}{self.signature}"

    # --- from a call to values in the order of the parameters

    def arguments(self, args, kwargs):
        """Return the `Arguments` of a call; raise ``TypeError`` if they do not match."""
        values = self.bind(args, kwargs)
        if self.constraints is None:
            return Arguments(values)
        return Arguments(self._fitted(values), self.prescribed)

    def bind(self, args, kwargs):
        """Return one value for each parameter, defaults included."""
        if self.is_plain and len(args) <= len(self.parameters):
            if not kwargs and len(args) == len(self.parameters):
                return args
            values, used = list(args), 0
            for parameter in self.parameters[len(args) :]:
                if parameter.name in kwargs:
                    value, used = kwargs[parameter.name], used + 1
                else:
                    value = parameter.default
                if value is EMPTY:
                    break
                values.append(value)
            if used == len(kwargs) and len(values) == len(self.parameters):
                return tuple(values)
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            known = [each.name for each in self.parameters]
            hints = [explain_argument(n, known) for n in kwargs if n not in known]
            raise TypeError(
                f"function '{self.name}': {error}; got {len(args)} positional "
                f"arguments and the keywords {list(kwargs)}; the function is {self}"
                f"{''.join(hints[:1])}"
            ) from None
        bound.apply_defaults()
        return tuple(bound.arguments.values())

    def bind_partial(self, args, kwargs):
        """Map arguments to the names of parameters; raise ``TypeError`` if this fails."""
        return self.signature.bind_partial(*args, **kwargs).arguments

    def as_call(self, values):
        """Return ``args`` and ``kwargs`` with which to call the function."""
        args, kwargs = [], {}
        for parameter, value in zip(self.parameters, values, strict=True):
            if parameter.kind is _Parameter.VAR_POSITIONAL:
                args += value
            elif parameter.kind is _Parameter.VAR_KEYWORD:
                kwargs.update(value)
            elif parameter.kind is _Parameter.KEYWORD_ONLY:
                kwargs[parameter.name] = value
            else:
                args.append(value)
        return tuple(args), kwargs

    # --- input_signature

    def _constrain(self, given):
        if not isinstance(given, (list, tuple)):
            raise TypeError(
                "input_signature must be either a tuple or a list, got "
                f"{type(given).__name__}"
            )
        leaves = flatten(list(given), expand_composites=True)
        wrong = [x for x in leaves if not isinstance(x, TensorSpec)]
        if wrong:
            raise TypeError(
                "input_signature must be a possibly nested sequence of TensorSpec "
                f"objects, got {wrong}"
            )
        positional, many = [], False
        for parameter in self.parameters:
            if parameter.kind is _Parameter.VAR_POSITIONAL:
                many = True
            elif parameter.kind in (
                _Parameter.POSITIONAL_ONLY,
                _Parameter.POSITIONAL_OR_KEYWORD,
            ):
                positional.append(parameter)
            elif parameter.kind is _Parameter.KEYWORD_ONLY:
                self._needs_default(parameter)
        extra = len(given) - len(positional)
        if extra > 0 and not many:
            raise TypeError(
                f"input_signature contains {extra} extra type constraints: {self} takes "
                f"{len(positional)} arguments, {len(given)} were given"
            )
        for parameter in positional[len(given) :]:
            self._needs_default(parameter)
        self.constraints = tuple(given)
        self.prescribed = leaves

    def _needs_default(self, parameter):
        if parameter.default is EMPTY:
            raise TypeError(
                f"input_signature missing type constraint for {parameter.name} of {self}"
            )

    def _fitted(self, values):
        """Return the values with a tensor for each spec of the signature."""
        rest, fitted = list(self.constraints), []
        for parameter, value in zip(self.parameters, values, strict=True):
            if parameter.kind is _Parameter.VAR_POSITIONAL:
                if len(value) != len(rest):
                    raise TypeError(
                        f"function '{self.name}': {len(rest)} arguments must be given "
                        f"for '*{parameter.name}', as in input_signature; got "
                        f"{len(value)}"
                    )
                names = [f"{parameter.name}_{i}" for i in range(len(value))]
                pairs = zip(value, rest, names, strict=True)
                value, rest = tuple([self._fit(*each) for each in pairs]), []
            elif rest and parameter.kind is not _Parameter.KEYWORD_ONLY:
                value = self._fit(value, rest.pop(0), parameter.name)
            elif parameter.kind is _Parameter.VAR_KEYWORD:
                if value:
                    raise self._error(next(iter(value)), "no such argument", value)
            elif not _is_default(value, parameter.default):
                wanted = (
                    f"its default {parameter.default!r}, as it is not in the signature"
                )
                raise self._error(parameter.name, wanted, value)
            fitted.append(value)
        return tuple(fitted)

    def _error(self, name, wanted, given):
        text = repr(given)
        text = text if len(text) < 200 else text[:197] + "..."
        return TypeError(
            f"function '{self.name}': the argument '{name}' must be {wanted}, as in "
            f"input_signature; got {text}"
        )

    def _fit(self, value, spec, name):
        if isinstance(spec, TensorSpec):
            return self._as_tensor(value, spec, name)
        if isinstance(spec, CompositeSpec):
            if not spec.is_compatible_with(value):
                raise self._error(name, f"like {spec}", value)
            return spec._tw_fitted(value)
        if isinstance(spec, dict):
            if not isinstance(value, dict) or set(value) != set(spec):
                raise self._error(name, f"a dict with the keys {list(spec)}", value)
            made = {k: self._fit(value[k], spec[k], f"{name}[{k!r}]") for k in spec}
            return made if type(spec) is dict else type(spec)(made)
        if not is_nested(value) or isinstance(value, dict) or len(value) != len(spec):
            kind = type(spec).__name__
            raise self._error(name, f"a {kind} of {len(spec)}", value)
        pairs = enumerate(zip(value, spec, strict=True))
        made = [self._fit(x, s, f"{name}[{i}]") for i, (x, s) in pairs]
        return type(spec)(*made) if hasattr(spec, "_fields") else type(spec)(made)

    def _as_tensor(self, value, spec, name):
        """Convert a value to a tensor that the spec allows; a spec may replace a tensor."""
        wanted = f"a tensor of shape {spec.shape}, {spec.dtype.name}"
        if isinstance(value, TensorSpec):
            tensor = value
        else:
            dtype = None if is_tensor(value) else spec.dtype
            try:
                tensor = convert_to_tensor(value, dtype)
            except (TypeError, ValueError) as error:
                raise self._error(name, wanted, value) from error
        if not spec.is_compatible_with(tensor):
            raise self._error(name, wanted, TensorSpec(tensor.shape, tensor.dtype))
        return tensor


def _is_default(value, default):
    if value is default:
        return True
    try:
        return type(value) is type(default) and bool(value == default)
    except (TypeError, ValueError):
        return False
