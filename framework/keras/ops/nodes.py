"""Functions of `keras.ops` as parts of a model: a call on symbolic tensors is one node.

The node holds the arguments as Keras does, those of the constructor of its operation
apart from those of the call, so that a config is Keras'. Ops outside of `keras.ops` that
do the same, such as ``x + y``, become the same nodes; see `translation`.
"""

import functools
import inspect

import numpy as np

from tapewright.core.dtypes import DType
from tapewright.core.naming import unique_name
from tapewright.core.nest import flatten, is_nested, map_structure
from tapewright.core.tensor import Tensor
from tapewright.layers.base.symbolic_tensor import (
    KerasTensor,
    OpCall,
    refuse_variables,
)
from tapewright.serialization import registry

from ..files import operations

__all__ = ["as_nodes", "note", "one_node"]

# What answers with no tensors, or with those that others make: no node of its own.
_PYTHON = {
    "cond",
    "convert_to_numpy",
    "custom_gradient",
    "dtype",
    "image",
    "is_tensor",
    "jvp",
    "shape",
    "switch",
}

# What takes Python functions, which no config can hold: name -> arguments of the node.
_OF_FUNCTIONS = {
    "associative_scan": ("f", "elems"),
    "fori_loop": ("lower", "upper", "body_fun", "init_val"),
    "map": ("f", "xs"),
    "scan": ("f", "init", "xs"),
    "vectorized_map": ("function", "elements"),
    "while_loop": ("cond", "body", "loop_vars"),
}


def as_nodes(namespace, names, prefix=""):
    """Replaces the functions of a namespace by those that are nodes in models."""
    for name in names:
        function = namespace[name]
        if name not in _PYTHON and inspect.isfunction(function):
            namespace[name] = one_node(prefix + name, function)


def one_node(name, function):
    """The function; called on symbolic tensors, it is one node of the model."""
    whole = Whole(operations.canonical(name), function)
    registry.register("composite", f"{operations.PREFIX}{name}", whole)
    if name in _OF_FUNCTIONS:
        return _of_functions(function, whole)

    @functools.wraps(function)
    def entry(*args, **kwargs):
        for x in args:
            kind = type(x)
            if kind is KerasTensor or (
                (kind is list or kind is tuple) and KerasTensor in map(type, x)
            ):
                return whole.record(args, kwargs)
        if kwargs and any([type(x) is KerasTensor for x in flatten(kwargs)]):
            return whole.record(args, kwargs)
        return function(*args, **kwargs)

    return entry


def _of_functions(function, whole):
    """`one_node`, for nests of tensors."""

    @functools.wraps(function)
    def entry(*args, **kwargs):
        if any([type(x) is KerasTensor for x in flatten((args, kwargs))]):
            return whole.record(args, kwargs)
        return function(*args, **kwargs)

    return entry


class Whole:
    """A function of several ops as the op of an `OpCall`: how to call it by its node."""

    def __init__(self, name, function):
        self.name, self.function = name, function
        op = f"{operations.PREFIX}{name}"
        self.class_name = operations.kind_of(op)
        self.default_name = operations.default_name(op)
        self.call = operations.call_names(name) or _OF_FUNCTIONS.get(name)
        self.rule = getattr(function, "specs_by_values", None)

    @functools.cached_property
    def parameters(self):
        return inspect.signature(self.function).parameters

    @functools.cached_property
    def spread(self):
        """The parameter ``*operands``, if there is one, with its star."""
        kind = inspect.Parameter.VAR_POSITIONAL
        return next(
            (f"*{n}" for n, p in self.parameters.items() if p.kind is kind), None
        )

    @functools.cached_property
    def names(self):
        """The names of the arguments."""
        return set(self.parameters)

    def specs(self, config, args, kwargs):
        """The specs of results whose sizes follow from values; None for all others."""
        if self.rule is None:
            return None
        return self.rule(**dict(zip(self.call, args)), **kwargs, **config)

    def run(self, config, args, kwargs):
        """The function, of what the config and the node hold."""
        if "key" in (self.call or ()):  # an index, of which a config has a list
            args = [tuple(x) if isinstance(x, list) else x for x in args]
            kwargs = {k: tuple(x) if type(x) is list else x for k, x in kwargs.items()}
        if self.spread is None:
            if len(args) > len(self.call or ()):
                raise ValueError(
                    f"{self.name}: a call takes {len(self.call or ())} arguments by "
                    f"position, got {len(args)}"
                )
            return self.function(**dict(zip(self.call or (), args)), **kwargs, **config)
        names = list(self.parameters)
        before = names[: names.index(self.spread[1:])]
        rest = {key: value for key, value in config.items() if key not in before}
        return self.function(*[config[key] for key in before], *args, **kwargs, **rest)

    def record(self, args, kwargs):
        """Notes the call on symbolic tensors; what it gives, symbolic as well."""
        op = f"{operations.PREFIX}{self.name}"
        given = inspect.signature(self.function).bind(*args, **kwargs).arguments
        refuse_variables(self.name, flatten(given))
        config, args, kwargs = self._parted(given)
        name = unique_name(self.default_name)
        return OpCall(op, config, name)(*args, **kwargs)

    def _parted(self, given):
        """``(config, args, kwargs)``: as the constructor and the call in Keras get them."""
        call, config, kwargs = self.call or (), {}, {}
        for name, value in given.items():
            kind = self.parameters[name].kind
            if kind is inspect.Parameter.VAR_KEYWORD:
                config |= map_structure(_settled, value)
            elif name in call or f"*{name}" in call:
                kwargs[name] = _fixed_lists(value) if name == "key" else value
            else:
                value = map_structure(_settled, value)
                if any([isinstance(x, _ARRAYS) for x in flatten(value)]):
                    kwargs[name] = value
                else:
                    config[name] = value
        if self.spread is not None:
            return config, kwargs.pop(self.spread[1:], ()), kwargs
        args = []
        for name in call:
            if name not in kwargs and self.name not in _FILLED:
                break
            args.append(kwargs.pop(name, None))
        return config, args, kwargs


# Whose calls in Keras need all of their arguments, None where one is not given.
_FILLED = {"batch_normalization", "layer_normalization", "rms_normalization"}

_ARRAYS = (Tensor, np.ndarray)


def _settled(value):
    """An argument as a plain value, if it is a number, numbers for sizes, or a dtype."""
    if isinstance(value, (DType, np.dtype)):
        return value.name
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, type) and issubclass(value, np.generic):
        return np.dtype(value).name
    if type(value) is Tensor and value.dtype.is_integer:
        value = value.numpy()
    if isinstance(value, np.ndarray) and value.dtype.kind in "iu" and value.ndim < 3:
        return value.tolist()
    return value


def _fixed_lists(key):
    """An index with arrays for lists: a config cannot tell these from tuples."""
    if isinstance(key, list):
        return np.asarray(key) if not _symbolic(key) else key
    return tuple([_fixed_lists(x) for x in key]) if isinstance(key, tuple) else key


def _symbolic(values):
    return is_nested(values) and any([isinstance(x, Tensor) for x in flatten(values)])


def note(name, *args, **kwargs):
    """Notes a call of the function of that name, for what does the same."""
    return registry.find("composite", f"{operations.PREFIX}{name}").record(args, kwargs)
