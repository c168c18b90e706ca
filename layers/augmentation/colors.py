"""Random color changes: hue, saturation, grayscale.

Boxes, masks and labels are unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.errors import ShapeError
from tapewright.core.messages.argument_validation import share
from tapewright.core.settings.floatx import epsilon
from tapewright.core.tensor import convert_to_tensor
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.joining import stack, unstack
from tapewright.ops.array.shape import expand_dims
from tapewright.ops.image.color import hsv_to_rgb, rgb_to_hsv
from tapewright.ops.math.comparison import (
    greater,
    less,
    where,
)
from tapewright.ops.math.elementwise import clip_by_value

from ..base.image_layer import checked_range
from .intensity import RandomBrightness, RandomContrast
from .random_layer import RandomLayer, checked_value_range, rescaled

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor

    from ..base.image_layer import ImageOptions
    from ..base.layer_types import SeedLike

__all__ = [
    "RandomColorDegeneration",
    "RandomColorJitter",
    "RandomGrayscale",
    "RandomHue",
    "RandomSaturation",
]


class _Coloured(RandomLayer):
    """Layer that processes RGB images."""

    _tw_channel_counts: tuple[int, ...] = (3,)

    def _tw_check_inputs(self, inputs):
        super()._tw_check_inputs(inputs)
        images = inputs["images"] if isinstance(inputs, dict) else inputs
        if images.shape[self._tw_channels] not in (*self._tw_channel_counts, None):
            what = "images must have three channels (RGB)"
            if 1 in self._tw_channel_counts:
                what += " or one (grayscale)"
            raise ShapeError(self._tw_title, what, images=images)

    def _tw_of_hsv(self, images, change):
        """Apply ``change(hue, saturation, value)`` to RGB images."""

        def changed(x):
            hsv = unstack(rgb_to_hsv(x), axis=-1)
            return hsv_to_rgb(stack(change(*hsv), axis=-1))

        return self._tw_channels_last(changed, images)


class RandomHue(_Coloured):
    """Randomly rotate the hue of each image in training.

    Args:
        factor: Largest rotation in either direction, from 0 to 1 (half a turn of the
            color wheel), or a pair (least, largest).
        value_range: Pair of the lowest and the highest pixel value.
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        **kwargs: ``bounding_box_format``, the format of the boxes in dict inputs (see
            `keras.utils.bounding_boxes.convert_format`), and base class arguments; see
            `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[batch, height, width, 3]``, or one image without the batch
        axis; integers are cast to the compute dtype. Dicts of images and annotations as
        in `RandomFlip`.

    Raises:
        ValueError: If ``factor`` is not between 0 and 1.
        ShapeError: If the images do not have three channels.

    Example:
        >>> layer = keras.layers.RandomHue((1.0, 1.0), value_range=(0, 1))
        >>> layer([[[1.0, 0.0, 0.0]]]).numpy().ravel()  # red becomes cyan
        array([0., 1., 1.], dtype=float32)
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
        self.factor: Any = checked_range(self, "factor", factor, least=0)
        self.value_range: Any = checked_value_range(self, value_range)

    def _tw_drawn(self, images, draws):
        shape = (self._tw_batch_of(images),)
        sign = where(greater(draws.uniform(shape), 0.5), -1.0, 1.0)
        return {"factor": sign * draws.uniform(shape, *self.factor) * 0.5}

    def _tw_changed(self, images, transformation):
        turn = self._tw_for_each(transformation["factor"], images)[..., 0]

        def turned(hue, saturation, value):
            hue = hue + turn
            hue = where(greater(hue, 1.0), hue - 1.0, hue)
            return where(less(hue, 0.0), hue + 1.0, hue), saturation, value

        images = self._tw_of_hsv(rescaled(images, self.value_range, (0, 1)), turned)
        return rescaled(clip_by_value(images, 0.0, 1.0), (0, 1), self.value_range)


class RandomSaturation(_Coloured):
    """Randomly multiply the saturation of each image by ``f / (1 - f)`` in training.

    Args:
        factor: Largest ``f``, or a pair (lowest, highest); one number ``x`` means
            ``(-x, x)``. A value of 0.5 keeps the saturation, 0 or less results in gray.
        value_range: Bounds to which the saturation is clipped.
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        **kwargs: ``bounding_box_format``, the format of the boxes in dict inputs (see
            `keras.utils.bounding_boxes.convert_format`), and base class arguments; see
            `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[batch, height, width, 3]``, or one image without the batch
        axis; integers are cast to the compute dtype. Dicts of images and annotations as
        in `RandomFlip`.

    Raises:
        ValueError: If ``factor`` is not between -1 and 1.
        ShapeError: If the images do not have three channels.

    Example:
        >>> layer = keras.layers.RandomSaturation((0.0, 0.0))
        >>> layer([[[3.0, 1.0, 2.0]]]).numpy().ravel()
        array([3., 3., 3.], dtype=float32)
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
        self.factor: Any = checked_range(self, "factor", factor)
        self.value_range: Any = checked_value_range(self, value_range)

    def _tw_drawn(self, images, draws):
        factor = draws.uniform((self._tw_batch_of(images),), *self.factor)
        return {"factor": factor / (1.0 - factor + epsilon())}

    def _tw_changed(self, images, transformation):
        factor = self._tw_for_each(transformation["factor"], images)[..., 0]

        def multiplied(hue, saturation, value):
            saturation = clip_by_value(saturation * factor, *self.value_range)
            return hue, saturation, value

        return self._tw_of_hsv(images, multiplied)


