"""Pooling layers: maximum and average over sliding, global or adaptive windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.messages.argument_validation import numbers
from tapewright.core.rules import checked_broadcast
from tapewright.ops.array.conversion import cast
from tapewright.ops.array.creation import zeros_like
from tapewright.ops.array.indexing import getitem
from tapewright.ops.array.joining import stack
from tapewright.ops.array.shape import expand_dims
from tapewright.ops.convolution.pooling import avg_pool, max_pool
from tapewright.ops.math.comparison import where
from tapewright.ops.math.reduction import reduce_max, reduce_mean, reduce_sum

from .base.layer import InputSpec, Layer
from .base.spatial import (
    checked_format,
    checked_padding,
    format_of_ops,
    from_channels_last,
    spatial_axes,
    to_channels_last,
    window_counts,
)

if TYPE_CHECKING:
    from tapewright.core.tensor import Tensor
    from tapewright.core.typing import Axes, Shape, Sizes

    from .base.layer_types import RegularizedLayerOptions

__all__ = [
    "AdaptiveAveragePooling1D",
    "AdaptiveAveragePooling2D",
    "AdaptiveAveragePooling3D",
    "AdaptiveMaxPooling1D",
    "AdaptiveMaxPooling2D",
    "AdaptiveMaxPooling3D",
    "AveragePooling1D",
    "AveragePooling2D",
    "AveragePooling3D",
    "AvgPool1D",
    "AvgPool2D",
    "AvgPool3D",
    "GlobalAveragePooling1D",
    "GlobalAveragePooling2D",
    "GlobalAveragePooling3D",
    "GlobalAvgPool1D",
    "GlobalAvgPool2D",
    "GlobalAvgPool3D",
    "GlobalMaxPool1D",
    "GlobalMaxPool2D",
    "GlobalMaxPool3D",
    "GlobalMaxPooling1D",
    "GlobalMaxPooling2D",
    "GlobalMaxPooling3D",
    "MaxPool1D",
    "MaxPool2D",
    "MaxPool3D",
    "MaxPooling1D",
    "MaxPooling2D",
    "MaxPooling3D",
]

_MAX_WINDOW = 1 << 20  # positions of a window, each of which is a step


class _Pooling(Layer):
    """Reduce windows of ``pool_size``, ``strides`` apart, by the method ``pooled``.

    ``strides`` defaults to the pool size. Both are an int, or one for each spatial
    axis. ``padding`` is "valid", or "same" with margins that the reduction ignores.
    """

    _tw_rank = None
    _tw_shape_tells = True

    def __init__(
        self,
        pool_size: Sizes,
        strides: Sizes | None = None,
        padding: str = "valid",
        data_format: str | None = None,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        strides = pool_size if strides is None else strides
        self.pool_size: tuple[int, ...] = numbers(
            self, "pool_size", pool_size, self._tw_rank, most_together=_MAX_WINDOW
        )
        self.strides: tuple[int, ...] = numbers(self, "strides", strides, self._tw_rank)
        self.padding: str = checked_padding(self, padding)
        self.data_format: str = checked_format(self, data_format)
        self.input_spec: InputSpec = InputSpec(ndim=self._tw_rank + 2)
        self._tw_format = format_of_ops(self.data_format, self._tw_rank)

    def call(self, inputs: Tensor) -> Tensor:
        padding = self.padding.upper()
        return self._tw_pooled(
            inputs, self.pool_size, self.strides, padding, self._tw_format
        )

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        batch, *sizes, channels = to_channels_last(input_shape, self.data_format)
        counts = window_counts(self, sizes, self.pool_size, self.strides, self.padding)
        return from_channels_last((batch, *counts, channels), self.data_format)


class _MaxPooling(_Pooling):
    _tw_pooled: Any = staticmethod(max_pool)

    def __init__(
        self,
        pool_size: Sizes = 2,
        strides: Sizes | None = None,
        padding: str = "valid",
        data_format: str | None = None,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(pool_size, strides, padding, data_format, **kwargs)


class _AveragePooling(_Pooling):
    _tw_pooled: Any = staticmethod(avg_pool)

    def call(self, inputs: Tensor) -> Tensor:
        return super().call(_floating(self, inputs))


def _floating(layer, inputs):
    """Return the inputs; cast integers, which have no mean, to the layer's dtype."""
    exact = not (inputs.dtype.is_floating or inputs.dtype.is_complex)
    return layer._tw_as_own_dtype(inputs) if exact else inputs


