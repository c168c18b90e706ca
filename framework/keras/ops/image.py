"""`keras.ops.image`: images resized, cut, warped, in other colours.

Images are ``[batch, height, width, channels]`` or one without the batch; with
``data_format`` "channels_first" the channels stand before the height.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tapewright.core.dtypes import float32
from tapewright.core.rules import check_choice
from tapewright.core.tensor import Tensor, TensorSpec, convert_to_tensor
from tapewright.core.typing import ShapeLike, TensorLike
from tapewright.layers.base.spatial import checked_format
from tapewright.ops.array.conversion import cast, saturate_cast
from tapewright.ops.array.creation import eye
from tapewright.ops.array.shape import expand_dims, reshape, squeeze
from tapewright.ops.image import blurring, color, edges, interpolation, quality, warping
from tapewright.ops.image.interpolation import interpolate
from tapewright.ops.image.resizing import resize_keeping_dtype
from tapewright.ops.math.elementwise import (
    round,
)

from ..random import normal
from .arrays import moveaxis, pad
from .convolution import conv
from .creation import arange
from .linalg import tensordot
from .operation import OperationFamily
from .promotion import keep_dtype, to_floating

if TYPE_CHECKING:
    from tapewright.layers.base.layer_types import SeedLike

__all__ = [
    "affine_transform",
    "crop_images",
    "elastic_transform",
    "extract_patches",
    "extract_patches_3d",
    "gaussian_blur",
    "hsv_to_rgb",
    "map_coordinates",
    "pad_images",
    "perspective_transform",
    "resize",
    "rgb_to_grayscale",
    "rgb_to_hsv",
    "scale_and_translate",
    "sobel_edges",
    "ssim",
]

operation = OperationFamily(__name__, "image", "image.")


def _channels_last(who, images, data_format):
    """The images as a tensor with the channels last, and True if they were first."""
    images = convert_to_tensor(images)
    if images.ndim not in (3, 4):
        raise ValueError(
            f"{who}: images must have 3 or 4 axes, got shape {tuple(images.shape)}"
        )
    first = checked_format(who, data_format) == "channels_first"
    return (moveaxis(images, -3, -1) if first else images), first


def _restore_format(images, first):
    return moveaxis(images, -1, -3) if first else images


# ---------------------------------------------------------------------- another size


@operation
def resize(
    images: TensorLike,
    size: Sequence[int],
    interpolation: str = "bilinear",
    antialias: bool = False,
    crop_to_aspect_ratio: bool = False,
    pad_to_aspect_ratio: bool = False,
    fill_mode: str = "constant",
    fill_value: TensorLike = 0.0,
    data_format: str | None = None,
) -> Tensor:
    """``images`` with ``size = (height, width)``.

    Args: ``interpolation``: "bilinear", "nearest", "bicubic", "lanczos3" or "lanczos5";
    ``antialias``: where an axis shrinks, each pixel gathers from as many more;
    ``crop_to_aspect_ratio``: only the largest box in the middle with the new ratio;
    ``pad_to_aspect_ratio``: the whole, amid ``fill_value``. Integers are rounded.

    Example:
        >>> keras.ops.image.resize([[[0.0], [4.0]]], (1, 4)).numpy().ravel()
        array([0., 1., 3., 4.], dtype=float32)
    """
    if fill_mode != "constant":
        raise ValueError(f"resize: fill_mode must be 'constant', got {fill_mode!r}")
    if crop_to_aspect_ratio and pad_to_aspect_ratio:
        raise ValueError(
            "resize: only one of crop_to_aspect_ratio and pad_to_aspect_ratio can be True"
        )
    x, first = _channels_last("resize", images, data_format)
    height, width = x.shape[-3:-1]
    dtype = x.dtype
    if crop_to_aspect_ratio:
        inner = max(min(height, width * size[0] // size[1]), 1)
        across = max(min(width, height * size[1] // size[0]), 1)
        top, left = (height - inner) // 2, (width - across) // 2
        x = x[..., top : top + inner, left : left + across, :]
    elif pad_to_aspect_ratio:
        down = (max(height, width * size[0] // size[1]) - height) // 2
        across = (max(width, height * size[1] // size[0]) - width) // 2
        widths = [(0, 0)] * (x.ndim - 3) + [(down, down), (across, across), (0, 0)]
        x = pad(x, widths, constant_values=fill_value)
    x = resize_keeping_dtype(x, tuple(size), interpolation, antialias=antialias)
    return _restore_format(_restore_dtype(x, dtype), first)


def _restore_dtype(x, dtype):
    if dtype.is_floating or x.dtype == dtype:
        return cast(x, dtype)
    return saturate_cast(round(x), dtype)


@operation
def crop_images(
    images: TensorLike,
    top_cropping: int | None = None,
    left_cropping: int | None = None,
    bottom_cropping: int | None = None,
    right_cropping: int | None = None,
    target_height: int | None = None,
    target_width: int | None = None,
    data_format: str | None = None,
) -> Tensor:
    """``images`` without rows and columns at the edges.

    Args: on each axis two of three numbers: the cropping at both edges, and the target
    size.

    Shapes: ``[batch, height, width, channels]`` or without the batch.

    Raises: ``ValueError`` for more or fewer numbers, or if they do not fit the image.
    """
    x, first = _channels_last("crop_images", images, data_format)
    rows = _crop_slice(
        "height", x.shape[-3], top_cropping, bottom_cropping, target_height
    )
    columns = _crop_slice(
        "width", x.shape[-2], left_cropping, right_cropping, target_width
    )
    return _restore_format(x[..., rows, columns, :], first)


def _crop_slice(name, size, before, after, target):
    if [before, after, target].count(None) != 1:
        raise ValueError(
            f"crop_images: of the two croppings and target_{name} two must be given, got "
            f"{before}, {after} and {target}"
        )
    start = size - target - after if before is None else before
    stop = size - after if target is None else start + target
    if start < 0 or stop > size or stop < start:
        raise ValueError(f"crop_images: {start} to {stop} does not fit {name} {size}")
    return slice(start, stop)


@operation
def pad_images(
    images: TensorLike,
    top_padding: int | None = None,
    left_padding: int | None = None,
    bottom_padding: int | None = None,
    right_padding: int | None = None,
    target_height: int | None = None,
    target_width: int | None = None,
    data_format: str | None = None,
) -> Tensor:
    """``images`` with rows and columns of 0 around.

    Args: on each axis two of three numbers: the padding at both edges, and the target
    size.

    Shapes: ``[batch, height, width, channels]`` or without the batch.

    Raises: ``ValueError`` for more or fewer numbers, or if they do not fit the image.
    """
    x, first = _channels_last("pad_images", images, data_format)
    rows = _pad_widths(
        "height", x.shape[-3], top_padding, bottom_padding, target_height
    )
    columns = _pad_widths(
        "width", x.shape[-2], left_padding, right_padding, target_width
    )
    return _restore_format(
        pad(x, [(0, 0)] * (x.ndim - 3) + [rows, columns, (0, 0)]), first
    )


def _pad_widths(name, size, before, after, target):
    if [before, after, target].count(None) != 1:
        raise ValueError(
            f"pad_images: of the two paddings and target_{name} two must be given, got "
            f"{before}, {after} and {target}"
        )
    before = target - size - after if before is None else before
    after = target - size - before if after is None else after
    if before < 0 or after < 0:
        raise ValueError(
            f"pad_images: {name} {size} cannot grow by {before} and {after}"
        )
    return before, after


# --------------------------------------------------------------------------- patches


@operation
@keep_dtype
def extract_patches(
    images: TensorLike,
    size: ShapeLike,
    strides: ShapeLike | None = None,
    dilation_rate: ShapeLike = 1,
    padding: str = "valid",
    data_format: str | None = None,
) -> Tensor:
    """The windows of ``images``, each as the channels of one pixel.

    Args: ``size``: an int or (height, width); three numbers are those of
    `extract_patches_3d`; ``strides``: by default the ``size``; ``padding``: "valid" or
    "same".

    Shapes: ``[batch, height, width, channels]`` to ``[batch, rows, columns,
    window_height * window_width * channels]``.

    Raises: ``ValueError`` for another ``padding``.
    """
    rank = 2 if isinstance(size, int) else len(size)
    return _patches(images, size, strides, dilation_rate, padding, data_format, rank)


@operation(class_name=None)
@keep_dtype
def extract_patches_3d(
    volumes: TensorLike,
    size: ShapeLike,
    strides: ShapeLike | None = None,
    dilation_rate: ShapeLike = 1,
    padding: str = "valid",
    data_format: str | None = None,
) -> Tensor:
    """The windows of ``volumes``, each as the channels of one voxel.

    Arguments are those of `extract_patches`.

    Shapes: ``[batch, depth, height, width, channels]`` to ``[batch, *windows,
    window_size * channels]``.
    """
    return _patches(volumes, size, strides, dilation_rate, padding, data_format, 3)


def _patches(images, size, strides, dilation_rate, padding, data_format, rank):
    window = (size,) * rank if isinstance(size, int) else tuple(size)
    images = to_floating(images)
    is_single = images.ndim == rank + 1
    x = expand_dims(images, 0) if is_single else images
    data_format = checked_format("extract_patches", data_format)
    channels = x.shape[1 if data_format == "channels_first" else -1]
    count = math.prod(window) * channels
    kernel = reshape(eye(count, dtype=x.dtype), (*window, channels, count))
    result = conv(x, kernel, strides or window, padding, data_format, dilation_rate)
    return squeeze(result, 0) if is_single else result


# --------------------------------------------------------------------- filters, quality


@operation
def gaussian_blur(
    images: TensorLike,
    kernel_size: Sequence[int] = (3, 3),
    sigma: Sequence[float] = (1.0, 1.0),
    data_format: str | None = None,
) -> Tensor:
    """The mean of the pixels around each one, weighted by a Gaussian of width ``sigma``.

    Shapes: ``[batch, height, width, channels]`` or without the batch.
    """
    x, first = _channels_last("gaussian_blur", images, data_format)
    is_single = x.ndim == 3
    x = expand_dims(x, 0) if is_single else x
    out = blurring.gaussian_blur(x, kernel_size, sigma)
    return _restore_format(squeeze(out, 0) if is_single else out, first)


@operation
def sobel_edges(images: TensorLike, data_format: str | None = None) -> Tensor:
    """Sobel's derivatives of each channel, down and across.

    Shapes: ``[batch, height, width, channels]`` to ``[batch, height, width, channels,
    2]``.
    """
    x, first = _channels_last("sobel_edges", images, data_format)
    found = edges.sobel_edges(x)
    return moveaxis(found, -2, -4) if first else found


@operation(call="image1 image2", class_name="SSIM")
def ssim(
    image1: TensorLike,
    image2: TensorLike,
    max_val: float = 1.0,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    data_format: str | None = None,
) -> Tensor:
    """The structural similarity of two images, 1 for equal ones; see `tw.image.ssim`.

    Shapes: ``[batch, height, width, channels]``, both, to ``[batch]``.

    Raises: ``ShapeError`` for images smaller than ``filter_size``.
    """
    (first, _), (second, _) = (
        _channels_last("ssim", x, data_format) for x in (image1, image2)
    )
    return quality.ssim(first, second, max_val, filter_size, filter_sigma, k1, k2)


# --------------------------------------------------------------------------- warping


@operation(call="images transform")
def affine_transform(
    images: TensorLike,
    transform: TensorLike,
    interpolation: str = "bilinear",
    fill_mode: str = "constant",
    fill_value: TensorLike = 0,
    data_format: str | None = None,
) -> Tensor:
    """Each output pixel takes the value of the image at the place that ``transform`` gives.

        out[y, x] = images[(b0 x + b1 y + b2) / k, (a0 x + a1 y + a2) / k],
        k = c0 x + c1 y + 1,   transform = (a0, a1, a2, b0, b1, b2, c0, c1)

    Args: ``interpolation``: "bilinear" or "nearest"; ``fill_mode``: values outside of
    the image, "constant" (``fill_value``), "nearest" (the edge), "reflect" (``d c b a |
    a b c d``) or "wrap". Integers are rounded.

    Shapes: ``images`` ``[batch, height, width, channels]`` or without the batch,
    ``transform`` ``[batch, 8]``, or ``[8]`` for all.

    Raises: ``ValueError`` for another ``interpolation`` or ``fill_mode``.
    """
    images = convert_to_tensor(images)
    data_format = checked_format("affine_transform", data_format)
    result = warping.affine_transform(
        images, transform, interpolation, fill_mode, fill_value, data_format
    )
    return _restore_dtype(result, images.dtype)


@operation(call="images start_points end_points")
def perspective_transform(
    images: TensorLike,
    start_points: TensorLike,
    end_points: TensorLike,
    interpolation: str = "bilinear",
    fill_value: TensorLike = 0,
    data_format: str | None = None,
) -> Tensor:
    """``images`` projected so that the four ``start_points`` move to the ``end_points``.

    Shapes: ``images`` ``[batch, height, width, channels]`` or without the batch; the
    points ``[batch, 4, 2]`` or ``[4, 2]``, each (x, y).

    Raises: ``ValueError`` for other shapes of the points.
    """
    start, end = cast(start_points, float32), cast(end_points, float32)
    if tuple(start.shape[-2:]) != (4, 2) or start.ndim != end.ndim:
        raise ValueError(
            "perspective_transform: start_points and end_points must be [4, 2] or "
            f"[batch, 4, 2], got {tuple(start.shape)} and {tuple(end.shape)}"
        )
    maps = warping.homography(start, end)
    return affine_transform(
        images, maps, interpolation, "constant", fill_value, data_format
    )


@operation(call="inputs coordinates")
def map_coordinates(
    inputs: TensorLike,
    coordinates: TensorLike,
    order: int,
    fill_mode: str = "constant",
    fill_value: TensorLike = 0,
) -> Tensor:
    """The values of ``inputs`` at ``coordinates``, one for each of its axes.

    Args: ``order``: 0 takes the nearest entry, 1 interpolates linearly; ``fill_mode``:
    what lies outside, "constant" (``fill_value``), "nearest" (the edge), "wrap"
    (``a b c d | a b c d``), "mirror" (``c b | a b c d``) or "reflect"
    (``b a | a b c d``).

    Shapes: ``inputs`` of n axes, ``coordinates`` ``[n, ...]``, result ``[...]``, in the
    dtype of ``inputs``: integers are rounded.

    Raises: ``ValueError`` for another ``order`` or ``fill_mode``; ``ShapeError`` unless
    ``coordinates`` has an entry for each axis, and two axes or more.

    Example:
        >>> keras.ops.image.map_coordinates([[0.0, 1.0], [2.0, 3.0]], [[0.5, 1.0], [0.5, 0.0]], 1).numpy()
        array([1.5, 2. ], dtype=float32)
    """
    return interpolation.map_coordinates(
        inputs, coordinates, order, fill_mode, fill_value
    )


@operation(call="images output_shape scale translation")
def scale_and_translate(
    images: TensorLike,
    output_shape: ShapeLike,
    scale: TensorLike,
    translation: TensorLike,
    spatial_dims: Sequence[int],
    method: str,
    antialias: bool = True,
) -> Tensor:
    """``images`` with the point ``x`` of an axis moved to ``x * scale + translation``.

    The centers of the pixels are at halves; outside of ``images`` there are zeros.

    Args: ``scale`` and ``translation``: a number for each of the axes ``spatial_dims``;
    ``method``: "linear", "bilinear", "trilinear" or "triangle"; "cubic", "bicubic" or
    "tricubic", of Keys; "lanczos3" or "lanczos5"; ``antialias``: where an axis shrinks,
    each pixel gathers from as many more.

    Shapes: ``output_shape`` differs from that of ``images`` along ``spatial_dims`` only.
    Integers are rounded, within the extremes of ``images``.

    Raises: ``ValueError`` for another ``method``; ``ShapeError`` for other shapes.

    Example:
        >>> keras.ops.image.scale_and_translate([1.0, 2.0], (4,), [2.0], [0.0], (0,), "linear").numpy()
        array([1.  , 1.25, 1.75, 2.  ], dtype=float32)
    """
    return interpolation.scale_and_translate(
        images, output_shape, scale, translation, spatial_dims, method, antialias
    )


@operation(specs=lambda images, **_: TensorSpec(images.shape, images.dtype))
def elastic_transform(
    images: TensorLike,
    alpha: float = 20.0,
    sigma: float = 5.0,
    interpolation: str = "bilinear",
    fill_mode: str = "reflect",
    fill_value: float = 0.0,
    seed: SeedLike = None,
    data_format: str | None = None,
) -> Tensor:
    """Each pixel takes the value of the image at a place near it, at random but smoothly.

    The shifts down and across are normal draws times ``sigma * alpha``, blurred by a
    Gaussian of width ``sigma``.

    Args: ``interpolation``: "bilinear" or "nearest"; ``fill_mode``: "constant"
    (``fill_value``), "nearest", "wrap", "mirror" or "reflect", as for `map_coordinates`;
    ``seed``: as in `keras.random`.

    Shapes: ``[batch, height, width, channels]`` or without the batch. Integers are
    rounded.

    Raises: ``ValueError`` for another ``interpolation`` or ``fill_mode``.

    Reference: Simard, Steinkraus & Platt, "Best practices for convolutional neural
    networks" (2003). Unlike with Keras on TensorFlow, the two shifts are independent.
    """
    who = "elastic_transform"
    check_choice(who, "interpolation", interpolation, ("nearest", "bilinear"))
    x, first = _channels_last(who, images, data_format)
    dtype, is_single = x.dtype, x.ndim == 3
    x = to_floating(expand_dims(x, 0) if is_single else x)
    batch, height, width, _ = x.shape
    shifts = normal((batch, height, width, 2), 0.0, sigma, x.dtype, seed)
    size = 6 * int(sigma) | 1
    shifts = (
        gaussian_blur(shifts, (size, size), (sigma, sigma), "channels_last") * alpha
    )
    down = shifts[..., 0] + reshape(arange(height, dtype=x.dtype), (-1, 1))
    across = shifts[..., 1] + arange(width, dtype=x.dtype)
    order = int(interpolation == "bilinear")
    out = interpolate(who, x, [down, across], order, fill_mode, fill_value, batch=True)
    out = _restore_dtype(squeeze(out, 0) if is_single else out, dtype)
    return _restore_format(out, first)


# --------------------------------------------------------------------------- colours


@operation(class_name="RGBToGrayscale")
def rgb_to_grayscale(images: TensorLike, data_format: str | None = None) -> Tensor:
    """``0.2989 red + 0.587 green + 0.114 blue``, in one channel; grey images do not change.

    Shapes: ``[..., 3]`` or ``[..., 1]`` to ``[..., 1]``.
    """
    x, first = _channels_last("rgb_to_grayscale", images, data_format)
    if x.shape[-1] == 1:
        return convert_to_tensor(images)
    grey = tensordot(
        to_floating(x), cast([0.2989, 0.587, 0.114], to_floating(x).dtype), 1
    )
    return _restore_format(cast(expand_dims(grey, -1), x.dtype), first)


def _check_colours(who, images, data_format):
    x, first = _channels_last(who, images, data_format)
    if not x.dtype.is_floating or x.shape[-1] != 3:
        raise ValueError(
            f"{who}: images must be floating, with three channels, got {x.dtype.name} of "
            f"shape {tuple(x.shape)}"
        )
    return x, first


@operation(class_name="RGBToHSV")
def rgb_to_hsv(images: TensorLike, data_format: str | None = None) -> Tensor:
    """Hue, saturation and value of red, green and blue, all from 0 to 1.

    Shapes: ``[..., 3]``, input and result.

    Raises: ``ValueError`` for integers, or for other than three channels.

    Example:
        >>> keras.ops.image.rgb_to_hsv([[[1.0, 0.0, 0.0]]]).numpy()
        array([[[0., 1., 1.]]], dtype=float32)
    """
    x, first = _check_colours("rgb_to_hsv", images, data_format)
    return _restore_format(color.rgb_to_hsv(x), first)


@operation(class_name="HSVToRGB")
def hsv_to_rgb(images: TensorLike, data_format: str | None = None) -> Tensor:
    """Red, green and blue of hue, saturation and value, all from 0 to 1.

    Shapes: ``[..., 3]``, input and result.

    Raises: ``ValueError`` for integers, or for other than three channels.
    """
    x, first = _check_colours("hsv_to_rgb", images, data_format)
    return _restore_format(color.hsv_to_rgb(x), first)
