"""`MaxNumBoundingBoxes`: pad or truncate to a fixed number of boxes per image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.messages.argument_validation import MAX_SIZE, whole
from tapewright.core.tensor import convert_to_tensor
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.joining import pad

from ..base.image_layer import ImageLayer

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor

    from ..base.image_layer import ImageLayerOptions

__all__ = ["MaxNumBoundingBoxes"]


class MaxNumBoundingBoxes(ImageLayer):
    """Pad or truncate the bounding boxes of each image to ``max_number``.

    Args:
        max_number: Number of boxes per image, a positive integer.
        fill_value: Coordinates and labels of the added boxes.
        **kwargs: ``bounding_box_format``, which is required although it has no effect
            here, and base class arguments; see `keras.layers.Layer`.

    Shapes:
        Dicts as in `RandomFlip`: ``"boxes"`` ``[batch, n, 4]`` become
        ``[batch, max_number, 4]``, and ``"labels"`` ``[batch, n]`` become
        ``[batch, max_number]``.

    Raises:
        ValueError: If ``max_number`` is not a positive integer.

    Example:
        >>> boxes = {"boxes": [[1.0, 2.0, 3.0, 4.0]], "labels": [7]}
        >>> layer = keras.layers.MaxNumBoundingBoxes(2, bounding_box_format="xyxy")
        >>> data = layer({"images": [[[0.0]]], "bounding_boxes": boxes})
        >>> data["bounding_boxes"]["labels"].numpy()
        array([ 7, -1], dtype=int32)
    """

    _tw_omit_defaults: dict[str, Any] = ImageLayer._tw_omit_defaults | {
        "fill_value": -1
    }

    def __init__(
        self,
        max_number: int,
        fill_value: int = -1,
        **kwargs: Unpack[ImageLayerOptions],
    ):
        super().__init__(**kwargs)
        self.max_number: int = whole(self, "max_number", max_number)
        self.fill_value: int = whole(self, "fill_value", fill_value, -MAX_SIZE)

    def transform_images(
        self, images: Tensor, transformation: Any = None, training: bool | None = True
    ) -> Tensor:
        """Return the images unchanged.

        Args:
            images: Images ``[batch, height, width, channels]``, or one image without
                the batch axis.
            transformation: Ignored.
            training: Ignored.
        """
        return images

    def transform_bounding_boxes(
        self,
        bounding_boxes: dict[str, Any],
        transformation: Any = None,
        training: bool | None = True,
    ) -> dict[str, Any]:
        """Return the first ``max_number`` boxes, padded if there are fewer.

        Args:
            bounding_boxes: Dict of ``"boxes"`` ``[batch, n, 4]`` and ``"labels"``
                ``[batch, n]``.
            transformation: Ignored.
            training: Ignored.
        """
        return bounding_boxes | {
            key: self._tw_fitted(bounding_boxes[key]) for key in ("boxes", "labels")
        }

    def _tw_fitted(self, x):
        x = convert_to_tensor(x)[:, : self.max_number]
        widths = [(0, 0), (0, self.max_number - x.shape[1])]
        widths += [(0, 0)] * (len(x.shape) - 2)
        return pad(x, widths, constant_values=cast(self.fill_value, x.dtype))

    def compute_output_shape(self, input_shape: Any) -> Any:
        if not isinstance(input_shape, dict) or "bounding_boxes" not in input_shape:
            return input_shape
        boxes = {
            key: (shape[0], self.max_number, *shape[2:])
            for key, shape in input_shape["bounding_boxes"].items()
        }
        return input_shape | {"bounding_boxes": boxes}
