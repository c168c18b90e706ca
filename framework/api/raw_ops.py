"""`tw.raw_ops`: an op of ``tf.raw_ops`` that has no public function in TensorFlow."""

from __future__ import annotations

from typing import Any

from tapewright.core.messages.argument_validation import one_of
from tapewright.core.dtypes import float32, float64
from tapewright.core.errors import InvalidArgumentError, ShapeError
from tapewright.core.tensor import Tensor, convert_to_tensor
from tapewright.core.typing import ShapeLike, TensorLike, as_shape
from tapewright.ops.array.conversion import cast
from tapewright.ops.image.warping import FILL_MODES, INTERPOLATIONS, warped

__all__ = ["ImageProjectiveTransformV3"]


def ImageProjectiveTransformV3(  # noqa: N802
    *,
    images: TensorLike,
    transforms: TensorLike,
    output_shape: ShapeLike,
    fill_value: TensorLike,
    interpolation: str,
    fill_mode: str = "CONSTANT",
    name: str | None = None,
) -> Tensor:
    """Apply projective transforms to images.

    See `tw.keras.ops.image.affine_transform` for the formula, which keeps the size.

    Args:
        images: Images ``[batch, height, width, channels]``.
        transforms: Transforms ``[batch, 8]``, or ``[1, 8]`` for all images: they map
            pixels of the result to pixels of the images.
        output_shape: Height and width of the result.
        fill_value: Value outside of the images with ``fill_mode="CONSTANT"``.
        interpolation: "BILINEAR" or "NEAREST".
        fill_mode: Values outside of the images: "CONSTANT" (``fill_value``), "NEAREST",
            "REFLECT" or "WRAP".

    Shapes:
        The result is ``[batch, *output_shape, channels]``, of the dtype of the images.
        Integers are computed in float32 and truncated.

    Raises:
        ValueError: If shapes, ``interpolation`` or ``fill_mode`` are invalid.

    Example:
        >>> tw.raw_ops.ImageProjectiveTransformV3(
        ...     images=[[[[1.0], [2.0], [3.0]]]], transforms=[[1.0, 0, 1, 0, 1, 0, 0, 0]],
        ...     output_shape=[1, 2], fill_value=0.0, interpolation="BILINEAR",
        ... ).numpy().ravel()
        array([2., 3.], dtype=float32)
    """
    who = "ImageProjectiveTransformV3"
    one_of(who, "interpolation", interpolation, [x.upper() for x in INTERPOLATIONS])
    one_of(who, "fill_mode", fill_mode, [x.upper() for x in FILL_MODES])
    images, transforms = convert_to_tensor(images), convert_to_tensor(transforms)
    if images.shape.rank != 4:
        raise ShapeError(who, "images must have rank 4", images=images)
    if transforms.shape.rank != 2 or tuple(transforms.shape) not in (
        (1, 8),
        (images.shape[0], 8),
    ):
        raise ShapeError(
            who, "transforms must be [1, 8], or [batch, 8]", images=images,
            transforms=transforms,
        )  # fmt: skip
    size = as_shape(output_shape)
    if len(size) != 2:
        raise InvalidArgumentError(
            f"{who}: output_shape must be a height and a width, got {output_shape}"
        )
    dtype = images.dtype
    floating = images if dtype in (float32, float64) else cast(images, float32)
    out = warped(
        floating, transforms, size, interpolation.lower(), fill_mode.lower(), fill_value
    )
    return cast(out, dtype)


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"module 'tapewright.raw_ops' has no attribute {name!r}: instead of "
        f"tf.raw_ops.{name}, use the public function",
        name=name,
        obj=None,
    )
