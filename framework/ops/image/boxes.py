"""Bounding boxes: crop and resize them, extract glimpses, draw them.

A box is ``[y_min, x_min, y_max, x_max]``, as fractions of the height and width of its
image.
"""

from __future__ import annotations

from tapewright.core import dtypes
from tapewright.core.errors import DTypeError, InvalidArgumentError, ShapeError
from tapewright.core.rules import check_choice
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import ShapeLike, TensorLike, as_shape

from ..array.conversion import cast
from ..array.creation import range as arange
from ..array.gather import flat_index, gather
from ..array.indexing import getitem
from ..array.joining import stack
from ..array.shape import broadcast_to, expand_dims, reshape
from ..math.comparison import (
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    where,
)
from ..math.elementwise import (
    ceil,
    clip_by_value,
    floor,
    floormod,
    maximum,
)
from ..math.reduction import reduce_max, reduce_mean, reduce_min, reduce_std
from ..random.distributions import draw_normal, draw_uniform
from ..random.generators import one_stream
from .pixels import checked_images
from .warping import rounded

__all__ = [
    "crop_and_resize",
    "draw_bounding_boxes",
    "extract_glimpse",
]


# ----------------------------------------------------------------------------- cut out


def crop_and_resize(
    image: TensorLike,
    boxes: TensorLike,
    box_indices: TensorLike,
    crop_size: ShapeLike,
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
    name: str | None = None,
) -> Tensor:
    """Crop boxes from images and resize each to ``crop_size = (height, width)``.

    The corners of a box map to the centers of the corner pixels of the result. A box
    with ``y1 > y2`` or ``x1 > x2`` is flipped.

    Args:
        image: Images ``[batch, height, width, channels]``.
        boxes: Boxes ``[n, 4]``, each ``[y1, x1, y2, x2]`` as fractions of the image.
        box_indices: Index ``[n]`` of the image of each box.
        crop_size: Height and width of the results.
        method: "bilinear", with gradients for ``image`` and ``boxes``, or "nearest",
            with a gradient for ``image`` only.
        extrapolation_value: Value of points outside the image.

    Shapes:
        ``image`` ``[batch, height, width, channels]``, ``boxes`` ``[n, 4]``,
        ``box_indices`` ``[n]``, result ``[n, crop_height, crop_width, channels]``,
        float32.

    Raises:
        ValueError: If ``crop_size`` or ``method`` is invalid.
        ShapeError: If the shapes do not match.
        IndexError: If a box index is out of range.

    Example:
        >>> image = [[[[0.0], [2.0]], [[4.0], [6.0]]]]
        >>> tw.image.crop_and_resize(image, [[0, 0, 1, 1]], [0], (3, 2)).numpy()[0, ..., 0]
        array([[0., 2.],
               [2., 4.],
               [4., 6.]], dtype=float32)
    """
    crops = crop_in_double(
        image, boxes, box_indices, crop_size, method, extrapolation_value
    )
    return cast(crops, dtypes.float32)


def crop_in_double(
    image, boxes, box_indices, crop_size, method="bilinear", extrapolation_value=0.0
):
    """`crop_and_resize` that computes float64 images in float64."""
    who = "crop_and_resize"
    check_choice(who, "method", method, ("bilinear", "nearest"))
    x = checked_images(who, image, ranks=(4,))
    boxes, owners = convert_to_tensor(boxes), convert_to_tensor(box_indices)
    if len(boxes.shape) != 2 or boxes.shape[1] != 4 or len(owners.shape) != 1:
        raise ShapeError(who, "boxes must be [n, 4] and box_indices [n]", boxes=boxes,
                         box_indices=owners)  # fmt: skip
    crop_size = as_shape(crop_size)
    if len(crop_size) != 2 or min(crop_size) < 1:
        raise InvalidArgumentError(
            f"{who}: crop_size must be two positive numbers, got {crop_size}"
        )
    x, boxes = (v if v.dtype == dtypes.float64 else cast(v, dtypes.float32)
                for v in (x, boxes))  # fmt: skip
    y1, x1, y2, x2 = (getitem(boxes, (slice(None), slice(i, i + 1))) for i in range(4))
    rows, above = _coordinates(y1, y2, crop_size[0], x.shape[1])
    columns, beside = _coordinates(x1, x2, crop_size[1], x.shape[2])

    def read(row, column):
        return _pixels(who, x, owners, row, column)

    if method == "nearest":
        crops = read(rounded(rows), rounded(columns))
    else:
        top, left = floor(rows), floor(columns)
        down = reshape(cast(rows - top, x.dtype), (-1, crop_size[0], 1, 1))
        right = reshape(cast(columns - left, x.dtype), (-1, 1, crop_size[1], 1))
        across = []
        for row in (top, ceil(rows)):
            first = read(row, left)
            across.append(first + (read(row, ceil(columns)) - first) * right)
        crops = across[0] + (across[1] - across[0]) * down
    inside = expand_dims(above, 2) & expand_dims(beside, 1)
    return where(expand_dims(inside, 3), crops, cast(extrapolation_value, x.dtype))