# ----------------------------------------------------------------------------- grey


def _gray(layer, images):
    """Return the luminance as one channel; a single channel is returned unchanged."""
    if images.shape[layer._tw_channels] == 1:
        return images
    weights = cast([0.2989, 0.587, 0.114], images.dtype)

    def luminance(x):
        red, green, blue = unstack(x * weights, axis=-1)
        return expand_dims(red + green + blue, -1)

    return layer._tw_channels_last(luminance, images)


class RandomGrayscale(_Coloured):
    """Randomly convert images to grayscale in training; the number of channels stays.

    Args:
        factor: Probability of the conversion of each image, from 0 to 1.
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        **kwargs: ``bounding_box_format``, the format of the boxes in dict inputs (see
            `keras.utils.bounding_boxes.convert_format`), and base class arguments; see
            `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[batch, height, width, channels]`` with 3 channels or 1, or
        one image without the batch axis; the dtype is kept. Dicts of images and
        annotations as in `RandomFlip`.

    Raises:
        ValueError: If ``factor`` is not between 0 and 1.
        ShapeError: If the images have neither 3 channels nor 1.

    Example:
        >>> keras.layers.RandomGrayscale(1.0)([[[1.0, 0.0, 0.0]]]).numpy().ravel()
        array([0.2989, 0.2989, 0.2989], dtype=float32)
    """

    _tw_channel_counts = (3, 1)
    _tw_omit_defaults: dict[str, Any] = RandomLayer._tw_omit_defaults | {"seed": None}

    def __init__(
        self,
        factor: float = 0.5,
        data_format: str | None = None,
        seed: SeedLike = None,
        **kwargs: Unpack[ImageOptions],
    ):
        super().__init__(seed, data_format, **kwargs)
        self.factor: float = share(self, "factor", factor)

    def _tw_drawn(self, images, draws):
        return less(draws.uniform((self._tw_batch_of(images), 1, 1, 1)), self.factor)

    def transform_images(
        self, images: Tensor, transformation: Any = None, training: bool | None = True
    ) -> Tensor:
        """Convert some of the images to grayscale; their dtype is kept.

        Args:
            images: Images ``[batch, height, width, channels]``, or one image without
                the batch axis.
            transformation: Value returned by `get_random_transformation`, or None.
            training: If False, nothing is changed.
        """
        images = convert_to_tensor(images)
        if not training or transformation is None:
            return images
        return self._tw_as_batch(self._tw_changed, images, transformation)

    def _tw_changed(self, images, transformation):
        gray = cast(_gray(self, self._tw_as_own_dtype(images)), images.dtype)
        return where(transformation, gray, images)


