"""Rules of composite functions for ragged tensors: tile, zeros_like, reduce_std, dropout."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapewright.core import dtypes
from tapewright.core.errors import InvalidArgumentError, cast_advice
from tapewright.core.tensor import convert_to_tensor
from tapewright.core.typing import as_shape

from ..array.conversion import cast
from ..array.creation import ones_like, zeros_like
from ..array.gather import embedding_lookup
from ..array.joining import concat, tile
from ..array.shape import rank, shape, size
from ..math.elementwise import square
from ..math.reduction import norm_sqrt, reduce_mean, reduce_std, reduce_variance
from ..nn.dropout import dropout
from .elementwise import FUNCTION_RULES
from .ragged_tensor import RaggedTensor


def _of_flat_values(function):
    """Return the rule of an element-wise function, or of one that replaces the entries."""

    def rule(x, *args, **kwargs):
        return x.with_flat_values(function(x.flat_values, *args, **kwargs))

    return rule


def _tiled(input: Any, multiples: Any, name: Any = None) -> Any:
    multiples = as_shape(multiples)
    if len(multiples) != input.shape.rank or any([m < 0 for m in multiples]):
        raise InvalidArgumentError(
            f"tile: multiples must have {input.shape.rank} entries, one for each axis, of "
            f"0 or more; got {multiples}"
        )
    rows, columns, *inner = multiples
    if any([m != 1 for m in inner]):
        input = input.with_values(tile(input.values, [1, *inner]))
    if columns != 1:
        input = concat([input] * columns, 1) if columns else input[:, :0]
    if rows != 1:
        input = concat([input] * rows, 0) if rows else input[:0]
    return input


def _embedded(params: Any, ids: Any, max_norm: Any = None, name: Any = None) -> Any:
    if isinstance(params, RaggedTensor):
        raise TypeError("embedding_lookup: params must be a tensor, got a RaggedTensor")
    return ids.with_flat_values(embedding_lookup(params, ids.flat_values, max_norm))


def _variance(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: Any = None
) -> Any:
    x = input_tensor
    if not x.dtype.is_differentiable:
        raise TypeError(
            "reduce_variance: input_tensor must be floating or complex; "
            + cast_advice("input_tensor", "float32")
        )
    deviation = x - reduce_mean(x, axis, axis is not None)
    return reduce_mean(square(abs(deviation)), axis, keepdims)


def _std(*args, **kwargs):
    return norm_sqrt(_variance(*args, **kwargs))


def _dropped(
    x: Any, rate: Any, noise_shape: Any = None, seed: Any = None, name: Any = None
) -> Any:
    if noise_shape is not None:
        raise InvalidArgumentError(
            f"dropout: noise_shape of a RaggedTensor must be None, got {noise_shape}"
        )
    return x.with_flat_values(dropout(x.flat_values, rate, seed=seed))


def _size(input: Any, out_type: Any = dtypes.int32, name: Any = None) -> Any:
    return size(input.flat_values, out_type)


def _rank(input: Any, name: Any = None) -> Any:
    return cast(convert_to_tensor(np.int32(input.shape.rank)), dtypes.int32)


def _shape(input: Any, out_type: Any = dtypes.int32, name: Any = None) -> Any:
    raise TypeError(
        "shape: the rows of a RaggedTensor may differ in length; use its nrows() and "
        "row_lengths(), or bounding_shape(), the shape of to_tensor()"
    )


FUNCTION_RULES.update({
    tile.__wrapped__: _tiled,
    zeros_like.__wrapped__: _of_flat_values(zeros_like),
    ones_like.__wrapped__: _of_flat_values(ones_like),
    embedding_lookup.__wrapped__: _embedded,
    reduce_variance.__wrapped__: _variance,
    reduce_std.__wrapped__: _std,
    dropout.__wrapped__: _dropped,
    size.__wrapped__: _size,
    rank.__wrapped__: _rank,
    shape.__wrapped__: _shape,
})  # fmt: skip
