"""Models as graphs of layers: symbolic tensors, and the calls that return them.

A `KerasTensor` has a shape and a dtype, but no values. A layer called on one records a
`Node` and returns more symbolic tensors; so does an op, as an `OpCall`. The graph
between inputs and outputs is a model, see `keras/models/functional.py`.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from tapewright.compiler.function.concrete_function import UntracedFunction
from tapewright.compiler.function.function import Function
from tapewright.compiler.tracing.tracer import AbstractValue
from tapewright.core import hooks
from tapewright.core.dtypes import DType, as_dtype
from tapewright.core.interpreters import converted, use_interpreters
from tapewright.core.messages.provenance import Provenance
from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.core.names.naming import snake_case, unique_name
from tapewright.core.nest import flatten, map_structure, pack
from tapewright.core.primitive import get_primitive
from tapewright.core.settings.floatx import default_float
from tapewright.core.shapes.symbolic_dim import NeedsSize
from tapewright.core.shapes.symbolic_operand import SymbolicOperand
from tapewright.core.shapes.symbolic_shape import static_shapes
from tapewright.core.shapes.tensor_shape import TensorShape
from tapewright.core.tensor import Tensor, TensorSpec
from tapewright.core.variable import Variable, variable_of
from tapewright.ops.array.shape import reshape, squeeze
from tapewright.serialization.configured import Configured

from .masks import attach, mask_of
from .symbolic_spec import SymbolicShape, named_dtype

if TYPE_CHECKING:
    from tapewright.core.typing import DTypeLike, StaticShapeLike

_IN_A_LAYER = "Use it in the call() of a Layer that keeps it as an attribute"


class KerasHistory(NamedTuple):
    """Layer call, and the index of its output, that a symbolic tensor comes from."""

    operation: object
    node_index: int
    tensor_index: int


class KerasTensor(SymbolicOperand, Tensor):
    """Symbolic tensor between the layers of a model: a shape and a dtype, no values.

    `Input` returns one. Layers and ops called on it record the call and return symbolic
    tensors. The attribute ``mask_spec`` is the `TensorSpec` of the mask that the actual
    tensor will carry, or None.

    Args:
        shape: Shape with the batch axis; None for unknown sizes.
        dtype: Dtype, `floatx` by default.
        sparse: True for a `SparseTensor`.
        ragged: Must be False: ragged symbolic tensors are not supported.
        record_history: Must be True.
        name: Name of the tensor.

    Raises:
        TypeError: If it is used where values are needed, as in ``numpy()``, ``if`` or
            ``for``.

    Example:
        >>> x = keras.KerasTensor((None, 3), "float32", name="x")
        >>> x, (x * 2.0).shape
        (<KerasTensor shape=(None, 3), dtype=float32, name=x>, (None, 3))
    """

    __slots__ = ("_shape", "name", "_keras_history", "sparse", "mask_spec")

    def __init__(
        self,
        shape: StaticShapeLike,
        dtype: DTypeLike | None = None,
        sparse: bool = False,
        ragged: bool = False,
        record_history: bool = True,
        name: str | None = None,
    ):
        if ragged or not record_history:
            raise ValueError(
                "KerasTensor: ragged must be False and record_history True, got "
                f"{ragged} and {record_history}"
            )
        dtype = default_float() if dtype is None else as_dtype(dtype)
        self._shape = TensorShape(static_shapes(shape))
        self.array: Any = AbstractValue(tuple(self._shape.as_list()), dtype.dtype)
        self.key: Any = None
        self.sparse = sparse
        self.mask_spec: TensorSpec | None = None
        self.name: str = name or unique_name("keras_tensor")

    @property
    def shape(self) -> TensorShape:
        """Tuple, as in Keras, with None for unknown sizes."""
        return SymbolicShape(self._shape)

    @property
    def dtype(self) -> DType:
        """Dtype, which prints as its name."""
        return named_dtype(super().dtype)

    @property
    def device(self) -> str:
        return "/CPU:0"

    @property
    def _keras_mask(self):  # to look at: the model passes masks on by itself
        spec, name = self.mask_spec, f"{self.name}_mask"
        return None if spec is None else KerasTensor(spec.shape, spec.dtype, name=name)

    def reshape(self, newshape: Any) -> Any:
        """Reshape the tensor, see `tw.reshape`.

        Args:
            newshape: New shape; one size may be -1.
        """
        return reshape(self, newshape)

    def squeeze(self, axis: Any = None) -> Any:
        """Remove axes of size 1, see `tw.squeeze`.

        Args:
            axis: Axis or axes to remove; None for all of size 1.
        """
        return squeeze(self, axis)

    def _no_value(self, what):
        raise TypeError(
            f"{what} needs values, but a KerasTensor, here of shape {self._shape} and "
            f"dtype {self.dtype.name}, is a placeholder for the inputs of a model. Move "
            "the code into the call() of a Layer, or into a Lambda layer"
        )

    def _tw_record_op(self, op: Any, inputs: Any, attributes: dict[str, Any]) -> Any:
        """Record a call of an op, and return its symbolic outputs.

        It is recorded as the equivalent function of `keras.ops`, if there is one.

        Args:
            op: Primitive that is called.
            inputs: Its positional inputs.
            attributes: Its attributes by name.
        """
        refuse_variables(op.name, inputs)
        outputs = hooks.translate_op.call(op.name, inputs, attributes)
        return OpCall(op.name, attributes)(*inputs) if outputs is None else outputs

    def _tw_record_function(
        self, function: Callable[..., Any], args: Any, kwargs: Any
    ) -> Any:
        """Record a call of a composite function, as one call or as its ops.

        Args:
            function: Function that is called.
            args: Its positional arguments.
            kwargs: Its keyword arguments.
        """
        refuse_variables(function.__name__, args)
        outputs = hooks.translate_function.call(function, args, kwargs)
        if outputs is not None:
            return outputs
        try:
            return function(*args, **kwargs)
        except (AttributeError, TypeError) as error:
            if "KerasTensor" in str(error):
                raise
            raise TypeError(
                f"{function.__name__} needs sizes or values that {self!r} does not have "
                f"({error}). Use a function of keras.ops, or move the code into the call() "
                "of a Layer"
            ) from error

    def numpy(self) -> NoReturn:
        self._no_value("numpy()")

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        self._no_value("a NumPy function")

    def __dlpack__(self, **options: Any) -> NoReturn:
        self._no_value("another library")

    def __dlpack_device__(self) -> NoReturn:
        self._no_value("another library")

    def _scalar(self, kind):
        self._no_value(f"{kind.__name__}()")

    def __bool__(self) -> NoReturn:
        self._no_value("a Python condition (if, while, and, or, not)")

    def __index__(self) -> NoReturn:
        self._no_value("an index or a size")

    def __len__(self) -> int:
        size = self._shape[0] if len(self._shape) else None
        return self._no_value("len()") if size is None else size

    def __iter__(self) -> NoReturn:
        self._no_value("a Python loop")

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __repr__(self) -> str:
        return (
            f"<KerasTensor shape={tuple(self._shape)}, dtype={self.dtype.name}, "
            f"name={self.name}>"
        )

    __str__ = __repr__

    def __deepcopy__(self, memo: Any) -> KerasTensor:
        make, values, (_, rest) = self.__reduce__()
        twin = memo[id(self)] = make(*values)
        twin.mask_spec = rest["mask_spec"]
        return twin

    def __reduce__(self) -> Any:  # without the origin, which the model has
        values = self._shape, self.dtype, self.sparse, False, True, self.name
        return KerasTensor, values, (None, {"mask_spec": self.mask_spec})


class Operation(Configured):
    """Base class of layers and ops: a call on a `KerasTensor` becomes part of a model.

    A subclass defines ``call(...)``, a computation without weights, and may define
    ``compute_output_spec(...)``, which returns a `KerasTensor` for each output; by
    default, the call is traced. As for a layer, the config consists of the constructor
    arguments that are plain values or kept as attributes of the same names. To load the
    class from a file, decorate it with ``register_keras_serializable()`` or pass it in
    ``custom_objects``. The recorded nodes belong to the models that contain them; a
    copy of the operation has none.

    Args:
        name: Name of the operation, unique by default.

    Raises:
        ValueError: If ``name`` contains "/".

    Example:
        >>> class Power(keras.Operation):
        ...     def __init__(self, exponent, name=None):
        ...         super().__init__(name=name)
        ...         self.exponent = exponent
        ...
        ...     def call(self, x):
        ...         return x**self.exponent
        >>> float(Power(2.0)(keras.ops.array(3.0))), Power(2.0)(keras.Input((3,))).shape
        (9.0, (None, 3))
    """

    _tw_kind: str = "operation"
    name: Any

    def __init__(self, name: str | None = None):
        if name is not None and (not isinstance(name, str) or "/" in name):
            raise ValueError(
                f"{type(self).__name__}: name must be a string without '/', got {name!r}"
            )
        self.name = name or unique_name(snake_case(type(self).__name__))
        self._inbound_nodes: Any = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if any([type(x) is KerasTensor for x in flatten((args, kwargs))]):
            return self.symbolic_call(*args, **kwargs)
        return converted(self.call)(*args, **kwargs)

    def symbolic_call(self, *args: Any, **kwargs: Any) -> Any:
        """Record a call on symbolic tensors, and return its symbolic outputs.

        Args:
            *args: Positional arguments of `call`.
            **kwargs: Keyword arguments of `call`.
        """
        with use_interpreters(()):
            outputs = self.compute_output_spec(*args, **kwargs)
        given = {id(x) for x in flatten((args, kwargs))}

        def new(x):
            if type(x) is not KerasTensor:
                raise TypeError(
                    f"{self._tw_title}: compute_output_spec must return KerasTensors, got "
                    f"{x!r}"
                )
            return KerasTensor(x.shape, x.dtype) if id(x) in given else x

        outputs = map_structure(new, outputs)
        Node(self, args, kwargs, outputs)
        return outputs

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs from tensors; subclasses define it.

        Args:
            *args: Inputs: tensors or nests of them.
            **kwargs: Further arguments of the subclass.
        """
        raise NotImplementedError(f"{type(self).__name__} must define call")

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """Return a `KerasTensor` for each output; by default, `call` is traced.

        Args:
            *args: Positional arguments of `call`.
            **kwargs: Keyword arguments of `call`.
        """
        return symbolic_outputs(self.call, args, kwargs)

    @property
    def input(self) -> Any:
        """Symbolic inputs of the first call in a model, see `Input`.

        Raises:
            AttributeError: If there was no such call.
        """
        return self._tw_first_node("input").inputs

    @property
    def output(self) -> Any:
        """Symbolic outputs of the first call in a model.

        Raises:
            AttributeError: If there was no such call.
        """
        return self._tw_first_node("output").outputs

    def _tw_first_node(self, what):
        if not self._inbound_nodes:
            raise AttributeError(
                f"{self._tw_title} has no {what}: it was never called on symbolic "
                "tensors, such as Input(...)"
            )
        return self._inbound_nodes[0]

    @property
    def _tw_display_name(self) -> str:
        """Name of the class, as in a summary."""
        return type(self).__name__

    @property
    def _tw_title(self):
        return f"operation '{self.name}' ({type(self).__name__})"

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k != "_inbound_nodes"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _inbound_nodes=[])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self.name}>"


