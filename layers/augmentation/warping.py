"""Random projective maps of images: rotation, translation, zoom, shear, perspective.

A box becomes the smallest box around its mapped corners; masks use the nearest pixel.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.messages.argument_validation import one_of, share
from tapewright.core.tensor import convert_to_tensor
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import ones_like, zeros_like
from tapewright.ops.array.joining import concat, stack, unstack
from tapewright.ops.array.shape import reshape
from tapewright.ops.image.warping import (
    FILL_MODES,
    INTERPOLATIONS,
    affine_transform,
    homography,
)
from tapewright.ops.math.comparison import greater, where
from tapewright.ops.math.trigonometry import cos, sin

from ..base.bounding_boxes import clip_to_image_size, pulled_back
from ..base.image_layer import checked_range
from .random_layer import RandomLayer

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor

    from ..base.image_layer import ImageOptions
    from ..base.layer_types import SeedLike

__all__ = [
    "RandomPerspective",
    "RandomRotation",
    "RandomShear",
    "RandomTranslation",
    "RandomZoom",
]


class Warping(RandomLayer):
    """Random map of images; ``fill_mode`` determines the pixels from outside the image.

    ``fill_mode`` is "reflect" (``d c b a | a b c d``), "wrap", "nearest" or "constant"
    (``fill_value``); ``interpolation`` is "bilinear" or "nearest".
    """

    _tw_fill_mode: Any = property(attrgetter("fill_mode"))
    interpolation: str
    fill_value: float

    def _tw_keep_filling(
        self, interpolation, fill_value, fill_mode=None, fill_modes=FILL_MODES
    ):
        if fill_mode is not None:
            self.fill_mode = one_of(self, "fill_mode", fill_mode, fill_modes)
        self.interpolation = one_of(
            self, "interpolation", interpolation, INTERPOLATIONS
        )
        self.fill_value = fill_value

    def transform_segmentation_masks(
        self,
        segmentation_masks: Tensor,
        transformation: Any = None,
        training: bool | None = True,
    ) -> Tensor:
        """Warp the masks like the images, with the nearest pixels.

        Args:
            segmentation_masks: Masks ``[batch, height, width, channels]`` that belong
                to the images.
            transformation: Value returned by `get_random_transformation`, or None.
            training: If False, nothing is changed.
        """
        masks = convert_to_tensor(segmentation_masks)
        if not training or transformation is None:
            return masks
        moved = self._tw_as_batch(self._tw_changed, masks, transformation, "nearest")
        return cast(moved, masks.dtype)


class _Mapping(Warping):
    """Warping by one projective map per image."""

    @abstractmethod
    def _tw_maps(self, images_shape, transformation):
        """Return maps of pixels to sources, ``[batch, 8]`` as in `affine_transform`."""

    def _tw_changed(self, images, transformation, interpolation=None):
        return affine_transform(
            images,
            self._tw_maps(images.shape, transformation),
            interpolation or self.interpolation,
            self._tw_fill_mode,
            self.fill_value,
            self.data_format,
        )

    def transform_bounding_boxes(
        self,
        bounding_boxes: dict[str, Any],
        transformation: Any = None,
        training: bool | None = True,
    ) -> dict[str, Any]:
        """Return the smallest boxes around the mapped corners, clipped to the images.

        Args:
            bounding_boxes: Dict of ``"boxes"`` ``[batch, n, 4]`` and ``"labels"``
                ``[batch, n]``.
            transformation: Value returned by `get_random_transformation`, or None.
            training: If False, nothing is changed.
        """
        if not training or transformation is None:
            return bounding_boxes
        shape = transformation["input_shape"]
        size = shape[self._tw_rows], shape[self._tw_columns]
        in_pixels = self._tw_boxes_as("xyxy", bounding_boxes, size)
        boxes = self._tw_moved(in_pixels["boxes"], shape, transformation)
        in_pixels = clip_to_image_size(in_pixels | {"boxes": boxes}, *size)
        return self._tw_boxes_as(self.bounding_box_format, in_pixels, size, "xyxy")

    def _tw_moved(self, boxes, shape, transformation):
        return pulled_back(boxes, self._tw_maps(shape, transformation))

    def _tw_middle(self, shape):
        """Return half of the last row index and half of the last column index."""
        sizes = shape[self._tw_rows], shape[self._tw_columns]
        return [(cast(n, "float32") - 1.0) / 2.0 for n in sizes]


def _rows_of_eight(a0, a1, a2, b0, b1, b2):
    """Return ``[batch, 8]``: maps of (x, y) to (a0 x + a1 y + a2, b0 x + b1 y + b2)."""
    zeros = zeros_like(a0)
    return stack([a0, a1, a2, b0, b1, b2, zeros, zeros], axis=1)


class RandomRotation(_Mapping):
    """Rotate each image about its center by a random angle in training.

    Args:
        factor: Largest angle in either direction, as a fraction of a full turn, or a
            pair (lowest, highest); positive angles are counter-clockwise.
        fill_mode: Source of the pixels outside the image: "reflect"
            (``d c b a | a b c d``), "wrap", "nearest" or "constant" (``fill_value``).
        interpolation: "bilinear" or "nearest".
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        fill_value: Value of the pixels outside the image if ``fill_mode`` is
            "constant".
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
        ValueError: If ``factor`` is not between -1 and 1, or a mode is unknown.

    Example:
        >>> keras.layers.RandomRotation(0.1)(tw.ones([2, 8, 8, 3])).shape
        TensorShape([2, 8, 8, 3])
    """

    def __init__(
        self,
        factor: float | Sequence[float],
        fill_mode: str = "reflect",
        interpolation: str = "bilinear",
        seed: SeedLike = None,
        fill_value: float = 0.0,
        data_format: str | None = None,
        **kwargs: Unpack[ImageOptions],
    ):
        super().__init__(seed, data_format, **kwargs)
        self.factor: Any = checked_range(self, "factor", factor)
        self._tw_keep_filling(interpolation, fill_value, fill_mode)

    def _tw_drawn(self, images, draws):
        low, high = [share * 360.0 for share in self.factor]
        angle = draws.uniform((self._tw_batch_of(images),), low, high)
        matrix = self._tw_rotation(images.shape, angle)
        return {
            "angle": angle,
            "rotation_matrix": matrix,
            "input_shape": images.shape,
        }

    def _tw_rotation(self, shape, degrees):
        y, x = self._tw_middle(shape)
        angle = degrees * (math.pi / 180.0)
        c, s = cos(angle), sin(angle)
        return _rows_of_eight(c, -s, x - x * c + y * s, s, c, y - x * s - y * c)

    def _tw_maps(self, images_shape, transformation):
        return reshape(transformation["rotation_matrix"], (-1, 8))


class RandomTranslation(_Mapping):
    """Randomly shift each image vertically and horizontally in training.

    Args:
        height_factor: Largest shift in either direction, as a fraction of the height,
            or a pair (lowest, highest); positive values shift down.
        width_factor: Largest shift in either direction, as a fraction of the width, or
            a pair (lowest, highest); positive values shift right.
        fill_mode: Source of the pixels outside the image: "reflect"
            (``d c b a | a b c d``), "wrap", "nearest" or "constant" (``fill_value``).
        interpolation: "bilinear" or "nearest".
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        fill_value: Value of the pixels outside the image if ``fill_mode`` is
            "constant".
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
        ValueError: If a factor is not between -1 and 1, or a mode is unknown.

    Example:
        >>> options = {"fill_mode": "constant"}
        >>> layer = keras.layers.RandomTranslation((0.0, 0.0), (0.5, 0.5), **options)
        >>> layer([[[1.0], [2.0]]]).numpy().ravel()
        array([0., 1.], dtype=float32)
    """

    height_factor: float | Sequence[float]
    width_factor: float | Sequence[float] | None

    def __init__(
        self,
        height_factor: float | Sequence[float],
        width_factor: float | Sequence[float] | None,
        fill_mode: str = "reflect",
        interpolation: str = "bilinear",
        seed: SeedLike = None,
        fill_value: float = 0.0,
        data_format: str | None = None,
        **kwargs: Unpack[ImageOptions],
    ):
        super().__init__(seed, data_format, **kwargs)
        self.height_factor, self.width_factor = height_factor, width_factor
        self._tw_down = checked_range(self, "height_factor", height_factor)
        self._tw_right = checked_range(self, "width_factor", width_factor)
        self._tw_keep_filling(interpolation, fill_value, fill_mode)

    def _tw_drawn(self, images, draws):
        height, width = [cast(n, "float32") for n in self._tw_size_of(images)]
        shape = (self._tw_batch_of(images), 1)
        down = draws.uniform(shape, *self._tw_down)
        right = draws.uniform(shape, *self._tw_right)
        moves = concat([right * width, down * height], axis=1)
        return {"translations": moves, "input_shape": images.shape}

    def _tw_maps(self, images_shape, transformation):
        right, down = unstack(transformation["translations"], axis=1)
        one, zero = ones_like(right), zeros_like(right)
        return _rows_of_eight(one, zero, -right, zero, one, -down)


class RandomZoom(_Mapping):
    """Randomly zoom in or out of each image in training.

    Args:
        height_factor: Largest change in either direction, or a pair (lowest, highest).
            A value of 0.2 zooms out vertically by 20%, -0.2 zooms in by 20%.
        width_factor: Same for the width; None keeps the aspect ratio.
        fill_mode: Source of the pixels outside the image: "reflect"
            (``d c b a | a b c d``), "wrap", "nearest" or "constant" (``fill_value``).
        interpolation: "bilinear" or "nearest".
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        fill_value: Value of the pixels outside the image if ``fill_mode`` is
            "constant".
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
        ValueError: If a factor is not above -1 and at most 1, or a mode is unknown.

    Example:
        >>> keras.layers.RandomZoom(0.2)(tw.ones([2, 8, 8, 3])).shape
        TensorShape([2, 8, 8, 3])
    """

    height_factor: float | Sequence[float]
    width_factor: float | Sequence[float] | None

    def __init__(
        self,
        height_factor: float | Sequence[float],
        width_factor: float | Sequence[float] | None = None,
        fill_mode: str = "reflect",
        interpolation: str = "bilinear",
        seed: SeedLike = None,
        fill_value: float = 0.0,
        data_format: str | None = None,
        **kwargs: Unpack[ImageOptions],
    ):
        super().__init__(seed, data_format, **kwargs)
        self.height_factor, self.width_factor = height_factor, width_factor
        self._tw_tall = checked_range(self, "height_factor", height_factor)
        self._tw_wide = None
        if width_factor is not None:
            self._tw_wide = checked_range(self, "width_factor", width_factor)
        for low, _ in filter(None, (self._tw_tall, self._tw_wide)):
            if low <= -1:
                raise ValueError(
                    "RandomZoom: height_factor and width_factor must be above -1, got "
                    f"{height_factor} and {width_factor}"
                )
        self._tw_keep_filling(interpolation, fill_value, fill_mode)

    def _tw_drawn(self, images, draws):
        shape = (self._tw_batch_of(images), 1)
        tall = 1.0 + draws.uniform(shape, *self._tw_tall)
        wide = tall
        if self._tw_wide is not None:
            wide = 1.0 + draws.uniform(shape, *self._tw_wide)
        return {"height_zoom": tall, "width_zoom": wide, "input_shape": images.shape}

    def _tw_maps(self, images_shape, transformation):
        middle_y, middle_x = self._tw_middle(images_shape)
        tall = transformation["height_zoom"][:, 0]
        wide = transformation["width_zoom"][:, 0]
        zero = zeros_like(tall)
        x, y = middle_x * (1.0 - wide), middle_y * (1.0 - tall)
        return _rows_of_eight(wide, zero, x, zero, tall, y)


class RandomShear(_Mapping):
    """Randomly shear each image horizontally and vertically in training.

        outputs[y, x] = images[y + b x, x + a y]

    Args:
        x_factor: Largest ``a`` in either direction, from 0 to 1, or a pair (lowest,
            highest); the sign is drawn as well.
        y_factor: Same for ``b``.
        interpolation: "bilinear" or "nearest".
        fill_mode: Source of the pixels outside the image: "reflect"
            (``d c b a | a b c d``), "wrap", "nearest" or "constant" (``fill_value``).
        fill_value: Value of the pixels outside the image if ``fill_mode`` is
            "constant".
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
        ValueError: If a factor is not between -1 and 1, or a mode is unknown.

    Example:
        >>> options = {"fill_mode": "constant", "seed": 3}
        >>> layer = keras.layers.RandomShear(x_factor=(1.0, 1.0), **options)
        >>> layer([[[1.0], [2.0]], [[3.0], [4.0]]]).numpy()[..., 0]
        array([[1., 2.],
               [0., 3.]], dtype=float32)
    """

    x_factor: float | Sequence[float]
    y_factor: float | Sequence[float]

    def __init__(
        self,
        x_factor: float | Sequence[float] = 0.0,
        y_factor: float | Sequence[float] = 0.0,
        interpolation: str = "bilinear",
        fill_mode: str = "reflect",
        fill_value: float = 0.0,
        data_format: str | None = None,
        seed: SeedLike = None,
        **kwargs: Unpack[ImageOptions],
    ):
        super().__init__(seed, data_format, **kwargs)
        self.x_factor, self.y_factor = x_factor, y_factor
        self._tw_across = checked_range(self, "x_factor", x_factor)
        self._tw_down = checked_range(self, "y_factor", y_factor)
        self._tw_keep_filling(interpolation, fill_value, fill_mode)

    def _tw_drawn(self, images, draws):
        shape = (self._tw_batch_of(images), 1)
        sign = where(greater(draws.uniform(shape), 0.5), -1.0, 1.0)
        down = draws.uniform(shape, *self._tw_down)
        across = draws.uniform(shape, *self._tw_across)
        factors = concat([across, down], axis=1) * sign
        return {"shear_factor": factors, "input_shape": images.shape}

    def _tw_maps(self, images_shape, transformation):
        across, down = unstack(transformation["shear_factor"], axis=1)
        one, zero = ones_like(across), zeros_like(across)
        return _rows_of_eight(one, across, zero, down, one, zero)


class RandomPerspective(_Mapping):
    """Randomly change the perspective of images in training, by moving their corners.

    The upper left corner is fixed, as in Keras.

    Args:
        factor: Highest probability that an image is changed, or a pair (lowest,
            highest), between which the probability of each image is drawn.
        scale: Twice the largest shift of a corner, relative to its coordinates; from 0
            to 1.
        interpolation: "bilinear" or "nearest".
        fill_value: Value of the pixels outside the image.
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
        ValueError: If ``factor`` or ``scale`` is not between 0 and 1.

    Example:
        >>> keras.layers.RandomPerspective(scale=0.5)(tw.ones([2, 8, 8, 3])).shape
        TensorShape([2, 8, 8, 3])
    """

    _tw_fill_mode = "constant"

    def __init__(
        self,
        factor: float | Sequence[float] = 1.0,
        scale: float = 1.0,
        interpolation: str = "bilinear",
        fill_value: float = 0.0,
        seed: SeedLike = None,
        data_format: str | None = None,
        **kwargs: Unpack[ImageOptions],
    ):
        super().__init__(seed, data_format, **kwargs)
        self.factor: Any = checked_range(self, "factor", factor, least=0)
        self.scale: float = share(self, "scale", scale)
        self._tw_keep_filling(interpolation, fill_value)

    def _tw_drawn(self, images, draws):
        batch = self._tw_batch_of(images)
        y, x = [2.0 * n for n in self._tw_middle(images.shape)]
        corners = stack([0 * x, 0 * y, x, 0 * y, 0 * x, y, x, y])
        corners = reshape(corners, (1, 4, 2))
        moves = draws.uniform((batch, 4, 2), -0.5 * self.scale, 0.5 * self.scale)
        return {
            "apply_perspective": draws.happens((batch,), self.factor),
            "start_points": corners + 0.0 * moves,
            "end_points": corners + corners * moves,
            "input_shape": images.shape,
        }

    def _tw_maps(self, images_shape, transformation):
        ends = [transformation[f"{name}_points"] for name in ("start", "end")]
        return homography(*[cast(points, "float32") for points in ends])

    def _tw_changed(self, images, transformation, interpolation=None):
        changed = super()._tw_changed(images, transformation, interpolation)
        applies = reshape(transformation["apply_perspective"], (-1, 1, 1, 1))
        return where(applies, changed, cast(images, changed.dtype))

    def _tw_moved(self, boxes, shape, transformation):
        moved = super()._tw_moved(boxes, shape, transformation)
        applies = reshape(transformation["apply_perspective"], (-1, 1, 1))
        return where(applies, moved, boxes)
