"""Adjust the brightness, contrast and colors of images.

Integer images are scaled to 0 ... 1 before, and back after.
"""

from __future__ import annotations

import math

from tapewright.core import dtypes
from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.primitive import primitive
from tapewright.core.rules import all_mapped, known_rank, lift
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import TensorLike

from ..array.conversion import cast
from ..array.indexing import getitem
from ..array.joining import stack
from ..math.elementwise import clip_by_value, floormod, maximum, pow
from ..math.reduction import reduce_mean, reduce_std
from .color import hsv_to_rgb, hue_chroma_value, of_hue, rgb_to_hsv
from .pixels import checked_colors, convert_image_dtype, to_floating

__all__ = [
    "adjust_brightness",
    "adjust_contrast",
    "adjust_gamma",
    "adjust_hue",
    "adjust_saturation",
    "per_image_standardization",
]


def adjust_brightness(image: TensorLike, delta: TensorLike) -> Tensor:
    """Adjust the brightness of images: ``image + delta``, element-wise.

    Integer images are scaled to 0 ... 1 before, and back after.

    Args:
        image: Image or images of any shape.
        delta: Number to add, in units of the scale 0 ... 1; it broadcasts with
            ``image``.

    Example:
        >>> tw.image.adjust_brightness([0.25, 0.5], 0.25).numpy()
        array([0.5 , 0.75], dtype=float32)
    """
    x = convert_to_tensor(image)
    delta = cast(delta, x.dtype if x.dtype.is_floating else dtypes.float32)
    return convert_image_dtype(to_floating(x) + delta, x.dtype, saturate=True)


def adjust_gamma(
    image: TensorLike, gamma: TensorLike = 1, gain: TensorLike = 1
) -> Tensor:
    """Gamma correction: ``gain * image ** gamma``, element-wise.

    Integer images are scaled to 0 ... 1 before, and back after.

    Args:
        image: Image or images of any shape.
        gamma: Exponent, not negative; a value above 1 darkens the image.
        gain: Factor of the result.

    Raises:
        ValueError: If ``gamma`` is negative.

    Example:
        >>> tw.image.adjust_gamma([0.25, 0.5], gamma=2.0).numpy()
        array([0.0625, 0.25  ], dtype=float32)
    """
    x = convert_to_tensor(image)
    if isinstance(gamma, int | float) and gamma < 0:
        raise InvalidArgumentError(
            f"adjust_gamma: gamma must not be negative, got {gamma}"
        )
    adjusted = pow(to_floating(x), gamma) * gain
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
    """Adjust the contrast: ``(x - mean) * contrast_factor + mean``, per image and channel.

    Integer images are scaled to 0 ... 1 before, and back after. As in TensorFlow, the
    op has no gradient: computing one raises ``LookupError``.

    Args:
        images: Tensor ``[..., height, width, channels]``.
        contrast_factor: Scalar; a value above 1 increases the contrast.

    Shapes:
        ``[..., height, width, channels]``, input and result.

    Raises:
        ShapeError: If ``images`` has fewer than three axes, or ``contrast_factor`` is
            not a scalar.

    Example:
        >>> tw.image.adjust_contrast([[[1.0]], [[3.0]]], 2.0).numpy().ravel()
        array([0., 4.], dtype=float32)
    """
    x = convert_to_tensor(images)
    scaled = to_floating(x)
    adjusted = _adjust_contrast(scaled, cast(contrast_factor, scaled.dtype))
    return convert_image_dtype(adjusted, x.dtype, saturate=True)


def adjust_hue(image: TensorLike, delta: TensorLike, name: str | None = None) -> Tensor:
    """Adjust the hue of RGB images: add ``delta`` to it.

    The hue is a number from 0 to 1 that wraps around. The largest and the smallest
    color of a pixel are unchanged. Integer images are scaled to 0 ... 1 before, and
    back after. Unlike in TensorFlow, the op has a gradient.

    Args:
        image: RGB image or images ``[..., height, width, 3]``.
        delta: Number to add to the hue, from -1 to 1; a tensor broadcasts with
            ``[..., height, width]``.

    Shapes:
        ``[..., height, width, 3]``, input and result.

    Raises:
        ValueError: If ``delta`` is not from -1 to 1.
        ShapeError: If ``image`` is not ``[..., height, width, 3]``.

    Example:
        >>> tw.image.adjust_hue([[[1.0, 0.0, 0.0]]], 1 / 3).numpy().round(6)
        array([[[0., 1., 0.]]], dtype=float32)
    """
    if isinstance(delta, int | float) and not -1 <= delta <= 1:
        raise InvalidArgumentError(
            f"adjust_hue: delta must be from -1 to 1, got {delta}"
        )
    dtype, x = _wide_colors("adjust_hue", image)
    hue, chroma, value = hue_chroma_value(x)
    hue = floormod(hue + cast(delta, x.dtype) * 6.0, 6.0)
    return convert_image_dtype(of_hue(hue, chroma, value), dtype)


def adjust_saturation(
    image: TensorLike, saturation_factor: TensorLike, name: str | None = None
) -> Tensor:
    """Adjust the saturation of RGB images: multiply it, and clip it to 1.

    Integer images are scaled to 0 ... 1 before, and back after. Unlike in TensorFlow,
    the op has a gradient.

    Args:
        image: RGB image or images ``[..., height, width, 3]``.
        saturation_factor: Factor of the saturation; a tensor broadcasts with
            ``[..., height, width]``.

    Shapes:
        ``[..., height, width, 3]``, input and result.

    Raises:
        ShapeError: If ``image`` is not ``[..., height, width, 3]``.

    Example:
        >>> tw.image.adjust_saturation([[[1.0, 0.5, 0.5]]], 2.0).numpy()
        array([[[1., 0., 0.]]], dtype=float32)
    """
    dtype, x = _wide_colors("adjust_saturation", image)
    hsv = rgb_to_hsv(x)
    hue, saturation, value = (getitem(hsv, (..., i)) for i in range(3))
    saturation = saturation * cast(saturation_factor, x.dtype)
    saturation = clip_by_value(saturation, 0.0, 1.0)
    return convert_image_dtype(hsv_to_rgb(stack([hue, saturation, value], -1)), dtype)


def _wide_colors(who, image):
    """Return the dtype of the image, and its colors in float32 or float64."""
    x = checked_colors(who, image)
    if len(x.shape) < 3:
        raise ShapeError(who, "image must be [..., height, width, 3]", image=x)
    wide = dtypes.float64 if x.dtype == dtypes.float64 else dtypes.float32
    return x.dtype, convert_image_dtype(x, wide)


def per_image_standardization(image: TensorLike) -> Tensor:
    """Standardize each image to mean 0 and variance 1.

    It is ``(x - mean) / max(std, 1 / sqrt(n))``, with the moments of the n numbers of
    an image.

    Args:
        image: Image or images ``[..., height, width, channels]``.

    Shapes:
        ``[..., height, width, channels]``, input and result.

    Returns:
        Images in float32.

    Example:
        >>> tw.image.per_image_standardization([[[0.0]], [[2.0]]]).numpy().ravel()
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
