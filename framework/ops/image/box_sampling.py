"""Random boxes that cover a part of an object, for cropping.

All attempts are drawn at once, and the first one that fits is used, so that the
function can be traced and no draw depends on other draws.
"""

from __future__ import annotations

from collections.abc import Sequence

from tapewright.core import dtypes
from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.hardware import devices
from tapewright.core.rules import check_at_least
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import IntLike, TensorLike

from ..array.conversion import cast
from ..array.gather import gather
from ..array.indexing import argmax, getitem
from ..array.joining import stack
from ..array.shape import expand_dims, reshape
from ..math.comparison import greater, greater_equal, less, less_equal, where
from ..math.elementwise import divide_no_nan, floor, maximum, minimum, round, sqrt
from ..math.reduction import reduce_any
from ..random.distributions import draw_uniform, has_value
from ..random.generators import one_stream, stateless_stream

__all__ = [
    "sample_distorted_bounding_box",
    "stateless_sample_distorted_bounding_box",
]


def sample_distorted_bounding_box(
    image_size: TensorLike,
    bounding_boxes: TensorLike,
    seed: IntLike = 0,
    min_object_covered: TensorLike = 0.1,
    aspect_ratio_range: Sequence[float] | None = None,
    area_range: Sequence[float] | None = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Sample a random crop box that covers a part of one of the ``bounding_boxes``.

    Of ``max_attempts`` random boxes, the first one that satisfies all conditions is
    returned, or else the whole image.

    Args:
        image_size: Size of the image, ``(height, width, channels)``.
        bounding_boxes: Boxes of the objects, ``[batch, n, 4]``, each
            ``[y_min, x_min, y_max, x_max]`` from 0 to 1.
        seed: Integer seed of a separate stream that advances from call to call; 0 draws
            from the global generator.
        min_object_covered: Fraction of at least one object that the result must cover.
        aspect_ratio_range: Range of the ratio width / height, (0.75, 1.33) by default.
        area_range: Range of the area as a fraction of the image, (0.05, 1) by default.
        max_attempts: Number of boxes to try, 100 by default.
        use_image_if_no_bounding_boxes: If True and there are no boxes, the whole image
            counts as one.

    Shapes:
        ``image_size`` ``[3]``, integers; ``bounding_boxes`` ``[batch, n, 4]``.

    Returns:
        ``(begin, size, bboxes)``: ``[top, left, 0]`` and ``[height, width, -1]`` in the
        dtype of ``image_size``, for `tw.slice`; and the box ``[1, 1, 4]``, float32, for
        `crop_and_resize`, which returns a known size in traced functions.

    Raises:
        ValueError: If a box is not inside the image, there are no boxes, or a range is
            invalid.

    Example:
        >>> boxes = [[[0, 0, 1, 1]]]
        >>> begin, size, _ = tw.image.sample_distorted_bounding_box([20, 30, 3], boxes)
        >>> bool((begin + size).numpy()[0] <= 20)
        True
    """
    return _sampled(
        "sample_distorted_bounding_box", one_stream(int(seed) or None), image_size,
        bounding_boxes, min_object_covered, aspect_ratio_range, area_range, max_attempts,
        use_image_if_no_bounding_boxes,
    )  # fmt: skip


def stateless_sample_distorted_bounding_box(
    image_size: TensorLike,
    bounding_boxes: TensorLike,
    seed: TensorLike,
    min_object_covered: TensorLike = 0.1,
    aspect_ratio_range: Sequence[float] | None = None,
    area_range: Sequence[float] | None = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """`sample_distorted_bounding_box` as a pure function of ``seed``.

    Args:
        image_size: Size of the image, ``(height, width, channels)``.
        bounding_boxes: Boxes of the objects, ``[batch, n, 4]``, each
            ``[y_min, x_min, y_max, x_max]`` from 0 to 1.
        seed: Two integers; the same seed always returns the same result.
        min_object_covered: Fraction of at least one object that the result must cover.
        aspect_ratio_range: Range of the ratio width / height, (0.75, 1.33) by default.
        area_range: Range of the area as a fraction of the image, (0.05, 1) by default.
        max_attempts: Number of boxes to try, 100 by default.
        use_image_if_no_bounding_boxes: If True and there are no boxes, the whole image
            counts as one.

    Shapes:
        ``image_size`` ``[3]``, integers; ``bounding_boxes`` ``[batch, n, 4]``.

    Returns:
        ``(begin, size, bboxes)``: ``[top, left, 0]`` and ``[height, width, -1]`` in the
        dtype of ``image_size``, for `tw.slice`; and the box ``[1, 1, 4]``, float32, for
        `crop_and_resize`, which returns a known size in traced functions.

    Raises:
        ValueError: If a box is not inside the image, there are no boxes, or a range is
            invalid.
    """
    who = "stateless_sample_distorted_bounding_box"
    return _sampled(
        who, stateless_stream(who, seed), image_size, bounding_boxes,
        min_object_covered, aspect_ratio_range, area_range, max_attempts,
        use_image_if_no_bounding_boxes,
    )  # fmt: skip


def _sampled(
    who, stream, image_size, boxes, min_object_covered, aspect_ratio_range, area_range,
    max_attempts, use_image,
):  # fmt: skip
    image_size = convert_to_tensor(image_size)
    if tuple(image_size.shape) != (3,) or not image_size.dtype.is_integer:
        raise ShapeError(who, "image_size must be [3], integers", image_size=image_size)
    ratios = _range(who, "aspect_ratio_range", aspect_ratio_range, (0.75, 1.33), None)
    areas = _range(who, "area_range", area_range, (0.05, 1.0), 1.0)
    attempts = 100 if max_attempts is None else int(max_attempts)
    check_at_least(who, 1, max_attempts=attempts)
    objects = _objects(who, boxes, use_image)
    extent = [cast(getitem(image_size, i), dtypes.float32) for i in range(2)]
    drawn = draw_uniform(stream, (4, attempts), 0.0, 1.0, dtypes.float32)
    boxes, fit = _candidates(drawn, extent, ratios, areas)
    fit = fit & _cover(boxes, objects * stack(extent * 2), min_object_covered)
    first = gather(boxes, argmax(cast(fit, dtypes.int32), output_type=dtypes.int32))
    box = where(reduce_any(fit), first, stack([0.0, 0.0, *extent]))
    corner, end = getitem(box, slice(2)), getitem(box, slice(2, 4))
    begin, size = ([getitem(v, i) for i in range(2)] for v in (corner, end - corner))
    begin, size = stack([*begin, 0.0]), stack([*size, -1.0])
    parts = reshape(box / stack(extent * 2), (1, 1, 4))
    return cast(begin, image_size.dtype), cast(size, image_size.dtype), parts


def _range(who, name, given, default, most):
    low, high = (float(v) for v in (default if given is None else given))
    if not 0 < low <= high or (most is not None and high > most):
        raise InvalidArgumentError(
            f"{who}: {name} must be two positive numbers"
            f"{'' if most is None else f' up to {most:g}'}, the smaller first, got {given}"
        )
    return low, high


def _objects(who, boxes, use_image):
    """Return the boxes ``[n, 4]``; the box of the whole image if there are none."""
    boxes = cast(boxes, dtypes.float32)
    if len(boxes.shape) != 3 or boxes.shape[2] != 4:
        raise ShapeError(
            who, "bounding_boxes must be [batch, n, 4]", bounding_boxes=boxes
        )
    if 0 in tuple(boxes.shape):
        if not use_image:
            raise InvalidArgumentError(
                f"{who}: bounding_boxes has no boxes: pass "
                "use_image_if_no_bounding_boxes=True to take the whole image"
            )
        return convert_to_tensor([[0.0, 0.0, 1.0, 1.0]])
    if has_value(boxes):
        values = devices.to_numpy(boxes.array)
        if not ((values >= 0) & (values <= 1)).all():
            raise InvalidArgumentError(
                f"{who}: bounding_boxes must be from 0 to 1, got {values}"
            )
    return reshape(boxes, (-1, 4))


def _candidates(drawn, extent, ratios, areas):
    """Return boxes ``[attempts, 4]`` in pixels, and whether their areas and sizes fit."""
    rows, columns = extent
    shares = [getitem(drawn, i) for i in range(4)]
    ratio = shares[0] * (ratios[1] - ratios[0]) + ratios[0]
    smallest, largest = (share * rows * columns for share in areas)
    lowest, highest = (round(sqrt(v / ratio)) for v in (smallest, largest))
    # The largest height whose width, rounded, is not above that of the image.
    wide = greater(round(highest * ratio), columns)
    highest = where(wide, floor((columns + 0.5 - 1e-7) / ratio), highest)
    wide = greater(round(highest * ratio), columns)
    highest = minimum(where(wide, highest - 1.0, highest), rows)
    lowest = minimum(lowest, highest)
    height = lowest + floor(shares[1] * (highest - lowest + 1.0))
    height = minimum(height, highest)
    # Rounding has changed the area.
    height = where(less(height * round(height * ratio), smallest), height + 1.0, height)
    height = where(
        greater(height * round(height * ratio), largest), height - 1.0, height
    )
    width = round(height * ratio)
    area = height * width
    fit = greater_equal(area, smallest) & less_equal(area, largest) & greater(area, 0.0)
    fit = fit & less_equal(height, rows) & less_equal(width, columns)
    top, left = floor(shares[2] * (rows - height)), floor(shares[3] * (columns - width))
    return stack([top, left, top + height, left + width], -1), fit


def _cover(boxes, objects, least):
    """Return whether each box covers a fraction ``least`` of an object of a pixel or more."""
    objects = floor(objects)
    y1, x1, y2, x2 = (expand_dims(getitem(boxes, (..., i)), 1) for i in range(4))
    top, left, down, right = (getitem(objects, (..., i)) for i in range(4))
    high = minimum(y2, down) - maximum(y1, top)
    wide = minimum(x2, right) - maximum(x1, left)
    area = (down - top) * (right - left)
    part = divide_no_nan(maximum(high, 0.0) * maximum(wide, 0.0), area)
    enough = greater_equal(part, cast(least, part.dtype)) & greater_equal(area, 1.0)
    return reduce_any(enough, 1)
