"""`RandomLayer`: base of the layers that draw a transformation of images, in training."""

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

__all__ = ["Draws", "RandomLayer", "checked_value_range", "rescaled"]

MAX_VALUE = 1e30  # of a pixel: its multiples stay within the range of float32


class Draws:
    """Uniform and other random numbers from one stream, float32."""

    def __init__(self, generator):
        self.generator: Generator = generator

    def uniform(self, shape: Any, low: float = 0.0, high: float = 1.0) -> Tensor:
        """Evenly distributed numbers."""
        return self.generator.uniform(shape, low, high)

    def normal(self, shape: Any) -> Tensor:
        """Normally distributed numbers."""
        return self.generator.normal(shape)

    def integers(self, shape: Any, low: int, high: int) -> Tensor:
        """Integers from ``low`` up to, and without, ``high``."""
        return self.generator.uniform(shape, low, high, "int32")

    def gamma(self, shape: Any, alpha: Any) -> Tensor:
        """Gamma distributed numbers."""
        return draw_gamma(self.generator.stream(), shape, cast(alpha, "float32"), None)

    def beta(self, shape: Any, alpha: Any) -> Tensor:
        """Numbers from 0 to 1 whose density is ``(x (1 - x)) ** (alpha - 1)``."""
        first = self.gamma(shape, alpha)
        return first / (first + self.gamma(shape, alpha))

    def shuffled(self, rows: Tensor) -> Tensor:
        """The rows in another order."""
        return draw_shuffled(self.generator.stream(), rows)

    def happens(self, shape: Any, factor: Sequence[float]) -> Tensor:
        """Booleans, each True with a probability drawn uniformly between ``factor``."""
        return less(self.uniform(shape), self.uniform(shape, *factor))


class RandomLayer(ImageLayer, ABC):
    """Draws a transformation of each image and carries it out, in training.

    ``seed``: for a stream of random numbers of its own. A subclass defines `_tw_drawn` and
    `_tw_changed`, which both take batches of images.
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
        """Draw a transformation for these images; None if not ``training``."""
        if not training:
            return None
        generator = generator_of(checked_seed(self, seed)) or self.generator
        images = self._tw_images_of(data)
        return self._tw_drawn(images, Draws(generator or get_global_generator()))

    def transform_images(
        self, images: Tensor, transformation: Any = None, training: bool | None = True
    ) -> Tensor:
        """Return the transformed images, floating; only cast if not ``training``."""
        images = super().transform_images(images)
        if not training or transformation is None:
            return images
        return self._tw_as_batch(self._tw_changed, images, transformation)

    @abstractmethod
    def _tw_drawn(self, images, draws):
        """The transformation of a batch of images, by random numbers from `Draws`."""

    @abstractmethod
    def _tw_changed(self, images, transformation):
        """The transformed images of a batch."""

    def _tw_batch_of(self, images):
        """The number of images."""
        return images.shape[0] if len(images.shape) == 4 else 1

    def _tw_for_each(self, numbers, images):
        """Numbers ``[batch]`` beside images, in the dtype of these."""
        return reshape(cast(convert_to_tensor(numbers), images.dtype), (-1, 1, 1, 1))


def checked_value_range(layer: Any, value_range: Sequence[float]) -> tuple[float, ...]:
    """The lowest and the highest value of a pixel; ``ValueError`` unless they differ."""
    is_pair = isinstance(value_range, (list, tuple)) and len(value_range) == 2
    numbers = is_pair and all([isinstance(n, Real) for n in value_range])
    if (
        not numbers
        or not min(value_range) < max(value_range)
        or max(map(abs, value_range)) > MAX_VALUE
    ):
        raise ValueError(
            f"{type(layer).__name__}: value_range must be two different numbers from "
            f"{-MAX_VALUE:g} to {MAX_VALUE:g}, got {value_range!r}"
        )
    return tuple(sorted(value_range))


def rescaled(
    images: Tensor, source: Sequence[float], target: Sequence[float]
) -> Tensor:
    """Values of the range ``source`` as those of the range ``target``."""
    (low, high), (new_low, new_high) = source, target
    if (low, high) == (new_low, new_high):
        return images
    return (images - low) / (high - low) * (new_high - new_low) + new_low
