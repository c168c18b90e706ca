"""`Embedding` and `ReversibleEmbedding`: vectors for integers; `Masking`: skip time steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.dtypes import as_dtype
from tapewright.core.messages.argument_validation import positive, whole
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import zeros
from tapewright.ops.array.gather import gather
from tapewright.ops.linalg.matmul import matmul
from tapewright.ops.math.comparison import not_equal, where
from tapewright.ops.math.reduction import reduce_any
from tapewright.ops.math.trigonometry import tanh

from . import constraints, initializers, regularizers
from .base.layer import Layer, ShapePreserving
from .base.masks import attach

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import DTypeLike, Shape, TensorLike
    from tapewright.core.variable import Variable

    from .base.layer_types import (
        ConstraintLike,
        InitializerLike,
        RegularizedLayerOptions,
        RegularizerLike,
    )

__all__ = ["Embedding", "Masking", "ReversibleEmbedding"]


class Embedding(Layer):
    """Embedding layer, a learned vector per integer: ``outputs = embeddings[inputs]``.

    Args:
        input_dim: Size of the vocabulary; inputs are from 0 to ``input_dim - 1``.
        output_dim: Size of the vectors.
        embeddings_initializer: Initializer of ``embeddings``: an object or its name.
        embeddings_regularizer: Regularizer of ``embeddings``, or None.
        embeddings_constraint: Constraint on ``embeddings``, or None.
        mask_zero: If True, input 0 is padding: the outputs have a mask, so that later
            layers skip it.
        weights: Array of initial values of ``embeddings``, or None.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[...]``, integers (others are cast), outputs ``[..., output_dim]``;
        weight ``embeddings [input_dim, output_dim]``, whose gradient is an
        `IndexedSlices` of the rows in use.

    Raises:
        OutOfBoundsError: If an input is not from 0 to ``input_dim - 1``; a
            ``ValueError`` and ``IndexError``.
        ValueError: If a size is not positive, or ``weights`` has another shape.

    Example:
        >>> layer = keras.layers.Embedding(3, 2, weights=[[0.0, 0.0], [1.0, 2.0], [3.0, 4.0]])
        >>> layer([[2, 1]]).numpy()
        array([[[3., 4.],
                [1., 2.]]], dtype=float32)
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        embeddings_initializer: InitializerLike = "uniform",
        embeddings_regularizer: RegularizerLike = None,
        embeddings_constraint: ConstraintLike = None,
        mask_zero: bool = False,
        weights: TensorLike | None = None,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        kwargs.pop("input_length", None)  # of Keras 2
        super().__init__(**kwargs)
        self.input_dim: int = whole(self, "input_dim", input_dim)
        self.output_dim: int = whole(self, "output_dim", output_dim)
        self.embeddings_initializer: Any = initializers.get(embeddings_initializer)
        self.embeddings_regularizer: Any = regularizers.get(embeddings_regularizer)
        self.embeddings_constraint: Any = constraints.get(embeddings_constraint)
        self.mask_zero: bool = bool(mask_zero)
        self.supports_masking: bool = self.mask_zero
        if weights is not None:
            self.build((None,))
            many = isinstance(weights, (list, tuple)) and len(weights) == 1
            self.set_weights(weights if many else [weights])

    # Half precision would round indices, and a cast of all rows make the gradient dense.
    autocast = False

    def build(self, input_shape: Shape | None = None) -> None:
        shape = self.input_dim, self.output_dim
        self.embeddings: Variable = self._tw_new_weight(
            "embeddings", shape, autocast=False
        )

    def call(self, inputs: Tensor) -> Tensor:
        if not inputs.dtype.is_integer:
            inputs = cast(inputs, "int32")
        return self._tw_as_own_dtype(gather(self.embeddings, inputs))

    def compute_mask(self, inputs: Tensor, mask: Any = None) -> Any:
        return not_equal(inputs, cast(0, inputs.dtype)) if self.mask_zero else None

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return (*input_shape, self.output_dim)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config.pop("weights", None)  # they are in the files of weights
        return config


