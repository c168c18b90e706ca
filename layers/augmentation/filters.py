"""Random sharpening and blurring of images.

Boxes, masks and labels are unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.tensor import convert_to_tensor
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.shape import reshape
from tapewright.ops.image.blurring import blurred, gaussian_blur
from tapewright.ops.math.comparison import where
from tapewright.ops.math.elementwise import clip_by_value

from ..base.image_layer import checked_range
from .random_layer import RandomLayer, checked_value_range

if TYPE_CHECKING:
    from ..base.image_layer import ImageOptions
    from ..base.layer_types import SeedLike

__all__ = ["RandomGaussianBlur", "RandomSharpness"]

_A, _B = 1.0 / 13.0, 5.0 / 13.0
_SMOOTHING = [[_A, _A, _A], [_A, _B, _A], [_A, _A, _A]]


class RandomSharpness(RandomLayer):
    """Randomly sharpen or smooth each image in training.

        outputs = x + (1 - 2 * f) * (smooth(x) - x)

    ``smooth`` averages 3x3 pixels, the center with weight 5. The outputs are clipped to
    ``value_range``.

    Args:
        factor: Largest ``f``, or a pair (lowest, highest), from 0; one number ``x``
            means ``(0, x)``. A value of 0.5 keeps the image, less smooths, more
            sharpens.
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
        ValueError: If ``factor`` is not between 0 and 1.

    Example:
        >>> keras.layers.RandomSharpness((0.0, 0.0))([[[0.0], [13.0], [0.0]]]).numpy().ravel()
        array([1., 5., 1.], dtype=float32)
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
        return {"factor": draws.uniform((self._tw_batch_of(images),), *self.factor)}

    def _tw_changed(self, images, transformation):
        factor = self._tw_for_each(transformation["factor"], images) * 2.0
        kernel = convert_to_tensor(_SMOOTHING, dtype=images.dtype)
        smooth = self._tw_channels_last(lambda x: blurred(x, kernel, (3, 3)), images)
        images = images + (1.0 - factor) * (smooth - images)
        return clip_by_value(images, *self.value_range)


class RandomGaussianBlur(RandomLayer):
    """Randomly blur images with a Gaussian filter in training.

    All blurred images of a call share the same filter. The outputs are clipped to
    ``value_range``; images are padded with zeros.

    Args:
        factor: Highest probability that an image is changed, or a pair (lowest,
            highest), between which the probability of each image is drawn.
        kernel_size: Size of the filter in pixels, one or two odd integers.
        sigma: Largest standard deviation of the Gaussian, at most 1, or a pair (lowest,
            highest). One for each of the two directions is drawn per call.
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
        ValueError: If ``factor`` or ``sigma`` is not between 0 and 1, or
            ``kernel_size`` is even.

    Example:
        >>> layer = keras.layers.RandomGaussianBlur((1.0, 1.0), sigma=(1.0, 1.0))
        >>> layer([[[0.0], [100.0], [0.0]]]).numpy().ravel().round(1)
        array([12.4, 20.4, 12.4], dtype=float32)
    """

    def __init__(
        self,
        factor: float | Sequence[float] = 1.0,
        kernel_size: int | Sequence[int] = 3,
        sigma: float | Sequence[float] = 1.0,
        value_range: Sequence[float] = (0, 255),
        data_format: str | None = None,
        seed: SeedLike = None,
        **kwargs: Unpack[ImageOptions],
    ):
        super().__init__(seed, data_format, **kwargs)
        self.factor: Any = checked_range(self, "factor", factor, least=0)
        pair = (
            kernel_size if isinstance(kernel_size, (list, tuple)) else [kernel_size] * 2
        )
        if len(pair) != 2 or not all(isinstance(n, int) and n % 2 for n in pair):
            raise ValueError(
                "RandomGaussianBlur: kernel_size must be an odd integer or a pair of odd "
                f"integers, got {kernel_size!r}"
            )
        self.kernel_size: Any = tuple(pair)
        self.sigma: Any = checked_range(self, "sigma", sigma, least=0)
        self.value_range: Any = checked_value_range(self, value_range)

    def _tw_drawn(self, images, draws):
        return {
            "should_apply_blur": draws.happens(
                (self._tw_batch_of(images),), self.factor
            ),
            "blur_factor": draws.uniform((2,), *self.sigma) + 1e-6,
        }

    def _tw_changed(self, images, transformation):
        sigma = cast(transformation["blur_factor"], images.dtype)
        smooth = self._tw_channels_last(
            lambda x: gaussian_blur(x, self.kernel_size, sigma), images
        )
        applies = reshape(transformation["should_apply_blur"], (-1, 1, 1, 1))
        return clip_by_value(where(applies, smooth, images), *self.value_range)
