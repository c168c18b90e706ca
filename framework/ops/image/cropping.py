"""Crop and pad images, without scaling."""

from __future__ import annotations

from collections.abc import Sequence

from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.tensor import Tensor, is_tensor
from tapewright.core.typing import IntLike, ShapeLike, TensorLike, as_int

from ..array.indexing import is_number, slice
from ..array.joining import pad
from ..array.shape import reshape, transpose
from ..convolution.windows import (
    spatial_numbers,
    spatial_padding,
    unfold,
    window_positions,
)
from .pixels import checked_images

__all__ = [
    "central_crop",
    "crop_to_bounding_box",
    "extract_patches",
    "pad_to_bounding_box",
    "resize_with_crop_or_pad",
]


def central_crop(image: TensorLike, central_fraction: float) -> Tensor:
    """Crop the central part of images: a fraction of their height and width.

    Args:
        image: Image or batch of images, ``[height, width, channels]`` or
            ``[batch, height, width, channels]``.
        central_fraction: Fraction of the height and width to keep, above 0 and at most
            1.

    Shapes:
        ``[height, width, channels]`` or ``[batch, height, width, channels]``.

    Raises:
        ValueError: If ``central_fraction`` is not above 0 and at most 1.

    Example:
        >>> tw.image.central_crop(tw.zeros([8, 6, 3]), 0.5).shape
        TensorShape([4, 4, 3])
    """
    if not 0 < central_fraction <= 1:
        raise InvalidArgumentError(
            f"central_crop: central_fraction must be above 0 and at most 1, "
            f"got {central_fraction}"
        )
    x = checked_images("central_crop", image)
    height, width = tuple(x.shape)[-3:-1]
    top = int((height - height * central_fraction) / 2)
    left = int((width - width * central_fraction) / 2)
    return crop_to_bounding_box(x, top, left, height - 2 * top, width - 2 * left)


def crop_to_bounding_box(
    image: TensorLike,
    offset_height: IntLike,
    offset_width: IntLike,
    target_height: IntLike,
    target_width: IntLike,
) -> Tensor:
    """Crop images to a box of ``target_height`` rows and ``target_width`` columns.

    Args:
        image: Image or batch of images, ``[height, width, channels]`` or
            ``[batch, height, width, channels]``.
        offset_height: Row of the upper left corner; may be a tensor in traced
            functions.
        offset_width: Column of the upper left corner; may be a tensor in traced
            functions.
        target_height: Number of rows of the result.
        target_width: Number of columns of the result.

    Shapes:
        ``[height, width, channels]`` or ``[batch, height, width, channels]``.

    Raises:
        ValueError: If the box extends beyond the image.

    Example:
        >>> tw.image.crop_to_bounding_box([[[1], [2]], [[3], [4]]], 0, 1, 2, 1).numpy().ravel()
        array([2, 4], dtype=int32)
    """
    x = checked_images("crop_to_bounding_box", image)
    target_height, target_width = as_int(target_height), as_int(target_width)
    *batch, height, width, channels = x.shape
    _check_box(
        "crop_to_bounding_box", x, offset_height, offset_width,
        height - offset_height - target_height, width - offset_width - target_width,
    )  # fmt: skip
    begin = [0] * len(batch) + [offset_height, offset_width, 0]
    return slice(x, begin, [*batch, target_height, target_width, channels])


def pad_to_bounding_box(
    image: TensorLike,
    offset_height: IntLike,
    offset_width: IntLike,
    target_height: IntLike,
    target_width: IntLike,
) -> Tensor:
    """Pad images with zeros to ``target_height`` rows and ``target_width`` columns.

    The upper left corner of the image is at ``(offset_height, offset_width)`` of the
    result.

    Args:
        image: Image or batch of images, ``[height, width, channels]`` or
            ``[batch, height, width, channels]``.
        offset_height: Number of zero rows above; may be a tensor in traced functions.
        offset_width: Number of zero columns on the left; may be a tensor in traced
            functions.
        target_height: Number of rows of the result.
        target_width: Number of columns of the result.

    Shapes:
        ``[height, width, channels]`` or ``[batch, height, width, channels]``.

    Raises:
        ValueError: If the image does not fit.

    Example:
        >>> tw.image.pad_to_bounding_box([[[1], [2]]], 0, 1, 1, 4).numpy().ravel()
        array([0, 1, 2, 0], dtype=int32)
    """
    x = checked_images("pad_to_bounding_box", image)
    target_height, target_width = as_int(target_height), as_int(target_width)
    height, width = tuple(x.shape)[-3:-1]
    below = target_height - offset_height - height
    right = target_width - offset_width - width
    _check_box("pad_to_bounding_box", x, offset_height, offset_width, below, right)
    batch = [(0, 0)] * (len(x.shape) - 3)
    if _is_known(offset_height) and _is_known(offset_width):
        margins = [(offset_height, below), (offset_width, right), (0, 0)]
        return pad(x, batch + margins)
    more, wider = target_height - height, target_width - width
    x = pad(x, [*batch, (more, more), (wider, wider), (0, 0)])
    corner = more - offset_height, wider - offset_width
    return crop_to_bounding_box(x, *corner, target_height, target_width)


