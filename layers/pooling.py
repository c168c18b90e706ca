"""Pooling layers: maxima and means over sliding windows, whole axes, adaptive windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

from tapewright.core.argument_validation import numbers
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

MAX_WINDOW = 1 << 20  # positions of a window, each of which is a step


class _Pooling(Layer):
    """Reduce each window of ``pool_size`` by ``pooled``, windows ``strides`` apart.

    Args: ``pool_size``, ``strides`` (by default the pool size): an int, or one for each
    spatial axis; ``padding``: "valid", or "same" with margins that do not count;
    ``data_format``: "channels_last" (default) or "channels_first".
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
            self, "pool_size", pool_size, self._tw_rank, most_together=MAX_WINDOW
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
    """The inputs; whole numbers, whose mean is none, in the dtype of the layer."""
    exact = not (inputs.dtype.is_floating or inputs.dtype.is_complex)
    return layer._tw_as_own_dtype(inputs) if exact else inputs


class MaxPooling1D(_MaxPooling):
    """The largest entry of each window of ``pool_size`` steps, channel by channel.

    Args: as for `MaxPooling2D`, with ints for ``pool_size`` and ``strides``.

    Shapes: inputs ``[batch, steps, channels]``, outputs ``[batch, windows, channels]``
    with ``(steps - pool_size) // strides + 1`` windows ("valid") or ``steps /
    strides``, rounded up ("same").

    Raises: as `MaxPooling2D`.

    Example:
        >>> keras.layers.MaxPooling1D(2)([[[1.0], [3.0], [2.0], [0.0]]]).numpy().ravel()
        array([3., 2.], dtype=float32)
    """

    _tw_rank = 1


class MaxPooling2D(_MaxPooling):
    """The largest entry of each window of ``pool_size`` pixels, channel by channel.

    Args: ``pool_size``, ``strides`` (default: the pool size): an int or (height,
    width); ``padding``: "valid" (windows inside the inputs only), or "same" with
    margins that never win; ``data_format``: "channels_last" (default), or
    "channels_first" with the channels on axis 1.

    Shapes: inputs ``[batch, height, width, channels]``, outputs ``[batch, rows,
    columns, channels]`` with ``(size - pool_size) // strides + 1`` windows ("valid") or
    ``size / strides``, rounded up ("same").

    Raises: `ShapeError` if a window is larger than the inputs.

    Example:
        >>> keras.layers.MaxPooling2D()([[[[1.0], [2.0]], [[4.0], [3.0]]]]).numpy().ravel()
        array([4.], dtype=float32)
    """

    _tw_rank = 2


class MaxPooling3D(_MaxPooling):
    """The largest entry of each window of ``pool_size`` voxels, channel by channel.

    Args: as for `MaxPooling2D`, with (depth, height, width) for pairs.

    Shapes: inputs ``[batch, depth, height, width, channels]``, outputs likewise with
    the numbers of windows along the three spatial axes.

    Raises: as `MaxPooling2D`.

    Example:
        >>> from tapewright import ones
        >>> keras.layers.MaxPooling3D(2)(ones([1, 4, 4, 4, 3])).shape
        TensorShape([1, 2, 2, 2, 3])
    """

    _tw_rank = 3


class AveragePooling1D(_AveragePooling):
    """The mean of each window of ``pool_size`` steps; "same" margins do not count.

    Args: as for `MaxPooling1D`, but ``pool_size`` has no default.

    Shapes: inputs ``[batch, steps, channels]``, outputs ``[batch, windows, channels]``,
    as for `MaxPooling1D`. Integer inputs are cast.

    Raises: as `AveragePooling2D`.

    Example:
        >>> keras.layers.AveragePooling1D(2)([[[1.0], [3.0], [2.0], [0.0]]]).numpy().ravel()
        array([2., 1.], dtype=float32)
    """

    _tw_rank = 1


class AveragePooling2D(_AveragePooling):
    """The mean of each window of ``pool_size`` pixels; "same" margins do not count.

    Args: as for `MaxPooling2D`, but ``pool_size`` has no default.

    Shapes: inputs ``[batch, height, width, channels]``, outputs ``[batch, rows,
    columns, channels]``, as for `MaxPooling2D`. Integer inputs are cast.

    Raises: `ShapeError` if a window is larger than the inputs.

    Example:
        >>> keras.layers.AveragePooling2D(2)([[[[1.0], [2.0]], [[4.0], [5.0]]]]).numpy().ravel()
        array([3.], dtype=float32)
    """

    _tw_rank = 2