class OpCall(Operation):
    """Op with its attributes, in the place of a layer in a model.

    ``op`` is the name of a primitive, which receives only tensors, or of a function of
    `keras.ops`; then the attributes are the arguments that the operation in Keras reads
    from its config.
    """

    _tw_kind = "operation"

    def __init__(self, op: str, attributes: dict[str, Any], name: str | None = None):
        self.op = op
        self.attributes = {  # a config has lists for tuples
            key: tuple(value) if type(value) is list else value
            for key, value in attributes.items()
        }
        definition = self.definition
        default = op if definition is None else definition.default_name
        self.name: str = name or unique_name(default)
        self._inbound_nodes = []

    @functools.cached_property
    def definition(self) -> Any:
        """`OperationDef` of a function of `keras.ops`; None for a primitive."""
        return hooks.find_operation.call(self.op) if "." in self.op else None

    @property
    def _tw_display_name(self) -> str:
        """Class name of the operation in Keras, or the name of the op."""
        definition = self.definition
        return self.op if definition is None else definition.display_name

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("definition", None)  # found by the name of the op
        return state

    def __call__(self, *args, **kwargs):
        definition = self.definition
        if not any([type(x) is KerasTensor for x in flatten((args, kwargs))]):
            if definition is None:
                return get_primitive(self.op).general(args, self.attributes)
            return definition.run(self.attributes, args, kwargs)
        with use_interpreters(()):
            specs = definition and definition.specs(self.attributes, args, kwargs)
            if specs is None:
                outputs = symbolic_outputs(self, args, kwargs)
            else:  # sizes that follow from values
                outputs = map_structure(lambda s: KerasTensor(s.shape, s.dtype), specs)
        Node(self, args, kwargs, outputs)
        return outputs

    def __repr__(self):
        return f"<OpCall {self._tw_display_name}>"


