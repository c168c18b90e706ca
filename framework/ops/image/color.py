"""Colour spaces: red, green and blue as grey, HSV, YIQ and YUV, and back."""

from __future__ import annotations

from tapewright.core.errors import ShapeError
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import TensorLike

from ..array.joining import concat
from ..array.shape import expand_dims
from ..linalg.contraction import tensordot
from .pixels import checked_colors, convert_image_dtype, numbers_like, to_floating

__all__ = [
    "grayscale_to_rgb",
    "rgb_to_grayscale",
    "rgb_to_yiq",
    "rgb_to_yuv",
    "yiq_to_rgb",
    "yuv_to_rgb",
]


def rgb_to_grayscale(images: TensorLike, name: str | None = None) -> Tensor:
    """The luminance ``0.2989 R + 0.587 G + 0.114 B``; integers are rounded down.

    Shapes: ``[..., 3]`` to ``[..., 1]``.

    >>> rgb_to_grayscale([[[1.0, 0.0, 0.0]]]).numpy()
    array([[[0.2989]]], dtype=float32)
    """
    x = checked_colors("rgb_to_grayscale", images)
    gray = expand_dims(
        tensordot(to_floating(x), numbers_like([0.2989, 0.587, 0.114], x), 1), -1
    )
    return convert_image_dtype(gray, x.dtype)


def grayscale_to_rgb(images: TensorLike, name: str | None = None) -> Tensor:
    """The one channel of an image three times.

    Shapes: ``[..., 1]`` to ``[..., 3]``.
    """
    x = convert_to_tensor(images)
    if not x.shape or x.shape[-1] != 1:
        raise ShapeError("grayscale_to_rgb", "images must have one channel", images=x)
    return concat([x, x, x], axis=-1)


# Rows: what R, G, B (or Y, I, Q; Y, U, V) contribute to the three channels of the other.
_RGB_TO_YIQ = [
    [0.299, 0.59590059, 0.2115],
    [0.587, -0.27455667, -0.52273617],
    [0.114, -0.32134392, 0.31119955],
]
_YIQ_TO_RGB = [
    [1.0, 1.0, 1.0],
    [0.95598634, -0.27201283, -1.10674021],
    [0.6208248, -0.64720424, 1.70423049],
]
_RGB_TO_YUV = [
    [0.299, -0.14714119, 0.61497538],
    [0.587, -0.28886916, -0.51496512],
    [0.114, 0.43601035, -0.10001026],
]
_YUV_TO_RGB = [
    [1.0, 1.0, 1.0],
    [0.0, -0.394642334, 2.03206185],
    [1.13988303, -0.58062185, 0.0],
]


def _mixed(who, images, matrix):
    x = checked_colors(who, images)
    return tensordot(x, numbers_like(matrix, x), 1)


def rgb_to_yiq(images: TensorLike) -> Tensor:
    """Red, green, blue to luminance and the two colour signals of NTSC.

    Shapes: ``[..., 3]``, floating, input and result.
    """
    return _mixed("rgb_to_yiq", images, _RGB_TO_YIQ)


def yiq_to_rgb(images: TensorLike) -> Tensor:
    """The inverse of `rgb_to_yiq`.

    Shapes: ``[..., 3]``, floating, input and result.
    """
    return _mixed("yiq_to_rgb", images, _YIQ_TO_RGB)


def rgb_to_yuv(images: TensorLike) -> Tensor:
    """Red, green, blue to luminance and the two colour signals of PAL.

    Shapes: ``[..., 3]``, floating, input and result.
    """
    return _mixed("rgb_to_yuv", images, _RGB_TO_YUV)


def yuv_to_rgb(images: TensorLike) -> Tensor:
    """The inverse of `rgb_to_yuv`.

    Shapes: ``[..., 3]``, floating, input and result.
    """
    return _mixed("yuv_to_rgb", images, _YUV_TO_RGB)