class AveragePooling3D(_AveragePooling):
    """The mean of each window of ``pool_size`` voxels; "same" margins do not count.

    Args: as for `MaxPooling3D`, but ``pool_size`` has no default.

    Shapes: inputs ``[batch, depth, height, width, channels]``, outputs as for
    `MaxPooling3D`. Integer inputs are cast.

    Raises: as `AveragePooling2D`.

    Example:
        >>> from tapewright import ones
        >>> keras.layers.AveragePooling3D(2)(ones([1, 4, 4, 4, 3])).shape
        TensorShape([1, 2, 2, 2, 3])
    """

    _tw_rank = 3


# ------------------------------------------------------------------- all that there is


class _GlobalPooling(Layer):
    """``reduced`` over all spatial axes; ``keepdims`` leaves them with size 1."""

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
    """The largest entry of each channel over all steps.

    Args: as for `GlobalAveragePooling2D`.

    Shapes: inputs ``[batch, steps, channels]``, outputs ``[batch, channels]``, or
    ``[batch, 1, channels]`` with ``keepdims``.

    Example:
        >>> keras.layers.GlobalMaxPooling1D()([[[1.0, 5.0], [3.0, 2.0]]]).numpy()
        array([[3., 5.]], dtype=float32)
    """

    _tw_rank = 1


class GlobalMaxPooling2D(_GlobalMaxPooling):
    """The largest entry of each channel of an image.

    Args: as for `GlobalAveragePooling2D`.

    Shapes: inputs ``[batch, height, width, channels]``, outputs ``[batch, channels]``,
    or ``[batch, 1, 1, channels]`` with ``keepdims``.

    Example:
        >>> keras.layers.GlobalMaxPooling2D()([[[[1.0], [2.0]], [[4.0], [5.0]]]]).numpy()
        array([[5.]], dtype=float32)
    """

    _tw_rank = 2


class GlobalMaxPooling3D(_GlobalMaxPooling):
    """The largest entry of each channel of a volume.

    Args: as for `GlobalAveragePooling2D`.

    Shapes: inputs ``[batch, depth, height, width, channels]``, outputs ``[batch,
    channels]``, or ``[batch, 1, 1, 1, channels]`` with ``keepdims``.

    Example:
        >>> from tapewright import ones
        >>> keras.layers.GlobalMaxPooling3D(keepdims=True)(ones([1, 4, 4, 4, 3])).shape
        TensorShape([1, 1, 1, 1, 3])
    """

    _tw_rank = 3


