"""`tw.image`: sizes, edges, colours and comparison of ``[..., height, width, channels]``."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tapewright.core import dtypes
from tapewright.core.devices import check_fits
from tapewright.core.dispatch import composite
from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.primitive import primitive
from tapewright.core.rules import (
    all_mapped,
    check_at_least,
    check_choice,
    known_rank,
    lift,
)
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import (
    DTypeLike,
    IntLike,
    ShapeLike,
    TensorLike,
    as_shape,
)

from ..array.conversion import cast, saturate_cast
from ..array.indexing import getitem
from ..array.joining import concat, pad, reverse
from ..array.shape import expand_dims, reshape
from ..array.shape import transpose as transpose_axes
from ..convolution.conv import depthwise_conv2d
from ..convolution.windows import (
    spatial_numbers,
    spatial_padding,
    unfold,
    window_positions,
)
from ..linalg.contraction import tensordot
from ..math.elementwise import abs, exp, log, maximum, pow, square
from ..math.reduction import reduce_mean, reduce_std, reduce_sum
from .resizing import METHODS, resample

__all__ = [
    "ResizeMethod",
    "adjust_brightness",
    "adjust_contrast",
    "adjust_gamma",
    "central_crop",
    "convert_image_dtype",
    "crop_to_bounding_box",
    "extract_patches",
    "flip_left_right",
    "flip_up_down",
    "grayscale_to_rgb",
    "image_gradients",
    "pad_to_bounding_box",
    "per_image_standardization",
    "psnr",
    "resize",
    "resize_with_crop_or_pad",
    "resize_with_pad",
    "rgb_to_grayscale",
    "rgb_to_yiq",
    "rgb_to_yuv",
    "rot90",
    "sobel_edges",
    "ssim",
    "total_variation",
    "transpose",
    "yiq_to_rgb",
    "yuv_to_rgb",
]


def _images(who, image, name="image", ranks=(3, 4)):
    """A tensor, checked to be one image or a batch of them."""
    x = convert_to_tensor(image)
    if len(x.shape) not in ranks:
        wanted = "[height, width, channels]" if 3 in ranks else ""
        wanted += " or " if ranks == (3, 4) else ""
        wanted += "[batch, height, width, channels]" if 4 in ranks else ""
        raise ShapeError(who, f"{name} must be {wanted}", **{name: x})
    return x


# ------------------------------------------------------------------------------- sizes


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

    >>> resize([[[0.0], [4.0]]], (1, 4)).numpy().ravel()
    array([0., 1., 3., 4.], dtype=float32)
    """
    x = resize_keeping_dtype(images, size, method, preserve_aspect_ratio, antialias)
    return x if method == "nearest" else cast(x, dtypes.float32)