def _is_known(n):
    return not is_tensor(n) or is_number(n)


def _check_box(who, x, top, left, below, right):
    margins = {"above": top, "left": left, "below": below, "right": right}
    margins = {name: n for name, n in margins.items() if _is_known(n)}
    wrong = [f"{n} rows or columns {name}" for name, n in margins.items() if n < 0]
    if wrong:
        raise InvalidArgumentError(
            f"{who}: offset_height, offset_width, target_height and target_width must fit "
            f"the image of {x.shape[-3]} x {x.shape[-2]}, but leave {', '.join(wrong)}"
        )


def resize_with_crop_or_pad(
    image: TensorLike, target_height: IntLike, target_width: IntLike
) -> Tensor:
    """Crop or zero-pad images centrally to a target size, without scaling.

    Args:
        image: Image or batch of images, ``[height, width, channels]`` or
            ``[batch, height, width, channels]``.
        target_height: Number of rows of the result.
        target_width: Number of columns of the result.

    Shapes:
        ``[..., height, width, channels]`` to
        ``[..., target_height, target_width, channels]``, with at most one batch axis.

    Example:
        >>> tw.image.resize_with_crop_or_pad([[[1], [2], [3], [4]]], 1, 2).numpy().ravel()
        array([2, 3], dtype=int32)
    """
    x = checked_images("resize_with_crop_or_pad", image)
    target_height, target_width = as_int(target_height), as_int(target_width)
    height, width = tuple(x.shape)[-3:-1]
    more = target_height - height, target_width - width
    x = crop_to_bounding_box(
        x, max(-more[0] // 2, 0), max(-more[1] // 2, 0),
        min(target_height, height), min(target_width, width),
    )  # fmt: skip
    return pad_to_bounding_box(
        x, max(more[0] // 2, 0), max(more[1] // 2, 0), target_height, target_width
    )


def extract_patches(
    images: TensorLike,
    sizes: ShapeLike,
    strides: ShapeLike,
    rates: ShapeLike,
    padding: str | Sequence[Sequence[int]],
    name: str | None = None,
) -> Tensor:
    """Extract patches (windows) of images, with their pixels as channels.

    Args:
        images: Images ``[batch, height, width, channels]``.
        sizes: Size of a window: an int, or ``[1, height, width, 1]``.
        strides: Distance between windows: an int, or ``[1, height, width, 1]``.
        rates: Distance between the pixels of a window: an int, or
            ``[1, height, width, 1]``.
        padding: "VALID", "SAME" (zeros around the image), or a list of pairs
            ``(before, after)`` for all four axes.

    Shapes:
        ``[batch, height, width, channels]`` to
        ``[batch, rows, columns, window_height * window_width * channels]``.

    Raises:
        ValueError: If ``strides`` or ``padding`` is invalid.
        ShapeError: If a window is larger than the images.

    Example:
        >>> tw.image.extract_patches([[[[1], [2], [3]]]], (1, 1, 2, 1), 1, 1, "VALID").numpy()
        array([[[[1, 2],
                 [2, 3]]]], dtype=int32)
    """
    who = "extract_patches"
    x = checked_images(who, images, "images", ranks=(4,))
    sizes = spatial_numbers(who, "sizes", sizes, 2, False)
    strides = spatial_numbers(who, "strides", strides, 2, False)
    rates = spatial_numbers(who, "rates", rates, 2, False)
    padding = spatial_padding(who, padding, 2, False)
    each = (padding, padding) if isinstance(padding, str) else padding
    windows = list(zip(sizes, strides, each, rates))
    if 0 in [window_positions(n, *w)[-1] for n, w in zip(x.shape[1:3], windows)]:
        raise ShapeError(who, f"sizes {sizes} must not exceed the images", images=x)
    x = unfold(unfold(x, -3, *windows[0]), -2, *windows[1])
    batch, rows, _, columns, _, channels = x.shape
    x = transpose(x, (0, 1, 3, 2, 4, 5))
    return reshape(x, (batch, rows, columns, sizes[0] * sizes[1] * channels))
