"""`RandomLayer`: base class of layers that transform images at random in training."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.tensor import convert_to_tensor
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.shape import reshape
from tapewright.ops.math.comparison import less
from tapewright.ops.random.distributions import draw_gamma, draw_shuffled
from tapewright.ops.random.sampling import get_global_generator

from ..base.image_layer import ImageLayer, ImageOptions
from ..base.seeds import checked_seed, generator_of

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.ops.random.generators import Generator

    from ..base.layer_types import SeedLike

_MAX_VALUE = 1e30  # of a pixel: its multiples stay within the range of float32


class _Draws:
    """Random float32 numbers from one stream."""

    def __init__(self, generator):
        self.generator: Generator = generator

    def uniform(self, shape: Any, low: float = 0.0, high: float = 1.0) -> Tensor:
        """Draw uniformly distributed numbers."""
        return self.generator.uniform(shape, low, high)

    def normal(self, shape: Any) -> Tensor:
        """Draw normally distributed numbers."""
        return self.generator.normal(shape)

    def integers(self, shape: Any, low: int, high: int) -> Tensor:
        """Draw integers from ``low`` (included) to ``high`` (excluded)."""
        return self.generator.uniform(shape, low, high, "int32")

    def gamma(self, shape: Any, alpha: Any) -> Tensor:
        """Draw gamma distributed numbers."""
        return draw_gamma(
            self.generator._tw_stream(), shape, cast(alpha, "float32"), None
        )

    def beta(self, shape: Any, alpha: Any) -> Tensor:
        """Draw numbers from 0 to 1 with the density ``(x (1 - x)) ** (alpha - 1)``."""
        first = self.gamma(shape, alpha)
        return first / (first + self.gamma(shape, alpha))

    def shuffled(self, rows: Tensor) -> Tensor:
        """Shuffle the rows."""
        return draw_shuffled(self.generator._tw_stream(), rows)

    def happens(self, shape: Any, factor: Sequence[float]) -> Tensor:
        """Draw booleans, each with a probability drawn uniformly in ``factor``."""
        return less(self.uniform(shape), self.uniform(shape, *factor))


class RandomLayer(ImageLayer, ABC):
    """Base class of layers that draw a transformation of each image in training.

    ``seed`` is for the layer's own random stream. A subclass defines `_tw_drawn` and
    `_tw_changed`, both for batches of images.
    """

    generator: Generator | None

    def __init__(
        self,
        seed: SeedLike = None,
        data_format: str | None = None,
        **kwargs: Unpack[ImageOptions],
    ):
        super().__init__(data_format=data_format, **kwargs)
        self.seed: SeedLike = checked_seed(self, seed)
        self.generator = generator_of(self.seed)

    def get_random_transformation(
        self, data: Any, training: bool | None = True, seed: SeedLike = None
    ) -> Any:
        """Draw a transformation for these images; return None if not ``training``.

        Args:
            data: Images, or a dict with images and annotations.
            training: If False, draw nothing and return None.
            seed: Seed or generator to use instead of the layer's own.
        """
        if not training:
            return None
        generator = generator_of(checked_seed(self, seed)) or self.generator
        images = self._tw_images_of(data)
        return self._tw_drawn(images, _Draws(generator or get_global_generator()))

    def transform_images(
        self, images: Tensor, transformation: Any = None, training: bool | None = True
    ) -> Tensor:
        """Transform the images; only cast them if not ``training``.

        Args:
            images: Images ``[batch, height, width, channels]``, or one image without
                the batch axis.
            transformation: Value returned by `get_random_transformation`, or None.
            training: If False, nothing is changed.
        """
        images = super().transform_images(images)
        if not training or transformation is None:
            return images
        return self._tw_as_batch(self._tw_changed, images, transformation)

    @abstractmethod
    def _tw_drawn(self, images, draws):
        """Draw the transformation of a batch of images with `_Draws`."""

    @abstractmethod
    def _tw_changed(self, images, transformation):
        """Transform a batch of images."""

    def _tw_batch_of(self, images):
        """Return the number of images."""
        return images.shape[0] if len(images.shape) == 4 else 1

    def _tw_for_each(self, numbers, images):
        """Reshape numbers ``[batch]`` to broadcast with images, and cast them."""
        return reshape(cast(convert_to_tensor(numbers), images.dtype), (-1, 1, 1, 1))


def checked_value_range(layer: Any, value_range: Sequence[float]) -> tuple[float, ...]:
    """Check that the lowest and highest pixel value differ, and return them."""
    is_pair = isinstance(value_range, (list, tuple)) and len(value_range) == 2
    numbers = is_pair and all([isinstance(n, Real) for n in value_range])
    if (
        not numbers
        or not min(value_range) < max(value_range)
        or max(map(abs, value_range)) > _MAX_VALUE
    ):
        raise ValueError(
            f"{type(layer).__name__}: value_range must be two different numbers from "
            f"{-_MAX_VALUE:g} to {_MAX_VALUE:g}, got {value_range!r}"
        )
    return tuple(sorted(value_range))


def rescaled(
    images: Tensor, source: Sequence[float], target: Sequence[float]
) -> Tensor:
    """Map values from the range ``source`` to the range ``target``."""
    (low, high), (new_low, new_high) = source, target
    if (low, high) == (new_low, new_high):
        return images
    return (images - low) / (high - low) * (new_high - new_low) + new_low
