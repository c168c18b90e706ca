"""Color spaces: conversions between RGB and grayscale, HSV, YIQ and YUV.

Where two colors are equal, the gradient passes to one of them, as in TensorFlow.
"""

from __future__ import annotations

from tapewright.core.errors import DTypeError, ShapeError
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import TensorLike

from ..array.indexing import getitem
from ..array.joining import concat, stack
from ..array.shape import expand_dims
from ..linalg.contraction import tensordot
from ..math.comparison import equal, less, less_equal, where
from ..math.elementwise import abs, clip_by_value, divide_no_nan, maximum, minimum
from .pixels import checked_colors, convert_image_dtype, numbers_like, to_floating

__all__ = [
    "grayscale_to_rgb",
    "hsv_to_rgb",
    "rgb_to_grayscale",
    "rgb_to_hsv",
    "rgb_to_yiq",
    "rgb_to_yuv",
    "yiq_to_rgb",
    "yuv_to_rgb",
]


def rgb_to_grayscale(images: TensorLike, name: str | None = None) -> Tensor:
    """Convert RGB images to grayscale: ``0.2989 R + 0.587 G + 0.114 B``.

    Results for integer images are rounded down.

    Args:
        images: RGB images ``[..., 3]``.

    Shapes:
        ``[..., 3]`` to ``[..., 1]``.

    Example:
        >>> tw.image.rgb_to_grayscale([[[1.0, 0.0, 0.0]]]).numpy()
        array([[[0.2989]]], dtype=float32)
    """
    x = checked_colors("rgb_to_grayscale", images)
    gray = expand_dims(
        tensordot(to_floating(x), numbers_like([0.2989, 0.587, 0.114], x), 1), -1
    )
    return convert_image_dtype(gray, x.dtype)


def grayscale_to_rgb(images: TensorLike, name: str | None = None) -> Tensor:
    """Convert grayscale images to RGB: repeat their channel three times.

    Args:
        images: Grayscale images ``[..., 1]``.

    Shapes:
        ``[..., 1]`` to ``[..., 3]``.

    Example:
        >>> tw.image.grayscale_to_rgb([[[0.5]]]).numpy()
        array([[[0.5, 0.5, 0.5]]], dtype=float32)
    """
    x = convert_to_tensor(images)
    if not x.shape or x.shape[-1] != 1:
        raise ShapeError("grayscale_to_rgb", "images must have one channel", images=x)
    return concat([x, x, x], axis=-1)


def rgb_to_hsv(images: TensorLike, name: str | None = None) -> Tensor:
    """Convert RGB images to HSV: hue, saturation and value, from 0 to 1.

        value = max(R, G, B),  chroma = value - min(R, G, B),
        saturation = chroma / value,  hue = the position on the color circle

    Red has the hue 0, green 1/3, blue 2/3, gray 0. The saturation is 0 where the value
    is not positive.

    Args:
        images: RGB images ``[..., 3]``, floating, with values from 0 to 1.

    Shapes:
        ``[..., 3]``, floating, input and result.

    Raises:
        TypeError: If the images are integers.
        ShapeError: If the images do not have three channels.

    Example:
        >>> tw.image.rgb_to_hsv([[[0.0, 0.5, 0.0]]]).numpy()
        array([[[0.33333334, 1.        , 0.5       ]]], dtype=float32)
    """
    x = _floating_colors("rgb_to_hsv", images)
    hue, chroma, value = hue_chroma_value(x)
    saturation = where(less_equal(value, 0.0), 0.0, divide_no_nan(chroma, value))
    return stack([hue / 6.0, saturation, value], -1)


def hsv_to_rgb(images: TensorLike, name: str | None = None) -> Tensor:
    """Convert HSV images to RGB, the inverse of `rgb_to_hsv`.

    Args:
        images: Hue, saturation and value from 0 to 1, ``[..., 3]``, floating.

    Shapes:
        ``[..., 3]``, floating, input and result.

    Raises:
        TypeError: If the images are integers.
        ShapeError: If the images do not have three channels.

    Example:
        >>> tw.image.hsv_to_rgb([[[0.5, 0.5, 1.0]]]).numpy()
        array([[[0.5, 1. , 1. ]]], dtype=float32)
    """
    x = _floating_colors("hsv_to_rgb", images)
    hue, saturation, value = (getitem(x, (..., i)) for i in range(3))
    return of_hue(hue * 6.0, saturation * value, value)


def _floating_colors(who, images):
    x = checked_colors(who, images)
    if not x.dtype.is_floating:
        raise DTypeError(who, "images must be floating", images=x)
    return x


def hue_chroma_value(x):
    """Return hue (0 to 6), chroma (largest minus smallest color) and value (largest color)."""
    red, green, blue = (getitem(x, (..., i)) for i in range(3))
    value = maximum(maximum(red, green), blue)
    chroma = value - minimum(blue, minimum(green, red))
    of_green = divide_no_nan(blue - red, chroma) + 2.0
    of_blue = divide_no_nan(red - green, chroma) + 4.0
    hue = where(equal(value, green), of_green, of_blue)
    hue = where(equal(value, red), divide_no_nan(green - blue, chroma), hue)
    hue = where(less(hue, 0.0), hue + 6.0, hue)
    return where(equal(chroma, 0.0), 0.0, hue), chroma, value


def of_hue(hue, chroma, value):
    """Return the colors of the results of `hue_chroma_value`."""
    hue = expand_dims(hue, -1)
    far = abs(hue - numbers_like([3.0, 2.0, 4.0], hue))
    share = far * numbers_like([1.0, -1.0, -1.0], hue)
    share = clip_by_value(share + numbers_like([-1.0, 2.0, 2.0], hue), 0.0, 1.0)
    return expand_dims(value, -1) - expand_dims(chroma, -1) * (1.0 - share)


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
    """Convert RGB images to YIQ: luminance and the two color signals of NTSC.

    Args:
        images: RGB images ``[..., 3]``, floating.

    Shapes:
        ``[..., 3]``, floating, input and result.
    """
    return _mixed("rgb_to_yiq", images, _RGB_TO_YIQ)


def yiq_to_rgb(images: TensorLike) -> Tensor:
    """Convert YIQ images to RGB, the inverse of `rgb_to_yiq`.

    Args:
        images: YIQ images ``[..., 3]``, floating.

    Shapes:
        ``[..., 3]``, floating, input and result.
    """
    return _mixed("yiq_to_rgb", images, _YIQ_TO_RGB)


def rgb_to_yuv(images: TensorLike) -> Tensor:
    """Convert RGB images to YUV: luminance and the two color signals of PAL.

    Args:
        images: RGB images ``[..., 3]``, floating.

    Shapes:
        ``[..., 3]``, floating, input and result.

    Example:
        >>> tw.image.rgb_to_yuv([[[1.0, 1.0, 1.0]]]).numpy().round(3) + 0.0
        array([[[1., 0., 0.]]], dtype=float32)
    """
    return _mixed("rgb_to_yuv", images, _RGB_TO_YUV)


def yuv_to_rgb(images: TensorLike) -> Tensor:
    """Convert YUV images to RGB, the inverse of `rgb_to_yuv`.

    Args:
        images: YUV images ``[..., 3]``, floating.

    Shapes:
        ``[..., 3]``, floating, input and result.
    """
    return _mixed("yuv_to_rgb", images, _YUV_TO_RGB)