class GlobalAveragePooling1D(_GlobalAveragePooling):
    """The mean of each channel over the steps that the mask keeps.

    Args: as for `GlobalAveragePooling2D`. If an example has no step that counts its
    outputs are NaN.

    Shapes: inputs ``[batch, steps, channels]``, ``mask`` ``[batch, steps]``, outputs
    ``[batch, channels]``, or ``[batch, 1, channels]`` with ``keepdims``.

    Example:
        >>> inputs = [[[1.0], [3.0], [8.0]]]
        >>> keras.layers.GlobalAveragePooling1D()(inputs, mask=[[True, True, False]]).numpy()
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
    """The mean of each channel of an image.

    Args: ``data_format``: "channels_last" (default), or "channels_first" with the
    channels on axis 1; ``keepdims``: keep the spatial axes, with size 1.

    Shapes: inputs ``[batch, height, width, channels]``, outputs ``[batch, channels]``,
    or ``[batch, 1, 1, channels]`` with ``keepdims``. Integer inputs are cast.

    Raises: ``ValueError`` for another ``data_format``.

    Example:
        >>> keras.layers.GlobalAveragePooling2D()([[[[1.0], [2.0]], [[4.0], [5.0]]]]).numpy()
        array([[3.]], dtype=float32)
    """

    _tw_rank = 2


class GlobalAveragePooling3D(_GlobalAveragePooling):
    """The mean of each channel of a volume.

    Args: as for `GlobalAveragePooling2D`.

    Shapes: inputs ``[batch, depth, height, width, channels]``, outputs ``[batch,
    channels]``, or ``[batch, 1, 1, 1, channels]`` with ``keepdims``.

    Example:
        >>> from tapewright import ones
        >>> keras.layers.GlobalAveragePooling3D()(ones([1, 4, 4, 4, 3])).shape
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
    """``reduced`` over ``output_size`` windows that cover each spatial axis.

    Of n entries and k windows, window i has those from ``i n / k``, rounded down, to
    ``(i + 1) n / k``, rounded up; neighbours may share an entry.
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
    """The means of ``output_size`` windows that together cover all steps.

    Args: as for `AdaptiveAveragePooling2D`.

    Shapes: inputs ``[batch, steps, channels]``, outputs ``[batch, output_size,
    channels]``.

    Raises: as `AdaptiveAveragePooling2D`.

    Example:
        >>> keras.layers.AdaptiveAveragePooling1D(2)([[[1.0], [2.0], [6.0]]]).numpy().ravel()
        array([1.5, 4. ], dtype=float32)
    """

    _tw_rank = 1


class AdaptiveAveragePooling2D(_AdaptiveAveragePooling):
    """The means of ``output_size`` windows that together cover each spatial axis.

    Of ``n`` entries and ``k`` windows, window ``i`` has the entries from ``i * n / k``,
    rounded down, to ``(i + 1) * n / k``, rounded up; neighbours may share an entry.

    Args: ``output_size``: an int or (height, width), at most 4096; ``data_format``:
    "channels_last" (default), or "channels_first" with the channels on axis 1.

    Shapes: inputs ``[batch, height, width, channels]``, outputs ``[batch, *output_size,
    channels]``. Integer inputs are cast; `AdaptiveMaxPooling2D` keeps them.

    Raises: ``ValueError`` for an ``output_size`` that is not positive, or too large.

    Example:
        >>> keras.layers.AdaptiveAveragePooling2D((1, 2))([[[[1.0], [2.0], [6.0]]]]).numpy().ravel()
        array([1.5, 4. ], dtype=float32)
    """

    _tw_rank = 2


class AdaptiveAveragePooling3D(_AdaptiveAveragePooling):
    """The means of ``output_size`` windows that together cover each spatial axis.

    Args: as for `AdaptiveAveragePooling2D`.

    Shapes: inputs ``[batch, depth, height, width, channels]``, outputs ``[batch,
    *output_size, channels]``.

    Raises: as `AdaptiveAveragePooling2D`.

    Example:
        >>> from tapewright import ones
        >>> keras.layers.AdaptiveAveragePooling3D((1, 2, 3))(ones([1, 4, 4, 4, 5])).shape
        TensorShape([1, 1, 2, 3, 5])
    """

    _tw_rank = 3


class AdaptiveMaxPooling1D(_AdaptiveMaxPooling):
    """The maxima of ``output_size`` windows that together cover all steps.

    Args: as for `AdaptiveAveragePooling2D`, which also defines the windows.

    Shapes: inputs ``[batch, steps, channels]``, outputs ``[batch, output_size,
    channels]``.

    Raises: as `AdaptiveAveragePooling2D`.

    Example:
        >>> keras.layers.AdaptiveMaxPooling1D(2)([[[1.0], [2.0], [6.0]]]).numpy().ravel()
        array([2., 6.], dtype=float32)
    """

    _tw_rank = 1


class AdaptiveMaxPooling2D(_AdaptiveMaxPooling):
    """The maxima of ``output_size`` windows that together cover each spatial axis.

    Args: as for `AdaptiveAveragePooling2D`, which also defines the windows.

    Shapes: inputs ``[batch, height, width, channels]``, outputs ``[batch, *output_size,
    channels]``.

    Raises: as `AdaptiveAveragePooling2D`.

    Example:
        >>> keras.layers.AdaptiveMaxPooling2D((1, 2))([[[[1.0], [2.0], [6.0]]]]).numpy().ravel()
        array([2., 6.], dtype=float32)
    """

    _tw_rank = 2


class AdaptiveMaxPooling3D(_AdaptiveMaxPooling):
    """The maxima of ``output_size`` windows that together cover each spatial axis.

    Args: as for `AdaptiveAveragePooling2D`, which also defines the windows.

    Shapes: inputs ``[batch, depth, height, width, channels]``, outputs ``[batch,
    *output_size, channels]``.

    Raises: as `AdaptiveAveragePooling2D`.

    Example:
        >>> from tapewright import ones
        >>> keras.layers.AdaptiveMaxPooling3D((1, 2, 3))(ones([1, 4, 4, 4, 5])).shape
        TensorShape([1, 1, 2, 3, 5])
    """

    _tw_rank = 3