def refuse_variables(who, values):
    """Raise ``TypeError`` if a value is a variable, or its current value.

    Values computed from variables earlier are constants, see `warn_of_constants`.
    """
    for x in values:
        variable = x if isinstance(x, Variable) else variable_of(x)
        if variable is not None:
            raise TypeError(
                f"{who}: the variable '{variable.path}' would become a constant of the "
                f"model, with its current value. {_IN_A_LAYER}"
            )
    warn_of_constants(who, values)


def warn_of_constants(who, values):
    """Warn if a value was computed from a variable, such as a layer's weight.

    As in Keras, it is a constant of the model, and the variable is not part of the
    model.
    """
    for x in values:
        key = None if type(x) is KerasTensor else getattr(x, "key", None)
        if type(key) is Provenance and key.origins[0].reason == "variable":
            warnings.warn(
                f"{who}: a value computed from the variable '{key.origins[0].op}' becomes a "
                f"constant of the model, and is not trained. {_IN_A_LAYER}",
                stacklevel=user_stacklevel(),
            )


class Node:
    """Call of a layer or op on symbolic tensors: its arguments and outputs."""

    __slots__ = ("operation", "args", "kwargs", "inputs", "outputs")

    def __init__(self, operation, args, kwargs, outputs):
        args, kwargs, outputs = _own((args, kwargs, outputs))
        self.operation, self.args, self.kwargs = operation, args, kwargs
        self.outputs = outputs
        tensors = [x for x in flatten((args, kwargs)) if type(x) is KerasTensor]
        self.inputs = args[0] if len(args) == 1 and not kwargs else tensors
        self.join()

    def join(self):
        """Register this call with its operation, as the origin of the outputs."""
        index = len(self.operation._inbound_nodes)
        for i, tensor in enumerate(self.output_tensors):
            if tensor is not None:
                tensor._keras_history = KerasHistory(self.operation, index, i)
        self.operation._inbound_nodes.append(self)

    @property
    def input_tensors(self):
        """Symbolic tensors among the arguments, in order."""
        leaves = flatten((self.args, self.kwargs))
        return [x for x in leaves if type(x) is KerasTensor]

    @property
    def output_tensors(self):
        return flatten(self.outputs)

    @property
    def parents(self):
        """Nodes that produced the inputs, without duplicates."""
        made = [node_of(x) for x in self.input_tensors]
        return list({id(node): node for node in made}.values())

    def call(self, values, operation=None):
        """Call the layer or op, or ``operation`` in its place, on actual values.

        ``values`` maps the id of a symbolic tensor to its value.
        """

        def filled(nest):
            leaves = [
                values[id(x)] if type(x) is KerasTensor else x for x in flatten(nest)
            ]
            return pack(nest, leaves)

        operation = operation or self.operation
        return operation(*filled(self.args), **filled(self.kwargs))


