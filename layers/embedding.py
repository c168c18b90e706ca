"""`Embedding`: rows of a table for whole numbers, and the way back; `Masking`: steps
that do not count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.argument_validation import positive, whole
from tapewright.core.dtypes import as_dtype
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
    """A learned vector for each integer: ``outputs = embeddings[inputs]``.

    Args: ``input_dim``: the number of integers, from 0 on; ``output_dim``: the size of
    a vector; ``mask_zero``: 0 stands for no entry, and later layers skip it;
    ``weights``: an array of initial values.

    Shapes: inputs ``[...]``, integers (others are cast), outputs ``[..., output_dim]``;
    weight ``embeddings [input_dim, output_dim]``, whose gradient is an `IndexedSlices`
    of the rows in use.

    Raises: ``OutOfBoundsError``, a ``ValueError`` and ``IndexError``, for an integer
    that is not from 0 to ``input_dim - 1``; ``ValueError`` for sizes that are not
    positive, or ``weights`` of another shape.

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
    """An `Embedding` that also makes logits of vectors: ``inputs @ transpose(embeddings)``.

    Args: those of `Embedding`; ``tie_weights``: False gives the way back a weight of its
    own; ``reverse_dtype``: the dtype of the way back; ``logit_soft_cap`` c: the logits are
    ``c * tanh(logits / c)``.

    Inputs: ``reverse``: True for the way back. Its outputs have no mask.

    Shapes: inputs ``[...]``, outputs ``[..., output_dim]``; with ``reverse`` inputs ``[...,
    output_dim]``, outputs ``[..., input_dim]``; weights ``embeddings [input_dim,
    output_dim]``, ``reverse_embeddings [output_dim, input_dim]`` if they are not tied.

    Raises: as `Embedding`; ``ValueError`` if ``logit_soft_cap`` is not positive.

    Reference: Press & Wolf, "Using the output embedding to improve language models" (2017).

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
    """Masks the steps whose features all are ``mask_value``: later layers skip them.

    Shapes: inputs and outputs ``[batch, time, features]``; the mask is ``[batch,
    time]``. Where it is False the outputs are 0.

    Example:
        >>> inputs = [[[1.0, 2.0], [0.0, 0.0]]]
        >>> keras.layers.Masking().compute_mask(tw.cast(inputs, "float32")).numpy()
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
