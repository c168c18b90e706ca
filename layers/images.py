"""Layers that bring images to a size: `Resizing`, `CenterCrop`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from tapewright.core.argument_validation import one_of, whole
from tapewright.ops.array.conversion import cast, saturate_cast
from tapewright.ops.array.indexing import getitem
from tapewright.ops.array.joining import pad
from tapewright.ops.array.shape import transpose
from tapewright.ops.image.resizing import resize_keeping_dtype
from tapewright.ops.math.elementwise import round

from .base.layer import InputSpec, Layer
from .base.spatial import checked_format

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import Shape

    from .base.layer_types import RegularizedLayerOptions

__all__ = ["CenterCrop", "Resizing"]


class ImageLayer(Layer):
    """Base of the layers whose inputs are images, one or a batch.

    Shapes: ``[batch, height, width, channels]`` or ``[height, width, channels]``, the
    channels before the height for ``data_format`` "channels_first".
    """

    data_format: str

    input_spec: InputSpec

    def _keep_format(self, data_format):
        self.data_format = checked_format(self, data_format)
        self.input_spec = InputSpec(min_ndim=3, max_ndim=4)
        first = self.data_format == "channels_first"
        self._rows, self._columns = (-2, -1) if first else (-3, -2)

    def _size_of(self, images):
        return images.shape[self._rows], images.shape[self._columns]

    def _cut(self, images, top, left, height, width):
        """The box of that size, as far as there are pixels."""
        index = [..., slice(top, top + height), slice(left, left + width)]
        if self.data_format == "channels_last":
            index.append(slice(None))
        return getitem(images, tuple(index))

    def _resized(self, images, height, width, method="bilinear", antialias=False):
        if self.data_format == "channels_last":
            return resize_keeping_dtype(
                images, (height, width), method, antialias=antialias
            )
        order = (1, 2, 0) if len(images.shape) == 3 else (0, 2, 3, 1)
        images = transpose(images, order)
        images = resize_keeping_dtype(
            images, (height, width), method, antialias=antialias
        )
        order = (2, 0, 1) if len(images.shape) == 3 else (0, 3, 1, 2)
        return transpose(images, order)

    def _largest_cut(self, images, height, width):
        """The largest box in the middle whose sides are to each other as these two."""
        rows, columns = self._size_of(images)
        inner = max(min(rows, columns * height // width), 1)
        across = max(min(columns, rows * width // height), 1)
        top, left = (rows - inner) // 2, (columns - across) // 2
        return self._cut(images, top, left, inner, across)

    def _shape_with(self, input_shape, height, width):
        shape = list(input_shape)
        shape[self._rows], shape[self._columns] = height, width
        return tuple(shape)


class Resizing(ImageLayer):
    """Resizes images and keeps their dtype: integers are rounded.

    Args: ``interpolation``: "bilinear", "nearest", "bicubic", "area", "lanczos3" or
    "lanczos5"; ``crop_to_aspect_ratio``: first cut the largest box with the new ratio
    out of the middle; ``pad_to_aspect_ratio``: first add ``fill_value`` around the
    images up to the new ratio; ``antialias``: along an axis that shrinks, average over
    more pixels; ``data_format``: "channels_last" (default) or "channels_first".

    Shapes: inputs ``[batch, rows, columns, channels]`` or ``[rows, columns,
    channels]``, outputs with ``height`` and ``width`` in place of rows and columns.

    Raises: ``ValueError`` for sizes that are not positive, another ``interpolation``,
    or both cropping and padding.

    >>> Resizing(1, 4)([[[0.0], [4.0]]]).numpy().ravel()
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
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        self.height: int = whole(self, "height", height)
        self.width: int = whole(self, "width", width)
        methods = ("bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5")
        self.interpolation: str = one_of(self, "interpolation", interpolation, methods)
        self.crop_to_aspect_ratio: bool = bool(crop_to_aspect_ratio)
        self.pad_to_aspect_ratio: bool = bool(pad_to_aspect_ratio)
        self.fill_mode: str = one_of(self, "fill_mode", fill_mode, ("constant",))
        self.fill_value = fill_value
        self.antialias: bool = bool(antialias)
        self._keep_format(data_format)
        if crop_to_aspect_ratio and pad_to_aspect_ratio:
            raise ValueError(
                "Resizing: only one of crop_to_aspect_ratio and pad_to_aspect_ratio can "
                "be True"
            )

    def call(self, inputs: Tensor) -> Tensor:
        images = inputs
        if self.crop_to_aspect_ratio:
            images = self._largest_cut(images, self.height, self.width)
        elif self.pad_to_aspect_ratio:
            images = self._padded(images)
        images = self._resized(
            images, self.height, self.width, self.interpolation, self.antialias
        )
        if images.dtype == inputs.dtype:
            return images
        return saturate_cast(round(images), inputs.dtype)

    def _padded(self, images):
        rows, columns = self._size_of(images)
        above = (max(rows, columns * self.height // self.width) - rows) // 2
        beside = (max(columns, rows * self.width // self.height) - columns) // 2
        widths = [(0, 0)] * len(images.shape)
        widths[self._rows], widths[self._columns] = (above, above), (beside, beside)
        fill = cast(self.fill_value, images.dtype)
        return pad(images, widths, constant_values=fill)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return self._shape_with(input_shape, self.height, self.width)


class CenterCrop(ImageLayer):
    """Cuts a box of ``height`` by ``width`` out of the middle of images.

    If images are smaller on either axis, the largest box with the new ratio is cut out
    and resized. Integers are cast.

    Args: ``data_format``: "channels_last" (default) or "channels_first".

    Shapes: inputs ``[batch, rows, columns, channels]`` or ``[rows, columns,
    channels]``, outputs with ``height`` and ``width`` in place of rows and columns.

    Raises: ``ValueError`` for sizes that are not positive.

    >>> CenterCrop(1, 1)([[[1.0], [2.0], [3.0]]]).numpy().ravel()
    array([2.], dtype=float32)
    """

    def __init__(
        self,
        height: int,
        width: int,
        data_format: str | None = None,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        self.height: int = whole(self, "height", height)
        self.width: int = whole(self, "width", width)
        self._keep_format(data_format)

    def call(self, inputs: Tensor) -> Tensor:
        images = self._as_own_dtype(inputs)
        above, beside = [
            n - new for n, new in zip(self._size_of(images), (self.height, self.width))
        ]
        if above >= 0 and beside >= 0:
            return self._cut(images, above // 2, beside // 2, self.height, self.width)
        images = self._largest_cut(images, self.height, self.width)
        return self._resized(images, self.height, self.width)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return self._shape_with(input_shape, self.height, self.width)
