"""Activations as layers: ReLU and its variants, PReLU with a learned slope, and softmax."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.errors import ShapeError
from tapewright.core.messages.argument_validation import not_negative
from tapewright.core.messages.source_lines import user_stacklevel
from tapewright.core.tensor import convert_to_tensor
from tapewright.ops.array.conversion import cast
from tapewright.ops.math.comparison import greater, where
from tapewright.ops.math.elementwise import exp
from tapewright.ops.math.reduction import reduce_logsumexp
from tapewright.ops.nn.activation import softmax

from . import activations, constraints, initializers, regularizers
from .base.layer import InputSpec, Layer, ShapePreserving

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import Axes, Shape
    from tapewright.core.variable import Variable

    from .base.layer_types import (
        ConstraintLike,
        InitializerLike,
        RegularizedLayerOptions,
        RegularizerLike,
    )

__all__ = ["ELU", "LeakyReLU", "PReLU", "ReLU", "Softmax", "ThresholdedReLU"]


class _Activation(ShapePreserving, Layer):
    supports_masking = True
    _tw_shape_tells = True


class ReLU(_Activation):
    """Rectified linear unit (ReLU) layer: ``max(inputs, 0)`` by default.

        max_value                            where x >= max_value
        x                                    where threshold < x < max_value
        negative_slope * (x - threshold)     where x <= threshold

    Args:
        max_value: Upper bound of the outputs, 0 or more, or None for no bound.
        negative_slope: Slope below ``threshold``, 0 or more.
        threshold: Value up to which inputs are scaled by ``negative_slope``, 0 or more.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[...]``.

    Raises:
        ValueError: If an argument is negative.

    Example:
        >>> keras.layers.ReLU(max_value=6.0, negative_slope=0.5)([-2.0, 3.0, 9.0]).numpy()
        array([-1.,  3.,  6.], dtype=float32)
    """

    def __init__(
        self,
        max_value: float | None = None,
        negative_slope: float = 0.0,
        threshold: float = 0.0,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        if max_value is not None:
            not_negative(self, "max_value", max_value)
        self.max_value = max_value
        self.negative_slope: float = not_negative(
            self, "negative_slope", negative_slope
        )
        self.threshold: float = not_negative(self, "threshold", threshold)

    def call(self, inputs: Tensor) -> Tensor:
        return activations.relu(
            inputs, self.negative_slope, self.max_value, self.threshold
        )


class LeakyReLU(_Activation):
    """Leaky ReLU layer: ``x`` where it is positive, else ``negative_slope * x``.

    Args:
        negative_slope: Slope for negative inputs, 0 or more.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[...]``.

    Raises:
        ValueError: If ``negative_slope`` is negative.

    References:
        Maas et al., "Rectifier nonlinearities improve neural network acoustic models"
        (2013).

    Example:
        >>> keras.layers.LeakyReLU(0.1)([-2.0, 3.0]).numpy()
        array([-0.2,  3. ], dtype=float32)
    """

    def __init__(
        self, negative_slope: float = 0.3, **kwargs: Unpack[RegularizedLayerOptions]
    ):
        if "alpha" in kwargs:  # its name in Keras 2
            warnings.warn(
                "Argument `alpha` is deprecated. Use `negative_slope` instead.",
                stacklevel=user_stacklevel(),
            )
            negative_slope = kwargs.pop("alpha")
        super().__init__(**kwargs)
        slope = not_negative(self, "negative_slope", negative_slope)
        self.negative_slope = slope

    def call(self, inputs: Tensor) -> Tensor:
        return activations.leaky_relu(inputs, self.negative_slope)


class ThresholdedReLU(_Activation):
    """Thresholded ReLU layer: ``x`` where it is above ``theta``, else 0.

    A layer of Keras 2; `ReLU` with ``threshold=theta`` computes the same function.

    Args:
        theta: Threshold of the activation, 0 or more.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[...]``.

    Raises:
        ValueError: If ``theta`` is negative.

    Example:
        >>> keras.layers.ThresholdedReLU(theta=0.5)([-2.0, 0.5, 3.0]).numpy()
        array([-0.,  0.,  3.], dtype=float32)
    """

    def __init__(self, theta: float = 1.0, **kwargs: Unpack[RegularizedLayerOptions]):
        super().__init__(**kwargs)
        self.theta: float = float(not_negative(self, "theta", theta))

    def call(self, inputs: Tensor) -> Tensor:
        return inputs * cast(greater(inputs, self.theta), inputs.dtype)


class PReLU(_Activation):
    """Parametric ReLU layer, with a learned slope for negative inputs.

    ``x`` where it is positive, else ``alpha * x``.

    Args:
        alpha_initializer: Initializer of ``alpha``: an object or its name.
        alpha_regularizer: Regularizer of ``alpha``, or None.
        alpha_constraint: Constraint on ``alpha``, or None.
        shared_axes: Axes along which ``alpha`` is shared, counted with the batch as
            axis 0; with ``[1, 2]``, images have one ``alpha`` per channel.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[batch, ...]``; weight ``alpha [...]``, of size 1 along
        ``shared_axes``.

    Raises:
        ValueError: If one of ``shared_axes`` is not an axis after the batch.

    References:
        He et al., "Delving deep into rectifiers" (2015).

    Example:
        >>> layer = keras.layers.PReLU(alpha_initializer="ones", shared_axes=[1])
        >>> layer([[[-2.0, 3.0]]]).numpy(), layer.alpha.shape
        (array([[[-2.,  3.]]], dtype=float32), TensorShape([1, 2]))
    """

    def __init__(
        self,
        alpha_initializer: InitializerLike = "Zeros",
        alpha_regularizer: RegularizerLike = None,
        alpha_constraint: ConstraintLike = None,
        shared_axes: Sequence[int] | None = None,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        self.alpha_initializer: Any = initializers.get(alpha_initializer)
        self.alpha_regularizer: Any = regularizers.get(alpha_regularizer)
        self.alpha_constraint: Any = constraints.get(alpha_constraint)
        if isinstance(shared_axes, int):
            shared_axes = [shared_axes]
        self.shared_axes: list[int] | None = (
            None if shared_axes is None else list(shared_axes)
        )

    def build(self, input_shape: Shape) -> None:
        rank, shared = len(input_shape), self.shared_axes or []
        for axis in shared:
            if not 0 < axis < rank:
                raise ValueError(
                    f"{self._tw_title}: shared_axes must be from 1 to {rank - 1} for inputs "
                    f"of rank {rank}, got {shared}"
                )
        axes = {i: input_shape[i] for i in range(1, rank) if i not in shared}
        shape = tuple([axes.get(i, 1) for i in range(1, rank)])
        self.alpha: Variable = self._tw_new_weight("alpha", shape)
        self.input_spec: InputSpec = InputSpec(ndim=rank, axes=axes)

    def call(self, inputs: Tensor) -> Tensor:
        return activations.relu(inputs) - self.alpha * activations.relu(-inputs)


class ELU(_Activation):
    """Exponential linear unit (ELU) layer.

    ``x`` where it is positive, else ``alpha * (exp(x) - 1)``.

    Args:
        alpha: Scale of the negative part.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[...]``.

    References:
        Clevert et al., "Fast and accurate deep network learning by exponential linear
        units" (2016).

    Example:
        >>> keras.layers.ELU()([-1.0, 2.0]).numpy().round(3)
        array([-0.632,  2.   ], dtype=float32)
    """

    def __init__(self, alpha: float = 1.0, **kwargs: Unpack[RegularizedLayerOptions]):
        super().__init__(**kwargs)
        self.alpha = alpha

    def call(self, inputs: Tensor) -> Tensor:
        return activations.elu(inputs, self.alpha)


class Softmax(_Activation):
    """Softmax layer: ``exp(x) / sum(exp(x))`` along ``axis``.

    The layer can be called with a ``mask`` that broadcasts to the inputs: entries where
    the mask is False (or at most 0.5) are excluded, and their outputs are 0.

    Args:
        axis: Axis or axes to normalize along.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[...]``.

    Raises:
        ShapeError: If ``mask`` does not broadcast to the inputs.

    Example:
        >>> keras.layers.Softmax()([[1.0, 1.0, 5.0]], mask=[[True, True, False]]).numpy()
        array([[0.5, 0.5, 0. ]], dtype=float32)
    """

    def __init__(self, axis: Axes = -1, **kwargs: Unpack[RegularizedLayerOptions]):
        super().__init__(**kwargs)
        self.axis: Any = axis if isinstance(axis, int) else list(axis)

    def call(self, inputs: Tensor, mask: Any = None) -> Tensor:
        if mask is None:
            return self._tw_normalized(inputs)
        mask = self._tw_checked(mask, inputs)
        lowest = -3e4 if inputs.dtype == "float16" else -1e9
        outputs = self._tw_normalized(where(mask, inputs, lowest))
        return where(mask, outputs, 0.0)  # also where nothing counts

    def _tw_normalized(self, inputs):
        if isinstance(self.axis, int):
            return softmax(inputs, self.axis)
        if len(self.axis) == 1:
            return softmax(inputs, self.axis[0])
        return exp(inputs - reduce_logsumexp(inputs, self.axis, keepdims=True))

    def _tw_checked(self, mask, inputs):
        mask = convert_to_tensor(mask)
        sizes, own = tuple(mask.shape), tuple(inputs.shape)
        fits = [m == 1 or m == n for m, n in zip(sizes[::-1], own[::-1])]
        if len(sizes) > len(own) or not all(fits):
            raise ShapeError(
                self._tw_title,
                "mask must broadcast to the inputs",
                inputs=inputs,
                mask=mask,
            )
        return mask if mask.dtype == "bool" else greater(cast(mask, inputs.dtype), 0.5)
