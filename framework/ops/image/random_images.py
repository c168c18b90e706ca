"""Random changes of images: the ``random_...`` and ``stateless_random_...`` of `tw.image`.

The ``random_`` functions draw from the global generator or, with a ``seed``, from a
separate stream that advances from call to call; the ``stateless_`` functions depend on
a seed of two integers only. One number is drawn for all images of a call, but flips are
drawn per image.
"""

from __future__ import annotations

from tapewright.core import dtypes
from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import IntLike, ShapeLike, TensorLike, as_shape

from ..array.conversion import cast
from ..array.creation import range as arange
from ..array.gather import gather
from ..array.indexing import getitem
from ..array.joining import reverse, stack
from ..array.shape import reshape
from ..math.comparison import less, where
from ..math.elementwise import floormod
from ..random.distributions import draw_uniform
from ..random.generators import one_stream, stateless_stream
from .adjusting import (
    adjust_brightness,
    adjust_contrast,
    adjust_hue,
    adjust_saturation,
)
from .pixels import checked_images

__all__ = [
    "random_brightness",
    "random_contrast",
    "random_crop",
    "random_flip_left_right",
    "random_flip_up_down",
    "random_hue",
    "random_saturation",
    "stateless_random_brightness",
    "stateless_random_contrast",
    "stateless_random_crop",
    "stateless_random_flip_left_right",
    "stateless_random_flip_up_down",
    "stateless_random_hue",
    "stateless_random_saturation",
]


# ---------------------------------------------------------------- brightness and colour


def random_brightness(
    image: TensorLike, max_delta: float, seed: IntLike | None = None
) -> Tensor:
    """Adjust the brightness by a random number between ``-max_delta`` and ``max_delta``.

    See `adjust_brightness`.

    Args:
        image: Image or images of any shape.
        max_delta: Largest change, not negative.
        seed: Integer seed of a separate stream that advances from call to call, or None
            to draw from the global generator.

    Raises:
        ValueError: If ``max_delta`` is negative.

    Example:
        >>> image = tw.image.random_brightness([[[0.5]]], 0.25).numpy()
        >>> bool(0.25 <= image <= 0.75)
        True
    """
    delta = _either_way("random_brightness", one_stream(seed), max_delta)
    return adjust_brightness(image, delta)


def stateless_random_brightness(
    image: TensorLike, max_delta: float, seed: TensorLike
) -> Tensor:
    """`random_brightness` as a pure function of ``seed``.

    Args:
        image: Image or images of any shape.
        max_delta: Largest change, not negative.
        seed: Two integers; the same seed always returns the same result.
    """
    who = "stateless_random_brightness"
    delta = _either_way(who, stateless_stream(who, seed), max_delta)
    return adjust_brightness(image, delta)


def random_contrast(
    image: TensorLike, lower: float, upper: float, seed: IntLike | None = None
) -> Tensor:
    """Adjust the contrast by a random factor from ``lower`` up to ``upper``.

    See `adjust_contrast`.

    Args:
        image: Image or images ``[..., height, width, channels]``.
        lower: Smallest factor, not negative.
        upper: Largest factor, above ``lower``.
        seed: Integer seed of a separate stream that advances from call to call, or None
            to draw from the global generator.

    Raises:
        ValueError: If ``0 <= lower < upper`` does not hold.

    Example:
        >>> tw.image.random_contrast([[[1.0]], [[3.0]]], 0.5, 1.5).shape
        TensorShape([2, 1, 1])
    """
    factor = _between("random_contrast", one_stream(seed), lower, upper)
    return adjust_contrast(image, factor)


def stateless_random_contrast(
    image: TensorLike, lower: float, upper: float, seed: TensorLike
) -> Tensor:
    """`random_contrast` as a pure function of ``seed``.

    Args:
        image: Image or images ``[..., height, width, channels]``.
        lower: Smallest factor, not negative.
        upper: Largest factor, above ``lower``.
        seed: Two integers; the same seed always returns the same result.
    """
    who = "stateless_random_contrast"
    factor = _between(who, stateless_stream(who, seed), lower, upper)
    return adjust_contrast(image, factor)