def resize_keeping_dtype(
    images, size, method="bilinear", preserve_aspect_ratio=False, antialias=False
):
    """`resize`, of floating images in their own dtype."""
    x = _images("resize", images, "images")
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

    >>> resize_with_pad([[[1.0], [1.0]]], 2, 2).numpy().shape
    (2, 2, 1)
    """
    x = _images("resize_with_pad", image)
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


def resize_with_crop_or_pad(
    image: TensorLike, target_height: IntLike, target_width: IntLike
) -> Tensor:
    """The middle of the image, or the image in the middle of zeros, without scaling.

    Shapes: ``[..., height, width, channels]`` to ``[..., target_height, target_width,
    channels]``, with one batch axis or none.

    >>> resize_with_crop_or_pad([[[1], [2], [3], [4]]], 1, 2).numpy().ravel()
    array([2, 3], dtype=int32)
    """
    x = _images("resize_with_crop_or_pad", image)
    height, width = tuple(x.shape)[-3:-1]
    more = target_height - height, target_width - width
    x = crop_to_bounding_box(
        x, max(-more[0] // 2, 0), max(-more[1] // 2, 0),
        min(target_height, height), min(target_width, width),
    )  # fmt: skip
    return pad_to_bounding_box(
        x, max(more[0] // 2, 0), max(more[1] // 2, 0), target_height, target_width
    )


def central_crop(image: TensorLike, central_fraction: float) -> Tensor:
    """The middle of the image: the fraction ``central_fraction`` of its height and width.

    Shapes: ``[height, width, channels]`` or ``[batch, height, width, channels]``.

    Raises: ``ValueError`` unless ``0 < central_fraction <= 1``.

    >>> import tapewright as tw
    >>> central_crop(tw.zeros([8, 6, 3]), 0.5).shape
    TensorShape([4, 4, 3])
    """
    if not 0 < central_fraction <= 1:
        raise InvalidArgumentError(
            f"central_crop: central_fraction must be above 0 and at most 1, "
            f"got {central_fraction}"
        )
    x = _images("central_crop", image)
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
    """The box of ``target_height`` rows and ``target_width`` columns of the image.

    Its upper left corner is at ``offset_height`` and ``offset_width``.

    Shapes: ``[height, width, channels]`` or ``[batch, height, width, channels]``.

    Raises: ``ValueError`` if the box reaches beyond the image.

    >>> crop_to_bounding_box([[[1], [2]], [[3], [4]]], 0, 1, 2, 1).numpy().ravel()
    array([2, 4], dtype=int32)
    """
    x = _images("crop_to_bounding_box", image)
    height, width = tuple(x.shape)[-3:-1]
    _check_box(
        "crop_to_bounding_box", x, offset_height, offset_width,
        height - offset_height - target_height, width - offset_width - target_width,
    )  # fmt: skip
    rows = slice(offset_height, offset_height + target_height)
    columns = slice(offset_width, offset_width + target_width)
    return getitem(x, (..., rows, columns, slice(None)))


def pad_to_bounding_box(
    image: TensorLike,
    offset_height: IntLike,
    offset_width: IntLike,
    target_height: IntLike,
    target_width: IntLike,
) -> Tensor:
    """The image inside zeros, ``target_height`` times ``target_width`` pixels in all.

    Its upper left corner is at ``offset_height`` and ``offset_width``.

    Shapes: ``[height, width, channels]`` or ``[batch, height, width, channels]``.

    Raises: ``ValueError`` if the image does not fit.

    >>> pad_to_bounding_box([[[1], [2]]], 0, 1, 1, 4).numpy().ravel()
    array([0, 1, 2, 0], dtype=int32)
    """
    x = _images("pad_to_bounding_box", image)
    height, width = tuple(x.shape)[-3:-1]
    below = target_height - offset_height - height
    right = target_width - offset_width - width
    _check_box("pad_to_bounding_box", x, offset_height, offset_width, below, right)
    margins = [(offset_height, below), (offset_width, right), (0, 0)]
    return pad(x, [(0, 0)] * (len(x.shape) - 3) + margins)


def _check_box(who, x, top, left, below, right):
    margins = {"above": top, "left": left, "below": below, "right": right}
    wrong = [f"{n} rows or columns {name}" for name, n in margins.items() if n < 0]
    if wrong:
        raise InvalidArgumentError(
            f"{who}: offset_height, offset_width, target_height and target_width leave "
            f"{', '.join(wrong)} of an image of {x.shape[-3]} x {x.shape[-2]}"
        )


def extract_patches(
    images: TensorLike,
    sizes: ShapeLike,
    strides: ShapeLike,
    rates: ShapeLike,
    padding: str | Sequence[Sequence[int]],
    name: str | None = None,
) -> Tensor:
    """Every window of the images, its pixels as channels.

    Args: ``sizes`` of a window, ``strides`` between windows, ``rates`` between the
    pixels of a window: each an int, or ``[1, height, width, 1]``; ``padding``: "VALID",
    "SAME" (zeros) or a list of pairs (before, after) for all four axes.

    Shapes: ``[batch, height, width, channels]`` to ``[batch, rows, columns,
    window_height * window_width * channels]``.

    Raises: ``ValueError`` for other ``strides`` or ``padding``; ``ShapeError`` for
    windows larger than the images.

    >>> extract_patches([[[[1], [2], [3]]]], (1, 1, 2, 1), 1, 1, "VALID").numpy()
    array([[[[1, 2],
             [2, 3]]]], dtype=int32)
    """
    who = "extract_patches"
    x = _images(who, images, "images", ranks=(4,))
    sizes = spatial_numbers(who, "sizes", sizes, 2, False)
    strides = spatial_numbers(who, "strides", strides, 2, False)
    rates = spatial_numbers(who, "rates", rates, 2, False)
    padding = spatial_padding(who, padding, 2, False)
    each = (padding, padding) if isinstance(padding, str) else padding
    windows = list(zip(sizes, strides, each, rates))
    if 0 in [window_positions(n, *w)[-1] for n, w in zip(x.shape[1:3], windows)]:
        raise ShapeError(who, f"sizes {sizes} reach beyond the images", images=x)
    x = unfold(unfold(x, -3, *windows[0]), -2, *windows[1])
    batch, rows, _, columns, _, channels = x.shape
    x = transpose_axes(x, (0, 1, 3, 2, 4, 5))
    return reshape(x, (batch, rows, columns, sizes[0] * sizes[1] * channels))


# ----------------------------------------------------------------------------- turning


def flip_left_right(image: TensorLike) -> Tensor:
    """The image with its columns in reverse order.

    Shapes: ``[height, width, channels]`` or ``[batch, height, width, channels]``.

    >>> flip_left_right([[[1], [2]], [[3], [4]]]).numpy().tolist()
    [[[2], [1]], [[4], [3]]]
    """
    return reverse(_images("flip_left_right", image), -2)


def flip_up_down(image: TensorLike) -> Tensor:
    """The image with its rows in reverse order.

    Shapes: ``[height, width, channels]`` or ``[batch, height, width, channels]``.

    >>> flip_up_down([[[1], [2]], [[3], [4]]]).numpy().tolist()
    [[[3], [4]], [[1], [2]]]
    """
    return reverse(_images("flip_up_down", image), -3)


def transpose(image: TensorLike, name: str | None = None) -> Tensor:
    """The image with height and width exchanged.

    Shapes: ``[height, width, channels]`` or ``[batch, height, width, channels]``.
    """
    x = _images("transpose", image)
    rank = len(x.shape)
    return transpose_axes(x, (*range(rank - 3), rank - 2, rank - 3, rank - 1))


def rot90(image: TensorLike, k: IntLike = 1, name: str | None = None) -> Tensor:
    """The image turned counter-clockwise by ``k`` times 90 degrees.

    Shapes: ``[height, width, channels]`` or ``[batch, height, width, channels]``; an
    odd ``k`` exchanges height and width.

    >>> rot90([[[1], [2]]]).numpy().tolist()
    [[[2]], [[1]]]
    """
    x = _images("rot90", image)
    k = int(k) % 4
    if k == 2:
        return reverse(x, (-3, -2))
    if k == 1:
        return reverse(transpose(x), -3)
    return transpose(reverse(x, -3)) if k == 3 else x


# ---------------------------------------------------------------- brightness and colour


def convert_image_dtype(
    image: TensorLike, dtype: DTypeLike, saturate: bool = False, name: str | None = None
) -> Tensor:
    """The image in another dtype, scaled: floats reach to 1, integers to their maximum.

    Args: ``saturate``: values beyond the range of an integer ``dtype`` become its ends;
    without it they wrap.

    >>> convert_image_dtype([0.0, 0.5, 1.0], "uint8").numpy()
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


