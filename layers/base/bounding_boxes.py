"""Bounding boxes: convert between formats, and transform boxes together with images.

In the default format, "xyxy", a box is ``(left, top, right, bottom)`` in pixels.
"""

from __future__ import annotations

import math
from typing import Any

from tapewright.core.errors import ShapeError
from tapewright.core.messages.argument_validation import one_of
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import DTypeLike, TensorLike
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.joining import concat, split, stack, unstack
from tapewright.ops.array.shape import expand_dims
from tapewright.ops.math.comparison import greater, where
from tapewright.ops.math.elementwise import clip_by_value
from tapewright.ops.math.reduction import reduce_max, reduce_min
from tapewright.ops.math.trigonometry import cos, sin, tan

FORMATS = (
    "xyxy",
    "yxyx",
    "xywh",
    "center_xywh",
    "center_yxhw",
    "rel_xyxy",
    "rel_yxyx",
    "rel_xywh",
    "rel_center_xywh",
)


def convert_format(
    boxes: Any,
    source: str,
    target: str,
    height: TensorLike | None = None,
    width: TensorLike | None = None,
    dtype: DTypeLike = "float32",
) -> Any:
    """Convert bounding boxes from one format to another.

    Formats are "xyxy" (left, top, right, bottom), "yxyx" (top, left, bottom, right),
    "xywh" (left, top, width, height), "center_xywh" (center x, center y, width, height)
    and "center_yxhw", all in pixels. All but the last also exist relative to the image
    size: "rel_xyxy", "rel_yxyx" and so on. Format names are case-insensitive.

    Args:
        boxes: Tensor of boxes, or a dict with the boxes under ``"boxes"``; a dict is
            copied.
        source: Format of ``boxes``.
        target: Format to convert to.
        height: Height of the image; required if one of the formats is relative.
        width: Width of the image; required if one of the formats is relative.
        dtype: Dtype of the result.

    Shapes:
        Boxes ``[..., 4]``; the result has the same shape.

    Raises:
        ValueError: If a format is unknown, or is relative and the image size is
            missing.
        ShapeError: If the last axis of ``boxes`` does not have size 4.

    Example:
        >>> convert_format = keras.utils.bounding_boxes.convert_format
        >>> convert_format([[10, 20, 30, 50]], "xyxy", "xywh").numpy()
        array([[10., 20., 20., 30.]], dtype=float32)
    """
    who = "convert_format"
    if isinstance(boxes, dict):
        converted = convert_format(boxes["boxes"], source, target, height, width, dtype)
        return boxes | {"boxes": converted}
    source = one_of(who, "source", source.lower(), FORMATS)
    target = one_of(who, "target", target.lower(), FORMATS)
    relative = [name.startswith("rel_") for name in (source, target)]
    if any(relative) and (height is None or width is None):
        raise ValueError(
            f"{who}: height and width must be given to convert from {source!r} to "
            f"{target!r}, got {height} and {width}"
        )
    boxes = _checked(who, cast(boxes, dtype))
    if source == target:
        return boxes
    corners = _corners(source.removeprefix("rel_"), *split(boxes, 4, axis=-1))
    if relative[0] != relative[1]:  # the sizes may differ from image to image
        width, height = cast(width, dtype), cast(height, dtype)
    if relative[0] and not relative[1]:
        x1, y1, x2, y2 = corners
        corners = x1 * width, y1 * height, x2 * width, y2 * height
    numbers = _from_corners(target.removeprefix("rel_"), *corners)
    if relative[1] and not relative[0]:
        sizes = {"x": width, "w": width, "y": height, "h": height}
        axes = target.rpartition("_")[2]
        numbers = [n / sizes[axis] for n, axis in zip(numbers, axes)]
    return concat(numbers, axis=-1)


def _corners(source, a, b, c, d):
    """Return ``(left, top, right, bottom)``."""
    if source.endswith(("yxyx", "yxhw")):
        a, b, c, d = b, a, d, c
    if source.startswith("center_"):
        return a - c / 2.0, b - d / 2.0, a + c / 2.0, b + d / 2.0
    return (a, b, a + c, b + d) if source == "xywh" else (a, b, c, d)


def _from_corners(target, x1, y1, x2, y2):
    if target.startswith("center_"):
        w, h = x2 - x1, y2 - y1
        x, y = x1 + w / 2.0, y1 + h / 2.0
        return (x, y, w, h) if target == "center_xywh" else (y, x, h, w)
    if target == "xywh":
        return x1, y1, x2 - x1, y2 - y1
    return (x1, y1, x2, y2) if target == "xyxy" else (y1, x1, y2, x2)


def _checked(who, boxes):
    boxes = convert_to_tensor(boxes)
    if not boxes.shape.rank or boxes.shape[-1] != 4:
        raise ShapeError(who, "boxes must be [..., 4]", boxes=boxes)
    return boxes