def _coordinates(first, last, count, size):
    """Return coordinates ``[n, count]`` from ``first`` to ``last``, and which of them exist."""
    end = cast(size, first.dtype) - 1.0
    if count > 1:
        step = (last - first) * end / float(count - 1)
        coordinates = first * end + arange(count, dtype=first.dtype) * step
    else:
        coordinates = (first + last) * end * 0.5
    exist = greater_equal(coordinates, 0.0) & less_equal(coordinates, end)
    return where(exist, coordinates, 0.0), exist


def _pixels(who, images, owners, rows, columns):
    """Return pixels ``[n, height, width, channels]`` at whole rows and columns of images."""
    batch, height, width, channels = images.shape
    rows, columns = (cast(v, dtypes.int64) for v in (rows, columns))
    shape = (*rows.shape, columns.shape[1])
    axes = reshape(cast(owners, dtypes.int64), (-1, 1, 1)), expand_dims(rows, 2)
    coordinates = [broadcast_to(v, shape) for v in (*axes, expand_dims(columns, 1))]
    index = flat_index(stack(coordinates, -1), dims=(batch, height, width), who=who)
    return gather(reshape(images, (batch * height * width, channels)), index)


def extract_glimpse(
    input: TensorLike,
    size: ShapeLike,
    offsets: TensorLike,
    centered: bool = True,
    normalized: bool = True,
    noise: str = "uniform",
    name: str | None = None,
) -> Tensor:
    """Extract a window (glimpse) from each image; areas outside the image are noise.

    Args:
        input: Images ``[batch, height, width, channels]``, floating.
        size: Height and width of the windows.
        offsets: Position ``(y, x)`` of each window, ``[batch, 2]``. With ``normalized``
            and ``centered``, the window's center from -1 to 1; with ``normalized``
            only, its upper left corner from 0 to 1; with ``centered`` only, its corner
            in pixels from the image's center; with neither, in pixels from the image's
            corner.
        centered: If True, offsets are relative to the center of the image.
        normalized: If True, offsets are fractions of the image, otherwise pixels.
        noise: "uniform" between the extremes of the image, "gaussian" with mean and
            standard deviation of each channel, both drawn from the global generator; or
            "zero".

    Shapes:
        ``input`` ``[batch, height, width, channels]``, ``offsets`` ``[batch, 2]``,
        result ``[batch, *size, channels]``.

    Raises:
        ValueError: If ``size`` or ``noise`` is invalid.
        TypeError: If the images are integers.

    Example:
        >>> image = [[[[1.0], [2.0]], [[3.0], [4.0]]]]
        >>> pixels = {"centered": False, "normalized": False, "noise": "zero"}
        >>> tw.image.extract_glimpse(image, (2, 2), [[1, 1]], **pixels).numpy().ravel()
        array([4., 0., 0., 0.], dtype=float32)
    """
    who = "extract_glimpse"
    check_choice(who, "noise", noise, ("uniform", "gaussian", "zero"))
    x, offsets = _floating_images(who, "input", input), convert_to_tensor(offsets)
    if len(offsets.shape) != 2 or offsets.shape[1] != 2:
        raise ShapeError(who, "offsets must be [batch, 2]", offsets=offsets)
    size = as_shape(size)
    if len(size) != 2 or size[0] < 1 or size[1] < 1:
        raise InvalidArgumentError(
            f"{who}: size must be two positive numbers, got {size}"
        )
    batch, channels, spots, exist = x.shape[0], x.shape[3], [], []
    for axis, count in enumerate(size):
        full = cast(x.shape[axis + 1], dtypes.float32)
        start = cast(getitem(offsets, (slice(None), slice(axis, axis + 1))), full.dtype)
        if normalized:
            start = start * full
        if centered:
            start = start / 2.0 - count / 2.0 if normalized else start
            start = start + full / 2.0
        start = cast(clip_by_value(start, -count - 1.0, full), dtypes.int32)
        spot = start + arange(count, dtype=dtypes.int32)
        last = cast(full, dtypes.int32) - 1
        exist.append(greater_equal(spot, 0) & less_equal(spot, last))
        spots.append(clip_by_value(spot, 0, last))
    pixels = _pixels(who, x, arange(batch), *spots)
    inside = expand_dims(expand_dims(exist[0], 2) & expand_dims(exist[1], 1), 3)
    return where(inside, pixels, _noise(x, (batch, *size, channels), noise))


def _floating_images(who, name, images):
    x = checked_images(who, images, name, ranks=(4,))
    if not x.dtype.is_floating:
        raise DTypeError(who, f"{name} must be floating", **{name: x})
    return x


