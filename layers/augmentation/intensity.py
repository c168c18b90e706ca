"""Random changes of pixel values: brightness, contrast, inversion, posterization.

Boxes, masks and labels are unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import fill
from tapewright.ops.array.shape import reshape
from tapewright.ops.math.comparison import (
    left_shift,
    less,
    right_shift,
    where,
)
from tapewright.ops.math.elementwise import clip_by_value
from tapewright.ops.math.reduction import reduce_mean

from ..base.image_layer import checked_range
from .random_layer import RandomLayer, checked_value_range, rescaled

if TYPE_CHECKING:
    from ..base.image_layer import ImageLayerOptions, ImageOptions
    from ..base.layer_types import SeedLike

__all__ = [
    "RandomBrightness",
    "RandomContrast",
    "RandomInvert",
    "RandomPosterization",
    "Solarization",
]


class RandomBrightness(RandomLayer):
    """Randomly change the brightness of each image in training, by adding a number.

    The outputs are clipped to ``value_range``.

    Args:
        factor: Largest change in either direction, as a fraction of the range, or a
            pair (lowest, highest).
        value_range: Pair of the lowest and the highest pixel value.
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        **kwargs: ``data_format`` ("channels_last" or "channels_first"),
            ``bounding_box_format``, the format of the boxes in dict inputs (see
            `keras.utils.bounding_boxes.convert_format`), and base class arguments; see
            `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[batch, height, width, channels]``, or one image without
        the batch axis; integers are cast to the compute dtype. Dicts of images and
        annotations as in `RandomFlip`.

    Raises:
        ValueError: If ``factor`` is not between -1 and 1.

    Example:
        >>> layer = keras.layers.RandomBrightness((0.5, 0.5), value_range=(0, 1))
        >>> layer([[[0.25], [0.75]]]).numpy().ravel()
        array([0.75, 1.  ], dtype=float32)
    """

    def __init__(
        self,
        factor: float | Sequence[float],
        value_range: Sequence[float] = (0, 255),
        seed: SeedLike = None,
        **kwargs: Unpack[ImageLayerOptions],
    ):
        super().__init__(seed, **kwargs)
        self.factor: Any = checked_range(self, "factor", factor)
        self.value_range: Any = checked_value_range(self, value_range)

    def _tw_drawn(self, images, draws):
        shape = (self._tw_batch_of(images), 1, 1, 1)[-len(images.shape) :]
        low, high = self.value_range
        return {"rgb_delta": draws.uniform(shape, *self.factor) * float(high - low)}

    def _tw_changed(self, images, transformation):
        brighter = images + cast(transformation["rgb_delta"], images.dtype)
        return clip_by_value(brighter, *self.value_range)


class RandomContrast(RandomLayer):
    """Randomly change the contrast of each image in training.

        outputs = (x - mean) * f + mean

    The mean is taken over each channel of each image. The outputs are clipped to
    ``value_range``.

    Args:
        factor: Pair (lower, upper), for ``f`` between ``1 - lower`` and ``1 + upper``,
            or one number for both.
        value_range: Pair of the lowest and the highest pixel value.
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        **kwargs: ``data_format`` ("channels_last" or "channels_first"),
            ``bounding_box_format``, the format of the boxes in dict inputs (see
            `keras.utils.bounding_boxes.convert_format`), and base class arguments; see
            `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[batch, height, width, channels]``, or one image without
        the batch axis; integers are cast to the compute dtype. Dicts of images and
        annotations as in `RandomFlip`.

    Raises:
        ValueError: If ``factor`` is not between 0 and 1.

    Example:
        >>> layer = keras.layers.RandomContrast(0.0)  # f is 1
        >>> layer([[[0.25], [0.75]]]).numpy().ravel()
        array([0.25, 0.75], dtype=float32)
    """

    def __init__(
        self,
        factor: float | Sequence[float],
        value_range: Sequence[float] = (0, 255),
        seed: SeedLike = None,
        **kwargs: Unpack[ImageLayerOptions],
    ):
        super().__init__(seed, **kwargs)
        pair = factor if isinstance(factor, (list, tuple)) else (factor, factor)
        checked_range(self, "factor", pair, least=0)
        self.factor: tuple[float | int | Sequence[float], ...] = tuple(pair)
        self.value_range: Any = checked_value_range(self, value_range)

    def _tw_drawn(self, images, draws):
        shape = (self._tw_batch_of(images), 1, 1, 1)[-len(images.shape) :]
        lower, upper = self.factor
        return {"contrast_factor": draws.uniform(shape, 1.0 - lower, 1.0 + upper)}

    def _tw_changed(self, images, transformation):
        mean = reduce_mean(images, (self._tw_rows, self._tw_columns), True)
        factor = cast(transformation["contrast_factor"], images.dtype)
        return clip_by_value((images - mean) * factor + mean, *self.value_range)


class RandomInvert(RandomLayer):
    """Randomly invert images in training: ``outputs = value_range[1] - x``.

    Args:
        factor: Highest probability that an image is changed, or a pair (lowest,
            highest), between which the probability of each image is drawn.
        value_range: Pair of the lowest and the highest pixel value.
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
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
        ValueError: If ``factor`` is not between 0 and 1.

    Example:
        >>> keras.layers.RandomInvert((1.0, 1.0))([[[0.0], [200.0]]]).numpy().ravel()
        array([255.,  55.], dtype=float32)
    """

    def __init__(
        self,
        factor: float | Sequence[float] = 1.0,
        value_range: Sequence[float] = (0, 255),
        seed: SeedLike = None,
        data_format: str | None = None,
        **kwargs: Unpack[ImageOptions],
    ):
        super().__init__(seed, data_format, **kwargs)
        self.factor: Any = checked_range(self, "factor", factor, least=0)
        self.value_range: Any = checked_value_range(self, value_range)

    def _tw_drawn(self, images, draws):
        happens = draws.happens((self._tw_batch_of(images),), self.factor)
        return {"apply_inversion": happens}

    def _tw_changed(self, images, transformation):
        applies = reshape(transformation["apply_inversion"], (-1, 1, 1, 1))
        return where(applies, self.value_range[1] - images, images)


class RandomPosterization(RandomLayer):
    """Randomly reduce the number of bits per channel value in training.

    Args:
        factor: Largest number of bits, from 1 to 8, or a pair (lowest, highest), whose
            highest is excluded unless both are equal. One number ``x`` means
            ``(1, x)``.
        value_range: Pair of the lowest and the highest pixel value.
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        **kwargs: ``bounding_box_format``, the format of the boxes in dict inputs (see
            `keras.utils.bounding_boxes.convert_format`), and base class arguments; see
            `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[batch, height, width, channels]``, or one image without
        the batch axis; integers are cast to the compute dtype. Dicts of images and
        annotations as in `RandomFlip`.

    Raises:
        ValueError: If ``factor`` is not between 1 and 8.

    Example:
        >>> layer = keras.layers.RandomPosterization((2, 2))
        >>> layer([[[63.0], [64.0], [255.0]]]).numpy().ravel()
        array([  0.,  64., 192.], dtype=float32)
    """

    def __init__(
        self,
        factor: float | Sequence[float],
        value_range: Sequence[float] = (0, 255),
        data_format: str | None = None,
        seed: SeedLike = None,
        **kwargs: Unpack[ImageOptions],
    ):
        super().__init__(seed, data_format, **kwargs)
        self.factor: Any = checked_range(self, "factor", factor, 1, 8)
        self.value_range: Any = checked_value_range(self, value_range)

    def _tw_drawn(self, images, draws):
        (low, high), shape = self.factor, (self._tw_batch_of(images),)
        bits = fill(shape, low) if low == high else draws.integers(shape, low, high)
        return {"shift_factor": cast(8 - bits, "uint8")}

    def _tw_changed(self, images, transformation):
        shift = cast(reshape(transformation["shift_factor"], (-1, 1, 1, 1)), "uint8")
        bits = cast(rescaled(images, self.value_range, (0, 255)), "uint8")
        bits = left_shift(right_shift(bits, shift), shift)
        return rescaled(cast(bits, images.dtype), (0, 255), self.value_range)


class Solarization(RandomLayer):
    """Randomly brighten images, and invert the values above a threshold, in training.

        y = clip(x + addition, 0, 255)
        outputs = y if y < threshold else 255 - y

    Values are computed on the scale from 0 to 255, and then mapped back to
    ``value_range``.

    Args:
        addition_factor: Largest addition, as a fraction of 255, or a pair (lowest,
            highest). As in Keras, only the highest is multiplied by 255.
        threshold_factor: Largest threshold, as a fraction of 255, or a pair (lowest,
            highest). As in Keras, only the highest is multiplied by 255.
        value_range: Pair of the lowest and the highest pixel value.
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        **kwargs: ``data_format`` ("channels_last" or "channels_first"),
            ``bounding_box_format``, the format of the boxes in dict inputs (see
            `keras.utils.bounding_boxes.convert_format`), and base class arguments; see
            `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[batch, height, width, channels]``, or one image without
        the batch axis; integers are cast to the compute dtype. Dicts of images and
        annotations as in `RandomFlip`.

    Raises:
        ValueError: If a factor is not between 0 and 1.

    Example:
        >>> layer = keras.layers.Solarization()  # the threshold is 0
        >>> layer([[[0.0], [200.0]]]).numpy().ravel()
        array([255.,  55.], dtype=float32)
    """

    def __init__(
        self,
        addition_factor: float | Sequence[float] = 0.0,
        threshold_factor: float | Sequence[float] = 0.0,
        value_range: Sequence[float] = (0, 255),
        seed: SeedLike = None,
        **kwargs: Unpack[ImageLayerOptions],
    ):
        super().__init__(seed, **kwargs)
        self.addition_factor: Any = checked_range(
            self, "addition_factor", addition_factor, least=0
        )
        self.threshold_factor: Any = checked_range(
            self, "threshold_factor", threshold_factor, least=0
        )
        self.value_range: Any = checked_value_range(self, value_range)

    def _tw_drawn(self, images, draws):
        shape = (self._tw_batch_of(images), 1, 1, 1)[-len(images.shape) :]
        (low, high), (least, most) = self.addition_factor, self.threshold_factor
        return {
            "additions": draws.uniform(shape, low, high * 255),
            "thresholds": draws.uniform(shape, least, most * 255),
        }

    def _tw_changed(self, images, transformation):
        additions, thresholds = [
            cast(transformation[name], images.dtype)
            for name in ("additions", "thresholds")
        ]
        images = rescaled(images, self.value_range, (0, 255)) + additions
        images = clip_by_value(images, 0.0, 255.0)
        images = where(less(images, thresholds), images, 255.0 - images)
        return rescaled(images, (0, 255), self.value_range)