def _floating(x):
    return x if x.dtype.is_floating else convert_image_dtype(x, dtypes.float32)


def adjust_brightness(image: TensorLike, delta: TensorLike) -> Tensor:
    """``image + delta``, entry by entry; they broadcast.

    Integer images are scaled to 0 ... 1 before, and back after.

    >>> adjust_brightness([0.25, 0.5], 0.25).numpy()
    array([0.5 , 0.75], dtype=float32)
    """
    x = convert_to_tensor(image)
    delta = cast(delta, x.dtype if x.dtype.is_floating else dtypes.float32)
    return convert_image_dtype(_floating(x) + delta, x.dtype, saturate=True)


def adjust_gamma(
    image: TensorLike, gamma: TensorLike = 1, gain: TensorLike = 1
) -> Tensor:
    """``gain * image ** gamma``, entry by entry.

    Integer images are scaled to 0 ... 1 before, and back after.

    Raises: ``ValueError`` for a negative ``gamma``.

    >>> adjust_gamma([0.25, 0.5], gamma=2.0).numpy()
    array([0.0625, 0.25  ], dtype=float32)
    """
    x = convert_to_tensor(image)
    if isinstance(gamma, int | float) and gamma < 0:
        raise InvalidArgumentError(
            f"adjust_gamma: gamma must not be negative, got {gamma}"
        )
    adjusted = pow(_floating(x), gamma) * gain
    return convert_image_dtype(adjusted, x.dtype, saturate=True)