def clip_to_image_size(
    bounding_boxes: dict[str, Any],
    height: TensorLike | None = None,
    width: TensorLike | None = None,
    bounding_box_format: str = "xyxy",
) -> dict[str, Any]:
    """Clip boxes to the image; the label of a box outside the image becomes -1.

    Args:
        bounding_boxes: Dict with ``"boxes"`` and, optionally, ``"labels"``.
        height: Height of the image; required for "xyxy".
        width: Width of the image; required for "xyxy".
        bounding_box_format: "xyxy" or "rel_xyxy".

    Shapes:
        Boxes ``[..., n, 4]``, labels ``[..., n]``.

    Returns:
        Dict with the same keys.

    Raises:
        ValueError: If the format is another one, or "xyxy" and the image size is
            missing.

    Example:
        >>> boxes = {"boxes": [[-5.0, 2.0, 5.0, 4.0], [9.0, 9.0, 12.0, 12.0]], "labels": [1, 2]}
        >>> clipped = keras.utils.bounding_boxes.clip_to_image_size(boxes, height=8, width=8)
        >>> clipped["boxes"].numpy().tolist(), clipped["labels"].numpy().tolist()
        ([[0.0, 2.0, 5.0, 4.0], [8.0, 8.0, 8.0, 8.0]], [1, -1])
    """
    who = "clip_to_image_size"
    one_of(who, "bounding_box_format", bounding_box_format, ("xyxy", "rel_xyxy"))
    if bounding_box_format == "rel_xyxy":
        height = width = 1
    elif height is None or width is None:
        raise ValueError(
            f"{who}: height and width must be given for the format 'xyxy', got {height} "
            f"and {width}"
        )
    boxes = _checked(who, bounding_boxes["boxes"])
    boxes = _clipped(boxes, height, width)
    x1, y1, x2, y2 = unstack(boxes, axis=-1)
    clipped = bounding_boxes | {"boxes": boxes}
    if bounding_boxes.get("labels") is not None:
        labels = convert_to_tensor(bounding_boxes["labels"])
        visible = greater((x2 - x1) * (y2 - y1), cast(0, boxes.dtype))
        for _ in range(len(labels.shape) - len(visible.shape)):
            visible = expand_dims(visible, -1)
        clipped["labels"] = where(visible, labels, cast(-1, labels.dtype))
    return clipped


def _clipped(boxes, height, width):
    zero, sizes = cast(0, boxes.dtype), [cast(n, boxes.dtype) for n in (width, height)]
    numbers = zip(unstack(boxes, axis=-1), sizes * 2)
    return stack([clip_by_value(n, zero, size) for n, size in numbers], axis=-1)


def _only_xyxy(who, bounding_box_format):
    if bounding_box_format != "xyxy":
        raise NotImplementedError(
            f"{who}: bounding_box_format must be 'xyxy', got {bounding_box_format!r}; "
            "convert the boxes with convert_format first"
        )


def crop(
    boxes: TensorLike,
    top: TensorLike,
    left: TensorLike,
    height: TensorLike,
    width: TensorLike,
    bounding_box_format: str = "xyxy",
) -> Tensor:
    """Shift boxes into a crop of the image, and clip them to the crop.

    Args:
        boxes: Boxes in the whole image.
        top: First row of the crop.
        left: First column of the crop.
        height: Height of the crop.
        width: Width of the crop.
        bounding_box_format: Must be "xyxy".

    Shapes:
        Boxes ``[..., 4]``; the result has the same shape.

    Raises:
        NotImplementedError: If the format is not "xyxy".

    Example:
        >>> boxes = [[10.0, 20.0, 50.0, 60.0]]
        >>> crop = keras.utils.bounding_boxes.crop
        >>> crop(boxes, top=10, left=20, height=40, width=30).numpy()
        array([[ 0., 10., 30., 40.]], dtype=float32)
    """
    _only_xyxy("crop", bounding_box_format)
    return _clipped(_moved("crop", boxes, -top, -left), height, width)


def pad(
    boxes: TensorLike,
    top: TensorLike,
    left: TensorLike,
    height: TensorLike | None = None,
    width: TensorLike | None = None,
    bounding_box_format: str = "xyxy",
) -> Tensor:
    """Shift boxes to their positions in a padded image.

    Args:
        boxes: Boxes in the image before padding.
        top: Number of rows added above.
        left: Number of columns added on the left.
        height: Ignored.
        width: Ignored.
        bounding_box_format: Must be "xyxy".

    Shapes:
        Boxes ``[..., 4]``; the result has the same shape.

    Raises:
        NotImplementedError: If the format is not "xyxy".

    Example:
        >>> keras.utils.bounding_boxes.pad([[10.0, 20.0, 50.0, 60.0]], top=1, left=2).numpy()
        array([[12., 21., 52., 61.]], dtype=float32)
    """
    _only_xyxy("pad", bounding_box_format)
    return _moved("pad", boxes, top, left)


def _moved(who, boxes, down, right):
    boxes = _checked(who, boxes)
    down, right = cast(down, boxes.dtype), cast(right, boxes.dtype)
    return boxes + stack([right, down, right, down])


# -------------------------------------------------------------------- affine changes


