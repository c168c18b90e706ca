"""Random changes of images, in training only: turned, moved, zoomed, cropped, brighter.

Each layer draws a transformation (`get_random_transformation`) and carries it out
(`transform_images`). Alone, outside of a model, a layer is in training, as in Keras.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.argument_validation import one_of, whole
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import ones_like, zeros_like
from tapewright.ops.array.creation import range as arange
from tapewright.ops.array.gather import gather
from tapewright.ops.array.joining import concat, reverse, stack
from tapewright.ops.array.shape import reshape
from tapewright.ops.image.warping import (
    FILL_MODES,
    INTERPOLATIONS,
    affine_transform,
)
from tapewright.ops.math.comparison import less_equal, where
from tapewright.ops.math.elementwise import clip_by_value
from tapewright.ops.math.reduction import reduce_mean
from tapewright.ops.math.trigonometry import cos, sin
from tapewright.ops.random.sampling import get_global_generator

from .base.layer import ShapePreserving
from .base.seeds import checked_seed, generator_of
from .images import ImageLayer

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.ops.random.generators import Generator

    from .base.layer_types import RegularizedLayerOptions, SeedLike

__all__ = [
    "RandomBrightness",
    "RandomContrast",
    "RandomCrop",
    "RandomFlip",
    "RandomRotation",
    "RandomTranslation",
    "RandomZoom",
]


class _RandomLayer(ShapePreserving, ImageLayer):
    """Draws a transformation of each image and carries it out, in training.

    Shapes: inputs and outputs ``[batch, height, width, channels]``, or one image.
    Integers are cast. ``seed``: for a stream of random numbers of its own.
    """

    generator: Generator | None

    def _keep_seed(self, seed, data_format=None):
        self.seed: SeedLike = checked_seed(self, seed)
        self.generator = generator_of(self.seed)
        self._keep_format(data_format)

    def get_random_transformation(
        self, data: Any, training: bool = True, seed: SeedLike = None
    ) -> Any:
        """Draw a transformation for these images; None if not ``training``."""
        generator = self.generator or get_global_generator()
        generator = generator_of(checked_seed(self, seed)) or generator

        def draw(low, high, shape):
            return generator.uniform(shape, low, high)

        return self._drawn(data, draw) if training else None

    def transform_images(
        self, images: Tensor, transformation: Any, training: bool = True
    ) -> Tensor:
        """Return the transformed images, floating; only cast if not ``training``."""
        images = self._as_own_dtype(images)
        return self._changed(images, transformation) if training else images

    def call(self, inputs: Any, training: bool | None = True) -> Any:
        transformation = self.get_random_transformation(inputs, training)
        return self.transform_images(inputs, transformation, training)

    def _one_for_each(self, images, *ones):
        """The shape of numbers that belong to an image each."""
        return (images.shape[0] if len(images.shape) == 4 else 1, *ones)


class RandomFlip(_RandomLayer):
    """In training, mirrors each image with probability 1/2.

    Args: ``mode``: "horizontal" (swaps left and right), "vertical" (up and down) or
    "horizontal_and_vertical" (both at once); ``seed``: an int or a
    `keras.random.SeedGenerator` for a random stream of the layer's own; None draws from
    the global stream; ``data_format``: "channels_last" (default) or "channels_first".

    Shapes: inputs and outputs ``[batch, height, width, channels]``, or one image
    without the batch. Integers are cast.

    Raises: ``ValueError`` for another ``mode``.

    >>> layer = RandomFlip("horizontal", seed=0)
    >>> image = [[[1.0], [2.0]]]
    >>> layer(image).numpy().ravel(), layer(image, training=False).numpy().ravel()
    (array([2., 1.], dtype=float32), array([1., 2.], dtype=float32))
    """

    def __init__(
        self,
        mode: str = "horizontal_and_vertical",
        seed: SeedLike = None,
        data_format: str | None = None,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        modes = ("horizontal", "vertical", "horizontal_and_vertical")
        self.mode: str = one_of(self, "mode", mode, modes)
        self._keep_seed(seed, data_format)

    def _drawn(self, images, draw):
        shape = self._one_for_each(images, 1, 1, 1)[-len(images.shape) :]
        return {"flips": less_equal(draw(0.0, 1.0, shape), 0.5)}

    def _changed(self, images, transformation):
        axes = {"horizontal": [self._columns], "vertical": [self._rows]}
        axes = axes.get(self.mode, [self._rows, self._columns])
        return where(transformation["flips"], reverse(images, axes), images)


# ---------------------------------------------------------------------- affine changes


class _Warping(_RandomLayer):
    """A random affine map; what comes from outside the image is as ``fill_mode`` says.

    ``fill_mode``: "reflect" (``d c b a | a b c d``), "wrap", "nearest" or "constant",
    which is ``fill_value``; ``interpolation``: "bilinear" or "nearest".
    """

    def _keep_filling(
        self, fill_mode: str, interpolation: str, fill_value: float
    ) -> None:
        self.fill_mode: str = one_of(self, "fill_mode", fill_mode, FILL_MODES)
        self.interpolation: str = one_of(
            self, "interpolation", interpolation, INTERPOLATIONS
        )
        self.fill_value: float = fill_value

    def _changed(self, images, transformation):
        matrices = self._matrices(images, transformation)
        if len(images.shape) == 3:
            matrices = reshape(matrices, (8,))
        return affine_transform(
            images,
            matrices,
            self.interpolation,
            self.fill_mode,
            self.fill_value,
            self.data_format,
        )

    def _middle(self, images):
        """Half of the last row's and of the last column's number."""
        return [(cast(n, "float32") - 1.0) / 2.0 for n in self._size_of(images)]


def _rows_of_eight(a0, a1, a2, b0, b1, b2):
    """``[batch, 8]``: the map of (x, y) to (a0 x + a1 y + a2, b0 x + b1 y + b2)."""
    zeros = zeros_like(a0)
    return stack([a0, a1, a2, b0, b1, b2, zeros, zeros], axis=1)


class RandomRotation(_Warping):
    """In training, rotates each image about its center by a random angle.

    Args: ``factor``: the largest angle either way, as a share of a full turn, or a pair
    (lowest, highest); positive angles turn counter-clockwise. ``fill_mode``: the pixels
    outside of the image are "reflect" (``d c b a | a b c d``), "wrap", "nearest" or
    "constant", which is ``fill_value``; ``interpolation``: "bilinear" or "nearest";
    ``seed``, ``data_format`` as for `RandomFlip`.

    Shapes: inputs and outputs ``[batch, height, width, channels]``, or one image
    without the batch. Integers are cast.

    Raises: ``ValueError`` for a ``factor`` that is not from -1 to 1, or another mode.

    >>> from tapewright import ones
    >>> RandomRotation(0.1)(ones([2, 8, 8, 3])).shape
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
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        self.factor: Any = _range(self, "factor", factor)
        self._keep_filling(fill_mode, interpolation, fill_value)
        self._keep_seed(seed, data_format)

    def _drawn(self, images, draw):
        low, high = [share * 360.0 for share in self.factor]
        angle = draw(low, high, self._one_for_each(images))
        return {"angle": angle, "rotation_matrix": self._rotation(images, angle)}

    def _rotation(self, images, degrees):
        y, x = self._middle(images)
        angle = degrees * (math.pi / 180.0)
        c, s = cos(angle), sin(angle)
        return _rows_of_eight(c, -s, x - x * c + y * s, s, c, y - x * s - y * c)

    def _matrices(self, images, transformation):
        return transformation["rotation_matrix"]


