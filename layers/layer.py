"""`Layer`: weights made on the first call, a computation, and a config.

``__init__`` keeps the arguments, ``build`` makes the weights once the shape of the
inputs is known, ``call`` computes. `Layer.__call__` puts them together: it converts the
inputs, builds, hands ``training`` down to the layers inside, and says in errors which
layer they come from.
"""

import functools
import math
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from tapewright.dtypes import as_dtype, float32
from tapewright.errors import ShapeError
from tapewright.module import Module, snake_case
from tapewright.nest import flatten, is_nested, map_structure
from tapewright.ops.conversion import cast
from tapewright.ops.creation import zeros
from tapewright.ops.random import Generator
from tapewright.readers import reading
from tapewright.registry import Configured, constructor_arguments
from tapewright.tensor import Tensor, convert_to_tensor, is_tensor
from tapewright.variable import Variable

from . import initializers, regularizers

__all__ = ["InputSpec", "Layer"]

_TRAINING = ContextVar(
    "training", default=None
)  # what the layers around this one run in
_OWNER = ContextVar(
    "owner", default=None
)  # the layer being built, or in its first call
_MISSING = object()
_PARTS = (Variable, Module, Generator)


class Layer(Module, Configured):
    """Base of all layers: an op with weights.

    Args: ``name``, unique by default; ``trainable``: False freezes the weights;
    ``dtype`` of the weights (default float32), to which floating inputs are cast.

    Subclasses define ``call(inputs)``, which may also take ``training``; ``build
    (input_shape)`` where they have weights; and keep constructor arguments as
    attributes of the same names, which are the config.

    >>> class Scale(Layer):
    ...     def build(self, input_shape):
    ...         self.gamma = self.add_weight("gamma", (input_shape[-1],), "ones")
    ...
    ...     def call(self, inputs):
    ...         return inputs * self.gamma
    >>> layer = Scale(name="scale")
    >>> layer([[2.0, 3.0]]).numpy()
    array([[2., 3.]], dtype=float32)
    >>> layer.weights[0].path
    'scale/gamma'
    """

    kind = "layer"
    built = False
    input_spec = None
    _dtype = float32

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if "build" in vars(cls):
            cls.build = _once(cls.build)
        if "call" in vars(cls):
            cls._signature = _Signature(cls.call)

    def __init__(self, *, name=None, trainable=True, dtype=None, **kwargs):
        cls = type(self)
        if kwargs:
            known = ", ".join(n for n in constructor_arguments(cls) if n != "kwargs")
            raise TypeError(
                f"{cls.__name__}: unknown argument {', '.join(map(repr, kwargs))}; "
                f"the arguments are {known}"
            )
        if name is not None and (not isinstance(name, str) or "/" in name):
            raise ValueError(
                f"{cls.__name__}: name must be a string without '/', got {name!r}"
            )
        self._name = name or unique_name(snake_case(cls.__name__))
        self._trainable = bool(trainable)
        self._dtype = float32 if dtype is None else as_dtype(dtype)
        self._weights = []
        self._frozen = set()  # references to variables that `trainable` switched off
        self._penalties = []  # pairs of a weight and its regularizer
        self._parent_path = None
        self._output_shape = None

    # --- what subclasses define

    def build(self, input_shape):
        """Makes the weights for inputs of this shape; by default there are none."""
        self.built = True

    def call(self, inputs):
        """The outputs."""
        raise NotImplementedError(f"{type(self).__name__} must define call(inputs)")

    def compute_output_shape(self, input_shape):
        """The shape of the outputs, found by a call on zeros unless a subclass knows it."""
        shape = self._shape_of_outputs(input_shape, 2)
        if None not in tuple(input_shape):
            return shape
        other = self._shape_of_outputs(input_shape, 3)  # what differs is unknown
        return tuple([a if a == b else None for a, b in zip(shape, other)])

    def _shape_of_outputs(self, input_shape, size):
        shape = [size if n is None else n for n in input_shape]
        with reading(()):
            return tuple(self(zeros(shape, self._dtype), training=False).shape)

    # --- calling

    def __call__(self, inputs=_MISSING, *args, training=None, **kwargs):
        """The outputs of `call`; builds the layer first if that is still to be done.

        ``training`` goes to `call` if it takes one, and to all layers called inside.
        """
        signature = self._signature
        if inputs is _MISSING:
            inputs = signature.first_of(kwargs, self)
        if training is None and args:
            training = signature.training_among(args)
        around = _TRAINING.get()
        if training is None:
            training = signature.default if around is None else around
        token = None if training is around else _TRAINING.set(training)
        try:
            if (
                type(inputs) is not Tensor
                or inputs.array.dtype is not self._dtype.dtype
            ):
                inputs = self._converted(inputs)
            if args or kwargs:
                args = [self._converted_if_array(x) for x in args]
                kwargs = {k: self._converted_if_array(x) for k, x in kwargs.items()}
            if signature.takes_training and training is not None:
                if len(args) < signature.training_at:
                    kwargs["training"] = training
            if self.input_spec is not None:
                self._check_inputs(inputs)
            if not self.built:
                return self._first_call(inputs, args, kwargs)
            return self.call(inputs, *args, **kwargs)
        except Exception as error:
            if self._title not in str(error):
                error.add_note(f"in {self._title}")
            raise
        finally:
            if token is not None:
                _TRAINING.reset(token)

    _signature = None

    def _first_call(self, inputs, args, kwargs):
        if self._name is None:
            raise RuntimeError(
                f"{type(self).__name__}: __init__ must call super().__init__() first"
            )
        with self._building():
            self._build_for(inputs)
            self.built = True
            outputs = self.call(inputs, *args, **kwargs)
        if is_tensor(outputs):
            self._output_shape = tuple(outputs.shape)
        return outputs

    def _build_for(self, inputs):
        if is_nested(inputs):
            self.build(map_structure(lambda x: tuple(x.shape), inputs))
        else:
            self.build(tuple(inputs.shape))

    @contextmanager
    def _building(self):
        """Weights and layers made inside belong to this layer; none stay on an error."""
        around, count = _OWNER.get(), len(self._weights)
        if self._parent_path is None and around is not None and around is not self:
            self._parent_path = around.path
        token = _OWNER.set(self)
        try:
            yield
        except Exception:
            if not self.built:
                del self._weights[count:]
            raise
        finally:
            _OWNER.reset(token)

    def _converted(self, inputs):
        """Inputs as tensors; floating ones in the dtype of the layer."""
        if is_nested(inputs):
            if any(getattr(leaf, "ndim", 0) for leaf in flatten(inputs)):
                return map_structure(self._converted, inputs)
        elif not is_tensor(inputs):
            array = np.asarray(inputs) if not hasattr(inputs, "dtype") else inputs
            if array.dtype.kind == "f" and self._dtype.is_floating:
                return convert_to_tensor(array, self._dtype)
        tensor = convert_to_tensor(inputs)
        return self._as_own_dtype(tensor) if tensor.dtype.is_floating else tensor

    def _as_own_dtype(self, tensor):
        own = self._dtype
        if tensor.dtype is own or not own.is_floating:
            return tensor
        return cast(tensor, own)

    def _converted_if_array(self, value):
        if is_tensor(value) or (getattr(value, "ndim", 0) and hasattr(value, "dtype")):
            return self._converted(value)
        return value

    def _check_inputs(self, inputs):
        spec = self.input_spec
        if type(spec) is InputSpec and type(inputs) is Tensor:
            problem = spec.problem(inputs.array.shape)
        else:
            specs, tensors = flatten(spec), flatten(inputs)
            problem = None
            if len(specs) != len(tensors):
                problem = f"expected {len(specs)} inputs, got {len(tensors)}"
            for each, tensor in zip(specs, tensors):
                problem = problem or (each and each.problem(tuple(tensor.shape)))
        if problem:
            raise ShapeError(self._title, problem)

    # --- weights

    def add_weight(
        self,
        name=None,
        shape=(),
        initializer=None,
        trainable=True,
        regularizer=None,
        dtype=None,
    ):
        """A new variable that belongs to the layer.

        Args: ``initializer``: an `Initializer` or its name (default: "glorot_uniform",
        or "zeros" for integers); ``regularizer``: adds a penalty to `losses`.

        Raises: ``ValueError`` if a dimension of ``shape`` is unknown.
        """
        if self._name is None:
            raise RuntimeError(
                f"{type(self).__name__}: __init__ must call super().__init__() first"
            )
        name = name or unique_name("variable")
        if not isinstance(name, str):
            raise TypeError(
                f"add_weight: name must be a string, got {name!r}; "
                "the order is name, shape, initializer"
            )
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        if None in shape:
            raise ValueError(
                f"{self._title}: the shape of weight "
                f"'{name}' must be known, got {shape}: a dimension of the inputs that it "
                "depends on is None"
            )
        dtype = self._dtype if dtype is None else as_dtype(dtype)
        if initializer is None:
            initializer = "glorot_uniform" if dtype.is_floating else "zeros"
        make = initializers.get(initializer)
        with reading(()):
            value = make(shape, dtype=dtype)
            variable = Variable(value, trainable, name=name, dtype=dtype, shape=shape)
        variable.path = f"{self.path}/{name}"
        if trainable and not self._trainable:
            self._freeze(variable)
        if regularizer is not None:
            self._penalties.append((variable, regularizers.get(regularizer)))
        self._weights.append(variable)
        return variable

    @property
    def weights(self):
        """All weights, those of layers inside too; of each, the trainable ones first."""
        return self._gather(with_states=False)

    @property
    def variables(self):
        """The weights, and the states of random generators."""
        return self._gather(with_states=True)

    @property
    def trainable_variables(self):
        if not self._trainable:
            return []
        return [v for v in self.variables if v.trainable]

    @property
    def non_trainable_variables(self):
        if not self._trainable:
            return self.variables
        return [v for v in self.variables if not v.trainable]

    @property
    def trainable_weights(self):
        return [v for v in self.weights if v.trainable] if self._trainable else []

    @property
    def non_trainable_weights(self):
        if not self._trainable:
            return self.weights
        return [v for v in self.weights if not v.trainable]

    @property
    def trainable(self):
        """Whether the weights are to be trained; setting it reaches the layers inside."""
        return self._trainable

    @trainable.setter
    def trainable(self, value):
        for layer, parts in self._walk():
            layer._trainable = bool(value)
            for variable in _variables_of(parts):
                if not value:
                    layer._freeze(variable)
                elif variable.ref() in layer._frozen:
                    variable.trainable = True
            if value:
                layer._frozen.clear()

    @property
    def losses(self):
        """The penalties of regularized trainable weights, one scalar each."""
        found = []
        for layer, _ in self._walk():
            for variable, regularizer in layer._penalties:
                if layer._trainable and variable.trainable:
                    found.append(regularizer(variable))
        return found

    def count_params(self):
        """The number of entries of all weights. Raises: ``ValueError`` before `build`."""
        if not self.built and not self.weights:
            raise ValueError(
                f"count_params: layer '{self._name}' is not built, so that its weights "
                "are not known yet; call it, or build(input_shape)"
            )
        return sum(math.prod(v.shape) for v in self.weights)

    def get_weights(self):
        """The weights as NumPy arrays."""
        return [np.asarray(v.numpy()) for v in self.weights]

    def set_weights(self, weights):
        """Assigns arrays, in the order of `get_weights`.

        Raises: ``ValueError`` if their number or a shape differs; then none is assigned.
        """
        variables, values = self.weights, list(weights)
        if len(values) != len(variables):
            hint = "" if self.built else ": it is not built yet"
            raise ValueError(
                f"set_weights: layer '{self._name}' has {len(variables)} weights{hint}; "
                f"got {len(values)}"
            )
        for variable, value in zip(variables, values):
            if tuple(np.shape(value)) != tuple(variable.shape):
                raise ValueError(
                    f"set_weights: the shape of '{variable.path}' is {variable.shape}, "
                    f"got {tuple(np.shape(value))}"
                )
        for variable, value in zip(variables, values):
            variable.assign(value)

    def _freeze(self, variable):
        if variable.trainable:
            variable.trainable = False
            self._frozen.add(variable.ref())

    def _is_never_trainable(self, variable):
        return not (variable.trainable or variable.ref() in self._frozen)

    def _parts(self):
        """Variables, modules and generators, in the order in which they became attributes."""
        parts = []
        for value in vars(self).values():
            if isinstance(value, _PARTS):
                parts.append(value)
            elif value and isinstance(value, (list, tuple, dict)):
                parts += [leaf for leaf in flatten(value) if isinstance(leaf, _PARTS)]
        return parts

    def _walk(self):
        """Pairs of a layer and its `_parts`: this one and all inside, each once."""
        pairs, seen, ahead = [], set(), [self]
        while ahead:
            layer = ahead.pop()
            if id(layer) not in seen:
                seen.add(id(layer))
                parts = layer._parts()
                pairs.append((layer, parts))
                ahead += [part for part in reversed(parts) if isinstance(part, Layer)]
        return pairs

    def _gather(self, with_states):
        found = []
        for layer, parts in self._walk():
            own = _variables_of(parts)
            if not all([v.trainable for v in own]):
                own.sort(key=layer._is_never_trainable)
            found += own
            if with_states:
                found += [part.state for part in parts if isinstance(part, Generator)]
        return list({id(v): v for v in found}.values())

    # --- describing

    @property
    def path(self):
        """The name with those of the layers around in front: ``sequential/dense``."""
        return f"{self._parent_path}/{self._name}" if self._parent_path else self._name

    @property
    def dtype(self):
        """The name of the weights' dtype."""
        return self._dtype.name

    variable_dtype = compute_dtype = dtype

    @property
    def _title(self):
        return f"layer '{self._name}' ({type(self).__name__})"

    def __repr__(self):
        return f"<{type(self).__name__} name={self._name}, built={self.built}>"


