"""Attention: a mean of all values for each query, weighted by how well keys match."""

from __future__ import annotations

import math

from tapewright.core import dtypes
from tapewright.core.errors import DTypeError, InvalidArgumentError, ShapeError
from tapewright.core.hardware import devices
from tapewright.core.rules import checked_broadcast
from tapewright.core.tensor import (
    Tensor,
    convert_to_tensor,
    module_of,
    new_tensor,
)
from tapewright.core.typing import TensorLike

from ..array.conversion import cast
from ..array.gather import repeat
from ..array.shape import transpose
from ..linalg.matmul import matmul
from ..math.comparison import logical_and, where
from .activation import softmax, tanh

__all__ = ["dot_product_attention"]


def dot_product_attention(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    bias: TensorLike | None = None,
    mask: TensorLike | None = None,
    scale: float | None = None,
    is_causal: bool = False,
    flash_attention: bool | None = None,
    attn_logits_soft_cap: float | None = None,
) -> Tensor:
    """Scaled dot-product attention: ``softmax(scale * query @ key^T + bias) @ value``.

    It is computed for each head. A query that may attend nowhere gets the plain mean of
    the values, as in Keras.

    Args:
        query: Queries.
        key: Keys; they may have fewer heads than ``query``, each of which then serves
            several heads of ``query``.
        value: Values, with as many heads as ``key``.
        bias: Tensor to add to the logits, or None.
        mask: Boolean mask, False where a query must not attend; None allows all.
        scale: Factor of the logits; None means ``1 / sqrt(dim)``.
        is_causal: If True, a query attends only to keys up to its position.
        flash_attention: None or False; there is no such kernel.
        attn_logits_soft_cap: Number c that bounds the logits by
            ``c * tanh(logits / c)``, or None.

    Shapes:
        ``query`` ``[batch, queries, heads, dim]``, ``key`` and ``value``
        ``[batch, keys, heads, dim]``; ``bias`` and ``mask`` broadcast to
        ``[batch, heads, queries, keys]``; result
        ``[batch, queries, heads, dim of value]``.

    Raises:
        ShapeError: If the heads of ``key`` do not divide the heads of ``query``.
        ValueError: If ``flash_attention`` is True.

    References:
        Vaswani et al., "Attention is all you need" (2017).

    Example:
        >>> one = [[[[1.0]], [[1.0]]]]
        >>> tw.nn.dot_product_attention(one, one, [[[[2.0]], [[4.0]]]]).numpy().ravel()
        array([3., 3.], dtype=float32)
    """
    query, key, value = _inputs(query, key, value, flash_attention)
    heads, dim = query.shape[2:]
    scale = 1.0 / math.sqrt(dim) if scale is None else scale
    half = dtypes.is_half(query.dtype)
    queries, keys, values = (
        transpose(_for_heads(x, heads), (0, 2, 1, 3)) for x in (query, key, value)
    )
    logits = matmul(queries * scale, keys, transpose_b=True)
    logits = cast(logits, dtypes.float32) if half else logits
    if attn_logits_soft_cap is not None:
        cap = float(attn_logits_soft_cap)
        logits = tanh(logits * (1.0 / cap)) * cap
    if bias is not None:
        logits = logits + cast(convert_to_tensor(bias), logits.dtype)
    visible = _visible(mask, is_causal, logits)
    if visible is not None:
        lowest = -0.7 * float(dtypes.finfo(logits.dtype.dtype).max)
        logits = where(visible, logits, lowest)
    weights = cast(softmax(logits), value.dtype)
    return transpose(matmul(weights, values), (0, 2, 1, 3))


def _inputs(query, key, value, flash_attention):
    who = "dot_product_attention"
    if flash_attention:
        raise InvalidArgumentError(
            f"{who}: flash_attention must be None or False, got {flash_attention}"
        )
    query = convert_to_tensor(query)
    key = convert_to_tensor(key, dtype_hint=query.dtype)
    value = convert_to_tensor(value, dtype_hint=query.dtype)
    given = {"query": query, "key": key, "value": value}
    if not query.dtype == key.dtype == value.dtype or not query.dtype.is_floating:
        raise DTypeError(who, "all must have the same floating dtype", **given)
    (q, k, v) = shapes = [x.shape for x in (query, key, value)]
    if any(len(s) != 4 for s in shapes):
        raise ShapeError(who, "all must be [batch, length, heads, dim]", **given)
    if not q[0] == k[0] == v[0] or k[1:3] != v[1:3] or q[3] != k[3]:
        raise ShapeError(who, "the batch sizes, the dims of query and key, and the lengths "
                         "and heads of key and value must agree", **given)  # fmt: skip
    if q[2] % max(k[2], 1):
        raise ShapeError(who, f"the heads of key, {k[2]}, must divide those of query, "
                         f"{q[2]}", **given)  # fmt: skip
    return query, key, value


def _for_heads(x, heads):
    own = x.shape[2]
    return x if own == heads else repeat(x, heads // own, axis=2)


def _visible(mask, is_causal, logits):
    """Return the keys that a query may attend to: the mask, the past, or both; None is all."""
    if mask is not None:
        with devices.use_module(module_of(logits)):
            mask = cast(convert_to_tensor(mask), dtypes.bool)
        checked_broadcast(
            "dot_product_attention", mask.shape, logits.shape, mask=mask, logits=logits
        )
    if not is_causal:
        return mask
    xp = module_of(logits)
    past = new_tensor(xp.tri(*logits.shape[-2:], dtype=bool))
    return past if mask is None else logical_and(past, mask)
