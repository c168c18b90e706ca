"""Multi-head attention, and grouped-query attention."""

from __future__ import annotations

import math
import string
from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.messages.argument_validation import share, whole
from tapewright.core.rules import normalize_axis
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.gather import repeat
from tapewright.ops.array.shape import expand_dims
from tapewright.ops.linalg.contraction import einsum
from tapewright.ops.nn.attention import dot_product_attention
from tapewright.serialization.object_config import plain
from tapewright.serialization.registry import register

from .. import regularizers
from ..activation_layers import Softmax
from ..base.layer import Layer
from ..base.seeds import checked_seed
from ..core import EinsumDense
from ..noise import Dropout
from .attention import band_mask, both, causal_mask

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import Axes, Shape

    from ..base.layer_types import (
        ConstraintLike,
        InitializerLike,
        LayerOptions,
        RegularizerLike,
        SeedLike,
    )

__all__ = ["GroupQueryAttention", "GroupedQueryAttention", "MultiHeadAttention"]

# The arguments that go to each projection.
_OF_PROJECTIONS = (
    "kernel_initializer",
    "bias_initializer",
    "kernel_regularizer",
    "bias_regularizer",
    "kernel_constraint",
    "bias_constraint",
)


class _Heads(Layer):
    """Base of multi-head and grouped-query attention: projections, masks, the softmax.

    The call arguments are described in `MultiHeadAttention`.
    """

    supports_masking = True
    _tw_child_names = Layer._tw_child_names | {  # those of files
        "_query_dense": "_query_dense",
        "_key_dense": "_key_dense",
        "_value_dense": "_value_dense",
        "_gate_dense": "_gate_dense",
        "_output_dense": "_output_dense",
        "_softmax": "_softmax",
        "_dropout_layer": "_dropout_layer",
    }

    def _tw_keep(self, arguments, use_bias, dropout, sliding_window, use_gate, seed):
        self._tw_keep_weight_arguments(arguments)
        regularizer = regularizers.get(arguments["activity_regularizer"])
        self._tw_projection_regularizer = regularizer
        if sliding_window is not None:
            sliding_window = whole(self, "sliding_window", sliding_window)
        self.use_bias: bool = use_bias
        self.dropout: float = share(self, "dropout", dropout)
        self.sliding_window = sliding_window
        self.use_gate: bool = use_gate
        self.seed: SeedLike = checked_seed(self, seed)

    def _tw_projection(self, name, equation, output_shape, bias_axes, activation=None):
        dense = EinsumDense(
            equation,
            output_shape=output_shape,
            bias_axes=bias_axes if self.use_bias else None,
            activation=activation,
            name=name,
            dtype=self.dtype_policy,
            activity_regularizer=self._tw_projection_regularizer,
            **{argument: getattr(self, argument) for argument in _OF_PROJECTIONS},
        )
        dense.supports_masking = True  # masks are read here, and end here
        return dense

    def call(
        self,
        query: Tensor,
        value: Any,
        key: Tensor | None = None,
        query_mask: Any = None,
        value_mask: Any = None,
        key_mask: Any = None,
        attention_mask: Any = None,
        return_attention_scores: bool = False,
        training: bool | None = None,
        use_causal_mask: bool = False,
    ) -> Any:
        key = value if key is None else key
        visible = None if attention_mask is None else cast(attention_mask, "bool")
        if query_mask is not None:
            visible = both(visible, expand_dims(cast(query_mask, "bool"), -1))
        for mask in (value_mask, key_mask):
            if mask is not None:
                visible = both(visible, expand_dims(cast(mask, "bool"), -2))
        lengths = query.shape[1], value.shape[1]
        if use_causal_mask:
            visible = both(visible, causal_mask(*lengths))
        if self.sliding_window is not None:
            visible = both(visible, band_mask(*lengths, self.sliding_window))
        gate = self._gate_dense(query) if self.use_gate else None
        outputs, weights = self._tw_attend(
            self._query_dense(query),
            self._tw_for_each_head(self._key_dense(key)),
            self._tw_for_each_head(self._value_dense(value)),
            visible,
            training,
            return_attention_scores,
        )
        outputs = self._output_dense(outputs if gate is None else outputs * gate)
        return (outputs, weights) if return_attention_scores else outputs

    def _tw_for_each_head(self, x):
        return x

    def _tw_attend(self, query, key, value, visible, training, return_weights):
        """Return the weighted means of the values, and the weights or None."""
        if visible is not None:
            for _ in range(self._tw_scores_rank - len(visible.shape)):
                visible = expand_dims(visible, -2 * self._tw_attention_rank - 1)
        scale = 1.0 / math.sqrt(query.shape[-1])
        # as in Keras, arguments decide, never `training`: the two ways differ in rows that
        # see no key, where both modes of a layer must agree
        if not (self.dropout or return_weights) and len(query.shape) == 4:
            outputs = dot_product_attention(
                query, key, value, mask=visible, scale=scale
            )
            return outputs, None
        scores = einsum(self._tw_score_equation, key, query * scale)
        weights = self._softmax(scores, mask=visible)
        used = self._dropout_layer(weights, training=training)
        return einsum(self._tw_mean_equation, used, value), weights

    def _tw_build_attention(self, rank, axes):
        """Build the einsum equations for projections ``[batch, ..., heads, dim]``.

        Scores are ``[batch, heads, query axes, key axes]``; axes without attention come
        after the batch.
        """
        of_query = string.ascii_lowercase[:rank]
        of_key = list(of_query)
        for axis in axes:
            of_key[axis] = string.ascii_uppercase[axis]
        kept = [c for i, c in enumerate(of_query[:-1]) if i not in axes]
        scores = kept + [of_query[i] for i in axes] + [of_key[i] for i in axes]
        of_key, scores = "".join(of_key), "".join(scores)
        self._tw_score_equation = f"{of_key},{of_query}->{scores}"
        self._tw_mean_equation = f"{scores},{of_key}->{of_query}"
        self._tw_scores_rank, self._tw_attention_rank = len(scores), len(axes)
        last = list(range(len(scores) - len(axes), len(scores)))
        self._softmax = Softmax(axis=last, dtype=self.dtype_policy)
        self._dropout_layer = Dropout(
            self.dropout, seed=self.seed, dtype=self.dtype_policy
        )

    def get_config(self) -> dict[str, Any]:
        regularizer = plain(self._tw_projection_regularizer)
        return {**super().get_config(), "activity_regularizer": regularizer}

    def _tw_check_lengths(self, value_shape, key_shape):
        lengths = zip(value_shape[1:-1], key_shape[1:-1])
        known = [pair for pair in lengths if {*map(type, pair)} == {int}]
        if len(value_shape) != len(key_shape) or any([m != n for m, n in known]):
            raise ValueError(
                f"{self._tw_title}: value and key must have equal sizes on all axes but the "
                f"last, got shapes {tuple(value_shape)} and {tuple(key_shape)}"
            )


