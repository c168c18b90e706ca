"""Functions of `keras.ops` as operations: metadata where they are defined, nodes in models.

Keras has a class for each function of `keras.ops`: its constructor takes the config,
and its call takes the other arguments, such as tensors, which stand in the nodes of a
model. The decorator of a function has the metadata of that class, if they are
irregular. A call on symbolic tensors is one node, with the arguments as in Keras.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, overload

import numpy as np

from tapewright.core.dtypes import DType
from tapewright.core.messages.docstrings import compose, summary_of
from tapewright.core.messages.suggestions import explain_call
from tapewright.core.names.naming import snake_case, unique_name
from tapewright.core.nest import flatten, is_nested, map_structure
from tapewright.core.settings.floatx import image_data_format
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import P, R, TensorLike
from tapewright.layers.base.symbolic_tensor import (
    KerasTensor,
    OpCall,
    refuse_variables,
)
from tapewright.serialization import registry

from .promotion import promote, to_floating

PREFIX = "keras.ops."  # of the functions' names
_CHANNELS_LAST = "channels_last"

# Kinds of dtypes, as NumPy abbreviates them.
FLOATS, REALS, NUMBERS, ANY = "f", "fiu", "fciu", "fciub"

# Name of an op -> kinds of dtypes, and the function that records a call of the op as a call
# of an operation; see `translation`.
TRANSLATIONS: dict[str, tuple[str, Callable[..., Any]]] = {}

_CLASSES: dict[str, OperationDef] = {}


def find_operation(name):
    """Return the operation with a name, such as ``"keras.ops.relu"``.

    Raises:
        ValueError: If there is none; from a file, ``SavingError``.
    """
    return registry.find("operation", name)


def find_class(name):
    """Return the operation that is this class in Keras, or None."""
    return _CLASSES.get(name)


class OperationDef:
    """A function of `keras.ops`, the metadata of its class in Keras, and its nodes.

    Args:
        function: Function that computes the operation.
        prefix: Prefix of the name in ``keras.ops``, such as ``"image."``.
        module: Module of the class in ``keras.src.ops``.
        class_name: Name of the class, by default the capitalized words of the
            function's name; None if Keras has no class.
        call: Names of the arguments in nodes, by default the first one, or ``*args`` if
            there are any; ``**kwargs`` is the last one if they are in nodes as well.
        fill_call: If True, Keras' call requires all of them, with None for absent
            arguments.
        fixed: Keys of Keras' config that the function lacks, with the only valid value.
        aliases: Further names of the function.
        same_as: Name of an op that is the same function for dtypes of ``kinds``. Inputs
            have the same order, attributes the same names, and others are not set.
        kinds: Kinds of dtypes for ``same_as``.
        specs: Function of the same arguments, symbolic, that returns the specs of
            results whose sizes depend on values; None if a trace infers them.
        nested: If True, the arguments are nests of tensors.
    """

    def __init__(
        self, function, prefix="", *, module, class_name="", call=None, fill_call=False,
        fixed=(), aliases="", same_as="", kinds="", specs=None, nested=False,
    ):  # fmt: skip
        name = function.__name__
        if class_name == "":
            class_name = _capitalized(name)
        self.function, self.name = function, prefix + name
        self.module, self.class_name = module, class_name
        self.fill_call, self.fixed, self.nested = fill_call, dict(fixed), nested
        self._call, self._specs = call, specs
        names = [name, *aliases.split()]
        for each in names:
            registry.register("operation", f"{PREFIX}{prefix}{each}", self)
        if class_name is not None:
            _CLASSES.update(dict.fromkeys(map(_capitalized, names[1:]), self))
            _CLASSES[class_name] = self
        if same_as and kinds:
            TRANSLATIONS[same_as] = kinds, self._record_same

    @property
    def display_name(self):
        """The name of the class in Keras, or of the function if there is no class."""
        return self.class_name or PREFIX + self.name

    @property
    def default_name(self):
        """The start of default names: the words of the class name, as in Keras."""
        return snake_case(self.class_name or self.name.rpartition(".")[2])

    @functools.cached_property
    def parameters(self):
        """The parameters of the function, by name."""
        return inspect.signature(self.function).parameters

    @functools.cached_property
    def variadic(self):
        """The name of the parameter ``*operands`` with its star, or None."""
        starred = inspect.Parameter.VAR_POSITIONAL
        names = [n for n, p in self.parameters.items() if p.kind is starred]
        return f"*{names[0]}" if names else None

    @functools.cached_property
    def call(self):
        """The names of the arguments in nodes, in order."""
        if self._call is not None:
            return tuple(self._call.split())
        if self.class_name is None:
            return ()
        return (self.variadic or next(iter(self.parameters)),)

    def is_called_with(self, names):
        """Return whether Keras' nodes accept arguments of these names."""
        rest = [name for name in self.call if name.startswith("**")]
        return bool(rest) or set(names) <= set(self.call)

    def specs(self, config, args, kwargs):
        """Return the specs of results whose sizes depend on values; None for other results."""
        if self._specs is None:
            return None
        return self._specs(**dict(zip(self.call, args)), **kwargs, **config)

    def run(self, config, args, kwargs):
        """Call the function with the arguments of the config and of the node."""
        config = self._with_format(config, _CHANNELS_LAST)
        if "key" in self.call:  # an index, of which a config has a list
            args = [tuple(x) if isinstance(x, list) else x for x in args]
            kwargs = {k: tuple(x) if type(x) is list else x for k, x in kwargs.items()}
        if self.variadic is None:
            if len(args) > len(self.call):
                raise ValueError(
                    f"{self.name}: a call must have at most {len(self.call)} positional "
                    f"arguments, got {len(args)}"
                )
            return self.function(**dict(zip(self.call, args)), **kwargs, **config)
        names = list(self.parameters)
        before = names[: names.index(self.variadic[1:])]
        rest = {key: value for key, value in config.items() if key not in before}
        return self.function(*[config[key] for key in before], *args, **kwargs, **rest)

    def record_call(self, args, kwargs):
        """Record the call on symbolic tensors as a node, and return its symbolic outputs."""
        arguments = inspect.signature(self.function).bind(*args, **kwargs).arguments
        if image_data_format() != _CHANNELS_LAST:
            arguments = self._with_format(arguments, image_data_format())
        refuse_variables(self.name, flatten(arguments))
        if arguments.get("sparse"):
            raise ValueError(
                f"{self.name}: sparse=True needs tensors; in a model use the layer "
                "CategoryEncoding with sparse=True"
            )
        config, args, kwargs = self._split(arguments)
        name = unique_name(self.default_name)
        return OpCall(PREFIX + self.name, config, name)(*args, **kwargs)

    def _with_format(self, arguments, default):
        """Return arguments with the current default of ``data_format``.

        A later call may have another default. Configs without a ``data_format`` have
        the channels last, regardless of the default.
        """
        takes_one = "data_format" in self.parameters
        if not takes_one or arguments.get("data_format") is not None:
            return arguments
        return {**arguments, "data_format": default}

    def _split(self, arguments):
        """Return ``(config, args, kwargs)`` for the constructor and the call in Keras."""
        config, kwargs = {}, {}
        for name, value in arguments.items():
            if self.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
                rest = kwargs if f"**{name}" in self.call else config
                rest |= map_structure(_plain, value)
            elif name in self.call or f"*{name}" in self.call:
                kwargs[name] = _lists_as_arrays(value) if name == "key" else value
            else:
                value = map_structure(_plain, value)
                has_array = any([isinstance(x, _ARRAYS) for x in flatten(value)])
                (kwargs if has_array else config)[name] = value
        if self.variadic is not None:
            return config, kwargs.pop(self.variadic[1:], ()), kwargs
        args = []
        for name in self.call:
            if name not in kwargs and not self.fill_call:
                break
            args.append(kwargs.pop(name, None))
        return config, args, kwargs

    def _record_same(self, *inputs, **attributes):
        unknown = [name for name in attributes if name not in self.parameters]
        if any([attributes.pop(name) for name in unknown]):
            return None
        return self.record_call(inputs, attributes)

    def make_entry(self):
        """Return the public function, which records a node on symbolic tensors."""
        function, record_call = self.function, self.record_call

        def entry(*args, **kwargs):
            for x in args:
                cls = type(x)
                if cls is KerasTensor or (
                    (cls is list or cls is tuple) and KerasTensor in map(type, x)
                ):
                    return record_call(args, kwargs)
            if kwargs and any([type(x) is KerasTensor for x in flatten(kwargs)]):
                return record_call(args, kwargs)
            try:
                return function(*args, **kwargs)
            except TypeError as error:
                explain_call(error, function, kwargs)
                raise

        def entry_of_nests(*args, **kwargs):
            if any([type(x) is KerasTensor for x in flatten((args, kwargs))]):
                return record_call(args, kwargs)
            try:
                return function(*args, **kwargs)
            except TypeError as error:
                explain_call(error, function, kwargs)
                raise

        return functools.wraps(function)(entry_of_nests if self.nested else entry)