def random_hue(
    image: TensorLike, max_delta: float, seed: IntLike | None = None
) -> Tensor:
    """Adjust the hue by a random number between ``-max_delta`` and ``max_delta``.

    See `adjust_hue`.

    Args:
        image: RGB image or images ``[..., height, width, 3]``.
        max_delta: Largest change, from 0 to 0.5.
        seed: Integer seed of a separate stream that advances from call to call, or None
            to draw from the global generator.

    Raises:
        ValueError: If ``max_delta`` is not from 0 to 0.5.
    """
    delta = _either_way("random_hue", one_stream(seed), max_delta, 0.5)
    return adjust_hue(image, delta)


def stateless_random_hue(
    image: TensorLike, max_delta: float, seed: TensorLike
) -> Tensor:
    """`random_hue` as a pure function of ``seed``.

    Args:
        image: RGB image or images ``[..., height, width, 3]``.
        max_delta: Largest change, from 0 to 0.5.
        seed: Two integers; the same seed always returns the same result.
    """
    who = "stateless_random_hue"
    delta = _either_way(who, stateless_stream(who, seed), max_delta, 0.5)
    return adjust_hue(image, delta)


def random_saturation(
    image: TensorLike, lower: float, upper: float, seed: IntLike | None = None
) -> Tensor:
    """Adjust the saturation by a random factor from ``lower`` up to ``upper``.

    See `adjust_saturation`.

    Args:
        image: RGB image or images ``[..., height, width, 3]``.
        lower: Smallest factor, not negative.
        upper: Largest factor, above ``lower``.
        seed: Integer seed of a separate stream that advances from call to call, or None
            to draw from the global generator.

    Raises:
        ValueError: If ``0 <= lower < upper`` does not hold.
    """
    factor = _between("random_saturation", one_stream(seed), lower, upper)
    return adjust_saturation(image, factor)


def stateless_random_saturation(
    image: TensorLike, lower: float, upper: float, seed: TensorLike | None = None
) -> Tensor:
    """`random_saturation` as a pure function of ``seed``.

    Args:
        image: RGB image or images ``[..., height, width, 3]``.
        lower: Smallest factor, not negative.
        upper: Largest factor, above ``lower``.
        seed: Two integers; the same seed always returns the same result.
    """
    who = "stateless_random_saturation"
    factor = _between(who, stateless_stream(who, seed), lower, upper)
    return adjust_saturation(image, factor)


def _either_way(who, stream, most, limit=None):
    if most < 0 or (limit is not None and most > limit):
        wanted = "0 or more" if limit is None else f"from 0 to {limit}"
        raise InvalidArgumentError(f"{who}: max_delta must be {wanted}, got {most}")
    return draw_uniform(stream, (), -most, most, dtypes.float32)


def _between(who, stream, lower, upper):
    if not 0 <= lower < upper:
        raise InvalidArgumentError(
            f"{who}: lower must be 0 or more and below upper, got {lower} and {upper}"
        )
    return draw_uniform(stream, (), lower, upper, dtypes.float32)


# ----------------------------------------------------------------------- flips and crops


def random_flip_left_right(image: TensorLike, seed: IntLike | None = None) -> Tensor:
    """Flip each image horizontally with probability 1/2.

    Args:
        image: Image or batch of images, ``[height, width, channels]`` or
            ``[batch, height, width, channels]``.
        seed: Integer seed of a separate stream that advances from call to call, or None
            to draw from the global generator.

    Shapes:
        ``[height, width, channels]`` or ``[batch, height, width, channels]``.

    Example:
        >>> flipped = tw.image.random_flip_left_right([[[1], [2]]])
        >>> flipped.numpy().ravel().tolist() in ([1, 2], [2, 1])
        True
    """
    return _flipped("random_flip_left_right", one_stream(seed), image, -2)


