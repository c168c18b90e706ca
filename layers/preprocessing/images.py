"""Layers that change the size of images: `Resizing` and `CenterCrop`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.messages.argument_validation import one_of, whole
from tapewright.core.tensor import convert_to_tensor
from tapewright.ops.array.conversion import cast, saturate_cast
from tapewright.ops.array.joining import pad, stack
from tapewright.ops.array.shape import expand_dims
from tapewright.ops.math.comparison import equal, greater, logical_or, where
from tapewright.ops.math.elementwise import floordiv, minimum, round
from tapewright.ops.math.reduction import reduce_all

from ..base.bounding_boxes import clip_to_image_size, crop
from ..base.image_layer import ImageLayer, ImageOptions

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor

    from ..base.layer_types import SeedLike

__all__ = ["CenterCrop", "Resizing"]


class Resizing(ImageLayer):
    """Resize images, keeping their dtype: integers are rounded.

    Args:
        height: Height of the outputs in pixels.
        width: Width of the outputs in pixels.
        interpolation: "bilinear", "nearest", "bicubic", "area", "lanczos3" or
            "lanczos5".
        crop_to_aspect_ratio: If True, first crop the largest centered box with the
            aspect ratio of the outputs.
        pad_to_aspect_ratio: If True, first pad the images with ``fill_value`` to the
            aspect ratio of the outputs.
        fill_mode: Only "constant".
        fill_value: Value of padding pixels.
        antialias: If True, average over more pixels along axes that shrink.
        data_format: "channels_last" or "channels_first"; None uses
            `keras.config.image_data_format`.
        **kwargs: ``bounding_box_format``, needed for inputs with boxes, and base class
            arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, rows, columns, channels]`` or ``[rows, columns, channels]``;
        outputs have ``height`` and ``width`` in place of rows and columns.

    Raises:
        ValueError: If a size is not positive, ``interpolation`` is unknown, or both
            cropping and padding are requested.

    Example:
        >>> keras.layers.Resizing(1, 4)([[[0.0], [4.0]]]).numpy().ravel()
        array([0., 1., 3., 4.], dtype=float32)
    """

    def __init__(
        self,
        height: int,
        width: int,
        interpolation: str = "bilinear",
        crop_to_aspect_ratio: bool = False,
        pad_to_aspect_ratio: bool = False,
        fill_mode: str = "constant",
        fill_value: float = 0.0,
        antialias: bool = False,
        data_format: str | None = None,
        **kwargs: Unpack[ImageOptions],
    ):
        super().__init__(data_format=data_format, **kwargs)
        self.height: int = whole(self, "height", height)
        self.width: int = whole(self, "width", width)
        methods = ("bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5")
        self.interpolation: str = one_of(self, "interpolation", interpolation, methods)
        self.crop_to_aspect_ratio: bool = bool(crop_to_aspect_ratio)
        self.pad_to_aspect_ratio: bool = bool(pad_to_aspect_ratio)
        self.fill_mode: str = one_of(self, "fill_mode", fill_mode, ("constant",))
        self.fill_value: float = fill_value
        self.antialias: bool = bool(antialias)
        if crop_to_aspect_ratio and pad_to_aspect_ratio:
            raise ValueError(
                "Resizing: only one of crop_to_aspect_ratio and pad_to_aspect_ratio can "
                "be True, got both"
            )

    def get_random_transformation(
        self, data: Any, training: bool | None = True, seed: SeedLike = None
    ) -> Any:
        """Return the height and the width of the images.

        Args:
            data: Images, or a dict with ``"images"``.
            training: Ignored; kept for the interface.
            seed: Ignored.
        """
        return self._tw_size_of(self._tw_images_of(data))

    def transform_images(
        self, images: Tensor, transformation: Any = None, training: bool | None = True
    ) -> Tensor:
        """Resize images.

        Args:
            images: Images to resize.
            transformation: Ignored.
            training: Ignored; kept for the interface.
        """
        return self._tw_brought_to_size(images, self.interpolation)

    def transform_segmentation_masks(
        self,
        segmentation_masks: Tensor,
        transformation: Any = None,
        training: bool | None = True,
    ) -> Tensor:
        """Resize segmentation masks with nearest-neighbor interpolation.

        Args:
            segmentation_masks: Masks to resize.
            transformation: Ignored.
            training: Ignored; kept for the interface.
        """
        return self._tw_brought_to_size(segmentation_masks, "nearest")

    def _tw_brought_to_size(self, inputs, interpolation):
        images = inputs = convert_to_tensor(inputs)
        if self.crop_to_aspect_ratio:
            size = self._tw_size_of(images)
            box = self._tw_largest_box(*size, self.height, self.width)
            images = self._tw_cut(images, *box)
        elif self.pad_to_aspect_ratio:
            images = self._tw_padded(images)
        images = self._tw_resized(
            images, self.height, self.width, interpolation, self.antialias
        )
        if images.dtype == inputs.dtype:
            return images
        return saturate_cast(round(images), inputs.dtype)

    def _tw_padded(self, images):
        rows, columns = self._tw_size_of(images)
        above = (max(rows, columns * self.height // self.width) - rows) // 2
        beside = (max(columns, rows * self.width // self.height) - columns) // 2
        widths = [(0, 0)] * len(images.shape)
        widths[self._tw_rows] = (above, above)
        widths[self._tw_columns] = (beside, beside)
        fill = cast(self.fill_value, images.dtype)
        return pad(images, widths, constant_values=fill)

    def transform_bounding_boxes(
        self,
        bounding_boxes: dict[str, Any],
        transformation: Any = None,
        training: bool | None = True,
    ) -> dict[str, Any]:
        """Scale bounding boxes with the images; boxes of four 0 or four -1 become 0.

        Args:
            bounding_boxes: Dict of ``"boxes"`` and ``"labels"``.
            transformation: Height and width of the images, from
                `get_random_transformation`.
            training: Ignored; kept for the interface.
        """
        given = bounding_boxes["boxes"]
        none = logical_or(
            reduce_all(equal(given, -1.0), -1), reduce_all(equal(given, 0.0), -1)
        )
        in_pixels = self._tw_boxes_as("xyxy", bounding_boxes, transformation)
        moved = self._tw_scaled(in_pixels["boxes"], *transformation)
        size = self.height, self.width
        in_pixels = clip_to_image_size(in_pixels | {"boxes": moved}, *size)
        boxes = where(expand_dims(none, -1), 0.0, in_pixels["boxes"])
        target = self.bounding_box_format
        return self._tw_boxes_as(target, in_pixels | {"boxes": boxes}, size, "xyxy")

    def _tw_scaled(self, boxes, rows, columns):
        rows, columns = cast(rows, boxes.dtype), cast(columns, boxes.dtype)
        down, across = self.height / rows, self.width / columns
        top = left = cast(0, boxes.dtype)
        if self.pad_to_aspect_ratio:
            down = across = minimum(down, across)
            top = floordiv(self.height - rows * down, 2.0)
            left = floordiv(self.width - columns * across, 2.0)
        elif self.crop_to_aspect_ratio:
            ratio = columns / rows
            wide = greater(ratio, self.width / self.height)
            new_width = where(wide, self.height * ratio, float(self.width))
            new_height = where(wide, float(self.height), self.width / ratio)
            down, across = new_height / rows, new_width / columns
            top = -floordiv(new_height - self.height, 2.0)
            left = -floordiv(new_width - self.width, 2.0)
        scales = stack([across, down, across, down])
        return boxes * scales + stack([left, top, left, top])

    def _tw_image_shape(self, shape):
        return self._tw_shape_with(shape, self.height, self.width)


class CenterCrop(ImageLayer):
    """Crop images to a centered box of ``height`` by ``width``.

    If an image is smaller on either axis, the largest box with the aspect ratio of the
    outputs is cropped and resized. Integers are cast.

    Args:
        height: Height of the outputs in pixels.
        width: Width of the outputs in pixels.
        data_format: "channels_last" or "channels_first"; None uses
            `keras.config.image_data_format`.
        **kwargs: ``bounding_box_format``, needed for inputs with boxes, and base class
            arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, rows, columns, channels]`` or ``[rows, columns, channels]``;
        outputs have ``height`` and ``width`` in place of rows and columns.

    Raises:
        ValueError: If a size is not positive.

    Example:
        >>> keras.layers.CenterCrop(1, 1)([[[1.0], [2.0], [3.0]]]).numpy().ravel()
        array([2.], dtype=float32)
    """

    def __init__(
        self,
        height: int,
        width: int,
        data_format: str | None = None,
        **kwargs: Unpack[ImageOptions],
    ):
        super().__init__(data_format=data_format, **kwargs)
        self.height: int = whole(self, "height", height)
        self.width: int = whole(self, "width", width)

    def get_random_transformation(
        self, data: Any, training: bool | None = True, seed: SeedLike = None
    ) -> Any:
        """Return a dict with the shape of the images, ``"input_shape"``.

        Args:
            data: Images, or a dict with ``"images"``.
            training: Ignored; kept for the interface.
            seed: Ignored.
        """
        return {"input_shape": self._tw_images_of(data).shape}

    def transform_images(
        self, images: Tensor, transformation: Any = None, training: bool | None = True
    ) -> Tensor:
        """Crop images to the centered box.

        Args:
            images: Images to crop.
            transformation: Ignored.
            training: Ignored; kept for the interface.
        """
        images = self._tw_as_own_dtype(convert_to_tensor(images))
        top, left, rows, columns = self._tw_middle(*self._tw_size_of(images))
        images = self._tw_cut(images, top, left, rows, columns)
        if (rows, columns) == (self.height, self.width):
            return images
        return self._tw_resized(images, self.height, self.width)

    def _tw_middle(self, rows, columns):
        """Return the box to crop: top, left, height and width."""
        above, beside = rows - self.height, columns - self.width
        if above >= 0 and beside >= 0:
            return above // 2, beside // 2, self.height, self.width
        return self._tw_largest_box(rows, columns, self.height, self.width)

    def transform_segmentation_masks(
        self,
        segmentation_masks: Tensor,
        transformation: Any = None,
        training: bool | None = True,
    ) -> Tensor:
        """Crop segmentation masks to the centered box, like the images.

        Args:
            segmentation_masks: Masks to crop.
            transformation: Ignored.
            training: Ignored; kept for the interface.
        """
        return self.transform_images(segmentation_masks, transformation, training)

    def transform_bounding_boxes(
        self,
        bounding_boxes: dict[str, Any],
        transformation: Any = None,
        training: bool | None = True,
    ) -> dict[str, Any]:
        """Crop bounding boxes with the images: shift and clip them to the centered box.

        Args:
            bounding_boxes: Dict of ``"boxes"`` and ``"labels"``.
            transformation: Dict with the shape of the images, from
                `get_random_transformation`.
            training: Ignored; kept for the interface.
        """
        shape = transformation["input_shape"]
        size = shape[self._tw_rows], shape[self._tw_columns]
        top, left, rows, columns = self._tw_middle(*size)
        in_pixels = self._tw_boxes_as("xyxy", bounding_boxes, size)
        boxes = crop(in_pixels["boxes"], top, left, rows, columns)
        new_size = self.height, self.width
        if (rows, columns) != new_size:
            ratios = [
                new / cast(n, "float32") for new, n in zip(new_size, (rows, columns))
            ]
            boxes = boxes * stack([*reversed(ratios)] * 2)
        in_pixels = clip_to_image_size(in_pixels | {"boxes": boxes}, *new_size)
        return self._tw_boxes_as(self.bounding_box_format, in_pixels, new_size, "xyxy")

    def _tw_image_shape(self, shape):
        return self._tw_shape_with(shape, self.height, self.width)
