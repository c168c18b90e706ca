"""Objects in print as the call that makes them: ``Adam(learning_rate=0.01)``."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tapewright.core.dtypes import DType
from tapewright.core.names.naming import snake_case
from tapewright.core.settings.floatx import floatx

from .constructor_arguments import (
    argument_names,
    constructor_defaults,
)

_MOST_ITEMS, _MOST_CHARACTERS = 6, 80  # of a value


def constructor_call(
    thing: Any,
    known: Mapping[str, Any] = MappingProxyType({}),
    omit: Sequence[str] = (),
) -> str:
    """Return ``Name(argument=value, ...)`` with the arguments that differ from their defaults.

    Args:
        thing: An object that keeps arguments of its constructor as attributes of their
            names. Others are left out, and so are generated names and the default dtype.
        known: Values of arguments that are not attributes.
        omit: Names of arguments that the constructor does not take, despite ``**kwargs``.

    Example:
        >>> from tapewright.serialization.constructor_call import constructor_call
        >>> constructor_call(keras.initializers.RandomNormal(stddev=0.1))
        'RandomNormal(stddev=0.1)'
    """
    cls = type(thing)
    defaults, shown = constructor_defaults(cls), []
    for name in argument_names(cls):
        value = known[name] if name in known else getattr(thing, name, _MISSING)
        if value is _MISSING or name in omit or _is_generated(name, value, cls):
            continue
        default, text = defaults.get(name, _MISSING), _show(value)
        if default is None and isinstance(value, _CONTAINERS) and not value:
            continue
        if default is _MISSING or text != _show(default):
            shown.append(f"{name}={text}")
    return f"{cls.__name__}({', '.join(shown)})"


_MISSING = object()
_CONTAINERS = list, tuple, dict, set


def _is_generated(name, value, cls):
    """Return whether None stands for this name of a class (adam, adam_1), or this dtype."""
    if name == "dtype":
        return value == floatx()
    if name != "name":
        return False
    stem, _, number = str(value).rpartition("_")
    own = snake_case(cls.__name__)
    return value == own or (stem == own and number.isdigit())


def _show(value):
    if isinstance(value, (list, tuple)):
        opening, closing = "[]" if isinstance(value, list) else "()"
        items = [_show(item) for item in value[:_MOST_ITEMS]]
        items += ["..."] if len(value) > _MOST_ITEMS else []
        comma = "," if closing == ")" and len(items) == 1 else ""
        return f"{opening}{', '.join(items)}{comma}{closing}"
    if isinstance(value, dict):
        items = [f"{_show(k)}: {_show(x)}" for k, x in [*value.items()][:_MOST_ITEMS]]
        items += ["..."] if len(value) > _MOST_ITEMS else []
        return f"{{{', '.join(items)}}}"
    if isinstance(value, DType):
        return repr(value.name)
    if hasattr(value, "numpy") and hasattr(value, "shape"):  # a tensor or a variable
        value = value.numpy()
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        # In its own precision: float32 has 0.001 where float would have more digits.
        return str(value) if value.shape == () else f"<array {tuple(value.shape)}>"
    if type(value).__repr__ is object.__repr__:
        return f"<{type(value).__name__}>"
    text = repr(value)
    if callable(value) and hasattr(value, "__name__"):
        text = value.__name__
    if len(text) > _MOST_CHARACTERS and isinstance(value, (str, bytes)):
        text = f"{text[: _MOST_CHARACTERS - 4]}...{text[-1]}"
    return text