class MultiHeadAttention(_Heads):
    """Multi-head attention (Vaswani et al., 2017).

        head = softmax(scale * (query @ q) @ (key @ k)^T) @ (value @ v)
        outputs = all heads @ kernel + bias,   scale = 1 / sqrt(key_dim)

    The layer is called with ``query``, ``value`` and, optionally, ``key``, which
    defaults to ``value``. Optional call arguments:

    - ``query_mask``, ``value_mask``, ``key_mask``: Masks ``[batch, length]``; default
      to the masks of the tensors.
    - ``attention_mask``: Mask that broadcasts to ``[batch, queries, keys]``; False
      where a query must not attend to a key.
    - ``use_causal_mask``: If True, a query attends only to keys up to its own position.
    - ``return_attention_scores``: If True, also return the attention weights
      ``[batch, heads, queries, keys]``.

    As in Keras, a query for which all keys are masked attends to all values equally. If
    ``dropout`` is above 0 or ``return_attention_scores`` is True, its heads are 0
    instead, in training and inference alike.

    Args:
        num_heads: Number of attention heads.
        key_dim: Size of queries and keys in each head.
        value_dim: Size of values in each head; defaults to ``key_dim``.
        dropout: Fraction of the attention weights to drop in training, from 0 to 1.
        use_bias: If False, the projections have no biases.
        output_shape: Size or sizes of the outputs in place of ``dim``; defaults to the
            last axis of ``query``.
        attention_axes: Axes over which to attend; defaults to all axes between the
            batch and the features.
        sliding_window: If given, a query attends only to keys less than this many
            positions away.
        flash_attention: Not supported; None or False.
        kernel_initializer: Initializer of the kernels of all projections: an object or
            its name.
        bias_initializer: Initializer of the biases of all projections: an object or its
            name.
        kernel_regularizer: Regularizer of the kernels of all projections, or None.
        bias_regularizer: Regularizer of the biases of all projections, or None.
        activity_regularizer: Regularizer of the outputs of each projection, or None.
        kernel_constraint: Constraint on the kernels of all projections, or None.
        bias_constraint: Constraint on the biases of all projections, or None.
        use_gate: If True, multiply the heads by ``sigmoid(query @ gate)``, with a
            learned ``gate``.
        seed: Integer seed, a `keras.random.SeedGenerator`, or None to use the global
            generator.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        ``query [batch, queries, dim]``, ``value`` and ``key [batch, keys, ...]``,
        outputs ``[batch, queries, dim]``; weights
        ``query/kernel [dim, heads, key_dim]``, likewise for ``key`` and ``value``, and
        ``attention_output/kernel [heads, value_dim, dim]``, each with a ``bias``.

    Raises:
        ValueError: If a size is not positive, or ``value`` and ``key`` have different
            lengths.
        TypeError: If the layer is called without ``value``.

    References:
        Vaswani et al., "Attention is all you need" (2017).

    Example:
        >>> layer = keras.layers.MultiHeadAttention(num_heads=2, key_dim=3)
        >>> layer(tw.ones([5, 3, 2]), tw.ones([5, 4, 2])).shape
        TensorShape([5, 3, 2])
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        value_dim: int | None = None,
        dropout: float = 0.0,
        use_bias: bool = True,
        output_shape: Any = None,
        attention_axes: Axes = None,
        sliding_window: int | None = None,
        flash_attention: bool | None = None,
        kernel_initializer: InitializerLike = "glorot_uniform",
        bias_initializer: InitializerLike = "zeros",
        kernel_regularizer: RegularizerLike = None,
        bias_regularizer: RegularizerLike = None,
        activity_regularizer: RegularizerLike = None,
        kernel_constraint: ConstraintLike = None,
        bias_constraint: ConstraintLike = None,
        use_gate: bool = False,
        seed: SeedLike = None,
        **kwargs: Unpack[LayerOptions],
    ):
        super().__init__(**kwargs)
        who = "MultiHeadAttention"
        _refuse_flash(who, flash_attention)
        self.num_heads: int = whole(self, "num_heads", num_heads)
        self.key_dim: int = whole(self, "key_dim", key_dim)
        value_dim = key_dim if value_dim is None else value_dim
        self.value_dim: int = whole(self, "value_dim", value_dim)
        self._tw_given_output_shape = _tuple_of_ints(who, "output_shape", output_shape)
        self.attention_axes: Any = _tuple_of_ints(who, "attention_axes", attention_axes)
        self._tw_keep(locals(), use_bias, dropout, sliding_window, use_gate, seed)

    def build(
        self, query_shape: Shape, value_shape: Shape, key_shape: Shape | None = None
    ) -> None:
        key_shape = value_shape if key_shape is None else key_shape
        self._tw_check_lengths(value_shape, key_shape)
        sizes = {"query": self.key_dim, "key": self.key_dim, "value": self.value_dim}
        shapes = {"query": query_shape, "key": key_shape, "value": value_shape}
        for name, shape in shapes.items():
            dense = self._tw_head_projection(name, len(shape), sizes[name])
            setattr(self, f"_{name}_dense", dense)
            dense.build(shape)
            if name == "key" and self.use_gate:
                rank = len(query_shape)
                self._gate_dense = self._tw_head_projection(
                    "gate", rank, self.value_dim, "sigmoid"
                )
                self._gate_dense.build(query_shape)
        rank = len(value_shape) + 1
        axes = self.attention_axes or range(1, rank - 2)
        # as in Keras, an axis from the back is counted in the inputs, not in the heads
        axes = normalize_axis(self._tw_title, axes, rank - 1, "attention_axes")
        self._tw_build_attention(rank, axes)
        self._tw_build_outputs(query_shape)

    # Files have the parts by these names: those of `GroupedQueryAttention` are private.
    @property
    def query_dense(self) -> Any:
        """Projection of the queries, an `EinsumDense` of the built layer."""
        return self._query_dense

    @property
    def key_dense(self) -> Any:
        """Projection of the keys, an `EinsumDense` of the built layer."""
        return self._key_dense

    @property
    def value_dense(self) -> Any:
        """Projection of the values, an `EinsumDense` of the built layer."""
        return self._value_dense

    @property
    def output_dense(self) -> Any:
        """Projection of the heads to the outputs, an `EinsumDense` of the built layer."""
        return self._output_dense

    def _tw_head_projection(self, name, rank, size, activation=None):
        letters = string.ascii_lowercase[: rank + 2]
        free, bound, heads = letters[: rank - 1], letters[rank - 1], letters[rank:]
        equation = f"{free}{bound},{bound}{heads}->{free}{heads}"
        shape = [*[None] * (rank - 2), self.num_heads, size]
        return self._tw_projection(name, equation, shape, heads, activation)

    def _tw_build_outputs(self, query_shape):
        rank = len(query_shape)
        sizes = self._tw_given_output_shape or (query_shape[-1],)
        letters = string.ascii_lowercase[: rank + 1 + len(sizes)]
        free, bound, made = (
            letters[: rank - 1], letters[rank - 1 : rank + 1], letters[rank + 1 :]
        )  # fmt: skip
        self._output_dense = self._tw_projection(
            "attention_output",
            f"{free}{bound},{bound}{made}->{free}{made}",
            [*[None] * (rank - 2), *sizes],
            made,
        )
        self._output_dense.build((*query_shape[:-1], self.num_heads, self.value_dim))

    def compute_output_shape(
        self, query_shape: Shape, value_shape: Shape, key_shape: Shape | None = None
    ) -> Any:
        self._tw_check_lengths(value_shape, key_shape or value_shape)
        return (*query_shape[:-1], *(self._tw_given_output_shape or query_shape[-1:]))

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        shape = self._tw_given_output_shape
        return {**config, "output_shape": None if shape is None else list(shape)}


class GroupedQueryAttention(_Heads):
    """Grouped-query attention: several query heads share one head of keys and values.

    Each head of keys and values serves ``num_query_heads / num_key_value_heads`` query
    heads. The layer is called as `MultiHeadAttention`, and treats queries without
    visible keys in the same way.

    Args:
        head_dim: Size of each head.
        num_query_heads: Number of query heads.
        num_key_value_heads: Number of key and value heads, a divisor of
            ``num_query_heads``.
        dropout: Fraction of the attention weights to drop in training, from 0 to 1.
        use_bias: If False, the projections have no biases.
        sliding_window: If given, a query attends only to keys less than this many
            positions away.
        flash_attention: Not supported; None or False.
        kernel_initializer: Initializer of the kernels of all projections: an object or
            its name.
        bias_initializer: Initializer of the biases of all projections: an object or its
            name.
        kernel_regularizer: Regularizer of the kernels of all projections, or None.
        bias_regularizer: Regularizer of the biases of all projections, or None.
        activity_regularizer: Regularizer of the outputs of the layer and of each
            projection, or None.
        kernel_constraint: Constraint on the kernels of all projections, or None.
        bias_constraint: Constraint on the biases of all projections, or None.
        use_gate: If True, multiply the heads by ``sigmoid(query @ gate)``, with a
            learned ``gate``.
        seed: Integer seed, a `keras.random.SeedGenerator`, or None to use the global
            generator.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        ``query [batch, queries, dim]``, ``value`` and ``key [batch, keys, dim]``,
        outputs ``[batch, queries, dim]``; weights
        ``query/kernel [dim, num_query_heads, head_dim]``, ``key/kernel`` and
        ``value/kernel [dim, num_key_value_heads, head_dim]``, and
        ``attention_output/kernel [num_query_heads, head_dim, dim]``, each with a
        ``bias``.

    Raises:
        ValueError: If ``num_key_value_heads`` does not divide ``num_query_heads``.

    References:
        Ainslie et al., "GQA: Training generalized multi-query transformer models from
        multi-head checkpoints" (2023).

    Example:
        >>> layer = keras.layers.GroupedQueryAttention(
        ...     3, num_query_heads=4, num_key_value_heads=2
        ... )
        >>> layer(tw.ones([5, 3, 2]), tw.ones([5, 4, 2])).shape
        TensorShape([5, 3, 2])
    """

    def __init__(
        self,
        head_dim: int,
        num_query_heads: int,
        num_key_value_heads: int,
        dropout: float = 0.0,
        use_bias: bool = True,
        sliding_window: int | None = None,
        flash_attention: bool | None = None,
        kernel_initializer: InitializerLike = "glorot_uniform",
        bias_initializer: InitializerLike = "zeros",
        kernel_regularizer: RegularizerLike = None,
        bias_regularizer: RegularizerLike = None,
        activity_regularizer: RegularizerLike = None,
        kernel_constraint: ConstraintLike = None,
        bias_constraint: ConstraintLike = None,
        use_gate: bool = False,
        seed: SeedLike = None,
        **kwargs: Unpack[LayerOptions],
    ):
        super().__init__(**kwargs)
        who = "GroupedQueryAttention"
        _refuse_flash(who, flash_attention)
        self.head_dim: int = whole(self, "head_dim", head_dim)
        self.num_query_heads: int = whole(self, "num_query_heads", num_query_heads)
        self.num_key_value_heads: int = whole(
            self, "num_key_value_heads", num_key_value_heads
        )
        if self.num_query_heads % self.num_key_value_heads:
            raise ValueError(
                f"{who}: num_query_heads must be a multiple of num_key_value_heads, got "
                f"{num_query_heads} and {num_key_value_heads}"
            )
        self._tw_keep(locals(), use_bias, dropout, sliding_window, use_gate, seed)
        # as in Keras, here it also counts for the outputs of the layer
        self.activity_regularizer: Any = self._tw_projection_regularizer

    def build(
        self, query_shape: Shape, value_shape: Shape, key_shape: Shape | None = None
    ) -> None:
        key_shape = value_shape if key_shape is None else key_shape
        self._tw_check_lengths(value_shape, key_shape)
        heads, groups = self.num_query_heads, self.num_key_value_heads
        self._query_dense = self._tw_head_projection("query", heads)
        self._query_dense.build(query_shape)
        self._key_dense = self._tw_head_projection("key", groups)
        self._key_dense.build(key_shape)
        if self.use_gate:
            self._gate_dense = self._tw_head_projection("gate", heads, "sigmoid")
            self._gate_dense.build(query_shape)
        self._value_dense = self._tw_head_projection("value", groups)
        self._value_dense.build(value_shape)
        self._tw_build_attention(4, (1,))
        self._output_dense = self._tw_projection(
            "attention_output", "abcd,cde->abe", (None, query_shape[-1]), "e"
        )
        self._output_dense.build((*query_shape[:-1], heads, self.head_dim))

    def _tw_head_projection(self, name, heads, activation=None):
        shape = (None, heads, self.head_dim)
        return self._tw_projection(name, "abc,cde->abde", shape, "de", activation)

    def _tw_for_each_head(self, x):
        return repeat(x, self.num_query_heads // self.num_key_value_heads, axis=2)

    def compute_output_shape(
        self, query_shape: Shape, value_shape: Shape, key_shape: Shape | None = None
    ) -> Any:
        self._tw_check_lengths(value_shape, key_shape or value_shape)
        return tuple(query_shape)


GroupQueryAttention = GroupedQueryAttention  # Keras has it under this name
register("layer", "GroupQueryAttention", GroupedQueryAttention)


def _refuse_flash(who, flash_attention):
    if flash_attention:
        raise ValueError(
            f"{who}: flash_attention is not supported, got {flash_attention!r}; use None "
            "or False"
        )


def _tuple_of_ints(who, name, value):
    if value is None:
        return None
    values = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    if not all([hasattr(n, "__index__") for n in values]):
        raise ValueError(
            f"{who}: {name} must be an integer or a list of integers, got {value!r}"
        )
    return values