class MaxPooling1D(_MaxPooling):
    """Max pooling of sequences: the maximum of each window of ``pool_size`` steps.

    Args:
        pool_size: Size of the windows, an integer.
        strides: Distance between windows, an integer; ``pool_size`` by default.
        padding: "valid" (only windows inside the inputs) or "same" (padding, which is
            ignored by the reduction).
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, steps, channels]``, outputs ``[batch, windows, channels]`` with
        ``(steps - pool_size) // strides + 1`` windows ("valid") or ``steps / strides``,
        rounded up ("same").

    Raises:
        ShapeError: If a window is larger than the inputs.

    Example:
        >>> keras.layers.MaxPooling1D(2)([[[1.0], [3.0], [2.0], [0.0]]]).numpy().ravel()
        array([3., 2.], dtype=float32)
    """

    _tw_rank = 1


class MaxPooling2D(_MaxPooling):
    """Max pooling of images: the maximum of each window of ``pool_size`` pixels.

    Args:
        pool_size: Size of the windows: an integer or (height, width).
        strides: Distances between windows, an integer or (height, width); ``pool_size``
            by default.
        padding: "valid" (only windows inside the inputs) or "same" (padding, which is
            ignored by the reduction).
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, height, width, channels]``, outputs
        ``[batch, rows, columns, channels]`` with ``(size - pool_size) // strides + 1``
        windows along an axis ("valid") or ``size / strides``, rounded up ("same").

    Raises:
        ShapeError: If a window is larger than the inputs.

    Example:
        >>> images = [[[[1.0], [2.0]], [[4.0], [3.0]]]]
        >>> keras.layers.MaxPooling2D()(images).numpy().ravel()
        array([4.], dtype=float32)
    """

    _tw_rank = 2


class MaxPooling3D(_MaxPooling):
    """Max pooling of volumes: the maximum of each window of ``pool_size`` voxels.

    Args:
        pool_size: Size of the windows: an integer or (depth, height, width).
        strides: Distances between windows, an integer or (depth, height, width);
            ``pool_size`` by default.
        padding: "valid" (only windows inside the inputs) or "same" (padding, which is
            ignored by the reduction).
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, depth, height, width, channels]``, outputs of the same rank
        with the numbers of windows along the three spatial axes, as in `MaxPooling2D`.

    Raises:
        ShapeError: If a window is larger than the inputs.

    Example:
        >>> keras.layers.MaxPooling3D(2)(tw.ones([1, 4, 4, 4, 3])).shape
        TensorShape([1, 2, 2, 2, 3])
    """

    _tw_rank = 3


class AveragePooling1D(_AveragePooling):
    """Average pooling of sequences: the mean of each window of ``pool_size`` steps.

    Args:
        pool_size: Size of the windows, an integer.
        strides: Distance between windows, an integer; ``pool_size`` by default.
        padding: "valid" (only windows inside the inputs) or "same" (padding, which is
            ignored by the reduction).
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, steps, channels]``, outputs ``[batch, windows, channels]`` as
        in `MaxPooling1D`. Integer inputs are cast to the compute dtype.

    Raises:
        ShapeError: If a window is larger than the inputs.

    Example:
        >>> inputs = [[[1.0], [3.0], [2.0], [0.0]]]
        >>> keras.layers.AveragePooling1D(2)(inputs).numpy().ravel()
        array([2., 1.], dtype=float32)
    """

    _tw_rank = 1


class AveragePooling2D(_AveragePooling):
    """Average pooling of images: the mean of each window of ``pool_size`` pixels.

    Args:
        pool_size: Size of the windows: an integer or (height, width).
        strides: Distances between windows, an integer or (height, width); ``pool_size``
            by default.
        padding: "valid" (only windows inside the inputs) or "same" (padding, which is
            ignored by the reduction).
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, height, width, channels]``, outputs
        ``[batch, rows, columns, channels]`` as in `MaxPooling2D`. Integer inputs are
        cast to the compute dtype.

    Raises:
        ShapeError: If a window is larger than the inputs.

    Example:
        >>> images = [[[[1.0], [2.0]], [[4.0], [5.0]]]]
        >>> keras.layers.AveragePooling2D(2)(images).numpy().ravel()
        array([3.], dtype=float32)
    """

    _tw_rank = 2


class AveragePooling3D(_AveragePooling):
    """Average pooling of volumes: the mean of each window of ``pool_size`` voxels.

    Args:
        pool_size: Size of the windows: an integer or (depth, height, width).
        strides: Distances between windows, an integer or (depth, height, width);
            ``pool_size`` by default.
        padding: "valid" (only windows inside the inputs) or "same" (padding, which is
            ignored by the reduction).
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, depth, height, width, channels]``, outputs as in
        `MaxPooling3D`. Integer inputs are cast to the compute dtype.

    Raises:
        ShapeError: If a window is larger than the inputs.

    Example:
        >>> keras.layers.AveragePooling3D(2)(tw.ones([1, 4, 4, 4, 3])).shape
        TensorShape([1, 2, 2, 2, 3])
    """

    _tw_rank = 3