class RandomTranslation(_Warping):
    """In training, moves each image by a random share of its height and of its width.

    Args: ``height_factor``, ``width_factor``: the largest share either way, or a pair
    (lowest, highest); positive shares move down and to the right. The others as for
    `RandomRotation`.

    Shapes: inputs and outputs ``[batch, height, width, channels]``, or one image
    without the batch. Integers are cast.

    Raises: ``ValueError`` for a factor that is not from -1 to 1, or another mode.

    >>> layer = RandomTranslation((0.0, 0.0), (0.5, 0.5), fill_mode="constant")
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
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        self.height_factor, self.width_factor = height_factor, width_factor
        self._down = _range(self, "height_factor", height_factor)
        self._right = _range(self, "width_factor", width_factor)
        self._keep_filling(fill_mode, interpolation, fill_value)
        self._keep_seed(seed, data_format)

    def _drawn(self, images, draw):
        height, width = [cast(n, "float32") for n in self._size_of(images)]
        shape = self._one_for_each(images, 1)
        down, right = draw(*self._down, shape), draw(*self._right, shape)
        return {"translations": concat([right * width, down * height], axis=1)}

    def _matrices(self, images, transformation):
        moves = transformation["translations"]
        right, down = moves[:, 0], moves[:, 1]
        one, zero = ones_like(right), zeros_like(right)
        return _rows_of_eight(one, zero, -right, zero, one, -down)


class RandomZoom(_Warping):
    """In training, enlarges or shrinks each image by a random factor.

    Args: ``height_factor``: the largest change either way, or a pair (lowest, highest);
    0.2 shows a fifth more of the height, and so smaller, -0.2 a fifth less;
    ``width_factor``: the same for the width; None keeps the ratio. The others as for
    `RandomRotation`.

    Shapes: inputs and outputs ``[batch, height, width, channels]``, or one image
    without the batch. Integers are cast.

    Raises: ``ValueError`` for a factor that is not above -1 and at most 1, or another
    mode.

    >>> from tapewright import ones
    >>> RandomZoom(0.2)(ones([2, 8, 8, 3])).shape
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
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        self.height_factor, self.width_factor = height_factor, width_factor
        self._tall = _range(self, "height_factor", height_factor)
        self._wide = None
        if width_factor is not None:
            self._wide = _range(self, "width_factor", width_factor)
        for low, _ in filter(None, (self._tall, self._wide)):
            if low <= -1:
                raise ValueError(
                    "RandomZoom: height_factor and width_factor must be above -1, got "
                    f"{height_factor} and {width_factor}"
                )
        self._keep_filling(fill_mode, interpolation, fill_value)
        self._keep_seed(seed, data_format)

    def _drawn(self, images, draw):
        shape = self._one_for_each(images, 1)
        tall = 1.0 + draw(*self._tall, shape)
        wide = tall if self._wide is None else 1.0 + draw(*self._wide, shape)
        return {"height_zoom": tall, "width_zoom": wide}

    def _matrices(self, images, transformation):
        middle_y, middle_x = self._middle(images)
        tall = transformation["height_zoom"][:, 0]
        wide = transformation["width_zoom"][:, 0]
        zero = zeros_like(tall)
        x, y = middle_x * (1.0 - wide), middle_y * (1.0 - tall)
        return _rows_of_eight(wide, zero, x, zero, tall, y)