def _noise(x, shape, noise):
    if noise == "zero":
        return cast(0.0, x.dtype)
    if noise == "uniform":
        low, high = (f(x, (1, 2, 3), True) for f in (reduce_min, reduce_max))
        return (
            draw_uniform(one_stream(None), shape, 0.0, 1.0, x.dtype) * (high - low)
            + low
        )
    mean, deviation = (f(x, (1, 2), True) for f in (reduce_mean, reduce_std))
    return draw_normal(one_stream(None), shape, 0.0, 1.0, x.dtype) * deviation + mean


# ------------------------------------------------------------------------------- drawn

# Yellow, blue, red, lime, purple, olive, maroon, navy, aqua, fuchsia; RGBA.
_COLORS = [
    [1, 1, 0, 1], [0, 0, 1, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0.5, 0, 0.5, 1],
    [0.5, 0.5, 0, 1], [0.5, 0, 0, 1], [0, 0, 0.5, 1], [0, 1, 1, 1], [1, 0, 1, 1],
]  # fmt: skip


def draw_bounding_boxes(
    images: TensorLike,
    boxes: TensorLike,
    colors: TensorLike | None,
    name: str | None = None,
) -> Tensor:
    """Draw the outlines of bounding boxes on images, one pixel wide.

    Parts outside the image are not drawn, nor are boxes with a minimum above their
    maximum. Later boxes are drawn over earlier ones.

    Args:
        images: Images ``[batch, height, width, channels]``, floating.
        boxes: Boxes ``[batch, number, 4]``, each ``[y_min, x_min, y_max, x_max]`` as
            fractions of the image.
        colors: Colors ``[n, channels or more]``, used in turn for the boxes of an
            image. None selects a palette of ten colors, and 1 for images with one
            channel.

    Shapes:
        ``images`` and result ``[batch, height, width, channels]``, ``boxes``
        ``[batch, number, 4]``.

    Raises:
        TypeError: If the images are integers.
        ShapeError: If the shapes are invalid.

    Example:
        >>> images = tw.zeros([1, 3, 4, 1])
        >>> drawn = tw.image.draw_bounding_boxes(images, [[[0, 0, 1, 1]]], [[1.0]])
        >>> drawn.numpy()[0, ..., 0]
        array([[1., 1., 1., 1.],
               [1., 0., 0., 1.],
               [1., 1., 1., 1.]], dtype=float32)
    """
    who = "draw_bounding_boxes"
    x, boxes = _floating_images(who, "images", images), convert_to_tensor(boxes)
    if len(boxes.shape) != 3 or boxes.shape[2] != 4:
        raise ShapeError(who, "boxes must be [batch, number, 4]", boxes=boxes)
    height, width, channels = x.shape[1:]
    colors = _palette(who, x, colors)
    y1, x1, y2, x2 = (cast(getitem(boxes, (..., i)), dtypes.float32) for i in range(4))
    top, down = (_pixel(v, height) for v in (y1, y2))
    left, right = (_pixel(v, width) for v in (x1, x2))
    rows = reshape(arange(height, dtype=dtypes.float32), (-1, 1))
    columns = arange(width, dtype=dtypes.float32)
    along = greater_equal(rows, top) & less_equal(rows, down)
    across = greater_equal(columns, left) & less_equal(columns, right)
    edge = (equal(rows, top) | equal(rows, down)) & across
    edge = edge | ((equal(columns, left) | equal(columns, right)) & along)
    edge = edge & less_equal(top, down) & less_equal(left, right)
    number = arange(1, boxes.shape[1] + 1)  # of the last box that covers a pixel
    number = reduce_max(where(edge, reshape(number, (-1, 1, 1)), 0), 1)
    covered = expand_dims(greater(number, 0), -1)
    chosen = floormod(maximum(number - 1, 0), cast(colors.shape[0], number.dtype))
    return where(covered, gather(colors, chosen), x)


def _palette(who, x, colors):
    """Return the colors ``[n, channels]`` in the dtype of the images."""
    channels = x.shape[-1]
    if channels not in (1, 3, 4):
        raise ShapeError(who, "images must have 1, 3 or 4 channels", images=x)
    if colors is None:
        colors = [[1.0]] if channels == 1 else _COLORS
    colors = cast(colors, x.dtype)
    if len(colors.shape) != 2 or not colors.shape[0] or colors.shape[1] < channels:
        raise ShapeError(who, f"colors must be [n, {channels} or more]", colors=colors)
    return getitem(colors, (slice(None), slice(channels)))


def _pixel(part, size):
    """Return the row or column at a fraction of the height or width, rounded down."""
    at = part * (cast(size, part.dtype) - 1.0)
    return reshape(where(less(at, 0.0), ceil(at), floor(at)), (*part.shape, 1, 1))