class ReversibleEmbedding(Embedding):
    """Embedding layer that also projects back: ``logits = inputs @ transpose(embeddings)``.

    Call the layer with ``reverse=True`` to compute logits from vectors; these outputs
    have no mask.

    Args:
        input_dim: Size of the vocabulary; inputs are from 0 to ``input_dim - 1``.
        output_dim: Size of the vectors.
        tie_weights: If False, the reverse projection has a separate weight.
        embeddings_initializer: Initializer of ``embeddings``: an object or its name.
        embeddings_regularizer: Regularizer of ``embeddings``, or None.
        embeddings_constraint: Constraint on ``embeddings``, or None.
        mask_zero: If True, input 0 is padding: the outputs have a mask, so that later
            layers skip it.
        reverse_dtype: Dtype of the reverse projection; by default the wider of the
            compute dtype and the input dtype.
        logit_soft_cap: Positive bound c of the logits, ``c * tanh(logits / c)``, or
            None.
        **kwargs: ``weights``, as for `Embedding`, and base class arguments; see
            `keras.layers.Layer`.

    Shapes:
        Inputs ``[...]``, outputs ``[..., output_dim]``; with ``reverse``, inputs
        ``[..., output_dim]``, outputs ``[..., input_dim]``; weights
        ``embeddings [input_dim, output_dim]`` and, if not tied,
        ``reverse_embeddings [output_dim, input_dim]``.

    Raises:
        OutOfBoundsError: If an input is not from 0 to ``input_dim - 1``; a
            ``ValueError`` and ``IndexError``.
        ValueError: If a size or ``logit_soft_cap`` is not positive.

    References:
        Press & Wolf, "Using the output embedding to improve language models" (2017).

    Example:
        >>> layer = keras.layers.ReversibleEmbedding(2, 2, weights=[[1.0, 2.0], [3.0, 4.0]])
        >>> layer(layer([1]), reverse=True).numpy()
        array([[11., 25.]], dtype=float32)
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        tie_weights: bool = True,
        embeddings_initializer: InitializerLike = "uniform",
        embeddings_regularizer: RegularizerLike = None,
        embeddings_constraint: ConstraintLike = None,
        mask_zero: bool = False,
        reverse_dtype: DTypeLike | None = None,
        logit_soft_cap: float | None = None,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        self.tie_weights: bool = bool(tie_weights)
        super().__init__(
            input_dim,
            output_dim,
            embeddings_initializer,
            embeddings_regularizer,
            embeddings_constraint,
            mask_zero,
            **kwargs,
        )
        known = None if reverse_dtype is None else as_dtype(reverse_dtype).name
        self.reverse_dtype: str | None = known
        if logit_soft_cap is not None:
            positive(self, "logit_soft_cap", logit_soft_cap)
        self.logit_soft_cap = logit_soft_cap

    def build(self, input_shape: Shape | None = None) -> None:
        super().build(input_shape)
        if not self.tie_weights:
            self.reverse_embeddings: Variable = self.add_weight(
                (self.output_dim, self.input_dim),
                self.embeddings_initializer,
                name="reverse_embeddings",
                autocast=False,
            )

    def call(self, inputs: Tensor, reverse: bool = False) -> Tensor:
        if reverse:
            return self._tw_logits(inputs)
        outputs = super().call(inputs)
        attach(outputs, super().compute_mask(inputs))
        return outputs

    def _tw_logits(self, inputs):
        inputs = inputs if inputs.dtype.is_floating else self._tw_as_own_dtype(inputs)
        dtype = max(inputs.dtype, self._tw_compute_dtype, key=lambda dtype: dtype.size)
        dtype = dtype if self.reverse_dtype is None else as_dtype(self.reverse_dtype)
        kernel = self.embeddings if self.tie_weights else self.reverse_embeddings
        kernel = cast(self._tw_as_own_dtype(kernel.read()), dtype)
        logits = matmul(cast(inputs, dtype), kernel, transpose_b=self.tie_weights)
        cap = self.logit_soft_cap
        return logits if cap is None else tanh(logits / cap) * cap

    def compute_mask(self, inputs: Tensor, mask: Any = None) -> None:
        return None  # `call` attaches it, on one of the two ways

    def compute_output_shape(self, input_shape: Shape, reverse: bool = False) -> Shape:
        if reverse:
            return (*input_shape[:-1], self.input_dim)
        return super().compute_output_shape(input_shape)


class Masking(ShapePreserving, Layer):
    """Mask time steps whose features all equal ``mask_value``; later layers skip them.

    Args:
        mask_value: Value of the features of a step to skip.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[batch, time, features]``; the mask is ``[batch, time]``.
        Outputs are 0 where the mask is False.

    Example:
        >>> inputs = tw.constant([[[1.0, 2.0], [0.0, 0.0]]])
        >>> keras.layers.Masking().compute_mask(inputs).numpy()
        array([[ True, False]])
    """

    supports_masking = True

    def __init__(
        self, mask_value: Any = 0.0, **kwargs: Unpack[RegularizedLayerOptions]
    ):
        super().__init__(**kwargs)
        self.mask_value = mask_value

    def compute_mask(self, inputs: Tensor, mask: Any = None) -> Any:
        return self._tw_counted(inputs, False)

    def call(self, inputs: Tensor) -> Tensor:
        return where(self._tw_counted(inputs, True), inputs, zeros((), inputs.dtype))

    def _tw_counted(self, inputs, keepdims):
        value = cast(self.mask_value, inputs.dtype)
        return reduce_any(not_equal(inputs, value), -1, keepdims)
