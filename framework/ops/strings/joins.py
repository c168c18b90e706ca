"""Join strings: element-wise, along axes, or in a template."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tapewright.core import dtypes
from tapewright.core.errors import InvalidArgumentError
from tapewright.core.hardware.devices import to_numpy
from tapewright.core.primitive import primitive
from tapewright.core.rules import known_rank, normalize_axis
from tapewright.core.tensor import Tensor, TensorSpec, convert_to_tensor
from tapewright.core.text import make_text, to_bytes
from tapewright.core.typing import Axes, TensorLike

from ..array.joining import stack
from .array_text import array_text
from .entries import string_op

__all__ = ["format", "join", "reduce_join"]


@string_op(name="string_join", type_name="StringJoin", broadcasts=True)
def _join(xp, *inputs: TensorLike, separator: str = ""):
    rows = xp.broadcast_arrays(*inputs)
    join = to_bytes(separator).join
    entries = zip(*[row.ravel().tolist() for row in rows])
    return make_text([join(row) for row in entries], rows[0].shape)


def join(
    inputs: Sequence[TensorLike], separator: str = "", name: str | None = None
) -> Tensor:
    """Join the strings of several tensors element-wise.

    Args:
        inputs: List of string tensors that broadcast together, or ragged tensors with
            the same rows.
        separator: String between two joined strings.

    Shapes:
        The shapes of ``inputs`` broadcast. The result of no inputs is "".

    Example:
        >>> tw.strings.join([["a", "b"], "c"], separator="-").numpy().tolist()
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
    """Join the strings along ``axis``, or all strings if it is None.

    Args:
        inputs: Strings, of any shape.
        axis: One axis or several; strings along the first one are joined first.
        keepdims: If True, keep reduced axes with size 1.
        separator: String between two joined strings.

    Example:
        >>> tw.strings.reduce_join([["a", "b"], ["c", "d"]], axis=0).numpy().tolist()
        [b'ac', b'bd']
        >>> tw.strings.reduce_join([["a", "b"], ["c", "d"]], separator=" ").numpy()
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
    """Return the axes in the order in which they are reduced."""
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


@primitive(
    name="string_format",
    type_name="StringFormat",
    kinds="biufcO",
    same_dtype=(),
    no_gradient=True,
    new_memory=True,
)
def _format(xp, *inputs: TensorLike, parts: Sequence[str], summarize: int):
    texts = [array_text(to_numpy(x), summarize) for x in inputs]
    rest = [text + part for text, part in zip(texts, parts[1:])]
    return make_text([to_bytes("".join([parts[0], *rest]))], ())


@_format.infer
def _(*inputs, parts, summarize):
    return TensorSpec((), dtypes.string)


@_format.batch
def _(mapped, *inputs, parts, summarize):
    size = next(x.shape[0] for x, is_mapped in zip(inputs, mapped) if is_mapped)
    rows = [
        [x[i] if is_mapped else x for x, is_mapped in zip(inputs, mapped)]
        for i in range(size)
    ]
    return stack([_format(row, parts=parts, summarize=summarize) for row in rows])


def format(
    template: str,
    inputs: Any,
    placeholder: str = "{}",
    summarize: int | None = 3,
    name: str | None = None,
) -> Tensor:
    """Format a string template with the values of tensors.

    Args:
        template: Text with placeholders.
        inputs: A tensor, or a list or tuple of as many as there are placeholders; they
            are formatted as by `print`, strings in quotes.
        placeholder: Text that is replaced by a tensor.
        summarize: Number of entries shown at each end of an axis, -1 for all.

    Raises:
        ValueError: If the number of tensors differs from the number of placeholders.

    Example:
        >>> counts, name = tw.convert_to_tensor([1, 2]), tw.convert_to_tensor("a")
        >>> tw.strings.format("{} of {}", [counts, name]).numpy()
        b'[1 2] of "a"'
    """
    if not isinstance(template, str) or not isinstance(placeholder, str):
        raise TypeError(
            "format: template and placeholder must be str, got "
            f"{type(template).__name__} and {type(placeholder).__name__}"
        )
    if not placeholder:
        raise InvalidArgumentError("format: placeholder must not be empty")
    inputs = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    parts = template.split(placeholder)
    if len(parts) != len(inputs) + 1:
        raise InvalidArgumentError(
            f"format: template has {len(parts) - 1} placeholders {placeholder!r}, got "
            f"{len(inputs)} inputs"
        )
    summarize = 3 if summarize is None else int(summarize)
    inputs = [convert_to_tensor(x) for x in inputs]
    if not inputs:
        return convert_to_tensor(template)
    return _format(inputs, parts=tuple(parts), summarize=summarize)
