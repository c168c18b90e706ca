"""`MaxNumBoundingBoxes`: a fixed number of bounding boxes for each image."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.argument_validation import MAX_SIZE, whole
from tapewright.core.tensor import convert_to_tensor
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.joining import pad

from ..base.image_layer import ImageLayer

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor

    from ..base.image_layer import ImageLayerOptions

__all__ = ["MaxNumBoundingBoxes"]


class MaxNumBoundingBoxes(ImageLayer):
    """Truncates or pads the bounding boxes of each image to ``max_number``.

    Args: ``fill_value``: the numbers and the labels of the boxes that are added;
    ``bounding_box_format`` must be given, though it changes nothing.

    Shapes: dicts as for `RandomFlip`, with ``"boxes"`` ``[batch, n, 4]`` that become
    ``[batch, max_number, 4]``, and ``"labels"`` alike.

    Raises: ``ValueError`` for a ``max_number`` that is no positive integer.

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
        """Return the images as they are."""
        return images

    def transform_bounding_boxes(
        self,
        bounding_boxes: dict[str, Any],
        transformation: Any = None,
        training: bool | None = True,
    ) -> dict[str, Any]:
        """Return the first boxes, and as many more as are lacking."""
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
