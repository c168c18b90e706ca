"""Strings put together, entry by entry or along axes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tapewright.core import dtypes
from tapewright.core.primitive import primitive
from tapewright.core.rules import known_rank, normalize_axis
from tapewright.core.tensor import Tensor, TensorSpec, convert_to_tensor
from tapewright.core.text import make_text, to_bytes
from tapewright.core.typing import Axes, TensorLike

from .entries import string_op

__all__ = ["join", "reduce_join"]


@string_op(name="string_join", type_name="StringJoin", broadcasts=True)
def _join(xp, *inputs: TensorLike, separator: str = ""):
    rows = xp.broadcast_arrays(*inputs)
    join = to_bytes(separator).join
    entries = zip(*[row.ravel().tolist() for row in rows])
    return make_text([join(row) for row in entries], rows[0].shape)


def join(
    inputs: Sequence[TensorLike], separator: str = "", name: str | None = None
) -> Tensor:
    """The strings of several tensors put together, entry by entry.

    Shapes: those of ``inputs`` broadcast. Ragged tensors must have the same rows. The
    result of no inputs is "".

    >>> join([["a", "b"], "c"], separator="-").numpy().tolist()
    [b'a-c', b'b-c']
    """
    if not len(inputs):
        return convert_to_tensor("")
    inputs = [
        x if hasattr(x, "dtype") else convert_to_tensor(x, dtype_hint=dtypes.string)
        for x in inputs
    ]
    return _join(inputs, separator=separator)


@primitive(name="reduce_join", type_name="ReduceJoin", kinds="O", no_gradient=True)
def reduce_join(
    xp,
    inputs: TensorLike,
    axis: Axes = None,
    keepdims: bool = False,
    separator: str = "",
):
    """The strings along ``axis`` put together; along all axes if it is None.

    Args: ``axis``: an axis, or several: those of the first are put together first;
    ``keepdims``: keep the reduced axes, of size 1; ``separator``: stands between two.

    >>> reduce_join([["a", "b"], ["c", "d"]], axis=0).numpy().tolist()
    [b'ac', b'bd']
    >>> reduce_join([["a", "b"], ["c", "d"]], separator=" ").numpy()
    b'a b c d'
    """
    axes = _axes(axis, inputs.ndim)
    kept = [1 if i in axes else n for i, n in enumerate(inputs.shape)]
    join = to_bytes(separator).join
    for a in axes:
        rows = xp.moveaxis(inputs, a, -1)
        *lead, size = rows.shape
        lines = rows.reshape(math.prod(lead), size).tolist()
        inputs = make_text([join(line) for line in lines], tuple(lead))
        inputs = xp.expand_dims(inputs, a)
    if keepdims:
        return inputs.reshape(kept)
    return inputs.reshape([n for i, n in enumerate(inputs.shape) if i not in axes])


def _axes(axis, rank):
    """The axes in the order in which they are reduced."""
    if axis is None:
        return tuple(reversed(range(rank)))
    return normalize_axis("reduce_join", axis, rank)


@reduce_join.infer
def _(inputs, axis, keepdims, separator):
    axes = _axes(axis, known_rank("reduce_join", "inputs", inputs))
    shape = [1 if i in axes else n for i, n in enumerate(inputs.shape)]
    if not keepdims:
        shape = [n for i, n in enumerate(shape) if i not in axes]
    return TensorSpec(shape, inputs.dtype)


@reduce_join.batch
def _(mapped, inputs, *, axis, keepdims, separator):
    rank = inputs.array.ndim - 1
    axes = tuple([a + 1 for a in _axes(axis, rank)])
    return reduce_join(inputs, axes, keepdims, separator)
