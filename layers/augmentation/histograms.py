"""Contrast changes by image histograms: auto-contrast, equalization, CLAHE.

Boxes, masks and labels are unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.messages.argument_validation import not_negative, numbers, whole
from tapewright.core.tensor import convert_to_tensor
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import range as arange
from tapewright.ops.array.gather import gather
from tapewright.ops.array.joining import pad
from tapewright.ops.array.shape import reshape, transpose
from tapewright.ops.math.comparison import equal, greater, less_equal, where
from tapewright.ops.math.counting import bincount
from tapewright.ops.math.elementwise import clip_by_value, floor, minimum, round
from tapewright.ops.math.reduction import reduce_max, reduce_min, reduce_sum
from tapewright.ops.math.scan import cumsum

from ..base.image_layer import ImageLayer
from .random_layer import checked_value_range, rescaled

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor

    from ..base.image_layer import ImageLayerOptions, ImageOptions

__all__ = [
    "AutoContrast",
    "ContrastLimitedAdaptiveHistogramEqualization",
    "Equalization",
]


class AutoContrast(ImageLayer):
    """Stretch the values of each channel of each image to the whole ``value_range``.

        outputs = low + (x - min(x)) * (high - low) / (max(x) - min(x))

    A constant channel is unchanged. The layer does the same in training and inference.

    Args:
        value_range: Pair of the lowest and the highest pixel value.
        **kwargs: ``data_format`` ("channels_last" or "channels_first"),
            ``bounding_box_format``, the format of the boxes in dict inputs (see
            `keras.utils.bounding_boxes.convert_format`), and base class arguments; see
            `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[batch, height, width, channels]``, or one image without
        the batch axis; integers are cast to the compute dtype. Dicts of images and
        annotations as in `RandomFlip`.

    Example:
        >>> keras.layers.AutoContrast()([[[100.0], [110.0], [120.0]]]).numpy().ravel()
        array([  0. , 127.5, 255. ], dtype=float32)
    """

    def __init__(
        self,
        value_range: Sequence[float] = (0, 255),
        **kwargs: Unpack[ImageLayerOptions],
    ):
        super().__init__(**kwargs)
        self.value_range: Any = checked_value_range(self, value_range)

    def transform_images(
        self, images: Tensor, transformation: Any = None, training: bool | None = True
    ) -> Tensor:
        """Stretch the values of the images.

        Args:
            images: Images ``[batch, height, width, channels]``, or one image without
                the batch axis.
            transformation: Ignored.
            training: Ignored.
        """
        given = self._tw_as_own_dtype(convert_to_tensor(images))
        images = rescaled(given, self.value_range, (0, 255))
        axes = (self._tw_rows, self._tw_columns)
        low, high = reduce_min(images, axes, True), reduce_max(images, axes, True)
        flat = less_equal(high, low)
        scale = 255.0 / where(flat, 1.0, high - low)
        images = clip_by_value(images * scale - low * scale, 0.0, 255.0)
        return where(flat, given, rescaled(images, (0, 255), self.value_range))


class Equalization(ImageLayer):
    """Histogram equalization: make the values of each channel about equally frequent.

    Each value is replaced by 255 times the fraction of the channel's values that do not
    exceed it. As in Keras, the histogram of a channel covers the whole batch. Only
    applied in training.

    Args:
        value_range: Pair of the lowest and the highest pixel value.
        bins: Number of bins of the histogram, positive.
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        **kwargs: ``bounding_box_format``, the format of the boxes in dict inputs (see
            `keras.utils.bounding_boxes.convert_format`), and base class arguments; see
            `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[batch, height, width, channels]``, or one image without
        the batch axis; integers are cast to the compute dtype. Dicts of images and
        annotations as in `RandomFlip`.

    Raises:
        ValueError: If ``bins`` is not positive.

    Example:
        >>> keras.layers.Equalization()([[[10.0], [11.0], [11.0], [12.0]]]).numpy().ravel()
        array([  0., 170., 170., 255.], dtype=float32)
    """

    def __init__(
        self,
        value_range: Sequence[float] = (0, 255),
        bins: int = 256,
        data_format: str | None = None,
        **kwargs: Unpack[ImageOptions],
    ):
        super().__init__(data_format=data_format, **kwargs)
        self.bins: int = whole(self, "bins", bins)
        self.value_range: Any = checked_value_range(self, value_range)

    def get_random_transformation(
        self, data: Any, training: bool | None = True, seed: Any = None
    ) -> Any:
        """Return an empty dict, since nothing is random, or None if not ``training``.

        Args:
            data: Ignored.
            training: If False, return None.
            seed: Ignored.
        """
        return {} if training else None

    def transform_images(
        self, images: Tensor, transformation: Any = None, training: bool | None = True
    ) -> Tensor:
        """Equalize the channels of the images; only cast them if not ``training``.

        Args:
            images: Images ``[batch, height, width, channels]``, or one image without
                the batch axis.
            transformation: Ignored.
            training: If False, nothing is changed.
        """
        images = self._tw_as_own_dtype(convert_to_tensor(images))
        if not training:
            return images
        return self._tw_as_batch(
            lambda x: self._tw_channels_last(self._tw_equalized, x), images
        )

    def _tw_equalized(self, images):
        batch, height, width, channels = images.shape
        (low, high), last = self.value_range, self.bins - 1
        scale = 255 / (high - low)  # as Keras, not as `rescaled`
        x = reshape(transpose(images, (3, 0, 1, 2)), (channels, -1))
        x = x * scale - low * scale
        bins = cast(x, "float32") * last / 255.0
        bins = clip_by_value(cast(bins, "int32"), 0, last)
        counts = bincount(bins, minlength=self.bins, maxlength=self.bins, axis=-1)
        shares = cumsum(cast(counts, "float64"), axis=-1)
        least = reduce_min(
            where(greater(shares, 0.0), shares, float("inf")), -1, keepdims=True
        )
        span = shares[:, -1:] - least
        table = (shares - least) * 255.0 / where(equal(span, 0.0), 1.0, span)
        table = cast(clip_by_value(round(table), 0.0, 255.0), images.dtype)
        indices = cast(clip_by_value(x / 255.0 * last, 0, last), "int32")
        used = reduce_sum(cast(greater(counts, 0), "int32"), -1, True)
        x = where(less_equal(used, 1), x, gather(table, indices, batch_dims=1))
        x = x * ((high - low) / 255) + low
        x = reshape(x, (channels, batch, height, width))
        return transpose(x, (1, 2, 3, 0))


class ContrastLimitedAdaptiveHistogramEqualization(ImageLayer):
    """Contrast limited adaptive histogram equalization (CLAHE) of images, by tiles.

    The histogram of each tile is clipped at ``clip_limit`` times its mean, and the
    excess is distributed evenly over all values. The output of a pixel interpolates
    bilinearly between the equalizations of the four nearest tiles. The layer does the
    same in training and inference.

    Args:
        value_range: Pair of the lowest and the highest pixel value.
        clip_limit: Limit relative to the mean count; 0 for no limit.
        tile_grid_size: Number of tiles (vertically, horizontally).
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        **kwargs: ``bounding_box_format``, the format of the boxes in dict inputs (see
            `keras.utils.bounding_boxes.convert_format`), and base class arguments; see
            `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[batch, height, width, channels]``, or one image without
        the batch axis; the dtype is kept. Dicts of images and annotations as in
        `RandomFlip`.

    Raises:
        ValueError: If ``clip_limit`` is negative, or the numbers of tiles are not
            positive integers.

    References:
        Zuiderveld, "Contrast limited adaptive histogram equalization" (1994).

    Example:
        >>> CLAHE = keras.layers.ContrastLimitedAdaptiveHistogramEqualization
        >>> CLAHE(tile_grid_size=(1, 1))([[[0.0], [100.0]]]).numpy().ravel().round(1)
        array([  0. , 102.5], dtype=float32)
    """

    def __init__(
        self,
        value_range: Sequence[float] = (0, 255),
        clip_limit: float = 4.0,
        tile_grid_size: Sequence[int] = (8, 8),
        data_format: str | None = None,
        **kwargs: Unpack[ImageOptions],
    ):
        super().__init__(data_format=data_format, **kwargs)
        self.value_range: Any = checked_value_range(self, value_range)
        self.clip_limit: float = not_negative(self, "clip_limit", clip_limit)
        self.tile_grid_size: Any = numbers(self, "tile_grid_size", tile_grid_size, 2)

    def transform_images(
        self, images: Tensor, transformation: Any = None, training: bool | None = True
    ) -> Tensor:
        """Equalize the images; their dtype is kept.

        Args:
            images: Images ``[batch, height, width, channels]``, or one image without
                the batch axis.
            transformation: Ignored.
            training: Ignored.
        """
        images = convert_to_tensor(images)
        out = cast(images, "float32")
        out = rescaled(out, self.value_range, (0, 255))
        out = self._tw_as_batch(
            lambda x: self._tw_channels_last(self._tw_equalized, x), out
        )
        return cast(rescaled(out, (0, 255), self.value_range), images.dtype)

    def _tw_equalized(self, images):
        batch, height, width, channels = images.shape
        down, across = self.tile_grid_size
        rows, columns = -(-height // down), -(-width // across)  # of a tile
        margins = rows * down - height, columns * across - width
        images = pad(images, [(0, 0), *[(0, n) for n in margins], (0, 0)], "SYMMETRIC")
        values = cast(clip_by_value(images, 0.0, 255.0), "int32")
        tiles = reshape(values, (batch, down, rows, across, columns, channels))
        tiles = transpose(tiles, (0, 1, 3, 5, 2, 4))
        tiles = reshape(tiles, (batch, down, across, channels, rows * columns))
        tables = reshape(self._tw_tables(tiles), (-1,))

        def index(y, x):
            """Return the index of each pixel in the table of the tile ``(y, x)``."""
            images = reshape(arange(batch, dtype="int32"), (-1, 1, 1, 1))
            tile = (images * down + reshape(y, (-1, 1, 1))) * across
            tile = tile + reshape(x, (-1, 1))
            return (tile * channels + arange(channels, dtype="int32")) * 256 + values

        above, below, down_share = _between(rows, down)
        left, right, right_share = _between(columns, across)
        down_share = reshape(down_share, (-1, 1, 1))
        right_share = reshape(right_share, (-1, 1))
        ends = []
        for y in (above, below):
            at_left = gather(tables, index(y, left))
            at_right = gather(tables, index(y, right))
            ends.append(at_left * (1.0 - right_share) + at_right * right_share)
        outputs = ends[0] * (1.0 - down_share) + ends[1] * down_share
        return outputs[:, :height, :width]

    def _tw_tables(self, tiles):
        """Return the new values per tile, ``[batch, down, across, channels, 256]``."""
        size = cast(tiles.shape[-1], "float32")
        counts = bincount(tiles, minlength=256, maxlength=256, axis=-1, dtype="float32")
        if self.clip_limit > 0:
            clipped = minimum(counts, self.clip_limit * size / 256.0)
            counts = clipped + reduce_sum(counts - clipped, -1, True) / 256.0
        shares = cumsum(counts, axis=-1)
        least = reduce_min(shares, -1, True)
        span = size - least
        span = where(equal(span, 0.0), 1.0, span)
        return clip_by_value((shares - least) * 255.0 / span, 0.0, 255.0)


def _between(size, tiles):
    """Return the tiles before and after each pixel, and the weight of the latter."""
    at = (arange(size * tiles, dtype="float32") - size / 2.0) / cast(size, "float32")
    at = at + 1.0  # rounded as in Keras, whose tables have one more tile at each end
    after = floor(at)
    ends = [cast(clip_by_value(n, 0, tiles - 1), "int32") for n in (after - 1, after)]
    return *ends, at - after
