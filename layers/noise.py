"""Noise layers: variants of dropout, and Gaussian noise; and an activity penalty.

Outside of training the noise layers return their inputs unchanged. Random numbers come
from the global stream, or from the layer's own stream if it has a ``seed``.
"""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.messages.argument_validation import not_negative, share
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
    """Base class of layers that draw random numbers in training and keep the shape."""

    supports_masking = True
    _tw_shape_tells = True

    def _tw_keep_seed(self, seed):
        self.seed: SeedLike = checked_seed(self, seed)
        self.seed_generator: Generator | None = generator_of(self.seed)

    @property
    def _tw_generator(self):
        return self.seed_generator or get_global_generator()


class Dropout(BaseNoise):
    """Randomly set inputs to 0 in training, and scale up the others.

        outputs = inputs * mask / (1 - rate),   mask 0 or 1

    Each input is dropped with probability ``rate``. Outside of training the inputs are
    returned unchanged.

    Args:
        rate: Probability that an input is dropped, from 0 to 1.
        noise_shape: Shape of the mask; None for an axis of the size of the inputs. Axes
            of size 1 share one draw.
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[...]``, floating-point.

    Raises:
        ValueError: If ``rate`` is not between 0 and 1.

    References:
        Srivastava et al., "Dropout: a simple way to prevent neural networks from
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
            self._tw_title,
            inputs,
            self.rate,
            noise_shape,
            self._tw_generator._tw_stream,
        )


class _SpatialDropout(Dropout):
    """Dropout of whole channels; ``_tw_rank`` is the rank of the inputs."""

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
    """Dropout of whole channels of sequences: a dropped channel is 0 at all time steps.

    Args:
        rate: Probability that a channel is dropped, from 0 to 1.
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        name: Name of the layer, unique by default.
        dtype: Dtype or `keras.DTypePolicy` of the computation.

    Shapes:
        Inputs and outputs ``[batch, steps, channels]``.

    Raises:
        ValueError: If ``rate`` is not between 0 and 1.

    References:
        Tompson et al., "Efficient object localization using convolutional networks"
        (2015).
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
    """Dropout of whole channels of images.

    Args:
        rate: Probability that a channel is dropped, from 0 to 1.
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        name: Name of the layer, unique by default.
        dtype: Dtype or `keras.DTypePolicy` of the computation.

    Shapes:
        Inputs and outputs ``[batch, height, width, channels]``, or
        ``[batch, channels, height, width]`` with "channels_first".

    Raises:
        ValueError: If ``rate`` is not between 0 and 1.

    Example:
        >>> layer = keras.layers.SpatialDropout2D(0.5, seed=0)
        >>> outputs = layer(tw.ones([1, 2, 2, 3]), training=True)
        >>> all(len(set(outputs.numpy()[0, :, :, c].ravel())) == 1 for c in range(3))
        True
    """

    _tw_rank = 4


class SpatialDropout3D(_SpatialDropoutOfImages):
    """Dropout of whole channels of volumes.

    Args:
        rate: Probability that a channel is dropped, from 0 to 1.
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        name: Name of the layer, unique by default.
        dtype: Dtype or `keras.DTypePolicy` of the computation.

    Shapes:
        Inputs and outputs ``[batch, depth, height, width, channels]``, or
        ``[batch, channels, depth, height, width]`` with "channels_first".

    Raises:
        ValueError: If ``rate`` is not between 0 and 1.
    """

    _tw_rank = 5


class GaussianNoise(BaseNoise):
    """Add Gaussian noise in training: ``outputs = inputs + normal(0, stddev)``.

    Args:
        stddev: Standard deviation of the noise, not negative.
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[...]``, floating-point.

    Raises:
        ValueError: If ``stddev`` is negative.

    Example:
        >>> layer = keras.layers.GaussianNoise(1.0, seed=0)
        >>> bool((layer(tw.zeros([2, 3]), training=True).numpy() != 0).all())
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
    """Multiply by Gaussian noise in training: ``outputs = inputs * normal(1, stddev)``.

    ``stddev = sqrt(rate / (1 - rate))``, as for the mask of a `Dropout` with this
    ``rate``.

    Args:
        rate: Drop probability of the corresponding `Dropout`, at least 0 and less than
            1.
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[...]``, floating-point.

    Raises:
        ValueError: If ``rate`` is negative, or 1 or more.

    References:
        Srivastava et al., "Dropout" (2014), section 10.

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
    """Dropout for `selu` networks, which preserves mean and variance of the inputs.

        outputs = a * where(kept, inputs, low) + b

    In training, dropped inputs are set to ``low``, the lower limit of `selu`. With
    ``a`` and ``b``, inputs of mean 0 and variance 1 keep both.

    Args:
        rate: Probability that an input is dropped, at least 0 and less than 1.
        noise_shape: Shape of the mask; None for an axis of the size of the inputs. Axes
            of size 1 share one draw.
        seed: Integer or `keras.random.SeedGenerator` for a random stream that belongs
            to the layer, or None to draw from the global stream.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[...]``, floating-point.

    Raises:
        ValueError: If ``rate`` is negative, or 1 or more.

    References:
        Klambauer et al., "Self-normalizing neural networks" (2017).

    Example:
        >>> layer = keras.layers.AlphaDropout(0.5, seed=0)
        >>> outputs = layer(tw.zeros([1, 100]), training=True)
        >>> len(set(outputs.numpy()[0].round(4).tolist()))  # kept inputs, and the limit
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
            self._tw_generator._tw_stream,
        )
        a = ((1 - self.rate) * (1 + self.rate * _LOWEST**2)) ** -0.5
        kept = where(greater(drawn, 0.0), inputs, _LOWEST)
        return kept * a - a * _LOWEST * self.rate


class ActivityRegularization(ShapePreserving, Layer):
    """Add ``l1 * sum(|x|) + l2 * sum(x ** 2)`` to the losses, and return the inputs.

    The penalty is divided by the batch size.

    Args:
        l1: Factor of the absolute values, not negative.
        l2: Factor of the squares, not negative.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs and outputs ``[batch, ...]``.

    Raises:
        ValueError: If ``l1`` or ``l2`` is negative.

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
