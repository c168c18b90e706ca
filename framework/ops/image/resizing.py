"""Resize images: by scaling, or by scaling and padding with zeros."""

from __future__ import annotations

import math

from tapewright.core import dtypes
from tapewright.core.dispatch import composite
from tapewright.core.errors import InvalidArgumentError
from tapewright.core.hardware.devices import check_fits
from tapewright.core.rules import check_at_least, check_choice
from tapewright.core.tensor import Tensor
from tapewright.core.typing import IntLike, ShapeLike, TensorLike, as_shape

from ..array.conversion import cast
from .cropping import pad_to_bounding_box
from .pixels import checked_images
from .resampling import METHODS, resample

__all__ = ["ResizeMethod", "resize", "resize_with_pad"]


class ResizeMethod:
    """Names of the methods of `resize`."""

    AREA = "area"
    BICUBIC = "bicubic"
    BILINEAR = "bilinear"
    GAUSSIAN = "gaussian"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    MITCHELLCUBIC = "mitchellcubic"
    NEAREST_NEIGHBOR = "nearest"


@composite
def resize(
    images: TensorLike,
    size: ShapeLike,
    method: str = ResizeMethod.BILINEAR,
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
    name: str | None = None,
) -> Tensor:
    """Resize (scale) images to ``size = (height, width)``.

    Pixel centers are at half-integers. "bicubic" is exact, whereas TensorFlow reads its
    weights from a table of 1024 entries.

    Args:
        images: Image or batch of images, ``[height, width, channels]`` or
            ``[batch, height, width, channels]``.
        size: Height and width of the result.
        method: "bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5",
            "gaussian" or "mitchellcubic".
        preserve_aspect_ratio: If True, the result has the largest size with the aspect
            ratio of the images that fits into ``size``.
        antialias: If True and an axis shrinks, each output pixel averages over
            correspondingly more input pixels; "nearest" and "area" ignore it.

    Shapes:
        ``[height, width, channels]`` or ``[batch, height, width, channels]``.

    Returns:
        Images in float32, or in the dtype of ``images`` with "nearest".

    Raises:
        ShapeError: If ``images`` does not have 3 or 4 axes.
        ValueError: If ``size`` or ``method`` is invalid.

    Example:
        >>> tw.image.resize([[[0.0], [4.0]]], (1, 4)).numpy().ravel()
        array([0., 1., 3., 4.], dtype=float32)
    """
    x = checked_images("resize", images, "images")
    if method != "nearest" and dtypes.is_half(x.dtype):
        x = cast(x, dtypes.float32)
    x = resize_keeping_dtype(x, size, method, preserve_aspect_ratio, antialias)
    return x if method == "nearest" else cast(x, dtypes.float32)


def resize_keeping_dtype(
    images, size, method="bilinear", preserve_aspect_ratio=False, antialias=False
):
    """`resize` that keeps the dtype of floating images."""
    x = checked_images("resize", images, "images")
    check_choice("resize", "method", method, METHODS)
    wanted = as_shape(size)
    if len(wanted) != 2 or wanted[0] < 1 or wanted[1] < 1:
        raise InvalidArgumentError(
            f"resize: size must be two positive numbers, height and width, got {size}"
        )
    height, width = tuple(x.shape)[-3:-1]
    if preserve_aspect_ratio:
        scale = min(wanted[0] / height, wanted[1] / width)
        wanted = (round(scale * height), round(scale * width))
    if method != "nearest" and not x.dtype.is_floating:
        x = cast(x, dtypes.float32)
    check_fits("resize", (*x.shape[:-3], *wanted, x.shape[-1]), x.dtype.dtype)
    antialias = bool(antialias) and method not in ("nearest", "area")
    for axis, old, new in ((-3, height, wanted[0]), (-2, width, wanted[1])):
        if new != old or method in ("gaussian", "mitchellcubic"):  # which blur
            x = resample(x, axis, new, method, antialias)
    return x


def resize_with_pad(
    image: TensorLike,
    target_height: IntLike,
    target_width: IntLike,
    method: str = ResizeMethod.BILINEAR,
    antialias: bool = False,
) -> Tensor:
    """Resize images with their aspect ratio to fit a target size, and pad with zeros.

    The scaled image is in the middle.

    Args:
        image: Image or batch of images, ``[height, width, channels]`` or
            ``[batch, height, width, channels]``.
        target_height: Number of rows of the result.
        target_width: Number of columns of the result.
        method: "bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5",
            "gaussian" or "mitchellcubic".
        antialias: If True and an axis shrinks, each output pixel averages over
            correspondingly more input pixels; "nearest" and "area" ignore it.

    Shapes:
        ``[..., height, width, channels]`` to
        ``[..., target_height, target_width, channels]``, with at most one batch axis.

    Raises:
        ShapeError: If ``image`` does not have 3 or 4 axes.
        ValueError: If a target size or ``method`` is invalid.

    Example:
        >>> tw.image.resize_with_pad([[[1.0], [1.0]]], 2, 2).numpy().shape
        (2, 2, 1)
    """
    x = checked_images("resize_with_pad", image)
    check_at_least(
        "resize_with_pad", 1, target_height=target_height, target_width=target_width
    )
    height, width = tuple(x.shape)[-3:-1]
    ratio = max(height / target_height, width / target_width)
    inner = height / ratio, width / ratio
    top = max(0, math.floor((target_height - inner[0]) / 2))
    left = max(0, math.floor((target_width - inner[1]) / 2))
    x = resize(x, tuple(map(math.floor, inner)), method, antialias=antialias)
    return pad_to_bounding_box(x, top, left, target_height, target_width)
