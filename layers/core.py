"""Core layers: `Dense`, `EinsumDense`, `Activation` and `Identity`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.messages.argument_validation import whole
from tapewright.ops.linalg.contraction import einsum
from tapewright.ops.linalg.matmul import affine, matmul
from tapewright.serialization.object_config import plain

from . import activations, initializers
from .base.layer import InputSpec, Layer, ShapePreserving

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import Shape
    from tapewright.core.variable import Variable

    from .base.layer_types import (
        ActivationLike,
        ConstraintLike,
        InitializerLike,
        LayerOptions,
        RegularizedLayerOptions,
        RegularizerLike,
    )

__all__ = ["Activation", "Dense", "EinsumDense", "Identity"]


class _Projection(Layer):
    """Base of layers with a ``kernel``, an optional ``bias``, and an activation."""

    activation: Any
    kernel_initializer: Any
    bias_initializer: Any
    kernel_regularizer: Any
    bias_regularizer: Any
    kernel_constraint: Any
    bias_constraint: Any

    bias: Variable | None = None

    supports_masking = True


class Dense(_Projection):
    """Fully connected layer: ``outputs = activation(inputs @ kernel + bias)``.

    Args:
        units: Size of the outputs, positive.
        activation: Name of a function of `keras.activations`, a function of a tensor,
            or None for no activation.
        use_bias: If False, the layer has no ``bias``.
        kernel_initializer: Initializer of ``kernel``: an object or its name.
        bias_initializer: Initializer of ``bias``: an object or its name.
        kernel_regularizer: Regularizer of ``kernel``, or None.
        bias_regularizer: Regularizer of ``bias``, or None.
        activity_regularizer: Regularizer of the outputs, or None.
        kernel_constraint: Constraint on ``kernel``, or None.
        bias_constraint: Constraint on ``bias``, or None.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, ..., features]``, outputs ``[batch, ..., units]``; weights
        ``kernel [features, units]`` and ``bias [units]``. Integer inputs are cast.

    Raises:
        ValueError: If ``units`` is not a positive integer, or a name is unknown.
        TypeError: If an argument is unknown.

    Example:
        >>> layer = keras.layers.Dense(2, kernel_initializer="ones", activation="relu")
        >>> layer([[1.0, 2.0, 3.0]]).numpy()
        array([[6., 6.]], dtype=float32)
    """

    _tw_shape_tells = True

    def __init__(
        self,
        units: int,
        activation: ActivationLike = None,
        use_bias: bool = True,
        kernel_initializer: InitializerLike = "glorot_uniform",
        bias_initializer: InitializerLike = "zeros",
        kernel_regularizer: RegularizerLike = None,
        bias_regularizer: RegularizerLike = None,
        activity_regularizer: RegularizerLike = None,
        kernel_constraint: ConstraintLike = None,
        bias_constraint: ConstraintLike = None,
        **kwargs: Unpack[LayerOptions],
    ):
        super().__init__(activity_regularizer=activity_regularizer, **kwargs)
        self._tw_keep_weight_arguments(locals())
        self.units: int = whole(self, "units", units)
        self.use_bias = use_bias
        self.input_spec: InputSpec = InputSpec(min_ndim=2)

    def build(self, input_shape: Shape) -> None:
        features = input_shape[-1]
        self.kernel: Variable = self._tw_new_weight("kernel", (features, self.units))
        if self.use_bias:
            self.bias: Variable | None = self._tw_new_weight("bias", (self.units,))
        self.input_spec = InputSpec(min_ndim=2, axes={-1: features})

    def call(self, inputs: Tensor) -> Tensor:
        inputs = self._tw_as_own_dtype(inputs)
        if self.use_bias:
            outputs = affine(inputs, self.kernel, self.bias)
        else:
            outputs = matmul(inputs, self.kernel)
        return outputs if self.activation is None else self.activation(outputs)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return (*input_shape[:-1], self.units)


class EinsumDense(_Projection):
    """Dense layer with an einsum: ``activation(einsum(equation, inputs, kernel) + bias)``.

    Args:
        equation: Einsum equation such as ``"abc,cd->abd"``, with the batch as the first
            letter. ``...`` may come before the letters of inputs and outputs, or after
            both.
        output_shape: Sizes of the outputs without the batch and the axes of ``...``;
            None for a size taken from the inputs.
        activation: Name of a function of `keras.activations`, a function of a tensor,
            or None for no activation.
        bias_axes: Letters of the outputs along which the bias varies, or None for no
            bias.
        kernel_initializer: Initializer of ``kernel``: an object or its name.
        bias_initializer: Initializer of ``bias``: an object or its name.
        kernel_regularizer: Regularizer of ``kernel``, or None.
        bias_regularizer: Regularizer of ``bias``, or None.
        kernel_constraint: Constraint on ``kernel``, or None.
        bias_constraint: Constraint on ``bias``, or None.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs and outputs have the axes of the first and third term. The weight
        ``kernel`` has the axes of the second term; ``bias`` has the axes ``bias_axes``,
        and size 1 for each other letter after the first of them.

    Raises:
        ValueError: If ``equation`` is malformed or uses a letter in one term only, or
            ``output_shape`` does not match the equation and the inputs.

    Example:
        >>> layer = keras.layers.EinsumDense(
        ...     "abc,cde->abde", output_shape=(None, 2, 5), bias_axes="de"
        ... )
        >>> layer([[[1.0, 2.0, 3.0]]]).shape, layer.kernel.shape, layer.bias.shape
        (TensorShape([1, 1, 2, 5]), TensorShape([3, 2, 5]), TensorShape([2, 5]))
    """

    supports_masking = False

    def __init__(
        self,
        equation: str,
        output_shape: Any,
        activation: ActivationLike = None,
        bias_axes: str | None = None,
        kernel_initializer: InitializerLike = "glorot_uniform",
        bias_initializer: InitializerLike = "zeros",
        kernel_regularizer: RegularizerLike = None,
        bias_regularizer: RegularizerLike = None,
        kernel_constraint: ConstraintLike = None,
        bias_constraint: ConstraintLike = None,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        self._tw_keep_weight_arguments(locals())
        self.equation = equation
        self._tw_terms = _parsed(equation)
        one = isinstance(output_shape, int)
        self.partial_output_shape: tuple[int] | tuple[Any, ...] = (
            (output_shape,) if one else tuple(output_shape)
        )
        for size in self.partial_output_shape:
            if size is not None:
                whole(self, "a size of output_shape", size)
        self.bias_axes = bias_axes
        for letter in bias_axes or "":
            if letter not in self._tw_terms[2]:
                raise ValueError(
                    f"EinsumDense: bias_axes must be letters of the outputs, "
                    f"'{self._tw_terms[2]}', got {bias_axes!r}"
                )

    def build(self, input_shape: Shape) -> None:
        _, letters, outputs, dots = self._tw_terms
        sizes, elided = self._tw_sizes(input_shape)
        shape = tuple([sizes[c] for c in letters])
        self.kernel: Variable = self._tw_new_weight(
            "kernel", shape, initializer=self._tw_with_fans(letters, outputs)
        )
        if self.bias_axes:
            first = min([outputs.index(c) for c in self.bias_axes])
            dims = [sizes[c] if c in self.bias_axes else 1 for c in outputs[first:]]
            dims += [1] * (elided if dots == "behind" else 0)
            self.bias: Variable | None = self._tw_new_weight("bias", dims)
        self.input_spec: InputSpec = InputSpec(ndim=len(input_shape))

    def call(self, inputs: Tensor) -> Tensor:
        outputs = einsum(self.equation, self._tw_as_own_dtype(inputs), self.kernel)
        if self.bias is not None:
            outputs = outputs + self.bias
        return outputs if self.activation is None else self.activation(outputs)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        _, _, outputs, dots = self._tw_terms
        sizes, elided = self._tw_sizes(input_shape)
        dims = [sizes[c] for c in outputs]
        if dots == "behind":
            return (*dims, *input_shape[len(input_shape) - elided :])
        return (*input_shape[:elided], *dims)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config["output_shape"] = list(self.partial_output_shape)
        return {**config, "activity_regularizer": plain(self.activity_regularizer)}

    def _tw_sizes(self, input_shape):
        """Return the size of each letter, and the number of axes that the dots cover."""
        inputs, _, outputs, dots = self._tw_terms
        partial, elided = self.partial_output_shape, len(input_shape) - len(inputs)
        if elided < 0 or (elided and not dots):
            raise self._tw_misfit(f"inputs of rank {len(inputs)}", input_shape)
        # output_shape leaves the first axis out, be it a letter or one of the dots
        hidden = 0 if dots == "before" and elided else 1
        if len(partial) != len(outputs) - hidden:
            needed = f"output_shape of length {len(outputs) - hidden}"
            raise self._tw_misfit(needed, input_shape)
        sizes = dict(zip(inputs, input_shape[elided if dots == "before" else 0 :]))
        for letter, size in zip(outputs[hidden:], partial):
            own = sizes.setdefault(letter, size)
            if None not in (own, size) and own != size:
                raise self._tw_misfit(f"size {own} for '{letter}'", input_shape)
            sizes[letter] = size if own is None else own
        return sizes, elided

    def _tw_misfit(self, needed, input_shape):
        return ValueError(
            f"{self._tw_title}: equation '{self.equation}' requires {needed}, got output_shape "
            f"{self.partial_output_shape} and inputs of shape {tuple(input_shape)}"
        )

    def _tw_with_fans(self, letters, outputs):
        """Return the initializer with the input and output axes of the kernel set."""
        initializer = self.kernel_initializer
        if not isinstance(initializer, initializers.VarianceScaling):
            return initializer
        if None not in (initializer.input_axes, initializer.output_axes):
            return initializer
        axes = {"input_axes": [], "output_axes": []}
        for i, letter in enumerate(letters):
            axes["output_axes" if letter in outputs else "input_axes"].append(i)
        return type(initializer).from_config({**initializer.get_config(), **axes})


_EQUATION = re.compile(r"(\.\.\.)?([a-zA-Z]+)(\.\.\.)?,([a-zA-Z]+)->"
                       r"(\.\.\.)?([a-zA-Z]+)(\.\.\.)?")  # fmt: skip


def _parsed(equation):
    """Split an equation into the letters of inputs, kernel and outputs.

    The fourth value says where the dots are: "before", "behind", or "".
    """
    match = _EQUATION.fullmatch(equation) if isinstance(equation, str) else None
    if match:
        before, inputs, behind, kernel, before_too, outputs, behind_too = match.groups()
        if before == before_too and behind == behind_too and not (before and behind):
            unknown = set(kernel) - set(inputs + outputs)
            unknown |= set(outputs) - set(inputs + kernel)
            if not unknown:
                dots = "before" if before else "behind" if behind else ""
                return inputs, kernel, outputs, dots
            raise ValueError(
                "EinsumDense: each letter of the kernel must also be in the inputs or "
                "outputs, and each letter of the outputs in the inputs or kernel; "
                f"equation {equation!r} has {', '.join(sorted(unknown))} in one term only"
            )
    raise ValueError(
        "EinsumDense: equation must be like 'ab,bc->ac', '...b,bc->...c' or "
        f"'ab...,bc->ac...', got {equation!r}"
    )


class Activation(ShapePreserving, Layer):
    """Apply an activation function: ``outputs = activation(inputs)``.

    Args:
        activation: Name of a function of `keras.activations`, or any function of a
            tensor.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[...]``.

    Raises:
        ValueError: If the name is unknown.

    Example:
        >>> keras.layers.Activation("relu")([-1.0, 2.0]).numpy()
        array([0., 2.], dtype=float32)
    """

    supports_masking = True
    _tw_shape_tells = True

    def __init__(
        self, activation: ActivationLike, **kwargs: Unpack[RegularizedLayerOptions]
    ):
        super().__init__(**kwargs)
        self.activation: Any = activations.get(activation)

    def call(self, inputs: Tensor) -> Tensor:
        return self.activation(inputs)


class Identity(Layer):
    """Return the inputs unchanged: a tensor or a nest of tensors.

    Shapes:
        Inputs and outputs ``[...]``.

    Example:
        >>> keras.layers.Identity()([-1.0, 2.0]).numpy()
        array([-1.,  2.], dtype=float32)
    """

    supports_masking = True

    def call(self, inputs: Any) -> Any:
        return inputs

    def compute_output_shape(self, input_shape: Any) -> Any:
        return input_shape
