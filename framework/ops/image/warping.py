"""Resample images under an affine or projective map.

The coordinates are computed in float32 and composed of ops, so that gradients pass to
the images and, where the interpolation is bilinear, to the maps as well.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapewright.core import dtypes
from tapewright.core.errors import ShapeError
from tapewright.core.rules import check_choice
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import TensorLike

from ..array.conversion import cast
from ..array.creation import ones_like, zeros_like
from ..array.creation import range as arange
from ..array.gather import gather
from ..array.indexing import getitem
from ..array.joining import stack, unstack
from ..array.shape import expand_dims, reshape, squeeze, transpose
from ..linalg.linear_systems import solve
from ..math.comparison import equal, greater_equal, less, logical_and, where
from ..math.elementwise import abs, clip_by_value, floor, sign

FILL_MODES = ("constant", "nearest", "reflect", "wrap")
INTERPOLATIONS = ("bilinear", "nearest")


def affine_transform(
    images: TensorLike,
    transform: TensorLike,
    interpolation: str = "bilinear",
    fill_mode: str = "constant",
    fill_value: TensorLike = 0,
    data_format: str | None = None,
) -> Tensor:
    """Transform images: each output pixel is read where ``transform`` maps it.

        out[y, x] = images[(b0 x + b1 y + b2) / k, (a0 x + a1 y + a2) / k],
        k = c0 x + c1 y + 1,   transform = (a0, a1, a2, b0, b1, b2, c0, c1)

    Integer images become float32. Numbers and edges agree with TensorFlow's
    ``ImageProjectiveTransformV3``.

    Args:
        images: Images ``[batch, height, width, channels]``, or one without the batch
            axis.
        transform: Eight numbers of the map per image, or for all images.
        interpolation: "bilinear" or "nearest".
        fill_mode: Values outside the image: "constant" (``fill_value``), "nearest" (the
            edge), "reflect" (``d c b a | a b c d``) or "wrap".
        fill_value: Value outside the image for ``fill_mode="constant"``.
        data_format: "channels_last" (default) or "channels_first".

    Shapes:
        ``images`` ``[batch, height, width, channels]`` or without the batch,
        ``transform`` ``[batch, 8]``, or ``[8]`` for all.

    Example:
        >>> from tapewright.ops.image.warping import affine_transform
        >>> image = [[[1.0], [2.0], [3.0]]]
        >>> affine_transform(image, [1, 0, 1, 0, 1, 0, 0, 0]).numpy().ravel()
        array([2., 3., 0.], dtype=float32)
    """
    who = "affine_transform"
    check_choice(who, "interpolation", interpolation, INTERPOLATIONS)
    check_choice(who, "fill_mode", fill_mode, FILL_MODES)
    formats = (None, "channels_last", "channels_first")
    check_choice(who, "data_format", data_format, formats)
    images, transform = convert_to_tensor(images), convert_to_tensor(transform)
    if not images.dtype.is_floating:
        images = cast(images, dtypes.float32)
    alone = len(images.shape) == 3
    if alone:
        images = expand_dims(images, 0)
    if len(transform.shape) == 1:
        transform = expand_dims(transform, 0)
    shapes = len(images.shape), len(transform.shape)
    if shapes != (4, 2) or transform.shape[1] != 8:
        raise ShapeError(who, "images must have rank 3 or 4 and transform be [8] or "
                         "[batch, 8]", images=images, transform=transform)  # fmt: skip
    first = data_format == "channels_first"
    if first:
        images = transpose(images, (0, 2, 3, 1))
    size = images.shape[1], images.shape[2]
    out = warped(images, transform, size, interpolation, fill_mode, fill_value)
    if first:
        out = transpose(out, (0, 3, 1, 2))
    return squeeze(out, 0) if alone else out


def warped(
    images: Tensor,
    transform: Tensor,
    size: Sequence[int],
    interpolation: str,
    fill_mode: str,
    fill_value: TensorLike,
) -> Tensor:
    """`affine_transform` of floating images, channels last, with another output ``size``.

    Shapes:
        ``[batch, height, width, channels]`` and ``[batch or 1, 8]`` to
        ``[batch, *size, channels]``.
    """
    sample = _bilinear if interpolation == "bilinear" else _nearest
    y, x, exists = _sources(transform, *size)
    return sample(images, y, x, fill_mode, cast(fill_value, images.dtype), exists)


def _sources(transform, height, width):
    """Return the source of each pixel, ``[batch, height, width]``, and whether it exists."""
    transform = cast(transform, dtypes.float32)
    a0, a1, a2, b0, b1, b2, c0, c1 = [
        reshape(getitem(transform, (slice(None), i)), (-1, 1, 1)) for i in range(8)
    ]
    x = arange(width, dtype=dtypes.float32)
    y = reshape(arange(height, dtype=dtypes.float32), (-1, 1))
    k = c0 * x + c1 * y + 1.0
    nowhere = equal(k, 0.0)
    k = where(nowhere, 1.0, k)
    return (b0 * x + b1 * y + b2) / k, (a0 * x + a1 * y + a2) / k, ~nowhere


def _nearest(images, y, x, fill_mode, fill_value, exists):
    height, width = images.shape[1:3]
    y = rounded(_inside(y, height, fill_mode))
    x = rounded(_inside(x, width, fill_mode))
    return _read(images, y, x, fill_mode, fill_value, exists)


def _bilinear(images, y, x, fill_mode, fill_value, exists):
    height, width = images.shape[1:3]
    y, x = _inside(y, height, fill_mode), _inside(x, width, fill_mode)
    top, left = floor(y), floor(x)
    down, right = [expand_dims(cast(v, images.dtype), -1) for v in (y - top, x - left)]
    rows = []
    for row in (top, top + 1.0):
        at_left = _read(images, row, left, fill_mode, fill_value, exists)
        at_right = _read(images, row, left + 1.0, fill_mode, fill_value, exists)
        rows.append((1.0 - right) * at_left + right * at_right)
    return (1.0 - down) * rows[0] + down * rows[1]


def _read(images, y, x, fill_mode, fill_value, exists):
    """Read the pixels at whole coordinates; ``fill_value`` outside the image."""
    batch, height, width, channels = images.shape
    row = cast(clip_by_value(y, 0.0, _number(height) - 1.0), dtypes.int64)
    column = cast(clip_by_value(x, 0.0, _number(width) - 1.0), dtypes.int64)
    flat = reshape(images, (batch, height * width, channels))
    size = tuple(row.shape)[1:]
    indices = reshape(row * width + column, (-1, size[0] * size[1]))
    if indices.shape[0] != batch:  # one transform for all images
        pixels = gather(flat, reshape(indices, (size[0] * size[1],)), axis=1)
    else:
        pixels = gather(flat, indices, batch_dims=1)
    pixels = reshape(pixels, (batch, *size, channels))
    if fill_mode == "constant":
        for at, size in ((y, height), (x, width)):
            within = logical_and(greater_equal(at, 0.0), less(at, _number(size)))
            exists = logical_and(exists, within)
    return where(expand_dims(exists, -1), pixels, fill_value)


def _number(size):
    return cast(size, dtypes.float32)


def rounded(x):
    """Round to the nearest whole number, half away from 0."""
    size = abs(x)
    whole = floor(size)
    return sign(x) * where(greater_equal(size - whole, 0.5), whole + 1.0, whole)


def _inside(x, size, fill_mode):
    """Map coordinates to the position in the image from which ``fill_mode`` continues it."""
    size = _number(size)
    if fill_mode == "constant":
        return clip_by_value(x, -2.0, size + 1.0)  # so that they stay whole numbers
    if fill_mode == "reflect":
        x = _reflected(x, size)
    elif fill_mode == "wrap":
        x = _wrapped(x, size)
    return clip_by_value(x, 0.0, size - 1.0)


def _reflected(x, size):
    period = 2.0 * size
    rest = abs(x)
    rest = rest - period * floor(rest / period)
    after = where(less(rest, size), rest, period - 1.0 - rest)
    before = where(less(size, rest), period - rest, rest - 1.0)
    return where(less(x, 0.0), before, after)


def _wrapped(x, size):
    # The period is the size, but a step is made each size - 1, as TensorFlow does.
    step = where(less(1.0, size), size - 1.0, 1.0)
    before = x + size * (floor(-x / step) + 1.0)
    after = x - size * floor(x / step)
    return where(less(x, 0.0), before, where(less(size - 1.0, x), after, x))


def homography(start_points: Tensor, end_points: Tensor) -> Tensor:
    """Compute the eight numbers of the map from ``end_points`` back to ``start_points``.

    Shapes:
        The points ``[..., 4, 2]``, each (x, y), the result ``[..., 8]``, a
        ``transform`` of `affine_transform`.
    """
    x, y = unstack(end_points, axis=-1)
    u, v = unstack(start_points, axis=-1)
    one, none = ones_like(x), zeros_like(x)
    rows = [
        stack([x, y, one, none, none, none, -u * x, -u * y], -1),
        stack([none, none, none, x, y, one, -v * x, -v * y], -1),
    ]
    batch = tuple(start_points.shape)[:-2]
    system = reshape(stack(rows, -2), (*batch, 8, 8))  # from [..., point, 2, 8]
    return squeeze(solve(system, reshape(start_points, (*batch, 8, 1))), -1)
