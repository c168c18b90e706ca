"""Images mirrored and cropped at random: `RandomFlip`, `RandomCrop`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.argument_validation import one_of, whole
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import range as arange
from tapewright.ops.array.gather import gather
from tapewright.ops.array.joining import reverse, stack, unstack
from tapewright.ops.array.shape import squeeze
from tapewright.ops.math.comparison import less_equal, where

from ..base.bounding_boxes import clip_to_image_size, crop
from .random_layer import RandomLayer

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor

    from ..base.image_layer import ImageOptions
    from ..base.layer_types import SeedLike

__all__ = ["RandomCrop", "RandomFlip"]


class RandomFlip(RandomLayer):
    """In training, mirrors each image with probability 1/2.

    Args: ``mode``: "horizontal" (swaps left and right), "vertical" (up and down) or
    "horizontal_and_vertical" (both at once); ``seed``: an int or a
    `keras.random.SeedGenerator` for a random stream of the layer's own; None draws from
    the global stream; ``data_format``: "channels_last" (default) or "channels_first";
    ``bounding_box_format``: see `keras.utils.bounding_boxes.convert_format`.

    Shapes: inputs and outputs ``[batch, height, width, channels]``, or one image
    without the batch. Integers are cast. Instead of images, a dict of ``"images"`` and
    of ``"labels"``, ``"bounding_boxes"`` (a dict of ``"boxes"`` ``[batch, n, 4]`` and
    ``"labels"`` ``[batch, n]``) or ``"segmentation_masks"`` that belong to them.

    Raises: ``ValueError`` for another ``mode``, or for boxes without their format.

    >>> layer = RandomFlip("horizontal", seed=0)
    >>> image = [[[1.0], [2.0]]]
    >>> layer(image).numpy().ravel(), layer(image, training=False).numpy().ravel()
    (array([2., 1.], dtype=float32), array([1., 2.], dtype=float32))
    """

    def __init__(
        self,
        mode: str = "horizontal_and_vertical",
        seed: SeedLike = None,
        data_format: str | None = None,
        **kwargs: Unpack[ImageOptions],
    ):
        super().__init__(seed, data_format, **kwargs)
        modes = ("horizontal", "vertical", "horizontal_and_vertical")
        self.mode: str = one_of(self, "mode", mode, modes)

    def _tw_drawn(self, images, draws):
        shape = (self._tw_batch_of(images), 1, 1, 1)[-len(images.shape) :]
        flips = less_equal(draws.uniform(shape), 0.5)
        return {"flips": flips, "input_shape": images.shape}

    def _tw_changed(self, images, transformation):
        axes = {"horizontal": [self._tw_columns], "vertical": [self._tw_rows]}
        axes = axes.get(self.mode, [self._tw_rows, self._tw_columns])
        return where(transformation["flips"], reverse(images, axes), images)

    def transform_bounding_boxes(
        self,
        bounding_boxes: dict[str, Any],
        transformation: Any = None,
        training: bool | None = True,
    ) -> dict[str, Any]:
        """Return the boxes, mirrored where their images are."""
        if not training or transformation is None:
            return bounding_boxes
        shape = transformation["input_shape"]
        size = shape[self._tw_rows], shape[self._tw_columns]
        found = self._tw_boxes_as("rel_xyxy", bounding_boxes, size)
        x1, y1, x2, y2 = unstack(found["boxes"], axis=-1)
        across = 1 - x2, y1, 1 - x1, y2
        down = (x1, 1 - y2, x2, 1 - y1)
        both = (1 - x2, 1 - y2, 1 - x1, 1 - y1)
        flipped = {"horizontal": across, "vertical": down}.get(self.mode, both)
        flips = squeeze(transformation["flips"], -1)
        boxes = where(flips, stack(flipped, axis=-1), found["boxes"])
        found = clip_to_image_size(
            found | {"boxes": boxes}, bounding_box_format="rel_xyxy"
        )
        return self._tw_boxes_as(self.bounding_box_format, found, size, "rel_xyxy")

    def transform_segmentation_masks(
        self,
        segmentation_masks: Tensor,
        transformation: Any = None,
        training: bool | None = True,
    ) -> Tensor:
        """Return the masks, mirrored where their images are."""
        return self.transform_images(segmentation_masks, transformation, training)


class RandomCrop(RandomLayer):
    """In training, cuts a box of ``height`` by ``width`` out of the images, at a random place.

    All images of a batch have the same place. Images that are not larger on both axes
    are cut around the middle, and resized. Outside of training nothing is cut, as in
    Keras 3: add a `CenterCrop` or `Resizing` if later layers need that size.

    Args: ``seed``, ``data_format``, ``bounding_box_format`` as for `RandomFlip`.

    Shapes: inputs ``[batch, rows, columns, channels]``, or one image without the batch,
    outputs with ``height`` and ``width`` in place of rows and columns. Integers are
    cast. Dicts as for `RandomFlip`.

    Raises: ``ValueError`` for sizes that are not positive.

    >>> from tapewright import ones
    >>> layer, images = RandomCrop(4, 4), ones([2, 8, 8, 3])
    >>> layer(images).shape, layer(images, training=False).shape
    (TensorShape([2, 4, 4, 3]), TensorShape([2, 8, 8, 3]))
    """

    def __init__(
        self,
        height: int,
        width: int,
        seed: SeedLike = None,
        data_format: str | None = None,
        **kwargs: Unpack[ImageOptions],
    ):
        super().__init__(seed, data_format, **kwargs)
        self.height: int = whole(self, "height", height)
        self.width: int = whole(self, "width", width)

    def get_random_transformation(
        self, data: Any, training: bool | None = True, seed: SeedLike = None
    ) -> Any:
        """Draw the upper left corner of the box; None if not ``training``."""
        drawn = super().get_random_transformation(data, training, seed)
        size = self._tw_size_of(self._tw_images_of(data))
        return drawn if drawn is None else _Corner(drawn, size)

    def _tw_drawn(self, images, draws):
        rows, columns = self._tw_size_of(images)
        if rows <= self.height or columns <= self.width:
            return self._tw_largest_box(rows, columns, self.height, self.width)[:2]
        spare = rows - self.height + 1, columns - self.width + 1
        starts = [draws.uniform(()) * cast(n, "float32") for n in spare]
        return tuple([cast(start, "int32") for start in starts])

    def _tw_changed(self, images, transformation):
        """The box whose upper left corner is ``transformation``."""
        top, left = transformation
        rows, columns = self._tw_size_of(images)
        if rows > self.height and columns > self.width:
            images = gather(images, top + arange(self.height), axis=self._tw_rows)
            return gather(images, left + arange(self.width), axis=self._tw_columns)
        inner, across = self._tw_part(rows, columns, top, left)
        images = self._tw_cut(images, top, left, inner, across)
        if (inner, across) == (self.height, self.width):
            return images
        return self._tw_resized(images, self.height, self.width)

    def _tw_part(self, rows, columns, top, left):
        """The height and the width of what is cut out of smaller images."""
        return min(self.height, rows - top), min(self.width, columns - left)

    def transform_bounding_boxes(
        self,
        bounding_boxes: dict[str, Any],
        transformation: Any = None,
        training: bool | None = True,
    ) -> dict[str, Any]:
        """Return the parts of the boxes inside of the crop."""
        if not training or transformation is None:
            return bounding_boxes
        if not isinstance(transformation, _Corner):
            raise ValueError(
                f"{self._tw_title}: transformation must be of get_random_transformation, "
                f"which keeps the size of the images, got {transformation!r}"
            )
        (top, left), (rows, columns) = transformation, transformation.size
        found = self._tw_boxes_as("xyxy", bounding_boxes, (rows, columns))
        inner, across = new_size = self.height, self.width
        if rows <= self.height or columns <= self.width:
            inner, across = self._tw_part(rows, columns, top, left)
        boxes = crop(found["boxes"], top, left, inner, across)
        if (inner, across) != new_size:
            down = self.height / cast(inner, "float32")
            right = self.width / cast(across, "float32")
            boxes = boxes * stack([right, down, right, down])
        found = clip_to_image_size(found | {"boxes": boxes}, *new_size)
        return self._tw_boxes_as(self.bounding_box_format, found, new_size, "xyxy")

    def transform_segmentation_masks(
        self,
        segmentation_masks: Tensor,
        transformation: Any = None,
        training: bool | None = True,
    ) -> Tensor:
        """Return the part of the masks that is cut out of the images."""
        return self.transform_images(segmentation_masks, transformation, training)

    def _tw_image_shape(self, shape):
        return self._tw_shape_with(shape, self.height, self.width)


class _Corner(tuple):
    """``(top, left)`` of the box, and the ``size`` of the images it is cut out of."""

    def __new__(cls, corner, size):
        made = super().__new__(cls, corner)
        made.size = size
        return made