def _capitalized(name):
    return "".join([word.capitalize() for word in name.split("_")])


_ARRAYS = (Tensor, np.ndarray)


def _plain(value):
    """Return a number, sizes or a dtype as a plain value; other arguments unchanged."""
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


def _lists_as_arrays(key):
    """Return an index with arrays in place of lists, which become tuples in a config."""
    if isinstance(key, list):
        symbolic = is_nested(key) and any([isinstance(x, Tensor) for x in flatten(key)])
        return key if symbolic else np.asarray(key)
    if isinstance(key, tuple):
        return tuple([_lists_as_arrays(x) for x in key])
    return key


# ------------------------------------------------------------------------ decorators


class OperationFamily:
    """The decorator of the functions in one file; see `OperationDef` for its arguments.

    Args:
        file: ``__name__`` of the file.
        module: Module of most of their classes in Keras.
        prefix: Prefix of the functions' names in `keras.ops`.
    """

    def __init__(self, file: str, module: str, prefix: str = ""):
        self._file, self._module, self._prefix = file, module, prefix

    @overload
    def __call__(
        self, function: Callable[P, R], /, **metadata: Any
    ) -> Callable[P, R]: ...
    @overload
    def __call__(
        self, **metadata: Any
    ) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
    def __call__(self, function=None, /, **metadata):
        if function is None:
            return functools.partial(self, **metadata)
        metadata.setdefault("module", self._module)
        return OperationDef(function, self._prefix, **metadata).make_entry()

    def named(
        self, name: str, function: Callable[P, R], summary: str, details: str = "",
        args: Mapping[str, str] | None = None, **metadata: Any,
    ) -> Callable[P, R]:  # fmt: skip
        """Define the operation of this name; `docstrings.compose` makes its docstring."""
        function.__name__ = function.__qualname__ = name
        function.__module__ = self._file
        function.__doc__ = compose(function, summary, details, args)
        return self(function, **metadata)

    def unary(
        self, name: str, op: Any, summary: str | None = None,
        prepare: Callable[[Any], Tensor] = convert_to_tensor, **metadata: Any,
    ):  # fmt: skip
        """Define the operation ``op(prepare(x))``, same as ``op`` for dtypes of ``kinds``."""

        def function(x: TensorLike) -> Tensor:
            return op(prepare(x))

        metadata.setdefault("same_as", _op_name(op))
        summary = summary or summary_of(op, ["x"])
        return self.named(name, function, summary, **metadata)

    def floats(
        self, name: str, op: Any, summary: str | None = None, kinds: str = FLOATS,
        args: Mapping[str, str] | None = None, **metadata: Any,
    ):  # fmt: skip
        """Define the operation ``op(x)``, with integers cast to `floatx`."""
        args = {"x": "Input tensor; integers are cast to `floatx`.", **(args or {})}
        return self.unary(
            name, op, summary, to_floating, kinds=kinds, args=args, **metadata
        )

    def binary(
        self, name: str, op: Any, summary: str | None = None,
        at_least: type | None = None, **metadata: Any,
    ):  # fmt: skip
        """Define the operation ``op(x1, x2)`` of two tensors, in their common dtype."""

        def function(x1: TensorLike, x2: TensorLike) -> Tensor:
            return op(*promote(x1, x2, at_least=at_least))

        metadata.setdefault("same_as", _op_name(op))
        summary = summary or summary_of(op, ["x1", "x2"])
        return self.named(name, function, summary, call="x1 x2", **metadata)


def _op_name(op):
    return op.primitive.name if hasattr(op, "primitive") else ""
