"""Reshaping layers: flatten, reshape, permute, repeat, pad and crop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.errors import ShapeError
from tapewright.core.messages.argument_validation import (
    MAX_SIZE,
    numbers,
    one_of,
    whole,
)
from tapewright.ops.array.indexing import getitem
from tapewright.ops.array.joining import pad
from tapewright.ops.array.shape import (
    broadcast_to,
    expand_dims,
    reshape,
    transpose,
)
from tapewright.ops.image.resampling import upsample
from tapewright.ops.image.resizing import resize_keeping_dtype

from .base.layer import InputSpec, Layer
from .base.spatial import (
    checked_format,
    from_channels_last,
    spatial_axes,
    to_channels_last,
)

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import Shape, Sizes

    from .base.layer_types import RegularizedLayerOptions

__all__ = [
    "Cropping1D",
    "Cropping2D",
    "Cropping3D",
    "Flatten",
    "Permute",
    "RepeatVector",
    "Reshape",
    "UpSampling1D",
    "UpSampling2D",
    "UpSampling3D",
    "ZeroPadding1D",
    "ZeroPadding2D",
    "ZeroPadding3D",
]


class Flatten(Layer):
    """Flatten each example to a vector.

    Args:
        data_format: "channels_first" moves axis 1 to the end before flattening;
            "channels_last" keeps the order. None means
            `keras.config.image_data_format`.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, ...]``, outputs ``[batch, n]``; ``[batch, 1]`` for inputs
        ``[batch]``.

    Raises:
        ValueError: If ``data_format`` is unknown.

    Example:
        >>> keras.layers.Flatten()([[[1.0, 2.0], [3.0, 4.0]]]).numpy()
        array([[1., 2., 3., 4.]], dtype=float32)
    """

    _tw_shape_tells = True

    def __init__(
        self, data_format: str | None = None, **kwargs: Unpack[RegularizedLayerOptions]
    ):
        super().__init__(**kwargs)
        self.data_format: str = checked_format(self, data_format)
        self.input_spec: InputSpec = InputSpec(min_ndim=1)

    def call(self, inputs: Tensor) -> Tensor:
        batch, *rest = inputs.shape
        if self.data_format == "channels_first" and len(rest) > 1:
            inputs = transpose(inputs, (0, *range(2, len(rest) + 1), 1))
        return reshape(inputs, (batch, math.prod(rest)))

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        batch, *rest = input_shape
        return batch, None if None in rest else math.prod(rest)


class Reshape(Layer):
    """Reshape each example to ``target_shape``.

    Args:
        target_shape: Shape without the batch axis; one size may be -1 and is inferred.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, ...]``, outputs ``[batch, *target_shape]``.

    Raises:
        ValueError: If more than one size is -1.
        ShapeError: If the number of entries differs.

    Example:
        >>> keras.layers.Reshape((-1, 2))([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]).shape
        TensorShape([1, 3, 2])
    """

    def __init__(
        self, target_shape: Sequence[int], **kwargs: Unpack[RegularizedLayerOptions]
    ):
        super().__init__(**kwargs)
        shape = [target_shape] if isinstance(target_shape, int) else target_shape
        self.target_shape: tuple[int, ...] = tuple(
            [
                -1 if n == -1 else whole(self, "each of target_shape", n, 0)
                for n in shape
            ]
        )
        if self.target_shape.count(-1) > 1:
            raise ValueError(
                f"Reshape: at most one axis of target_shape may be -1, got {target_shape}"
            )

    def call(self, inputs: Tensor) -> Tensor:
        batch, *rest = inputs.shape
        return reshape(inputs, (batch, *self._tw_resolved(rest)))

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        batch, *rest = input_shape
        if None in rest:
            return batch, *[None if n == -1 else n for n in self.target_shape]
        return batch, *self._tw_resolved(rest)

    def _tw_resolved(self, rest):
        total = math.prod(rest)
        known = math.prod([n for n in self.target_shape if n > -1])
        if -1 in self.target_shape:
            fits, missing = known and total % known == 0, total // max(known, 1)
        else:
            fits, missing = total == known, None
        if not fits:
            raise ShapeError(
                self._tw_title,
                f"target_shape must have the {total} entries of an example of shape "
                f"{tuple(rest)}, got {self.target_shape}",
            )
        return [missing if n == -1 else n for n in self.target_shape]


class Permute(Layer):
    """Permute the axes of each example.

    Args:
        dims: Permutation of the axes, counted from 1 without the batch axis: axis ``i``
            of the outputs is axis ``dims[i - 1]`` of the inputs.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, ...]`` of rank ``len(dims) + 1``, outputs with permuted axes.

    Raises:
        ValueError: If ``dims`` is not a permutation of 1 to its length.

    Example:
        >>> keras.layers.Permute((2, 1))([[[1, 2, 3]]]).shape
        TensorShape([1, 3, 1])
    """

    def __init__(self, dims: Sequence[int], **kwargs: Unpack[RegularizedLayerOptions]):
        super().__init__(**kwargs)
        self.dims: tuple[int, ...] | tuple[Sequence[int]] = (
            tuple(dims) if hasattr(dims, "__iter__") else (dims,)
        )
        if set(self.dims) != set(range(1, len(self.dims) + 1)):
            raise ValueError(
                "Permute: dims must be a permutation of the axes 1 to "
                f"{len(self.dims)}, without the batch axis, got {dims}"
            )
        self.input_spec: InputSpec = InputSpec(ndim=len(self.dims) + 1)

    def call(self, inputs: Tensor) -> Tensor:
        return transpose(inputs, (0, *self.dims))

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        return tuple([input_shape[i] for i in (0, *self.dims)])


class RepeatVector(Layer):
    """Repeat each vector ``n`` times.

    Args:
        n: Number of repetitions, positive.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, features]``, outputs ``[batch, n, features]``.

    Raises:
        ValueError: If ``n`` is not a positive integer.

    Example:
        >>> keras.layers.RepeatVector(2)([[1.0, 2.0]]).numpy()
        array([[[1., 2.],
                [1., 2.]]], dtype=float32)
    """

    def __init__(self, n: int, **kwargs: Unpack[RegularizedLayerOptions]):
        super().__init__(**kwargs)
        self.n: int = whole(self, "n", n)
        self.input_spec: InputSpec = InputSpec(ndim=2)

    def call(self, inputs: Tensor) -> Tensor:
        batch, features = inputs.shape
        return broadcast_to(expand_dims(inputs, 1), (batch, self.n, features))

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        batch, features = input_shape
        return batch, self.n, features


# ------------------------------------------------------------------------- upsampling


class _UpSampling(Layer):
    """Repeat each entry ``size`` times along the spatial axes."""

    input_spec: InputSpec

    _tw_rank = None
    _tw_data_format: Any = property(attrgetter("data_format"))

    def _tw_keep_size(self, size):
        self.input_spec = InputSpec(ndim=self._tw_rank + 2)
        return numbers(self, "size", size, self._tw_rank)

    def call(self, inputs: Tensor) -> Tensor:
        rank = len(inputs.shape)
        for axis, times in zip(
            spatial_axes(self._tw_data_format, self._tw_rank), self._tw_times
        ):
            if times > 1:
                inputs = upsample(inputs, axis - rank, times)
        return inputs

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        batch, *sizes, channels = to_channels_last(input_shape, self._tw_data_format)
        sizes = [None if n is None else n * k for n, k in zip(sizes, self._tw_times)]
        return from_channels_last((batch, *sizes, channels), self._tw_data_format)


class UpSampling1D(_UpSampling):
    """Upsample sequences: repeat each step ``size`` times.

    Args:
        size: Number of repetitions, positive.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, steps, channels]``, outputs
        ``[batch, steps * size, channels]``.

    Raises:
        ValueError: If ``size`` is not a positive integer.

    Example:
        >>> keras.layers.UpSampling1D(2)([[[1.0], [2.0]]]).numpy().ravel()
        array([1., 1., 2., 2.], dtype=float32)
    """

    size: int

    _tw_rank = 1
    _tw_data_format = "channels_last"

    def __init__(self, size: Sizes = 2, **kwargs: Unpack[RegularizedLayerOptions]):
        super().__init__(**kwargs)
        self._tw_times = self._tw_keep_size(size)
        (self.size,) = self._tw_times


class UpSampling2D(_UpSampling):
    """Upsample images: repeat rows and columns, or resize by interpolation.

    Args:
        size: Upsampling factor: an integer or (height, width).
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        interpolation: "nearest" (repetition), "bilinear", "bicubic", "lanczos3" or
            "lanczos5".
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, height, width, channels]``, outputs with height and width
        multiplied by ``size``.

    Raises:
        ValueError: If ``size`` is not positive, or ``interpolation`` is unknown.

    Example:
        >>> keras.layers.UpSampling2D((1, 2))([[[[1.0], [2.0]]]]).numpy().ravel()
        array([1., 1., 2., 2.], dtype=float32)
    """

    size: tuple[int, ...]

    _tw_rank = 2

    def __init__(
        self,
        size: Sizes = 2,
        data_format: str | None = None,
        interpolation: str = "nearest",
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        self.size = self._tw_times = self._tw_keep_size(size)
        self.data_format: str = checked_format(self, data_format)
        self.interpolation: str = one_of(
            self,
            "interpolation",
            str(interpolation).lower(),
            ("nearest", "bilinear", "bicubic", "lanczos3", "lanczos5"),
        )

    def call(self, inputs: Tensor) -> Tensor:
        if self.interpolation == "nearest":
            return super().call(inputs)
        first = self.data_format == "channels_first"
        images = transpose(inputs, (0, 2, 3, 1)) if first else inputs
        size = [n * k for n, k in zip(tuple(images.shape)[1:3], self.size)]
        images = resize_keeping_dtype(images, size, self.interpolation)
        return transpose(images, (0, 3, 1, 2)) if first else images


class UpSampling3D(_UpSampling):
    """Upsample volumes: repeat each entry along the three spatial axes.

    Args:
        size: Number of repetitions: an integer or (depth, height, width).
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, depth, height, width, channels]``, outputs with the three
        spatial sizes multiplied by ``size``.

    Raises:
        ValueError: If ``size`` is not positive.

    Example:
        >>> keras.layers.UpSampling3D((1, 2, 3))(tw.ones([1, 2, 2, 2, 1])).shape
        TensorShape([1, 2, 4, 6, 1])
    """

    size: tuple[int, ...]

    _tw_rank = 3

    def __init__(
        self,
        size: Sizes = 2,
        data_format: str | None = None,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        self.size = self._tw_times = self._tw_keep_size(size)
        self.data_format: str = checked_format(self, data_format)


# ---------------------------------------------------------------- padding and cropping


def _pairs(layer, name, value, rank):
    """Return a pair (before, after) for each axis, from an int, ints or pairs."""
    values = value if isinstance(value, (list, tuple)) else [value] * rank
    try:
        if len(values) != rank:
            raise ValueError
        return tuple([numbers(layer, name, pair, 2, least=0) for pair in values])
    except ValueError:
        many = f", {rank} integers, or {rank} pairs" if rank > 1 else ", or a pair"
        raise ValueError(
            f"{type(layer).__name__}: {name} must be an integer from 0, at most "
            f"{MAX_SIZE}{many} (before, after), got {value!r}"
        ) from None


class _ZeroPadding(Layer):
    """Pad the spatial axes with zeros; ``_tw_margins`` has a pair for each."""

    _tw_rank = None

    def __init__(
        self,
        padding: int | Sequence[Any] = 1,
        data_format: str | None = None,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        self._tw_margins = self._tw_margins_of(padding)
        self.padding: tuple[tuple[int, ...], ...] | tuple[int, ...] = (
            self._tw_margins if self._tw_rank > 1 else self._tw_margins[0]
        )
        self.data_format: str = checked_format(self, data_format)
        self.input_spec: InputSpec = InputSpec(ndim=self._tw_rank + 2)

    def _tw_margins_of(self, padding):
        return _pairs(self, "padding", padding, self._tw_rank)

    def call(self, inputs: Tensor) -> Tensor:
        widths = ((0, 0), *self._tw_margins, (0, 0))
        return pad(inputs, from_channels_last(widths, self.data_format))

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        batch, *sizes, channels = to_channels_last(input_shape, self.data_format)
        sizes = [
            None if n is None else n + sum(m) for n, m in zip(sizes, self._tw_margins)
        ]
        return from_channels_last((batch, *sizes, channels), self.data_format)


class ZeroPadding1D(_ZeroPadding):
    """Pad sequences with zeros before the first and after the last step.

    Args:
        padding: Number of zeros: an integer for both ends, or (before, after).
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, steps, channels]``, outputs
        ``[batch, before + steps + after, channels]``.

    Raises:
        ValueError: If a number is negative.

    Example:
        >>> keras.layers.ZeroPadding1D((1, 0))([[[5.0], [6.0]]]).numpy().ravel()
        array([0., 5., 6.], dtype=float32)
    """

    _tw_rank = 1

    def _tw_margins_of(self, padding):
        return _pairs(self, "padding", [padding], 1)


class ZeroPadding2D(_ZeroPadding):
    """Pad images with rows and columns of zeros.

    Args:
        padding: Number of zeros: an integer for all sides, (height, width), or ((top,
            bottom), (left, right)).
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, height, width, channels]``, outputs
        ``[batch, top + height + bottom, left + width + right, channels]``.

    Raises:
        ValueError: If a number is negative.

    Example:
        >>> keras.layers.ZeroPadding2D(((0, 1), (1, 0)))([[[[5.0]]]]).numpy()[0, :, :, 0]
        array([[0., 5.],
               [0., 0.]], dtype=float32)
    """

    _tw_rank = 2


class ZeroPadding3D(_ZeroPadding):
    """Pad volumes with zeros.

    Args:
        padding: Number of zeros: an integer for all sides, one for each axis, or a pair
            (before, after) for each axis.
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, depth, height, width, channels]``, outputs with each spatial
        size increased by its pair.

    Raises:
        ValueError: If a number is negative.

    Example:
        >>> keras.layers.ZeroPadding3D((1, 2, 3))(tw.ones([1, 2, 2, 2, 1])).shape
        TensorShape([1, 4, 6, 8, 1])
    """

    _tw_rank = 3


class _Cropping(Layer):
    """Crop the spatial axes at both ends; ``_tw_margins`` has a pair for each."""

    input_spec: InputSpec

    _tw_rank = None
    _tw_data_format: Any = property(attrgetter("data_format"))

    def _tw_keep_margins(self, cropping):
        self._tw_margins = _pairs(self, "cropping", cropping, self._tw_rank)
        self.input_spec = InputSpec(ndim=self._tw_rank + 2)
        return self._tw_margins

    def call(self, inputs: Tensor) -> Tensor:
        self.compute_output_shape(inputs.shape)  # refuses to leave nothing
        kept = [slice(before, -after or None) for before, after in self._tw_margins]
        everything = slice(None)
        index = from_channels_last(
            (everything, *kept, everything), self._tw_data_format
        )
        return getitem(inputs, index)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        batch, *sizes, channels = to_channels_last(input_shape, self._tw_data_format)
        left = [
            None if n is None else n - sum(m) for n, m in zip(sizes, self._tw_margins)
        ]
        if any([n is not None and n <= 0 for n in left]):
            raise ShapeError(
                self._tw_title,
                f"cropping must be smaller than the inputs, of spatial sizes "
                f"{tuple(sizes)}, got {self.cropping}",
            )
        return from_channels_last((batch, *left, channels), self._tw_data_format)


class Cropping1D(_Cropping):
    """Crop sequences: remove the first and last steps.

    Args:
        cropping: Number of steps to remove: an integer for both ends, or (before,
            after).
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, steps, channels]``, outputs
        ``[batch, steps - before - after, channels]``.

    Raises:
        ValueError: If a number is negative.
        ShapeError: If no step is left.

    Example:
        >>> keras.layers.Cropping1D((1, 0))([[[1.0], [2.0], [3.0]]]).numpy().ravel()
        array([2., 3.], dtype=float32)
    """

    cropping: tuple[int, ...]

    _tw_rank = 1
    _tw_data_format = "channels_last"

    def __init__(
        self,
        cropping: int | Sequence[Any] = (1, 1),
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        (self.cropping,) = self._tw_keep_margins([cropping])


class Cropping2D(_Cropping):
    """Crop images: remove rows and columns at the edges.

    Args:
        cropping: Number of pixels to remove: an integer for all sides, (height, width),
            or ((top, bottom), (left, right)).
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, height, width, channels]``, outputs
        ``[batch, height - top - bottom, width - left - right, channels]``.

    Raises:
        ValueError: If a number is negative.
        ShapeError: If nothing is left.

    Example:
        >>> images = [[[[1.0], [2.0], [3.0]]]]
        >>> keras.layers.Cropping2D(((0, 0), (1, 0)))(images).numpy().ravel()
        array([2., 3.], dtype=float32)
    """

    _tw_rank = 2

    def __init__(
        self,
        cropping: int | Sequence[Any] = ((0, 0), (0, 0)),
        data_format: str | None = None,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        self.cropping: tuple[tuple[int, ...], ...] = self._tw_keep_margins(cropping)
        self.data_format: str = checked_format(self, data_format)


class Cropping3D(_Cropping):
    """Crop volumes: remove voxels at the faces.

    Args:
        cropping: Number of voxels to remove: an integer for all sides, one for each
            axis, or a pair (before, after) for each axis.
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, depth, height, width, channels]``, outputs with each spatial
        size reduced by its pair.

    Raises:
        ValueError: If a number is negative.
        ShapeError: If nothing is left.

    Example:
        >>> cropping = ((1, 0), (0, 2), (0, 0))
        >>> keras.layers.Cropping3D(cropping)(tw.ones([1, 4, 4, 4, 1])).shape
        TensorShape([1, 3, 2, 4, 1])
    """

    _tw_rank = 3

    def __init__(
        self,
        cropping: int | Sequence[Any] = ((1, 1), (1, 1), (1, 1)),
        data_format: str | None = None,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        self.cropping: tuple[tuple[int, ...], ...] = self._tw_keep_margins(cropping)
        self.data_format: str = checked_format(self, data_format)
