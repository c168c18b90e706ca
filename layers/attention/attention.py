"""Attention between two sequences: `Attention` and `AdditiveAttention`.

Multi-head attention with projections is in `multi_head_attention`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.messages.argument_validation import share
from tapewright.core.rules import checked_broadcast
from tapewright.core.tensor import convert_to_tensor
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import range as arange
from tapewright.ops.array.shape import expand_dims
from tapewright.ops.linalg.matmul import matmul
from tapewright.ops.math.comparison import greater_equal, less, logical_and, where
from tapewright.ops.math.elementwise import abs
from tapewright.ops.math.reduction import reduce_sum
from tapewright.ops.math.trigonometry import tanh
from tapewright.ops.nn.activation import softmax
from tapewright.ops.nn.dropout import apply_dropout
from tapewright.ops.random.sampling import get_global_generator

from ..base.layer import Layer
from ..base.seeds import checked_seed, generator_of

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import Shape
    from tapewright.core.variable import Variable
    from tapewright.ops.random.generators import Generator

    from ..base.layer_types import RegularizedLayerOptions, SeedLike

__all__ = ["AdditiveAttention", "Attention"]


class Attention(Layer):
    """Dot-product attention: ``softmax(query @ key^T) @ value``.

    The layer is called with a list ``[query, value]`` or ``[query, value, key]``;
    ``key`` defaults to ``value``. Optional call arguments:

    - ``mask``: List of masks for query and value. Outputs are 0 where the query mask is
      False; values are ignored where the value mask is False.
    - ``use_causal_mask``: If True, a query attends only to keys up to its own position.
    - ``return_attention_scores``: If True, also return the attention weights, after
      dropout.

    Args:
        use_scale: If True, multiply the scores by a learned ``scale``.
        score_mode: "dot" for the dot product, or "concat" for
            ``concat_score_weight * sum(tanh(scale * (query + key)))``.
        dropout: Fraction of the attention weights to drop in training, from 0 to 1.
        seed: Integer seed, a `keras.random.SeedGenerator`, or None to use the global
            generator.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        ``query [batch, queries, dim]``, ``key [batch, keys, dim]``,
        ``value [batch, keys, values]``, outputs ``[batch, queries, values]``, attention
        weights ``[batch, queries, keys]``; weights ``scale []`` and
        ``concat_score_weight []``.

    Raises:
        ValueError: If the inputs are not a list of two or three tensors, ``score_mode``
            is unknown, or ``dropout`` is not from 0 to 1.

    References:
        Luong et al., "Effective approaches to attention-based neural machine
        translation" (2015).

    Example:
        >>> query, value = tw.constant([[[0.0]]]), tw.constant([[[2.0], [4.0]]])
        >>> keras.layers.Attention()([query, value]).numpy()
        array([[[3.]]], dtype=float32)
    """

    scale = concat_score_weight = None

    def __init__(
        self,
        use_scale: bool = False,
        score_mode: str = "dot",
        dropout: float = 0.0,
        seed: SeedLike = None,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        if score_mode not in ("dot", "concat"):
            raise ValueError(
                f"Attention: score_mode must be 'dot' or 'concat', got {score_mode!r}"
            )
        self.use_scale = use_scale
        self.score_mode = score_mode
        self.dropout: float = share(self, "dropout", dropout)
        self.seed: SeedLike = checked_seed(self, seed)
        self.seed_generator: Generator | None = generator_of(self.seed)

    def build(self, input_shape: Any) -> None:
        self._tw_check_count(input_shape, "inputs")
        if self.use_scale:
            self.scale: None = self.add_weight(
                name="scale", shape=(), initializer="ones"
            )
        if self.score_mode == "concat":
            self.concat_score_weight: None = self.add_weight(
                name="concat_score_weight", shape=(), initializer="ones"
            )

    def call(
        self,
        inputs: Sequence[Tensor],
        mask: Any = None,
        training: bool | None = False,
        return_attention_scores: bool = False,
        use_causal_mask: bool = False,
    ) -> Any:
        self._tw_check_count(inputs, "inputs")
        if mask is not None:
            self._tw_check_count(mask, "mask")
        query, value, key = (*inputs, inputs[1])[:3]
        query_mask, value_mask = (None, None) if mask is None else mask[:2]
        scores = self._tw_scores(query, key)
        visible = None if value_mask is None else expand_dims(value_mask, -2)
        if use_causal_mask:
            visible = both(visible, causal_mask(*scores.shape[-2:]))
        if visible is not None:
            checked_broadcast(
                self._tw_title, visible.shape, scores.shape, mask=visible, scores=scores
            )
            low = 65504.0 if scores.dtype == "float16" else 1e9
            scores = where(cast(visible, "bool"), scores, scores - low)
        weights = softmax(scores)
        if training and self.dropout:
            weights = self._tw_with_dropout(weights)
        outputs = matmul(weights, value)
        if query_mask is not None:
            kept = cast(expand_dims(query_mask, -1), "bool")
            checked_broadcast(
                self._tw_title, kept.shape, outputs.shape, mask=kept, outputs=outputs
            )
            outputs = where(kept, outputs, cast(0, outputs.dtype))
        return (outputs, weights) if return_attention_scores else outputs

    def _tw_scores(self, query, key):
        if self.score_mode == "dot":
            scores = matmul(query, key, transpose_b=True)
            return scores if self.scale is None else scores * self.scale
        together = expand_dims(query, -2) + expand_dims(key, -3)
        if self.scale is not None:
            together = together * self.scale
        return reduce_sum(tanh(together), -1) * self.concat_score_weight

    def _tw_with_dropout(self, weights):
        generator = self.seed_generator or get_global_generator()
        return apply_dropout(
            self._tw_title, weights, self.dropout, None, generator._tw_stream
        )

    def compute_mask(self, inputs: Tensor, mask: Any = None) -> Any:
        self._tw_check_count(inputs, "inputs")
        if mask is None:
            return None
        self._tw_check_count(mask, "mask")
        return None if mask[0] is None else convert_to_tensor(mask[0])

    def compute_output_shape(self, input_shape: Any) -> Shape:
        query, value = input_shape[:2]
        return (*query[:-1], value[-1])

    def _tw_check_count(self, given, what):
        if not isinstance(given, list | tuple) or not 2 <= len(given) <= 3:
            count = f" of {len(given)}" if isinstance(given, list | tuple) else ""
            raise ValueError(
                f"{self._tw_title}: {what} must be a list [query, value] or [query, value, "
                f"key], got {type(given).__name__}{count}"
            )


class AdditiveAttention(Attention):
    """Additive (Bahdanau) attention: ``softmax(scores) @ value``.

        scores = sum(scale * tanh(query + key))

    The layer is called as `Attention` is.

    Args:
        use_scale: If True, learn ``scale``; if False, ``scale`` is 1.
        dropout: Fraction of the attention weights to drop in training, from 0 to 1.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs and outputs as for `Attention`; weight ``scale [dim]``.

    Raises:
        ValueError: If the inputs are not a list of two or three tensors, or ``dropout``
            is not from 0 to 1.

    References:
        Bahdanau et al., "Neural machine translation by jointly learning to align and
        translate" (2015).

    Example:
        >>> layer = keras.layers.AdditiveAttention()
        >>> layer([tw.ones([2, 5, 3]), tw.ones([2, 4, 3])]).shape
        TensorShape([2, 5, 3])
    """

    def __init__(
        self,
        use_scale: bool = True,
        dropout: float = 0.0,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(use_scale=use_scale, dropout=dropout, **kwargs)

    def build(self, input_shape: Any) -> None:
        self._tw_check_count(input_shape, "inputs")
        if self.use_scale:
            dim = input_shape[0][-1]
            self.scale: Variable = self.add_weight(name="scale", shape=(dim,))

    def _tw_scores(self, query, key):
        values = tanh(expand_dims(query, -2) + expand_dims(key, -3))
        return reduce_sum(values if self.scale is None else values * self.scale, -1)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        del config["score_mode"]
        return config


def causal_mask(queries, keys):
    """``[1, queries, keys]``: True for keys up to the position of the query."""
    return greater_equal(_positions(queries, -1), _positions(keys, -2))


def band_mask(queries, keys, width):
    """``[1, queries, keys]``: True for keys less than ``width`` positions from the query."""
    return less(abs(_positions(queries, -1) - _positions(keys, -2)), width)


def _positions(count, axis):
    return expand_dims(expand_dims(arange(count), axis), 0)


def both(first, second):
    """Combine two masks with a logical and; None is a mask that is True everywhere."""
    if first is None or second is None:
        return second if first is None else first
    return logical_and(first, second)