# ------------------------------------------------------------------- all that there is


class _GlobalPooling(Layer):
    """Apply ``reduced`` over all spatial axes; ``keepdims`` keeps them with size 1."""

    _tw_rank = None
    _tw_shape_tells = True

    def __init__(
        self,
        data_format: str | None = None,
        keepdims: bool = False,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        self.data_format: str = checked_format(self, data_format)
        self.keepdims: bool = bool(keepdims)
        self.input_spec: InputSpec = InputSpec(ndim=self._tw_rank + 2)
        self._tw_axes = spatial_axes(self.data_format, self._tw_rank)

    def call(self, inputs: Tensor) -> Tensor:
        return self._tw_reduced(inputs, self._tw_axes, self.keepdims)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        batch, *_, channels = to_channels_last(input_shape, self.data_format)
        if not self.keepdims:
            return batch, channels
        ones = (1,) * self._tw_rank
        return from_channels_last((batch, *ones, channels), self.data_format)


class _GlobalMaxPooling(_GlobalPooling):
    _tw_reduced: Any = staticmethod(reduce_max)


class _GlobalAveragePooling(_GlobalPooling):
    def _tw_reduced(self, inputs: Tensor, axis: Axes, keepdims: bool) -> Tensor:
        return reduce_mean(_floating(self, inputs), axis, keepdims)


class GlobalMaxPooling1D(_GlobalMaxPooling):
    """Global max pooling of sequences: the maximum of each channel over all steps.

    Args:
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        keepdims: If True, keep the spatial axes with size 1.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, steps, channels]``, outputs ``[batch, channels]``, or
        ``[batch, 1, channels]`` with ``keepdims``.

    Example:
        >>> keras.layers.GlobalMaxPooling1D()([[[1.0, 5.0], [3.0, 2.0]]]).numpy()
        array([[3., 5.]], dtype=float32)
    """

    _tw_rank = 1


class GlobalMaxPooling2D(_GlobalMaxPooling):
    """Global max pooling of images: the maximum of each channel.

    Args:
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        keepdims: If True, keep the spatial axes with size 1.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, height, width, channels]``, outputs ``[batch, channels]``, or
        ``[batch, 1, 1, channels]`` with ``keepdims``.

    Example:
        >>> keras.layers.GlobalMaxPooling2D()([[[[1.0], [2.0]], [[4.0], [5.0]]]]).numpy()
        array([[5.]], dtype=float32)
    """

    _tw_rank = 2


class GlobalMaxPooling3D(_GlobalMaxPooling):
    """Global max pooling of volumes: the maximum of each channel.

    Args:
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        keepdims: If True, keep the spatial axes with size 1.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, depth, height, width, channels]``, outputs
        ``[batch, channels]``, or ``[batch, 1, 1, 1, channels]`` with ``keepdims``.

    Example:
        >>> keras.layers.GlobalMaxPooling3D(keepdims=True)(tw.ones([1, 4, 4, 4, 3])).shape
        TensorShape([1, 1, 1, 1, 3])
    """

    _tw_rank = 3


class GlobalAveragePooling1D(_GlobalAveragePooling):
    """Global average pooling of sequences: the mean over unmasked steps.

    Args:
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        keepdims: If True, keep the spatial axes with size 1.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, steps, channels]``, ``mask`` ``[batch, steps]``, outputs
        ``[batch, channels]``, or ``[batch, 1, channels]`` with ``keepdims``. If all
        steps of an example are masked, its outputs are NaN.

    Example:
        >>> inputs, mask = [[[1.0], [3.0], [8.0]]], [[True, True, False]]
        >>> keras.layers.GlobalAveragePooling1D()(inputs, mask=mask).numpy()
        array([[2.]], dtype=float32)
    """

    _tw_rank = 1
    supports_masking = True

    def call(self, inputs: Tensor, mask: Any = None) -> Tensor:
        if mask is None:
            return super().call(inputs)
        inputs, (axis,) = _floating(self, inputs), self._tw_axes
        mask = expand_dims(cast(mask, "bool"), 3 - axis)
        checked_broadcast(
            self._tw_title, mask.shape, inputs.shape, mask=mask, inputs=inputs
        )
        kept = where(mask, inputs, zeros_like(inputs))
        count = reduce_sum(cast(mask, inputs.dtype), axis, self.keepdims)
        return reduce_sum(kept, axis, self.keepdims) / count

    def compute_mask(self, inputs: Tensor, mask: Any = None) -> Any:
        return None


class GlobalAveragePooling2D(_GlobalAveragePooling):
    """Global average pooling of images: the mean of each channel.

    Args:
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        keepdims: If True, keep the spatial axes with size 1.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, height, width, channels]``, outputs ``[batch, channels]``, or
        ``[batch, 1, 1, channels]`` with ``keepdims``. Integer inputs are cast to the
        compute dtype.

    Raises:
        ValueError: If ``data_format`` is unknown.

    Example:
        >>> images = [[[[1.0], [2.0]], [[4.0], [5.0]]]]
        >>> keras.layers.GlobalAveragePooling2D()(images).numpy()
        array([[3.]], dtype=float32)
    """

    _tw_rank = 2


class GlobalAveragePooling3D(_GlobalAveragePooling):
    """Global average pooling of volumes: the mean of each channel.

    Args:
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        keepdims: If True, keep the spatial axes with size 1.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, depth, height, width, channels]``, outputs
        ``[batch, channels]``, or ``[batch, 1, 1, 1, channels]`` with ``keepdims``.

    Example:
        >>> keras.layers.GlobalAveragePooling3D()(tw.ones([1, 4, 4, 4, 3])).shape
        TensorShape([1, 3])
    """

    _tw_rank = 3


AvgPool1D, AvgPool2D, AvgPool3D = AveragePooling1D, AveragePooling2D, AveragePooling3D
MaxPool1D, MaxPool2D, MaxPool3D = MaxPooling1D, MaxPooling2D, MaxPooling3D
GlobalAvgPool1D = GlobalAveragePooling1D
GlobalAvgPool2D = GlobalAveragePooling2D
GlobalAvgPool3D = GlobalAveragePooling3D
GlobalMaxPool1D = GlobalMaxPooling1D
GlobalMaxPool2D = GlobalMaxPooling2D
GlobalMaxPool3D = GlobalMaxPooling3D


MOST = 4096  # windows


class _AdaptivePooling(Layer):
    """Apply ``reduced`` over ``output_size`` windows that cover each spatial axis.

    Of n entries and k windows, window i covers ``i n / k``, rounded down, to
    ``(i + 1) n / k``, rounded up; neighboring windows may share an entry.
    """

    _tw_rank = None

    def __init__(
        self,
        output_size: Sizes,
        data_format: str | None = None,
        **kwargs: Unpack[RegularizedLayerOptions],
    ):
        super().__init__(**kwargs)
        self.output_size: tuple[int, ...] = numbers(
            self, "output_size", output_size, self._tw_rank
        )
        if max(self.output_size) > MOST:  # each is a node of its own where it is traced
            raise ValueError(
                f"{type(self).__name__}: output_size must be at most {MOST} along an axis, "
                f"got {output_size!r:.100}"
            )
        self.data_format: str = checked_format(self, data_format)
        self.input_spec: InputSpec = InputSpec(ndim=self._tw_rank + 2)

    def call(self, inputs: Tensor) -> Tensor:
        axes = spatial_axes(self.data_format, self._tw_rank)
        for axis, count in zip(axes, self.output_size):
            inputs = self._tw_along(inputs, axis, count)
        return inputs

    def _tw_along(self, inputs, axis, count):
        size, lead = inputs.shape[axis], (slice(None),) * axis
        if size == count:
            return inputs
        windows = []
        for i in range(count):
            start, stop = i * size // count, -(-(i + 1) * size // count)
            window = getitem(inputs, (*lead, slice(start, stop)))
            windows.append(self._tw_reduced(window, axis))
        return stack(windows, axis=axis)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        batch, *_, channels = to_channels_last(input_shape, self.data_format)
        return from_channels_last(
            (batch, *self.output_size, channels), self.data_format
        )


class _AdaptiveAveragePooling(_AdaptivePooling):
    _tw_reduced: Any = staticmethod(reduce_mean)

    def call(self, inputs: Tensor) -> Tensor:
        return super().call(_floating(self, inputs))


class _AdaptiveMaxPooling(_AdaptivePooling):
    _tw_reduced: Any = staticmethod(reduce_max)


class AdaptiveAveragePooling1D(_AdaptiveAveragePooling):
    """Adaptive average pooling of sequences to ``output_size`` windows.

    The windows cover all steps, as in `AdaptiveAveragePooling2D`.

    Args:
        output_size: Number of windows, at most 4096.
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, steps, channels]``, outputs ``[batch, output_size, channels]``.

    Raises:
        ValueError: If ``output_size`` is not positive, or is above 4096.

    Example:
        >>> inputs = [[[1.0], [2.0], [6.0]]]
        >>> keras.layers.AdaptiveAveragePooling1D(2)(inputs).numpy().ravel()
        array([1.5, 4. ], dtype=float32)
    """

    _tw_rank = 1


class AdaptiveAveragePooling2D(_AdaptiveAveragePooling):
    """Adaptive average pooling of images to ``output_size`` windows.

    The windows cover each spatial axis. Of ``n`` entries and ``k`` windows, window
    ``i`` covers the entries from ``i * n / k``, rounded down, to ``(i + 1) * n / k``,
    rounded up; neighboring windows may share an entry.

    Args:
        output_size: Number of windows: an integer or (height, width), at most 4096.
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, height, width, channels]``, outputs
        ``[batch, *output_size, channels]``. Integer inputs are cast to the compute
        dtype; `AdaptiveMaxPooling2D` keeps them.

    Raises:
        ValueError: If ``output_size`` is not positive, or is above 4096.

    Example:
        >>> images = [[[[1.0], [2.0], [6.0]]]]
        >>> keras.layers.AdaptiveAveragePooling2D((1, 2))(images).numpy().ravel()
        array([1.5, 4. ], dtype=float32)
    """

    _tw_rank = 2


class AdaptiveAveragePooling3D(_AdaptiveAveragePooling):
    """Adaptive average pooling of volumes to ``output_size`` windows.

    The windows cover each spatial axis, as in `AdaptiveAveragePooling2D`.

    Args:
        output_size: Number of windows: an integer or (depth, height, width), at most
            4096.
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, depth, height, width, channels]``, outputs
        ``[batch, *output_size, channels]``.

    Raises:
        ValueError: If ``output_size`` is not positive, or is above 4096.

    Example:
        >>> keras.layers.AdaptiveAveragePooling3D((1, 2, 3))(tw.ones([1, 4, 4, 4, 5])).shape
        TensorShape([1, 1, 2, 3, 5])
    """

    _tw_rank = 3


class AdaptiveMaxPooling1D(_AdaptiveMaxPooling):
    """Adaptive max pooling of sequences to ``output_size`` windows.

    The windows cover all steps, as in `AdaptiveAveragePooling2D`.

    Args:
        output_size: Number of windows, at most 4096.
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, steps, channels]``, outputs ``[batch, output_size, channels]``.

    Raises:
        ValueError: If ``output_size`` is not positive, or is above 4096.

    Example:
        >>> keras.layers.AdaptiveMaxPooling1D(2)([[[1.0], [2.0], [6.0]]]).numpy().ravel()
        array([2., 6.], dtype=float32)
    """

    _tw_rank = 1


class AdaptiveMaxPooling2D(_AdaptiveMaxPooling):
    """Adaptive max pooling of images to ``output_size`` windows.

    The windows cover each spatial axis, as in `AdaptiveAveragePooling2D`.

    Args:
        output_size: Number of windows: an integer or (height, width), at most 4096.
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, height, width, channels]``, outputs
        ``[batch, *output_size, channels]``.

    Raises:
        ValueError: If ``output_size`` is not positive, or is above 4096.

    Example:
        >>> images = [[[[1.0], [2.0], [6.0]]]]
        >>> keras.layers.AdaptiveMaxPooling2D((1, 2))(images).numpy().ravel()
        array([2., 6.], dtype=float32)
    """

    _tw_rank = 2


class AdaptiveMaxPooling3D(_AdaptiveMaxPooling):
    """Adaptive max pooling of volumes to ``output_size`` windows.

    The windows cover each spatial axis, as in `AdaptiveAveragePooling2D`.

    Args:
        output_size: Number of windows: an integer or (depth, height, width), at most
            4096.
        data_format: "channels_last" or "channels_first"; None means
            `keras.config.image_data_format`.
        **kwargs: Base class arguments; see `keras.layers.Layer`.

    Shapes:
        Inputs ``[batch, depth, height, width, channels]``, outputs
        ``[batch, *output_size, channels]``.

    Raises:
        ValueError: If ``output_size`` is not positive, or is above 4096.

    Example:
        >>> keras.layers.AdaptiveMaxPooling3D((1, 2, 3))(tw.ones([1, 4, 4, 4, 5])).shape
        TensorShape([1, 1, 2, 3, 5])
    """

    _tw_rank = 3