# ------------------------------------------------------------------------- other changes


class RandomCrop(_RandomLayer):
    """In training, cuts a box of ``height`` by ``width`` out of the images, at a random place.

    All images of a batch have the same place. Images that are not larger on both axes
    are cut around the middle, and resized. Outside of training nothing is cut, as in
    Keras 3: add a `CenterCrop` or `Resizing` if later layers need that size.

    Args: ``seed``, ``data_format`` as for `RandomFlip`.

    Shapes: inputs ``[batch, rows, columns, channels]``, or one image without the batch,
    outputs with ``height`` and ``width`` in place of rows and columns. Integers are
    cast.

    Raises: ``ValueError`` for sizes that are not positive.

    >>> from tapewright import ones
    >>> layer, images = RandomCrop(4, 4), ones([2, 8, 8, 3])
    >>> layer(images).shape, layer(images, training=False).shape
    (TensorShape([2, 4, 4, 3]), TensorShape([2, 8, 8, 3]))
    """

    def __init__(
        self,
        height: int,
        width: int,
        seed: SeedLike = None,
        data_format: str | None = None,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        self.height: int = whole(self, "height", height)
        self.width: int = whole(self, "width", width)
        self._keep_seed(seed, data_format)

    def _drawn(self, images, draw):
        rows, columns = self._size_of(images)
        if rows <= self.height or columns <= self.width:
            return self._in_the_middle(rows, columns)
        spare = rows - self.height + 1, columns - self.width + 1
        starts = [draw(0.0, 1.0, ()) * cast(n, "float32") for n in spare]
        return tuple([cast(start, "int32") for start in starts])

    def _in_the_middle(self, rows, columns):
        """The corner of the largest box with the sides' ratio, in the middle."""
        inner = max(min(rows, columns * self.height // self.width), 1)
        across = max(min(columns, rows * self.width // self.height), 1)
        return (rows - inner) // 2, (columns - across) // 2

    def _changed(self, images, transformation):
        """The box whose upper left corner is ``transformation``."""
        top, left = transformation
        rows, columns = self._size_of(images)
        if rows > self.height and columns > self.width:
            images = gather(images, top + arange(self.height), axis=self._rows)
            return gather(images, left + arange(self.width), axis=self._columns)
        inner, across = min(self.height, rows - top), min(self.width, columns - left)
        images = self._cut(images, top, left, inner, across)
        if (inner, across) == (self.height, self.width):
            return images
        return self._resized(images, self.height, self.width)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return self._shape_with(input_shape, self.height, self.width)


class RandomBrightness(_RandomLayer):
    """In training, adds a random number to each image, and clips to ``value_range``.

    Args: ``factor``: the largest share of the range either way, or a pair (lowest,
    highest); ``value_range``: the lowest and the highest value of a pixel; ``seed``,
    ``data_format`` as for `RandomFlip`.

    Shapes: inputs and outputs ``[batch, height, width, channels]``, or one image
    without the batch. Integers are cast.

    Raises: ``ValueError`` for a ``factor`` that is not from -1 to 1.

    >>> layer = RandomBrightness((0.5, 0.5), value_range=(0, 1))
    >>> layer([[[0.25], [0.75]]]).numpy().ravel()
    array([0.75, 1.  ], dtype=float32)
    """

    def __init__(
        self,
        factor: float | Sequence[float],
        value_range: Sequence[float] = (0, 255),
        seed: SeedLike = None,
        data_format: str | None = None,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        self.factor: Any = _range(self, "factor", factor)
        self.value_range: Any = _value_range(self, value_range)
        self._keep_seed(seed, data_format)

    def _drawn(self, images, draw):
        shape = self._one_for_each(images, 1, 1, 1)[-len(images.shape) :]
        low, high = self.value_range
        return {"rgb_delta": draw(*self.factor, shape) * float(high - low)}

    def _changed(self, images, transformation):
        brighter = images + cast(transformation["rgb_delta"], images.dtype)
        return clip_by_value(brighter, *self.value_range)


class RandomContrast(_RandomLayer):
    """In training, ``(x - mean) * factor + mean`` with a random factor for each image.

    The mean is that of the image's channel; the result is clipped to ``value_range``.

    Args: ``factor``: a pair (lower, upper), for factors from ``1 - lower`` to ``1 +
    upper``, or one number for both; ``seed``, ``data_format`` as for `RandomFlip`.

    Shapes: inputs and outputs ``[batch, height, width, channels]``, or one image
    without the batch. Integers are cast.

    Raises: ``ValueError`` for a ``factor`` that is not from 0 to 1.

    >>> layer = RandomContrast(0.0)  # the factor is 1
    >>> layer([[[0.25], [0.75]]]).numpy().ravel()
    array([0.25, 0.75], dtype=float32)
    """

    def __init__(
        self,
        factor: float | Sequence[float],
        value_range: Sequence[float] = (0, 255),
        seed: SeedLike = None,
        data_format: str | None = None,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        pair = factor if isinstance(factor, (list, tuple)) else (factor, factor)
        _range(self, "factor", pair, least=0)
        self.factor: tuple[float | int | Sequence[float], ...] = tuple(pair)
        self.value_range: Any = _value_range(self, value_range)
        self._keep_seed(seed, data_format)

    def _drawn(self, images, draw):
        shape = self._one_for_each(images, 1, 1, 1)[-len(images.shape) :]
        lower, upper = self.factor
        return {"contrast_factor": draw(1.0 - lower, 1.0 + upper, shape)}

    def _changed(self, images, transformation):
        mean = reduce_mean(images, (self._rows, self._columns), True)
        factor = cast(transformation["contrast_factor"], images.dtype)
        return clip_by_value((images - mean) * factor + mean, *self.value_range)


def _range(layer, name, factor, least=-1):
    """``(lowest, highest)``; one number stands for itself either way."""
    pair = factor if isinstance(factor, (list, tuple)) else (factor, factor)
    numbers = [isinstance(n, (int, float)) and least <= n <= 1 for n in pair]
    if len(pair) != 2 or not all(numbers):
        raise ValueError(
            f"{type(layer).__name__}: {name} must be a number from {least} to 1, or two "
            f"of them, got {factor!r}"
        )
    if pair is factor:
        return tuple(sorted(pair))
    return -abs(factor), abs(factor)


def _value_range(layer, value_range):
    if not isinstance(value_range, (list, tuple)) or len(value_range) != 2:
        raise ValueError(
            f"{type(layer).__name__}: value_range must be two numbers, got {value_range!r}"
        )
    return tuple(sorted(value_range))