@primitive(
    type_name="AdjustContrastv2",
    same_dtype=("images", "contrast_factor"),
    linear=[{"images"}],
    cost=(3, 0),
)
def _adjust_contrast(xp, images: TensorLike, contrast_factor: TensorLike):
    if images.ndim < 3 or contrast_factor.ndim:
        raise ValueError("images need three axes")  # `infer` says it better
    mean = images.mean(axis=(-3, -2), keepdims=True)
    return (images - mean) * contrast_factor + mean


@_adjust_contrast.infer
def _(images, contrast_factor):
    if (
        known_rank("adjust_contrast", "images", images) < 3
        or contrast_factor.shape.rank
    ):
        raise ShapeError("adjust_contrast", "images must be [..., height, width, channels] "
                         "and contrast_factor a scalar", images=images,
                         contrast_factor=contrast_factor)  # fmt: skip
    return images


@_adjust_contrast.batch
def _(mapped, images, contrast_factor):
    if not mapped[1]:
        return _adjust_contrast(images, contrast_factor)
    images, factor = lift((True, True), *all_mapped(mapped, (images, contrast_factor)))
    mean = reduce_mean(images, (-3, -2), True)
    return (images - mean) * factor + mean


def adjust_contrast(images: TensorLike, contrast_factor: TensorLike) -> Tensor:
    """``(x - mean) * contrast_factor + mean``, with the mean of each channel of an image.

    Integer images are scaled to 0 ... 1 before, and back after. There is no gradient,
    as in TensorFlow: asking for one raises ``LookupError``.

    Shapes: ``[..., height, width, channels]``, ``contrast_factor`` a scalar.

    >>> adjust_contrast([[[1.0]], [[3.0]]], 2.0).numpy().ravel()
    array([0., 4.], dtype=float32)
    """
    x = convert_to_tensor(images)
    scaled = _floating(x)
    adjusted = _adjust_contrast(scaled, cast(contrast_factor, scaled.dtype))
    return convert_image_dtype(adjusted, x.dtype, saturate=True)


def per_image_standardization(image: TensorLike) -> Tensor:
    """``(x - mean) / max(std, 1 / sqrt(n))``, with the moments of the n numbers of an image.

    Shapes: ``[..., height, width, channels]``.

    Returns: float32.

    >>> per_image_standardization([[[0.0]], [[2.0]]]).numpy().ravel()
    array([-1.,  1.], dtype=float32)
    """
    x = convert_to_tensor(image)
    if len(x.shape) < 3:
        what = "image must be [..., height, width, channels]"
        raise ShapeError("per_image_standardization", what, image=x)
    x = x if x.dtype == dtypes.float64 else cast(x, dtypes.float32)
    return cast(_standardized(x), dtypes.float32)


def _standardized(x):
    axes = (-3, -2, -1)
    least = 1.0 / math.sqrt(max(math.prod(tuple(x.shape)[-3:]), 1))
    spread = maximum(reduce_std(x, axes, True), least)
    return (x - reduce_mean(x, axes, True)) / spread


