"""`RandomElasticTransform`: random smooth displacements of pixels."""

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
    """In training, displaces the pixels of some of the images smoothly.

    The displacements are normally distributed numbers, blurred by a Gaussian. Values are
    clipped to ``value_range``.

    Args: ``factor``: the highest probability, or a pair (lowest, highest), between
    which the probability for each image is drawn; ``scale``: from 0 to 1, the largest
    strength, or a pair (lowest, highest), one for each call: the Gaussian's width is
    5% of the shorter side times it; ``fill_mode``: "reflect", "mirror", "wrap",
    "nearest" or "constant", which is ``fill_value``; ``value_range``: the lowest and
    the highest value of a pixel; ``interpolation``, ``seed``, ``data_format`` as for
    `RandomRotation`.

    Shapes: inputs and outputs ``[batch, height, width, channels]``, or one image
    without the batch, of known size. Integers are cast. Dicts as for `RandomFlip`,
    without boxes.

    Raises: ``ValueError`` for a ``factor`` or ``scale`` that is not from 0 to 1, or
    images of unknown size; ``NotImplementedError`` for boxes.

    Reference: Simard et al., "Best practices for convolutional neural networks applied
    to visual document analysis" (2003).

    Example:
        >>> from tapewright import ones
        >>> keras.layers.RandomElasticTransform(scale=0.5)(ones([2, 8, 8, 3])).shape
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
        """The displacements of sources, down and right, each ``[batch, height, width]``."""
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
        """Raise ``NotImplementedError``: what becomes of boxes is not defined."""
        raise NotImplementedError(f"{self._tw_title}: does not take bounding_boxes")