def _variables_of(parts):
    """The variables among them, and those of modules that are no layers."""
    found = []
    for part in parts:
        if isinstance(part, Variable):
            found.append(part)
        elif isinstance(part, Module) and not isinstance(part, Layer):
            found.extend(part.variables)
    return found


class InputSpec:
    """What a layer demands of the shape of an input: its rank, or sizes of axes.

    >>> InputSpec(min_ndim=2, axes={-1: 3}).problem((5, 4))
    'expected size 3 on axis -1 of the inputs, got shape (5, 4)'
    """

    def __init__(self, ndim=None, *, max_ndim=None, min_ndim=None, axes=None):
        self.ndim = ndim
        self.max_ndim = max_ndim
        self.min_ndim = min_ndim
        self.axes = dict(axes or {})

    def problem(self, shape):
        """What is wrong with this shape, or None."""
        rank = len(shape)
        if self.ndim is not None and rank != self.ndim:
            return f"expected inputs of rank {self.ndim}, got shape {shape}"
        if self.min_ndim is not None and rank < self.min_ndim:
            return f"expected inputs of rank {self.min_ndim} or more, got shape {shape}"
        if self.max_ndim is not None and rank > self.max_ndim:
            return f"expected inputs of rank {self.max_ndim} or less, got shape {shape}"
        for axis, size in self.axes.items():
            if size is not None and shape[axis] not in (size, None):
                return f"expected size {size} on axis {axis} of the inputs, got shape {shape}"
        return None

    def __repr__(self):
        return (
            f"InputSpec(ndim={self.ndim}, max_ndim={self.max_ndim}, "
            f"min_ndim={self.min_ndim}, axes={self.axes})"
        )


