"""`keras.utils.bounding_boxes`: convert, encode and compare bounding boxes."""

from __future__ import annotations

import math
from typing import Any

from tapewright.core.errors import ShapeError
from tapewright.core.messages.argument_validation import one_of
from tapewright.core.settings.floatx import epsilon
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import TensorLike
from tapewright.layers.base.bounding_boxes import (
    affine_transform,
    clip_to_image_size,
    convert_format,
    crop,
    pad,
)
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.joining import concat, unstack
from tapewright.ops.array.shape import expand_dims
from tapewright.ops.math.comparison import less, logical_or, where
from tapewright.ops.math.elementwise import exp, log, maximum, minimum, square
from tapewright.ops.math.reduction import reduce_max
from tapewright.ops.math.trigonometry import atan

__all__ = [
    "affine_transform",
    "clip_to_image_size",
    "compute_ciou",
    "compute_iou",
    "convert_format",
    "crop",
    "decode_deltas_to_boxes",
    "encode_box_to_deltas",
    "pad",
]


# ------------------------------------------------------------------ relative to anchors


def encode_box_to_deltas(
    anchors: TensorLike,
    boxes: TensorLike,
    anchor_format: str,
    box_format: str,
    encoding_format: str = "center_yxhw",
    variance: TensorLike | None = None,
    image_shape: Any = None,
) -> Tensor:
    """Encode bounding boxes as deltas from anchors, relative to the anchor sizes.

        delta = ((center - anchor center) / anchor size, log(size / anchor size))

    Args:
        anchors: Anchor boxes.
        boxes: Boxes to encode.
        anchor_format: Format of the anchors, see `convert_format`.
        box_format: Format of the boxes, see `convert_format`.
        encoding_format: Order of the deltas: "center_yxhw" or "center_xywh".
        variance: Four numbers that divide the deltas, or None.
        image_shape: Shape of the image (height, width, channels), required for relative
            formats.

    Shapes:
        ``anchors`` ``[n, 4]``, ``boxes`` ``[n, 4]`` or ``[batch, n, 4]``, the result
        like ``boxes``.

    Raises:
        ValueError: If ``encoding_format`` is unknown.
        ShapeError: If ``variance`` does not have four entries.

    Example:
        >>> encode = keras.utils.bounding_boxes.encode_box_to_deltas
        >>> encode([[0, 0, 2, 2]], [[1, 0, 3, 2]], "xyxy", "xyxy").numpy()
        array([[0. , 0.5, 0. , 0. ]], dtype=float32)
    """
    who = "encode_box_to_deltas"
    _check_encoding(who, "encoding_format", encoding_format)
    variance, size = _variance(who, variance), _size(image_shape)
    anchors = convert_format(anchors, anchor_format, encoding_format, *size)
    boxes = convert_format(boxes, box_format, encoding_format, *size)
    anchor_size = maximum(anchors[..., 2:], epsilon())
    box_size = maximum(boxes[..., 2:], epsilon())
    moves = (boxes[..., :2] - anchors[..., :2]) / anchor_size
    deltas = concat([moves, log(box_size / anchor_size)], axis=-1)
    return deltas if variance is None else deltas / variance


def decode_deltas_to_boxes(
    anchors: Any,
    boxes_delta: Any,
    anchor_format: str,
    box_format: str,
    encoded_format: str = "center_yxhw",
    variance: TensorLike | None = None,
    image_shape: Any = None,
) -> Any:
    """Decode bounding boxes from deltas, the inverse of `encode_box_to_deltas`.

    Anchors and deltas may be dicts, by level; then the result is a dict as well.

    Args:
        anchors: Anchor boxes.
        boxes_delta: Deltas of the boxes.
        anchor_format: Format of the anchors, see `convert_format`.
        box_format: Format of the result, see `convert_format`.
        encoded_format: Order of the deltas: "center_yxhw" or "center_xywh".
        variance: Four numbers by which the deltas were divided, or None.
        image_shape: Shape of the image (height, width, channels), required for relative
            formats.

    Example:
        >>> decode = keras.utils.bounding_boxes.decode_deltas_to_boxes
        >>> decode([[0, 0, 2, 2]], [[0, 0.5, 0, 0]], "xyxy", "xyxy").numpy()
        array([[1., 0., 3., 2.]], dtype=float32)
    """
    who = "decode_deltas_to_boxes"
    _check_encoding(who, "encoded_format", encoded_format)
    variance, size = _variance(who, variance), _size(image_shape)

    def decode(anchors, deltas):
        anchors = convert_format(anchors, anchor_format, encoded_format, *size)
        deltas = cast(deltas, anchors.dtype)
        deltas = deltas if variance is None else deltas * variance
        middles = deltas[..., :2] * anchors[..., 2:] + anchors[..., :2]
        boxes = concat([middles, exp(deltas[..., 2:]) * anchors[..., 2:]], axis=-1)
        return convert_format(boxes, encoded_format, box_format, *size)

    if isinstance(anchors, dict) and isinstance(boxes_delta, dict):
        return {level: decode(anchors[level], boxes_delta[level]) for level in anchors}
    return decode(anchors, boxes_delta)


def _check_encoding(who, name, value):
    one_of(who, name, value, ("center_xywh", "center_yxhw"))


def _variance(who, variance):
    if variance is None:
        return None
    variance = convert_to_tensor(variance, dtype="float32")
    if not variance.shape.rank or variance.shape[-1] != 4:
        raise ShapeError(who, "variance must be four numbers", variance=variance)
    return variance


