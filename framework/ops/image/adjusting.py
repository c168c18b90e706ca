"""Brightness, contrast and colours of images, changed.

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
from ..math.elementwise import maximum, pow
from ..math.reduction import reduce_mean, reduce_std
from .pixels import convert_image_dtype, to_floating

__all__ = [
    "adjust_brightness",
    "adjust_contrast",
    "adjust_gamma",
    "per_image_standardization",
]


def adjust_brightness(image: TensorLike, delta: TensorLike) -> Tensor:
    """``image + delta``, entry by entry; they broadcast.

    Integer images are scaled to 0 ... 1 before, and back after.

    >>> adjust_brightness([0.25, 0.5], 0.25).numpy()
    array([0.5 , 0.75], dtype=float32)
    """
    x = convert_to_tensor(image)
    delta = cast(delta, x.dtype if x.dtype.is_floating else dtypes.float32)
    return convert_image_dtype(to_floating(x) + delta, x.dtype, saturate=True)


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
    """``(x - mean) * contrast_factor + mean``, with the mean of each channel of an image.

    Integer images are scaled to 0 ... 1 before, and back after. There is no gradient,
    as in TensorFlow: asking for one raises ``LookupError``.

    Shapes: ``[..., height, width, channels]``, ``contrast_factor`` a scalar.

    >>> adjust_contrast([[[1.0]], [[3.0]]], 2.0).numpy().ravel()
    array([0., 4.], dtype=float32)
    """
    x = convert_to_tensor(images)
    scaled = to_floating(x)
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
