"""`ImageLayer`: base class of layers that process images, or dicts with annotations.

A dict with ``"images"`` may also have ``"labels"``, ``"bounding_boxes"`` and
``"segmentation_masks"``, to which the same transformation is applied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.errors import ShapeError
from tapewright.core.messages.argument_validation import one_of
from tapewright.core.tensor import convert_to_tensor
from tapewright.ops.array.indexing import getitem
from tapewright.ops.array.shape import expand_dims, squeeze, transpose
from tapewright.ops.image.resizing import resize_keeping_dtype

from .bounding_boxes import FORMATS, convert_format
from .layer import InputSpec, Layer
from .layer_types import RegularizedLayerOptions
from .spatial import checked_format

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor

    from .layer_types import SeedLike


class ImageOptions(RegularizedLayerOptions, total=False):
    """Keyword arguments that layers with a ``data_format`` pass to `ImageLayer`."""

    bounding_box_format: str | None


class ImageLayerOptions(ImageOptions, total=False):
    """Keyword arguments that the other layers pass to `ImageLayer`."""

    data_format: str | None


class ImageLayer(Layer):
    """Base class of layers that process images, or dicts with images and annotations.

    Subclasses override the ``transform_...`` methods for the data that they change.

    Args:
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        bounding_box_format: Format of the boxes, see
            `keras.utils.bounding_boxes.convert_format`; required for inputs with boxes.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Images and masks ``[batch, height, width, channels]``, or
        ``[batch, channels, height, width]`` with "channels_first"; ``bounding_boxes``
        is a dict of ``"boxes"`` ``[batch, n, 4]`` and ``"labels"`` ``[batch, n]``,
        where -1 marks a missing box. The batch axis may be absent from all of them.
    """

    data_format: str
    bounding_box_format: str | None
    input_spec: InputSpec
    _tw_omit_defaults: dict[str, Any] = Layer._tw_omit_defaults | {
        "bounding_box_format": None
    }

    def __init__(
        self,
        data_format: str | None = None,
        bounding_box_format: str | None = None,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        self.data_format = checked_format(self, data_format)
        self.bounding_box_format = bounding_box_format
        if bounding_box_format is not None:
            known = [*FORMATS, *[name.upper() for name in FORMATS]]
            one_of(self, "bounding_box_format", bounding_box_format, known)
        self.input_spec = InputSpec(min_ndim=3, max_ndim=4)
        first = self.data_format == "channels_first"
        self._tw_rows, self._tw_columns = (-2, -1) if first else (-3, -2)
        self._tw_channels = -3 if first else -1

    # --- one transformation of images and annotations

    def call(self, data: Any, training: bool | None = True) -> Any:
        transformation = self.get_random_transformation(data, training)
        if not isinstance(data, dict):
            return self._tw_transformed("images", data, transformation, training)
        return {
            key: self._tw_transformed(key, x, transformation, training, data)
            for key, x in data.items()
        }

    def _tw_transformed(self, key, x, transformation, training, data=None):
        kinds = {
            "images": (self.transform_images, self.transform_single_image),
            "labels": (self.transform_labels, self.transform_single_label),
            "bounding_boxes": (
                self.transform_bounding_boxes,
                self.transform_single_bounding_box,
            ),
            "segmentation_masks": (
                self.transform_segmentation_masks,
                self.transform_single_segmentation_mask,
            ),
        }
        if key not in kinds:
            return x
        if key == "bounding_boxes":
            x = self._tw_checked_boxes(x)
        else:
            x = convert_to_tensor(x)
        images = x if data is None else data["images"]
        of_batch, of_one = kinds[key]
        transform = of_one if len(images.shape) == 3 else of_batch
        return transform(x, transformation, training)

    def _tw_checked_boxes(self, bounding_boxes):
        if not self.bounding_box_format:
            raise ValueError(
                f"{self._tw_title}: bounding_box_format must be given for inputs with "
                f"bounding_boxes, one of {', '.join(FORMATS)}"
            )
        given = isinstance(bounding_boxes, dict) and bounding_boxes.keys()
        if not given or not {"boxes", "labels"} <= given:
            raise ValueError(
                f"{self._tw_title}: bounding_boxes must be a dict with 'boxes' and "
                f"'labels', got {bounding_boxes!r:.200}"
            )
        boxes = convert_to_tensor(bounding_boxes["boxes"], dtype="float32")
        labels = convert_to_tensor(bounding_boxes["labels"])
        if len(boxes.shape) not in (2, 3) or boxes.shape[-1] != 4:
            raise ShapeError(
                self._tw_title, "boxes must be [n, 4] or [batch, n, 4]", boxes=boxes
            )
        count = boxes.shape[:-1]
        if not count.is_compatible_with(labels.shape[: count.rank]):
            raise ShapeError(
                self._tw_title,
                "labels must be [n] or [batch, n], with one label for each box",
                boxes=boxes,
                labels=labels,
            )
        return bounding_boxes | {"boxes": boxes, "labels": labels}

    def get_random_transformation(
        self, data: Any, training: bool | None = True, seed: SeedLike = None
    ) -> Any:
        """Draw the random numbers for the ``transform_...`` methods; None by default.

        Args:
            data: Images, or a dict with images and annotations.
            training: If False, draw nothing and return None.
            seed: Seed or generator to use instead of the layer's own.

        Returns:
            Value passed as ``transformation`` to the ``transform_...`` methods.
        """
        return None

    def transform_images(
        self, images: Tensor, transformation: Any = None, training: bool | None = True
    ) -> Tensor:
        """Return the transformed images, floating-point; by default they are only cast.

        Args:
            images: Images ``[batch, height, width, channels]``, or one image without
                the batch axis.
            transformation: Value returned by `get_random_transformation`, or None.
            training: If False, nothing is changed.
        """
        return self._tw_as_own_dtype(convert_to_tensor(images))

    def transform_labels(
        self, labels: Tensor, transformation: Any = None, training: bool | None = True
    ) -> Tensor:
        """Return the labels of the transformed images; unchanged by default.

        Args:
            labels: Labels of the images.
            transformation: Value returned by `get_random_transformation`, or None.
            training: If False, nothing is changed.
        """
        return labels

    def transform_bounding_boxes(
        self,
        bounding_boxes: dict[str, Any],
        transformation: Any = None,
        training: bool | None = True,
    ) -> dict[str, Any]:
        """Return the boxes in the transformed images; unchanged by default.

        Args:
            bounding_boxes: Dict of ``"boxes"`` ``[batch, n, 4]`` and ``"labels"``
                ``[batch, n]``.
            transformation: Value returned by `get_random_transformation`, or None.
            training: If False, nothing is changed.
        """
        return bounding_boxes

    def transform_segmentation_masks(
        self,
        segmentation_masks: Tensor,
        transformation: Any = None,
        training: bool | None = True,
    ) -> Tensor:
        """Return the masks of the transformed images; unchanged by default.

        Args:
            segmentation_masks: Masks ``[batch, height, width, channels]`` that belong
                to the images.
            transformation: Value returned by `get_random_transformation`, or None.
            training: If False, nothing is changed.
        """
        return segmentation_masks

    def transform_single_image(
        self, image: Tensor, transformation: Any, training: bool | None = True
    ) -> Tensor:
        """Apply `transform_images` to one image.

        Args:
            image: Image ``[height, width, channels]``.
            transformation: Value returned by `get_random_transformation`, or None.
            training: If False, nothing is changed.
        """
        return self._tw_one(self.transform_images, image, transformation, training)

    def transform_single_label(
        self, label: Tensor, transformation: Any, training: bool | None = True
    ) -> Tensor:
        """Apply `transform_labels` to one label.

        Args:
            label: Label of one image.
            transformation: Value returned by `get_random_transformation`, or None.
            training: If False, nothing is changed.
        """
        return self._tw_one(self.transform_labels, label, transformation, training)

    def transform_single_bounding_box(
        self,
        bounding_box: dict[str, Any],
        transformation: Any,
        training: bool | None = True,
    ) -> dict[str, Any]:
        """Apply `transform_bounding_boxes` to the boxes of one image.

        Args:
            bounding_box: Dict of ``"boxes"`` ``[n, 4]`` and ``"labels"`` ``[n]``.
            transformation: Value returned by `get_random_transformation`, or None.
            training: If False, nothing is changed.
        """
        known = {"boxes", "labels"} & bounding_box.keys()
        batch = {key: expand_dims(bounding_box[key], 0) for key in known}
        batch = self.transform_bounding_boxes(
            bounding_box | batch, transformation, training
        )
        return batch | {key: squeeze(batch[key], 0) for key in known}

    def transform_single_segmentation_mask(
        self,
        segmentation_mask: Tensor,
        transformation: Any,
        training: bool | None = True,
    ) -> Tensor:
        """Apply `transform_segmentation_masks` to one mask.

        Args:
            segmentation_mask: Mask ``[height, width, channels]``.
            transformation: Value returned by `get_random_transformation`, or None.
            training: If False, nothing is changed.
        """
        transform = self.transform_segmentation_masks
        return self._tw_one(transform, segmentation_mask, transformation, training)

    @staticmethod
    def _tw_one(transform, x, transformation, training):
        batch = expand_dims(convert_to_tensor(x), 0)
        return squeeze(transform(batch, transformation, training), 0)

    @staticmethod
    def _tw_as_batch(function, images, *arguments):
        """Apply ``function`` to a batch; a single image becomes a batch of one."""
        if len(images.shape) == 4:
            return function(images, *arguments)
        return squeeze(function(expand_dims(images, 0), *arguments), 0)

    # --- shapes

    def _tw_converted(self, inputs):
        if isinstance(inputs, dict):  # lists in it are arrays
            return {key: self._tw_converted(x) for key, x in inputs.items()}
        return super()._tw_converted(inputs)

    def _tw_check_inputs(self, inputs):
        if isinstance(inputs, dict):
            if "images" not in inputs:
                raise ValueError(
                    f"{self._tw_title}: a dict of inputs must have 'images', got the keys "
                    f"{list(inputs)}"
                )
            inputs = inputs["images"]
        super()._tw_check_inputs(inputs)

    def compute_output_shape(self, input_shape: Any) -> Any:
        if not isinstance(input_shape, dict):
            return self._tw_image_shape(tuple(input_shape))
        return {
            key: self._tw_image_shape(tuple(shape))
            if key in ("images", "segmentation_masks")
            else shape
            for key, shape in input_shape.items()
        }

    def _tw_image_shape(self, shape):
        """Return the output shape for images of this shape; the same by default."""
        return shape

    def _tw_images_of(self, data):
        return convert_to_tensor(data["images"] if isinstance(data, dict) else data)

    def _tw_size_of(self, images):
        return images.shape[self._tw_rows], images.shape[self._tw_columns]

    def _tw_shape_with(self, input_shape, height, width):
        shape = list(input_shape)
        shape[self._tw_rows], shape[self._tw_columns] = height, width
        return tuple(shape)

    # --- what several layers do to images and boxes

    def _tw_cut(self, images, top, left, height, width):
        """Crop a box of this size, clipped to the image."""
        index = [..., slice(top, top + height), slice(left, left + width)]
        if self.data_format == "channels_last":
            index.append(slice(None))
        return getitem(images, tuple(index))

    def _tw_resized(self, images, height, width, method="bilinear", antialias=False):
        def resize(x):
            return resize_keeping_dtype(x, (height, width), method, antialias=antialias)

        return self._tw_channels_last(resize, images)

    def _tw_channels_last(self, function, images):
        """Apply ``function`` to the images with channels last."""
        if self.data_format == "channels_last":
            return function(images)
        ahead = (0,) if len(images.shape) == 4 else ()
        k = len(ahead)
        images = function(transpose(images, (*ahead, k + 1, k + 2, k)))
        return transpose(images, (*ahead, k + 2, k, k + 1))

    def _tw_largest_box(self, rows, columns, height, width):
        """Return top, left, height, width of the largest centered box of this ratio."""
        inner = max(min(rows, columns * height // width), 1)
        across = max(min(columns, rows * width // height), 1)
        return (rows - inner) // 2, (columns - across) // 2, inner, across

    def _tw_boxes_as(self, target, bounding_boxes, size, source=None):
        """Convert bounding boxes to another format, in an image of ``size``."""
        source = source or self.bounding_box_format
        boxes = convert_format(bounding_boxes["boxes"], source, target, *size)
        return bounding_boxes | {"boxes": boxes}


def checked_range(
    layer: Any,
    name: str,
    factor: float | Sequence[float],
    least: float = -1,
    most: float = 1,
) -> tuple[float, float]:
    """Return ``(lowest, highest)``; a single number ``x`` means ``(-x, x)``."""
    pair = factor if isinstance(factor, (list, tuple)) else (factor, factor)
    numbers = [isinstance(n, (int, float)) and least <= n <= most for n in pair]
    if len(pair) != 2 or not all(numbers):
        raise ValueError(
            f"{type(layer).__name__}: {name} must be a number from {least} to {most}, or "
            f"a pair of such numbers, got {factor!r}"
        )
    if pair is factor:
        low, high = sorted(pair)
        return low, high
    return max(-abs(factor), least), abs(factor)
