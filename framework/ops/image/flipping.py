"""Flip, rotate and transpose images."""

from __future__ import annotations

from tapewright.core.tensor import Tensor
from tapewright.core.typing import IntLike, TensorLike, as_int

from ..array.joining import reverse
from ..array.shape import transpose as transpose_axes
from .pixels import checked_images

__all__ = [
    "flip_left_right",
    "flip_up_down",
    "rot90",
    "transpose",
]


def flip_left_right(image: TensorLike) -> Tensor:
    """Flip images horizontally: reverse the order of their columns.

    Args:
        image: Image or batch of images, ``[height, width, channels]`` or
            ``[batch, height, width, channels]``.

    Shapes:
        ``[height, width, channels]`` or ``[batch, height, width, channels]``.

    Example:
        >>> tw.image.flip_left_right([[[1], [2]], [[3], [4]]]).numpy().tolist()
        [[[2], [1]], [[4], [3]]]
    """
    return reverse(checked_images("flip_left_right", image), -2)


def flip_up_down(image: TensorLike) -> Tensor:
    """Flip images vertically: reverse the order of their rows.

    Args:
        image: Image or batch of images, ``[height, width, channels]`` or
            ``[batch, height, width, channels]``.

    Shapes:
        ``[height, width, channels]`` or ``[batch, height, width, channels]``.

    Example:
        >>> tw.image.flip_up_down([[[1], [2]], [[3], [4]]]).numpy().tolist()
        [[[3], [4]], [[1], [2]]]
    """
    return reverse(checked_images("flip_up_down", image), -3)


def transpose(image: TensorLike, name: str | None = None) -> Tensor:
    """Transpose images: exchange height and width.

    Args:
        image: Image or batch of images, ``[height, width, channels]`` or
            ``[batch, height, width, channels]``.

    Shapes:
        ``[height, width, channels]`` or ``[batch, height, width, channels]``.

    Example:
        >>> tw.image.transpose([[[1], [2]]]).numpy().tolist()
        [[[1]], [[2]]]
    """
    x = checked_images("transpose", image)
    rank = len(x.shape)
    return transpose_axes(x, (*range(rank - 3), rank - 2, rank - 3, rank - 1))


def rot90(image: TensorLike, k: IntLike = 1, name: str | None = None) -> Tensor:
    """Rotate images counter-clockwise by ``k`` times 90 degrees.

    Args:
        image: Image or batch of images, ``[height, width, channels]`` or
            ``[batch, height, width, channels]``.
        k: Number of rotations by 90 degrees; an odd number exchanges height and width.

    Shapes:
        ``[height, width, channels]`` or ``[batch, height, width, channels]``.

    Example:
        >>> tw.image.rot90([[[1], [2]]]).numpy().tolist()
        [[[2]], [[1]]]
    """
    x = checked_images("rot90", image)
    k = as_int(k) % 4
    if k == 2:
        return reverse(x, (-3, -2))
    if k == 1:
        return reverse(transpose(x), -3)
    return transpose(reverse(x, -3)) if k == 3 else x
