"""Images of another size: scaled, as a whole or with zeros around."""

from __future__ import annotations

import math

from tapewright.core import dtypes
from tapewright.core.devices import check_fits
from tapewright.core.dispatch import composite
from tapewright.core.errors import InvalidArgumentError
from tapewright.core.rules import check_at_least, check_choice
from tapewright.core.tensor import Tensor
from tapewright.core.typing import IntLike, ShapeLike, TensorLike, as_shape

from ..array.conversion import cast
from .cropping import pad_to_bounding_box
from .pixels import checked_images
from .resampling import METHODS, resample

__all__ = ["ResizeMethod", "resize", "resize_with_pad"]


class ResizeMethod:
    """The names of the methods of `resize`."""

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
    """``images`` scaled to ``size = (height, width)``; pixel centers are at half integers.

    Args: ``method``: "bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5",
    "gaussian" or "mitchellcubic"; ``preserve_aspect_ratio``: the largest size with the
    ratio of the images that fits into ``size``; ``antialias``: when an axis shrinks,
    each pixel gathers from as many more (not for "nearest" and "area"). "bicubic" is
    exact, where TensorFlow reads its weights from a table of 1024.

    Shapes: ``[height, width, channels]`` or ``[batch, height, width, channels]``.

    Returns: float32, with "nearest" the dtype of the images.

    Raises: ``ShapeError`` for other than 3 or 4 axes, ``ValueError`` for a wrong
    ``size`` or ``method``.

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
    """`resize`, of floating images in their own dtype."""
    x = checked_images("resize", images, "images")
    check_choice("resize", "method", method, METHODS)
    wanted = as_shape(size)
    if len(wanted) != 2 or min(wanted) < 1:
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
    """The image scaled as a whole to fit, in the middle of zeros.

    ``method`` and ``antialias`` are those of `resize`, and the errors.

    Shapes: ``[..., height, width, channels]`` to ``[..., target_height, target_width,
    channels]``, with one batch axis or none.

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
