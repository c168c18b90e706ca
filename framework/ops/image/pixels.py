"""Shapes and dtypes of images, and their conversion.

Floating images have values from 0 to 1, integer images from 0 to the maximum of their
dtype.
"""

from __future__ import annotations

from tapewright.core import dtypes
from tapewright.core.errors import ShapeError
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import DTypeLike, TensorLike

from ..array.conversion import cast, saturate_cast

__all__ = ["convert_image_dtype"]


def checked_images(who, image, name="image", ranks=(3, 4)):
    """Convert to a tensor that must be one image or a batch of images."""
    x = convert_to_tensor(image)
    if len(x.shape) not in ranks:
        wanted = "[height, width, channels]" if 3 in ranks else ""
        wanted += " or " if ranks == (3, 4) else ""
        wanted += "[batch, height, width, channels]" if 4 in ranks else ""
        raise ShapeError(who, f"{name} must be {wanted}", **{name: x})
    return x


def checked_colors(who, images):
    x = convert_to_tensor(images)
    if not x.shape or x.shape[-1] != 3:
        raise ShapeError(who, "images must have three channels", images=x)
    return x


def to_floating(x):
    return x if x.dtype.is_floating else convert_image_dtype(x, dtypes.float32)


def numbers_like(numbers, x):
    dtype = x.dtype if x.dtype.is_floating else dtypes.float32
    return convert_to_tensor(numbers, dtype)


def convert_image_dtype(
    image: TensorLike, dtype: DTypeLike, saturate: bool = False, name: str | None = None
) -> Tensor:
    """Convert images to another dtype and scale their values.

    Floating images have values from 0 to 1, integer images up to the maximum of their
    dtype.

    Args:
        image: Image or images of any shape.
        dtype: Dtype of the result.
        saturate: If True, values beyond the range of an integer ``dtype`` are clipped
            to it; otherwise they wrap.

    Example:
        >>> tw.image.convert_image_dtype([0.0, 0.5, 1.0], "uint8").numpy()
        array([  0, 127, 255], dtype=uint8)
    """
    x, dtype = convert_to_tensor(image), dtypes.as_dtype(dtype)
    convert = saturate_cast if saturate else cast
    if x.dtype == dtype:
        return x
    if x.dtype.is_integer and dtype.is_integer:
        top, new = x.dtype.max, dtype.max
        if top > new:
            return convert(x // ((top + 1) // (new + 1)), dtype)
        return convert(x, dtype) * ((new + 1) // (top + 1))
    if x.dtype.is_integer:
        return cast(x, dtype) * (1.0 / x.dtype.max)
    return convert(x * (dtype.max + 0.5), dtype) if dtype.is_integer else cast(x, dtype)