class RandomColorDegeneration(_Coloured):
    """Randomly blend each image with its grayscale version in training.

        outputs = (1 - f) * x + f * gray

    The outputs are clipped to ``value_range``.

    Args:
        factor: Largest ``f``, or a pair (lowest, highest); one number ``x`` means
            ``(-x, x)``. A value of 1 results in gray, a negative one increases the
            saturation.
        value_range: Pair of the lowest and the highest pixel value.
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        **kwargs: ``bounding_box_format``, the format of the boxes in dict inputs (see
            `keras.utils.bounding_boxes.convert_format`), and base class arguments; see
            `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[batch, height, width, 3]``, or one image without the batch
        axis; integers are cast to the compute dtype. Dicts of images and annotations as
        in `RandomFlip`.

    Raises:
        ValueError: If ``factor`` is not between -1 and 1.
        ShapeError: If the images do not have three channels.

    Example:
        >>> layer = keras.layers.RandomColorDegeneration((0.5, 0.5))
        >>> layer([[[200.0, 0.0, 0.0]]]).numpy().round(2)
        array([[[129.89,  29.89,  29.89]]], dtype=float32)
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
        self.factor: Any = checked_range(self, "factor", factor)
        self.value_range: Any = checked_value_range(self, value_range)

    def _tw_drawn(self, images, draws):
        return {
            "factor": draws.uniform((self._tw_batch_of(images), 1, 1, 1), *self.factor)
        }

    def _tw_changed(self, images, transformation):
        factor = cast(transformation["factor"], images.dtype)
        grayer = images + factor * (_gray(self, images) - images)
        return clip_by_value(grayer, *self.value_range)


# ------------------------------------------------------------------------- together


class RandomColorJitter(RandomLayer):
    """Randomly change brightness, contrast, saturation and hue in training.

    The changes are applied in this order.

    Args:
        value_range: Pair of the lowest and the highest pixel value.
        brightness_factor: Argument ``factor`` of `RandomBrightness`, or None to keep
            the brightness.
        contrast_factor: Argument ``factor`` of `RandomContrast`, or None to keep the
            contrast.
        saturation_factor: Argument ``factor`` of `RandomSaturation`, or None to keep
            the saturation.
        hue_factor: Argument ``factor`` of `RandomHue`, or None to keep the hue.
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

    Example:
        >>> jitter = {"brightness_factor": (0.1, 0.1), "contrast_factor": (0.0, 0.0)}
        >>> keras.layers.RandomColorJitter(**jitter)([[[1.0, 2.0, 3.0]]]).numpy().ravel()
        array([26.5, 27.5, 28.5], dtype=float32)
    """

    def __init__(
        self,
        value_range: Sequence[float] = (0, 255),
        brightness_factor: float | Sequence[float] | None = None,
        contrast_factor: float | Sequence[float] | None = None,
        saturation_factor: float | Sequence[float] | None = None,
        hue_factor: float | Sequence[float] | None = None,
        seed: SeedLike = None,
        data_format: str | None = None,
        **kwargs: Unpack[ImageOptions],
    ):
        super().__init__(seed, data_format, **kwargs)
        self.value_range: Any = checked_value_range(self, value_range)
        self.brightness_factor: float | Sequence[float] | None = brightness_factor
        self.contrast_factor: float | Sequence[float] | None = contrast_factor
        self.saturation_factor: float | Sequence[float] | None = saturation_factor
        self.hue_factor: float | Sequence[float] | None = hue_factor
        self.random_brightness: RandomBrightness | None = self._tw_part(
            RandomBrightness, brightness_factor
        )
        self.random_contrast: RandomContrast | None = self._tw_part(
            RandomContrast, contrast_factor
        )
        self.random_saturation: RandomSaturation | None = self._tw_part(
            RandomSaturation, saturation_factor
        )
        self.random_hue: RandomHue | None = self._tw_part(RandomHue, hue_factor)

    def _tw_part(self, cls, factor):
        if factor is None:
            return None
        return cls(
            factor,
            value_range=self.value_range,
            seed=self.seed,
            data_format=self.data_format,
            dtype=self.dtype_policy,
        )

    @property
    def _tw_changes(self):
        parts = {
            "random_brightness": self.random_brightness,
            "random_contrast": self.random_contrast,
            "random_saturation": self.random_saturation,
            "random_hue": self.random_hue,
        }
        return {name: part for name, part in parts.items() if part is not None}

    def _tw_drawn(self, images, draws):
        return {
            name: part.get_random_transformation(images, seed=draws.generator)
            for name, part in self._tw_changes.items()
        }

    def _tw_changed(self, images, transformation):
        for name, part in self._tw_changes.items():
            images = part.transform_images(images, transformation[name])
        return images
