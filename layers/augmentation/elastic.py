"""`RandomElasticTransform`: smooth random displacements of pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import range as arange
from tapewright.ops.array.joining import unstack
from tapewright.ops.array.shape import expand_dims, reshape
from tapewright.ops.image.blurring import blurred, gaussian_window
from tapewright.ops.image.interpolation import FILL_MODES as MORE_FILL_MODES
from tapewright.ops.image.interpolation import interpolate
from tapewright.ops.math.comparison import where
from tapewright.ops.math.elementwise import clip_by_value, floor

from ..base.image_layer import checked_range
from .random_layer import checked_value_range
from .warping import Warping

if TYPE_CHECKING:
    from ..base.image_layer import ImageOptions
    from ..base.layer_types import SeedLike

__all__ = [
    "RandomElasticTransform",
]


class RandomElasticTransform(Warping):
    """Randomly deform images by a smooth displacement field in training.

    The displacements are normally distributed and smoothed by a Gaussian filter.
    Outputs are clipped to ``value_range``.

    Args:
        factor: Highest probability that an image is changed, or a pair (lowest,
            highest), between which the probability of each image is drawn.
        scale: Largest strength, from 0 to 1, or a pair (lowest, highest), between which
            one is drawn for each call. The width of the Gaussian is 5% of the shorter
            side of the images times the strength.
        interpolation: "bilinear" or "nearest".
        fill_mode: Source of the pixels outside the image: "reflect"
            (``d c b a | a b c d``), "mirror", "wrap", "nearest" or "constant"
            (``fill_value``).
        fill_value: Value of the pixels outside the image if ``fill_mode`` is
            "constant".
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
        the batch axis, of known size; integers are cast to the compute dtype. Dicts of
        images and annotations as in `RandomFlip`, without boxes.

    Raises:
        ValueError: If ``factor`` or ``scale`` is not between 0 and 1, or the size of
            the images is unknown.
        NotImplementedError: If the inputs have bounding boxes.

    References:
        Simard et al., "Best practices for convolutional neural networks applied to
        visual document analysis" (2003).

    Example:
        >>> keras.layers.RandomElasticTransform(scale=0.5)(tw.ones([2, 8, 8, 3])).shape
        TensorShape([2, 8, 8, 3])
    """

    def __init__(
        self,
        factor: float | Sequence[float] = 1.0,
        scale: float | Sequence[float] = 1.0,
        interpolation: str = "bilinear",
        fill_mode: str = "reflect",
        fill_value: float = 0.0,
        value_range: Sequence[float] = (0, 255),
        seed: SeedLike = None,
        data_format: str | None = None,
        **kwargs: Unpack[ImageOptions],
    ):
        super().__init__(seed, data_format, **kwargs)
        self.factor: Any = checked_range(self, "factor", factor, least=0)
        self.scale: Any = checked_range(self, "scale", scale, least=0)
        self.value_range: Any = checked_value_range(self, value_range)
        self._tw_keep_filling(interpolation, fill_value, fill_mode, MORE_FILL_MODES)

    def _tw_drawn(self, images, draws):
        if not self.scale[1] or not self.factor[1]:
            return None
        batch, (height, width) = self._tw_batch_of(images), self._tw_size_of(images)
        if not isinstance(height, int) or not isinstance(width, int):
            raise ValueError(
                f"{self._tw_title}: images must have a known height and width, got shape "
                f"{images.shape}"
            )
        return {
            "apply_transform": draws.happens((batch,), self.factor),
            "distortion_factor": draws.uniform((), *self.scale),
            "noise": draws.normal((batch, height, width, 2)),
        }

    def _tw_moves(self, transformation):
        """Return the displacements down and right, each ``[batch, height, width]``."""
        noise, factor = transformation["noise"], transformation["distortion_factor"]
        sides = tuple(noise.shape)[1:3]
        sigma = min(sides) * 0.05 * factor
        # A window of three whole widths either way, in one that holds the largest.
        size = 6 * int(min(sides) * 0.05 * self.scale[1]) + 1
        window = gaussian_window(size, sigma, within=3.0 * floor(sigma))
        kernel = expand_dims(window, -1) * window
        smooth = blurred(noise * sigma, kernel, (size, size))
        return unstack(smooth * (max(sides) * 0.1 * factor), axis=-1)

    def _tw_changed(self, images, transformation, interpolation=None):
        down, right = self._tw_moves(transformation)
        height, width = self._tw_size_of(images)
        y = down + reshape(arange(height, dtype="float32"), (-1, 1))
        x = right + arange(width, dtype="float32")
        is_linear = (interpolation or self.interpolation) == "bilinear"
        how = int(is_linear), self.fill_mode, self.fill_value

        def sampled(images):
            return interpolate(
                "RandomElasticTransform", images, [y, x], *how, batch=True
            )

        moved = self._tw_channels_last(sampled, images)
        applies = reshape(transformation["apply_transform"], (-1, 1, 1, 1))
        moved = where(applies, moved, cast(images, moved.dtype))
        if interpolation:  # of masks
            return moved
        return clip_by_value(moved, *self.value_range)

    def transform_bounding_boxes(
        self,
        bounding_boxes: dict[str, Any],
        transformation: Any = None,
        training: bool | None = True,
    ) -> dict[str, Any]:
        """Raise ``NotImplementedError``: elastic transforms of boxes are not supported.

        Args:
            bounding_boxes: Dict of ``"boxes"`` ``[batch, n, 4]`` and ``"labels"``
                ``[batch, n]``.
            transformation: Value returned by `get_random_transformation`, or None.
            training: Ignored.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(
            f"{self._tw_title}: bounding_boxes are not supported; omit them"
        )