def rgb_to_grayscale(images: TensorLike, name: str | None = None) -> Tensor:
    """The luminance ``0.2989 R + 0.587 G + 0.114 B``; integers are rounded down.

    Shapes: ``[..., 3]`` to ``[..., 1]``.

    >>> rgb_to_grayscale([[[1.0, 0.0, 0.0]]]).numpy()
    array([[[0.2989]]], dtype=float32)
    """
    x = _colours("rgb_to_grayscale", images)
    gray = expand_dims(tensordot(_floating(x), _like([0.2989, 0.587, 0.114], x), 1), -1)
    return convert_image_dtype(gray, x.dtype)


def grayscale_to_rgb(images: TensorLike, name: str | None = None) -> Tensor:
    """The one channel of an image three times.

    Shapes: ``[..., 1]`` to ``[..., 3]``.
    """
    x = convert_to_tensor(images)
    if not x.shape or x.shape[-1] != 1:
        raise ShapeError("grayscale_to_rgb", "images must have one channel", images=x)
    return concat([x, x, x], axis=-1)


def _colours(who, images):
    x = convert_to_tensor(images)
    if not x.shape or x.shape[-1] != 3:
        raise ShapeError(who, "images must have three channels", images=x)
    return x


def _like(numbers, x):
    dtype = x.dtype if x.dtype.is_floating else dtypes.float32
    return convert_to_tensor(numbers, dtype)


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
    x = _colours(who, images)
    return tensordot(x, _like(matrix, x), 1)


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


# ----------------------------------------------------------------- edges, and distances


def image_gradients(image: TensorLike) -> tuple[Tensor, Tensor]:
    """The differences of each pixel to the next row and to the next column.

    The differences of the last row and of the last column are zero.

    Shapes: all ``[batch, height, width, channels]``.

    Returns: ``(dy, dx)``.

    >>> dy, dx = image_gradients([[[[1.0], [2.0]], [[4.0], [8.0]]]])
    >>> dy.numpy().ravel(), dx.numpy().ravel()
    (array([3., 6., 0., 0.], dtype=float32), array([1., 0., 4., 0.], dtype=float32))
    """
    x = _images("image_gradients", image, ranks=(4,))
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
    """The sum of ``|difference|`` over all pairs of neighbouring pixels of an image.

    Shapes: ``[height, width, channels]`` to a scalar, or ``[batch, height, width,
    channels]`` to ``[batch]``.

    >>> total_variation([[[1.0], [3.0]], [[2.0], [3.0]]]).numpy()
    np.float32(4.0)
    """
    x = _images("total_variation", images, "images")
    below, beside = _differences(x)
    axes = (-3, -2, -1)
    return reduce_sum(abs(below), axes) + reduce_sum(abs(beside), axes)


def sobel_edges(image: TensorLike) -> Tensor:
    """Sobel's derivatives ``dy`` and ``dx`` of each channel; the edges are mirrored.

    Shapes: ``[batch, height, width, channels]`` to ``[batch, height, width, channels,
    2]``; height and width are 2 or more.
    """
    x = _images("sobel_edges", image, ranks=(4,))
    across = [[-1, -2, -1], [0, 0, 0], [1, 2, 1]]
    down = [list(row) for row in zip(*across)]
    both = [[[a, d] for a, d in zip(*rows)] for rows in zip(across, down)]
    filters = concat([_like([[[p] for p in r] for r in both], x)] * x.shape[-1], axis=2)
    framed = pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)], mode="REFLECT")
    edges = depthwise_conv2d(framed, filters, [1, 1, 1, 1], "VALID")
    return reshape(edges, (*x.shape, 2))