def _own(nest):
    """Copy the containers of a nest, so that later changes to them have no effect."""
    return map_structure(lambda leaf: leaf, nest)


def node_of(tensor):
    """Return the node that produced a symbolic tensor."""
    operation, index, _ = tensor._keras_history
    return operation._inbound_nodes[index]


def symbolic_outputs(call, args, kwargs):
    """Trace ``call`` on these arguments, and return a `KerasTensor` for each tensor.

    `KerasTensor` arguments represent tensors with their shapes, dtypes and masks; a
    size of None is any size. The call is only traced, nothing is computed.
    """
    nest = (args, kwargs)
    leaves = flatten(nest)
    positions = [i for i, x in enumerate(leaves) if type(x) is KerasTensor]
    masked = [i for i in positions if leaves[i].mask_spec is not None]

    def run(*tensors):
        replaced = dict(zip(positions, tensors))
        for i, mask in zip(masked, tensors[len(positions) :]):
            attach(replaced[i], mask)
        filled = [replaced.get(i, x) for i, x in enumerate(leaves)]
        traced_args, traced_kwargs = pack(nest, filled)
        outputs = call(*traced_args, **traced_kwargs)
        return outputs, mask_of(outputs)

    run.__name__ = _title_of(call)  # of the trace, for errors
    specs = [TensorSpec(leaves[i].shape.as_list(), leaves[i].dtype) for i in positions]
    specs += [leaves[i].mask_spec for i in masked]
    outputs, masks = map_structure(_common, *_traces(call, run, specs))
    return map_structure(_symbolic, outputs, masks)


