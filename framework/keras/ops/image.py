"""`keras.ops.image`: resize, crop, pad and warp images, convert colors.

Images are ``[batch, height, width, channels]``, or one image without the batch; with
``data_format`` "channels_first" the channels precede the height.
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
    """Return the images as a tensor with the channels last, and True if they were first."""
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
    """Resize images to a height and a width.

    Integer images are rounded to their dtype.

    Args:
        images: Images ``[batch, height, width, channels]``, or one without the batch.
        size: ``(height, width)`` of the result.
        interpolation: "bilinear", "nearest", "bicubic", "lanczos3" or "lanczos5".
        antialias: If True, widen the filter where an axis shrinks.
        crop_to_aspect_ratio: If True, resize only the largest central box that has the
            new aspect ratio.
        pad_to_aspect_ratio: If True, pad the images to the new aspect ratio first.
        fill_mode: Mode of the padding, "constant".
        fill_value: Value of the padding.
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.

    Raises:
        ValueError: If ``fill_mode`` is unknown, or both crop and pad are True.

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
    """Crop images at their edges.

    For each axis, give two of three numbers: the cropping at both edges, and the target
    size.

    Args:
        images: Images ``[batch, height, width, channels]``, or one without the batch.
        top_cropping: Number of rows to remove at the top.
        left_cropping: Number of columns to remove on the left.
        bottom_cropping: Number of rows to remove at the bottom.
        right_cropping: Number of columns to remove on the right.
        target_height: Height of the result.
        target_width: Width of the result.
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.

    Raises:
        ValueError: If more or fewer numbers are given, or they do not fit the images.

    Example:
        >>> x = keras.ops.zeros((1, 8, 8, 3))
        >>> keras.ops.image.crop_images(x, 1, 1, target_height=4, target_width=6).shape
        TensorShape([1, 4, 6, 3])
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
            f"crop_images: exactly two of the croppings at both edges and target_{name} "
            f"must be given, got {before}, {after} and {target}"
        )
    start = size - target - after if before is None else before
    stop = size - after if target is None else start + target
    if start < 0 or stop > size or stop < start:
        raise ValueError(
            f"crop_images: the crop must lie within {name} {size}, got {start} to {stop}"
        )
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
    """Pad images with zeros at their edges.

    For each axis, give two of three numbers: the padding at both edges, and the target
    size.

    Args:
        images: Images ``[batch, height, width, channels]``, or one without the batch.
        top_padding: Number of rows to add at the top.
        left_padding: Number of columns to add on the left.
        bottom_padding: Number of rows to add at the bottom.
        right_padding: Number of columns to add on the right.
        target_height: Height of the result.
        target_width: Width of the result.
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.

    Raises:
        ValueError: If more or fewer numbers are given, or they do not fit the images.

    Example:
        >>> x = keras.ops.zeros((1, 8, 8, 3))
        >>> keras.ops.image.pad_images(x, 1, 1, 1, 1).shape
        TensorShape([1, 10, 10, 3])
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
            f"pad_images: exactly two of the paddings at both edges and target_{name} "
            f"must be given, got {before}, {after} and {target}"
        )
    before = target - size - after if before is None else before
    after = target - size - before if after is None else after
    if before < 0 or after < 0:
        raise ValueError(
            f"pad_images: the paddings of {name} {size} must be 0 or more, got {before} "
            f"and {after}"
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
    """Extract patches of images; each patch becomes the channels of one pixel.

    Args:
        images: Images ``[batch, height, width, channels]``, or one without the batch.
        size: Size of the patches: an int, or ``(height, width)``; with three numbers,
            see `extract_patches_3d`.
        strides: Distance between patches, an int or one for each axis; None means
            ``size``.
        dilation_rate: Distance between the pixels of a patch: an int, or one for each
            axis.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.

    Shapes:
        ``[batch, height, width, channels]`` to ``[batch, rows, columns, patch_height *
        patch_width * channels]``.

    Raises:
        ValueError: If ``padding`` is unknown.
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
    """Extract patches of volumes; each patch becomes the channels of one voxel.

    Args:
        volumes: Volumes ``[batch, depth, height, width, channels]``, or one without the
            batch.
        size: Size of the patches: an int, or ``(depth, height, width)``.
        strides: Distance between patches, an int or one for each axis; None means
            ``size``.
        dilation_rate: Distance between the voxels of a patch: an int, or one for each
            axis.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.

    Shapes:
        ``[batch, depth, height, width, channels]`` to ``[batch, *patches, patch_size *
        channels]``.

    Raises:
        ValueError: If ``padding`` is unknown.
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
    """Blur images with a Gaussian kernel.

    Args:
        images: Images ``[batch, height, width, channels]``, or one without the batch.
        kernel_size: ``(height, width)`` of the kernel.
        sigma: Standard deviations of the Gaussian along height and width.
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.
    """
    x, first = _channels_last("gaussian_blur", images, data_format)
    is_single = x.ndim == 3
    x = expand_dims(x, 0) if is_single else x
    out = blurring.gaussian_blur(x, kernel_size, sigma)
    return _restore_format(squeeze(out, 0) if is_single else out, first)


@operation
def sobel_edges(images: TensorLike, data_format: str | None = None) -> Tensor:
    """Compute Sobel edge maps: the derivatives of each channel along height and width.

    Args:
        images: Images ``[batch, height, width, channels]``.
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.

    Shapes:
        ``[batch, height, width, channels]`` to ``[batch, height, width, channels, 2]``.
    """
    x, first = _channels_last("sobel_edges", images, data_format)
    gradients = edges.sobel_edges(x)
    return moveaxis(gradients, -2, -4) if first else gradients


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
    """Structural similarity of two images (SSIM), 1 for equal images; see `tw.image.ssim`.

    Args:
        image1: Images ``[batch, height, width, channels]``.
        image2: Images of the same shape.
        max_val: Range of the pixels, largest minus smallest possible value.
        filter_size: Size of the Gaussian filter.
        filter_sigma: Standard deviation of the Gaussian filter.
        k1: Constant that stabilizes the comparison of means.
        k2: Constant that stabilizes the comparison of variances.
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.

    Shapes:
        ``[batch, height, width, channels]``, both, to ``[batch]``.

    Raises:
        ShapeError: If the images are smaller than ``filter_size``.
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
    """Apply an affine or projective transform to images.

    Each output pixel is sampled at the position to which ``transform`` maps it::

        out[y, x] = images[(b0 x + b1 y + b2) / k, (a0 x + a1 y + a2) / k],
        k = c0 x + c1 y + 1,   transform = (a0, a1, a2, b0, b1, b2, c0, c1)

    Integer images are rounded to their dtype.

    Args:
        images: Images ``[batch, height, width, channels]``, or one without the batch.
        transform: Coefficients ``[batch, 8]``, or ``[8]`` for all images.
        interpolation: "bilinear" or "nearest".
        fill_mode: Values outside the image: "constant" (``fill_value``), "nearest" (the
            edge), "reflect" (``d c b a | a b c d``) or "wrap".
        fill_value: Value outside the image for "constant".
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.

    Raises:
        ValueError: If ``interpolation`` or ``fill_mode`` is unknown.
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
    """Apply a perspective transform that maps four points of images to four others.

    Args:
        images: Images ``[batch, height, width, channels]``, or one without the batch.
        start_points: Points (x, y) of the input, ``[batch, 4, 2]``, or ``[4, 2]`` for
            all.
        end_points: Points of the result to which they move, in the same shape.
        interpolation: "bilinear" or "nearest".
        fill_value: Value outside the image.
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.

    Raises:
        ValueError: If the points have another shape.
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
    """Sample a tensor at coordinates, with interpolation.

    The result has the dtype of ``inputs``; integers are rounded.

    Args:
        inputs: Tensor with n axes.
        coordinates: Coordinates ``[n, ...]``, one for each axis.
        order: 0 for the nearest entry, 1 for linear interpolation.
        fill_mode: Values outside: "constant" (``fill_value``), "nearest" (the edge),
            "wrap" (``a b c d | a b c d``), "mirror" (``c b | a b c d``) or "reflect"
            (``b a | a b c d``).
        fill_value: Value outside for "constant".

    Shapes:
        ``coordinates`` ``[n, ...]`` to ``[...]``.

    Raises:
        ValueError: If ``order`` or ``fill_mode`` is unknown.
        ShapeError: If ``coordinates`` has fewer than two axes, or not n coordinates.

    Example:
        >>> x, points = [[0.0, 1.0], [2.0, 3.0]], [[0.5, 1.0], [0.5, 0.0]]
        >>> keras.ops.image.map_coordinates(x, points, 1).numpy()
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
    """Scale and translate images: the point ``x`` moves to ``x * scale + translation``.

    The centers of the pixels are at halves; outside the images there are zeros. Integer
    images are rounded and stay within the extremes of ``images``.

    Args:
        images: Input tensor.
        output_shape: Shape of the result, which differs from the shape of ``images``
            along ``spatial_dims`` only.
        scale: Factor for each of the axes ``spatial_dims``.
        translation: Shift for each of the axes ``spatial_dims``, in pixels of the
            result.
        spatial_dims: Axes to scale and translate.
        method: "linear", "bilinear", "trilinear" or "triangle"; "cubic", "bicubic" or
            "tricubic" (Keys); "lanczos3" or "lanczos5".
        antialias: If True, widen the filter where an axis shrinks.

    Raises:
        ValueError: If ``method`` is unknown.
        ShapeError: If the shapes do not match.

    Example:
        >>> x, method = [1.0, 2.0], "linear"
        >>> keras.ops.image.scale_and_translate(x, (4,), [2.0], [0.0], (0,), method).numpy()
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
    """Distort images randomly but smoothly (elastic transform).

    Each pixel is sampled at a shifted position. The shifts are normal random numbers
    times ``sigma * alpha``, blurred by a Gaussian of width ``sigma``. Unlike in Keras
    on TensorFlow, the shifts along height and width are independent. Integer images are
    rounded.

    Args:
        images: Images ``[batch, height, width, channels]``, or one without the batch.
        alpha: Strength of the distortion.
        sigma: Standard deviation of the Gaussian; larger values distort more smoothly.
        interpolation: "bilinear" or "nearest".
        fill_mode: Values outside the image: "constant" (``fill_value``), "nearest",
            "wrap", "mirror" or "reflect"; see `map_coordinates`.
        fill_value: Value outside the image for "constant".
        seed: Integer seed, a `keras.random.SeedGenerator`, or None for a random seed.
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.

    Raises:
        ValueError: If ``interpolation`` or ``fill_mode`` is unknown.

    References:
        Simard, Steinkraus & Platt, "Best practices for convolutional neural networks"
        (2003).
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
    """Convert RGB images to grayscale: ``0.2989 red + 0.587 green + 0.114 blue``.

    Images with one channel do not change.

    Args:
        images: Images ``[..., 3]`` or ``[..., 1]``.
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.

    Shapes:
        ``[..., 3]`` or ``[..., 1]`` to ``[..., 1]``.
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
    """Convert RGB images to HSV: hue, saturation and value, all from 0 to 1.

    Args:
        images: Floating images ``[..., 3]``, from 0 to 1.
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.

    Raises:
        ValueError: If ``images`` holds integers, or does not have three channels.

    Example:
        >>> keras.ops.image.rgb_to_hsv([[[1.0, 0.0, 0.0]]]).numpy()
        array([[[0., 1., 1.]]], dtype=float32)
    """
    x, first = _check_colours("rgb_to_hsv", images, data_format)
    return _restore_format(color.rgb_to_hsv(x), first)


@operation(class_name="HSVToRGB")
def hsv_to_rgb(images: TensorLike, data_format: str | None = None) -> Tensor:
    """Convert HSV images to RGB: red, green and blue, all from 0 to 1.

    Args:
        images: Floating images ``[..., 3]``: hue, saturation and value, from 0 to 1.
        data_format: "channels_last" or "channels_first"; None means
            `image_data_format`.

    Raises:
        ValueError: If ``images`` holds integers, or does not have three channels.
    """
    x, first = _check_colours("hsv_to_rgb", images, data_format)
    return _restore_format(color.hsv_to_rgb(x), first)