def _size(image_shape):
    return (None, None) if image_shape is None else tuple(image_shape)[:2]


# ---------------------------------------------------------------------------- overlaps


def compute_iou(
    boxes1: TensorLike,
    boxes2: TensorLike,
    bounding_box_format: str,
    use_masking: bool = False,
    mask_val: float = -1,
    image_shape: Any = None,
) -> Tensor:
    """Compute the intersection over union (IoU) of all pairs of bounding boxes.

    Args:
        boxes1: First boxes.
        boxes2: Second boxes.
        bounding_box_format: Format of the boxes, see `convert_format`.
        use_masking: If True, the result is ``mask_val`` for boxes with only negative
            numbers.
        mask_val: Result for masked boxes.
        image_shape: Shape of the image (height, width, channels), required for relative
            formats.

    Shapes:
        ``boxes1`` ``[m, 4]`` and ``boxes2`` ``[n, 4]`` to ``[m, n]``; a batch axis in
        front of one or both is in front of the result as well.

    Raises:
        ShapeError: If the boxes have other shapes.
        ValueError: If the format is unknown, or relative without ``image_shape``.

    Example:
        >>> boxes = [[1, 0, 3, 2], [4, 4, 5, 5]]
        >>> iou = keras.utils.bounding_boxes.compute_iou([[0, 0, 2, 2]], boxes, "xyxy")
        >>> iou.numpy().round(4)
        array([[0.3333, 0.    ]], dtype=float32)
    """
    corners = []
    for name, boxes in (("boxes1", boxes1), ("boxes2", boxes2)):
        boxes = convert_to_tensor(boxes)
        if boxes.shape.rank not in (2, 3):
            what = f"{name} must be [n, 4] or [batch, n, 4]"
            raise ShapeError("compute_iou", what, **{name: boxes})
        size = _size(image_shape)
        corners.append(convert_format(boxes, bounding_box_format, "xyxy", *size))
    first = [expand_dims(n, -1) for n in unstack(corners[0], axis=-1)]
    second = [expand_dims(n, -2) for n in unstack(corners[1], axis=-1)]
    shared = _intersection(first, second)
    union = _area(first) + _area(second) - shared
    overlaps = shared / (union + epsilon())
    if not use_masking:
        return overlaps
    empty = [less(reduce_max(each, -1), 0.0) for each in corners]
    hidden = logical_or(expand_dims(empty[0], -1), expand_dims(empty[1], -2))
    return where(hidden, cast(mask_val, overlaps.dtype), overlaps)


def compute_ciou(
    boxes1: TensorLike,
    boxes2: TensorLike,
    bounding_box_format: str,
    image_shape: Any = None,
) -> Tensor:
    """Compute the complete IoU of pairs of bounding boxes.

        ciou = iou - distance**2 / diagonal**2 - alpha v,   alpha = v / (1 - iou + v),
        v = 4 / pi**2 (atan(width2 / height2) - atan(width1 / height1))**2

    ``distance`` is the distance of the centers, ``diagonal`` the diagonal of the
    smallest box around both. Differences in centers and aspect ratios reduce the
    result.

    Args:
        boxes1: First boxes.
        boxes2: Second boxes, one per first box.
        bounding_box_format: Format of the boxes, see `convert_format`.
        image_shape: Shape of the image (height, width, channels), required for relative
            formats.

    Shapes:
        Both ``[..., 4]``, result ``[...]``.

    References:
        Zheng et al., "Distance-IoU loss: faster and better learning for bounding box
        regression" (2020).

    Example:
        >>> box = [[0, 0, 2, 2]]
        >>> ciou = keras.utils.bounding_boxes.compute_ciou(box, box, "xyxy")
        >>> ciou.numpy().round(4)
        array([1.], dtype=float32)
    """
    size, e = _size(image_shape), epsilon()
    first, second = [
        unstack(convert_format(boxes, bounding_box_format, "xyxy", *size), axis=-1)
        for boxes in (boxes1, boxes2)
    ]
    (x1, y1, x2, y2), (u1, v1, u2, v2) = first, second
    width1, height1 = x2 - x1, y2 - y1 + e
    width2, height2 = u2 - u1, v2 - v1 + e
    shared = _intersection(first, second)
    union = width1 * height1 + width2 * height2 - shared + e
    iou = shared / (union + e)
    diagonal = square(maximum(x2, u2) - minimum(x1, u1))
    diagonal = diagonal + square(maximum(y2, v2) - minimum(y1, v1)) + e
    distance = square((x1 + x2) / 2.0 - (u1 + u2) / 2.0)
    distance = distance + square((y1 + y2) / 2.0 - (v1 + v2) / 2.0)
    turn = atan(width2 / height2) - atan(width1 / height1)
    v = (4.0 / math.pi**2) * square(turn)
    alpha = v / (v - iou + (1.0 + e))
    return iou - (distance / diagonal + v * alpha)


def _intersection(first, second):
    (x1, y1, x2, y2), (u1, v1, u2, v2) = first, second
    width = maximum(minimum(x2, u2) - maximum(x1, u1), 0.0)
    return width * maximum(minimum(y2, v2) - maximum(y1, v1), 0.0)


def _area(corners):
    x1, y1, x2, y2 = corners
    return (x2 - x1) * (y2 - y1)