def _title_of(call):
    if isinstance(call, OpCall):
        return call._tw_display_name
    layer = getattr(call, "__self__", None)
    return call.__name__ if layer is None else f"{type(layer).__name__}.call"


# Sizes that many numbers divide, as pieces must be equal, and sizes below most others.
_LARGE, _SMALL = (60, 120, 84, 168, 180, 360), (2, 3)


def _traces(call, run, specs):
    """Call ``run``; if it depends on the unknown sizes, call it with some actual sizes.

    Raises the error of the call with ``specs`` if no two sizes are accepted.
    """
    try:
        outputs, holds_for_all = _traced(call, run, specs)
    except (NeedsSize, ValueError, IndexError) as error:
        results, refusals = _traces_of_sizes(call, run, specs)
        if len(results) > 1:
            return results
        if isinstance(error, NeedsSize) and refusals:
            raise refusals[0] from None
        raise
    if holds_for_all:
        return [outputs]
    return [outputs, *_traces_of_sizes(call, run, specs)[0]]


def _traces_of_sizes(call, run, specs):
    """Call ``run`` for several sizes; return the results, and the errors."""
    results, refusals = [], []
    if not any([None in tuple(spec.shape) for spec in specs]):
        return results, refusals

    def trace(sizes, batch=None):
        known = [_sized(spec, size, batch) for spec, size in zip(specs, sizes)]
        try:
            results.append(_traced(call, run, known)[0])
        except (ValueError, IndexError) as refusal:
            refusals.append(refusal)

    count = len(specs)
    for size in _LARGE + _SMALL:
        if len(results) < 2 or size not in _LARGE:
            trace([size] * count)
    trace([max(2, 9 - 2 * i) for i in range(count)])
    if not results and count > 1:  # levels of a pyramid, each twice the one before
        for size, factor in product((960, 1344), (2, 1 / 2, 4, 1 / 4)):
            trace([int(size * factor**i) for i in range(count)], size // 16)
    return results, refusals


def _symbolic(spec, mask_spec):
    if not isinstance(spec, TensorSpec):
        return spec
    tensor = KerasTensor(spec.shape, spec.dtype)
    tensor.mask_spec = mask_spec
    return tensor


def _sized(spec, size, batch):
    """Replace None by ``size`` in a spec, and by ``batch`` on the first axis."""
    shape = [size if n is None else n for n in spec.shape]
    if batch is not None and shape and spec.shape[0] is None:
        shape[0] = batch
    return TensorSpec(shape, spec.dtype)


def _traced(call, run, specs):
    """Call ``run``; return the result, and whether it holds for all sizes.

    It does not if a branch depends on a size, as in sizes above 5.
    """
    with use_interpreters(()):
        concrete = Function(run).get_concrete_function(*specs)
    if isinstance(concrete, UntracedFunction):
        raise NeedsSize(concrete.specializations.reason)
    outputs = map_structure(_plain, concrete.structured_outputs)
    if not isinstance(call, OpCall):
        return outputs, True
    # Variables here would not be weights of the model.
    refuse_variables(call._tw_display_name, concrete.variables)
    traces = (
        [] if concrete.specializations is None else concrete.specializations.traces[:1]
    )
    conditions = [each for t in traces for each in t.guards.conditions.items()]
    return outputs, all(
        [relation == "==" and is_so for (relation, _), is_so in conditions]
    )


def _plain(spec):
    if not isinstance(spec, TensorSpec):
        return spec
    return TensorSpec(spec.shape.as_list(), spec.dtype)


def _common(first, *others):
    """Return the common shape of specs, with None for sizes that differ."""
    if not isinstance(first, TensorSpec):
        return first
    if any([len(spec.shape) != len(first.shape) for spec in others]):
        raise NeedsSize(f"the rank depends on sizes: {[first, *others]}")
    dims = zip(*[tuple(spec.shape) for spec in (first, *others)])
    return TensorSpec([n[0] if len({*n}) == 1 else None for n in dims], first.dtype)
