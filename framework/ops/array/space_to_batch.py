"""Ops that move blocks of space into the batch, and back."""

from __future__ import annotations

import math

import numpy as np

from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.shapes.symbolic_shape import divides
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import ShapeLike, TensorLike, as_shape

from .joining import pad
from .shape import reshape, transpose


def space_to_batch(
    input: TensorLike,
    block_shape: ShapeLike,
    paddings: TensorLike,
    name: str | None = None,
) -> Tensor:
    """Pad with zeros, then move each position within a block to a separate batch entry.

    Args:
        input: Input tensor.
        block_shape: Sizes of a block along the first axes after the batch.
        paddings: Pairs ``(before, after)`` of zeros, one for each axis in
            ``block_shape``.

    Shapes:
        ``[batch, *space, ...]`` to ``[batch * block, *space / block, ...]``.

    Raises:
        ValueError: If a padded size is not a multiple of the block size.

    Example:
        >>> images = [[[[1], [2]], [[3], [4]]]]
        >>> tw.space_to_batch(images, [2, 2], [[0, 0], [0, 0]]).numpy().ravel()
        array([1, 2, 3, 4], dtype=int32)
    """
    x, block, margins = _arguments(
        "space_to_batch", input, block_shape, paddings, "paddings"
    )
    count, space = len(block), len(block) + 1
    x = pad(x, [(0, 0), *margins, *[(0, 0)] * (len(x.shape) - space)])
    batch, *sizes = x.shape
    if not all([divides(b, size) for size, b in zip(sizes, block)]):
        what = f"padded sizes must be multiples of block_shape {block}"
        raise ShapeError("space_to_batch", what, padded=x)
    rest, outer = sizes[count:], [size // b for size, b in zip(sizes, block)]
    pairs = [n for pair in zip(outer, block) for n in pair]
    split = reshape(x, [batch, *pairs, *rest])
    inner = range(2, 2 * count + 1, 2)
    order = [
        *inner,
        0,
        *range(1, 2 * count, 2),
        *range(2 * count + 1, len(split.shape)),
    ]
    return reshape(transpose(split, order), [batch * math.prod(block), *outer, *rest])


space_to_batch_nd = space_to_batch


def batch_to_space(
    input: TensorLike,
    block_shape: ShapeLike,
    crops: TensorLike,
    name: str | None = None,
) -> Tensor:
    """Move batch entries back into blocks, then crop: the inverse of `space_to_batch`.

    Args:
        input: Input tensor.
        block_shape: Sizes of a block along the first axes after the batch.
        crops: Pairs ``(before, after)`` of entries to crop, one for each axis in
            ``block_shape``.

    Shapes:
        ``[batch * block, *space, ...]`` to ``[batch, *space * block - crops, ...]``.

    Raises:
        ValueError: If the batch is not a multiple of the block, or crops are too large.

    Example:
        >>> batches = [[[[1]]], [[[2]]], [[[3]]], [[[4]]]]
        >>> tw.batch_to_space(batches, [2, 2], [[0, 0], [0, 0]])[0, :, :, 0].numpy()
        array([[1, 2],
               [3, 4]], dtype=int32)
    """
    x, block, margins = _arguments("batch_to_space", input, block_shape, crops, "crops")
    count, whole = len(block), math.prod(block)
    batch, *sizes = x.shape
    if not divides(whole, batch):
        what = f"the batch must be a multiple of {whole}, the size of block_shape"
        raise ShapeError("batch_to_space", what, input=x)
    space, rest = sizes[:count], sizes[count:]
    full = [n * b for n, b in zip(space, block)]
    if any([before + behind > n for (before, behind), n in zip(margins, full)]):
        what = f"crops must fit into sizes {full}, got {margins}"
        raise ShapeError("batch_to_space", what, input=x)
    split = reshape(x, [*block, batch // whole, *space, *rest])
    pairs = [n for i in range(count) for n in (count + 1 + i, i)]
    order = [count, *pairs, *range(2 * count + 1, len(split.shape))]
    joined = reshape(transpose(split, order), [batch // whole, *full, *rest])
    kept = [slice(a, n - b) for (a, b), n in zip(margins, full)]
    return joined[(slice(None), *kept)]


def required_space_to_batch_paddings(
    input_shape: ShapeLike,
    block_shape: ShapeLike,
    base_paddings: TensorLike | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute paddings that make sizes multiples of a block, and the crops that undo them.

    Args:
        input_shape: Sizes of the axes to pad.
        block_shape: Sizes of a block.
        base_paddings: Pairs of padding to apply in any case, which the crops keep; None
            means zeros.

    Shapes:
        ``input_shape`` and ``block_shape`` ``[n]``, both results ``[n, 2]``, int32.

    Example:
        >>> paddings, crops = tw.required_space_to_batch_paddings([5], [2])
        >>> paddings.numpy(), crops.numpy()
        (array([[0, 1]], dtype=int32), array([[0, 1]], dtype=int32))
    """
    sizes, block = as_shape(input_shape), as_shape(block_shape)
    who = "required_space_to_batch_paddings"
    if len(sizes) != len(block):
        raise InvalidArgumentError(
            f"{who}: input_shape and block_shape must have the same length, got "
            f"{sizes} and {block}"
        )
    base = [(0, 0)] * len(sizes)
    if base_paddings is not None:
        base = _pairs(who, "base_paddings", base_paddings, len(sizes))
    more = [-(n + a + b) % each for n, (a, b), each in zip(sizes, base, block)]
    paddings = [(a, b + extra) for (a, b), extra in zip(base, more)]
    pairs = [paddings, [(0, extra) for extra in more]]
    return tuple(
        [convert_to_tensor(np.array(p, np.int32).reshape(-1, 2)) for p in pairs]
    )


def _arguments(who, input, block_shape, margins, name):
    x, block = convert_to_tensor(input), list(as_shape(block_shape))
    if not block or min(block) < 1 or len(x.shape) < 1 + len(block):
        what = (
            f"block_shape must be positive sizes for axes after the batch, got {block}"
        )
        raise ShapeError(who, what, input=x)
    return x, block, _pairs(who, name, margins, len(block))


def _pairs(who, name, value, count):
    pairs = value.numpy() if isinstance(value, Tensor) else np.asarray(value)
    if pairs.shape != (count, 2) or pairs.dtype.kind not in "iu" or (pairs < 0).any():
        raise InvalidArgumentError(
            f"{who}: {name} must be {count} pairs of integers, 0 or more, got {value}"
        )
    return [tuple(map(int, pair)) for pair in pairs]
