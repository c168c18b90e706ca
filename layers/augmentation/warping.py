"""Random projective maps of images: rotation, translation, zoom, shear, perspective.

A box becomes the smallest one around its mapped corners; masks take the nearest pixel.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.argument_validation import one_of, share
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
    """A random map; what comes from outside the image is as ``fill_mode`` says.

    ``fill_mode``: "reflect" (``d c b a | a b c d``), "wrap", "nearest" or "constant",
    which is ``fill_value``; ``interpolation``: "bilinear" or "nearest".
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
        """Return the masks, moved as the images, by the nearest pixels."""
        masks = convert_to_tensor(segmentation_masks)
        if not training or transformation is None:
            return masks
        moved = self._tw_as_batch(self._tw_changed, masks, transformation, "nearest")
        return cast(moved, masks.dtype)


class _Mapping(Warping):
    """A warping by one projective map for each image."""

    @abstractmethod
    def _tw_maps(self, images_shape, transformation):
        """The maps of pixels to their sources, ``[batch, 8]`` as in `affine_transform`."""

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
        """Return the smallest boxes around where the corners go, inside of the images."""
        if not training or transformation is None:
            return bounding_boxes
        shape = transformation["input_shape"]
        size = shape[self._tw_rows], shape[self._tw_columns]
        found = self._tw_boxes_as("xyxy", bounding_boxes, size)
        boxes = self._tw_moved(found["boxes"], shape, transformation)
        found = clip_to_image_size(found | {"boxes": boxes}, *size)
        return self._tw_boxes_as(self.bounding_box_format, found, size, "xyxy")

    def _tw_moved(self, boxes, shape, transformation):
        return pulled_back(boxes, self._tw_maps(shape, transformation))

    def _tw_middle(self, shape):
        """Half of the last row's and of the last column's number."""
        sizes = shape[self._tw_rows], shape[self._tw_columns]
        return [(cast(n, "float32") - 1.0) / 2.0 for n in sizes]


def _rows_of_eight(a0, a1, a2, b0, b1, b2):
    """``[batch, 8]``: the map of (x, y) to (a0 x + a1 y + a2, b0 x + b1 y + b2)."""
    zeros = zeros_like(a0)
    return stack([a0, a1, a2, b0, b1, b2, zeros, zeros], axis=1)


class RandomRotation(_Mapping):
    """In training, rotates each image about its center by a random angle.

    Args: ``factor``: the largest angle either way, as a share of a full turn, or a pair
    (lowest, highest); positive angles turn counter-clockwise. ``fill_mode``: the pixels
    outside of the image are "reflect" (``d c b a | a b c d``), "wrap", "nearest" or
    "constant", which is ``fill_value``; ``interpolation``: "bilinear" or "nearest";
    ``seed``, ``data_format``, ``bounding_box_format`` as for `RandomFlip`.

    Shapes: inputs and outputs ``[batch, height, width, channels]``, or one image
    without the batch. Integers are cast. Dicts as for `RandomFlip`.

    Raises: ``ValueError`` for a ``factor`` that is not from -1 to 1, or another mode.

    Example:
        >>> from tapewright import ones
        >>> keras.layers.RandomRotation(0.1)(ones([2, 8, 8, 3])).shape
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
    """In training, moves each image by a random share of its height and of its width.

    Args: ``height_factor``, ``width_factor``: the largest share either way, or a pair
    (lowest, highest); positive shares move down and to the right. The others as for
    `RandomRotation`.

    Shapes: inputs and outputs ``[batch, height, width, channels]``, or one image
    without the batch. Integers are cast. Dicts as for `RandomFlip`.

    Raises: ``ValueError`` for a factor that is not from -1 to 1, or another mode.

    Example:
        >>> layer = keras.layers.RandomTranslation((0.0, 0.0), (0.5, 0.5), fill_mode="constant")
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
    """In training, enlarges or shrinks each image by a random factor.

    Args: ``height_factor``: the largest change either way, or a pair (lowest, highest);
    0.2 shows a fifth more of the height, and so smaller, -0.2 a fifth less;
    ``width_factor``: the same for the width; None keeps the ratio. The others as for
    `RandomRotation`.

    Shapes: inputs and outputs ``[batch, height, width, channels]``, or one image
    without the batch. Integers are cast. Dicts as for `RandomFlip`.

    Raises: ``ValueError`` for a factor that is not above -1 and at most 1, or another
    mode.

    Example:
        >>> from tapewright import ones
        >>> keras.layers.RandomZoom(0.2)(ones([2, 8, 8, 3])).shape
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
    """In training, moves the rows, and the columns, of each image against each other.

        out[y, x] = images[y + b x, x + a y]

    Args: ``x_factor``: the largest ``a`` either way, from 0 to 1, or a pair (lowest,
    highest), whose sign is drawn, too; ``y_factor``: the same for ``b``. The others as
    for `RandomRotation`.

    Shapes: inputs and outputs ``[batch, height, width, channels]``, or one image
    without the batch. Integers are cast. Dicts as for `RandomFlip`.

    Raises: ``ValueError`` for a factor that is not from -1 to 1, or another mode.

    Example:
        >>> layer = keras.layers.RandomShear(x_factor=(1.0, 1.0), fill_mode="constant", seed=3)
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
    """In training, moves the corners of each image, each by a random share.

    The upper left corner stays where it is, as in Keras; what comes from outside is
    ``fill_value``.

    Args: ``factor``: the highest probability that an image changes, or a pair (lowest,
    highest), between which it is drawn; ``scale``: from 0 to 1, twice the largest share
    of its coordinates by which a corner moves; ``interpolation``, ``seed``,
    ``data_format``, ``bounding_box_format`` as for `RandomRotation`.

    Shapes: inputs and outputs ``[batch, height, width, channels]``, or one image
    without the batch. Integers are cast. Dicts as for `RandomFlip`.

    Raises: ``ValueError`` for a ``factor`` or ``scale`` that is not from 0 to 1.

    Example:
        >>> from tapewright import ones
        >>> keras.layers.RandomPerspective(scale=0.5)(ones([2, 8, 8, 3])).shape
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
