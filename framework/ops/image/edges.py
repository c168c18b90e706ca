"""Differences of neighbouring pixels: gradients, edges and total variation."""

from __future__ import annotations

from tapewright.core.errors import DTypeError
from tapewright.core.tensor import Tensor
from tapewright.core.typing import TensorLike

from ..array.indexing import getitem
from ..array.joining import concat, pad
from ..array.shape import reshape
from ..convolution.conv import depthwise_conv2d
from ..math.elementwise import abs
from ..math.reduction import reduce_sum
from .pixels import checked_images, numbers_like

__all__ = [
    "image_gradients",
    "sobel_edges",
    "total_variation",
]


def image_gradients(image: TensorLike) -> tuple[Tensor, Tensor]:
    """Differences between each pixel and the next row, and the next column.

    The differences of the last row and of the last column are zero.

    Args:
        image: Images ``[batch, height, width, channels]``.

    Shapes:
        ``[batch, height, width, channels]``, input and results.

    Returns:
        ``(dy, dx)``.

    Example:
        >>> dy, dx = tw.image.image_gradients([[[[1.0], [2.0]], [[4.0], [8.0]]]])
        >>> dy.numpy().ravel(), dx.numpy().ravel()
        (array([3., 6., 0., 0.], dtype=float32), array([1., 0., 4., 0.], dtype=float32))
    """
    x = checked_images("image_gradients", image, ranks=(4,))
    dy, dx = _differences(x)
    rows, columns = [(0, 0), (0, 1), (0, 0), (0, 0)], [(0, 0), (0, 0), (0, 1), (0, 0)]
    return pad(dy, rows), pad(dx, columns)


def _differences(x):
    rest, last = slice(1, None), slice(None, -1)
    whole = slice(None)
    below = getitem(x, (..., rest, whole, whole)) - getitem(
        x, (..., last, whole, whole)
    )
    beside = getitem(x, (..., rest, whole)) - getitem(x, (..., last, whole))
    return below, beside


def total_variation(images: TensorLike, name: str | None = None) -> Tensor:
    """Total variation: the sum of ``|difference|`` over all pairs of neighbouring pixels.

    Args:
        images: Image ``[height, width, channels]`` or images
            ``[batch, height, width, channels]``.

    Shapes:
        ``[height, width, channels]`` to a scalar, or
        ``[batch, height, width, channels]`` to ``[batch]``.

    Raises:
        TypeError: If the images are unsigned integers, because their differences wrap.

    Example:
        >>> tw.image.total_variation([[[1.0], [3.0]], [[2.0], [3.0]]]).numpy()
        np.float32(4.0)
    """
    x = checked_images("total_variation", images, "images")
    if x.dtype.is_unsigned:
        raise DTypeError(
            "total_variation",
            "images must be signed; convert them with tw.cast",
            images=x,
        )
    below, beside = _differences(x)
    axes = (-3, -2, -1)
    return reduce_sum(abs(below), axes) + reduce_sum(abs(beside), axes)


def sobel_edges(image: TensorLike) -> Tensor:
    """Sobel edge detection: derivatives ``dy`` and ``dx`` of each channel.

    The image is mirrored at its edges.

    Args:
        image: Images ``[batch, height, width, channels]`` with 2 or more rows and
            columns.

    Shapes:
        ``[batch, height, width, channels]`` to ``[batch, height, width, channels, 2]``.

    Example:
        >>> image = [[[[0.0], [1.0], [2.0]]] * 3]
        >>> tw.image.sobel_edges(image).numpy()[0, 1, 1]
        array([[0., 8.]], dtype=float32)
    """
    x = checked_images("sobel_edges", image, ranks=(4,))
    across = [[-1, -2, -1], [0, 0, 0], [1, 2, 1]]
    down = [list(row) for row in zip(*across)]
    both = [[[a, d] for a, d in zip(*rows)] for rows in zip(across, down)]
    filters = concat(
        [numbers_like([[[p] for p in r] for r in both], x)] * x.shape[-1], axis=2
    )
    framed = pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)], mode="REFLECT")
    edges = depthwise_conv2d(framed, filters, [1, 1, 1, 1], "VALID")
    return reshape(edges, (*x.shape, 2))
