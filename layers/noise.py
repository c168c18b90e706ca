"""Layers that are noisy in training: kinds of dropout, Gaussian noise; and a penalty.

Outside of training each hands its inputs on. Random numbers are from the global stream,
or from a stream of the layer's own if it has a ``seed``.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.argument_validation import not_negative, share
from tapewright.ops.array.creation import ones_like
from tapewright.ops.math.comparison import greater, where
from tapewright.ops.nn.dropout import apply_dropout
from tapewright.ops.random.sampling import get_global_generator

from . import regularizers
from .base.layer import InputSpec, Layer, ShapePreserving
from .base.seeds import checked_seed, generator_of
from .base.spatial import checked_format

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import DTypeLike
    from tapewright.ops.random.generators import Generator

    from .base.layer_types import RegularizedLayerOptions, SeedLike

__all__ = [
    "ActivityRegularization",
    "AlphaDropout",
    "Dropout",
    "GaussianDropout",
    "GaussianNoise",
    "SpatialDropout1D",
    "SpatialDropout2D",
    "SpatialDropout3D",
]


class BaseNoise(ShapePreserving, Layer):
    """Base of the layers that draw random numbers in training, and keep the shape."""

    supports_masking = True
    _tw_shape_tells = True

    def _tw_keep_seed(self, seed):
        self.seed: SeedLike = checked_seed(self, seed)
        self.seed_generator: Generator | None = generator_of(self.seed)

    @property
    def _tw_generator(self):
        return self.seed_generator or get_global_generator()


class Dropout(BaseNoise):
    """In training, sets each input to 0 with probability ``rate`` and scales up the others.

        outputs = inputs * mask / (1 - rate),   mask 0 or 1

    Outside of training the inputs pass unchanged.

    Args: ``rate``: from 0 to 1; ``noise_shape``: the shape of the mask, None for an
    axis as in the inputs; axes of size 1 share one draw. ``seed``: an int or a
    `keras.random.SeedGenerator` for a random stream of the layer's own; None draws from
    the global stream, see `keras.utils.set_random_seed`.

    Shapes: inputs and outputs ``[...]``, floating.

    Raises: ``ValueError`` if ``rate`` is not from 0 to 1.

    Reference: Srivastava et al., "Dropout: a simple way to prevent neural networks from
    overfitting" (2014).

    Example:
        >>> layer = keras.layers.Dropout(0.5, seed=0)
        >>> layer([[1.0, 1.0, 1.0, 1.0]]).numpy()
        array([[1., 1., 1., 1.]], dtype=float32)
        >>> sorted(set(layer([[1.0] * 100], training=True).numpy()[0].tolist()))
        [0.0, 2.0]
    """

    def __init__(
        self,
        rate: float,
        noise_shape: Sequence[int | None] | None = None,
        seed: SeedLike = None,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        self.rate: float = share(self, "rate", rate)
        self.noise_shape: Any = _checked_shape("Dropout", noise_shape)
        self._tw_keep_seed(seed)

    def call(self, inputs: Tensor, training: bool | None = False) -> Tensor:
        if not training or self.rate == 0:
            return inputs
        return self._tw_dropped(inputs, self.noise_shape)

    def _tw_dropped(self, inputs, noise_shape):
        return apply_dropout(
            self._tw_title, inputs, self.rate, noise_shape, self._tw_generator.stream
        )


class _SpatialDropout(Dropout):
    """Drops all of a channel, of an example, at once: ``rank`` is that of the inputs."""

    _tw_rank = 3
    _tw_data_format: Any = "channels_last"

    def __init__(
        self,
        rate: float,
        seed: SeedLike = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ):
        super().__init__(rate, seed=seed, name=name, dtype=dtype)
        self.input_spec: InputSpec = InputSpec(ndim=self._tw_rank)

    def call(self, inputs: Tensor, training: bool | None = False) -> Tensor:
        if not training or self.rate == 0:
            return inputs
        ones = (1,) * (self._tw_rank - 2)
        if self._tw_data_format == "channels_first":
            return self._tw_dropped(inputs, (None, None, *ones))
        return self._tw_dropped(inputs, (None, *ones, None))


class SpatialDropout1D(_SpatialDropout):
    """`Dropout` of whole channels: a channel of an example is 0 at all time steps.

    Shapes: inputs and outputs ``[batch, steps, channels]``.

    Raises: ``ValueError`` if ``rate`` is not from 0 to 1.

    Reference: Tompson et al., "Efficient object localization using convolutional
    networks" (2015).
    """


class _SpatialDropoutOfImages(_SpatialDropout):
    _tw_data_format = property(attrgetter("data_format"))

    def __init__(
        self,
        rate: float,
        data_format: str | None = None,
        seed: SeedLike = None,
        name: str | None = None,
        dtype: DTypeLike | None = None,
    ):
        super().__init__(rate, seed=seed, name=name, dtype=dtype)
        self.data_format: str = checked_format(self, data_format)


class SpatialDropout2D(_SpatialDropoutOfImages):
    """`Dropout` of whole channels of images.

    Args: ``data_format``: "channels_last" (default), or "channels_first" with the
    channels on axis 1; ``rate`` and ``seed`` as for `Dropout`.

    Shapes: inputs and outputs ``[batch, height, width, channels]``.

    Raises: ``ValueError`` if ``rate`` is not from 0 to 1.

    Example:
        >>> from tapewright import ones
        >>> outputs = keras.layers.SpatialDropout2D(0.5, seed=0)(ones([1, 2, 2, 3]), training=True)
        >>> all(len(set(outputs.numpy()[0, :, :, c].ravel())) == 1 for c in range(3))
        True
    """

    _tw_rank = 4


class SpatialDropout3D(_SpatialDropoutOfImages):
    """`Dropout` of whole channels of volumes.

    Args: as for `SpatialDropout2D`.

    Shapes: inputs and outputs ``[batch, depth, height, width, channels]``.

    Raises: ``ValueError`` if ``rate`` is not from 0 to 1.
    """

    _tw_rank = 5


class GaussianNoise(BaseNoise):
    """In training, adds normal noise: ``outputs = inputs + normal(0, stddev)``.

    Args: ``stddev``: 0 or more; ``seed`` as for `Dropout`.

    Shapes: inputs and outputs ``[...]``, floating.

    Raises: ``ValueError`` if ``stddev`` is negative.

    Example:
        >>> from tapewright import zeros
        >>> layer = keras.layers.GaussianNoise(1.0, seed=0)
        >>> bool((layer(zeros([2, 3]), training=True).numpy() != 0).all())
        True
    """

    def __init__(
        self,
        stddev: float,
        seed: SeedLike = None,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        self.stddev: float = not_negative(self, "stddev", stddev)
        self._tw_keep_seed(seed)

    def call(self, inputs: Tensor, training: bool | None = False) -> Tensor:
        if not training or self.stddev == 0:
            return inputs
        noise = self._tw_generator.normal(
            inputs.shape, stddev=self.stddev, dtype=inputs.dtype
        )
        return inputs + noise


class GaussianDropout(BaseNoise):
    """In training, multiplies by normal noise: ``outputs = inputs * normal(1, stddev)``.

    ``stddev`` is ``sqrt(rate / (1 - rate))``, that of the mask of a `Dropout`.

    Args: ``rate``: 0 or more and less than 1; ``seed`` as for `Dropout`.

    Shapes: inputs and outputs ``[...]``, floating.

    Raises: ``ValueError`` for another ``rate``.

    Reference: Srivastava et al., "Dropout" (2014), section 10.

    Example:
        >>> keras.layers.GaussianDropout(0.5)([[1.0, 2.0]]).numpy()  # not in training
        array([[1., 2.]], dtype=float32)
    """

    def __init__(
        self,
        rate: float,
        seed: SeedLike = None,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        self.rate: float = _rate_below_1("GaussianDropout", rate)
        self._tw_keep_seed(seed)

    def call(self, inputs: Tensor, training: bool | None = False) -> Tensor:
        if not training or self.rate == 0:
            return inputs
        stddev = math.sqrt(self.rate / (1.0 - self.rate))
        return inputs * self._tw_generator.normal(
            inputs.shape, mean=1.0, stddev=stddev, dtype=inputs.dtype
        )


# The value that `selu` tends to far below 0: -alpha * scale.
_LOWEST = -1.6732632423543772 * 1.0507009873554805


class AlphaDropout(BaseNoise):
    """In training, sets inputs to the low end of `selu`, and keeps mean and variance.

        outputs = a * where(kept, inputs, low) + b

    ``a`` and ``b`` are such that inputs of mean 0 and variance 1 keep both.

    Args: ``rate``: 0 or more and less than 1; ``noise_shape`` and ``seed`` as for
    `Dropout`.

    Shapes: inputs and outputs ``[...]``, floating.

    Raises: ``ValueError`` for another ``rate``.

    Reference: Klambauer et al., "Self-normalizing neural networks" (2017).

    Example:
        >>> from tapewright import zeros
        >>> outputs = keras.layers.AlphaDropout(0.5, seed=0)(zeros([1, 100]), training=True)
        >>> len(set(outputs.numpy()[0].round(4).tolist()))  # kept inputs, and the low end
        2
    """

    def __init__(
        self,
        rate: float,
        noise_shape: Sequence[int | None] | None = None,
        seed: SeedLike = None,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        self.rate: float = _rate_below_1("AlphaDropout", rate)
        self.noise_shape: Any = _checked_shape("AlphaDropout", noise_shape)
        self._tw_keep_seed(seed)

    def call(self, inputs: Tensor, training: bool | None = False) -> Tensor:
        if not training or self.rate == 0:
            return inputs
        drawn = apply_dropout(
            self._tw_title,
            ones_like(inputs),
            self.rate,
            self.noise_shape,
            self._tw_generator.stream,
        )
        a = ((1 - self.rate) * (1 + self.rate * _LOWEST**2)) ** -0.5
        kept = where(greater(drawn, 0.0), inputs, _LOWEST)
        return kept * a - a * _LOWEST * self.rate


class ActivityRegularization(ShapePreserving, Layer):
    """Returns its inputs, and adds ``l1 * sum(|x|) + l2 * sum(x ** 2)`` to `losses`.

    The penalty is divided by the batch size.

    Shapes: inputs and outputs ``[batch, ...]``.

    Raises: ``ValueError`` if ``l1`` or ``l2`` is negative.

    Example:
        >>> layer = keras.layers.ActivityRegularization(l2=0.1)
        >>> _ = layer([[1.0, 3.0], [0.0, 0.0]])
        >>> layer.losses[0].numpy().round(3)
        np.float32(0.5)
    """

    supports_masking = True

    def __init__(
        self,
        l1: float = 0.0,
        l2: float = 0.0,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(activity_regularizer=regularizers.L1L2(l1=l1, l2=l2), **kwargs)
        self.l1 = l1
        self.l2 = l2

    def call(self, inputs: Tensor) -> Tensor:
        return inputs

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        config.pop("activity_regularizer", None)  # l1 and l2 say it
        return config


def _rate_below_1(who, rate):
    if not isinstance(rate, numbers.Real) or not 0 <= rate < 1:
        raise ValueError(f"{who}: rate must be 0 or more and less than 1, got {rate!r}")
    return rate


def _checked_shape(who, noise_shape):
    if noise_shape is None:
        return None
    if isinstance(noise_shape, str) or not hasattr(noise_shape, "__iter__"):
        raise ValueError(f"{who}: noise_shape must be a tuple, got {noise_shape!r}")
    for n in noise_shape:
        if n is not None and (not hasattr(n, "__index__") or operator.index(n) < 1):
            raise ValueError(
                f"{who}: each entry of noise_shape must be a positive integer or None, "
                f"got {n!r}"
            )
    return tuple(noise_shape)