def psnr(
    a: TensorLike, b: TensorLike, max_val: TensorLike, name: str | None = None
) -> Tensor:
    """The peak signal-to-noise ratio of two images, in decibels.

    It is ``10 log10(max_val ** 2 / mean((a - b) ** 2))``, infinite for equal images.

    Args: ``max_val``: the range of the values, such as 255 for uint8.

    Shapes: ``a`` and ``b`` ``[..., height, width, channels]``, result ``[...]``.

    >>> psnr([[[0.0]]], [[[0.1]]], max_val=1.0).numpy()
    np.float32(20.0)
    """
    x, y = _comparable("psnr", a, b, "a", "b")
    top = _scaled_range(max_val, a)
    mse = reduce_mean(square(x - y), (-3, -2, -1))
    return log(mse) * (-10 / math.log(10)) + 20 * math.log10(top)


def _comparable(who, first, second, *names):
    first, second = convert_to_tensor(first), convert_to_tensor(second)
    given = dict(zip(names, (first, second)))
    if first.shape != second.shape or len(first.shape) < 3:
        raise ShapeError(who, f"{names[0]} and {names[1]} must be images of one shape, "
                         "[..., height, width, channels]", **given)  # fmt: skip
    return _floating(first), _floating(second)


def _scaled_range(max_val, image):
    dtype = convert_to_tensor(image).dtype
    return float(max_val) if dtype.is_floating else float(max_val) / dtype.max


def ssim(
    img1: TensorLike,
    img2: TensorLike,
    max_val: TensorLike,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    return_index_map: bool = False,
) -> Tensor:
    """The structural similarity of two images, from -1 to 1.

    Means, variances and the covariance under a Gaussian window of ``filter_size``
    pixels and width ``filter_sigma`` are compared, with ``c1 = (k1 * max_val) ** 2``
    and ``c2 = (k2 * max_val) ** 2`` added to numerators and denominators.

    Args: ``max_val``: the range of the values, such as 255 for uint8;
    ``return_index_map``: one number for each window, not their mean.

    Shapes: ``[..., height, width, channels]``, both, to ``[...]``; with
    ``return_index_map`` to ``[..., height - filter_size + 1, width - filter_size +
    1]``.

    Raises: ``ShapeError`` for shapes that differ, or smaller than the window.

    Reference: Wang et al., "Image quality assessment" (2004).

    >>> import tapewright as tw
    >>> image = tw.random.stateless_uniform([16, 16, 1], seed=[1, 2])
    >>> ssim(image, image, max_val=1.0).numpy().round(4)
    np.float32(1.0)
    """
    x, y = _comparable("ssim", img1, img2, "img1", "img2")
    if min(tuple(x.shape)[-3:-1]) < filter_size:
        raise ShapeError("ssim", f"img1 and img2 must have at least filter_size = "
                         f"{filter_size} rows and columns", img1=x, img2=y)  # fmt: skip
    top = _scaled_range(max_val, img1)
    c1, c2 = (k1 * top) ** 2, (k2 * top) ** 2
    window = _gaussian_window(filter_size, filter_sigma, x)
    lead = tuple(x.shape)[:-3]
    x, y = (reshape(v, (math.prod(lead), *v.shape[-3:])) for v in (x, y))

    def blurred(v):
        return depthwise_conv2d(v, window, [1, 1, 1, 1], "VALID")

    mean_x, mean_y = blurred(x), blurred(y)
    product, squares = mean_x * mean_y * 2.0, square(mean_x) + square(mean_y)
    covariance = blurred(x * y) * 2.0 - product
    variances = blurred(square(x) + square(y)) - squares
    luminance = (product + c1) / (squares + c1)
    index = luminance * ((covariance + c2) / (variances + c2))
    axes = -1 if return_index_map else (-3, -2, -1)
    index = reduce_mean(index, axes)
    return reshape(index, (*lead, *tuple(index.shape)[1:]))


def _gaussian_window(size, sigma, x):
    """``[size, size, channels, 1]``, with sum 1 for each channel."""
    places = _like([(i - (size - 1) / 2) ** 2 for i in range(size)], x)
    row = exp(places * (-0.5 / sigma**2))
    row = row / reduce_sum(row)
    plane = reshape(row, (size, 1, 1, 1)) * reshape(row, (1, size, 1, 1))
    return concat([plane] * x.shape[-1], axis=2)