def stateless_random_flip_left_right(image: TensorLike, seed: TensorLike) -> Tensor:
    """`random_flip_left_right` as a pure function of ``seed``.

    Args:
        image: Image or batch of images, ``[height, width, channels]`` or
            ``[batch, height, width, channels]``.
        seed: Two integers; the same seed always returns the same result.
    """
    who = "stateless_random_flip_left_right"
    return _flipped(who, stateless_stream(who, seed), image, -2)


def random_flip_up_down(image: TensorLike, seed: IntLike | None = None) -> Tensor:
    """Flip each image vertically with probability 1/2.

    Args:
        image: Image or batch of images, ``[height, width, channels]`` or
            ``[batch, height, width, channels]``.
        seed: Integer seed of a separate stream that advances from call to call, or None
            to draw from the global generator.

    Shapes:
        ``[height, width, channels]`` or ``[batch, height, width, channels]``.

    Example:
        >>> tw.image.random_flip_up_down([[[1]], [[2]]]).shape
        TensorShape([2, 1, 1])
    """
    return _flipped("random_flip_up_down", one_stream(seed), image, -3)


def stateless_random_flip_up_down(image: TensorLike, seed: TensorLike) -> Tensor:
    """`random_flip_up_down` as a pure function of ``seed``.

    Args:
        image: Image or batch of images, ``[height, width, channels]`` or
            ``[batch, height, width, channels]``.
        seed: Two integers; the same seed always returns the same result.
    """
    who = "stateless_random_flip_up_down"
    return _flipped(who, stateless_stream(who, seed), image, -3)


def _flipped(who, stream, image, axis):
    x = checked_images(who, image)
    each = tuple(x.shape)[:-3]
    drawn = draw_uniform(stream, each, 0.0, 1.0, dtypes.float32)
    return where(reshape(less(drawn, 0.5), (*each, 1, 1, 1)), reverse(x, axis), x)


def random_crop(
    value: TensorLike,
    size: ShapeLike,
    seed: IntLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Crop a random block of shape ``size`` from ``value``.

    Args:
        value: Tensor of any rank.
        size: Shape of the result: one number per axis, not larger than the axis.
        seed: Integer seed of a separate stream that advances from call to call, or None
            to draw from the global generator.

    Raises:
        ShapeError: If ``size`` does not have one number for each axis, or is larger
            than an axis.

    Example:
        >>> tw.image.random_crop([[1, 2, 3], [4, 5, 6]], (1, 3)).shape
        TensorShape([1, 3])
    """
    return _cropped("random_crop", one_stream(seed), value, size)


def stateless_random_crop(
    value: TensorLike, size: ShapeLike, seed: TensorLike, name: str | None = None
) -> Tensor:
    """`random_crop` as a pure function of ``seed``.

    Args:
        value: Tensor of any rank.
        size: Shape of the result: one number per axis, not larger than the axis.
        seed: Two integers; the same seed always returns the same result.

    Example:
        >>> x = [[1, 2, 3], [4, 5, 6]]
        >>> tw.image.stateless_random_crop(x, (1, 2), seed=[1, 2]).shape
        TensorShape([1, 2])
    """
    who = "stateless_random_crop"
    return _cropped(who, stateless_stream(who, seed), value, size)


def _cropped(who, stream, value, size):
    x, size = convert_to_tensor(value), as_shape(size)
    if len(size) != len(x.shape) or any(
        [n < 0 or n > full for n, full in zip(size, x.shape)]
    ):
        raise ShapeError(who, f"size {size} must have one number for each axis of value, "
                         "from 0 to its size", value=x)  # fmt: skip
    if not size:
        return x
    counts = stack([cast(full - n + 1, "int32") for n, full in zip(size, x.shape)])
    drawn = draw_uniform(stream, (len(size),), 0, 2**31 - 1, dtypes.int32)
    starts = floormod(drawn, counts)
    for axis, (n, full) in enumerate(zip(size, x.shape)):
        if n != full:
            picks = getitem(starts, axis) + arange(n, dtype=dtypes.int32)
            x = gather(x, picks, axis=axis)
    return x