def affine_transform(
    boxes: TensorLike,
    angle: TensorLike,
    translate_x: TensorLike,
    translate_y: TensorLike,
    scale: TensorLike,
    shear_x: TensorLike,
    shear_y: TensorLike,
    height: TensorLike,
    width: TensorLike,
    center_x: TensorLike | None = None,
    center_y: TensorLike | None = None,
    bounding_box_format: str = "xyxy",
) -> Tensor:
    """Return the axis-aligned bounding boxes of affinely transformed boxes.

    The corners of each box are sheared, rotated, scaled and translated together with
    the image; the result is the smallest box that contains them.

    Args:
        boxes: Boxes in the image before the transformation.
        angle: Rotation angles, in degrees.
        translate_x: Horizontal shifts, as fractions of ``width - 1``.
        translate_y: Vertical shifts, as fractions of ``height - 1``.
        scale: Scale factors.
        shear_x: Horizontal shear angles, in degrees.
        shear_y: Vertical shear angles, in degrees.
        height: Height of the image.
        width: Width of the image.
        center_x: Horizontal center of rotation, as a fraction of the width; 0.5 by
            default.
        center_y: Vertical center of rotation, as a fraction of the height; 0.5 by
            default.
        bounding_box_format: Must be "xyxy".

    Shapes:
        Boxes ``[batch, n, 4]``, the numbers ``[batch]``; the result has the shape of
        ``boxes``.

    Raises:
        NotImplementedError: If the format is not "xyxy".
        ShapeError: If the shapes differ from these.

    Example:
        >>> still = dict(translate_x=[0.0], translate_y=[0.0], scale=[1.0])
        >>> still |= dict(shear_x=[0.0], shear_y=[0.0], height=11, width=11)
        >>> transform = keras.utils.bounding_boxes.affine_transform
        >>> transform([[[1.0, 0.0, 4.0, 2.0]]], [90.0], **still).numpy().round(3) + 0
        array([[[0., 6., 2., 9.]]], dtype=float32)
    """
    who = "affine_transform"
    _only_xyxy(who, bounding_box_format)
    boxes = cast(_checked(who, boxes), "float32")
    if boxes.shape.rank != 3:
        raise ShapeError(who, "boxes must be [batch, n, 4]", boxes=boxes)
    angle, tx, ty, scale, shear_x, shear_y, height, width = [
        cast(value, "float32")
        for value in (angle, translate_x, translate_y, scale, shear_x, shear_y, height,
                      width)
    ]  # fmt: skip
    cx = (0.5 if center_x is None else cast(center_x, "float32")) * (width - 1.0)
    cy = (0.5 if center_y is None else cast(center_y, "float32")) * (height - 1.0)
    tx, ty = -tx * (width - 1.0), -ty * (height - 1.0)
    degree = math.pi / 180.0
    turn, sx, sy = -angle * degree, -shear_x * degree, -shear_y * degree
    a = cos(turn - sy) / cos(sy)
    b = a * tan(sx) + sin(turn)
    c = -sin(turn - sy) / cos(sy)
    d = cos(turn) - c * tan(sx)
    a0, a1, b0, b1 = d * scale, -b * scale, -c * scale, a * scale
    a2 = cx - a0 * (cx + tx) - a1 * (cy + ty)
    b2 = cy - b0 * (cx + tx) - b1 * (cy + ty)
    a0, a1, a2, b0, b1, b2 = [expand_dims(n, -1) for n in (a0, a1, a2, b0, b1, b2)]
    return _enclosing_boxes(
        boxes, lambda x, y: (a0 * x + a1 * y + a2, b0 * x + b1 * y + b2)
    )


def pulled_back(boxes: Tensor, maps: Tensor) -> Tensor:
    """Transform boxes for an image whose pixels are sampled at the positions ``maps``.

    Shapes:
        ``boxes`` ``[batch, n, 4]``, ``maps`` ``[batch, 8]`` as in
        `keras.ops.image.affine_transform`; the result has the shape of ``boxes``.
    """
    a, b, c, d, e, f, g, h = [expand_dims(n, -1) for n in unstack(maps, axis=-1)]

    def inverse(x, y):  # by the adjugate of ((a, b, c), (d, e, f), (g, h, 1))
        k = (d * h - e * g) * x + (b * g - a * h) * y + (a * e - b * d)
        u = (e - f * h) * x + (c * h - b) * y + (b * f - c * e)
        v = (f * g - d) * x + (a - c * g) * y + (c * d - a * f)
        return u / k, v / k

    return _enclosing_boxes(boxes, inverse)


def _enclosing_boxes(boxes: Tensor, move: Any) -> Tensor:
    """Return the smallest boxes around the corners that ``move(x, y)`` returns."""
    x1, y1, x2, y2 = unstack(boxes, axis=-1)
    corners = [move(x, y) for x, y in ((x1, y1), (x2, y1), (x2, y2), (x1, y2))]
    x, y = [stack(axis, axis=-1) for axis in zip(*corners)]
    ends = reduce_min(x, -1), reduce_min(y, -1), reduce_max(x, -1), reduce_max(y, -1)
    return stack(ends, axis=-1)
