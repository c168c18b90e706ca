"""`Layer`: weights created on the first call, a computation, and a config.

``__init__`` keeps the arguments, ``build`` creates the weights once the shape of the
inputs is known, and ``call`` computes. `Layer.__call__` ties them together: it converts
the inputs, builds the layer, passes ``training`` and masks on, and adds the name of the
layer to errors. Called on a `KerasTensor`, it records the call in the graph of the
model instead (`symbolic_tensor`).
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

from tapewright.compiler.tracing.tracer import EagerFallback
from tapewright.core.errors import ShapeError
from tapewright.core.interpreters import (
    active_interpreters,
    converted,
    use_interpreters,
)
from tapewright.core.messages.suggestions import explain_keyword
from tapewright.core.names.naming import snake_case, unique_name
from tapewright.core.nest import flatten, is_nested, map_structure
from tapewright.core.shapes.symbolic_operand import SymbolicOperand
from tapewright.core.shapes.symbolic_shape import static_shapes
from tapewright.core.state.autocast import autocast
from tapewright.core.state.stateless_scope import paired, substituted
from tapewright.core.tensor import Tensor, convert_to_tensor, is_tensor
from tapewright.core.trackable import Opaque, assign_pending, making_children
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.shape import shape as shape_of
from tapewright.ops.math.elementwise import divide_no_nan
from tapewright.serialization.constructor_arguments import (
    is_own,
    refuse_arguments,
)
from tapewright.serialization.registry import register

from .. import activations, regularizers
from . import masks
from .call_spec import CallSignature
from .input_spec import InputSpec, problem_with
from .layer_dtypes import LayerDtypes
from .layer_serialization import LayerConfig
from .rematerialization import active_remat_scope, rematerialized
from .symbolic_spec import map_shapes, shapes_in
from .symbolic_tensor import (
    KerasTensor,
    Node,
    Operation,
    symbolic_outputs,
    warn_of_constants,
)
from .weight_tracking import Tracked

if TYPE_CHECKING:
    from tapewright.core.typing import Shape

    from .layer_types import DTypePolicyLike, RegularizerLike

__all__ = ["InputSpec", "Layer", "call_context"]

_OUTER_CALL = ContextVar("outer_call", default=None)  # the `_Call` around this one
BUILDING = threading.RLock()  # of several threads, one makes the weights
# The layer that is being built, or in its first call.
_OWNER = ContextVar("owner", default=None)
_MISSING = object()


class _Call:
    """Settings that a call passes on to the calls inside it."""

    __slots__ = ("in_layer", "training")

    def __init__(self, training, in_layer=True):
        self.training = training
        self.in_layer = in_layer


@contextmanager
def call_context(training: bool | None) -> Iterator[None]:
    """Set ``training`` for the layers called inside the context, unless it is None.

    Needed in a `call` that calls other layers and may run directly, without
    ``__call__``, as by ``super().call(x, training=True)``: its ``training`` may then
    differ from the value of the enclosing call.

    Args:
        training: Value for the layers called inside; None leaves it unchanged.
    """
    outer = _OUTER_CALL.get()
    if training is None or (outer is not None and outer.training is training):
        yield
        return
    in_layer = outer is not None and outer.in_layer
    token = _OUTER_CALL.set(_Call(training, in_layer))
    try:
        yield
    finally:
        _OUTER_CALL.reset(token)


Outputs = TypeVar("Outputs", covariant=True)


class _HasCall(Protocol[Outputs]):
    """Layer with typed `call`; calling the layer returns the same type."""

    def call(self, *args: Any, **kwargs: Any) -> Outputs: ...


class Layer(Operation, Tracked, LayerDtypes, LayerConfig):
    """Base class of all layers: a computation with weights.

    To write a layer, subclass `Layer` and define:

    - ``__init__(self, ..., **kwargs)``, which calls ``super().__init__(**kwargs)`` and
      keeps its arguments as attributes of the same names: `get_config` reads them
      there.
    - ``build(self, input_shape)``, if the layer has weights, which creates them with
      `add_weight`. It runs once, on the first call.
    - ``call(self, inputs)``, the computation. It may also accept ``training`` and
      ``mask``.

    Set ``self.supports_masking = True`` to pass the mask of the inputs on to the
    outputs, and ``self.input_spec`` to an `InputSpec` to check the inputs.

    Tracked weights are the variables created by `add_weight`, and each
    ``keras.Variable`` in an attribute, list or dict. As in Keras 3, a ``tw.Variable``
    in an attribute is not tracked: it is not in `trainable_variables`, so `fit` does
    not train it, and weights files do not contain it.

    While `call` runs, weights are cast to the compute dtype when they are read; their
    gradients have the dtype of the weights.

    Args:
        activity_regularizer: Regularizer of the outputs, or None. Its penalty, divided
            by the batch size, is added to `losses`.
        trainable: If False, the weights are frozen: optimizers do not update them.
        dtype: Dtype of both the weights and the computation, or a `keras.DTypePolicy`
            with one for each; `keras.config.dtype_policy` by default. Floating-point
            inputs are cast to the compute dtype.
        autocast: If False, inputs keep their dtype.
        name: Name of the layer, unique by default; it must not contain "/".
        **kwargs: Shape of the inputs, for the first layer of a `Sequential`:
            ``input_shape`` (one example) with an optional ``batch_size``, ``input_dim``
            (vectors), or ``batch_shape``.

    Raises:
        TypeError: If an argument is unknown.
        ValueError: If ``name`` contains "/".

    Example:
        >>> class Linear(keras.layers.Layer):
        ...     def __init__(self, units, **kwargs):
        ...         super().__init__(**kwargs)
        ...         self.units = units
        ...
        ...     def build(self, input_shape):
        ...         self.kernel = self.add_weight(
        ...             (input_shape[-1], self.units), "ones", name="kernel"
        ...         )
        ...
        ...     def call(self, inputs):
        ...         return inputs @ self.kernel
        >>> layer = Linear(2, name="linear")
        >>> layer([[2.0, 3.0]]).numpy()
        array([[5., 5.]], dtype=float32)
        >>> layer.weights[0].path
        'linear/kernel'
        >>> layer.get_config()["units"]
        2
    """

    _tw_kind: str = "layer"
    _tw_refuses_arguments = True
    built: bool = False
    input_spec: InputSpec | Sequence[Any] | dict[str, Any] | None = None
    # Masks of the inputs pass on to the outputs; what defines compute_mask supports them.
    supports_masking: bool = False
    _tw_makes_masks = False  # also where none came in
    # Whether `call` gives, for one tensor, one of `compute_output_shape` and our dtype.
    _tw_shape_tells = False
    activity_regularizer: Any = None
    _tw_given_shape = None
    _tw_remat_scope = None  # the `RematScope` in which it was made
    _tw_output_shape = None  # of the latest call that noted it; None before the first
    # Counts the changes of constants that `call` reads, and that a trace would keep.
    _tw_constants_version = 0
    _tw_adds_losses = False  # whether any layer of this process ever called add_loss
    _tw_renamed = 0  # how often a layer of this process was given another name

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "build" in vars(cls):
            code = cls.build.__code__
            cls._tw_shapes = code.co_varnames[1 : code.co_argcount]
            cls.build = _once(cls.build)
            cls.built = False
        elif is_own(cls) and cls.build is Layer.build:
            cls.built = True  # a layer without weights has nothing to build
        if "call" in vars(cls):
            cls._tw_signature = CallSignature(cls.call)
        if not is_own(cls):
            cls._tw_shape_tells = False
        if "compute_mask" in vars(cls):
            cls._tw_makes_masks = vars(cls).get("_tw_makes_masks", True)
            cls.supports_masking = vars(cls).get("supports_masking", True)

    def __init__(
        self,
        *,
        activity_regularizer: RegularizerLike = None,
        trainable: bool = True,
        dtype: DTypePolicyLike = None,
        autocast: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ):
        cls = type(self)
        _refuse(cls, kwargs, quantization_config=None, lora_rank=None, lora_alpha=None)
        given_shape = _given_shape(kwargs)
        if kwargs:
            refuse_arguments(cls, kwargs)
        if name is not None and (not isinstance(name, str) or "/" in name):
            raise ValueError(
                f"{cls.__name__}: name must be a string without '/', got {name!r}"
            )
        self._tw_name = name or unique_name(snake_case(cls.__name__))
        self._tw_track(trainable)
        if activity_regularizer is not None:
            self.activity_regularizer = regularizers.get(activity_regularizer)
        if not autocast:
            self.autocast = False
        if given_shape is not None:
            self._tw_given_shape = given_shape
        if (scope := active_remat_scope()) is not None:
            self._tw_remat_scope = scope
        self._inbound_nodes = []
        self._parent_path = None
        self._tw_output_shape = None
        self.dtype_policy = dtype

    # --- what subclasses define

    def build(self, input_shape: Any) -> None:
        """Create the weights for inputs of this shape.

        The first call builds the layer. For several inputs with different shapes, name
        the arguments after the arguments of `call`:
        ``build(query_shape, value_shape)``.

        The default creates no weights; it builds the inner layers by tracing `call`, or
        leaves them to the first call if the trace needs more than shapes. A subclass
        that overrides `build` builds its inner layers there, or leaves them to the
        first call.

        Args:
            input_shape: Shape of the inputs, with None for unknown sizes; a nest of
                shapes for a nest of inputs.
        """
        by_hand = type(self).build is Layer.build and _OWNER.get() is not self
        if not by_hand or self._tw_all_built():
            self.built = True
            return
        try:
            self.compute_output_spec(self._tw_symbolic_inputs(input_shape))
        except Exception:  # of inputs of another dtype, say: the first call tells
            self.built = False

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Compute the outputs. Subclasses define it; users call the layer itself.

        Args:
            *args: Inputs: tensors or nests of them.
            **kwargs: Further arguments of the subclass, such as ``training`` and
                ``mask``.

        Returns:
            Tensor or nest of tensors.
        """
        raise NotImplementedError(f"{type(self).__name__} must define call(inputs)")

    def compute_mask(self, inputs: Any, previous_mask: Any) -> Any:
        """Return the mask of the outputs; by default, the mask of the inputs.

        Args:
            inputs: Inputs of the call.
            previous_mask: Mask of the inputs, or None.
        """
        return previous_mask

    # --- calling

    def __call__(
        self: _HasCall[Outputs],
        inputs: Any = _MISSING,
        *args: Any,
        training: bool | None = None,
        **kwargs: Any,
    ) -> Outputs:
        """Build the layer if needed, and return the outputs of `call`.

        ``training`` is passed to `call` if it accepts it, and to all layers called
        inside. The mask of a tensor is passed to the argument for it (``mask``, or
        ``value_mask`` for an argument ``value``) unless that is given.

        Args:
            inputs: Tensor or nest of tensors; arrays and numbers are converted.
            *args: Further positional arguments of `call`.
            training: True in training, False in inference; None means the value of the
                enclosing call.
            **kwargs: Keyword arguments of `call`.
        """
        signature = self._tw_signature
        if signature.call is not type(self).call:
            signature = self._call_signature()
        if inputs is _MISSING:
            inputs = signature.first_of(kwargs, self._tw_title)
        if Layer._tw_uses_mixed_precision and self._tw_by_path and not self.built:
            self._tw_set_parent_path()
        given_training, outer = training, _OUTER_CALL.get()
        if training is None and args:
            training = signature.training_among(args)
        if training is None:
            training = signature.default if outer is None else outer.training
        token, is_outermost = None, outer is None or not outer.in_layer
        if is_outermost or training is not outer.training:
            token = _OUTER_CALL.set(_Call(training))
        try:
            mask = None  # of the inputs
            if masks.in_use(inputs) or "mask" in kwargs:
                mask = masks.fill_arguments(self, inputs, args, kwargs)
            if (  # most inputs need no conversion
                type(inputs) is not Tensor
                or inputs.array.dtype is not self._tw_compute_dtype.dtype
                or args
                or kwargs
            ):
                if _any_symbolic((inputs, args, kwargs)):
                    return self._tw_symbolic_call(given_training, inputs, args, kwargs)
                inputs = self._tw_converted(inputs)
                args = [self._tw_converted_if_array(x) for x in args]
                kwargs = {k: self._tw_converted_if_array(x) for k, x in kwargs.items()}
            if signature.takes_training and training is not None:
                if len(args) < signature.training_at:
                    kwargs["training"] = training
            if self.input_spec is not None:
                self._tw_check_inputs(inputs)
            if is_outermost and Layer._tw_adds_losses and self._tw_name:
                self._tw_take_losses()  # of the call before
            if self._tw_replaced is not None:  # outside of `call`, where it is allowed
                del self._tw_replaced
            if (  # most calls need no context around them
                self.built
                and self._tw_output_shape is not None
                and self._tw_remat_scope is None
                and not (
                    Layer._tw_uses_mixed_precision and self._tw_reads_in_another_dtype()
                )
            ):
                outputs = converted(self.call)(inputs, *args, **kwargs)
            else:
                outputs = self._tw_build_and_call(inputs, args, kwargs)
            if self._tw_replaced is not None:
                self._tw_reject_replaced("call")
            if self.activity_regularizer is not None:
                self._tw_add_penalties_on(outputs)
            if mask is not None or (self._tw_makes_masks and self.supports_masking):
                masks.pass_on(self, inputs, mask, outputs)
            return outputs
        except Exception as error:
            self._tw_add_name_to(error)
            raise
        finally:
            if token is not None:
                _OUTER_CALL.reset(token)

    _tw_signature = None
    _tw_shapes = ()

    @classmethod
    def _call_signature(cls):
        """Return the signature of `call`, which may be assigned to the class later."""
        if cls.call is not cls._tw_signature.call:
            cls._tw_signature = CallSignature(cls.call)
        return cls._tw_signature

    def _tw_build_and_call(self, inputs, args, kwargs):
        """Build the layer in its first call; run `call` in its dtype and `RematScope`."""
        is_first = self._tw_output_shape is None or not self.built
        with (
            self._tw_autocast(),
            self._tw_first_call(inputs, args, kwargs) if is_first else nullcontext(),
        ):
            call = self.call
            if self._tw_remat_scope is not None:
                call = self.rematerialized_call(call, inputs, *args, **kwargs)
            outputs = converted(call)(inputs, *args, **kwargs)
        if is_first:
            self._tw_output_shape = shapes_in(outputs)
        return outputs

    def _tw_add_name_to(self, error):
        """Add the name of the layer to an error that lacks it."""
        if type(error) is TypeError:
            explain_keyword(error, type(self).call)
        known = [str(error), *getattr(error, "__notes__", ())]
        if not any([self._tw_title in text for text in known]):
            error.add_note(f"in {self._tw_title}")
            if known[0].startswith("'dict' object"):
                self._tw_name_configs(error)

    def _tw_name_configs(self, error):
        """Add to an error that an attribute is a config, not the object."""
        for name, value in vars(self).items():
            if isinstance(value, dict) and {"class_name", "config"} <= value.keys():
                error.add_note(
                    f"self.{name} is a config of class {value['class_name']!s:.80}: make the "
                    f"object in {type(self).__name__}.from_config, by "
                    "keras.saving.deserialize_keras_object"
                )

    def rematerialized_call(
        self, layer_call: Callable[..., Any], *args: Any, **kwargs: Any
    ) -> Callable[..., Any]:
        """Wrap ``layer_call`` as the layer's `RematScope` requires.

        The scope is the one in which the layer was created.

        Args:
            layer_call: Function to wrap, usually `call`.
            *args: Positional arguments of the coming call.
            **kwargs: Keyword arguments of the coming call.
        """
        if self._tw_remat_scope is None:
            return layer_call
        return rematerialized(self, self._tw_remat_scope, layer_call, args, kwargs)

    def stateless_call(
        self,
        trainable_variables: Sequence[Any],
        non_trainable_variables: Sequence[Any],
        *args: Any,
        return_losses: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Call the layer with given values of its variables, without changing them.

        Gradients flow to the given values.

        Args:
            trainable_variables: One value for each of the layer's
                `trainable_variables`.
            non_trainable_variables: One value for each of its
                `non_trainable_variables`.
            *args: Positional arguments of the call.
            return_losses: If True, also return `losses`.
            **kwargs: Keyword arguments of the call.

        Returns:
            ``(outputs, non_trainable_variables)``, with the variables' values after the
            call, followed by the list of losses if ``return_losses``. Random generators
            are not variables of the layer: their state advances.

        Raises:
            ValueError: If the layer is not built, or the number or shapes of the values
                differ from the variables.

        Example:
            >>> import numpy as np
            >>> from tapewright.layers import BatchNormalization
            >>> layer = BatchNormalization(momentum=0.5)
            >>> layer.build((None, 1))
            >>> x = np.float32([[2.0], [4.0]])
            >>> _, (mean, variance) = layer.stateless_call(
            ...     [[3.0], [1.0]], [[0], [1]], x, training=True
            ... )
            >>> mean.numpy(), layer.moving_mean.numpy()
            (array([1.5], dtype=float32), array([0.], dtype=float32))
        """
        if not self.built:
            raise ValueError(
                f"{self._tw_title}: must be built before stateless_call; call "
                "build(input_shape)"
            )
        who = f"{self._tw_title}: stateless_call"
        own, rest = self.trainable_variables, self.non_trainable_variables
        pairs = [
            *paired(who, "trainable_variables", own, trainable_variables),
            *paired(who, "non_trainable_variables", rest, non_trainable_variables),
        ]
        with substituted(pairs):
            outputs = self(*args, **kwargs)
            losses = self.losses if return_losses else None
            after = [variable._tw_read_uncast() for variable in rest]
        return (outputs, after, losses) if return_losses else (outputs, after)

    # --- calls on symbolic tensors

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Return the shape of the outputs; by default, `call` is traced to find it.

        Args:
            input_shape: Shape of the inputs, with None for unknown sizes; a nest of
                shapes for a nest of inputs.

        Returns:
            Tuple; a nest of tuples for several outputs.
        """
        outputs = self.compute_output_spec(self._tw_symbolic_inputs(input_shape))
        return map_structure(lambda x: tuple(x.shape), outputs)

    def _tw_symbolic_inputs(self, shapes):
        return map_shapes(lambda s: KerasTensor(s, self._tw_compute_dtype), shapes)

    def compute_output_spec(self, *args: Any, **kwargs: Any) -> Any:
        """Return a `KerasTensor` with the shape and dtype of each output.

        The layer is built for these inputs; `call` is traced, not run.

        Args:
            *args: Inputs: `KerasTensor` objects or tensors.
            **kwargs: Keyword arguments of `call`.
        """
        if not self.built:
            with self._tw_building():
                self._tw_build_for(args, kwargs)
                self.built = self._tw_locked = True
                try:
                    return self._tw_output_spec(args, kwargs)
                except BaseException:
                    self.built = self._tw_locked = False
                    raise
        return self._tw_output_spec(args, kwargs)

    def _tw_output_spec(self, args, kwargs):
        if (
            self._tw_shape_tells
            and not self._tw_makes_masks
            and kwargs.keys() <= {"training"}
        ):
            if len(args) == 1 and self._tw_is_plain(args[0]):
                shape = self.compute_output_shape(tuple(args[0].shape))
                return KerasTensor(shape, self._tw_compute_dtype)
        try:
            return symbolic_outputs(self._tw_call_as_it_is, args, kwargs)
        except EagerFallback:  # the Python in `call` needs values
            if not (len(args) == 1 and self._tw_knows_shape):
                raise
        return self._tw_symbolic_inputs(self.compute_output_shape(shapes_in(args[0])))

    @property
    def _tw_knows_shape(self):
        """Return whether `compute_output_shape` needs no trace of `call`."""
        return type(self).compute_output_shape is not Layer.compute_output_shape

    def _tw_is_plain(self, x):
        """Return whether the output spec for ``x`` is known without a trace."""
        return (
            type(x) is KerasTensor
            and x.mask_spec is None
            and x.shape.rank is not None
            and x.dtype.is_floating
            and self._tw_compute_dtype.is_floating
            and self.autocast
            and activations.keeps_shape(getattr(self, "activation", None))
        )

    def _tw_call_as_it_is(self, *args: Any, **kwargs: Any) -> Any:
        """Call the layer, and discard the losses and output shape of the call."""
        shape = self._tw_output_shape
        try:
            return self(*args, **kwargs)
        finally:
            self._tw_output_shape = shape
            if Layer._tw_adds_losses:
                self._tw_take_losses()

    def _tw_symbolic_call(self, training, inputs, args, kwargs):
        """Record the call in the graph of a model: `KerasTensor` inputs and outputs."""
        if not _any_symbolic(inputs):  # other arguments are
            inputs = self._tw_converted(inputs)
        if self.input_spec is not None:
            self._tw_check_inputs(inputs)
        if training is not None:
            kwargs["training"] = training
        with use_interpreters(()):
            outputs = self.compute_output_spec(inputs, *args, **kwargs)
        if outputs is None:
            raise TypeError(
                f"{self._tw_title}: call() returned None; is a return statement missing?"
            )
        self.built = True
        warn_of_constants(self._tw_title, flatten((inputs, args, kwargs)))
        Node(self, (inputs, *args), kwargs, outputs)
        self._tw_output_shape = shapes_in(outputs)
        return outputs

    def _tw_check_inputs(self, inputs):
        if problem := problem_with(inputs, self.input_spec):
            raise ShapeError(self._tw_title, problem)

    # --- building

    @contextmanager
    def _tw_first_call(self, inputs, args, kwargs):
        """Build the layer, unless it is built; the call inside may still add to it."""
        if self._tw_name is None:
            raise RuntimeError(
                f"{type(self).__name__}: __init__ must call super().__init__() first"
            )
        with nullcontext() if self.built else BUILDING:
            if self.built:
                self._tw_locked = True
                yield
                return
            with self._tw_building():
                self._tw_build_for((inputs, *args), kwargs)
                self.built = self._tw_locked = True
                vars(self).pop("_tw_replaced", None)
                yield

    def _tw_build_for(self, args, kwargs):
        """Build for tensors: pass their shapes to `build`, by name if several."""
        signature, names = self._tw_signature, self._tw_shapes
        by_name = set(names) <= {f"{name}_shape" for name in signature.names}
        if by_name:
            given = signature.given(args[0], args[1:], kwargs)
            for name in signature.names:
                if name not in given and name not in signature.defaults:
                    raise TypeError(
                        f"{self._tw_title}: the argument '{name}' is missing"
                    )
            shapes = {n: shapes_in(given.get(n.removesuffix("_shape"))) for n in names}
            shapes = {name: s for name, s in shapes.items() if s is not None}
        else:
            shapes = {(*names, "input_shape")[0]: shapes_in(args[0])}
        self._tw_build_shapes = Opaque(shapes)
        with autocast(None):
            if by_name:
                self.build(**shapes)
            else:
                self.build(*shapes.values())

    @contextmanager
    def _tw_building(self):
        """Own the weights and layers created inside; drop them on an error."""
        self._tw_set_parent_path()
        counts = len(self._tw_weights), len(self._tw_penalties)
        token = _OWNER.set(self)
        try:
            yield
            assign_pending(self)
        except BaseException:  # an interrupt as well, or the next try would add to them
            if not self.built:
                del self._tw_weights[counts[0] :], self._tw_penalties[counts[1] :]
            raise
        finally:
            _OWNER.reset(token)

    def _tw_set_parent_path(self):
        """Take the path, and its dtypes, from the layer whose first call is running."""
        owner = _OWNER.get()
        if self._parent_path is None and owner is not None and owner is not self:
            self._parent_path = owner.path
            self._tw_find_dtypes()

    # --- losses

    def add_loss(self, loss: Any) -> None:
        """Add scalar losses, computed in `call`, to `losses` until the next call.

        Args:
            loss: Scalar tensor, or a nest of scalar tensors.

        Raises:
            ValueError: If a value is not a tensor, is symbolic and added outside of a
                call (no later call would compute it), or is added inside `remat`.
        """
        losses, is_outside = flatten(loss), _OUTER_CALL.get() is None
        for each in losses:
            if not is_tensor(each) or (
                is_outside and isinstance(each, SymbolicOperand)
            ):
                raise ValueError(
                    f"{self._tw_title}: add_loss accepts only tensors computed in call(), "
                    f"got {each!r}"
                )
        if any([each.hides_tapes for each in active_interpreters()]):
            raise ValueError(
                f"{self._tw_title}: add_loss must not be called inside remat "
                "(recompute_grad), where the loss would get no gradient; return the loss "
                "from the function and add it outside"
            )
        Layer._tw_adds_losses = True
        self._tw_added += losses

    def _tw_add_penalties_on(self, outputs):
        for output in flatten(outputs):
            if is_tensor(output):
                penalty = convert_to_tensor(
                    converted(self.activity_regularizer)(output)
                )
                if len(output.shape):
                    batch = cast(shape_of(output)[0], penalty.dtype)
                    penalty = divide_no_nan(penalty, batch)
                self.add_loss(penalty)

    # --- describing

    @property
    def path(self) -> str:
        """Names of the enclosing layers and of this one: ``sequential/dense``."""
        return (
            f"{self._parent_path}/{self._tw_name}"
            if self._parent_path
            else self._tw_name
        )

    @property
    def name(self) -> str:
        """Name of the layer; by default, from its class: ``dense``, ``dense_1``."""
        return self._tw_name or snake_case(type(self).__name__)

    @name.setter
    def name(self, value: str) -> None:
        self._tw_name = value
        Layer._tw_renamed += 1

    @property
    def quantization_mode(self) -> None:
        """None: quantized layers are not supported."""
        return None

    def quantize(self, mode: Any = None, **options: Any) -> NoReturn:
        """Raise ``NotImplementedError``: quantized layers are not supported.

        Args:
            mode: Ignored.
            **options: Ignored.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(
            f"{self._tw_title}: quantize({mode!r}) is not supported; the dtype policies "
            "'bfloat16' and 'float16' halve the size of the weights"
        )

    @property
    def _tw_title(self):
        return f"layer '{self._tw_name}' ({type(self).__name__})"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} name={self._tw_name}, built={self.built}>"

    def _repr_html_(self):
        from .summary_rows import html_layer  # for notebooks only

        return html_layer(self)


class ShapePreserving:
    """Mixin for layers whose outputs have the shape of their inputs."""

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return tuple(input_shape)


Layer._tw_signature = CallSignature(Layer.call)
Layer._tw_shapes = ("input_shape",)
register("layer", "Layer", Layer)


# -------------------------------------------------------------------- small questions


def _any_symbolic(nest):
    if not is_nested(nest):
        return type(nest) is KerasTensor
    return any([type(leaf) is KerasTensor for leaf in flatten(nest)])


def _given_shape(kwargs):
    """Return the shape, batch included, from Keras' arguments for a first layer."""
    size = kwargs.pop("batch_size", None)
    shape = kwargs.pop("input_shape", None)
    if "input_dim" in kwargs and shape is None:
        shape = (kwargs.pop("input_dim"),)
    whole = kwargs.pop("batch_input_shape", kwargs.pop("batch_shape", None))
    if whole is not None:
        return tuple(whole)
    return None if shape is None else (size, *shape)


def _refuse(cls, kwargs, **absent):
    """Accept Keras' arguments for unsupported features if they are turned off."""
    for name, off in absent.items():
        value = kwargs.pop(name, off)
        if value != off:
            raise ValueError(
                f"{cls.__name__}: {name} is not supported: it must be {off}, got {value!r}"
            )


@contextmanager
def _build_of(layer):
    """Make ``layer`` own the layers created inside; an error leaves it unbuilt."""
    try:
        with making_children(layer):
            yield
    except BaseException:
        layer.built = False
        raise


def _once(build):
    """Wrap ``build`` to run once, in the scope of its layer, and mark it as built."""

    @functools.wraps(build)
    def build_once(self, *args, **kwargs):
        if _OWNER.get() is self:  # from the first call, or from a subclass's build
            with _build_of(self):  # before the call goes on
                return build(self, *args, **kwargs)
        with BUILDING:
            if self.built:
                return
            args, kwargs = static_shapes(args), static_shapes(kwargs)
            names = dict(zip(self._tw_shapes or ("input_shape",), args))
            self._tw_build_shapes = Opaque(names | kwargs)
            self._tw_locked = False
            with self._tw_building(), _build_of(self):
                build(self, *args, **kwargs)
                self.built = self._tw_locked = True

    return build_once