class _Signature:
    """What `Layer.__call__` must know of a ``call`` method."""

    def __init__(self, call):
        while hasattr(call, "__wrapped__"):
            call = call.__wrapped__
        code, defaults = call.__code__, call.__defaults__ or ()
        names = code.co_varnames[1 : code.co_argcount]
        keywords = code.co_varnames[len(names) + 1 :][: code.co_kwonlyargcount]
        values = dict(zip(names[len(names) - len(defaults) :], defaults))
        values.update(call.__kwdefaults__ or {})
        self.first = names[0] if names else "inputs"
        self.takes_training = "training" in names + keywords
        self.default = values.get("training")
        # among the arguments after the first
        self.training_at = names.index("training") if "training" in names else math.inf

    def first_of(self, kwargs, layer):
        """The inputs, given by name."""
        if self.first not in kwargs:
            raise TypeError(f"{layer._title}: the argument '{self.first}' is missing")
        return kwargs.pop(self.first)

    def training_among(self, args):
        """The value of ``training`` if it was given by position."""
        return args[self.training_at - 1] if len(args) >= self.training_at else None


Layer._signature = _Signature(Layer.call)


def _once(build):
    """``build`` made to run once, in the name of its layer, and to mark it as built."""

    @functools.wraps(build)
    def build_once(self, *args, **kwargs):
        if _OWNER.get() is self:  # from the first call, or from a subclass's build
            return build(self, *args, **kwargs)
        if not self.built:
            with self._building():
                build(self, *args, **kwargs)
            self.built = True

    return build_once


_counts = {}  # how often a default name was given


def unique_name(stem):
    """``stem``, then ``stem_1``, ``stem_2`` and so on."""
    count = _counts[stem] = _counts.get(stem, -1) + 1
    return f"{stem}_{count}" if count else stem
